"""The law of the noise in released moments: errors of all answers from their derivatives, and draws of noise.

A `NoiseLaw` knows the covariance of the noise in any two entries of the moments of shape (p, p). The variance of an
answer follows from its derivatives by these entries, to first order. Answers and entries are arrays, so that many
answers, for a stack of matrices, take one call; nothing of the size p^2 x p^2 is formed. All of it is post-processing.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from matrixdp.design.design import Design
from matrixdp.noise.matrix import MatrixGaussian, apply_factors, vector_to_triangle
from matrixdp.noise.structure import Squares
from matrixdp.noise.table_noise import LEVEL, OBSERVED, VALUE, TableNoise
from matrixdp.types import Floats

Places = Any  # an index, or an int array of indices of entries
Terms = Sequence[tuple[Places, Places, Any]]  # rows and columns of entries, and the derivatives of answers by them

DRAWS = 1000  # of the noise, for error bars: their own error is about 3%
_SEED = 0  # of simulated noise, which is public
_STACK = 1 << 21  # entries of the matrices that are drawn at a time: 16 MiB
_QUARTILE = float(ndtri(0.75))
_FAR = 5.0  # standard deviations at which a draw is cut off, where a fit has poles


class NoiseLaw(ABC):
    """Law of the noise in moments of shape (p, p), which is Gaussian with mean zero."""

    size: int  # p
    released: Floats  # variance of each entry as it was released, before it is adjusted
    scales: Floats  # the precision of a product of coordinates i and j of two columns is ``2 scales_i scales_j``

    @abstractmethod
    def covariance(self, i: Places, j: Places, k: Places, m: Places) -> Floats:
        """Covariance of the noise in the entries (i, j) and (k, m), for arrays of indices that broadcast."""

    def std(self, terms: Terms) -> Floats:
        """Standard deviation of the noise in answers, to first order; derivatives may have more axes in front."""
        total: Floats = np.zeros(())
        for number, (i, j, slope) in enumerate(terms):
            total = total + slope * slope * self.covariance(i, j, i, j)
            for k, m, other in terms[:number]:
                together = self.covariance(i, j, k, m)
                if np.any(together):
                    total = total + 2 * slope * other * together
        return np.sqrt(np.maximum(total, 0.0))

    def entry_std(self, i: Places, j: Places) -> Floats:
        """Standard deviation of the noise in entries."""
        return np.sqrt(np.maximum(self.covariance(i, j, i, j), 0.0))

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Noise of this law, of shape (count, p, p)."""
        raise NotImplementedError

    def stacks(self, matrix: Floats, count: int = DRAWS) -> Iterator[Floats]:
        """Moments, (..., p, p), with noise drawn again, `count` times in stacks of shape (k, ..., p, p); public."""
        rng, most = np.random.default_rng(_SEED), max(1, _STACK // max(self.size**2, 1))
        for start in range(0, count, most):
            noise = self.draw(min(most, count - start), rng)
            yield matrix + noise.reshape(-1, *[1] * (matrix.ndim - 2), *noise.shape[1:])


class NoNoise(NoiseLaw):
    """The law of moments without noise."""

    def __init__(self, size: int) -> None:
        self.size, self.released, self.scales = size, np.zeros((size, size)), np.full(size, np.inf)

    def covariance(self, i: Places, j: Places, k: Places, m: Places) -> Floats:
        return np.zeros(np.broadcast_shapes(*map(np.shape, (i, j, k, m))))

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        return np.zeros((count, self.size, self.size))


class SidesLaw(NoiseLaw):
    """Noise of `Moments` and `SecondMoment`: one covariance C for both sides, and squares that are measured twice.

    The covariance of the entries (i, j) and (k, m) is ``(C_ik C_jm + C_im C_jk)/2``, less what the second measurement
    of the squares tells of both (`noise.Squares`).
    """

    def __init__(self, design: Design) -> None:
        self._noise, self._structure = design.noise, design.structure
        self.released = np.square(design.std)
        self.size = len(self.released)
        side = design.colcov
        self._side = side.matrix()
        self.scales = 1 / np.diagonal(self._side)
        self._squares = self._side**2  # covariance of the noise in two squares
        self._told: Floats | None = None
        if isinstance(self._structure, Squares):
            self._told = self._structure.information(side) if side.directions is not None else None
            first = self.size - len(self._structure.weights)
            self._squares[first:, first:] = self._structure.diagonal_covariance(side)
        rows = np.arange(self.size)
        self._squares[rows, rows] = self.released[rows, rows]  # zero where an entry is public
        self._public = None if design.query.public is None else np.asarray(design.query.public)

    def covariance(self, i: Places, j: Places, k: Places, m: Places) -> Floats:
        c = self._side
        found = (c[i, k] * c[j, m] + c[i, m] * c[j, k]) / 2
        if self._told is not None:
            first = self.size - len(self._told)
            one, other = (c[a, first:] * c[b, first:] for a, b in ((i, j), (k, m)))
            if one.any() and other.any():
                found = found - np.einsum("...p,...p->...", one @ self._told, other)
        return np.where((np.equal(i, j)) & (np.equal(k, m)), self._squares[i, k], found)

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        size, structure, factor = self.size, self._structure, self._noise.colcov.factor
        if isinstance(structure, Squares):
            more = size * (size + 1) // 2 + structure.weights.size
            drawn = [structure.combine(self._noise, rng.standard_normal(more)) for _ in range(count)]
        else:
            normals = rng.standard_normal((count, size * (size + 1) // 2))
            drawn = [apply_factors(factor, vector_to_triangle(one, size), factor) for one in normals]
        stack = np.array(drawn).reshape(count, size, size)
        return stack if self._public is None else np.where(self._public, 0.0, stack)


class TableLaw(NoiseLaw):
    """Noise in the moments of some groups of a table, adjusted by least squares so that levels add up.

    The indicators of the levels of a category sum to one. So a record's vector is ``z = c + u``: u is known (1 for the
    constant, ``1/k`` for each of k levels, 0 for numbers), and c has the numbers and the indicators less ``1/k``. Then
    ``E z z' = E c c' + E c u' + u E c' + E 1 u u'``, whose parts are measured independently, ``E c`` and E 1 several
    times; each is the mean of its measurements, weighted by their precisions (`docs/postprocessing.md`,
    "Levels that add up").

    `merged` groups were added up, each with the same noise; `size_kept` is what is left of the variance of the noise in
    the share of the records, entry (0, 0), where the shares of all groups sum to a public number.
    """

    def __init__(self, noise: TableNoise, sides: MatrixGaussian, merged: int = 1, size_kept: float = 1.0) -> None:
        self.noise, self.layout, self.size = noise, noise.layout, noise.layout.size
        self._sides, self.merged, self.size_kept = sides, merged, size_kept
        self.scales = noise.scales / np.sqrt(merged)
        levels = self.layout.of_kind(LEVEL)
        found, where = np.unique(np.array(self.layout.columns)[levels], return_inverse=True)
        self._member = np.zeros((self.size, found.size))  # of shape (p, categories)
        self._member[levels, where] = 1.0
        self._widths = self._member.sum(axis=0)
        self._known = self._member @ (1 / self._widths)  # u
        self._known[0] = 1.0
        self.own = self.layout.of_kind(OBSERVED, VALUE)  # coordinates whose squares are measured once more
        self._observed = self.layout.of_kind(OBSERVED)
        self._observed_squares = np.isin(self.own, self._observed)
        self._level_scales = self.noise.scales @ self._member / self._widths  # of shape (categories,)
        # Precision of the sum over the levels of each category, for each coordinate, of shape (categories, p).
        precisions = 2 * np.multiply.outer(self._level_scales / self._widths, self.noise.scales)
        precisions[:, 0] = 0.0
        self._sum_precisions = np.where(self._member.T > 0, 0.0, precisions)
        # Of the first row alone, of shape (p,); the indicators of values are among the squares.
        self._first_precisions = self.noise.precisions[self.layout.number_of[0]]
        self._first_precisions[self._observed] = 0.0
        together = self._first_precisions + self._sum_precisions.sum(axis=0)
        self._first_row_precisions = np.where(together > 0, together, 1.0)  # of an indicator, where it is not used
        # Precision with which sums over levels measure each square again, of shape (q,).
        again = self._sum_precisions.sum(axis=0)[self.own]
        self._again = np.where(self._observed_squares, again, 0.0)

    @cached_property
    def released(self) -> Floats:  # type: ignore[override]
        """Variance of the noise in each entry as it was released, of shape (p, p)."""
        return self.noise.variances(self._sides)[: self.size] * self.merged

    # The adjustment

    def adjust(self, matrix: Floats, size: Any) -> Floats:
        """The adjusted moments, of shape (..., p, p), for shares `size` of the records, of shape (...)."""
        u = self._known
        sums = (self._sum_precisions * (self._member.T @ matrix)).sum(axis=-2)
        squares = matrix[..., self.own, self.own]  # sums over levels measure those of indicators again
        pull = np.where(self._observed_squares, sums[..., self.own], 0.0) - self._again * squares
        squares = squares + pull @ self.square_covariance
        first = (self._first_precisions * matrix[..., 0, :] + sums) / self._first_row_precisions
        first[..., self._observed] = squares[..., self._observed_squares]
        first[..., 0] = 0.0
        first = self._centre(first)  # the mean of c
        result = self._centre(self._centre(matrix).mT).mT
        result[..., 0, :] = result[..., :, 0] = 0.0
        result += u[:, None] * first[..., None, :] + first[..., None] * u
        result += np.asarray(size)[..., None, None] * np.multiply.outer(u, u)
        result[..., self.own, self.own] = squares
        return repeat_entries(self.layout, result)

    def sizes(self, matrix: Floats) -> Floats:
        """Share of the records in each group, of shape (...), from matrices of shape (..., p, p)."""
        parts = np.concatenate([np.eye(self.size, 1), self._member], axis=1)
        weights = parts @ (self._size_precisions * self.size_variance) @ parts.T
        return np.asarray(np.einsum("...ij,ij->...", matrix, weights))

    @cached_property
    def size_variance(self) -> float:
        """Variance of the noise in the share of the records of one group."""
        return 1 / float(self._size_precisions.sum())

    @cached_property
    def _size_precisions(self) -> Floats:
        """Of each sum that is the share of the records, as an upper triangle: the first entry, then categories."""
        scale = np.concatenate([[self.noise.scales[0]], self._level_scales / self._widths])
        precisions = np.triu(2 * np.multiply.outer(scale, scale), 1)
        precisions[0, 0] = scale[0] ** 2
        precisions[0, 1:] += self._level_scales**2 / self._widths  # copies on the diagonal
        return np.asarray(precisions)

    @cached_property
    def square_covariance(self) -> Floats:
        """Covariance of the noise in the adjusted squares of one group, of shape (q, q)."""
        before, weights = self.noise.square_covariance, self._again
        again = weights > 0
        columns = before[:, again]  # Woodbury's identity
        inner = np.diag(1 / weights[again]) + before[np.ix_(again, again)]
        return np.asarray(before - columns @ np.linalg.solve(inner, columns.T))

    def _centre(self, array: Floats) -> Floats:
        """Subtract the mean over the levels of each category, along the last axis."""
        return np.asarray(array - (array @ (self._member / self._widths)) @ self._member.T)

    # Covariances

    @cached_property
    def _numbers(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """Coordinates of each distinct number, and the variance of the noise in its part of ``E c c'``.

        A square has a coordinate of its own, from p on. The last number stands for zeros, which have no noise.
        """
        rows, columns = (np.append(one, self.size + self.own.size) for one in self.layout.representatives)
        variances = np.append(1 / self.noise.precisions, 0.0)
        variances[rows == 0] = 0.0
        squares = self.layout.squares[~self._observed_squares]
        rows[squares], columns[squares] = 0, self.size + np.flatnonzero(~self._observed_squares)
        variances[squares] = 0.0
        return rows, columns, variances

    @cached_property
    def _coordinates(self) -> tuple[Floats, Floats, Floats]:
        """Of coordinates, then squares and zeros: u, the projection that centres, and the covariance of their means."""
        more = self.own.size + 1
        centre = np.eye(self.size) - (self._member / self._widths) @ self._member.T
        variances = 1 / self._first_row_precisions
        variances[0] = variances[self._observed] = 0.0
        square = np.full(self.size + more, self.own.size)
        square[self._observed] = np.flatnonzero(self._observed_squares)
        square[self.size : -1] = np.arange(self.own.size)
        squares = np.pad(self.square_covariance, (0, 1))
        means = np.pad(centre * variances, (0, more)) + squares[np.ix_(square, square)]
        return np.append(self._known, np.zeros(more)), np.pad(centre, (0, more)), means

    def covariance(self, i: Places, j: Places, k: Places, m: Places) -> Floats:
        rows, columns, variances = self._numbers
        known, centre, means = self._coordinates
        one, other = self.layout.number_of[i, j], self.layout.number_of[k, m]
        pairs = (rows[one], columns[one]), (rows[other], columns[other])
        (a, b), (c, d) = pairs
        own = variances[one]
        total = own * centre[a, c] * centre[b, d] if np.any(own) else np.zeros(())
        for left, right in ((0, 0), (0, 1), (1, 0), (1, 1)):  # u of one coordinate times the mean of the other
            weight = known[pairs[0][left]] * known[pairs[1][right]]
            if np.any(weight):
                total = total + weight * means[pairs[0][1 - left], pairs[1][1 - right]]
        size = known[a] * known[b] * known[c] * known[d] * (self.size_variance * self.size_kept)
        return np.asarray((total + size) * self.merged)

    # Draws

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        noise = replace(self.noise, groups=count)
        drawn = noise.combine(self._sides, rng.standard_normal(noise.count)).reshape(count, self.size, self.size)
        sizes = self.sizes(drawn) * np.sqrt(self.size_kept)
        return np.asarray(self.adjust(drawn, sizes) * np.sqrt(self.merged))


def repeat_entries(layout: Any, matrix: Floats) -> Floats:
    """Moments, (..., p, p), with numbers that occur several times written to all their places, and zeros."""
    (rows, columns), where = layout.representatives, layout.number_of
    return np.where(where >= 0, matrix[..., rows, columns][..., np.maximum(where, 0)], 0.0)


def robust_spread(draws: Floats) -> Floats:
    """Standard deviation over the first axis, after moving draws that are far from the median nearer to it."""
    low, middle, high = np.quantile(draws, [0.25, 0.5, 0.75], axis=0)
    reach = _FAR * (high - low) / 2 / _QUARTILE
    return np.asarray(np.clip(draws, middle - reach, middle + reach).std(axis=0))
