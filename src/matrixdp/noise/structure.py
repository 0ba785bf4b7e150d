"""Structured noise: Gaussian noise on an answer that is more than a covariance for each side.

A structure says in which coordinates of the answer the noise is independent with unit variance, given the law of the
two sides. `Squares` adds precision to the squares of the features, which costs no privacy (`docs/sensitivity.md`), and
`EdgeNoise` is noise on the edges of a graph, for its Laplacian: rows sum to zero, and so does their noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from matrixdp.display import short_repr
from matrixdp.errors import ParameterError
from matrixdp.noise.matrix import Covariance, MatrixGaussian, apply_factors, triangle_to_vector, vector_to_triangle
from matrixdp.serialise import builtin_kind
from matrixdp.types import Factor, Floats


class NoiseStructure(ABC):
    """Coordinates of an answer in which noise is independent with unit variance, given the law of the two `sides`."""

    __repr__ = short_repr

    @abstractmethod
    def fits(self, shape: tuple[int, int]) -> bool:
        """Whether the structure is one for answers of this shape."""

    @abstractmethod
    def scaled(self, by: float) -> NoiseStructure:
        """The structure for noise whose standard deviations are `by` times as large."""

    @abstractmethod
    def whiten(self, sides: MatrixGaussian, answer: Floats) -> Floats:
        """The answer's coordinates, of shape (k,): a linear map."""

    @abstractmethod
    def combine(self, sides: MatrixGaussian, coordinates: Floats) -> Floats:
        """The best unbiased estimate of the answer from its noisy coordinates; post-processing."""

    @abstractmethod
    def largest(self, sides: MatrixGaussian, magnitude: Floats) -> Floats:
        """Bound on the absolute value of each coordinate, for entries of at most `magnitude`, of shape (k,)."""

    @property
    @abstractmethod
    def terms(self) -> int:
        """Length of the longest sum in `whiten` besides those of the two sides, which bounds its rounding error."""

    @abstractmethod
    def variances(self, sides: MatrixGaussian) -> Floats:
        """Variance of the noise in each entry of the combined answer, of the answer's shape."""


