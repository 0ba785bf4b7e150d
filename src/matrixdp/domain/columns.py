"""The public description of a table: numbers with bounds, categories with levels, yes/no, each possibly missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from matrixdp.checks import check_magnitude
from matrixdp.display import format_number, render_card, render_table, short_repr, shorten
from matrixdp.domain.bounds import Bounds
from matrixdp.errors import ParameterError, show
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats

Level: TypeAlias = str | int
Impossible: TypeAlias = tuple[tuple[str, tuple[str, ...]], tuple[str, tuple[str, ...]]]  # names and levels

OTHER, MISSING = "other", "missing"
PAIRS = 'a list of two categories with levels each, as in {season = "winter", month = ["6", "7"]}'
YES, NO = ("yes", "true", "y", "t", "1", "1.0"), ("no", "false", "n", "f", "0", "0.0")  # texts, in lower case
MOST_LEVELS = 10_000
_MOST_STEPS, _ROUNDING = 1 << 40, 1e-6
_SHOWN_LEVELS, _LEVELS_LENGTH = 8, 80  # in notebooks


@builtin_kind
@dataclass(frozen=True)
class Number:
    """A column of numbers.

    Parameters
    ----------
    name : str
    lower, upper : float
        Public bounds. Values outside are moved to them.
    missing : bool
        Whether values may be missing. Answers then use the values that are there, and whether one is missing is
        protected as well.
    step : float, optional
        Public distance of neighbouring values, as 1 for whole numbers: values are the lower bound and a number of
        steps. Synthetic tables have such values, and histograms a bin for each if they are few. Others are not changed.
    """

    name: str
    lower: float
    upper: float
    missing: bool = False
    step: float | None = field(default=None, metadata={"omit_none": True})
    type: ClassVar[str] = "number"

    __repr__ = short_repr

    def __post_init__(self) -> None:
        _check_column(self)
        for end in ("lower", "upper"):
            value = getattr(self, end)
            if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
                _refuse(self, end, f"must be a number, got {show(value)} instead.")
            object.__setattr__(self, end, float(value))
        try:
            Bounds([self.lower], [self.upper], names=[self.name])
        except ParameterError as error:
            raise ParameterError(f"column {self.name!r}: {error}", parameter=error.parameter) from None
        if self.step is not None:
            object.__setattr__(self, "step", check_magnitude(self.step, "step"))
            if self.steps >= _MOST_STEPS or round(self.steps) < 1 or abs(self.steps - round(self.steps)) > _ROUNDING:
                rule = f"must divide the distance of its bounds, {self.upper - self.lower:g}, into equal parts"
                _refuse(self, "step", f"{rule}, got {self.step:g}.")

    @property
    def steps(self) -> float:
        """Number of steps between the bounds, which is whole up to rounding; 0 if there are none."""
        return 0.0 if self.step is None else (self.upper - self.lower) / self.step


@builtin_kind
@dataclass(frozen=True)
class Category:
    """A column of categories.

    Parameters
    ----------
    name : str
    levels : sequence of str or of int
        The public levels, never taken from the data. All are texts, or all are integers. Texts must match exactly;
        for integers a text such as "2" or "2.0" is read as a number.
    other : bool
        Whether there is one more level, "other", for all values that are not among `levels`. Without it such a value is
        an error.
    missing : bool
        Whether there is one more level, "missing", for values that are missing. Without it a missing value is an error.
        An empty text is a missing value.
    """

    name: str
    levels: Sequence[Level]
    other: bool = False
    missing: bool = False
    type: ClassVar[str] = "category"

    __repr__ = short_repr

    def __post_init__(self) -> None:
        _check_column(self)
        if isinstance(self.levels, str) or not isinstance(self.levels, Iterable):
            _refuse(self, "levels", "must be a list of texts or integers.")
        levels = tuple(value.item() if isinstance(value, np.generic) else value for value in self.levels)
        object.__setattr__(self, "levels", levels)
        if not levels or {type(level) for level in levels} not in ({str}, {int}):
            _refuse(self, "levels", "must be at least one text or integer, and all texts or all integers.")
        if "" in levels:
            _refuse(self, "levels", "must not be empty: an empty text is a missing value.")
        if len(levels) > MOST_LEVELS:
            _refuse(self, "levels", f"must be at most {MOST_LEVELS:,} levels, got {len(levels):,}.")
        if (twice := _find_twice(self.level_names)) is not None:
            rule = f"column {self.name!r} has the level {show(twice)} twice. Each must be unique."
            raise ParameterError(rule, parameter="levels")

    @property
    def level_names(self) -> tuple[str, ...]:
        """All levels as text, those for other and missing values last."""
        return (*map(str, self.levels), *(OTHER,) * self.other, *(MISSING,) * self.missing)


@builtin_kind
@dataclass(frozen=True)
class YesNo:
    """A column of yes and no.

    True, 1, "yes", "true", "y" and "t" mean yes; False, 0, "no", "false", "n" and "f" mean no. Case does not matter.

    Parameters
    ----------
    name : str
    missing : bool
        Whether there is a third level for missing values. Without it a missing value is an error.
    """

    name: str
    missing: bool = False
    type: ClassVar[str] = "yes/no"

    __repr__ = short_repr

    def __post_init__(self) -> None:
        _check_column(self)

    @property
    def level_names(self) -> tuple[str, ...]:
        """No, yes and, if values may be missing, missing."""
        return ("no", "yes", *((MISSING,) * self.missing))


Column: TypeAlias = Number | Category | YesNo


@dataclass(frozen=True)
class Bins(Category):
    """A category that is computed from a number: which of some equal parts of its bounds it is in.

    Where the number has steps, parts have about as many values. Where it may be missing, there is one more level.
    """

    number: Number = field(kw_only=True)

    @classmethod
    def of(cls, number: Number, most: int) -> Bins:
        """At most so many bins of a number, and at most one for each of its steps."""
        count = most if number.step is None else min(most, round(number.steps) + 1)
        return cls(f"{number.name} in bins", tuple(range(1, count + 1)), missing=number.missing, number=number)

    @property
    def cuts(self) -> Floats:
        """Where one bin ends and the next one begins: values between the bounds, of shape (bins - 1,)."""
        number, count = self.number, len(self.levels)
        if number.step is None:
            return np.linspace(number.lower, number.upper, count + 1)[1:-1]
        ends = np.arange(1, count) * (round(number.steps) + 1) // count
        return np.asarray(number.lower + number.step * (ends - 0.5))

    def find(self, values: Floats) -> NDArray[np.intp]:
        """Numbers of the bins of values within the bounds, of their shape; those that are missing are in the last."""
        found = np.searchsorted(self.cuts, values)
        return np.where(np.isnan(values), len(self.levels), found) if self.missing else found


@builtin_kind
@dataclass(frozen=True)
class Columns:
    """What is public about a table: its columns, in the order of their description.

    Parameters
    ----------
    columns : sequence of Number, Category and YesNo
        Columns of the table that are not described are not used.
    impossible : sequence of mappings
        Pairs of levels that cannot occur together, as ``{"season": "winter", "month": ["6", "7"]}``, known without the
        data. Synthetic tables do not have them; other answers and the noise do not depend on them. They are stored as
        pairs of names and levels.

    Examples
    --------
    >>> table = Columns([Number("age", 0, 120), Category("ward", ["a", "b"]), YesNo("smoker", missing=True)])
    >>> table.names
    ('age', 'ward', 'smoker')
    >>> Columns.from_dict({"age": (0, 120), "ward": ["a", "b"], "smoker": bool}).names
    ('age', 'ward', 'smoker')
    """

    columns: Sequence[Column]
    impossible: tuple[Impossible, ...] = field(default=(), kw_only=True, metadata={"absent": ()})

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if isinstance(self.columns, Mapping) or not isinstance(self.columns, Iterable):
            raise ParameterError("columns must be a list of Number, Category and YesNo; for a dict use from_dict.")
        object.__setattr__(self, "columns", tuple(self.columns))
        for column in self.columns:
            if not isinstance(column, Number | Category | YesNo):
                raise ParameterError(f"columns must be Number, Category or YesNo, got {show(column)} instead.")
        if not self.columns:
            raise ParameterError("columns must be at least one.")
        if (twice := _find_twice(self.names)) is not None:
            raise ParameterError(f"column {twice!r} is described twice. Each name must be unique.")
        try:
            object.__setattr__(self, "impossible", tuple(map(self._check_pair, self.impossible)))
        except ParameterError as error:
            raise ParameterError(f"impossible: {error}", parameter="impossible") from None
        except (TypeError, ValueError):
            raise ParameterError(f"impossible must be {PAIRS}.", parameter="impossible") from None

    def _check_pair(self, entry: Any) -> Impossible:
        """Two names of categories, each with its levels as text."""
        first, second = dict(entry).items()
        return self._check_some(*first), self._check_some(*second)

    def _check_some(self, name: str, given: Any) -> tuple[str, tuple[str, ...]]:
        known = self.category(name).level_names
        levels = tuple(map(str, given if isinstance(given, list | tuple) else [given]))
        if not levels or not set(levels) <= set(known):
            raise ParameterError(
                f"levels of {name!r} must be among {', '.join(known[:20])}, got {show(given)} instead."
            )
        return name, levels

    @classmethod
    def from_dict(cls, columns: Mapping[str, Any]) -> Columns:
        """Columns from a short form: a tuple (lower, upper) for numbers, a list of levels, ``bool`` for yes/no."""
        found: list[Column] = []
        for name, value in columns.items():
            if value is bool:
                found.append(YesNo(name))
            elif isinstance(value, tuple) and len(value) == 2:
                found.append(Number(name, *value))
            elif isinstance(value, list):
                found.append(Category(name, tuple(value)))
            elif isinstance(value, Number | Category | YesNo):
                found.append(value)
            else:
                raise ParameterError(
                    f"column {name!r} must be a tuple (lower, upper), a list of levels or bool, got {show(value)}."
                )
        return cls(tuple(found))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def numbers(self) -> tuple[Number, ...]:
        """The columns of numbers."""
        return tuple(column for column in self.columns if isinstance(column, Number))

    @cached_property
    def categories(self) -> tuple[Category | YesNo, ...]:
        """The columns of categories, yes/no among them."""
        return tuple(column for column in self.columns if not isinstance(column, Number))

    @cached_property
    def bounds(self) -> Bounds | None:
        """Bounds of the numbers, or None if there are none."""
        ends = {one.name: (one.lower, one.upper) for one in self.numbers}
        return Bounds.from_dict(ends) if ends else None

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        known = ", ".join(self.names[:20])
        raise ParameterError(f"there is no column {show(name)}; the columns are {known}.")

    def category(self, name: str) -> Category | YesNo:
        """The category of this name, or a `ParameterError`."""
        column = self[name]
        if isinstance(column, Number):
            raise ParameterError(f"column {name!r} must be a category, and it holds numbers. Give it levels.")
        return column

    def number(self, name: str) -> Number:
        """The column of numbers of this name, or a `ParameterError`."""
        column = self[name]
        if not isinstance(column, Number):
            raise ParameterError(f"column {name!r} must hold numbers, and it is a category.")
        return column

    def _repr_html_(self) -> str:
        return render_card("Public columns", self.render())

    def render(self) -> str:
        """The columns as a table in HTML, to be put into a card."""
        rows = [(column.name, *describe_column(column), "yes" if column.missing else "no") for column in self.columns]
        return render_table(("", "type", "values", "may be missing"), rows, texts=4)

    def with_bins(self, most: int) -> Columns:
        """Each number followed by its `Bins`, at most so many; the same columns for 0."""
        if not most:
            return self
        pairs = ((one, Bins.of(one, most)) if isinstance(one, Number) else (one,) for one in self.columns)
        return Columns(tuple(column for pair in pairs for column in pair), impossible=self.impossible)

    def without(self, names: Sequence[str]) -> Columns:
        """The columns other than `names`."""
        return self.pick([name for name in self.names if name not in names])

    def pick(self, names: Sequence[str]) -> Columns:
        """The columns of these names, in this order, and what is impossible among them."""
        pairs = tuple(pair for pair in self.impossible if {name for name, _ in pair} <= set(names))
        found = dict(zip(self.names, self.columns, strict=True))
        return Columns(tuple(found[name] for name in names), impossible=pairs)


def _check_column(column: Column) -> None:
    """Raise a `ParameterError` unless the name and the flags of a column are what they must be."""
    if not isinstance(column.name, str) or not column.name:
        rule = f"must be a text that is not empty, got {show(column.name)} instead."
        raise ParameterError(f"the name of a column {rule}", parameter="name")
    for flag in ("other", "missing"):
        value = getattr(column, flag, False)
        if not isinstance(value, bool):
            _refuse(column, flag, f"must be True or False, got {show(value)} instead.")


def _find_twice(names: Sequence[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _refuse(column: Column, name: str, rule: str) -> NoReturn:
    raise ParameterError(f"{name} of column {column.name!r} {rule}", parameter=name)


def describe_column(column: Column) -> tuple[str, str]:
    """Type and values of a column, in words."""
    if isinstance(column, Number):
        steps = "" if column.step is None else f", in steps of {format_number(column.step, 6)}"
        return column.type, f"{format_number(column.lower, 6)} to {format_number(column.upper, 6)}{steps}"
    words = shorten(", ".join(column.level_names[:_SHOWN_LEVELS]), _LEVELS_LENGTH)
    more = len(column.level_names) - _SHOWN_LEVELS
    return column.type, words + (f" and {more:,} more" if more > 0 else "")
