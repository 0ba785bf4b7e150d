"""One edge of an undirected graph changes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matrixdp.checks import check_magnitude
from matrixdp.errors import ParameterError, show
from matrixdp.noise.covariance import Covariance
from matrixdp.noise.edges import EdgeNoise
from matrixdp.noise.structure import NoiseStructure
from matrixdp.sensitivity.distance import ROUND_DOWN, Distance, Sensitivity, column_norms, precision, scale_free
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats, is_diagonal


@builtin_kind
@dataclass(frozen=True)
class EdgeChange(Sensitivity):
    """All changes of one edge's weight by up to `weight`, in an adjacency or a Laplacian matrix.

    With ``P = A'A``: ``||A (e_i e_j' + e_j e_i') A'||_F^2 = 2 (P_ii P_jj + P_ij^2)`` for the adjacency matrix, and
    ``||A (e_i - e_j)(e_i - e_j)' A'||_F = P_ii + P_jj - 2 P_ij`` for the Laplacian; the distance is the largest over
    pairs of nodes. With `EdgeNoise`, which treats all edges alike, a Laplacian's distance is the same for every edge.

    Examples
    --------
    >>> unit = Covariance.identity(5)
    >>> EdgeChange("laplacian").distance(unit, unit).attained
    2.0
    """

    matrix: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.matrix not in ("adjacency", "laplacian"):
            raise ParameterError(f"matrix must be 'adjacency' or 'laplacian', got {show(self.matrix)} instead.")
        object.__setattr__(self, "weight", check_magnitude(self.weight, "weight"))

    @property
    def frobenius(self) -> float:
        """``sqrt(2)`` times the weight, or twice the weight."""
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
        p = precision(factor, n)
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
