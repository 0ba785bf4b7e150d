"""Private records on a grid, with exact counts, excesses and moments, wherever the records are.

Records in memory or on a GPU are rounded to the grid once, others again for each answer. All answers are sums of
integers over blocks of records, so they have the same bits in any order, partition and place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.adaptive.coordinates import LEVELS, Coordinates, limbs_to_digits, multiply, to_digits, to_floats
from matrixdp.device import is_device_block, load_cupy
from matrixdp.domain.bounds import Bounds, square_lengths
from matrixdp.domain.person import Person
from matrixdp.errors import ParameterError
from matrixdp.queries.cuda_sums import DeviceGrid, device_gram, device_records, padded, rows_at_a_time
from matrixdp.queries.sums import UNIT, GramSum, MomentTask, PeopleSum, sum_levels
from matrixdp.records import Records, as_records, is_out_of_core, require_rereadable, split_rows, to_array
from matrixdp.records.people import People, SameRecords, count_people
from matrixdp.types import Floats

Integers = NDArray[np.int64]
EXCESS_STEPS = 1 << 12  # grid of one record's excess; sums over 2^50 records stay below 2^63
_BLOCK = 1 << 17  # numbers per block, so that a block stays in the cache
_MOST_FEATURES = 1 << 15  # squared lengths on the grid stay below 2^53
_EPS = float(np.finfo(float).eps)


def check_features(size: int) -> None:
    """Raise for more features than the exact arithmetic allows."""
    if size > _MOST_FEATURES:
        raise ParameterError(f"bounds must be for at most {_MOST_FEATURES} features, got {size} instead.")


def grid_levels(public: int) -> int:
    """Half the number of grid steps: sums of ``(q - m)(q - m)'`` over twice as many records stay below 2^62."""
    return min(LEVELS, sum_levels(4 * public))


def may_be_outside(lengths: Floats, ball: Bounds) -> NDArray[np.bool_]:
    """Mask of the records that are outside a ball, or too close to the sphere to tell."""
    assert ball.radius is not None
    return np.asarray(lengths > ball.radius * (1 - 2 * (ball.size + 16) * _EPS))


