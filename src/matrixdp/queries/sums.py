"""Exact sums of products at the speed of BLAS, over records or over people, in any order and partition.

The rounding errors of floating-point sums depend on the order of summation and can exceed what a sensitivity allows
for (Casacuberta et al. 2022). Sums of integers below 2^53 in float64 are exact: so is every partial sum of ``Q'Q``, in
any order, with any number of threads. The running sum is moved to int64 before it could leave that range.

Where people count, each row has a weight that depends on how many rows its person has. Rows of people with the same
number of rows have the same weight. Their products are summed without weights, exactly as for records, and the sum is
multiplied by the weight afterwards, in integers of three limbs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.device import is_device_block
from matrixdp.domain import Bounds, Person
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.queries.cuda_sums import DeviceGrid, device_records, moment_on_device
from matrixdp.records import is_columnar, split_rows, to_array, to_columns
from matrixdp.types import Floats

_EXACT = 1 << 53
_INT64 = (1 << 63) - 1
BITS = 40  # of the weight of one row
UNIT = 1 << BITS
_LIMB = 22
_MASK = (1 << _LIMB) - 1
_MOST_ENTRIES = 1 << 22  # of sums that wait for their weight
_BLOCK = 1 << 19  # entries quantised at a time


class GramSum:
    """Running ``sum q q'`` over integer vectors q, exact and independent of order and partition.

    Vectors have `columns` entries of at most `limit`, whose square is at most 2^53. Exactness is verified after each
    block: diagonal entries are sums of squares, so if they are below 2^53, so were all their partial sums, and by
    Cauchy-Schwarz those of the other entries. This assumes that BLAS computes an entry as a sum of products, as all
    implementations do.
    """

    def __init__(self, columns: int, *, limit: int) -> None:
        if not 0 < limit * limit <= _EXACT:
            raise ParameterError(f"limit must be from 1 to 2^26, got {show(limit)} instead.")
        self.columns = columns
        self.limit = limit
        self.records = 0
        self._pending = 0
        self._floats: Any = 0.0  # of the pending records, of shape (columns, columns)
        self._total = np.zeros((columns, columns), np.int64)

    def add(self, block: Floats, counts: None = None) -> None:
        """Add the records of a contiguous block of shape (rows, columns), integers of at most `limit`."""
        if block.ndim != 2 or block.shape[1] != self.columns:
            raise ParameterError(f"block must have shape (rows, {self.columns}), got {block.shape} instead.")
        step = _EXACT // self.limit**2 - 1 or 1
        for start in range(0, block.shape[0], step):
            piece = block[start : start + step]
            self._check(self.records + len(piece))
            if (self._pending + len(piece)) * self.limit**2 >= _EXACT:
                self._flush()
            self._floats += piece.T @ piece  # NumPy calls syrk of BLAS and releases the GIL
            if not (np.diagonal(self._floats) < _EXACT).all():  # NaN fails, too
                raise DataError("records must be integers within the limit, got NaN or a larger number instead.")
            self._pending += len(piece)
            self.records += len(piece)

    def add_sum(self, total: NDArray[np.int64], records: int) -> None:
        """Add an exact sum over further records that was computed elsewhere, of shape (columns, columns)."""
        self._flush()
        self._check(self.records + records)
        self._total += total
        self.records += records

    def merge(self, other: GramSum) -> None:
        """Add another sum with the same columns and limit."""
        if (other.columns, other.limit) != (self.columns, self.limit):
            raise ParameterError("sums must have the same columns and limit to be merged.")
        self.add_sum(other.value(), other.records)

    def value(self) -> NDArray[np.int64]:
        """Return the sum so far, of shape (columns, columns)."""
        self._flush()
        return self._total.copy()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the sum without memory for floats."""
        self._flush()
        return self.__dict__

    def _flush(self) -> None:
        if self._pending:
            self._total += self._floats.astype(np.int64)
            self._floats, self._pending = 0.0, 0

    def _check(self, records: int) -> None:
        if records * self.limit**2 > _INT64:
            raise DataError(
                f"sums of more than {_INT64 // self.limit**2:,} records at this resolution do not fit into 64 bits; "
                "declare the number of records beforehand, so that a coarser resolution is chosen."
            )


