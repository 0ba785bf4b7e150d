"""Sensitivity of second moments, with or without the mean, and of tables: one record is replaced, added or removed.

Squares of the features are measured more precisely beside a second moment, at no cost to privacy.

With whitened records ``u = A x`` and weights e such that ``diag(e) - A'A`` is positive semidefinite, let ``a_i = e_i
x_i^2``, ``t_i = e_i c_i^2`` (c the halfwidths) and ``T = sum t_i``. Alpha is the whitened square of the constant that
moments put before a record, or 0. Beside the whitened moment, the squares may have the precision ``k diag(1/t) - g
11'`` in units of a:

- where a record is replaced, ``g = 1/2`` and ``k = (F(T) - F(T/2))/T``, ``F(s) = 2 (alpha + s)^2 - 2 max(alpha - s,
  0)^2``, which is ``3 T/2 + 2 alpha`` for ``alpha <= T/2``; the squared distance is at most ``F(T)``;
- where one is added or removed, ``k = 2 (alpha + T)`` and ``g = k/T``; the distance is at most ``alpha + T``.

The proofs are in `docs/sensitivity.md`.
"""

import itertools
import math
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import ClassVar

import numpy as np

from matrixdp.errors import ParameterError
from matrixdp.noise.matrix import Covariance
from matrixdp.noise.structure import NoiseStructure, Squares
from matrixdp.noise.table_noise import CONSTANT, LEVEL, OBSERVED, VALUE, TableLayout, TableNoise
from matrixdp.privacy import Neighbours
from matrixdp.sensitivity.distance import Distance, Sensitivity, check_halfwidths, column_norms, scale_free
from matrixdp.sensitivity.limit import SMALL, least_ball_error, least_moment_error, small_moment_error
from matrixdp.sensitivity.quadratic import dominate, good_vertex, max_quadratic, repair_dominance
from matrixdp.serialise import builtin_kind
from matrixdp.types import Factor, Floats, is_diagonal


@dataclass(frozen=True)
class RecordLengths:
    """Squared lengths of the parts of a whitened record, from which the distance of neighbours follows."""

    constant: float  # alpha, of the constant
    fixed: float  # what every record has: the constant, and one level of each category of a table
    shared: float  # what two records have in common at least: the constant, and the only level of a category
    total: float  # T, the largest sum of the squares a
    neighbours: Neighbours
    groups: int = 1  # between which a record may move, each with a matrix of its own

    def replaced(self, s: float) -> float:
        """F(s), largest squared distance of two moments whose records have ``sum a`` of s on average, and the same a.

        It is ``2 (fixed + s)^2 - 2 max(constant - s, 0)^2``: records share the constant, but not their levels.
        """
        return 2 * (self.fixed + s) ** 2 - 2 * max(self.constant - s, 0.0) ** 2

    def free_squares(self, sizes: Floats) -> tuple[Floats, float]:
        """Strengths and shift of squares of these largest sizes that are measured at no cost.

        Their precision is ``k diag(1/sizes) - g 11'``.
        """
        total, replaced = self.total, self.neighbours is Neighbours.REPLACE
        gain = alone = 2 * (self.fixed + total)
        if replaced:
            gain = (self.replaced(total) - self.replaced(total / 2)) / total
        if self.groups > 1:
            gain = min(gain, alone)
        loss = 0.5 if replaced and self.groups == 1 else gain / total
        strengths = gain / sizes
        inverse = float((1 / strengths).sum())
        return strengths, (1 - math.sqrt(max(0.0, 1 - loss * inverse))) / inverse

    def distance(self, gain: float, loss: float, corner: float, *, longest: float, missing: float = 0.0) -> Distance:
        """Root of `bound`, and what is attained where `longest` and `corner` are a record's squares and precision."""
        value = math.sqrt(self.bound(gain, loss, missing))
        square = alone = (self.fixed + longest) ** 2 + corner
        if self.neighbours is Neighbours.REPLACE:  # a corner and the midpoint, or two records of different groups
            square = alone - (2 * self.shared**2 - self.fixed**2)
            square = max(square, 2 * alone) if self.groups > 1 else square
        return Distance(value, min(math.sqrt(max(square, 0.0)), value))

    def bound(self, gain: float, loss: float, missing: float = 0.0) -> float:
        """Largest squared distance for any squares: `gain` is k or more, `loss` is g, of which `missing` may lack."""
        total = self.total
        alone = _largest_alone(self.fixed, gain, loss - missing, total)
        if self.neighbours is Neighbours.ADD_REMOVE:
            return alone
        apart = self.replaced(total / 2) + gain * total + (max(0.0, 0.5 - loss) + missing) * total**2
        bound = max(self.replaced(total), apart)
        return bound if self.groups == 1 else max(bound, 2 * alone)