def sum_steps(steps: NDArray[np.floating], limit: int) -> Integers:
    """``sum (1, q)(1, q)'`` of integer records q of at most `limit`, shape (n, d); int64 of shape (d + 1, d + 1)."""
    n, d = steps.shape
    gram, rows, total = GramSum(d, limit=limit), max(1, _BLOCK // d), np.zeros((d + 1, d + 1), np.int64)
    for start in range(0, n, rows):
        block = np.asarray(steps[start : start + rows], np.float64)
        total[0, 1:] += (np.ones(len(block)) @ block).astype(np.int64)  # below 2^53: exact in any order
        gram.add(block)
    total[0, 0], total[1:, 0] = n, total[0, 1:]
    if n:
        total[1:, 1:] = gram.value()
    return total


@dataclass(eq=False)
class GridBlock:
    """Some records on the grid."""

    steps: NDArray[np.float32]  # of shape (n, d)
    lengths: Floats  # of shape (n,)
    counts: Integers | None = None  # how many rows the person of each has
    sums: Integers | None = None  # of a block that is kept (`sum_steps`)


@dataclass(frozen=True, eq=False)
class RecordGrid:
    """Rounding of records to a grid, their public coordinates, and the weights of their rows.

    Privacy
    -------
    Each record is mapped independently of the others, and its weight depends on the rows of one person.
    """

    bounds: Bounds  # the box that is mapped to [-1, 1]^d, to which values outside are clipped
    levels: int  # half the number of grid steps
    coordinates: Coordinates | None = None  # None for those of [-1, 1]^d
    person: Person | None = None
    unit: int = 1  # what a record that counts once weighs in counts and excesses, where a person counts

    def block(self, array: NDArray[np.generic], counts: Integers | None = None) -> GridBlock:
        """Records of shape (n, d) on the grid."""
        n, d = len(array), self.bounds.size
        steps, rows = np.empty((n, d), np.float32), max(1, _BLOCK // d)  # exact for integers up to 2^24
        buffer = np.empty((min(rows, n), d))
        for start in range(0, n, rows):
            part = array[start : start + rows]
            steps[start : start + rows] = self.bounds.quantise(part, self.levels, out=buffer[: len(part)])
        return GridBlock(steps, self.lengths(steps), counts)

    def device_block(self, array: Any) -> GridBlock:
        """Records on a GPU, rounded and summed there, and kept in the host's memory: the same integers and sums."""
        n, d = int(array.shape[0]), self.bounds.size
        steps, cupy, width = np.empty((n, d), np.float32), load_cupy(), padded(1 + d)
        grid = DeviceGrid(self.bounds, self.bounds, self.levels, clip=True, missing="error")
        with cupy.cuda.Device(array.device.id):
            total, rows = cupy.zeros((width, width), np.int64), rows_at_a_time(width)
            for start in range(0, n, rows):
                block = grid(array[start : start + rows], width)
                total += device_gram(block, self.levels)
                steps[start : start + rows] = block[:, 1 : 1 + d].astype(np.float32).get()
            grid.check(array)
            sums = total.get()[: 1 + d, : 1 + d]
        sums[0] //= self.levels  # the constant is `levels`
        sums[0, 0], sums[1:, 0] = n, sums[0, 1:]
        return GridBlock(steps, self.lengths(steps), sums=sums)  # lengths on the host: they depend on the order

    def lengths(self, steps: NDArray[np.float32]) -> Floats:
        """Length of each record in the coordinates, of shape (n,)."""
        if self.coordinates is not None:
            return self.coordinates.lengths(steps)
        found, rows = np.empty(len(steps)), max(1, _BLOCK // self.bounds.size)
        for start in range(0, len(steps), rows):
            part = slice(start, start + rows)
            square_lengths(steps[part].astype(np.float64), out=found[part])
        return np.asarray(np.sqrt(found, out=found) / self.levels)

    def place(self, steps: NDArray[np.float32]) -> Floats:
        """Records in the coordinates, of shape (n, d)."""
        return np.asarray(steps, np.float64) / self.levels if self.coordinates is None else self.coordinates(steps)

    def weights(self, block: GridBlock, rows: NDArray[np.bool_]) -> Integers:
        """Weights of some rows, in units."""
        if self.person is None or block.counts is None:
            return np.ones(int(np.count_nonzero(rows)), np.int64)
        return self.person.weights(block.counts[rows], self.unit)

    def sums(self, block: GridBlock, rows: NDArray[np.bool_]) -> Integers | PeopleSum:
        """Sums of some rows of a block: of those, or of all less the others, whichever are fewer."""
        if self.person is not None:
            assert block.counts is not None
            origin = 0 if self.coordinates is None else self.coordinates.origin
            total = PeopleSum(self.bounds.size + 1, limit=2 * self.levels, person=self.person)
            total.add(np.column_stack([np.ones(len(block.steps)), block.steps - origin])[rows], block.counts[rows])
            return total
        if block.sums is None or 2 * np.count_nonzero(rows) < len(rows):
            return sum_steps(block.steps[rows], self.levels)
        return block.sums - sum_steps(block.steps[~rows], self.levels)

    def moment(self, sums: Integers | PeopleSum) -> Floats:
        """``sum (1, u)(1, u)'`` from exact sums on the grid, rounded once; (0, 0) of people in coordinates is zero."""
        people, d = isinstance(sums, PeopleSum), self.bounds.size
        if self.coordinates is None:
            scale = np.append(1.0, np.full(d, 1 / self.levels))  # powers of two
            return np.asarray((sums.value() if isinstance(sums, PeopleSum) else sums) * np.multiply.outer(scale, scale))
        result = np.zeros((d + 1, d + 1))
        if isinstance(sums, PeopleSum):
            limbs = sums.limbs()
            digits = limbs_to_digits(limbs[:, 0, 1:, None]), limbs_to_digits(limbs[:, 1:, 1:])
        else:
            origin, count, total = self.coordinates.origin, sums[0, 0], sums[0, 1:]
            cross = np.multiply.outer(total, origin)
            about = sums[1:, 1:] - cross - cross.T + count * np.multiply.outer(origin, origin)
            digits = to_digits((total - count * origin)[:, None]), to_digits(about)
            result[0, 0] = count
        numbers, unit = self.coordinates.numbers, self.coordinates.unit
        result[0, 1:] = result[1:, 0] = to_floats(multiply(numbers, digits[0]))[:, 0] * unit
        half = multiply(numbers, digits[1]).transpose(0, 2, 1)
        result[1:, 1:] = to_floats(multiply(numbers, half)) * np.multiply.outer(unit, unit)
        return result / UNIT if people else result


class PrivateRecords:
    """Private records u of shape (n, d): exact counts by length, and exact moments after clipping to a ball.

    `source` are Records that can be read more than once, or all of them on the grid; `count` is the number of records,
    of people, or of rows that count.

    Privacy
    -------
    Private. Each row and its length depend on one record. With people, weights are integers, rounded down, and depend
    on the rows of one person and on what is public. Those of a person sum to at most one, or to at most k where k rows
    count: a count, an excess and a moment of one person are averages over their rows, or at most k times such an
    average, and lie in the convex hull of those of single rows and of a row of zeros. A reading of other rows, in which
    a person could weigh more, is an error (`SameRecords`).
    """

    def __init__(self, source: GridBlock | Records, grid: RecordGrid, count: int) -> None:
        assert grid.coordinates is None or grid.coordinates.levels == grid.levels
        self.source, self.grid = source, grid
        self.shape, self.levels = (count, grid.bounds.size), grid.levels

    def __len__(self) -> int:
        return self.shape[0]

    def counter(self, cuts: Sequence[float]) -> Callable[[float], float]:
        """Function that returns how many records are longer than one of the cut-offs; files are read once for all."""
        unit = self.grid.unit
        if isinstance(self.source, GridBlock):
            return lambda cut: float(self._sum(partial(_count_longer, cuts=(cut,)))[0][0]) / unit
        found = dict(zip(cuts, self._sum(partial(_count_longer, cuts=tuple(cuts)))[0].tolist(), strict=True))
        return lambda cut: float(found[cut]) / unit

    def excess(self, radius: float, limit: float) -> float:
        """Sum of ``min(max(|u|^2 - radius^2, 0), limit)``, each rounded to whole steps of ``limit/EXCESS_STEPS``."""
        return float(self._sum(partial(_sum_excess, radius=radius, limit=limit))[0]) / self.grid.unit

    def moment(self, ball: Bounds, public: int) -> Floats:
        """``(1/public) sum (1, u)(1, u)'`` over records clipped to a ball about the origin, (d + 1, d + 1).

        One outside of the ball, or too close to the sphere to tell, is clipped and rounded to the ball's grid.
        """
        inside, clipped = self._sum(partial(_sum_moments, ball=ball, public=public))
        moment = self.grid.moment(inside)
        if self.grid.person is not None:
            # What rounding takes from the weights is given to a record at the origin, which adds to this entry alone.
            moment[0, 0] = len(self) - float(clipped.value()[0, 0]) / sum_levels(public) ** 2
        unit = np.append(1.0, ball.halfwidths) / sum_levels(public)
        return np.asarray(moment / public + clipped.value() * unit[:, None] * unit / public)

    def transform(self, coordinates: Coordinates) -> PrivateRecords:
        """The same records in public coordinates; transforms do not compose."""
        grid, source = replace(self.grid, coordinates=coordinates), self.source
        if isinstance(source, GridBlock):
            source = replace(source, lengths=grid.lengths(source.steps))
        return PrivateRecords(source, grid, len(self))

    def _sum(self, function: _OfBlock) -> list[Any]:
        """What a function of blocks gives, summed over all of them."""
        whole, source = partial(_sum_blocks, self.grid, function), self.source
        if isinstance(source, GridBlock):
            return whole([source])
        return reduce(_merge, source.map(partial(_sum_part, self.grid, function)), whole([]))


def _count_longer(grid: RecordGrid, block: GridBlock, cuts: tuple[float, ...]) -> list[Any]:
    """Weight of the rows that are longer than each cut-off."""
    return [np.array([grid.weights(block, block.lengths > cut).sum() for cut in cuts])]


def _sum_excess(grid: RecordGrid, block: GridBlock, radius: float, limit: float) -> list[Any]:
    """Weighted sum of the excess of squared lengths of rows over a squared radius, up to a limit, in whole steps."""
    longer = block.lengths > radius
    beyond = np.square(block.lengths[longer]) - radius**2
    steps = np.rint(np.clip(beyond / limit, 0.0, 1.0) * EXCESS_STEPS).astype(np.int64)
    return [int(grid.weights(block, longer) @ steps)]


def _sum_moments(grid: RecordGrid, block: GridBlock, ball: Bounds, public: int) -> list[Any]:
    """Sums of the rows that are in a ball, on the grid, and of the others after clipping."""
    task = MomentTask(ball, ball, public, clip=True, missing="error", person=grid.person)
    clipped, outside = task.start(), may_be_outside(block.lengths, ball)
    task.add(clipped, grid.place(block.steps[outside]), None if block.counts is None else block.counts[outside])
    return [grid.sums(block, ~outside), clipped]


_OfBlock = Callable[[RecordGrid, GridBlock], list[Any]]


def _merge(first: list[Any], second: list[Any]) -> list[Any]:
    """Sums of two lists of results, one by one."""
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        if isinstance(one, GramSum | PeopleSum):
            one.merge(other)
        else:
            first[number] = one + other
    return first


def _sum_blocks(grid: RecordGrid, function: _OfBlock, blocks: Iterable[GridBlock]) -> list[Any]:
    """What a function of blocks gives, summed over some blocks."""
    nothing = grid.block(np.empty((0, grid.bounds.size)), np.zeros(0, np.int64))
    return reduce(_merge, (function(grid, block) for block in blocks), function(grid, nothing))


def _sum_part(grid: RecordGrid, function: _OfBlock, _: int, blocks: Iterable[Any]) -> list[Any]:
    """The same over one part of the data, whose blocks are put on the grid."""
    return _sum_blocks(grid, function, (grid.block(*_read(grid.bounds, block)) for block in blocks))


def _check_part(bounds: Bounds, _: int, blocks: Iterable[Any]) -> int:
    """Number of rows of one part of the data; raises for unsuitable ones."""
    return sum(len(bounds.checked(_read(bounds, block)[0], clip=True, missing="error")) for block in blocks)


def _read(bounds: Bounds, block: Any) -> tuple[NDArray[np.generic], Integers | None]:
    """The features of a block, of shape (n, d), and how many rows the person of each has."""
    data, counts = split_rows(block)
    return to_array(data, bounds.size, bounds.names), counts


def validate_records(
    data: Any, bounds: Bounds, person: Person | None = None
) -> tuple[int, Callable[[int], PrivateRecords]]:
    """Number of records, of people or of rows that count, and a function from their public number to the records."""
    if person is None and is_device_block(data):
        on_device = device_records(data, bounds.size, bounds.names)

        def keep(public: int) -> PrivateRecords:
            grid = RecordGrid(bounds, grid_levels(public))
            return PrivateRecords(grid.device_block(on_device), grid, len(on_device))

        return len(on_device), keep
    if person is None and not is_out_of_core(data):
        array = to_array(data, bounds.size, bounds.names)
        return len(array), lambda public: grid_records(bounds, array, grid_levels(public))
    if person is None:
        parts = SameRecords(require_rereadable(as_records(data)).select(bounds.names))
    else:
        parts, people = read_people(data, bounds, person)
    count = sum(parts.map(partial(_check_part, bounds)))
    if person is not None:
        count = int(np.minimum(people.rows, person.most).sum())

    def on_grid(public: int) -> PrivateRecords:
        # Sums of weights times `EXCESS_STEPS` stay below 2^53; there are at most twice the public number. A unit that
        # depended on the private number of people would let one of them change the weights of all others.
        unit = 1 if person is None else 1 << max(0, 52 - EXCESS_STEPS.bit_length() - (2 * public).bit_length())
        return PrivateRecords(parts, RecordGrid(bounds, grid_levels(public), None, person, unit), count)

    return count, on_grid


def grid_records(bounds: Bounds, array: NDArray[np.generic], levels: int) -> PrivateRecords:
    """Records in memory, of shape (n, d), on a grid, with the sums of all."""
    grid = RecordGrid(bounds, levels)
    block = grid.block(array)
    block.sums = sum_steps(block.steps, levels)
    return PrivateRecords(block, grid, len(array))


def read_people(data: Any, bounds: Bounds, person: Person, *, whole: bool = True) -> tuple[SameRecords, People]:
    """Records of the bounds and ids, the same at each reading (if `whole`, not only ids), and each person's rows."""
    if bounds.names is not None and person.column in bounds.names:
        raise ParameterError(f"person must name a column of ids, and {person.column!r} is among the features.")
    records = require_rereadable(as_records(data))
    (people,) = count_people(records, person, 1)
    names = None if bounds.names is None else (*bounds.names, person.column)
    return SameRecords(records.select(names, texts=[person.column])).of(people, whole=whole), people
