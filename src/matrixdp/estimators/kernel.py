"""Private kernel regression by random Fourier features."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from matrixdp.adaptive.fourier import FeatureMap, FourierFeatures
from matrixdp.adaptive.out_of_core import MappedParts
from matrixdp.adaptive.regression import solve_regression
from matrixdp.errors import ParameterError, show
from matrixdp.estimators.base import PrivateEstimator, as_bounds, elsewhere
from matrixdp.estimators.regression import check_penalty, join_bounds, target_names
from matrixdp.types import Floats


class PrivateKernelRidge(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Private regression with a Gaussian kernel, by random Fourier features and one private moment.

    Parameters
    ----------
    alpha : float
        Ridge penalty, as in scikit-learn's `KernelRidge`.
    gamma : float, optional
        Of the kernel ``exp(-gamma |x - y|^2)``, for features scaled to [-1, 1]; by default one over their number.
    n_components : int
        Number of Fourier features. Noise grows with it.
    feature_seed : int
        Of the public random frequencies; not a secret.
    target_bounds : Bounds or pair (lower, upper)
        Public range of the target. Required.

    Other parameters are those of `PrivateEstimator`.

    Attributes
    ----------
    features_ : FourierFeatures
    coef_ : float64 array of shape (n_components,)
    intercept_ : float

    Privacy
    -------
    See `PrivateEstimator`; a record is a row of X with its number in y.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20000, 1))
    >>> y = np.sin(3 * X[:, 0])
    >>> model = PrivateKernelRidge(bounds=(-1, 1), target_bounds=(-1, 1), gamma=2.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        gamma: float | None = None,
        n_components: int = 20,
        feature_seed: int = 0,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Any = None,
        target_bounds: Any = None,
        neighbours: str = "replace",
        records: int | None = None,
        directions: Any = "learned",
        ledger: Any = None,
        dataset: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.n_components = n_components
        self.feature_seed = feature_seed
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.neighbours = neighbours
        self.records = records
        self.directions = directions
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Spend the budget on features X, of shape (n, m), and a target y, of shape (n,).

        For records outside of memory X is where they are, and y the name of the target's column.
        """
        outside = elsewhere(X)
        if outside:
            X, names = self._features(X), target_names(y)
            if len(names) > 1:
                raise ParameterError(f"y must be the name of one target, got {len(names)} instead.")
        else:
            X, y = self._features(X, y=y, y_numeric=True)
        gamma = 1 / self.n_features_in_ if self.gamma is None else self.gamma
        if isinstance(gamma, bool) or not isinstance(gamma, int | float | np.number) or not 0 < gamma < math.inf:
            raise ParameterError(f"gamma must be finite and greater than 0, got {gamma!r} instead.")
        count = self.n_components
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ParameterError(f"n_components must be an integer of at least 1, got {count!r} instead.")
        alpha = check_penalty(self.alpha)
        seed = self.feature_seed
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ParameterError(f"feature_seed must be a non-negative integer, got {show(seed)} instead.")
        features = FourierFeatures(self._feature_bounds(), gamma=gamma, count=int(count), seed=int(seed))
        target = as_bounds(self.target_bounds, 1, "target_bounds")
        joint = join_bounds(features.box, target)
        if outside:
            columns = join_bounds(features.bounds, target, names).names or ()
            table: Any = MappedParts(X.select(columns), FeatureMap(features, columns))
        else:
            table = np.column_stack([features(X), y])
        moment = self._moment(table, joint, "regression")
        coefficients, intercepts = solve_regression(moment, 1, alpha=alpha)
        self.features_, self.coef_, self.intercept_ = features, coefficients[0], float(intercepts[0])
        return self

    def predict(self, X: Any) -> Floats:
        """Targets of shape (n,) for features X of shape (n, m)."""
        check_is_fitted(self)
        return np.asarray(self.features_(self._features(X, reset=False)) @ self.coef_ + self.intercept_)
