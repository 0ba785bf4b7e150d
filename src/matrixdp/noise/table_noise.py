"""Noise for the moment matrix of a table: each distinct number is drawn once, and squares are more precise.

The vector z of a record holds a constant 1, for each number its value (with an indicator of whether it is there, if it
may be missing), and for each category one indicator per level. Some entries of ``z z'`` are the same number, and some
are always zero (`docs/sensitivity-tables.md`, "Tables").
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matrixdp.display import short_repr
from matrixdp.errors import ParameterError
from matrixdp.noise.matrix import MatrixGaussian
from matrixdp.noise.structure import SquaresTwice
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats

CONSTANT, OBSERVED, VALUE, LEVEL = "constant", "observed", "value", "level"
_KINDS = (CONSTANT, OBSERVED, VALUE, LEVEL)
_ZERO = -1


@builtin_kind
@dataclass(frozen=True)
class TableLayout:
    """The coordinates of the vector z of a record."""

    kinds: tuple[str, ...]  # of each coordinate: 'constant' (the first one), 'observed', 'value' or 'level'
    columns: tuple[int, ...]  # the number of the column that each belongs to; 0 for the constant

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if len(self.kinds) != len(self.columns) or self.kinds[:1] != (CONSTANT,) or not set(self.kinds) <= set(_KINDS):
            raise ParameterError("the layout of a table must have a kind and a column for each coordinate.")

    @property
    def size(self) -> int:
        """Length of z."""
        return len(self.kinds)

    def of_kind(self, *kinds: str) -> NDArray[np.intp]:
        """Positions of the coordinates of these kinds."""
        return np.flatnonzero([kind in kinds for kind in self.kinds])

    @cached_property
    def number_of(self) -> NDArray[np.intp]:
        """For each entry of ``z z'`` the position of its number among the distinct ones, or -1 for zero; (p, p)."""
        p = self.size
        rows, columns = np.indices((p, p))
        first, last = np.minimum(rows, columns), np.maximum(rows, columns)
        kinds, owners = np.array(self.kinds), np.array(self.columns)
        same = (owners[first] == owners[last]) & (kinds[first] != CONSTANT)
        zero = same & (kinds[first] == LEVEL) & (first != last)
        # Other products within a column repeat the number beside the constant.
        repeated = same & ~zero & ~((kinds[first] == VALUE) & (kinds[last] == VALUE))
        first = np.where(repeated, 0, first)
        keys = np.where(zero, _ZERO, first * p + last)
        distinct = np.unique(keys[keys >= 0])
        return np.where(zero, _ZERO, np.searchsorted(distinct, keys))

    @cached_property
    def representatives(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Row and column of each distinct number."""
        numbers, where = np.unique(self.number_of, return_index=True)
        rows, columns = np.divmod(where[numbers >= 0], self.size)
        return rows, columns

    @cached_property
    def squares(self) -> NDArray[np.intp]:
        """Positions among the distinct numbers of the squares of the 'observed' and 'value' coordinates."""
        own = self.of_kind(OBSERVED, VALUE)
        return self.number_of[own, own]


@dataclass(frozen=True)
class Place:
    """The place of a column in z."""

    value: int  # position of a number's value, or of the first level of a category
    observed: int  # of the indicator of whether the value is there; of the constant where it always is
    levels: tuple[str, ...] = ()  # names of a category's levels


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class TableNoise(SquaresTwice):
    """Independent noise on each distinct number of one moment matrix per group, one below the other.

    The precision of a number is the sum of ``scales_i scales_j`` over its copies (i, j), `scales` of shape (p,). The
    squares of indicators and values are measured once more, as `Squares` does, in each group, with `strengths` of shape
    (q,) in units of the scales, and `shift`. `counted` says whether the entry (0, 0), the share of the records in the
    group, is private.

    Below all groups there may be `bins` rows, of which the first entry alone is measured, with the precision
    `bin_precision`: shares of the records in the bins of histograms.
    """

    layout: TableLayout
    groups: int
    counted: bool
    scales: Floats
    strengths: Floats
    shift: float
    bins: int = field(default=0, metadata={"absent": 0})
    bin_precision: float = field(default=0.0, metadata={"absent": 0.0})

    def __post_init__(self) -> None:
        for values, size in ((self.scales, self.layout.size), (self.strengths, self.layout.squares.size)):
            if not isinstance(values, np.ndarray) or values.shape != (size,):
                raise ParameterError(f"scales and strengths of a table's noise must be vectors, one of size {size}.")
            if not (np.isfinite(values) & (values > 0)).all():
                raise ParameterError("scales and strengths of a table's noise must be finite and positive.")
        if type(self.shift) is not float or not 0 <= self.shift < np.inf:
            raise ParameterError("the shift of a table's noise must be a finite number that is not negative.")
        if type(self.bins) is not int or self.bins < 0 or not 0 < (self.bin_precision if self.bins else 1) < np.inf:
            raise ParameterError("bins of a table's noise must have a finite and positive precision.")

    @property
    def weights(self) -> Floats:
        """Scales of the coordinates whose squares are measured once more, of shape (q,)."""
        return self.scales[self.layout.of_kind(OBSERVED, VALUE)]

    @cached_property
    def precisions(self) -> Floats:
        """Precision of each distinct number without the additional one of squares, of shape (n,)."""
        where = self.layout.number_of
        products = np.multiply.outer(self.scales, self.scales)
        return np.asarray(np.bincount(where[where >= 0], products[where >= 0]), np.float64)

    @property
    def count(self) -> int:
        """How many numbers are drawn."""
        return self.groups * (self.precisions.size - (not self.counted) + self.strengths.size) + self.bins

    def fits(self, shape: tuple[int, int]) -> bool:
        return shape == (self.groups * self.layout.size + self.bins, self.layout.size)

    def scaled(self, by: float) -> TableNoise:
        return replace(self, scales=self.scales / by, bin_precision=self.bin_precision / by**2)

    def whiten(self, sides: MatrixGaussian, answer: Floats) -> Floats:
        return self._whiten(answer, largest=False)

    def _whiten(self, answer: Floats, *, largest: bool) -> Floats:
        p, (rows, columns) = self.layout.size, self.layout.representatives
        numbers = np.ascontiguousarray(answer[: self.groups * p].reshape(self.groups, p, p)[:, rows, columns])
        squares = self._measure(self.weights * numbers[:, self.layout.squares], largest=largest)
        moments = np.concatenate([(np.sqrt(self.precisions) * numbers)[:, self._drawn], squares], axis=1)
        bins = np.sqrt(self.bin_precision) * answer[len(answer) - self.bins :, 0]
        return np.concatenate([moments.ravel(), bins])

    def combine(self, sides: MatrixGaussian, coordinates: Floats) -> Floats:
        """The least squares estimate, entry by entry; for squares with what both measurements tell."""
        values, bins = coordinates[: coordinates.size - self.bins], coordinates[coordinates.size - self.bins :]
        values = values.reshape(self.groups, -1)
        q = self.strengths.size
        numbers = np.zeros((self.groups, self.precisions.size))
        numbers[:, self._drawn] = values[:, : values.shape[1] - q] / np.sqrt(self.precisions[self._drawn])
        if q:
            places, pull = self.layout.squares, self._pull(values[:, -q:])
            pull += self.precisions[places] / self.weights * numbers[:, places]
            inverse, common = self._square_terms
            numbers[:, places] = (pull * inverse + common * (pull * inverse).sum(axis=1, keepdims=True)) / self.weights
        return self._spread_out(numbers, bins / np.sqrt(self.bin_precision) if self.bins else bins)

    def largest(self, sides: MatrixGaussian, magnitude: Floats) -> Floats:
        bound = np.broadcast_to(magnitude, (self.groups * self.layout.size + self.bins, self.layout.size))
        return self._whiten(bound, largest=True)

    def variances(self, sides: MatrixGaussian) -> Floats:
        numbers = 1 / self.precisions
        if not self.counted:
            numbers[0] = 0.0
        if self.strengths.size:
            numbers[self.layout.squares] = np.diagonal(self.square_covariance)
        bins = np.full(self.bins, 1 / self.bin_precision if self.bins else 0.0)
        return self._spread_out(np.broadcast_to(numbers, (self.groups, numbers.size)), bins)

    @cached_property
    def square_covariance(self) -> Floats:
        """Covariance of the noise in the squares of one group, of shape (q, q)."""
        inverse, common = self._square_terms
        covariance = np.diag(inverse) + np.multiply.outer(common, inverse)
        return np.asarray(covariance / self.weights / self.weights[:, None])

    @property
    def _square_terms(self) -> tuple[Floats, Floats]:
        """Vectors d and f such that the covariance of ``weights * squares`` is ``diag(d) + f d'``."""
        inverse = 1 / (self.precisions[self.layout.squares] / self.weights**2 + self.strengths)
        return inverse, self.loss / (1 - self.loss * float(inverse.sum())) * inverse

    @property
    def _drawn(self) -> slice:
        """The distinct numbers that are private: all, or all but the first, which is the count."""
        return slice(0 if self.counted else 1, None)

    def _spread_out(self, numbers: Floats, bins: Floats) -> Floats:
        """Stacked matrices from their distinct numbers, and rows of bins below them."""
        where, p = self.layout.number_of, self.layout.size
        full = np.where(where >= 0, numbers[:, np.maximum(where, 0)], 0.0).reshape(-1, p)
        return np.concatenate([full, np.pad(bins[:, None], ((0, 0), (0, p - 1)))]) if self.bins else full
