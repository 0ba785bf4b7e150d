"""Private kernel regression by random Fourier features."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from matrixdp.adaptive.fourier import FeatureMap, FourierFeatures
from matrixdp.adaptive.regression import solve_regression
from matrixdp.checks import check_integer, check_number
from matrixdp.errors import ParameterError
from matrixdp.estimators.base import MomentEstimator
from matrixdp.estimators.inputs import is_read_in_parts, joint_bounds, parse_bounds, parse_target_names
from matrixdp.records.records import MappedRecords
from matrixdp.types import Floats


@dataclass(eq=False, repr=False)
class PrivateKernelRidge(RegressorMixin, MomentEstimator):  # type: ignore[misc]
    """Private regression with a Gaussian kernel, by random Fourier features and one private moment.

    Parameters that are not listed here are those of `MomentEstimator` and `PrivateEstimator`.

    Parameters
    ----------
    alpha : float
        Ridge penalty, as in scikit-learn's `KernelRidge`.
    gamma : float, optional
        Coefficient of the kernel ``exp(-gamma |x - y|^2)``, for features scaled to [-1, 1]; by default one over their
        number.
    n_components : int
        Number of Fourier features. The noise grows with it.
    feature_seed : int
        Seed of the public random frequencies; it is no secret.
    target_bounds : Bounds or pair (lower, upper)
        Public range of the target. Required.

    Attributes
    ----------
    features_ : FourierFeatures
    coef_ : float64 array of shape (n_components,)
    intercept_ : float

    Notes
    -----
    **Privacy.** See `PrivateEstimator`; a record is a row of X with its number in y.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20000, 1))
    >>> y = np.sin(3 * X[:, 0])
    >>> seeded = {"random_state": 0, "simulation": True}
    >>> model = PrivateKernelRidge(bounds=(-1, 1), target_bounds=(-1, 1), gamma=2.0, **seeded).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    alpha: float = 1e-3
    _: KW_ONLY
    gamma: float | None = None
    n_components: int = 20
    feature_seed: int = 0
    target_bounds: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Spend the budget on features X, of shape (n, m), and a target y, of shape (n,).

        For records outside of memory, X is their location and y the name of the target column.
        """
        in_parts, ids = is_read_in_parts(X), self._read_ids(X)
        if in_parts and self.person is not None:
            raise ParameterError("person must be left out for records outside of memory. Give X as a data frame.")
        if in_parts:
            X, names = self._validate_features(X), parse_target_names(y, one="target")
        else:
            X, y = self._validate_features(X, y=y, y_numeric=True)
        alpha = check_number(self.alpha, "alpha", at_least=0)
        features = self._fourier_features()
        target_bounds = parse_bounds(self.target_bounds, 1, "target_bounds")
        bounds = joint_bounds(features.box, target_bounds)
        if in_parts:
            columns = joint_bounds(features.bounds, target_bounds, names).names or ()
            table: Any = MappedRecords(X.select(columns), FeatureMap(features, columns))
        else:
            table = np.column_stack([features(X), y])
        moment = self._fit_moment(table, bounds, "regression", ids=ids)
        coefficients, intercepts = solve_regression(moment, 1, alpha=alpha)
        self.features_, self.coef_, self.intercept_ = features, coefficients[0], float(intercepts[0])
        return self

    def _fourier_features(self) -> FourierFeatures:
        gamma = 1 / self.n_features_in_ if self.gamma is None else check_number(self.gamma, "gamma", above=0)
        count = check_integer(self.n_components, "n_components", at_least=1)
        seed = check_integer(self.feature_seed, "feature_seed", at_least=0)
        return FourierFeatures(self._feature_bounds(), gamma=gamma, count=count, seed=seed)

    def predict(self, X: Any) -> Floats:
        """Targets of shape (n,) for features X of shape (n, m)."""
        check_is_fitted(self)
        return np.asarray(self.features_(self._validate_features(X, reset=False)) @ self.coef_ + self.intercept_)
