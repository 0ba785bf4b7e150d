"""Everything about a table in one matrix: moments of its numbers, categories and missing values, by group."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.checks import check_integer, check_number
from matrixdp.domain import Columns, Number, Person
from matrixdp.domain.columns import Bins
from matrixdp.errors import ParameterError, show
from matrixdp.noise.table_noise import CONSTANT, LEVEL, OBSERVED, VALUE, Place, TableLayout
from matrixdp.privacy import Neighbours
from matrixdp.queries.base import parse_unit
from matrixdp.queries.moments import MomentQuery
from matrixdp.queries.table_sums import TableTask, to_grid
from matrixdp.sensitivity import TableChange
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats

_MOST_ENTRIES = 1 << 26
_OBSERVED_SHARE = 0.125  # of the indicator of a number that may be missing, relative to its value
_LEAST_CONSTANT = 0.01  # squared length of the constant, relative to all columns
_MOST_WEIGHT = 1e6
_BINS, _MOST_STEPS = 32, 64  # of a histogram: bins between the bounds, and steps that have a bin each
MOST_SHAPES = 0.9
_BINS_WEIGHT, MOST_BINS = 0.25, 64  # of bins as a category: their weight, relative to the number


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class TableMoments(MomentQuery):
    """Moments of a table with numbers, categories and missing values: one matrix for each group.

    Each record is a vector z: a constant 1; each number less the middle of its bounds, and, where it may be missing, an
    indicator of whether it is there (both are 0 if not); one indicator for each level of each category. The answer is
    ``(1/N) sum z z'``, for each group over its records, of shape (groups x p, p). Means, tables, covariances,
    correlations and regressions over the values that are there follow by post-processing.

    Parameters
    ----------
    columns : Columns
    records : int
        The public N, as for `Moments`.
    by : sequence of str
        Names of categories. There is one matrix for each combination of their levels.
    neighbours, person : optional
        As for `Moments`.
    mean_share : float, optional
        Share of the privacy loss for the constant, above 0 and at most 1/2: means and counts are best at 1/2, products
        at 0. By default, what is best for covariances of as many columns, less what sums over levels contribute.
    importance : mapping of str to float
        Weights of columns, 1 by default: twice the weight for half the variance of a mean.
    shapes : float
        Share of the privacy loss (of ``mu^2``) for a histogram of each number over all records, from which quantiles
        follow, at most 0.9; 0 for none. 0.1 adds 5.4% to the noise of all else. There are 32 equal bins between the
        bounds and a bin for each bound itself, or one bin for each value where a number has up to 64 steps.
    bins : int
        Measure each number also as a category of so many equal parts of its bounds, 2 to 64, with a quarter of the
        weight of the number, so that synthetic tables show curved relations; 0 for none. All other answers have more
        noise, and do not use them.

    Privacy
    -------
    Moments of all groups together have the distance of one moment. Whether a value is missing, and the group of a
    record, are protected like any value, and the bin of a number like any category. Histograms are drawn with the
    moments, as one Gaussian release.

    Examples
    --------
    >>> from matrixdp.domain import Category, Columns, Number
    >>> columns = Columns([Number("age", 0, 120, missing=True), Category("ward", ["a", "b", "c"])])
    >>> TableMoments(columns, records=1000).shape
    (6, 6)
    >>> TableMoments(columns, records=1000, by=["ward"]).shape
    (9, 3)
    >>> TableMoments(columns, records=1000, shapes=0.1).shape  # 34 bins below the moments, in the first column
    (40, 6)
    >>> TableMoments(columns, records=1000, bins=8).shape  # and whether the age is missing
    (15, 15)
    """

    columns: Columns
    records: int
    by: Sequence[str] = ()
    neighbours: Neighbours = field(default=Neighbours.REPLACE, kw_only=True)
    person: Person | None = field(default=None, kw_only=True, metadata={"omit_none": True})
    mean_share: float | None = field(default=None, kw_only=True)
    importance: tuple[tuple[str, float], ...] = field(default=(), kw_only=True)
    shapes: float = field(default=0.0, kw_only=True, metadata={"absent": 0.0})
    bins: int = field(default=0, kw_only=True, metadata={"absent": 0})

    side = "columns"
    title = "moments of a table"
    structured = True  # each distinct number is drawn once
    number_bounds = property(attrgetter("used.bounds"), doc="Bounds of the numbers, None if there are none.")
    read_names = property(attrgetter("columns.names"), doc="Names of the columns.")

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Columns):
            raise ParameterError(
                f"columns must be Columns([Number(...), Category(...)]), got {type(self.columns).__name__} instead."
            )
        parse_unit(self, self.columns.names)
        object.__setattr__(self, "by", _check_groups(self.columns, self.by))
        if self.bins:
            object.__setattr__(self, "bins", check_integer(self.bins, "bins", at_least=2, at_most=MOST_BINS))
            if not self.used.numbers:
                raise ParameterError("«bins» must be 0: the table has no numbers.", parameter="bins")
        object.__setattr__(self, "importance", _check_importance(self.used, self.importance))
        share = self.mean_share
        if share is None:
            share = _default_share(self.measured, self._weights, grouped=bool(self.by))
        object.__setattr__(self, "mean_share", check_number(share, "mean_share", above=0, at_most=0.5))
        object.__setattr__(self, "shapes", check_number(self.shapes, "shapes", at_least=0, at_most=MOST_SHAPES))
        if self.shapes and not self.used.numbers:
            raise ParameterError("«shapes» must be 0: the table has no numbers, of which there could be histograms.")
        if math.prod(self.shape) > _MOST_ENTRIES:
            raise ParameterError(
                f"the moments must have at most {_MOST_ENTRIES:,} entries, got {math.prod(self.shape):,}: "
                f"{self.layout.size:,} coordinates in {self.groups:,} groups. Leave out columns, levels or groups."
            )

    @property
    def summary(self) -> str:
        groups = f" in {self.groups:,} groups" if self.by else ""
        return f"TableMoments of {len(self.columns.names):,} column{'s' * (len(self.columns.names) != 1)}{groups}"

    @property
    def subject(self) -> str:
        share = f"; {100 * self.shapes:.3g}% of the budget (of mu^2) is for histograms" if self.shapes else ""
        return f"{super().subject}{share}"

    @cached_property
    def used(self) -> Columns:
        """The columns of the vectors z: all but those of the groups."""
        if not set(self.columns.names) - set(self.by):
            raise ParameterError("«by» must leave at least one column to describe each group by.")
        return self.columns.without(self.by)

    @cached_property
    def measured(self) -> Columns:
        """The columns of the vectors z, and the bins of a number after it."""
        return self.used.with_bins(self.bins)

    @cached_property
    def _weights(self) -> dict[str, float]:
        """The weight of each column of the vectors z."""
        given, weights = dict(self.importance), {}
        for one in self.measured:
            share, name = (_BINS_WEIGHT, one.number.name) if isinstance(one, Bins) else (1.0, one.name)
            weights[one.name] = given.get(name, 1.0) * share
        return weights

    @cached_property
    def _coordinates(self) -> list[tuple[str, int, str]]:
        """Kind, number of the column and name of each coordinate of z."""
        found = [(CONSTANT, 0, "1")]
        for number, column in enumerate(self.measured, start=1):
            if not isinstance(column, Number):
                found += [(LEVEL, number, f"{column.name}={level}") for level in column.level_names]
                continue
            if column.missing:
                found.append((OBSERVED, number, f"{column.name} observed"))
            found.append((VALUE, number, column.name))
        return found

    @cached_property
    def layout(self) -> TableLayout:
        """The kind and the column of each coordinate of z."""
        kinds, owners, _ = zip(*self._coordinates, strict=True)
        return TableLayout(kinds, owners)

    @cached_property
    def places(self) -> dict[str, Place]:
        """Place of each column in z, but for bins."""
        found: dict[str, Place] = {}
        for number, column in enumerate(self.measured, start=1):
            if isinstance(column, Bins):
                continue
            first = self.layout.columns.index(number)
            if isinstance(column, Number):
                found[column.name] = Place(first + column.missing, first if column.missing else 0)
            else:
                found[column.name] = Place(first, 0, column.level_names)
        return found

    @cached_property
    def group_levels(self) -> tuple[tuple[str, ...], ...]:
        """Levels of the groups, one tuple for each matrix; a single empty one without groups."""
        names = [self.columns.category(name).level_names for name in self.by]
        return tuple(itertools.product(*names))

    @property
    def groups(self) -> int:
        return math.prod(len(self.columns.category(name).level_names) for name in self.by)

    @cached_property
    def edges(self) -> dict[str, Floats]:
        """Edges of the bins of each number, of shape (bins + 1,), without those at the bounds; empty without shapes."""
        return {one.name: bin_edges(one) for one in self.used.numbers} if self.shapes else {}

    @property
    def histogram_bins(self) -> int:
        """Number of bins of all histograms."""
        return sum(edges.size + 1 for edges in self.edges.values())

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(groups x p + bins, p), p the length of z."""
        return self.groups * self.layout.size + self.histogram_bins, self.layout.size

    @cached_property
    def magnitude(self) -> Floats:
        return np.concatenate([super().magnitude, np.full((self.histogram_bins, self.layout.size), self.most_records)])

    @cached_property
    def _zero(self) -> NDArray[np.bool_]:
        """Entries that are zero in every answer: products of two levels, and all of a bin but its first one."""
        moments = np.tile(self.layout.number_of < 0, (self.groups, 1))
        return np.concatenate([moments, np.tile(np.arange(self.layout.size) > 0, (self.histogram_bins, 1))])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the coordinates of z: "1", the names of numbers, "name observed" and "name=level"."""
        return tuple(name for _, _, name in self._coordinates)

    @property
    def entry_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        prefixes = [", ".join(f"{n}={v}" for n, v in zip(self.by, group, strict=True)) for group in self.group_levels]
        rows = tuple(f"{prefix}: {name}" if prefix else name for prefix in prefixes for name in self.names)
        bins = tuple(f"{name}, bin {i}" for name, edges in self.edges.items() for i in range(edges.size + 1))
        return (*rows, *bins), self.names

    @cached_property
    def largest(self) -> Floats:
        largest = np.ones(self.layout.size)
        if self.used.bounds is not None:
            largest[self.layout.of_kind(VALUE)] = self.used.bounds.halfwidths
        return largest

    @property
    def possible(self) -> tuple[Floats, Floats]:
        high = np.where(self._zero, 0.0, self.magnitude)
        signed = np.isin(np.arange(self.layout.size), self.layout.of_kind(VALUE))
        either = signed[:, None] | signed
        np.fill_diagonal(either, val=False)
        signs = np.pad(np.tile(either, (self.groups, 1)), ((0, self.histogram_bins), (0, 0)))
        return np.where(signs, -high, 0.0), high

    @cached_property
    def scales(self) -> Floats:
        """Precision of each coordinate of z, up to a common factor: how the privacy loss is divided."""
        weights = np.array(list(self._weights.values()))
        scales = np.ones(self.layout.size)
        owners = np.array(self.layout.columns)[1:] - 1
        scales[1:] = weights[owners] / self.largest[1:] ** 2
        scales[self.layout.of_kind(OBSERVED)] *= _OBSERVED_SHARE
        lengths = scales * self.largest**2
        own = self.layout.of_kind(OBSERVED, VALUE)
        categories = [self._weights[column.name] for column in self.measured.categories]
        rest = float(lengths[own].sum()) + sum(categories)
        assert self.mean_share is not None
        scales[0] = self.mean_share / (1 - self.mean_share) * rest
        return scales

    def record_change(self, neighbours: Neighbours) -> TableChange:
        bins = self.histogram_bins, len(self.edges), self.shapes
        rows_private = self.person is not None and self.person.rows is not None
        fixed = self.layout, self.largest, self.scales, self.records, self.groups
        return TableChange(*fixed, neighbours, *bins, rows_private)

    @property
    def counted(self) -> bool:
        """True if the number of records of each matrix is private."""
        return self.groups > 1 or not self.public_number

    @property
    def public(self) -> NDArray[np.bool_] | None:
        mask = self._zero.copy()
        mask[0, 0] = not self.counted
        return mask

    def finish(self, matrix: Floats) -> Floats:
        matrix = super().finish(matrix)
        if not self.counted:
            matrix[0, 0] = 1.0
        return matrix

    def _task(self, *, clip: bool, missing: str) -> TableTask:
        cuts = tuple(to_grid(self.edges[one.name], one, self.records) for one in self.used.numbers if self.shapes)
        settings = clip, missing, self.person, cuts, self.bins
        return TableTask(self.columns, tuple(self.by), self.records, *settings)

    def _average(self, total: Any) -> Floats:
        counts = total.bins / total.bin_unit / self.records
        return np.concatenate([super()._average(total), np.pad(counts[:, None], ((0, 0), (0, self.layout.size - 1)))])

    def _sums(self, total: Any) -> NDArray[Any]:
        kinds = (CONSTANT, VALUE, OBSERVED, LEVEL)  # in the order of `TableTask`
        order = np.argsort([kinds.index(kind) for kind in self.layout.kinds], kind="stable")
        places = np.ix_(np.argsort(order), np.argsort(order))
        return np.concatenate([total.value(group)[places] for group in range(self.groups)])


def bin_edges(column: Number) -> Floats:
    """Edges of the bins of a number between its bounds, which have bins of their own; of shape (bins + 1,).

    A number without steps has 32 equal bins. Edges are in the middle of two values of one with steps, of which it has
    up to 64, each value with its own bin, or up to 32 bins of about as many values.
    """
    if column.step is None:
        return np.linspace(column.lower, column.upper, _BINS + 1)
    inner = round(column.steps) - 1  # values between the bounds
    bins = inner if inner < _MOST_STEPS else _BINS
    places = np.arange(bins + 1) * inner // max(bins, 1)
    return np.asarray(column.lower + column.step * (places + 0.5))


def _default_share(columns: Columns, weight_of: Mapping[str, float], *, grouped: bool) -> float:
    """The share of the constant where it is not given.

    Covariances of n columns want a constant whose squared length is that of all columns over ``sqrt(8 n)``. The sum
    over the k levels of a category is the constant, with a k-th of the category's squared length. With groups, means
    are as important as covariances, and the constant stays as it is.
    """
    numbers = [weight_of[one.name] * (1 + _OBSERVED_SHARE * one.missing) for one in columns.numbers]
    categories = [(weight_of[one.name], len(one.level_names)) for one in columns.categories]
    rest = sum(numbers) + sum(weight for weight, _ in categories)
    constant = rest / math.sqrt(8 * len(columns.columns))
    if not grouped:
        constant = max(constant - sum(weight / width for weight, width in categories), _LEAST_CONSTANT * rest)
    return constant / (constant + rest)


def _check_groups(columns: Columns, by: Any) -> tuple[str, ...]:
    """Names of the columns of the groups, each a category without missing values."""
    if not isinstance(by, Iterable) or isinstance(by, Mapping | bytes):
        raise ParameterError(f"«by» must be names of columns, got {show(by)} instead.")
    names = (by,) if isinstance(by, str) else tuple(by)
    if not all(isinstance(name, str) for name in names):
        raise ParameterError("«by» must be names of columns.")
    if len(set(names)) != len(names):
        raise ParameterError("«by» must name each column once.")
    for name in names:
        if columns.category(name).missing:
            raise ParameterError(
                f"«by» must name columns without missing values, and {name!r} may be missing. Give its missing values "
                "a level of their own in the data, or do not group by it."
            )
    return names


def _check_importance(columns: Columns, importance: Any) -> tuple[tuple[str, float], ...]:
    """Pairs of names of columns and their weights."""
    try:
        pairs = tuple((name, weight) for name, weight in (dict(importance)).items())
    except (TypeError, ValueError):
        raise ParameterError(
            f"importance must map names of columns to weights, got {show(importance)} instead."
        ) from None
    for name, weight in pairs:
        if not isinstance(name, str) or name not in columns.names:
            known = ", ".join(columns.names[:20])
            raise ParameterError(f"importance must be of columns among {known}, got {show(name)} instead.")
        check_number(weight, f"importance of {name!r}", at_least=1 / _MOST_WEIGHT, at_most=_MOST_WEIGHT)
    return tuple((name, float(weight)) for name, weight in pairs)
