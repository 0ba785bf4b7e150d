"""Structured noise: Gaussian noise on an answer that is more than a covariance for each side.

A structure says in which coordinates of the answer the noise is independent with unit variance, given the law of the
two sides. `Squares` adds precision to the squares of the features, which costs no privacy (`docs/mathematics.md`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from matrixdp.display import short_repr
from matrixdp.errors import ParameterError
from matrixdp.noise.covariance import Covariance
from matrixdp.noise.matrix import MatrixGaussian, apply_factors, triangle_to_vector, vector_to_triangle
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats


class NoiseStructure(ABC):
    """Coordinates of an answer in which the noise is independent with unit variance.

    Methods get the law of the two sides, `sides`, which a structure may refine or replace.
    """

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
        """The sum over the squares."""
        return self.strengths.size + 4

    def _measure(self, v: Floats) -> Floats:
        """The additional coordinates, of shape (..., m)."""
        roots = np.sqrt(self.strengths)
        return np.asarray(roots * v - self.shift / roots * v.sum(axis=-1, keepdims=True))

    def _measure_largest(self, v: Floats) -> Floats:
        """Bound on the additional coordinates for squares of at most v, of shape (..., m): sums of absolute values."""
        roots = np.sqrt(self.strengths)
        return np.asarray(roots * v + self.shift / roots * v.sum(axis=-1, keepdims=True))

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
        """Whether the features are all entries of a side, or all but the constant."""
        return shape[0] == shape[1] and shape[1] - self.weights.size in (0, 1)

    def scaled(self, by: float) -> Squares:
        """The weights divided by `by`."""
        return Squares(self.weights / by, self.strengths, self.shift)

    def whiten(self, sides: MatrixGaussian, answer: Floats) -> Floats:
        """The whitened triangle, then the squares."""
        squares = self._measure(self.weights * np.diagonal(answer)[-self.weights.size :])
        return np.concatenate([triangle_to_vector(sides.whiten(answer)), squares])

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
        """Sums of absolute values."""
        bound = np.broadcast_to(magnitude, sides.shape)
        whitening = np.abs(sides.colcov.whitening)
        triangle = triangle_to_vector(apply_factors(whitening, bound, whitening))
        squares = self._measure_largest(self.weights * np.diagonal(bound)[-self.weights.size :])
        return np.concatenate([triangle, squares])

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
