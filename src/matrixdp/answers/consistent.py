"""The moments of a table, adjusted so that levels of a category add up, by least squares in the law of the noise.

The indicators of the levels of a category sum to one. So a record's vector is ``z = c + u``: u is known (1 for the
constant, ``1/k`` for each of k levels, 0 for numbers), and c has the numbers and the indicators less ``1/k``. Then

    E z z' = E c c' + E c u' + u E c' + E 1 u u'.

The noise of a level is the same for all levels of a category and independent. So ``E c c'``, ``E c`` and E 1, the share
of the records, are measured independently: ``E c`` by the first row and, again, by the sum over the levels of each
category; E 1 by the first entry and by all sums of sums. Each is the mean of its measurements, weighted by their
precisions (`docs/mathematics.md`, "Levels that add up"). All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from matrixdp.noise.table_noise import LEVEL, OBSERVED, VALUE, TableNoise
from matrixdp.types import Floats

Gradient = Sequence[tuple[int, int, float]]  # row, column and derivative of some entries


class ConsistentMoments:
    """Least squares estimates of the moments of one group, and the variances of the noise that is left in them.

    Parameters
    ----------
    noise : TableNoise

    Attributes
    ----------
    known : float64 array of shape (p,)
        The vector u.
    own, observed : int arrays
        Coordinates whose squares are measured once more, and the indicators of values among them.
    """

    def __init__(self, noise: TableNoise) -> None:
        self.noise, self.layout = noise, noise.layout
        owners = np.array(self.layout.columns)
        levels = np.array(self.layout.kinds) == LEVEL
        found, where = np.unique(owners[levels], return_inverse=True)
        self._member = np.zeros((self.layout.size, found.size))  # of shape (p, categories)
        self._member[np.flatnonzero(levels), where] = 1.0
        self._category = np.full(self.layout.size, -1)
        self._category[levels] = where
        self._widths = self._member.sum(axis=0)
        self.known = self._member @ (1 / self._widths)  # u
        self.known[0] = 1.0
        self.own = self.layout.of_kind(OBSERVED, VALUE)
        self.observed = self.layout.of_kind(OBSERVED)
        self.observed_squares = np.isin(self.own, self.observed)

    def adjust(self, matrix: Floats, size: float) -> Floats:
        """The adjusted moments, of shape (p, p), for a share `size` of the records."""
        u = self.known
        sums = (self._sum_precisions * (self._member.T @ matrix)).sum(axis=0)
        squares = self._squares(matrix, sums)
        first = (self._first_precisions * matrix[0] + sums) / self.first_row_precisions
        first[self.observed] = squares[self.observed_squares]
        first[0] = 0.0
        first = self.centre(first)  # the mean of c
        centred = self.centre(self.centre(matrix).T).T
        centred[0] = centred[:, 0] = 0.0
        result = centred + np.multiply.outer(u, first) + np.multiply.outer(first, u) + size * np.multiply.outer(u, u)
        result[self.own, self.own] = squares
        return self._repeat(result)

    def sizes(self, stacked: Floats) -> Floats:
        """Share of the records in each group, of shape (groups,), from matrices of shape (groups, p, p)."""
        return np.asarray(np.tensordot(stacked, self._size_weights, axes=([1, 2], [0, 1])))

    @cached_property
    def size_variance(self) -> float:
        """Variance of the noise in the share of the records."""
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
    def _size_weights(self) -> Floats:
        parts = np.concatenate([np.eye(self.layout.size, 1), self._member], axis=1)
        return np.asarray(parts @ (self._size_precisions * self.size_variance) @ parts.T)

    @cached_property
    def _level_scales(self) -> Floats:
        """Scale of the levels of each category, of shape (categories,)."""
        return np.asarray(self.noise.scales @ self._member / self._widths)

    @cached_property
    def _sum_precisions(self) -> Floats:
        """Precision of the sum over the levels of each category, for each coordinate, of shape (categories, p)."""
        precisions = 2 * np.multiply.outer(self._level_scales / self._widths, self.noise.scales)
        precisions[:, 0] = 0.0
        return np.where(self._member.T > 0, 0.0, precisions)

    @cached_property
    def _first_precisions(self) -> Floats:
        """Precision of the first row alone, of shape (p,); the indicators of values are among the squares."""
        precisions = self.noise.precisions[self.layout.number_of[0]]
        precisions[self.observed] = 0.0
        return np.asarray(precisions)

    @cached_property
    def first_row_precisions(self) -> Floats:
        """Precision of each entry of the first row with all sums, of shape (p,)."""
        precisions = self._first_precisions + self._sum_precisions.sum(axis=0)
        return np.where(precisions > 0, precisions, 1.0)  # of an indicator, where it is not used

    def _squares(self, matrix: Floats, sums: Floats) -> Floats:
        """Squares of indicators and values, of shape (q,); weighted `sums` over levels measure indicators again."""
        squares, weights = matrix[self.own, self.own], self._again
        pull = np.where(self.observed_squares, sums[self.own], 0.0) - weights * squares
        return np.asarray(squares + self.square_covariance @ pull)

    @cached_property
    def _again(self) -> Floats:
        """Precision with which sums over levels measure each square again, of shape (q,)."""
        return np.where(self.observed_squares, self._sum_precisions.sum(axis=0)[self.own], 0.0)

    @cached_property
    def square_covariance(self) -> Floats:
        """Covariance of the noise in the adjusted squares, of shape (q, q)."""
        before, weights = self.noise.square_covariance, self._again
        again = weights > 0
        columns = before[:, again]  # Woodbury's identity
        inner = np.diag(1 / weights[again]) + before[np.ix_(again, again)]
        return np.asarray(before - columns @ np.linalg.solve(inner, columns.T))

    def centre(self, array: Floats) -> Floats:
        """Subtract the mean over the levels of each category, along the first axis."""
        return np.asarray(array - self._member @ ((self._member / self._widths).T @ array))

    def _repeat(self, matrix: Floats) -> Floats:
        """Write numbers that occur several times to all their places, and zeros."""
        rows, columns = self.layout.representatives
        where = self.layout.number_of
        return np.where(where >= 0, matrix[rows, columns][np.maximum(where, 0)], 0.0)

    def variance(self, gradient: Gradient, size_variance: float) -> float:
        """Variance of the noise in a function of the adjusted entries, to first order.

        Parameters
        ----------
        gradient : sequence of (row, column, derivative)
        size_variance : float
            Of the share of the records.
        """
        u, squares = self.known, self._square_places
        by_size = 0.0
        means: dict[int, float] = {}
        by_square: dict[int, float] = {}
        products: dict[tuple[int, int], dict[tuple[int, int], float]] = {}
        rows, columns = self.layout.representatives
        for i, j, derivative in gradient:
            number = int(self.layout.number_of[i, j])
            if number < 0:
                continue
            i, j = int(rows[number]), int(columns[number])
            if number in squares and i:
                by_square[squares[number]] = by_square.get(squares[number], 0.0) + derivative
                continue
            by_size += derivative * u[i] * u[j]
            for one, other in ((i, j), (j, i)):
                if u[other]:
                    means[one] = means.get(one, 0.0) + derivative * u[other]
            if i:
                cells = products.setdefault((self._block(i), self._block(j)), {})
                cells[i, j] = cells.get((i, j), 0.0) + derivative
        for place in [place for place in means if int(self.layout.number_of[0, place]) in squares]:
            number = squares[int(self.layout.number_of[0, place])]
            by_square[number] = by_square.get(number, 0.0) + means.pop(place)
        total = by_size**2 * size_variance + self._variance_of_means(means)
        total += sum(self._variance_of_products(cells) for cells in products.values())
        if by_square:
            places, derivatives = list(by_square), np.array(list(by_square.values()))
            total += float(derivatives @ self.square_covariance[np.ix_(places, places)] @ derivatives)
        return max(total, 0.0)

    @cached_property
    def _square_places(self) -> dict[int, int]:
        """Position among the squares of a distinct number that is one."""
        return {int(number): k for k, number in enumerate(self.layout.squares)}

    def _block(self, place: int) -> int:
        """The category of a level, or a number of its own for any other coordinate."""
        category = int(self._category[place])
        return -1 - place if category < 0 else category

    def _variance_of_means(self, derivatives: dict[int, float]) -> float:
        total = 0.0
        sums: dict[int, tuple[float, float]] = {}
        for place, derivative in derivatives.items():
            if not place:
                continue
            variance = 1 / self.first_row_precisions[place]
            total += derivative**2 * variance
            category = int(self._category[place])
            if category >= 0:
                sums[category] = (sums.get(category, (0.0, 0.0))[0] + derivative, variance)
        return total - sum(value**2 * variance / float(self._widths[c]) for c, (value, variance) in sums.items())

    def _variance_of_products(self, cells: dict[tuple[int, int], float]) -> float:
        """Of derivatives by products of two columns: those by levels count less their mean."""
        i, j = next(iter(cells))
        variance = 1 / self.noise.precisions[self.layout.number_of[i, j]]
        wide = [1.0 if self._category[place] < 0 else self._widths[self._category[place]] for place in (i, j)]
        of_level = [self._category[place] >= 0 for place in (i, j)]
        rows: dict[int, float] = {}
        columns: dict[int, float] = {}
        square = 0.0
        for (i, j), derivative in cells.items():
            square += derivative**2
            rows[i] = rows.get(i, 0.0) + derivative
            columns[j] = columns.get(j, 0.0) + derivative
        if of_level[1]:
            square -= sum(value**2 for value in rows.values()) / wide[1]
        if of_level[0]:
            square -= sum(value**2 for value in columns.values()) / wide[0]
        if all(of_level):
            square += sum(rows.values()) ** 2 / (wide[0] * wide[1])
        return float(variance * square)
