"""One edge of a graph changes, or all those of a node; one record of a kernel matrix, or its row beside points."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from matrixdp.checks import check_integer, check_magnitude, power_of_two, sum_of_others
from matrixdp.errors import ParameterError, show
from matrixdp.noise.matrix import Covariance
from matrixdp.noise.structure import EdgeNoise, NoiseStructure
from matrixdp.sensitivity.distance import (
    EPS,
    ROUND_DOWN,
    Distance,
    Sensitivity,
    check_halfwidths,
    column_norms,
    scale_free,
    spectral_norm,
)
from matrixdp.sensitivity.record_change import RecordChange
from matrixdp.serialise import builtin_kind
from matrixdp.types import Factor, Floats, is_diagonal

_SLACK = 2.0**-10  # of a squared weight: what sums of weights that miss the bound by a tolerance can add
_LAPLACIAN_SLACK = 2.0**-8
_DIGITS = 16  # bits to which a norm is rounded up, so that machines with other eigenvectors find the same bound


class _GraphChange(Sensitivity):
    """Changes of an adjacency or a Laplacian matrix with weights of at most `weight`."""

    matrix: str
    weight: float

    def __post_init__(self) -> None:
        if self.matrix not in ("adjacency", "laplacian"):
            raise ParameterError(f"matrix must be 'adjacency' or 'laplacian', got {show(self.matrix)} instead.")
        object.__setattr__(self, "weight", check_magnitude(self.weight, "weight"))


@builtin_kind
@dataclass(frozen=True)
class EdgeChange(_GraphChange):
    """All changes of one edge's weight by up to `weight`, in an adjacency or a Laplacian matrix.

    With ``P = A'A``: ``||A (e_i e_j' + e_j e_i') A'||_F^2 = 2 (P_ii P_jj + P_ij^2)`` for the adjacency matrix, and
    ``||A (e_i - e_j)(e_i - e_j)' A'||_F = P_ii + P_jj - 2 P_ij`` for the Laplacian; the distance is the largest over
    pairs of nodes. With `EdgeNoise`, which treats all edges alike, a Laplacian's distance is the same for every edge.
    """

    matrix: str
    weight: float = 1.0

    @property
    def frobenius(self) -> float:
        return self.weight * (math.sqrt(2) * (1 + 1e-15) if self.matrix == "adjacency" else 2.0)

    def least_error(self, scale: Floats, *, symmetric: bool) -> float | None:
        """From equal weights on all edges, for one scale on the diagonal and one elsewhere.

        The changes of two edges of a Laplacian have an inner product if they share a node. The eigenvalues of these
        inner products are those of the triangular graph.
        """
        n, same = len(scale), np.eye(len(scale), dtype=bool)
        if n < 2 or not symmetric or not (scale[same] == scale[0, 0]).all() or not (scale[~same] == scale[0, 1]).all():
            return None
        edge = 2 * (self.weight / float(scale[0, 1])) ** 2
        edges = n * (n - 1) // 2
        if self.matrix == "adjacency":
            return edge * edges * ROUND_DOWN
        node = (self.weight / float(scale[0, 0])) ** 2
        counts = (1, n - 1, edges - n) if n > 2 else (1, 0, 0)
        values = (edge + 2 * (n - 1) * node, edge + (n - 2) * node, edge)
        root = sum(count * math.sqrt(value) for count, value in zip(counts, values, strict=True))
        return root**2 / edges * ROUND_DOWN

    @scale_free
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """Exact; both sides must have the same covariance."""
        if not rowcov.same_as(colcov):
            raise ParameterError("an edge's change needs the same covariance on both sides.")
        factor, n = rowcov.whitening, rowcov.size
        if is_diagonal(factor):
            first, second = -np.sort(-column_norms(factor, n), kind="stable")[:2]
            value = math.sqrt(2 * first * second) if self.matrix == "adjacency" else float(first + second)
            return Distance(value, value).times(self.weight)
        assert isinstance(factor, np.ndarray)
        p = factor.T @ factor
        d = np.diagonal(p)
        pairs = 2 * (np.multiply.outer(d, d) + p**2) if self.matrix == "adjacency" else np.add.outer(d, d) - 2 * p
        np.fill_diagonal(pairs, 0.0)
        value = float(pairs.max())
        value = math.sqrt(value) if self.matrix == "adjacency" else value
        slack = 8 * (n + 4) * EPS * float(d.max())  # of the entries of P, by Cauchy and Schwarz
        return Distance(value + 2 * slack, value).times(self.weight)

    def free_structure(self, side: Covariance) -> EdgeNoise | None:
        """For a Laplacian and nodes that are alike: noise on its edges, in place of that on its entries."""
        alike = side.scalar and side.directions is None
        return EdgeNoise.least(side.size) if self.matrix == "laplacian" and alike else None

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        """Exact: the coordinates of any one edge have the same norm."""
        alike = side.scalar and side.directions is None
        if not isinstance(structure, EdgeNoise) or self.matrix != "laplacian" or not alike:
            raise ParameterError("structure must be noise on edges, for a Laplacian whose nodes are alike.")
        value = math.sqrt(structure.squared_change) / float(side.variances[0])
        return Distance(value, value).times(self.weight)


@builtin_kind
@dataclass(frozen=True)
class NodeChange(_GraphChange):
    """All changes of the nearest graph of bounded degrees when the edges of one node change, however many they are.

    With the largest weight w, the bound D on the sum of a node's weights and ``m = 2`` if the edges of a node are
    `replaced` by others, ``m = 1`` if they all come or go (`docs/sensitivity-graphs.md`): the sum of squares over
    edges is at most ``m w D``, so that ``||D||_F^2 <= 2 m w D`` for the adjacency matrix; degrees of other nodes change
    by at most ``m D`` in sum, and ``||D||_F^2 <= 2 D^2 + 2 m w D`` for the Laplacian. Where D bounds nothing, since it
    is at least ``(n - 1) w``, they are ``2 (n - 1) w^2`` and ``(n - 1)(n + 2) w^2``. A little is added for rounding.
    """

    matrix: str
    nodes: int
    weight: float
    max_degree: float
    replaced: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self.nodes, "nodes", at_least=2)
        check_magnitude(self.max_degree, "max_degree")

    def check_shape(self, shape: tuple[int, int]) -> None:
        self._require(shape, (self.nodes, self.nodes), f"a graph of {self.nodes} nodes")

    @property
    def bounded(self) -> bool:
        """True if the bound on degrees excludes any graph."""
        return self.max_degree < (self.nodes - 1) * self.weight

    @property
    def frobenius(self) -> float:
        n, degree = self.nodes, self.max_degree / self.weight
        if self.matrix == "adjacency":
            limit = (2 if self.replaced else 1) * self.max_degree / self.weight + _SLACK
            squares = 2 * (min(limit, (math.sqrt(n - 1) + 2.0**-5) ** 2) if self.bounded else float(n - 1))
        elif self.bounded:
            squares = 2 * degree**2 + (4 if self.replaced else 2) * degree + _LAPLACIAN_SLACK * (degree + 1)
        else:
            squares = float((n - 1) * (n + 2))
        return math.sqrt(squares) * self.weight * (1 + 1e-14)

    @scale_free
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """A bound, attained up to rounding by adjacency matrices if all entries have the same noise."""
        if not rowcov.same_as(colcov):
            raise ParameterError("a node's change needs the same covariance on both sides.")
        factor, attained = rowcov.whitening, 0.0
        largest = spectral_norm(factor) ** 2
        if is_diagonal(factor):  # attained by a node with as many edges of full weight as fit, without any others
            precisions, most = column_norms(factor, rowcov.size), self.nodes - 1
            degree = min(int(self.max_degree / self.weight * (1 + 1e-12)), most)
            exchanged = min(2 * degree, most) if self.replaced else degree
            if self.matrix == "adjacency":  # the diagonal does not change
                first, second = -np.sort(-precisions, kind="stable")[:2]
                largest, squares = math.sqrt(float(first * second)), 2.0 * exchanged
            else:
                kept = max(0, exchanged - degree)  # edges that come while `degree` others go
                squares = max(degree**2 + 3.0 * degree, (degree - kept) ** 2 + 3.0 * exchanged)
            attained = math.sqrt(squares) * self.weight * float(precisions.min())
        return Distance(self.frobenius * largest, attained).times(1.0)


@builtin_kind
@dataclass(frozen=True)
class KernelChange(Sensitivity):
    """All symmetric D that are zero outside row and column r, and on the diagonal, with entries of at most `spread`.

    For diagonal noise of precisions p the squared distance is ``2 spread^2 max_r p_r sum_{j != r} p_j``. It is
    attained in the limit: all other records in one place, the changed one there first, then far away. Where one person
    has several `rows`, D may be nonzero in as many rows and columns: the sum is over all pairs with one of them, and
    largest for the rows of the largest precisions. `size` is the number of records.
    """

    size: int
    spread: float
    rows: int = field(default=1, metadata={"absent": 1})

    def __post_init__(self) -> None:
        check_integer(self.size, "size", at_least=2)
        check_magnitude(self.spread, "spread")

    def check_shape(self, shape: tuple[int, int]) -> None:
        self._require(shape, (self.size, self.size), f"a kernel matrix of {self.size} records")

    @property
    def frobenius(self) -> float:
        return self.spread * math.sqrt(self.rows * (2 * self.size - self.rows - 1)) * (1 + 1e-15)

    def least_error(self, scale: Floats, *, symmetric: bool) -> float | None:
        """From equal weights on all rows and all signs of their entries, for one scale off the diagonal."""
        unit = float(scale[0, 1])
        same = scale == unit
        if not symmetric or int(same.sum()) - int(same.trace()) < self.size * (self.size - 1):
            return None
        return self.size * (self.size - 1) ** 2 * (self.spread / unit) ** 2 * ROUND_DOWN

    @scale_free
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """Exact for diagonal noise; a certified upper bound otherwise."""
        left, right = rowcov.whitening, colcov.whitening
        if is_diagonal(left) and is_diagonal(right):
            p, q = column_norms(left, self.size), column_norms(right, self.size)
            if self.rows > 1:  # each pair counts once, with the one of its rows that has the larger precision
                p = -np.sort(-np.maximum(p, q), kind="stable")
                chosen, rest = p[: self.rows], float(p[self.rows :].sum())
                below = np.cumsum(p[::-1])[::-1][1 : self.rows + 1]  # sums of those after each of the chosen ones
                pairs = float((chosen[: len(below)] * below).sum())
                value = math.sqrt(2 * pairs * (1 + 8e-16 * self.size))
                return Distance(value, math.sqrt(2 * float(chosen.sum()) * rest) * ROUND_DOWN).times(self.spread)
            value = math.sqrt(float((p * sum_of_others(q) + q * sum_of_others(p)).max()) * (1 + 4e-16 * self.size))
            return Distance(value, value).times(self.spread)
        return Distance(self.frobenius * spectral_norm(left) * spectral_norm(right), 0.0).times(1.0)


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class KernelRowChange(Sensitivity):
    """All ``D = e_r d'`` with ``d_j = k(x, p_j) - k(y, p_j)``, for records x, y and public points p_j.

    Such d lie in a box, and in an ellipsoid ``d' M^-1 d <= 1`` that follows from the kernel's own norm
    (`docs/sensitivity-graphs.md`), so that ``|B d|^2`` is at most the largest eigenvalue of ``B M B'``. The smaller of
    the two bounds is taken.
    """

    halfwidths: Floats  # of shape (p,): half the range of the kernel at each point
    ellipsoid: Floats  # of shape (p, p): M as computed
    errors: Floats  # of shape (p,): bounds on the rounding error of each value of a row
    ellipsoid_error: float  # of no entry of M is larger
    known: Floats  # of shape (q, p): rows of some records of the domain, for a distance that is attained

    def __post_init__(self) -> None:
        check_halfwidths(self.halfwidths, None)
        p = self.halfwidths.size
        if self.ellipsoid.shape != (p, p) or self.errors.shape != (p,) or self.known.shape[1:] != (p,):
            raise ParameterError(f"ellipsoid, errors and known must be for {p} points, as halfwidths are.")

    def check_shape(self, shape: tuple[int, int]) -> None:
        self._require(shape, (None, self.halfwidths.size), "kernel values at that many points")

    @property
    def frobenius(self) -> float:
        return self.distance(Covariance.identity(1), Covariance.identity(self.halfwidths.size)).value

    @property
    def ball(self) -> bool:
        return self.halfwidths.size == 1

    @scale_free
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """The smaller of the two bounds; exact where one of the known pairs attains it."""
        left, right = rowcov.whitening, colcov.whitening
        widest = math.sqrt(column_norms(left, rowcov.size if isinstance(left, np.ndarray) else 1).max())
        # Root of the largest eigenvalue, and what rounding of the two rows can add.
        smallest, unit, size = float(colcov.variances.min()), self._root[0], np.abs(right)
        norm = _round_up(self._largest_eigenvalue(right) * smallest) / smallest
        rounding = 2 * float(np.linalg.norm(size * self.errors if is_diagonal(size) else size @ self.errors))
        value = (math.sqrt(norm) * unit + rounding) * (1 + 8 * (self.halfwidths.size + 4) * EPS)
        corners = size * self.halfwidths if is_diagonal(size) else size @ self.halfwidths
        # No bound of the box is below the distance of opposite corners.
        if 2 * float(np.linalg.norm(corners) if is_diagonal(size) else corners.max()) < value:
            box = RecordChange(self.halfwidths, filled=False).distance(Covariance.identity(1), colcov).value
            value = min(value, box)
        return Distance(value, min(self._attained(right), value)).times(widest)

    def _largest_eigenvalue(self, right: Factor) -> float:
        """Of ``B M B'`` in units, rounded up: at most ``|B F|^2 + |B|^2 |M - F F'|`` with spectral norms, for any F."""
        _, root, squared_norm, residual = self._root
        if not isinstance(right, np.ndarray):
            return float(right * right) * (squared_norm + residual)
        product = right[:, None] * root if right.ndim == 1 else right @ root
        rounding = (len(root) + 4) * EPS * float(np.linalg.norm(right) * np.linalg.norm(root))
        norm = math.sqrt(_squared_norm(product)) + rounding
        return norm**2 + (float(right.max()) ** 2 if right.ndim == 1 else _squared_norm(right)) * residual

    @cached_property
    def _root(self) -> tuple[float, Floats, float, float]:
        """A unit, a matrix F whose ``F F'`` is nearly M, ``|F|^2``, and a bound on the spectral norm of the difference.

        M is divided by the square of the unit, a power of two, so that squares of its entries are floats.
        """
        unit = power_of_two(math.sqrt(float(np.trace(self.ellipsoid))))
        scaled = self.ellipsoid / unit**2
        values, vectors = np.linalg.eigh(scaled)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        p, size = len(root), float(np.square(root).sum()) + float(np.linalg.norm(scaled))
        rounding = (p + 8) * EPS * size  # of the product; usually larger than what is computed
        computed = max(float(np.linalg.norm(scaled - root @ root.T)), rounding)
        residual = (computed + rounding + p * (self.ellipsoid_error / unit**2)) * (1 + 1e-9)
        return unit, root, _squared_norm(root.T), residual

    def _attained(self, right: Factor) -> float:
        """Largest distance among the known records."""
        rows = self.known * right if is_diagonal(right) else self.known @ np.asarray(right).T
        found = 0.0
        for i in range(len(rows) - 1):
            found = max(found, float(np.square(rows[i + 1 :] - rows[i]).sum(axis=1).max()))
        return math.sqrt(found)


def _squared_norm(matrix: Floats) -> float:
    """``|M|^2``, M of shape (p, p), rounded up.

    No eigenvalue of ``M M'`` exceeds its largest sum of absolute values in a row. Where rows are nearly orthogonal, as
    those of eigenvectors are, this is as good as singular values, which take much longer.
    """
    products = matrix @ matrix.T
    squares = np.diagonal(products)
    rounding = (len(matrix) + 4) * EPS * math.sqrt(float(squares.max())) * float(np.sqrt(squares).sum())
    bound = (float(np.abs(products).sum(axis=1).max()) + rounding) * (1 + (len(matrix) + 4) * EPS)
    if bound <= (1 + 1e-6) * float(squares.max()):
        return bound
    return min(bound, spectral_norm(matrix) ** 2 * (1 + 4 * EPS))


def _round_up(value: float) -> float:
    """The next number with `_DIGITS` bits."""
    fraction, exponent = math.frexp(value)
    return math.ldexp(math.ceil(math.ldexp(fraction, _DIGITS)), exponent - _DIGITS)
