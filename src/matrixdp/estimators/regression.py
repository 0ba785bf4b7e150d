"""Private linear regression from one joint moment of features and targets."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from matrixdp.adaptive.regression import solve_regression
from matrixdp.domain.bounds import Bounds
from matrixdp.errors import ParameterError, show
from matrixdp.estimators.base import PrivateEstimator, as_bounds, elsewhere
from matrixdp.types import Floats


class PrivateRidge(MultiOutputMixin, RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Private ridge regression, one target or several, from one private moment.

    Parameters
    ----------
    alpha : float
        Penalty on the squares of the coefficients, as in scikit-learn's `Ridge`; a ridge of the size of the noise is
        added to it.
    target_bounds : Bounds or pair (lower, upper)
        Public range of each target. Required.

    Other parameters are those of `PrivateEstimator`; `bounds` are the features'. The pure functions are
    `private_moment` and `solve_regression`.

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
    >>> model = PrivateRidge(bounds=(-5, 5), target_bounds=(-10, 15), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
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
        """Spend the budget on features X, of shape (n, m), and targets y, of shape (n,) or (n, targets).

        For records outside of memory X is where they are, and y the name of the target's column, or names.
        """
        alpha = self._penalty()
        if elsewhere(X):
            table, y = self._features(X), target_names(y)
            targets, single = len(y), len(y) == 1
        else:
            X, y = self._features(X, y=y, multi_output=True, y_numeric=True)
            table, single = np.column_stack([X, y]), np.ndim(y) == 1
            targets = table.shape[1] - X.shape[1]
        joint = join_bounds(
            self._feature_bounds(),
            as_bounds(self.target_bounds, targets, "target_bounds"),
            y if isinstance(y, tuple) else None,
        )
        moment = self._moment(table, joint, "regression")
        coefficients, intercepts = solve_regression(moment, targets, alpha=alpha)
        self.coef_ = coefficients[0] if single else coefficients
        self.intercept_ = float(intercepts[0]) if single else intercepts
        return self

    def _penalty(self) -> float:
        return check_penalty(self.alpha)

    def predict(self, X: Any) -> Floats:
        """Targets of shape (n,) or (n, targets) for features X of shape (n, m)."""
        check_is_fitted(self)
        return np.asarray(self._features(X, reset=False) @ self.coef_.T + self.intercept_)


class PrivateLinearRegression(PrivateRidge):
    """Private least squares: `PrivateRidge` with no penalty but the one that the noise calls for.

    Privacy
    -------
    See `PrivateEstimator`; a record is a row of X with its row of y.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 2))
    >>> model = PrivateLinearRegression(bounds=(-5, 5), target_bounds=(-9, 9), random_state=0).fit(X, X @ [1.0, -1.0])
    >>> model.coef_.round(0).tolist()
    [1.0, -1.0]
    """

    def __init__(
        self,
        *,
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

    def _penalty(self) -> float:
        return 0.0


def check_penalty(alpha: Any) -> float:
    """A ridge penalty, or an error."""
    if (
        isinstance(alpha, bool)
        or not isinstance(alpha, int | float | np.integer | np.floating)
        or not 0 <= alpha < math.inf
    ):
        raise ParameterError(f"alpha must be finite and at least 0, got {show(alpha)} instead.")
    return float(alpha)


def join_bounds(first: Bounds, second: Bounds, targets: tuple[str, ...] | None = None) -> Bounds:
    """Bounds of features and targets side by side; a radius of either is left out, which only widens the domain.

    With names of the targets, the columns have those of the features and these.
    """
    names = None
    if targets is not None:
        if first.names is None:
            raise ParameterError("bounds must have names, by which the columns of X and y are found.")
        both = [name for name in targets if name in first.names]
        if both:
            raise ParameterError(f"y must not be among the features, but {both[0]!r} is; leave it out of the bounds.")
        names = (*first.names, *targets)
    lower, upper = (np.concatenate(sides) for sides in ((first.lower, second.lower), (first.upper, second.upper)))
    return Bounds(lower, upper, names)


def target_names(y: Any) -> tuple[str, ...]:
    """Names of the targets' columns, for records outside of memory."""
    names = (y,) if isinstance(y, str) else tuple(y) if isinstance(y, list | tuple) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise ParameterError("y must be the name of the target's column, or a list of names, as X is not in memory.")
    return names