class PeopleSum:
    """Running ``sum weight q q'``, weighted by each person's rows, in any order and partition; exact below 2^107."""

    def __init__(self, columns: int, *, limit: int, person: Person) -> None:
        self.columns, self.limit, self.person = columns, limit, person
        self.records = 0
        self._limbs = np.zeros((3, columns, columns), np.int64)
        self._waiting: dict[int, GramSum] = {}

    def add(self, block: Floats, counts: NDArray[np.int64]) -> None:
        """Add rows of integers of at most `limit`, of people with `counts` rows; those with 0 are left out."""
        for count, places in rows_by_count(counts):
            if isinstance(places, slice) or block.flags.c_contiguous:
                piece = block[places]
            else:
                piece = np.take(block.T, places, axis=1).T  # along its contiguous axis, several times faster
            step = _EXACT // self.limit**2
            for start in range(0, len(piece), step):
                if count not in self._waiting:
                    if len(self._waiting) * self.columns**2 > _MOST_ENTRIES:
                        self.limbs()
                    self._waiting[count] = GramSum(self.columns, limit=self.limit)
                self._waiting[count].add(piece[start : start + step])
                if self._waiting[count].records > step:
                    self._weigh(count)
            self.records += len(piece)

    def add_public(self, weight: int, places: Sequence[int] = (0,)) -> None:
        """Add a public record with `limit` in places of the constant; its weight, at least 0, is in units."""
        amount, where = weight * self.limit**2, np.ix_(places, places)
        for limb, digits in zip(
            self._limbs, (amount & _MASK, amount >> _LIMB & _MASK, amount >> 2 * _LIMB), strict=True
        ):
            limb[where] += digits
        self._carry()

    def merge(self, other: PeopleSum) -> None:
        """Add another sum with the same columns and limit."""
        self._limbs += other.limbs()
        self._carry()
        self.records += other.records

    def limbs(self) -> NDArray[np.int64]:
        """The sum in units of ``1/UNIT``: digits to the base 2^22, the last signed; (3, columns, columns)."""
        for count in list(self._waiting):
            self._weigh(count)
        return self._limbs

    def value(self) -> Floats:
        """The sum so far, of shape (columns, columns), rounded once up to 2^-20; like an int64 if it is one."""
        low, middle, high = self.limbs()
        rest = middle << _LIMB | low  # below 2^44
        whole = (high << 2 * _LIMB - BITS) + (rest >> BITS)
        fraction = (rest & (UNIT - 1)) * 2.0**-BITS
        return np.asarray((whole >> 31) * 2.0**31 + ((whole & (2**31 - 1)) + fraction))

    def _weigh(self, count: int) -> None:
        """Add the products of the rows of people with this number of rows, times their weight of at most `UNIT`."""
        weight, matrix = int(self.person.weights(np.array([count]), UNIT)[0]), self._waiting.pop(count).value()
        low, middle, high = self._limbs
        low += (matrix & _MASK) * weight
        middle += (matrix >> _LIMB & _MASK) * weight
        high += (matrix >> 2 * _LIMB) * weight
        self._carry()

    def _carry(self) -> None:
        low, middle, high = self._limbs
        middle += low >> _LIMB
        low &= _MASK
        high += middle >> _LIMB
        middle &= _MASK

    def __getstate__(self) -> dict[str, object]:
        self.limbs()
        return self.__dict__


def sorted_runs(keys: NDArray[np.integer[Any]]) -> tuple[NDArray[np.intp], list[tuple[int, int, int]]]:
    """The stable order of rows by their keys, and each key with its first place and the place after its last."""
    few = bool(len(keys)) and int(keys.max()) < 1 << 16  # small integers are sorted in linear time
    order = np.argsort(keys.astype(np.uint16) if few else keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1)).tolist()  # keys are not negative
    return order, [(int(ordered[a]), a, b) for a, b in zip(starts, [*starts[1:], len(keys)], strict=False)]


