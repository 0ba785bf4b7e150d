"""Private regression, linear or with a kernel, from one joint moment of features and targets."""

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from matrixdp.adaptive.coordinates import FourierFeatures
from matrixdp.adaptive.regression import hidden_std, solve_regression
from matrixdp.answers.models import hide_undetermined
from matrixdp.checks import check_integer, check_number
from matrixdp.device import is_on_device
from matrixdp.domain.columns import Columns, Number
from matrixdp.errors import ParameterError
from matrixdp.estimators import inputs
from matrixdp.estimators.base import MomentEstimator
from matrixdp.estimators.table_fit import joint_of
from matrixdp.intervals import interval
from matrixdp.records.expanded_columns import ExpandedColumns
from matrixdp.records.records import MappedRecords
from matrixdp.types import Floats


@dataclass(eq=False, repr=False)
class PrivateRidge(MultiOutputMixin, RegressorMixin, MomentEstimator):  # type: ignore[misc]
    """Private ridge regression, one target or several, from one private moment.

    Other parameters and the guarantee are those of `MomentEstimator` and `PrivateEstimator`; `bounds` are those of the
    features, and a record is a row of X with its row of y. The functions behind it are `private_moment` and
    `solve_regression` in `matrixdp.adaptive`.

    Parameters
    ----------
    alpha : float
        Penalty on the squares of the coefficients, as in scikit-learn's `Ridge`. Coefficients are also shrunk according
        to the noise in the moment.
    alphas : sequence of float, optional
        Penalties among which the fit chooses; `alpha` is not used then. The choice follows from the private moment and
        the law of its noise, and costs nothing further.
    target_bounds : Bounds or pair (lower, upper)
        Public range of each target. Required.

    Attributes
    ----------
    coef_ : float64 array of shape (m,) or (targets, m)
    intercept_ : float or float64 array of shape (targets,)
    alpha_ : float
        The penalty that was used.
    coef_std_, intercept_std_ : float or float64 arrays of the same shapes
        Standard deviations of their errors, from noise and from shrinkage, about the coefficients without privacy. NaN
        where there were too few records for a regression.
    expanded_names_, release_
        For tables, as in `MomentEstimator`; the first level of a category is the reference. A missing number is
        replaced by the private mean in `predict`.

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
    alphas: Any = None
    target_bounds: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Spend the budget on features X, of shape (n, m), and targets y, of shape (n,) or (n, targets).

        For records outside of memory, X is their location and y the name or names of the target columns.
        """
        alphas = inputs.parse_candidates(self.alphas, "alphas") if self.alphas is not None else None
        alpha = check_number(self.alpha, "alpha", at_least=0, rule="a number of at least 0 (for several, see alphas)")
        features, ids = self._expanded(reference=True), self._read_ids(X)
        values: Any = None
        in_parts = inputs.is_read_in_parts(X)
        X = self._validate_features(X) if features is None else X
        if in_parts:
            names = inputs.parse_target_names(y)
            single = len(names) == 1
        else:
            y = inputs.read_targets(y, X)
            single = y.ndim == 1
            values = y[:, None] if single else y
            used = () if features is None else features.columns.names
            names = tuple(inputs.unused_name(f"target {k}", used) for k in range(values.shape[1]))
        box = inputs.parse_bounds(self.target_bounds, len(names), "target_bounds")
        ends = zip(names, box.lower.tolist(), box.upper.tolist(), strict=True)
        last = ExpandedColumns(Columns([Number(*end) for end in ends]), reference=False)
        moment = self._fit_joint(X, "regression", features, last, values, ids=ids, targets=len(names))
        self._joint = joint_of(moment)
        m = len(self._joint.half) - len(names)
        self.alpha_ = alpha if alphas is None else alphas[self._joint.choose(m, alphas)]
        coefficients, intercepts = self._joint.coefficients(m, alpha=self.alpha_)
        self.coef_ = coefficients[0] if single else coefficients
        self.intercept_ = float(intercepts[0]) if single else intercepts
        self.__dict__.pop("_error_bars", None)  # of an earlier fit
        return self

    @property
    def coef_std_(self) -> Floats:
        """Standard deviation of the error of each coefficient, of the shape of `coef_`.

        NaN where noise hides the coefficient, as it does if features are nearly collinear.
        """
        check_is_fitted(self)
        return self._error_bars[0]

    @property
    def intercept_std_(self) -> Any:
        """Standard deviation of the error of the intercept, or of each."""
        check_is_fitted(self)
        return self._error_bars[1] if np.ndim(self.intercept_) else float(self._error_bars[1])

    def coef_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds that contain each coefficient without privacy with probability `level`, each of the shape of `coef_`.

        They cover noise and shrinkage, but neither the bias of clipping nor sampling. NaN where noise hides it.
        """
        return interval(self.coef_, self.coef_std_, level)

    @cached_property
    def _error_bars(self) -> tuple[Floats, Floats]:
        """Standard deviations of the errors of coefficients and intercepts."""
        joint, slopes = self._joint, np.atleast_2d(self.coef_)
        m = slopes.shape[1]
        stds = joint.coefficient_std(m, alpha=self.alpha_)
        hidden = np.array([hidden_std(joint, one, k, alpha=self.alpha_) for k, one in enumerate(slopes)])
        own = np.sqrt(np.maximum(np.diagonal(joint.covariance), joint.noise_std * np.diagonal(joint.noise_shape)))
        own, bars = own * joint.half, np.maximum(stds[0], hidden[:, 1:])
        shown = np.array([hide_undetermined(bar, own[:m], float(own[m + k])) for k, bar in enumerate(bars)])
        rest = np.maximum(stds[1], hidden[:, 0])
        return (shown, rest) if np.ndim(self.intercept_) else (shown[0], rest[0])

    def predict(self, X: Any) -> Floats:
        """Targets of shape (n,) or (n, targets) for features X of shape (n, m)."""
        check_is_fitted(self)
        return self._apply(X, lambda records: np.asarray(records @ self.coef_.T + self.intercept_))


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearRegression(PrivateRidge):
    """Private least squares: `PrivateRidge` with no penalty except the one that accounts for the noise.

    Parameters and guarantee are those of `PrivateRidge`, without `alpha` and `alphas`.

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
    alphas: Any = field(default=None, init=False)


