"""Private records of people with several rows: what each person contributes is the mean over their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.grid_records import EXCESS_STEPS, PrivateRecords, ball_sum, grid_levels, moment_of_split
from matrixdp.adaptive.out_of_core import CheckTask, CountTask, ExcessTask, SplitTask
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person
from matrixdp.errors import DataError, ParameterError
from matrixdp.queries.people_sums import rows_by_count
from matrixdp.records import Records, as_records, require_rereadable, to_array
from matrixdp.records.people import People, changed, count_people
from matrixdp.types import Floats

_MOST_ENTRIES = 1 << 24  # of the sums for all numbers of rows that people have
ROWS = 64  # a person, for which the grid is chosen; sums of twice as many fit into 64 bits


class PeopleRecords(PrivateRecords):
    """Records in parts, summed apart for each number of rows that people have, and weighted by one over it.

    Parameters
    ----------
    parts : Records
        Records that can be read more than once.
    people : People
        How many rows each person has.
    bounds, levels, coordinates
        As for `OutOfCoreRecords`.
    public : int
        The public number of people; there are at most twice as many.

    Privacy
    -------
    Private. A count, an excess and a moment of one person are means over their rows, so that they lie between those of
    single rows, or in their convex hull: the bounds for one record hold for one person. Counts and excesses are exact
    in floats; moments have the rounding errors of one division and one sum more than those of records. The domain is
    all data sets with at most 128 rows a person on average, and few enough different numbers of rows (`read_people`):
    the error for others shows that a data set is not in it.
    """

    def __init__(
        self,
        parts: Records,
        people: People,
        bounds: Bounds,
        levels: int,
        coordinates: Coordinates | None = None,
        *,
        public: int,
    ) -> None:
        self._parts, self._people, self._bounds, self._public = parts, people, bounds, public
        self.shape, self.levels, self.coordinates = (len(people.rows), bounds.size), levels, coordinates
        # Sums of weights times `EXCESS_STEPS` stay below 2^53. A unit that depended on the private number of people
        # would let one of them change the weights of all others.
        self._unit = 1 << max(0, 52 - EXCESS_STEPS.bit_length() - (2 * public).bit_length())

    def counter(self, cuts: Sequence[float]) -> Callable[[float], float]:
        """Weigh the rows above all cut-offs in one pass."""
        ordered = np.unique(np.array(cuts, np.float64))
        above = self._weigh(self._map(CountTask(*self._grid, ordered)))
        counts = dict(zip(ordered.tolist(), np.asarray(above, np.float64).tolist(), strict=True))
        return lambda cut: counts[cut]

    def excess(self, radius: float, limit: float) -> float:
        """Sum over people of the mean excess of their rows, in steps."""
        return float(self._weigh(self._map(ExcessTask(*self._grid, radius, limit))))

    def moment(self, ball: Bounds, public: int) -> Floats:
        """Mean over people of the moments of their clipped rows, in the order of the numbers of rows."""
        rows = ROWS * public
        found = self._map(SplitTask(*self._grid, ball, rows))
        total = rest = np.zeros((self.shape[1] + 1, self.shape[1] + 1))
        for count in sorted(found):
            inside, others = found[count]
            clipped = ball_sum(ball, rows)
            clipped.total.merge(others)
            term = moment_of_split(inside, clipped, self.levels, self.coordinates, rows) / count
            new = total + term
            larger = np.abs(total) >= np.abs(term)
            rest = rest + np.where(larger, (total - new) + term, (term - new) + total)  # what rounding took
            total = new
        return np.asarray((total + rest) * ROWS)

    def transform(self, coordinates: Coordinates) -> PeopleRecords:
        """The same records in public coordinates."""
        return PeopleRecords(self._parts, self._people, self._bounds, self.levels, coordinates, public=self._public)

    @property
    def _grid(self) -> tuple[Bounds, int, Coordinates | None]:
        return self._bounds, self.levels, self.coordinates

    def _map(self, task: Callable[[int, Iterable[Any]], Any]) -> dict[int, Any]:
        return sum_by_count(self._parts, task, self._people, self._bounds)

    def _weigh(self, found: dict[int, Any]) -> Any:
        """``sum result/count``, with weights rounded down: exact in floats."""
        return sum((result * (self._unit // count) for count, result in found.items()), 0) / self._unit


def sum_by_count(
    parts: Records, task: Callable[[int, Iterable[Any]], Any], people: People, bounds: Bounds
) -> dict[int, Any]:
    """Results of a task on the rows of people with each number of rows, by that number."""
    found: dict[int, Any] = {}
    for partial in parts.map(_ByCount(task, people, bounds)):
        for count, result in partial.items():
            found[count] = result if count not in found else _merge(found[count], result)
    return found


@dataclass(frozen=True, eq=False)
class _ByCount:
    """Runs a task apart on the rows of people with each number of rows."""

    task: Callable[[int, Iterable[Any]], Any]
    people: People
    bounds: Bounds

    def __call__(self, number: int, blocks: Iterable[Any]) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for block in blocks:
            data, counts = self.people.split(block)
            array = np.asarray(to_array(data, self.bounds.size, self.bounds.names))
            for count, rows in rows_by_count(counts):
                result = self.task(number, [array[rows]])
                found[count] = result if count not in found else _merge(found[count], result)
        return found


def _merge(first: Any, second: Any) -> Any:
    """Both results together: numbers, or sums inside and outside of a ball."""
    if not isinstance(first, tuple):
        return first + second
    inside, outside = first
    outside.merge(second[1])
    return inside + second[0], outside


def validate_people(data: Any, bounds: Bounds, person: Person) -> tuple[int, Callable[[int], PrivateRecords]]:
    """Number of people, and a function that returns their records on the grid for a public number of them.

    Raises for unsuitable data.
    """
    parts, people = read_people(data, bounds, person)
    checked = sum(sum_by_count(parts, CheckTask(bounds), people, bounds).values())
    if checked != int(people.rows.sum()):
        raise changed()

    def on_grid(public: int) -> PeopleRecords:
        if checked > 2 * ROWS * public:
            raise DataError(f"people must have at most {2 * ROWS} rows each on average in a fit. Keep fewer rows.")
        return PeopleRecords(parts, people, bounds, grid_levels(ROWS * public), public=public)

    return len(people.rows), on_grid


def read_people(data: Any, bounds: Bounds, person: Person) -> tuple[Records, People]:
    """Records with the columns of the bounds and that of the ids, and how many rows each person has."""
    if person.rows is not None:
        raise ParameterError("person must count once in a fit, got rows instead. Give the name of the column alone.")
    if bounds.names is not None and person.column in bounds.names:
        raise ParameterError(f"person must name a column of ids, and {person.column!r} is among the features.")
    records = require_rereadable(as_records(data))
    (people,) = count_people(records, person, 1)
    if len(people.sizes()[0]) * bounds.size**2 > _MOST_ENTRIES:
        raise DataError(
            "people have too many different numbers of rows for a fit with so many features. Keep fewer rows of each, "
            "or release Moments, whose memory does not depend on them."
        )
    names = None if bounds.names is None else (*bounds.names, person.column)
    return records.select(names, texts=[person.column]), people
