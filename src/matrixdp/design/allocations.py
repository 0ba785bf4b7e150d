"""Allocations: how a rule divides the privacy loss among directions, and the covariances of the noise that follow."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.checks import LARGEST, check_magnitudes, check_number, to_floats
from matrixdp.display import short_repr
from matrixdp.errors import ParameterError, show
from matrixdp.noise.matrix import Covariance
from matrixdp.queries import MatrixQuery
from matrixdp.sensitivity.record_change import fill_ball
from matrixdp.serialise import register_family
from matrixdp.types import Floats


class Allocation(ABC):
    """A rule that divides the privacy loss among directions. Subclass it for a rule of your own.

    Attributes
    ----------
    rule : str
        Name of the rule in reports and ledgers.
    structured : bool
        Whether a moment's diagonal may get more precision where that costs no privacy.
    named : bool
        Whether the rule refers to features by name, which means nothing in another basis.
    chooses_directions : bool
        Whether the rule has directions of its own (`own_directions`), so that none can be given.

    Privacy
    -------
    An allocation only shapes the noise: `make_design` scales it until the distance between neighbours fits the budget.
    """

    rule: ClassVar[str] = "custom"
    chooses_directions: ClassVar[bool] = False
    structured: ClassVar[bool] = True

    @property
    def named(self) -> bool:
        """True if features are given by name."""
        return False

    def own_directions(self, query: MatrixQuery) -> Floats | None:
        """Directions of a rule that chooses them, of shape (features, features)."""
        return None

    @abstractmethod
    def variances(self, query: MatrixQuery, directions: Floats | None) -> Floats:
        """Variance of the noise along each direction, up to a common factor, of shape (features,)."""

    def precisions(self, query: MatrixQuery) -> Floats:
        """Shares of the precision budget of the paper's Theorem 2, of shape (features,); uniform by default."""
        return np.full(query.features, 1 / query.features)

    def entry_covariance(self, query: MatrixQuery) -> Covariance | None:
        """Covariance over all entries, flattened, for rules that shape each entry; None for rules on directions."""
        return None


@dataclass(frozen=True, eq=False)
class BuiltInAllocation(Allocation):
    """The rules of this package: `values` and `share` are those that the rule needs."""

    values: Any = None
    share: float = 1.0

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Check the values of a rule that has any."""

    def to_fields(self) -> dict[str, Any]:
        """Rule, values and share, as JSON has them."""
        return {"rule": self.rule, "values": self.values, "share": self.share}


def noise_sides(query: MatrixQuery, variances: Floats, directions: Floats | None) -> tuple[Covariance, Covariance]:
    """Covariances of rows and columns from the variances along the directions of the query's side."""
    variances, directions = query.lift(variances, directions)
    alike = directions is None and bool((variances == variances[0]).all())
    side = Covariance.identity(variances.size, variances[0]) if alike else Covariance(variances, directions)
    if query.side == "both":
        return side, side
    if query.side == "rows":
        return side, Covariance.identity(query.shape[1])
    return Covariance.identity(query.shape[0]), side


