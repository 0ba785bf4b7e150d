"""One edge of an undirected graph changes, or all edges of one node of a graph of bounded degrees."""

import math
from dataclasses import dataclass

import numpy as np

from matrixdp.checks import check_integer, check_magnitude
from matrixdp.errors import ParameterError, show
from matrixdp.noise.covariance import Covariance
from matrixdp.noise.structure import EdgeNoise, NoiseStructure
from matrixdp.sensitivity.distance import ROUND_DOWN, Distance, Sensitivity, column_norms, scale_free, spectral_norm
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats, is_diagonal

_SLACK = 2.0**-10  # of a squared weight: what sums of weights that miss the bound by a tolerance can add
_LAPLACIAN_SLACK = 2.0**-8


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
        slack = 8 * (n + 4) * np.finfo(float).eps * float(d.max())  # of the entries of P, by Cauchy and Schwarz
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
