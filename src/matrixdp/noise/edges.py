"""Noise on the edges of a graph, for its Laplacian: rows sum to zero, and so does their noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrixdp.errors import ParameterError
from matrixdp.noise.covariance import Covariance
from matrixdp.noise.matrix import MatrixGaussian
from matrixdp.noise.structure import NoiseStructure
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats


@builtin_kind
@dataclass(frozen=True, eq=False)
class EdgeNoise(NoiseStructure):
    """Noise on the n (n - 1)/2 weights of edges that treats all nodes alike, and through them on the Laplacian.

    Weights of edges are the sum of three parts that permutations of the nodes keep apart: the total weight (1
    dimension), the other differences of degrees (n - 1) and the rest (n (n - 3)/2). The noise has one standard
    deviation in each: `deviations`, of shape (3,), in units of the variance of the sides' noise, and equal for two
    nodes, which have one edge. A map with one number for each part is ``x_ij -> a x_ij + b (d_i + d_j) + c t``, d the
    degrees and t the total weight, so that no matrix over edges is needed.
    """

    nodes: int
    deviations: Floats

    def __post_init__(self) -> None:
        if type(self.nodes) is not int or self.nodes < 2:
            raise ParameterError("the nodes of edge noise must be an integer of at least 2.")
        values = self.deviations
        if not isinstance(values, np.ndarray) or values.shape != (3,) or not ((values > 1e-9) & (values < 1e9)).all():
            raise ParameterError("the deviations of edge noise must be three positive numbers.")
        if self.nodes == 2 and np.ptp(values):
            raise ParameterError("the deviations of edge noise must be equal for two nodes.")

    @classmethod
    def least(cls, nodes: int) -> EdgeNoise:
        """The noise with the least total variance of the Laplacian's entries: deviations ``q^(-1/4)``.

        A change of the edges' weights by x changes the Laplacian by ``2 |x|^2 + |d|^2`` in squared norm, which is ``q
        |x|^2`` with q = 2n, n and 2 in the three parts.
        """
        weights = np.array([2.0 * nodes, nodes, 2.0]) if nodes > 2 else np.full(3, 4.0)
        return cls(nodes, weights**-0.25)

    @property
    def terms(self) -> int:
        """The sum over the degrees, and a few more operations."""
        return self.nodes + 8

    @property
    def squared_change(self) -> float:
        """Squared norm of the coordinates of one edge of weight one, for sides of unit variance; the same for all."""
        n = self.nodes
        a, b, c = self._coefficients(1 / self.deviations)
        return float((a + 2 * b + c) ** 2 + 2 * (n - 2) * (b + c) ** 2 + (n - 2) * (n - 3) / 2 * c**2)

    def fits(self, shape: tuple[int, int]) -> bool:
        """True if there are as many nodes."""
        return shape == (self.nodes, self.nodes)

    def scaled(self, by: float) -> EdgeNoise:
        """The same: the unit is that of the sides."""
        return self

    def whiten(self, sides: MatrixGaussian, answer: Floats) -> Floats:
        """Coordinates of the edges below the diagonal, row by row, from a Laplacian."""
        a, b, c = self._coefficients(1 / self.deviations)
        return self._whiten(sides, answer, -a, b, c)

    def _whiten(self, sides: MatrixGaussian, answer: Floats, a: float, b: float, c: float) -> Floats:
        degrees = np.diagonal(answer)
        rows, columns = np.tril_indices(self.nodes, -1)
        values = b * (degrees[rows] + degrees[columns]) + a * answer[rows, columns] + c * (degrees.sum() / 2)
        return np.asarray(values / _unit(sides))

    def combine(self, sides: MatrixGaussian, coordinates: Floats) -> Floats:
        """The Laplacian of the noisy edges. It is symmetric; its rows sum to zero up to rounding."""
        a, b, c = self._coefficients(self.deviations)
        rows, columns = np.tril_indices(self.nodes, -1)
        edges = np.zeros((self.nodes, self.nodes))
        edges[rows, columns] = coordinates * _unit(sides)
        edges += edges.T
        degrees = edges.sum(axis=1)
        edges = a * edges + (b * np.add.outer(degrees, degrees) + c * (degrees.sum() / 2))
        np.fill_diagonal(edges, 0.0)
        return np.asarray(np.diag(edges.sum(axis=1)) - edges)

    def largest(self, sides: MatrixGaussian, magnitude: Floats) -> Floats:
        """Sums of absolute values."""
        bound = np.broadcast_to(magnitude, (self.nodes, self.nodes))
        return self._whiten(sides, bound, *np.abs(self._coefficients(1 / self.deviations)))

    def variances(self, sides: MatrixGaussian) -> Floats:
        """That of an edge off the diagonal, and that of a degree on it."""
        n, (total, degree, rest) = self.nodes, self.deviations**2
        edge = total if n == 2 else (total + (n - 1) * degree + n * (n - 3) / 2 * rest) / (n * (n - 1) / 2)
        result = np.full((n, n), edge * _unit(sides) ** 2)
        np.fill_diagonal(result, np.diagonal(self.diagonal_covariance(sides.colcov)))
        return result

    def diagonal_covariance(self, side: Covariance) -> Floats:
        """Covariance of the noise in the degrees, of shape (nodes, nodes)."""
        n, (total, degree, _) = self.nodes, self.deviations**2
        own, common = (n - 2) * degree, (2 * (n - 1) * total - (n - 2) * degree) / n
        return np.asarray((own * np.eye(n) + common) * float(side.variances[0]) ** 2)

    def _coefficients(self, factors: Floats) -> Floats:
        """a, b, c of the map that multiplies the three parts by `factors`."""
        n, (total, degree, rest) = self.nodes, factors
        if n == 2:
            return np.array([total, 0.0, 0.0])
        b = (degree - rest) / (n - 2)
        return np.array([rest, b, (total - rest - 2 * (n - 1) * b) / (n * (n - 1) / 2)])


def _unit(sides: MatrixGaussian) -> float:
    """Standard deviation of a diagonal entry of the sides' noise."""
    return float(sides.colcov.variances[0])