class Optimal(BuiltInAllocation):
    """The least weighted noise, for the weights in `values`."""

    rule = "optimal"

    def __post_init__(self) -> None:
        if self.values is None:
            return
        array = to_floats(self.values, "weights")
        if not array.size:
            raise ParameterError("weights must be at least one number.")
        check_magnitudes(array, "weights", largest=1e120)  # squares of magnitudes
        object.__setattr__(self, "values", array)

    def weights(self, query: MatrixQuery) -> Floats:
        """Weight of each feature's variance, of shape (features,)."""
        if self.values is None:
            return np.asarray(1 / query.extent(None) ** 2)
        if self.values.shape != (query.features,):
            raise ParameterError(
                f"weights must be {query.features} numbers, one per feature, got shape {self.values.shape} instead."
            )
        return np.asarray(self.values)

    def variances(self, query: MatrixQuery, directions: Floats | None) -> Floats:
        """The closed form for a box; with directions, that or isotropic noise, whichever costs less."""
        weights, changes = self.weights(query), query.sensitivity
        if changes.ball:
            return np.ones(weights.size)
        # The squared coordinates of the record that the noise must hide: a corner, or what a ball leaves of it.
        squares, radius = query.extent(directions) ** 2, changes.record_radius
        best = np.sqrt((squares if radius is None else fill_ball(squares, weights, radius)) / weights)
        if directions is None:
            return best

        def cost(variances: Floats) -> float:
            """The weighted noise, after scaling to unit distance."""
            distance = changes.distance(*noise_sides(query, variances, directions)).value
            noise = float((weights * variances).sum())
            return noise * distance if query.side == "both" else noise * distance**2

        return min(best, np.ones(best.size), key=cost)

    def precisions(self, query: MatrixQuery) -> Floats:
        """Minimises ``sum weights_i sigma_i`` for a given ``sum 1/sigma_i^2``."""
        weights = self.weights(query) ** (2 / 3)
        return np.asarray(weights / weights.sum())

    def entry_covariance(self, query: MatrixQuery) -> Covariance | None:
        return query.sensitivity.best_covariance(query.shape, self.values)


def optimal(weights: ArrayLike | None = None) -> Allocation:
    """The shares with the least noise, ``sum weights_i variance_i``.

    For a symmetric answer ``sum weights_i weights_j variance_ij``. In closed form for records in a box, optionally
    intersected with a ball, and standard directions: the best of all covariances for the identity query, and for second
    moments the best with one diagonal covariance on both sides. For a sensitivity set of vertices by a solver that
    certifies its optimality, over all covariances of the entries; `weights` then have the shape of the answer.

    Parameters
    ----------
    weights : array_like of shape (features,), optional
        Positive, in the inverse squared units of the features. By default one over the squared range of each, so that
        noise counts relative to it (for vertices, ones).
    """
    return Optimal(weights)


class Isotropic(BuiltInAllocation):
    """The same noise in every direction."""

    rule = "isotropic"
    structured = False

    def variances(self, query: MatrixQuery, directions: Floats | None) -> Floats:
        return np.ones(query.features)


class Kernel(BuiltInAllocation):
    """Noise with the covariance that suits the query's changes: for a Gram matrix, that of the kernel at its points."""

    rule = "kernel"
    chooses_directions = True

    def own_directions(self, query: MatrixQuery) -> Floats | None:
        return self._covariance(query).directions

    def variances(self, query: MatrixQuery, directions: Floats | None) -> Floats:
        return self._covariance(query).variances

    def precisions(self, query: MatrixQuery) -> Floats:
        """The same shape of noise for the paper's Theorem 2."""
        precisions = 1 / self._covariance(query).variances ** 2
        return np.asarray(precisions / precisions.sum())

    def _covariance(self, query: MatrixQuery) -> Covariance:
        if query.own_covariance is None:
            raise ParameterError(
                "allocation must not be 'kernel' for this query: it is for a Gram matrix against 2 to 1,024 public "
                "points with row_change='kernel'."
            )
        return query.own_covariance


class Uniform(BuiltInAllocation):
    """Each direction causes a share of the privacy loss, here the same: its variance is its squared range over that."""

    rule = "uniform"

    def variances(self, query: MatrixQuery, directions: Floats | None) -> Floats:
        return query.extent(directions) ** 2 / self.theta(query)

    def precisions(self, query: MatrixQuery) -> Floats:
        """The shares; the paper does not use the ranges of features."""
        return self.theta(query)

    def theta(self, query: MatrixQuery) -> Floats:
        """Share of each direction, of shape (features,)."""
        return np.full(query.features, 1 / query.features)


