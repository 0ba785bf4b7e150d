"""Means, spreads, covariances and correlations of the numbers of a table for many releases at once.

The same formulas as in `answers.tables`, one release there and a stack of them here, with the same rules for what noise
hides. A block holds the entries of the moments for the constant, the values and their indicators; releases are along
the last axis, where arrays are contiguous.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.moments import LARGEST_BAR
from matrixdp.answers.table_view import LEAST_SIZE, TableView
from matrixdp.answers.tables import LEAST_VARIANCE
from matrixdp.noise.table_noise import OBSERVED, VALUE
from matrixdp.types import Floats


class _Covariances(NamedTuple):
    """Covariances of all pairs and what they are computed from, of shape (n, n, k)."""

    value: Floats
    known: NDArray[np.bool_]
    size: Floats
    first: Floats  # mean of the row's number over the records that have both
    by_size: Floats  # derivative by the share of the records that have both


class NumberBlock:
    """The numbers of a view of a table: where they are in a block, and the variances of the noise there.

    Attributes
    ----------
    chosen : int array of shape (m,)
        Coordinates of the block: the constant, then values and indicators.
    """

    def __init__(self, view: TableView) -> None:
        law, merged = view.consistent, view.merged
        layout = law.layout
        self.chosen = np.append(0, layout.of_kind(OBSERVED, VALUE))
        position = {int(place): k for k, place in enumerate(self.chosen)}
        places = [view.number(name) for name in view.numbers]
        self._x = np.array([position[place.value] for place in places], np.intp)
        self._r = np.array([position[place.observed] for place in places], np.intp)
        self._own = np.arange(len(places))
        where, m = layout.number_of[np.ix_(self.chosen, self.chosen)], self.chosen.size
        self._squares = np.zeros((m, m))  # covariance of the noise in squares
        self._squares[1:, 1:] = law.square_covariance * merged
        variances = merged / law.noise.precisions[where]
        variances[0] = variances[:, 0] = merged / law.first_row_precisions[self.chosen]
        there = np.flatnonzero(np.isin(self.chosen, law.observed))
        variances[0, there] = variances[there, 0] = np.diagonal(self._squares)[there]
        variances[0, 0] = law.size_variance * view.size_kept * merged
        rows = np.arange(1, m)
        variances[rows, rows] = np.diagonal(self._squares)[1:]
        own = self._r > 0
        variances[self._x[own], self._r[own]] = variances[self._r[own], self._x[own]] = variances[0, self._x[own]]
        self._variances = variances

    def without_noise(self) -> NumberBlock:
        """The same for blocks that have no noise."""
        exact = copy(self)
        exact._variances, exact._squares = np.zeros_like(self._variances), np.zeros_like(self._squares)
        return exact

    def find_known(self, block: Floats) -> NDArray[np.bool_]:
        """Whether the number of records that have both values stands out from its noise, of shape (n, n, k)."""
        r = self._r
        return np.asarray(block[r[:, None], r] > LEAST_SIZE * np.sqrt(self._variances[r[:, None], r])[:, :, None])

    def summarise(self, block: Floats) -> Floats:
        """Mean less the middle of the bounds, standard deviation and share observed, of shape (n, 3, k); NaN if hidden.

        Parameters
        ----------
        block : float64 array of shape (m, m, k)
        """
        x, r, v = self._x, self._r, self._variances
        size, whole = block[0, r], block[0, 0]
        known = size > LEAST_SIZE * np.sqrt(v[0, r])[:, None]
        share = np.where(whole > LEAST_SIZE * np.sqrt(v[0, 0]), size / whole, np.nan)
        square = block[x, x] / size - (block[x, r] / size) ** 2 + v[x, r][:, None] / size**2
        spread = np.sqrt(np.where(known & (square > 0), square, np.nan))
        mean = np.where(known, block[0, x] / size, np.nan)
        return np.stack([mean, spread, np.where((r > 0)[:, None], share, 1.0)], axis=1)

    def find_covariances(self, block: Floats) -> Floats:
        """Covariances of all pairs, of shape (n, n, k); NaN where too few records have both."""
        found = self._covary(block)
        return np.where(found.known, found.value, np.nan)

    def find_correlations(self, block: Floats) -> tuple[Floats, Floats]:
        """Correlations of all pairs and their error bars, of shape (n, n, k); NaN where noise hides them."""
        found, own = self._covary(block), self._own
        variance = found.value[own, own]
        firm = found.known[own, own] & (variance > LEAST_VARIANCE * np.sqrt(np.maximum(self._vary_squares(found), 0.0)))
        scale = np.sqrt(np.where(firm, variance, np.nan))
        scale = scale[:, None] * scale[None, :]
        value = found.value / scale
        std = np.sqrt(np.maximum(self._vary_correlations(found, value, scale), 0.0))
        std[own, own] = 0.0
        hidden = ~found.known | ~(std < LARGEST_BAR) | ~(np.abs(value) <= 1 + 2 * std + 1e-9)
        return np.where(hidden, np.nan, np.clip(value, -1.0, 1.0)), np.where(hidden, np.nan, std)

    def _covary(self, block: Floats) -> _Covariances:
        x, r, own = self._x, self._r, self._own
        size = block[r[:, None], r]
        product, first = block[x[:, None], x] / size, block[x[:, None], r] / size
        squared = first * first.swapaxes(0, 1)
        value = product - squared
        value[own, own] += self._variances[x, r][:, None] / size[own, own] ** 2
        return _Covariances(value, self.find_known(block), size, first, (2 * squared - product) / size)

    def _own_slopes(self, found: _Covariances) -> tuple[Floats, Floats, Floats]:
        """Derivatives of variances by the square, by the mean and by the share that is there, of shape (n, k)."""
        own = self._own
        size = found.size[own, own]
        return 1 / size, -2 * found.first[own, own] / size, found.by_size[own, own]

    def _vary_squares(self, found: _Covariances) -> Floats:
        """Variance of the noise in each variance, of shape (n, k)."""
        x, r, v = self._x, self._r, self._variances
        by_square, by_mean, by_size = self._own_slopes(found)
        total = by_square**2 * v[x, x][:, None] + by_mean**2 * v[x, r][:, None]
        together = by_square * self._squares[x, r][:, None]  # the indicator's square is among the squares
        return np.asarray(total + by_size * (by_size * v[r, r][:, None] + 2 * together))

    def _vary_correlations(self, found: _Covariances, value: Floats, scale: Floats) -> Floats:
        """Variance of the noise in each correlation, of shape (n, n, k).

        Products are independent of everything else; means, squares and the share of all records enter the covariance
        and both variances. Parts of the column's number are those of the row's with axes exchanged.
        """
        x, r, v = self._x, self._r, self._variances
        gone = (r > 0).astype(float)  # whether the value may be missing
        here, there = gone[:, None, None], gone[None, :, None]
        by_square, by_mean, by_size = self._own_slopes(found)
        half = value / (2 * found.value[self._own, self._own])[:, None]
        unit = 1 / found.size / scale
        by_first = -found.first.swapaxes(0, 1) * unit  # by the sum of the row's number over records that have both
        by_both = found.by_size / scale
        total = by_first**2 * (there * v[x[:, None], r][:, :, None])
        mean = (1 - there) * by_first - half * by_mean[:, None]
        total += mean**2 * v[0, x][:, None, None]
        total += total.swapaxes(0, 1).copy()
        total += unit**2 * v[x[:, None], x][:, :, None] + by_both**2 * (here * there * v[r[:, None], r][:, :, None])
        by_all = (1 - here) * half * by_size[:, None]
        by_all = (1 - here) * (1 - there) * by_both - by_all - by_all.swapaxes(0, 1)
        total += by_all**2 * v[0, 0]
        observed = here * ((1 - there) * by_both - half * by_size[:, None])
        return np.asarray(total + self._vary_all_squares(-half * by_square[:, None], observed))

    def _vary_all_squares(self, by_value: Floats, by_observed: Floats) -> Floats:
        """Variance of the noise in the squares of two values and their indicators, for derivatives by the row's."""
        x, r, squares = self._x, self._r, self._squares
        own = by_value * (by_value * squares[x, x][:, None, None] + 2 * by_observed * squares[x, r][:, None, None])
        own += by_observed**2 * squares[r, r][:, None, None]
        column_value, column_observed = by_value.swapaxes(0, 1), by_observed.swapaxes(0, 1)
        both = by_value * column_value * squares[x[:, None], x][:, :, None]
        both += by_observed * column_observed * squares[r[:, None], r][:, :, None]
        mixed = by_value * column_observed * squares[x[:, None], r][:, :, None]
        return np.asarray(own + own.swapaxes(0, 1) + 2 * (both + mixed + mixed.swapaxes(0, 1)))