def _largest_alone(fixed: float, gain: float, loss: float, total: float) -> float:
    """Largest ``(fixed + s)^2 + gain s - loss s^2`` over ``0 <= s <= total``: squared length of one record's part."""
    curvature = 1 - loss
    s = total if curvature >= 0 else min(total, (2 * fixed + gain) / (-2 * curvature))
    return fixed**2 + (2 * fixed + gain) * s + curvature * s**2


def squares_distance(
    factor: Factor, alpha: float, halfwidths: Floats, neighbours: Neighbours, squares: Squares
) -> Distance:
    """Distance of neighbours in the whitened sum of ``(1, x)(1, x)'`` together with the squares, as they are.

    The bound holds for any `squares`. For those of `free_structure`, a diagonal factor and no constant, a corner of the
    box and its midpoint attain it.
    """
    exact, scaled, diagonal = squares.weights * halfwidths**2, factor * halfwidths, is_diagonal(factor)
    # ``e_i c_i^2`` for the smallest e above the weights for which ``diag(e) - A'A`` is certainly semidefinite.
    if diagonal:
        extents = np.maximum(exact, column_norms(factor, halfwidths.size) * halfwidths**2)
    else:
        extents = repair_dominance(exact, scaled.T @ scaled)
    total = float(extents.sum())
    shrunk = exact / extents
    gain = float((squares.strengths * shrunk * exact).max())
    # A negative loss, which only an altered design has, adds to the distance; smaller weights take nothing from that.
    loss, missing = squares.loss, 2 * max(squares.loss, 0.0) * (1 - float(shrunk.min()))
    longest = total if diagonal else good_vertex(scaled)
    corner = float((squares.strengths * exact**2).sum()) - loss * float(exact.sum()) ** 2
    lengths = RecordLengths(alpha, alpha, alpha, total, neighbours)
    return lengths.distance(gain, loss, corner, longest=longest, missing=missing)


