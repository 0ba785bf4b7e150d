"""Private linear regression from one joint moment of features and targets."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from matrixdp.adaptive.regression import solve_regression
from matrixdp.checks import check_number
from matrixdp.estimators.base import MomentEstimator
from matrixdp.estimators.inputs import is_read_in_parts, joint_bounds, parse_bounds, parse_target_names
from matrixdp.types import Floats


@dataclass(eq=False, repr=False)
class PrivateRidge(MultiOutputMixin, RegressorMixin, MomentEstimator):  # type: ignore[misc]
    """Private ridge regression, one target or several, from one private moment.

    Parameters that are not listed here are those of `MomentEstimator` and `PrivateEstimator`; `bounds` are those of the
    features. The functions behind it are `private_moment` and `solve_regression` in `matrixdp.adaptive`.

    Parameters
    ----------
    alpha : float
        Penalty on the squares of the coefficients, as in scikit-learn's `Ridge`. Coefficients are also shrunk according
        to the noise in the moment.
    target_bounds : Bounds or pair (lower, upper)
        Public range of each target. Required.

    Attributes
    ----------
    coef_ : float64 array of shape (m,) or (targets, m)
    intercept_ : float or float64 array of shape (targets,)

    Privacy
    -------
    See `PrivateEstimator`; a record is a row of X with its row of y.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 2))
    >>> y = X @ [1.0, -2.0] + 3
    >>> model = PrivateRidge(bounds=(-5, 5), target_bounds=(-10, 15), random_state=0, simulation=True).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    alpha: float = 1.0
    _: KW_ONLY
    target_bounds: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Spend the budget on features X, of shape (n, m), and targets y, of shape (n,) or (n, targets).

        For records outside of memory, X is their location and y the name or names of the target columns.
        """
        alpha, ids = check_number(self.alpha, "alpha", at_least=0), self._read_ids(X)
        if is_read_in_parts(X):
            table, names = self._validate_features(X), parse_target_names(y)
            targets, single = len(names), len(names) == 1
        else:
            X, y = self._validate_features(X, y=y, multi_output=True, y_numeric=True)
            table, names, single = np.column_stack([X, y]), None, np.ndim(y) == 1
            targets = table.shape[1] - X.shape[1]
        feature_bounds = self._feature_bounds()
        target_bounds = parse_bounds(self.target_bounds, targets, "target_bounds")
        bounds = joint_bounds(feature_bounds, target_bounds, names)
        moment = self._fit_moment(table, bounds, "regression", ids)
        coefficients, intercepts = solve_regression(moment, targets, alpha=alpha)
        self.coef_ = coefficients[0] if single else coefficients
        self.intercept_ = float(intercepts[0]) if single else intercepts
        return self

    def predict(self, X: Any) -> Floats:
        """Targets of shape (n,) or (n, targets) for features X of shape (n, m)."""
        check_is_fitted(self)
        return np.asarray(self._validate_features(X, reset=False) @ self.coef_.T + self.intercept_)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearRegression(PrivateRidge):
    """Private least squares: `PrivateRidge` with no penalty except the one that accounts for the noise.

    Parameters are those of `PrivateRidge`, without `alpha`.

    Privacy
    -------
    See `PrivateEstimator`; a record is a row of X with its row of y.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 2))
    >>> seeded = {"random_state": 0, "simulation": True}
    >>> model = PrivateLinearRegression(bounds=(-5, 5), target_bounds=(-9, 9), **seeded).fit(X, X @ [1.0, -1.0])
    >>> model.coef_.round(0).tolist()
    [1.0, -1.0]
    """

    alpha: float = field(default=0.0, init=False)
