"""Sensitivity of second moments, with or without the mean: one record is replaced, added or removed."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matrixdp.errors import ParameterError
from matrixdp.noise.covariance import Covariance
from matrixdp.noise.structure import NoiseStructure, Squares
from matrixdp.privacy import Neighbours
from matrixdp.sensitivity.distance import Distance, Sensitivity, check_halfwidths, require_shape, scale_free
from matrixdp.sensitivity.free_squares import free_squares, squares_distance
from matrixdp.sensitivity.limit import SMALL, least_ball_error, least_moment_error, small_moment_error
from matrixdp.sensitivity.quadratic import good_vertex, max_quadratic
from matrixdp.serialise import builtin_kind
from matrixdp.types import Factor, Floats, is_diagonal


class _OuterProductChange(Sensitivity):
    """Common part of second moments with and without the mean: squares of features at no cost to privacy."""

    halfwidths: Floats
    records: int
    radius: float | None
    neighbours: Neighbours
    constant: ClassVar[int]  # entries before the features of a record
    answer: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        check_halfwidths(self.halfwidths, self.radius)

    def check_shape(self, shape: tuple[int, int]) -> None:
        """Raise a `ParameterError` for another shape."""
        size = self.halfwidths.size + self.constant
        require_shape(shape, (size, size), f"{self.answer} of {self.halfwidths.size} features")

    @property
    def frobenius(self) -> float:
        """Distance for noise of unit variance."""
        unit = Covariance.identity(self.halfwidths.size + self.constant)
        return self.distance(unit, unit).value

    @property
    def record_radius(self) -> float | None:
        """`radius`."""
        return self.radius

    @abstractmethod
    def _split(self, side: Covariance) -> tuple[float, Factor]:
        """Whitened square of the constant, or 0, and the whitening of the features."""

    def _allows_squares(self) -> bool:
        """True if records fill a box that no radius cuts."""
        return self.radius is None or self.radius**2 >= float(np.square(self.halfwidths).sum()) * (1 + 1e-12)

    def free_structure(self, side: Covariance) -> Squares | None:
        """The squares of the features, for records in a box."""
        if not self._allows_squares():
            return None
        normal, unit = side.normalised()
        alpha, factor = self._split(normal)
        return free_squares(factor, alpha, self.halfwidths, self.neighbours).scaled(unit**2)

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        """Exact for a diagonal covariance without a constant, otherwise a certified bound."""
        m = self.halfwidths.size
        if not isinstance(structure, Squares) or structure.weights.size != m or not self._allows_squares():
            raise ParameterError(f"structure must be the squares of {m} features in a box.")
        normal, unit = side.normalised()
        alpha, factor = self._split(normal)
        found = squares_distance(factor, alpha, self.halfwidths, self.neighbours, structure.scaled(unit**-2))
        attained = max(found.attained, self._attained_by_corners(alpha, factor))
        return Distance(found.value / unit / unit, attained / unit / unit).times(1 / self.records)

    def _attained_by_corners(self, alpha: float, factor: Factor) -> float:
        """Distance of two corners, which have the same squares; in a rotated basis, of a corner and its reflection."""
        if self.neighbours is Neighbours.ADD_REMOVE:
            return 0.0
        if is_diagonal(factor):
            return _attained((factor * self.halfwidths) ** 2, alpha)
        return math.sqrt(8 * alpha * good_vertex(factor * self.halfwidths))


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class RankOneChange(_OuterProductChange):
    """All ``D = (x x' - y y')/N`` (replace) or ``+-x x'/N`` (add or remove) for records x, y of the domain.

    With whitened records u, v: ``||uu' - vv'||_F^2 = |u|^4 + |v|^4 - 2 (u'v)^2 <= 2 q^2``, where q is the largest
    ``|u|^2``. So the distance is at most ``sqrt(2) q/N``, attained when two longest records are orthogonal. Where no
    feature changes its sign (a box in an orthant) and the noise is diagonal it is ``q/N`` exactly. An added record
    moves the sum by ``q/N`` exactly.

    Coordinates of a record, measured from the centre of the moment, are bounded by `halfwidths`, of shape (m,), and its
    norm by `radius`. They have one sign each if `one_signed`. Unless every such point is a possible record (`filled`),
    the distance is an upper bound that may not be attained.
    """

    halfwidths: Floats
    records: int
    radius: float | None = None
    neighbours: Neighbours = Neighbours.REPLACE
    one_signed: bool = False
    filled: bool = True

    constant = 0
    answer = "a second moment"

    @property
    def ball(self) -> bool:
        """True if only one feature is there, so that directions mean nothing."""
        return self.halfwidths.size == 1

    def least_error(self, scale: Floats, *, symmetric: bool) -> float | None:
        """In a box, and in a ball with one scale, from symmetry; for few features from an enumeration of changes."""
        if not self.filled:
            return None
        return _least_error(self.halfwidths, scale, self.radius, self.neighbours, self.records, self.one_signed)

    def _split(self, side: Covariance) -> tuple[float, Factor]:
        return 0.0, side.whitening

    def _allows_squares(self) -> bool:
        return not self.one_signed and super()._allows_squares()

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        """Exact for a diagonal covariance and a filled box, otherwise a certified bound."""
        found = super().structured_distance(side, structure)
        return found if self.filled else Distance(found.value, 0.0)

    @scale_free
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """Exact or certified, see above; with different covariances on the two sides a bound that is not tight."""
        q = max_quadratic(rowcov.whitening, self.halfwidths, self.radius)
        if not rowcov.same_as(colcov):
            other = max_quadratic(colcov.whitening, self.halfwidths, self.radius)
            both = math.sqrt(q.value * other.value)
            return Distance(both if self.neighbours is Neighbours.ADD_REMOVE else 2 * both, 0.0).times(1 / self.records)
        plain = is_diagonal(rowcov.whitening) and self.radius is None
        attained = q.attained if self.filled and (plain or not self.one_signed) else 0.0
        if self.neighbours is Neighbours.ADD_REMOVE or (self.one_signed and plain):
            return Distance(q.value, attained).times(1 / self.records)
        if plain and self.filled:
            attained = _attained((rowcov.whitening * self.halfwidths) ** 2, 0.0)
        return Distance(math.sqrt(2) * q.value, attained).times(1 / self.records)


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class MomentsChange(_OuterProductChange):
    """Like `RankOneChange`, for records with a constant 1 put before them.

    With a the whitened square of the constant and T the largest ``|u|^2`` of a whitened record: ``(a + X)^2 + (a +
    Y)^2 - 2 (a + u'v)^2`` grows with X and Y, and ``u'v`` can be as low as -T, so the distance is at most ``sqrt(2)
    (a + T)/N`` if ``a <= T`` and ``sqrt(8 a T)/N`` if not. An added record moves the sum by ``(a + T)/N``.
    """

    halfwidths: Floats
    records: int
    radius: float | None = None
    neighbours: Neighbours = Neighbours.REPLACE

    constant = 1
    answer = "moments"

    def least_error(self, scale: Floats, *, symmetric: bool) -> float | None:
        """In a box from symmetry; for few features from an enumeration of changes."""
        widths = np.append(1.0, self.halfwidths)
        return _least_error(widths, scale, self.radius, self.neighbours, self.records, constant=True)

    def _split(self, side: Covariance) -> tuple[float, Factor]:
        return _split_constant(side.whitening)

    @scale_free
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """Exact or a certified bound; noise of the constant must be independent of noise of the features."""
        if not rowcov.same_as(colcov):
            raise ParameterError("moments need the same covariance on both sides.")
        a, rest = _split_constant(rowcov.whitening)
        record = max_quadratic(rest, self.halfwidths, self.radius)
        if self.neighbours is Neighbours.ADD_REMOVE:
            return Distance(a + record.value, a + record.attained).times(1 / self.records)
        if is_diagonal(rest) and self.radius is None:
            attained = _attained((rest * self.halfwidths) ** 2, a)
        else:  # a longest record, and the middle or its own reflection
            attained = math.sqrt(max((a + record.attained) ** 2 - a**2, 8 * a * record.attained))
        t = record.value
        return Distance(math.sqrt(2) * (a + t) if a <= t else math.sqrt(8 * a * t), attained).times(1 / self.records)


def _split_constant(factor: Factor) -> tuple[float, Factor]:
    """Square of the constant's own entry, and the factor of the features."""
    if not isinstance(factor, np.ndarray):
        return factor * factor, factor
    if factor.ndim == 1:
        return float(factor[0] ** 2), factor[1:]
    if factor[0, 1:].any() or factor[1:, 0].any():
        raise ParameterError(
            "directions of moments must leave the constant alone: the first row and column must be (1, 0, ..., 0)."
        )
    return float(factor[0, 0] ** 2), np.ascontiguousarray(factor[1:, 1:])


def _attained(parts: Floats, a: float) -> float:
    """Largest distance among a few pairs: corners whose inner product is close to -a, or a corner and the middle.

    `parts` are the whitened squares of a corner's coordinates; the signs are chosen greedily, the largest first.
    """
    total = float(parts.sum())
    inner = a
    for part in -np.sort(-parts):
        inner += -part if inner > 0 else part
    corners = 2 * (a + total) ** 2 - 2 * inner**2
    middle = (a + total) ** 2 - a**2
    return math.sqrt(max(corners, middle))


def _least_error(
    widths: Floats,
    scale: Floats,
    radius: float | None,
    neighbours: Neighbours,
    records: int,
    one_signed: bool = False,
    constant: bool = False,
) -> float | None:
    """Lower bound on the total squared error relative to `scale`; `widths` are those of the constant and the features.

    Relative to the widths of its features a record lies in the cube ``[-1, 1]^d``, so that all boxes have one bound.
    """
    replace = neighbours is Neighbours.REPLACE
    halfwidths = widths[1:] if constant else widths
    cut = radius is not None and radius**2 < float((halfwidths**2).sum())
    ratio = scale / np.multiply.outer(widths, widths)
    unit = float(ratio.flat[0])
    if np.allclose(ratio, unit, rtol=1e-12, atol=0.0) and not one_signed:
        if not cut:
            found = least_moment_error(halfwidths.size, replace=replace, constant=constant)
            return found * (1 - 1e-9) / unit**2 / records**2  # widths and scale agree to 12 digits
        if radius is not None and replace and not constant and radius <= halfwidths.min() == halfwidths.max():
            return least_ball_error(halfwidths.size, radius / halfwidths[0]) * (1 - 1e-9) / unit**2 / records**2
    if widths.size > SMALL:
        return None
    values = ((0.0, 1.0) if one_signed else (-1.0, 0.0, 1.0),) * halfwidths.size
    points = halfwidths * np.array(list(itertools.product(*values)))
    if cut and radius is not None:
        points *= np.minimum(1.0, radius / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300))
    if constant:
        points = np.column_stack([np.ones(len(points)), points])
    return small_moment_error(points, scale, replace=replace) / records**2