@dataclass(eq=False, repr=False)
class PrivateKernelRidge(RegressorMixin, MomentEstimator):  # type: ignore[misc]
    """Private regression with a Gaussian kernel, by random Fourier features and one private moment.

    Other parameters and the guarantee are those of `MomentEstimator` and `PrivateEstimator`; a record is a row of X
    with its number in y.

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
        in_parts, ids = inputs.is_read_in_parts(X), self._read_ids(X)
        if in_parts and self.person is not None:
            raise ParameterError("person must be left out for records outside of memory. Give X as a data frame.")
        X = self._validate_features(X)
        if in_parts:
            names = inputs.parse_target_names(y, one="target")
        else:
            y = inputs.read_targets(y, X)
            y = y if is_on_device(y) else column_or_1d(y, warn=True)
        alpha = check_number(self.alpha, "alpha", at_least=0)
        gamma = 1 / self.n_features_in_ if self.gamma is None else check_number(self.gamma, "gamma", above=0)
        count = check_integer(self.n_components, "n_components", at_least=1)
        seed = check_integer(self.feature_seed, "feature_seed", at_least=0)
        features = FourierFeatures(self._feature_bounds(), gamma=gamma, count=count, seed=seed)
        target_bounds = inputs.parse_bounds(self.target_bounds, 1, "target_bounds")
        bounds = inputs.joint_bounds(features.box, target_bounds)
        if in_parts:
            columns = inputs.joint_bounds(features.bounds, target_bounds, names).names or ()
            table: Any = MappedRecords(X.select(columns), partial(features.with_target, columns))
        else:
            table = np.column_stack([features(X), y])
        moment = self._fit_moment(table, bounds, "regression", ids=ids)
        coefficients, intercepts = solve_regression(moment, 1, alpha=alpha)
        self.features_, self.coef_, self.intercept_ = features, coefficients[0], float(intercepts[0])
        return self

    def predict(self, X: Any) -> Floats:
        """Targets of shape (n,) for features X of shape (n, m)."""
        check_is_fitted(self)
        return np.asarray(self.features_(self._validate_features(X, reset=False)) @ self.coef_ + self.intercept_)
