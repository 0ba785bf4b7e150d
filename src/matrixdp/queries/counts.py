"""Tables of counts: how often two categories occur together, or one state follows another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.checks import check_flag
from matrixdp.domain import Category, Columns, Person
from matrixdp.errors import DataError, ParameterError
from matrixdp.privacy import Neighbours
from matrixdp.queries.base import MatrixQuery, find_people, parse_unit, person_change
from matrixdp.queries.sums import BITS
from matrixdp.records import as_records, split_rows
from matrixdp.records.people import SameRecords
from matrixdp.records.tables import TableBlock, column_names
from matrixdp.sensitivity import CellChange, Sensitivity
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class ContingencyTable(MatrixQuery):
    """Counts of pairs of categories, of shape (rows, columns): for transitions, both are the states.

    Parameters
    ----------
    rows, columns : sequence
        The public categories, each different from the others.
    records : int
        The public number of pairs; for add-remove neighbours a public bound on it. With a `person`, the number of
        people; with ``Person(column, rows=k)``, a public bound on the number of pairs that count.
    neighbours, person : optional
        As for `Moments`.
    public_total : bool, optional
        Whether the noisy counts are adjusted to sum to `records`, which takes ``1/k`` of the variance of each of k
        cells. By default they are where that number is public (replace) and there are at least two cells.

    Privacy
    -------
    One record is one pair; with a `person`, neighbours differ in all pairs of one person. A pair with a value that is
    not a category is outside the domain, and an error before anything is drawn. The adjustment to the total is
    post-processing: it uses the noisy counts and a public number.

    Examples
    --------
    >>> table = ContingencyTable(["yes", "no"], ["a", "b", "c"], records=500)
    >>> table.shape
    (2, 3)
    """

    rows: tuple[Any, ...]
    columns: tuple[Any, ...]
    records: int
    neighbours: Neighbours = field(default=Neighbours.REPLACE, kw_only=True)
    person: Person | None = field(default=None, kw_only=True, metadata={"omit_none": True})
    public_total: bool | None = field(default=None, kw_only=True, metadata={"absent": False})

    side = "columns"
    title = "table of counts"

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            values = tuple(one.item() if isinstance(one, np.generic) else one for one in getattr(self, name))
            if not values or len(set(values)) != len(values):
                raise ParameterError(f"{name} must be at least one category, each different from the others.")
            if not all(isinstance(value, str | int) for value in values):
                raise ParameterError(f"{name} must be strings or integers.")
            object.__setattr__(self, name, values)
        parse_unit(self, None)
        possible = self.public_number and len(self.rows) * len(self.columns) > 1
        public = possible if self.public_total is None else check_flag(self.public_total, "public_total")
        if public and not possible:
            raise ParameterError(
                "public_total must be False or left out for 'add-remove' neighbours and for people each of whose rows "
                "counts, where the number of records is private, and for a table with one cell."
            )
        object.__setattr__(self, "public_total", public)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return len(self.rows), len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.columns))

    @property
    def entry_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return tuple(map(str, self.rows)), tuple(map(str, self.columns))

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """One count falls and another rises, or one count changes."""
        return person_change(self, CellChange)

    @cached_property
    def magnitude(self) -> Floats:
        return np.full((1, 1), float(self.records))

    @property
    def gamma(self) -> float:
        return float(self.records)

    @property
    def possible(self) -> tuple[Floats, Floats]:
        return np.zeros((1, 1)), self.magnitude

    @property
    def total(self) -> float | None:
        return float(self.records) if self.public_total else None

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        records, person = as_records(list(data) if isinstance(data, Iterator) else data), self.person
        cells, unit = np.zeros(self.shape, np.int64), 1
        if person is not None:  # weights of people in each cell, in floats that hold them exactly
            unit = 1 << min(BITS, 52 - self.records.bit_length())
        task = partial(_count_part, self.rows, self.columns, person, unit)
        if person is None:
            for counts in records.map(task):
                cells += counts
            found = int(cells.sum())
            if found != self.records and (self.neighbours is Neighbours.REPLACE or found > self.records):
                raise ParameterError(
                    f"records must be the number of pairs (or, for add-remove, at least that), got {self.records} "
                    "instead."
                )
            return cells.astype(np.float64)
        people_found, same = 0, SameRecords(records)
        for people in find_people(records, self, self.records, most=self.records):
            for counts in same.of(people, whole=people.shards > 1).map(task):
                cells += counts
            people_found += len(people.rows)
        if person.rows is None:  # what rounding leaves is in the first cell
            cells[0, 0] += people_found * unit - int(cells.sum())
        return np.asarray(cells / unit)


Levels = tuple[Any, ...]


def _count_part(
    rows: Levels, columns: Levels, person: Person | None, unit: int, _: int, blocks: Iterable[Any]
) -> NDArray[np.int64]:
    """Counts of one part of the pairs; with a person, in weights of which `unit` are one pair."""
    cells = np.zeros(len(rows) * len(columns), np.int64)
    for block in blocks:
        (pairs, counts), weights, ids = split_rows(block), None, None if person is None else person.column
        if person is not None and counts is not None:
            weights = np.where(counts > 0, person.weights(counts, unit), 0)
        row, column = _find_codes(pairs, (rows, columns), ids)
        found = np.bincount(row.astype(np.intp) * len(columns) + column, weights, minlength=len(cells))
        cells += found.astype(np.int64)  # exact in floats, since weights of all people are below 2^53
    return cells.reshape(len(rows), len(columns))


def _find_codes(pairs: Any, categories: tuple[Levels, Levels], ids: str | None) -> list[NDArray[np.signedinteger[Any]]]:
    """Positions of both values of each pair among the categories; a column of ids is left out."""
    names = column_names(pairs)
    own = ["first", "second"] if names is None else [name for name in names if name != ids]
    if len(own) != 2:
        raise DataError(f"pairs must be a table of two columns, got {len(own)} instead.")
    columns = [_Levels(name, levels) for name, levels in zip(own, categories, strict=True)]
    block = TableBlock(pairs, Columns(columns))
    for column in columns:
        values, mixed = block.values[column.name], len({isinstance(level, str) for level in column.levels}) > 1
        kind = getattr(values, "dtype", getattr(values, "type", "object"))
        if mixed and str(kind) != "object":  # one text would make texts of the integers of all others
            raise DataError(f"pairs must be given as a list: texts and integers share a column of {kind}.")
    return [block.codes(column) for column in columns]


class _Levels(Category):
    """Categories that the query has checked: texts, integers or both."""

    def __post_init__(self) -> None:
        pass