def rows_by_count(counts: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.intp] | slice]]:
    """Each count with the places of its rows, in their order; counts of 0 are left out."""
    if len(counts) and counts.min() == counts.max():
        return iter([(int(counts[0]), slice(None))] if counts[0] else [])
    order, runs = sorted_runs(counts)
    return ((count, order[first:last]) for count, first, last in runs if count)


def weight_left(counts: NDArray[np.int64], people: NDArray[np.int64], person: Person) -> int:
    """The weight, in units, that rounding takes from people of weight one, `people` of whom have `counts` rows each."""
    left = UNIT - counts * person.weights(counts, UNIT)
    return sum(a * b for a, b in zip(left.tolist(), people.tolist(), strict=True))


def sum_levels(records: int) -> int:
    """Grid steps from the midpoint to a bound: as many as exact int64 sums of products allow, from 2^7 to 2^19."""
    spare = (62 - math.ceil(math.log2(2 * records))) // 2
    return 1 << min(19, max(7, spare))


def start_sum(columns: int, records: int, person: Person | None) -> Any:
    """A `GramSum` or, of the rows of people, a `PeopleSum` without records, for a public number of all of them."""
    if person is None:
        return GramSum(columns, limit=sum_levels(records))
    return PeopleSum(columns, limit=sum_levels(records), person=person)


@dataclass(frozen=True, eq=False)
class MomentTask:
    """Sums ``(1, x)(1, x)'`` over one part of the records: the same in a thread, in a worker and on another machine."""

    bounds: Bounds  # to which records are clipped
    box: Bounds  # on whose grid they are put
    records: int  # the public number of all of them
    clip: bool
    missing: str
    person: Person | None = None  # rows are then weighted by how many the person has, which blocks say
    texts: ClassVar[Sequence[str]] = ()  # columns of strings

    @property
    def on_device(self) -> bool:
        """True if blocks may be on a GPU."""
        return self.person is None

    def start(self) -> Any:
        """A sum without records."""
        return start_sum(self.bounds.size + 1, self.records, self.person)

    def __call__(self, number: int, blocks: Iterable[Any]) -> GramSum | PeopleSum:
        """The part's exact sum, of a few kilobytes."""
        total: GramSum | PeopleSum = self.start()
        bounds = self.bounds
        for block in blocks:
            if isinstance(total, GramSum) and is_device_block(block):
                grid = DeviceGrid(bounds, self.box, total.limit, self.clip, self.missing)
                records = device_records(block, bounds.size, bounds.names)
                total.add_sum(moment_on_device(records, grid), len(records))
                continue
            data, counts = split_rows(block)
            # Lengths of records are sums, whose bits must not depend on the layout.
            read = to_columns if is_columnar(data) and self.box.radius is None else to_array
            self.add(total, read(data, bounds.size, bounds.names), counts)
        return total

    def add(self, total: Any, data: Any, counts: NDArray[np.int64] | None = None) -> None:
        """Add records of shape (rows, features), or columns of shape (rows,), of people with `counts` rows."""
        by_row, m = isinstance(data, np.ndarray), self.bounds.size
        rows = len(data if by_row else data[0])
        step = max(256, _BLOCK // m // 256 * 256)
        buffer, z = (np.empty((min(rows, step), width), order="C" if by_row else "F") for width in (m, m + 1))
        z[:, 0] = total.limit
        for start in range(0, rows, step):
            part, here = slice(start, start + step), slice(min(step, rows - start))
            if by_row:  # apart from the constant: several times faster to work on than part of each row
                self._quantise(data[part], total.limit, out=buffer[here])
                z[here, 1:] = buffer[here]
            else:
                for row, column in zip(buffer.T, data, strict=True):
                    row[here] = column[part]
                self._quantise(buffer[here], total.limit, out=z[here, 1:])
            total.add(z[here], None if counts is None else counts[part])

    def _quantise(self, block: NDArray[np.generic], grid: int, out: Floats) -> None:
        bounds, moved = self.bounds, self.box is not self.bounds
        if moved:
            block = np.clip(bounds.checked(block, clip=self.clip, missing=self.missing), bounds.lower, bounds.upper)
        self.box.quantise(block, grid, out=out, clip=self.clip or moved, missing=self.missing)
