"""Private records of people with several rows: what each person contributes is the weighted sum over their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.digits import limbs_to_digits, multiply, to_floats
from matrixdp.adaptive.grid_records import (
    EXCESS_STEPS,
    PrivateRecords,
    ball_sum,
    excess_steps,
    grid_levels,
    may_be_outside,
)
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person
from matrixdp.domain.row_arithmetic import square_lengths
from matrixdp.errors import ParameterError
from matrixdp.queries.moment_sums import levels
from matrixdp.queries.people import UNIT, PeopleSum
from matrixdp.records import Records, as_records, require_rereadable, to_array
from matrixdp.records.people import People, count_people
from matrixdp.types import Floats

_BLOCK = 1 << 19  # numbers that are put on the grid at a time


class PeopleRecords(PrivateRecords):
    """Records in parts, each weighted by how many rows its person has.

    Parameters
    ----------
    parts : Records
        Records that can be read more than once.
    people : People
        How many rows each person has.
    person : Person
        Determines the weights from the numbers of rows.
    bounds, levels, coordinates
        As for `OutOfCoreRecords`.
    public : int
        The public number of people, or of rows that count; there are at most twice as many.

    Privacy
    -------
    Private. Weights are integers, rounded down, and depend on the rows of one person and on what is public. Those of a
    person sum to at most one, or to at most k where k rows count: a count, an excess and a moment of one person are
    averages over their rows, or at most k times such an average, and lie in the convex hull of those of single rows
    and of a row of zeros. Counts, excesses and the sums of moments are exact. Records are read again for each of them;
    a reading with another number of rows, in which a person could weigh more, is an error.
    """

    def __init__(
        self,
        parts: Records,
        people: People,
        person: Person,
        bounds: Bounds,
        levels: int,
        coordinates: Coordinates | None = None,
        *,
        public: int,
    ) -> None:
        self._parts, self._people, self._person, self._bounds, self._public = parts, people, person, bounds, public
        self.shape, self.levels, self.coordinates = (_number(people, person), bounds.size), levels, coordinates
        # Sums of weights times `EXCESS_STEPS` stay below 2^53. A unit that depended on the private number of people
        # would let one of them change the weights of all others.
        self._unit = 1 << max(0, 52 - EXCESS_STEPS.bit_length() - (2 * public).bit_length())

    def counter(self, cuts: Sequence[float]) -> Callable[[float], float]:
        """Weigh the rows above all cut-offs in one pass."""
        ordered = np.unique(np.array(cuts, np.float64))
        above, rows = np.zeros(len(ordered)), 0
        for weights, number in self._parts.map(_CountTask(self._grid, self._unit, ordered)):
            above, rows = above + weights, rows + number
        self._people.check_rows(rows)
        counts = dict(zip(ordered.tolist(), (above / self._unit).tolist(), strict=True))
        return lambda cut: counts[cut]

    def excess(self, radius: float, limit: float) -> float:
        """Weighted sum of the excess of all rows, in steps."""
        total = rows = 0
        for steps, number in self._parts.map(_ExcessTask(self._grid, self._unit, radius, limit)):
            total, rows = total + steps, rows + number
        self._people.check_rows(rows)
        return total / self._unit

    def moment(self, ball: Bounds, public: int) -> Floats:
        """Weighted sum of the moments of clipped rows, over the public number."""
        task = _MomentTask(self._grid, ball, public)
        inside, clipped = task.start(), ball_sum(ball, public, self._person)
        for within, others in self._parts.map(task):
            inside.merge(within)
            clipped.total.merge(others)
        self._people.check_rows(inside.records + clipped.records)
        outside = clipped.value()
        moment = self._in_coordinates(inside)
        # What rounding takes from the weights is given to a record at the origin, which adds to this entry alone.
        moment[0, 0] = len(self) - float(clipped.total.value()[0, 0]) / levels(public) ** 2
        return moment / public + outside

    def _in_coordinates(self, inside: PeopleSum) -> Floats:
        """Weighted ``sum (1, u)(1, u)'`` but for the first entry, from sums on the grid about the origin."""
        if self.coordinates is None:
            scale = np.append(1.0, np.full(self.shape[1], 1 / self.levels))
            return np.asarray(inside.value() * np.multiply.outer(scale, scale))
        limbs, numbers, unit = inside.limbs(), self.coordinates.numbers, self.coordinates.unit
        half = multiply(numbers, limbs_to_digits(limbs[:, 1:, 1:]))
        total = to_floats(multiply(numbers, limbs_to_digits(limbs[:, 0, 1:, None])))[:, 0] * unit
        gram = to_floats(multiply(numbers, half.transpose(0, 2, 1))) * np.multiply.outer(unit, unit)
        return np.block([[np.zeros((1, 1)), total[None]], [total[:, None], gram]]) / UNIT

    def transform(self, coordinates: Coordinates) -> PeopleRecords:
        """The same records in public coordinates."""
        given = self._parts, self._people, self._person, self._bounds, self.levels
        return PeopleRecords(*given, coordinates, public=self._public)

    @property
    def _grid(self) -> _Grid:
        return _Grid(self._people, self._person, self._bounds, self.levels, self.coordinates)


