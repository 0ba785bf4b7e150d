"""Private linear regression from one joint moment of features and targets."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.adaptive.regression import hidden_std, joint_moment, regression_std, solve_regression
from matrixdp.answers.models import hide_undetermined
from matrixdp.checks import check_number
from matrixdp.display import interval
from matrixdp.domain.columns import Columns, Number
from matrixdp.estimators.base import MomentEstimator
from matrixdp.estimators.inputs import (
    check_same_length,
    check_targets_apart,
    is_read_in_parts,
    joint_bounds,
    parse_bounds,
    parse_target_names,
    read_targets,
    unused_name,
)
from matrixdp.estimators.table_fit import TableFit
from matrixdp.records.expanded_columns import ExpandedColumns
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
    coef_std_, intercept_std_ : float or float64 arrays of the same shapes
        Standard deviations of their errors, from noise and from shrinkage, about the coefficients without privacy. NaN
        where there were too few records for a regression.
    expanded_names_, release_
        For tables, as in `MomentEstimator`; the first level of a category is the reference. A missing number is
        replaced by the private mean in `predict`.

    Notes
    -----
    **Privacy.** See `PrivateEstimator`; a record is a row of X with its row of y.

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
        alpha = check_number(self.alpha, "alpha", at_least=0)
        features, ids = self._expanded(reference=True), self._read_ids(X)
        moment: PrivateMoment | TableFit
        if features is None:
            if is_read_in_parts(X):
                table, names = self._validate_features(X), parse_target_names(y)
                count, single = len(names), len(names) == 1
            else:
                X, y = self._validate_features(X, y=y, multi_output=True, y_numeric=True)
                table, names, single = np.column_stack([X, y]), None, np.ndim(y) == 1
                count = table.shape[1] - X.shape[1]
            feature_bounds = self._feature_bounds()
            target_bounds = parse_bounds(self.target_bounds, count, "target_bounds")
            bounds = joint_bounds(feature_bounds, target_bounds, names)
            moment = self._fit_moment(table, bounds, "regression", ids=ids, targets=count)
        else:
            targets, values, single = self._read_table_targets(X, y, features.columns)
            last, count = ExpandedColumns(Columns(targets), reference=False), len(targets)
            moment = self._fit_described(X, "regression", features, last, values, targets=count)
        if isinstance(moment, TableFit):
            coefficients, intercepts = moment.joint.coefficients(len(moment.features.names), alpha=alpha)
        else:
            coefficients, intercepts = solve_regression(moment, count, alpha=alpha)
        self._moment = moment
        self.coef_ = coefficients[0] if single else coefficients
        self.intercept_ = float(intercepts[0]) if single else intercepts
        self._error_bars: tuple[Floats, Floats] | None = None
        return self

    def _read_table_targets(self, X: Any, y: Any, columns: Columns) -> tuple[list[Number], dict[str, Any] | None, bool]:
        """Columns of the targets, their values unless they are outside of memory, and whether there is one only."""
        values: dict[str, Any] | None = None
        if is_read_in_parts(X):
            names = parse_target_names(y)
            check_targets_apart(columns.names, names)
            single = len(names) == 1
        else:
            found = read_targets(y)
            check_same_length(X, found)
            table, single = (found[:, None], True) if found.ndim == 1 else (found, False)
            names = tuple(unused_name(f"target {k}", columns.names) for k in range(table.shape[1]))
            values = dict(zip(names, table.T, strict=True))
        box = parse_bounds(self.target_bounds, len(names), "target_bounds")
        ends = zip(names, box.lower.tolist(), box.upper.tolist(), strict=True)
        return [Number(name, lower, upper) for name, lower, upper in ends], values, single

    @property
    def coef_std_(self) -> Floats:
        """Standard deviation of the error of each coefficient, of the shape of `coef_`.

        NaN where noise hides the coefficient, as it does if features are nearly collinear.
        """
        return self._compute_error_bars()[0]

    @property
    def intercept_std_(self) -> Any:
        """Standard deviation of the error of the intercept, or of each."""
        std = self._compute_error_bars()[1]
        return std if np.ndim(self.intercept_) else float(std)

    def coef_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds that contain each coefficient without privacy with probability `level`, each of the shape of `coef_`.

        They cover noise and shrinkage, but neither the bias of clipping nor sampling. NaN where noise hides it.
        """
        return interval(self.coef_, self.coef_std_, level)

    def _compute_error_bars(self) -> tuple[Floats, Floats]:
        """Both standard deviations; computed when they are first asked for."""
        check_is_fitted(self)
        if self._error_bars is None:
            moment, single = self._moment, np.ndim(self.intercept_) == 0
            slopes = np.atleast_2d(self.coef_)
            if isinstance(moment, TableFit):
                joint = moment.joint
                stds = joint.coefficient_std(slopes.shape[1], moment.draws(), alpha=self.alpha)
            else:
                joint, stds = joint_moment(moment), regression_std(moment, len(slopes), alpha=self.alpha)
            hidden = np.array([hidden_std(joint, one, k, alpha=self.alpha) for k, one in enumerate(slopes)])
            own = np.sqrt(np.maximum(np.diagonal(joint.covariance), joint.noise_std * np.diagonal(joint.noise_shape)))
            own, m = own * joint.half, slopes.shape[1]
            bars = np.maximum(stds[0], hidden[:, 1:])
            shown = [hide_undetermined(bar, own[:m], float(own[m + k])) for k, bar in enumerate(bars)]
            stds = np.array(shown), np.maximum(stds[1], hidden[:, 0])
            self._error_bars = (stds[0][0], stds[1][0]) if single else stds
        return self._error_bars

    def predict(self, X: Any) -> Floats:
        """Targets of shape (n,) or (n, targets) for features X of shape (n, m)."""
        check_is_fitted(self)
        return self._apply(X, lambda records: np.asarray(records @ self.coef_.T + self.intercept_))


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearRegression(PrivateRidge):
    """Private least squares: `PrivateRidge` with no penalty except the one that accounts for the noise.

    Parameters are those of `PrivateRidge`, without `alpha`.

    Notes
    -----
    **Privacy.** See `PrivateEstimator`; a record is a row of X with its row of y.

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
