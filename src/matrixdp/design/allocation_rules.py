"""The built-in allocations, and the functions and names that stand for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.checks import LARGEST, check_magnitudes, check_number, to_floats
from matrixdp.design.allocation import Allocation, BuiltInAllocation
from matrixdp.design.optimal_allocation import Optimal
from matrixdp.display import short_repr
from matrixdp.errors import ParameterError, show
from matrixdp.noise.covariance import Covariance
from matrixdp.queries import MatrixQuery
from matrixdp.serialise import register_family
from matrixdp.types import Floats


@dataclass(frozen=True)
class Isotropic(BuiltInAllocation):
    """The same noise in every direction."""

    rule: ClassVar[str] = "isotropic"
    structured: ClassVar[bool] = False

    def variances(self, query: MatrixQuery, directions: Floats | None) -> Floats:
        """Ones."""
        return np.ones(query.features)


@dataclass(frozen=True)
class Kernel(BuiltInAllocation):
    """Noise with the covariance that suits the query's changes: for a Gram matrix, that of the kernel at its points."""

    rule: ClassVar[str] = "kernel"
    chooses_directions: ClassVar[bool] = True

    def own_directions(self, query: MatrixQuery) -> Floats | None:
        """Eigenvectors of the query's own covariance."""
        return self._covariance(query).directions

    def variances(self, query: MatrixQuery, directions: Floats | None) -> Floats:
        """Its eigenvalues."""
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


class _SharesOfLoss(BuiltInAllocation):
    """Each direction causes a given share of the privacy loss: its variance is its squared range over that share."""

    def variances(self, query: MatrixQuery, directions: Floats | None) -> Floats:
        """Squared ranges over the shares."""
        return query.extent(directions) ** 2 / self.theta(query)

    def precisions(self, query: MatrixQuery) -> Floats:
        """The shares; the paper does not use the ranges of features."""
        return self.theta(query)

    def theta(self, query: MatrixQuery) -> Floats:
        """Share of each direction, of shape (features,)."""
        return np.full(query.features, 1 / query.features)


@dataclass(frozen=True)
class Uniform(_SharesOfLoss):
    """Every direction causes the same share of the privacy loss."""

    rule: ClassVar[str] = "uniform"


@dataclass(frozen=True)
class Binary(_SharesOfLoss):
    """The important directions cause `share` of the privacy loss together, the others the rest."""

    rule: ClassVar[str] = "binary"
    important: tuple[str | int, ...] | int
    share: float

    def to_fields(self) -> Mapping[str, Any]:
        """Rule, values and share, as JSON has them."""
        return {"rule": self.rule, "values": self.important, "share": self.share}

    @property
    def named(self) -> bool:
        """Whether features are given by name."""
        return isinstance(self.important, tuple) and any(isinstance(item, str) for item in self.important)

    def theta(self, query: MatrixQuery) -> Floats:
        """Equal shares within either group."""
        m = query.features
        count = self.important
        chosen = range(count) if isinstance(count, int) else [_find(query, item) for item in count]
        marked = np.zeros(m, bool)
        for i in chosen:
            if not 0 <= i < m:
                raise ParameterError(f"important must be among {m} directions, got number {i} instead.")
            marked[i] = True
        found = int(marked.sum())
        if not 0 < found < m:
            raise ParameterError(
                f"important must be at least 1 and at most {m - 1} of {m} directions, got {found} instead."
            )
        return np.where(marked, self.share / found, (1 - self.share) / (m - found))


@dataclass(frozen=True, eq=False)
class Shares(_SharesOfLoss):
    """Given shares of the privacy loss."""

    rule: ClassVar[str] = "shares"
    values: Floats

    __repr__ = short_repr

    def to_fields(self) -> Mapping[str, Any]:
        """Rule, values and share, as JSON has them."""
        return {"rule": self.rule, "values": self.values, "share": 1.0}

    def theta(self, query: MatrixQuery) -> Floats:
        """The shares."""
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


def shares(theta: ArrayLike) -> Allocation:
    """Shares as given: positive, summing to one.

    Examples
    --------
    >>> shares([0.5, 0.25, 0.25]).rule
    'shares'
    """
    return Shares(check_theta(theta))


def parse_allocation(allocation: Any) -> Allocation:
    """The allocation that a name, None (uniform) or an allocation means."""
    by_name: dict[Any, Callable[[], Allocation]] = {
        None: Uniform,
        "uniform": Uniform,
        "isotropic": Isotropic,
        "optimal": Optimal,
        "kernel": Kernel,
    }
    if allocation is None or isinstance(allocation, str):
        allocation = by_name[allocation]() if allocation in by_name else allocation
    if not isinstance(allocation, Allocation):
        raise ParameterError(
            "allocation must be uniform(), isotropic(), binary(...), shares(...), optimal(...) or 'kernel'."
        )
    return allocation


def check_theta(theta: ArrayLike) -> Floats:
    """Shares as floats, after a check of their signs and their sum."""
    array = to_floats(theta, "theta")
    if array.ndim != 1 or not array.size or not (np.isfinite(array) & (array > 0)).all():
        raise ParameterError("theta must be a vector of positive shares: noise must be added in every direction.")
    check_magnitudes(array, "theta", remedy="give shares that are closer to each other")
    if abs(array.sum() - 1) > 1e-9:
        raise ParameterError(f"theta must sum to 1, got {array.sum():.12g} instead; divide the shares by their sum.")
    return array


def _from_fields(rule: str, values: Any = None, share: float = 1.0) -> Allocation:
    """An allocation from what JSON holds of it."""
    match rule:
        case "uniform":
            return Uniform()
        case "isotropic":
            return Isotropic()
        case "kernel":
            return Kernel()
        case "binary":
            return Binary(values, share)
        case "shares":
            return Shares(values)
        case "optimal":
            return Optimal(values)
    raise ParameterError(f"unknown allocation {rule!r}.")


def _find(query: MatrixQuery, item: str | int) -> int:
    if isinstance(item, str):
        if query.names is None or item not in query.names:
            known = ", ".join(query.names or ()) or "none; use numbers"
            raise ParameterError(f"important must be among the features' names ({known}), got {show(item)} instead.")
        return query.names.index(item)
    return int(item)


for _rule in (Uniform, Isotropic, Kernel, Binary, Shares, Optimal):
    register_family(_rule, "Allocation", _from_fields)
