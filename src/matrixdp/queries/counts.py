"""Tables of counts: how often two categories occur together, or one state follows another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import DataError, ParameterError
from matrixdp.privacy import Neighbours
from matrixdp.queries.base import MatrixQuery, parse_records
from matrixdp.records import as_records
from matrixdp.sensitivity import CellChange
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats


@builtin_kind
@dataclass(frozen=True, eq=False)
class ContingencyTable(MatrixQuery):
    """Counts of pairs of categories, of shape (rows, columns).

    Parameters
    ----------
    rows, columns : sequence
        The public categories, each different from the others.
    records : int
        The public number of pairs; for add-remove neighbours a public bound on it.
    neighbours : 'replace' or 'add-remove'

    Privacy
    -------
    One record is one pair. A pair with a value that is not a category is outside the domain, and an error before
    anything is drawn.

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
    side = "columns"
    title = "table of counts"

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            object.__setattr__(self, name, _categories(getattr(self, name), name))
        object.__setattr__(self, "records", parse_records(self.records))
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))

    @classmethod
    def transitions(cls, states: Sequence[Any], records: int, *, neighbours: str = "replace") -> ContingencyTable:
        """Counts of transitions between public states, given as pairs (from, to), of shape (states, states).

        Privacy
        -------
        One record is one transition. Where one person contributes several, the guarantee is for one of them.

        Examples
        --------
        >>> ContingencyTable.transitions(["well", "ill"], records=1000).shape
        (2, 2)
        """
        return cls(tuple(states), tuple(states), records, neighbours=Neighbours.parse(neighbours))

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return len(self.rows), len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' categories."""
        return tuple(map(str, self.columns))

    @property
    def entry_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The categories."""
        return tuple(map(str, self.rows)), tuple(map(str, self.columns))

    def subject(self, records: str) -> str:
        """One sentence on what is released."""
        return f"A {self.shape[0]:,} x {self.shape[1]:,} table of counts{records}."

    @cached_property
    def sensitivity(self) -> CellChange:
        """One count falls and another rises, or one count changes."""
        return CellChange(self.neighbours)

    @cached_property
    def magnitude(self) -> Floats:
        """The number of records."""
        return np.full((1, 1), float(self.records))

    @property
    def gamma(self) -> float:
        """All records in one cell."""
        return float(self.records)

    @property
    def possible(self) -> tuple[Floats, Floats]:
        """From none to all records."""
        return np.zeros((1, 1)), self.magnitude

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        """The counts."""
        cells = np.zeros(self.shape, np.int64)
        if isinstance(data, Iterator):  # of pairs
            data = list(data)
        for partial in as_records(data).map(_CountTask(self.rows, self.columns)):
            cells += partial
        found = int(cells.sum())
        if found != self.records and (self.neighbours is Neighbours.REPLACE or found > self.records):
            raise ParameterError(
                f"records must be the number of pairs (or, for add-remove, at least that), got {self.records} instead."
            )
        return cells.astype(np.float64)


@dataclass(frozen=True)
class _CountTask:
    """Counts one part of the pairs."""

    rows: tuple[Any, ...]
    columns: tuple[Any, ...]

    def __call__(self, number: int, blocks: Iterable[Any]) -> NDArray[np.int64]:
        cells = np.zeros(len(self.rows) * len(self.columns), np.int64)
        for block in blocks:
            pairs = _pairs(block)
            row, column = (
                _codes([pair[i] for pair in pairs], categories)
                for i, categories in enumerate((self.rows, self.columns))
            )
            cells += np.bincount(row * len(self.columns) + column, minlength=len(cells))
        return cells.reshape(len(self.rows), len(self.columns))


def _categories(values: Sequence[Any], name: str) -> tuple[Any, ...]:
    categories = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    if not categories or len(set(categories)) != len(categories):
        raise ParameterError(f"{name} must be at least one category, each different from the others.")
    if not all(isinstance(value, str | int) for value in categories):
        raise ParameterError(f"{name} must be strings or integers.")
    return categories


def _pairs(data: Any) -> list[Any]:
    """Pairs as Python values: in one NumPy array, the type of one value could change how the others are read."""
    if hasattr(data, "to_pylist"):  # an Arrow table
        data = [tuple(row.values()) for row in data.to_pylist()]
    elif hasattr(data, "to_numpy"):
        data = data.to_numpy()
    rows = data.tolist() if isinstance(data, np.ndarray) else list(data)
    if not all(isinstance(row, list | tuple | np.ndarray) and len(row) == 2 for row in rows):
        raise DataError("pairs must be a table of two columns.")
    return rows


def _codes(values: list[Any], categories: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    codes = {category: i for i, category in enumerate(categories)}
    try:
        return np.array([codes[value] for value in values], np.intp)
    except (KeyError, TypeError):
        raise DataError(
            "pairs must hold public categories only; map other values to a category of their own first."
        ) from None
