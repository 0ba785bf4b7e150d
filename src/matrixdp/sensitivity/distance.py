"""Base class of sensitivity sets: how far one record can move the answer, in standard deviations of the noise.

The simplest of them, a Frobenius ball, is here as well.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar

import numpy as np

from matrixdp.checks import LARGEST, check_magnitude, check_magnitudes
from matrixdp.display import short_repr
from matrixdp.errors import ParameterError
from matrixdp.noise.matrix import Covariance
from matrixdp.noise.structure import NoiseStructure
from matrixdp.serialise import builtin_kind
from matrixdp.types import Factor, Floats

ROUND_DOWN = 1 - 1e-12  # for lower bounds that are sums of up to a few thousand terms
EPS = float(np.finfo(float).eps)
_ROUNDING = 64 * EPS  # covers the sums and roots of a closed form


@dataclass(frozen=True)
class Distance:
    """An upper bound on ``sup ||A D B'||_F``, and a value that neighbours attain or come arbitrarily close to.

    Attributes
    ----------
    value : float
        Never below the supremum.
    attained : float
        Never above it, up to rounding.

    Examples
    --------
    >>> Distance(2.0, 1.5).exact
    False
    """

    value: float
    attained: float

    @property
    def exact(self) -> bool:
        """True if the bound is the supremum itself, up to rounding."""
        return self.attained >= self.value * (1 - 1e-9)

    def times(self, factor: float) -> Distance:
        """Both values times `factor`, the bound rounded up."""
        return Distance(self.value * factor * (1 + _ROUNDING), self.attained * factor)


class Sensitivity(ABC):
    """The set of changes D of the answer between neighbours.

    Privacy
    -------
    Noise with covariances `rowcov` and `colcov` makes a release `distance(rowcov, colcov)`-GDP, if the set holds
    every D.
    """

    __repr__ = short_repr

    @property
    @abstractmethod
    def frobenius(self) -> float:
        """Upper bound on ``sup ||D||_F``, the paper's s2."""

    @property
    def ball(self) -> bool:
        """True if the set is a Frobenius ball, so that no directional noise beats isotropic noise."""
        return False

    @property
    def record_radius(self) -> float | None:
        """Bound on the norm of a record, for a set that describes changes of records in a ball."""
        return None

    def check_shape(self, shape: tuple[int, int]) -> None:  # noqa: B027  (a Frobenius ball has any shape)
        """Raise a `ParameterError` if the changes of the set do not have this shape; sets of one shape override it."""

    def _require(self, shape: tuple[int, int], expected: tuple[int | None, int | None], what: str) -> None:
        """Raise a `ParameterError` unless `shape` is `expected`, where None means any number."""
        if any(wanted is not None and wanted != found for wanted, found in zip(expected, shape, strict=True)):
            wanted = " x ".join("any" if number is None else str(number) for number in expected)
            raise ParameterError(f"shape must be {wanted} for {what}, got {shape[0]} x {shape[1]} instead.")

    def flat(self) -> Sensitivity:
        """The same changes flattened to one column, for noise with one covariance over all entries."""
        raise ParameterError(f"{type(self).__name__} has no form with all entries in one column.")

    def best_covariance(self, shape: tuple[int, int], weights: Floats | None) -> Covariance | None:
        """Covariance of all entries in one column with the least weighted noise; None where no solver is known."""
        return None

    def least_error(self, scale: Floats, *, symmetric: bool) -> float | None:
        """Lower bound on ``sum (std/scale)^2`` of every Gaussian noise of distance one, whatever its covariance.

        `scale` has the shape of the answer, which may be `symmetric`. Never above the least error; None if no bound is
        known.
        """
        return None

    @abstractmethod
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """``sup ||A D B'||_F`` with A and B the whitening of `rowcov` and `colcov`."""

    def free_structure(self, side: Covariance) -> NoiseStructure | None:
        """More that can be measured, beside noise with `side` on both sides, at no cost to privacy; None if nothing."""
        return None

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        """``sup |W D|``, W the map to the coordinates of `structure`, with `side` on both sides."""
        raise ParameterError(f"{type(self).__name__} has no distance for {type(structure).__name__}.")


S = TypeVar("S", bound=Sensitivity)
DistanceMethod = Callable[[S, Covariance, Covariance], Distance]


def scale_free(method: DistanceMethod[S]) -> DistanceMethod[S]:
    """Decorator for `Sensitivity.distance`: call it with covariances whose smallest variances are about one.

    Squares of whitening factors then neither overflow nor underflow. Variances are divided by powers of four, which
    is exact, and the distance by the corresponding powers of two.
    """

    @functools.wraps(method)
    def distance(self: S, rowcov: Covariance, colcov: Covariance) -> Distance:
        rows, row_unit = rowcov.normalised()
        columns, column_unit = (rows, row_unit) if colcov is rowcov else colcov.normalised()
        found = method(self, rows, columns)
        return Distance(found.value / row_unit / column_unit, found.attained / row_unit / column_unit)

    return distance


def check_halfwidths(halfwidths: Floats, radius: float | None) -> None:
    """Raise a `ParameterError` unless a record's halfwidths and radius are as large as those of `Bounds` can be."""
    if not isinstance(halfwidths, np.ndarray) or halfwidths.ndim != 1 or not halfwidths.size:
        raise ParameterError("halfwidths must be a vector with at least one entry.")
    check_magnitudes(halfwidths, "halfwidths", largest=2 * LARGEST)  # those of bounds are rounded up
    if radius is not None:
        check_magnitude(radius, "radius")


def column_norms(factor: Factor, size: int) -> Floats:
    """Squared norm of each column of a whitening factor: the diagonal of ``A'A``, of shape (size,)."""
    if not isinstance(factor, np.ndarray):
        return np.broadcast_to(np.float64(factor * factor), (size,))
    return factor**2 if factor.ndim == 1 else np.einsum("ij,ij->j", factor, factor)


def spectral_norm(factor: Factor) -> float:
    """Largest singular value of a whitening factor, rounded up."""
    if not isinstance(factor, np.ndarray):
        return float(factor)
    if factor.ndim == 1:
        return float(factor.max())
    return float(np.linalg.norm(factor, 2) * (1 + 16 * factor.shape[0] * EPS))


@builtin_kind
@dataclass(frozen=True)
class FrobeniusBall(Sensitivity):
    """All D with ``||D||_F <= radius``.

    The distance is ``radius / sqrt(lambda_min(rowcov) lambda_min(colcov))``, attained by a rank-one D along the two
    directions with the least noise. So no directional noise can do better than isotropic noise.

    Examples
    --------
    >>> FrobeniusBall(3.0).distance(Covariance.identity(2), Covariance.diagonal([1.0, 9.0])).attained
    3.0
    """

    radius: float
    ball = True
    frobenius = property(attrgetter("radius"), doc="The radius.")

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", check_magnitude(self.radius, "radius (the L2 sensitivity)"))

    def least_error(self, scale: Floats, *, symmetric: bool) -> float:
        """``radius^2 sum scale^-2``: weights on changes of single entries, in proportion to ``scale^-2``, prove it."""
        weights = scale**-2.0
        return self.radius**2 * float((np.tril(weights) if symmetric else weights).sum()) * ROUND_DOWN

    @scale_free
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        value = self.radius * spectral_norm(rowcov.whitening) * spectral_norm(colcov.whitening)
        return Distance(value, value).times(1.0)