@dataclass(frozen=True, eq=False, repr=False)
class _OuterProductChange(Sensitivity):
    """Common part of second moments with and without the mean."""

    halfwidths: Floats
    records: int
    radius: float | None = None
    neighbours: Neighbours = Neighbours.REPLACE

    one_signed = False
    filled = True
    constant: ClassVar[int]  # entries before the features of a record
    answer: ClassVar[str]
    record_radius = property(attrgetter("radius"), doc="`radius`.")

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        check_halfwidths(self.halfwidths, self.radius)

    def check_shape(self, shape: tuple[int, int]) -> None:
        size = self.halfwidths.size + self.constant
        self._require(shape, (size, size), f"{self.answer} of {self.halfwidths.size} features")

    @property
    def frobenius(self) -> float:
        unit = Covariance.identity(self.halfwidths.size + self.constant)
        return self.distance(unit, unit).value

    @property
    def _cut(self) -> bool:
        """True if the radius cuts the box of records."""
        return self.radius is not None and self.radius**2 < float(np.square(self.halfwidths).sum()) * (1 + 1e-12)

    def _split(self, side: Covariance) -> tuple[float, Factor]:
        """Whitened square of the constant, or 0, and the whitening of the features."""
        factor = side.whitening
        if not self.constant:
            return 0.0, factor
        if not isinstance(factor, np.ndarray):
            return factor * factor, factor
        if factor.ndim == 1:
            return float(factor[0] ** 2), factor[1:]
        if factor[0, 1:].any() or factor[1:, 0].any():
            raise ParameterError(
                "directions of moments must leave the constant alone: the first row and column must be (1, 0, ..., 0)."
            )
        return float(factor[0, 0] ** 2), np.ascontiguousarray(factor[1:, 1:])

    @scale_free
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """Exact or certified; without a constant, two sides that differ have a bound that is not tight."""
        if not rowcov.same_as(colcov):
            if self.constant:
                raise ParameterError("moments need the same covariance on both sides.")
            sides = [max_quadratic(side.whitening, self.halfwidths, self.radius).value for side in (rowcov, colcov)]
            both = math.sqrt(sides[0] * sides[1])
            return Distance(both if self.neighbours is Neighbours.ADD_REMOVE else 2 * both, 0.0).times(1 / self.records)
        a, rest = self._split(rowcov)
        record = max_quadratic(rest, self.halfwidths, self.radius)
        plain, t = is_diagonal(rest) and self.radius is None, record.value
        reached = record.attained if self.filled and (plain or not self.one_signed) else 0.0
        if self.neighbours is Neighbours.ADD_REMOVE or (self.one_signed and plain):
            return Distance(a + t, a + reached).times(1 / self.records)
        if plain and self.filled:
            attained = _attained((rest * self.halfwidths) ** 2, a)
        else:  # a longest record, and the middle or its own reflection
            attained = math.sqrt(max((a + reached) ** 2 - a**2, 8 * a * reached))
        return Distance(math.sqrt(2) * (a + t) if a <= t else math.sqrt(8 * a * t), attained).times(1 / self.records)

    def free_structure(self, side: Covariance) -> Squares | None:
        """The most precise squares beside the moment, for records in a box."""
        if self._cut or self.one_signed:
            return None
        normal, unit = side.normalised()
        alpha, factor = self._split(normal)
        if is_diagonal(factor):
            weights = np.array(column_norms(factor, self.halfwidths.size))
        else:
            scaled = factor * self.halfwidths
            weights = dominate(scaled.T @ scaled)[0] / self.halfwidths**2
        sizes = weights * self.halfwidths**2
        lengths = RecordLengths(alpha, alpha, alpha, float(sizes.sum()), self.neighbours)
        return Squares(weights, *lengths.free_squares(sizes)).scaled(unit**2)

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        """Exact for a diagonal covariance without a constant and a filled box, otherwise a certified bound."""
        m = self.halfwidths.size
        if not isinstance(structure, Squares) or structure.weights.size != m or self._cut or self.one_signed:
            raise ParameterError(f"structure must be the squares of {m} features in a box.")
        normal, unit = side.normalised()
        alpha, factor = self._split(normal)
        found = squares_distance(factor, alpha, self.halfwidths, self.neighbours, structure.scaled(unit**-2))
        attained, scaled = found.attained if self.filled else 0.0, factor * self.halfwidths
        if self.filled and self.neighbours is Neighbours.REPLACE:
            # Two corners, which have the same squares; in a rotated basis, a corner and its reflection.
            corners = _attained(scaled**2, alpha) if is_diagonal(factor) else math.sqrt(8 * alpha * good_vertex(scaled))
            attained = max(attained, corners)
        return Distance(found.value / unit / unit, attained / unit / unit).times(1 / self.records)

    def least_error(self, scale: Floats, *, symmetric: bool) -> float | None:
        """In a box, and in a ball with one scale, from symmetry; for few features from an enumeration of changes.

        Relative to the widths of its features a record lies in the cube ``[-1, 1]^d``, so that all boxes have one
        bound.
        """
        if not self.filled:
            return None
        replace, half, radius = self.neighbours is Neighbours.REPLACE, self.halfwidths, self.radius
        widths = np.append(np.ones(self.constant), half)
        cut = radius is not None and radius**2 < float((half**2).sum())
        ratio = scale / np.multiply.outer(widths, widths)
        unit = float(ratio.flat[0])
        if np.allclose(ratio, unit, rtol=1e-12, atol=0.0) and not self.one_signed:
            if not cut:
                found = least_moment_error(half.size, replace=replace, constant=bool(self.constant))
                return found * (1 - 1e-9) / unit**2 / self.records**2  # widths and scale agree to 12 digits
            if radius is not None and replace and not self.constant and radius <= half.min() == half.max():
                return least_ball_error(half.size, radius / half[0]) * (1 - 1e-9) / unit**2 / self.records**2
        if widths.size > SMALL:
            return None
        values = ((0.0, 1.0) if self.one_signed else (-1.0, 0.0, 1.0),) * half.size
        points = half * np.array(list(itertools.product(*values)))
        if cut and radius is not None:
            points *= np.minimum(1.0, radius / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300))
        points = np.column_stack([np.ones((len(points), self.constant)), points])
        return small_moment_error(points, scale, replace=replace) / self.records**2


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

    one_signed: bool = False
    filled: bool = True

    constant = 0
    answer = "a second moment"

    @property
    def ball(self) -> bool:
        return self.halfwidths.size == 1


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class MomentsChange(_OuterProductChange):
    """Like `RankOneChange`, for records with a constant 1 put before them.

    With a the whitened square of the constant and T the largest ``|u|^2`` of a whitened record: ``(a + X)^2 + (a +
    Y)^2 - 2 (a + u'v)^2`` grows with X and Y, and ``u'v`` can be as low as -T, so the distance is at most ``sqrt(2)
    (a + T)/N`` if ``a <= T`` and ``sqrt(8 a T)/N`` if not. An added record moves the sum by ``(a + T)/N``. Noise of the
    constant must be independent of noise of the features.
    """

    constant = 1
    answer = "moments"


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


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class TableChange(Sensitivity):
    """All changes of ``(1/N) sum z z'``, one matrix per group, when one record is replaced, added or removed.

    The whitened vector of a record has the squared length ``alpha + sum_levels + sum a``: alpha of the constant, a
    fixed length for each category, of which exactly one level is 1, and ``a_i <= t_i`` for values and for indicators of
    whether they are there. So one matrix changes by at most ``sqrt(2) q/N``, q the largest squared length, and a record
    that moves from one group to another changes two matrices, by at most q/N each.

    Coordinates are bounded by `halfwidths`, of shape (p,), which are 1 but for values. `scales` are their precisions up
    to a common factor, equal within a category.

    Beside the moments, the records may be counted in `bins` of `binned` histograms, one for each of as many numbers,
    for a share `shapes` of the squared distance. A record is in at most one bin of each, so that the counts change by
    at most ``sqrt(2 binned)/N``, or ``sqrt(binned)/N`` where it is added or removed.
    """

    layout: TableLayout
    halfwidths: Floats
    scales: Floats
    records: int
    groups: int = 1
    neighbours: Neighbours = Neighbours.REPLACE
    bins: int = 0
    binned: int = 0
    shapes: float = 0.0
    rows_private: bool = field(default=False, metadata={"absent": False})  # people have more rows or fewer

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))

    def check_shape(self, shape: tuple[int, int]) -> None:
        p, rows = self.layout.size, self.groups * self.layout.size + self.bins
        self._require(shape, (rows, p), f"moments of {p} coordinates in {self.groups} groups and {self.bins} bins")

    @property
    def frobenius(self) -> float:
        p = self.layout.size
        return self.distance(Covariance.identity(self.groups * p), Covariance.identity(p)).value

    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """For noise that is the same in every entry."""
        scale = _scalar(rowcov) * _scalar(colcov)
        lengths, _ = self._lengths(np.ones(self.layout.size))
        q = math.hypot(lengths.fixed + lengths.total, math.sqrt(self.binned))
        factor = 1.0 if self.neighbours is Neighbours.ADD_REMOVE else math.sqrt(2)
        return Distance(factor * q / math.sqrt(scale), 0.0).times(1 / self.records)

    def free_structure(self, side: Covariance) -> TableNoise:
        unit = math.sqrt(_scalar(side))
        lengths, sizes = self._lengths(self.scales)
        strengths, shift = lengths.free_squares(sizes) if sizes.size else (sizes, 0.0)
        noise = TableNoise(self.layout, self.groups, self.counted, self.scales / unit, strengths, shift)
        if not self.bins:
            return noise
        moments = replace(self, bins=0, binned=0).structured_distance(side, noise).times(self.records).value
        precision = self.shapes / (1 - self.shapes) * moments**2 / self._most_counts
        return replace(noise, bins=self.bins, bin_precision=precision)

    @property
    def _most_counts(self) -> int:
        """Largest squared change of the counts in all bins."""
        return self.binned * (1 if self.neighbours is Neighbours.ADD_REMOVE else 2)

    @property
    def counted(self) -> bool:
        """True if the number of records of a group is private."""
        return self.groups > 1 or self.rows_private or self.neighbours is Neighbours.ADD_REMOVE

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        """A bound for any scales and squares; exact for those of `free_structure` with add-remove neighbours."""
        own = self.layout, self.groups, self.counted, self.bins
        given = structure if isinstance(structure, TableNoise) else None
        if given is None or (given.layout, given.groups, given.counted, given.bins) != own:
            raise ParameterError("structure must be the noise of a table with the same columns and groups.")
        unit = float((given.scales * self.halfwidths**2).max())  # scale-free: the largest length is one
        lengths, sizes = self._lengths(given.scales / unit)
        gain = float((given.strengths * sizes).max(initial=0.0))
        corner = float((given.strengths * sizes**2).sum()) - given.loss * lengths.total**2
        found = lengths.distance(gain, given.loss, corner, longest=lengths.total)
        absent = 0 if self.neighbours is Neighbours.ADD_REMOVE else self.layout.of_kind(OBSERVED).size
        known = min(absent, self.binned)  # values that the second record of the known pair does not have
        value, attained = (
            math.hypot(one, math.sqrt(counts * given.bin_precision) / unit) * unit
            for one, counts in ((found.value, self._most_counts), (found.attained, self._most_counts - known))
        )
        return Distance(value, attained).times(1 / self.records)

    def _lengths(self, scales: Floats) -> tuple[RecordLengths, Floats]:
        """Lengths of a whitened record, and those of its values and indicators."""
        kinds, owners = np.array(self.layout.kinds), np.array(self.layout.columns)
        constant = float(scales[kinds == CONSTANT][0])
        categories = [scales[owners == owner] for owner in np.unique(owners[kinds == LEVEL])]
        levels = math.fsum(float(one.max()) for one in categories)
        shared = constant + math.fsum(float(one[0]) for one in categories if one.size == 1)
        sizes = (scales * self.halfwidths**2)[self.layout.of_kind(OBSERVED, VALUE)]
        lengths = constant, constant + levels, shared, float(sizes.sum())
        return RecordLengths(*lengths, self.neighbours, self.groups), sizes


def _scalar(covariance: Covariance) -> float:
    if covariance.directions is not None or not covariance.scalar:
        raise ParameterError("the noise of a table takes no directions and no allocation; give importance to columns.")
    return float(covariance.variances[0])