class Binary(Uniform):
    """The important directions, which `values` are, cause `share` of the privacy loss together, the others the rest."""

    rule = "binary"

    @property
    def named(self) -> bool:
        return isinstance(self.values, tuple) and any(isinstance(item, str) for item in self.values)

    def theta(self, query: MatrixQuery) -> Floats:
        m, given = query.features, self.values
        chosen = np.unique(range(given) if isinstance(given, int) else [_find(query, item) for item in given])
        outside = chosen[(chosen < 0) | (chosen >= m)]
        if outside.size:
            raise ParameterError(f"important must be among {m} directions, got number {outside[0]} instead.")
        found = chosen.size
        if not 0 < found < m:
            raise ParameterError(
                f"important must be at least 1 and at most {m - 1} of {m} directions, got {found} instead."
            )
        return np.where(np.isin(np.arange(m), chosen), self.share / found, (1 - self.share) / (m - found))


class Shares(Uniform):
    """Given shares of the privacy loss."""

    rule = "shares"

    def __post_init__(self) -> None:
        array = to_floats(self.values, "theta")
        if array.ndim != 1 or not array.size or not (np.isfinite(array) & (array > 0)).all():
            raise ParameterError("theta must be a vector of positive shares: noise must be added in every direction.")
        check_magnitudes(array, "theta", remedy="give shares that are closer to each other")
        if abs(array.sum() - 1) > 1e-9:
            total = f"{array.sum():.12g}"
            raise ParameterError(f"theta must sum to 1, got {total} instead; divide the shares by their sum.")
        object.__setattr__(self, "values", array)

    def theta(self, query: MatrixQuery) -> Floats:
        m = query.features
        if self.values.shape != (m,):
            raise ParameterError(f"shares must be {m} numbers, one per direction, got {self.values.size} instead.")
        return np.asarray(self.values)


def uniform() -> Allocation:
    """Every direction uses the same share of the privacy loss: its noise is proportional to its range."""
    return Uniform()


def isotropic() -> Allocation:
    """The same noise in every direction."""
    return Isotropic()


def binary(important: Sequence[str | int] | int, share: float) -> Binary:
    """The paper's strategy: the important directions use `share` of the privacy loss, the others the rest.

    Parameters
    ----------
    important : names or numbers of features, or how many of the first directions
        Names mean features; with directions of another basis give numbers.
    share : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import Identity
    >>> query = Identity(Bounds([0] * 4, [1] * 4, names=list("abcd")), records=10)
    >>> binary(["a", "d"], 0.9).theta(query).round(3).tolist()
    [0.45, 0.05, 0.05, 0.45]
    """
    share = check_number(share, "share", at_least=1 / LARGEST, below=1, rule=f"at least {1 / LARGEST:g} and below 1")
    if isinstance(important, str):
        important = (important,)
    return Binary(important if isinstance(important, int) else tuple(important), share)


def shares(theta: ArrayLike) -> Shares:
    """Shares as given: positive, summing to one.

    Examples
    --------
    >>> shares([0.5, 0.25, 0.25]).rule
    'shares'
    """
    return Shares(theta)


def parse_allocation(allocation: Any) -> Allocation:
    """The allocation that a name, None (uniform) or an allocation means."""
    if allocation is None or (isinstance(allocation, str) and allocation in _NAMED):
        return _RULES[allocation or "uniform"]()
    if not isinstance(allocation, Allocation):
        raise ParameterError(
            "allocation must be uniform(), isotropic(), binary(...), shares(...), optimal(...) or 'kernel'."
        )
    return allocation


def _from_fields(rule: str, values: Any = None, share: float = 1.0) -> Allocation:
    """An allocation from what JSON holds of it."""
    if rule not in _RULES:
        raise ParameterError(f"unknown allocation {rule!r}.")
    return _RULES[rule](values, share)


def _find(query: MatrixQuery, item: str | int) -> int:
    if isinstance(item, str):
        if query.names is None or item not in query.names:
            known = ", ".join(query.names or ()) or "none; use numbers"
            raise ParameterError(f"important must be among the features' names ({known}), got {show(item)} instead.")
        return query.names.index(item)
    return int(item)


_NAMED = ("uniform", "isotropic", "optimal", "kernel")  # rules that need no numbers
_RULES = {rule.rule: rule for rule in (Uniform, Isotropic, Kernel, Binary, Shares, Optimal)}
for _rule in _RULES.values():
    register_family(_rule, "Allocation", _from_fields)