class SquaresTwice(NoiseStructure):
    """Base class of structures that measure some squares once more.

    For squares v in units of their weights, the additional coordinates are ``z_i = sqrt(strengths_i) v_i -
    shift/sqrt(strengths_i) sum_j v_j``, so that ``|z|^2 = v' (diag(strengths) - loss 11') v`` with ``loss = 2 shift -
    shift^2 sum_i 1/strengths_i``.
    """

    strengths: Floats
    shift: float

    @property
    def loss(self) -> float:
        """Precision that the sum of all squares loses."""
        return 2 * self.shift - self.shift**2 * float((1 / self.strengths).sum())

    @property
    def terms(self) -> int:
        return self.strengths.size + 4

    def _measure(self, v: Floats, *, largest: bool = False) -> Floats:
        """The additional coordinates, of shape (..., m), or a bound on them for squares of at most v."""
        roots, shift = np.sqrt(self.strengths), -self.shift if largest else self.shift
        return np.asarray(roots * v - shift / roots * v.sum(axis=-1, keepdims=True))

    def _pull(self, z: Floats) -> Floats:
        """The transpose of `_measure`, of shape (..., m): coordinates z as far as they tell of the squares."""
        roots = np.sqrt(self.strengths)
        return np.asarray(roots * z - (self.shift / roots * z).sum(axis=-1, keepdims=True))


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class Squares(SquaresTwice):
    """Measures the squares of the features once more, beside the whitened answer.

    The squares are ``v = weights * d`` with d the last m entries of the answer's diagonal (`SquaresTwice`). `combine`
    returns the generalised least squares estimate. `weights`, of shape (m,), are in inverse units of the answer's
    diagonal, and no less than the precisions of the sides, as quadratic forms.
    """

    weights: Floats
    strengths: Floats
    shift: float

    def __post_init__(self) -> None:
        for values in (self.weights, self.strengths):
            if not isinstance(values, np.ndarray) or values.ndim != 1 or not (np.isfinite(values) & (values > 0)).all():
                raise ParameterError("weights and strengths of squares must be vectors of finite, positive numbers.")
        if self.weights.shape != self.strengths.shape or not self.weights.size:
            raise ParameterError("squares need as many strengths as weights.")
        if type(self.shift) is not float or not 0 <= self.shift < np.inf:
            raise ParameterError("the shift of squares must be a finite number that is not negative.")

    def fits(self, shape: tuple[int, int]) -> bool:
        return shape[0] == shape[1] and shape[1] - self.weights.size in (0, 1)

    def scaled(self, by: float) -> Squares:
        return Squares(self.weights / by, self.strengths, self.shift)

    def whiten(self, sides: MatrixGaussian, answer: Floats) -> Floats:
        return self._whiten(sides.colcov.whitening, answer, largest=False)

    def _whiten(self, factor: Factor, answer: Floats, *, largest: bool) -> Floats:
        squares = self._measure(self.weights * np.diagonal(answer)[-self.weights.size :], largest=largest)
        return np.concatenate([triangle_to_vector(apply_factors(factor, answer, factor)), squares])

    def combine(self, sides: MatrixGaussian, coordinates: Floats) -> Floats:
        """Generalised least squares: ``S + C diag(t) C``, C the covariance of a side and S what the sides tell."""
        m, side = self.weights.size, sides.colcov
        factor = side.factor
        matrix = apply_factors(factor, vector_to_triangle(coordinates[:-m], side.size), factor)
        matrix = (matrix + matrix.T) / 2
        residual = coordinates[-m:] - self._measure(self.weights * np.diagonal(matrix)[-m:])
        t = self.weights * (self._response(side) @ self._pull(residual))
        if side.directions is None:
            rows = np.arange(side.size - m, side.size)
            matrix[rows, rows] += (side.variances[-m:] * t) * side.variances[-m:]
            return matrix
        c = side.matrix()[-m:, -m:]
        correction = (c * t) @ c
        matrix[-m:, -m:] += (correction + correction.T) / 2
        return matrix

    def largest(self, sides: MatrixGaussian, magnitude: Floats) -> Floats:
        return self._whiten(np.abs(sides.colcov.whitening), np.broadcast_to(magnitude, sides.shape), largest=True)

    def variances(self, sides: MatrixGaussian) -> Floats:
        """Those of the sides, less what the squares tell."""
        m, side = self.weights.size, sides.colcov
        result = sides.symmetric_std**2
        if side.directions is not None:
            result[-m:, -m:] -= self.explained(side)
        rows = np.arange(side.size - m, side.size)
        result[rows, rows] = np.diagonal(self.diagonal_covariance(side))
        return result

    def diagonal_covariance(self, side: Covariance) -> Floats:
        """Covariance of the noise in the combined squares, of shape (m, m)."""
        result = self._spread(side) @ self._response(side)
        return np.asarray((result + result.T) / 2 / self.weights / self.weights[:, None])

    def information(self, side: Covariance) -> Floats:
        """What the additional coordinates tell of the squares beyond the sides, as a precision, of shape (m, m)."""
        return np.asarray(self.weights[:, None] * (self._response(side) @ self._precision) * self.weights)

    def explained(self, side: Covariance) -> Floats:
        """By how much the squares lower the variance of each entry (i, j) of the features, of shape (m, m)."""
        m = self.weights.size
        c, information = side.matrix()[-m:, -m:], self.information(side)
        result = np.empty((m, m))
        for i in range(m):
            products = c[i] * c
            result[i] = np.einsum("jp,jp->j", products @ information, products)
        return (result + result.T) / 2

    def direction_variances(self, side: Covariance) -> Floats:
        """Variance of the noise in ``w' Z w`` for each direction w of the features, of shape (m,)."""
        m = self.weights.size
        if side.directions is None:
            return np.diagonal(self.diagonal_covariance(side))
        variances = side.variances[-m:]
        part = variances[:, None] * np.square(side.directions[-m:, -m:].T)
        told = np.einsum("ip,pq,iq->i", part, self.information(side), part, optimize=True)
        return np.asarray(variances**2 * (1 - told))

    @property
    def _precision(self) -> Floats:
        """Of the squares in units of their weights: ``Q = diag(strengths) - loss 11'``."""
        return np.diag(self.strengths) - self.loss

    def _spread(self, side: Covariance) -> Floats:
        """Covariance of what the sides tell of the squares, in units of the weights: H."""
        c = side.matrix()[-self.weights.size :, -self.weights.size :]
        return np.asarray((self.weights[:, None] * c) * (c * self.weights))

    def _response(self, side: Covariance) -> Floats:
        """``(I + Q H)^-1``; in closed form, which loses no digits, where H is diagonal."""
        if side.directions is not None:
            return np.asarray(np.linalg.inv(np.eye(self.weights.size) + self._precision @ self._spread(side)))
        h = (self.weights * side.variances[-self.weights.size :]) ** 2
        inverse = 1 / (1 + self.strengths * h)
        told = h * inverse
        return np.diag(inverse) + self.loss / (1 - self.loss * float(told.sum())) * np.multiply.outer(inverse, told)


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
        return self.nodes + 8

    @property
    def squared_change(self) -> float:
        """Squared norm of the coordinates of one edge of weight one, for sides of unit variance; the same for all."""
        n = self.nodes
        a, b, c = self._coefficients(1 / self.deviations)
        return float((a + 2 * b + c) ** 2 + 2 * (n - 2) * (b + c) ** 2 + (n - 2) * (n - 3) / 2 * c**2)

    def fits(self, shape: tuple[int, int]) -> bool:
        return shape == (self.nodes, self.nodes)

    def scaled(self, by: float) -> EdgeNoise:
        """The same: the unit is that of the sides."""
        return self

    def whiten(self, sides: MatrixGaussian, answer: Floats) -> Floats:
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
        bound = np.broadcast_to(magnitude, (self.nodes, self.nodes))
        return self._whiten(sides, bound, *np.abs(self._coefficients(1 / self.deviations)))

    def variances(self, sides: MatrixGaussian) -> Floats:
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