class _Block(NamedTuple):
    """Some rows on the grid, of shape (n, d), their lengths, and how many rows the person of each has."""

    steps: Floats
    lengths: Floats
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Grid:
    """Puts the rows of people on the grid, and says what they weigh."""

    people: People
    person: Person
    bounds: Bounds
    levels: int
    coordinates: Coordinates | None

    def blocks(self, blocks: Iterable[Any]) -> Iterator[_Block]:
        """The rows of a part."""
        size = max(256, _BLOCK // self.bounds.size)
        for block in blocks:
            data, counts = self.people.split(block)
            array = np.asarray(to_array(data, self.bounds.size, self.bounds.names))
            for start in range(0, len(array), size):
                steps = self.bounds.quantise(array[start : start + size], self.levels)
                yield _Block(steps, self._lengths(steps), counts[start : start + size])

    def _lengths(self, steps: Floats) -> Floats:
        if self.coordinates is not None:
            return self.coordinates.lengths(steps)
        return np.asarray(np.sqrt(square_lengths(steps, out=np.empty(len(steps)))) / self.levels)

    def place(self, steps: Floats) -> Floats:
        """Records in public coordinates."""
        return steps / self.levels if self.coordinates is None else self.coordinates(steps)

    def centre(self, steps: Floats) -> Floats:
        """A constant 1, and steps from the origin of the coordinates."""
        origin = 0 if self.coordinates is None else self.coordinates.origin
        return np.column_stack([np.ones(len(steps)), steps - origin])


@dataclass(frozen=True, eq=False)
class _CountTask:
    """Weighs the rows of one part that are longer than sorted cut-offs."""

    grid: _Grid
    unit: int
    cuts: Floats

    def __call__(self, number: int, blocks: Iterable[Any]) -> tuple[Floats, int]:
        """Weight of the rows that are longer than each of the cut-offs, integers below 2^53, and number of all rows."""
        found, rows = np.zeros(len(self.cuts) + 1), 0
        for block in self.grid.blocks(blocks):
            rows += len(block.counts)
            weights = self.grid.person.weights(block.counts, self.unit)
            found += np.bincount(np.searchsorted(self.cuts, block.lengths), weights, len(found))
        return found[::-1].cumsum()[::-1][1:], rows


@dataclass(frozen=True, eq=False)
class _ExcessTask:
    """Weighs the excess of the rows of one part."""

    grid: _Grid
    unit: int
    radius: float
    limit: float

    def __call__(self, number: int, blocks: Iterable[Any]) -> tuple[int, int]:
        """Weighted sum in whole steps, and number of all rows."""
        total = rows = 0
        for block in self.grid.blocks(blocks):
            rows += len(block.counts)
            longer = block.lengths > self.radius
            weights = self.grid.person.weights(block.counts[longer], self.unit)
            total += int(weights @ excess_steps(block.lengths[longer], self.radius, self.limit))
        return total, rows


@dataclass(frozen=True, eq=False)
class _MomentTask:
    """Sums the rows of one part that are in a ball, on the grid, and the others after clipping."""

    grid: _Grid
    ball: Bounds
    public: int

    def start(self) -> PeopleSum:
        """A sum without rows, for those in the ball."""
        return PeopleSum(self.ball.size + 1, limit=2 * self.grid.levels, person=self.grid.person)

    def __call__(self, number: int, blocks: Iterable[Any]) -> tuple[PeopleSum, PeopleSum]:
        """Both sums."""
        inside, clipped = self.start(), ball_sum(self.ball, self.public, self.grid.person)
        for steps, lengths, counts in self.grid.blocks(blocks):
            outside = may_be_outside(lengths, self.ball)
            clipped.add(self.grid.place(steps[outside]), counts[outside])
            inside.add(self.grid.centre(steps[~outside]), counts[~outside])
        return inside, clipped.total


@dataclass(frozen=True, eq=False)
class _CheckTask:
    """Counts the rows of one part, and raises for unsuitable ones."""

    people: People
    bounds: Bounds

    def __call__(self, number: int, blocks: Iterable[Any]) -> int:
        """Number of rows."""
        rows = 0
        for block in blocks:
            array = to_array(self.people.split(block)[0], self.bounds.size, self.bounds.names)
            rows += len(self.bounds.checked(array, clip=True, missing="error"))
        return rows


def _number(people: People, person: Person) -> int:
    """The number of people, or of rows that count."""
    return int(np.minimum(people.rows, person.most).sum())


def validate_people(data: Any, bounds: Bounds, person: Person) -> tuple[int, Callable[[int], PrivateRecords]]:
    """Number of people or of rows that count, and a function that returns their records for a public number of them.

    Raises for unsuitable data.
    """
    parts, people = read_people(data, bounds, person)
    people.check_rows(sum(parts.map(_CheckTask(people, bounds))))

    def on_grid(public: int) -> PeopleRecords:
        return PeopleRecords(parts, people, person, bounds, grid_levels(public), public=public)

    return _number(people, person), on_grid


def read_people(data: Any, bounds: Bounds, person: Person) -> tuple[Records, People]:
    """Records with the columns of the bounds and that of the ids, and how many rows each person has."""
    if bounds.names is not None and person.column in bounds.names:
        raise ParameterError(f"person must name a column of ids, and {person.column!r} is among the features.")
    records = require_rereadable(as_records(data))
    (people,) = count_people(records, person, 1)
    names = None if bounds.names is None else (*bounds.names, person.column)
    return records.select(names, texts=[person.column]), people
