"""Answers from a release, as reports, the command line and the studio show them: numbers, titles, notes. No budget.

One question gives one `Answer`; a report on the moments of a table asks many of them, for all records and by group.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.estimate import Estimate, join, settle
from matrixdp.answers.histograms import QUARTILES
from matrixdp.answers.moments import ALL
from matrixdp.answers.table_forecast import TableForecast
from matrixdp.display import Texts, format_number, join_cells
from matrixdp.errors import ParameterError, show
from matrixdp.noise.matrix import Covariance
from matrixdp.queries import ContingencyTable, Moments, TableMoments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.result import Release
from matrixdp.types import Floats

MODELS = ("components", "regression")
SUMMARIES = ("means", "table", "everything", *MODELS)  # shown in place of the matrix
_BY_COLUMN = ("groups", "means_by_level")  # tables of means whose columns are columns of the data
REPLACED = (
    "Missing values, if there were any, were replaced by the middle of their bounds (except in columns with missing = "
    "true), as --missing midpoint asks. This biases means, standard deviations, covariances and correlations, and no "
    "error bar shows it. Without this bias: describe such columns with missing = true."
)
NO_COST = "This costs no privacy: it follows from the release alone, however many answers are read off it."

_BESIDE = (
    "Correlations are from an adaptive fit of the numbers, for a share of the budget; covariances, which have more "
    "noise, are not from this fit and may not agree with them."
)
_MOST_PAIRS = 20_000  # pairs of numbers in all groups together whose correlations are computed
_BARS = "± is one standard deviation of the privacy noise; sampling error is not in it."
_SHRUNK = (
    "Shrunk towards {} by as much as noise suggests: biased, with less error on average where noise dominates. ± is "
    "one standard deviation of the privacy noise before that."
)
_FIT_BARS = "± is the error that privacy adds, estimated by simulation; sampling error is not in it."

Answerable = Release | AdaptiveRelease
Asked = Answerable | TableForecast  # a forecast has the methods of a release of a table
Group = Mapping[str, str] | tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to one question: numbers with error bars, and the words that go with them."""

    title: str
    label: str  # what the rows are
    estimate: Estimate
    notes: tuple[str, ...] = ()  # how to read the numbers
    facts: dict[str, Any] = field(default_factory=dict)  # further entries of the answer as JSON
    name: str = ""  # in a report, of the file that it is written to
    group: tuple[str, ...] = ()  # in a report, the levels of the group that it is of
    text: Texts | None = None  # strings in place of the numbers of a table
    again: Callable[[Any], "Answer"] | None = None  # asks another release or a forecast the same question
    scale: Floats | None = None  # colours are relative to it: the largest absolute value of each number of a matrix

    def list_means(self) -> list[list[str]] | None:
        """The column of the data that each entry is the mean of, empty for others; None if there are no means."""
        rows, columns = self.estimate.rows, self.estimate.columns
        if self.name == "quantiles":
            return [[row for _ in columns] for row in rows]
        if self.name == "histogram":
            return [[self.label if one in ("from", "to") else "" for one in columns] for _ in rows]
        if self.name in _BY_COLUMN:
            return [["", *columns[1:]] for _ in rows]
        if self.name in ("means", "averages"):
            return [[row if one in ("mean", "average") else "" for one in columns] for row in rows]
        return None

    @property
    def fades(self) -> NDArray[np.bool_]:
        """Which numbers fade where they may be noise alone: all but means, of which zero is a value like others."""
        names = self.list_means()
        every = np.ones(self.estimate.value.shape, bool)
        return every if names is None else np.array([[not name for name in line] for line in names])


def as_answerable(release: object) -> Answerable | None:
    """The part of a release that questions are asked of, or None if there is none."""
    if isinstance(release, AdaptiveRelease):
        return release
    if isinstance(release, Release) and isinstance(release.design.query, TableMoments | Moments):
        return release
    return None


# One question


def answer_means(release: Asked, by: str | None = None, group: Group = None, *, shrunk: bool = False) -> Answer:
    """Means, by level if `by` is given."""
    if by is not None:
        found = _require_table(release).means(by, group, **_shrink(shrunk))
        notes = (_SHRUNK.format("the means of all records") if shrunk else _BARS,)
        again = partial(answer_means, by=by, group=group)
        return Answer(f"Means by {by}", by, found, notes, name="means_by_level", again=again)
    if shrunk:
        raise ParameterError("shrunk means need by: the means of all records are not shrunk.")
    found, again = _require_groups(release, group).means(group=group), partial(answer_means, group=group)
    return Answer("Means", "column", found, (_name_bars(release),), name="means", again=again)


def answer_quantiles(
    release: Asked, columns: Sequence[str] | None = None, q: Sequence[float] = QUARTILES, group: Group = None
) -> Answer:
    """Quantiles of numbers."""
    found = _require_table(release, whole=group is None).quantiles(columns, q)
    note = "Intervals cover every bin that may contain the quantile, given the privacy noise, but no sampling error."
    return Answer("Quantiles", "column", found, (note,), name="quantiles")


def answer_histogram(release: Asked, column: str, group: Group = None) -> Answer:
    """The histogram of a number."""
    histograms = _require_table(release, whole=group is None).histograms()
    if column not in histograms:
        raise ParameterError(f"column must be a number, one of {', '.join([*histograms][:20])}, got {show(column)}.")
    found = histograms[column].to_estimate()
    text = [[format_number(end, 6) for end in row[:2]] + [""] for row in found.value.tolist()]
    notes = (_SHRUNK.format("a smooth shape, or few bins,"),)
    return Answer(f"Histogram of {column}", column, found, notes, name="histogram", text=text)


def answer_table(release: Asked, rows: str, columns: str, group: Group = None, *, shrunk: bool = False) -> Answer:
    """How many records or people have each pair of levels."""
    table = _require_table(release)
    shares, query = table.table(rows, columns, group, **_shrink(shrunk)), table.design.query
    counts = shares.scale(query.records)
    notes = (_SHRUNK.format("independence") if shrunk else _BARS,)
    title = f"{query.count_word.capitalize()} by {rows} and {columns}"
    return Answer(title, f"{rows} \\ {columns}", counts, notes, name="table")


def answer_matrix(release: Asked, kind: str, group: Group = None, *, shrunk: bool = False) -> Answer:
    """Correlations or covariances; `shrunk` is for correlations of a table."""
    _require_groups(release, group)
    if shrunk and isinstance(release, AdaptiveRelease):
        raise ParameterError("shrunk (--shrunk) must be left out: an adaptive fit shrinks its correlations itself.")
    found = release.correlation(group, **_shrink(shrunk)) if kind == "correlation" else release.covariance(group)
    note = _SHRUNK.format("zero and a possible matrix") if shrunk else _name_bars(release)
    fitted = kind == "correlation" and group is None and isinstance(release, Release) and release.fit is not None
    again = partial(answer_matrix, kind=kind, group=group)
    return Answer(kind.capitalize(), "column", found, (note, *([_BESIDE] * fitted)), name=kind, again=again)


def answer_sampling(release: Answerable, kind: str) -> Answer:
    """The error that privacy adds and the sampling error, for 'means', 'covariance' or 'correlation'."""
    notes = (
        "privacy std: the error against the same records without privacy. sampling std: the error that these records "
        "have as a sample from a population. Both add in squares.",
    )
    found = release.error_parts(kind)
    return Answer(f"Errors of the {kind}", "number", found, notes, name="sampling")


def answer_components(release: Asked, count: int | None = None, group: Group = None) -> Answer:
    """Principal components."""
    found = _require_groups(release, group, models=True).components(count, group)
    notes = [_name_bars(release), "Loadings of the standardised numbers; the sign of a component is arbitrary."]
    if not found.reliable.all():
        notes.append("Noise mixes a component that has plausible ranges with another one.")
    again = partial(answer_components, count=count, group=group)
    return Answer("Principal components", "column", found, tuple(notes), name="components", again=again)


def answer_regression(release: Asked, target: str, on: Sequence[str] | None = None, group: Group = None) -> Answer:
    """The coefficients of a linear regression; those of a category are compared with its first level."""
    found = _require_groups(release, group, models=True).regression(target, on, group)
    (share,), (rest,) = join_cells(found.fit)
    notes = [
        f"Share explained (R^2): {share}; residual standard deviation: {rest}.",
        "95% low and high cover the privacy noise and the sampling error.",
    ]
    notes += _list_references(release, found.names)
    if found.terms.plausible[:, 0].any():
        notes.append("Noise hides which of several features matters where they are nearly collinear.")
    (share_low, rest_low), (share_high, rest_high) = (end[:, 0].tolist() for end in found.fit.interval())
    facts = {
        "target": target,
        "r_squared": {"value": found.r_squared, "low": share_low, "high": share_high},
        "residual_std": {"value": float(found.fit.value[1, 0]), "low": rest_low, "high": rest_high},
    }
    again = partial(answer_regression, target=target, on=on, group=group)
    return Answer(f"Regression of {target}", "term", found.named, tuple(notes), facts, name="regression", again=again)


def _list_references(release: Asked, names: Sequence[str]) -> Iterator[str]:
    """The level that each category's coefficients are compared with."""
    query: Any = None if isinstance(release, AdaptiveRelease) else release.design.query
    for column in () if query is None else query.used.categories:
        first, *others = column.level_names
        if any(f"{column.name}={level}" in names for level in others):
            yield f"Coefficients of {column.name} are differences from its level {first}."


def answer_discriminant(
    release: Answerable, target: str, on: Sequence[str] | None = None, group: Group = None
) -> Answer:
    """The scores of a linear discriminant analysis."""
    named = _require_table(release).discriminant(target, on, group).terms
    apart = named.value - named.value.mean(axis=1, keepdims=True)
    estimate = replace(named, value=apart, measured=apart)
    notes = (
        "The score of a level is its intercept plus the sum of coefficients times values (1 for a level that a record "
        "has, beside the first one), here as the difference from the mean of all scores. A record is classified as the "
        "level with the largest score.",
        _BARS,
    )
    return Answer(f"Discriminant scores of {target}", "term", estimate, notes, {"target": target})


def _name_bars(release: Asked) -> str:
    return _FIT_BARS if isinstance(release, AdaptiveRelease) else _BARS


def _shrink(shrunk: bool) -> dict[str, bool]:
    """The option of a release, which a forecast does not have."""
    return {"shrunk": True} if shrunk else {}


def _has_table(release: object) -> bool:
    return isinstance(getattr(getattr(release, "design", None), "query", None), TableMoments)


def _require_groups(release: Asked, group: Group, *, models: bool = False) -> Any:
    """The release, if it has groups or none is asked for; `models` are of the moments of a table, or of a fit."""
    if group is not None and not _has_table(release):
        raise ParameterError("group (--group) must be left out: this release has no groups. Release it with --by.")
    return _require_table(release) if models and not isinstance(release, AdaptiveRelease) else release


def _require_table(release: Asked, *, whole: bool = True) -> Any:
    """The release, if it is of the moments of a table; answers that are not by group must be of the `whole`."""
    if not whole:
        raise ParameterError("group (--group) must be left out: histograms and quantiles are of all records.")
    if _has_table(release):
        return release
    raise ParameterError(
        "this follows from a release of the moments of a table (--query everything, means or table), and this release "
        "is another one."
    )


# All questions of a report


def make_answers(
    release: Asked, kind: str, target: str | None = None, on: Sequence[str] | None = None, *, groups: bool = True
) -> tuple[Answer, ...]:
    """The tables that a report of this kind shows; post-processing.

    Reports on 'table' and 'everything' are of the moments of a table, of which `release` may be a forecast; its error
    bars are a prediction. `target` and `on` are the columns of a regression. Without `groups`, the tables of single
    groups are left out; the one that describes all groups is always there.
    """
    if kind == "components":
        return (replace(answer_components(release), title="Principal components of the standardised numbers"),)
    if kind == "regression":
        if target is None:
            raise ParameterError("target must be given for a regression: the number that is explained.")
        found = release.regression(target, on)
        asked: dict[str, Any] = {"facts": {"target": target}, "again": partial(answer_regression, target=target, on=on)}
        references = tuple(_list_references(release, found.names))
        return (
            Answer(f"Regression of {target}", "term", found.named, references, name=kind, **asked),
            Answer("How well it fits", "", found.fit, name=kind),
        )
    if isinstance(release, AdaptiveRelease) or not isinstance(release.design.query, TableMoments):
        return (answer_means(release) if kind == "means" else answer_matrix(release, kind),)
    query = release.design.query
    with np.errstate(all="ignore"):
        answers = list(_answer_group(release, query, kind, ()))
        if query.by:
            answers.append(answer_groups(release))
        for group in query.group_levels if query.by and groups else ():
            answers += [replace(answer, group=group) for answer in _answer_group(release, query, kind, group)]
    return tuple(answers)


def _answer_group(
    release: Release | TableForecast, query: TableMoments, kind: str, group: tuple[str, ...]
) -> Iterator[Answer]:
    """The tables of all records together, or of one group; pairs with a column of groups are for all records."""
    chosen, numbers, categories = group or None, query.used.numbers, [one.name for one in query.used.categories]
    if numbers and kind != "table":
        yield answer_means(release, group=chosen)
    if query.shapes and not group and isinstance(release, Release):
        yield answer_quantiles(release)
        yield from (answer_histogram(release, number.name) for number in numbers)
    by_level = [answer_means(release, name, chosen) for name in categories if kind in ("means", "everything")]
    for answer in by_level:
        shares = answer.estimate.cut(len(answer.estimate.rows), 1)
        yield replace(answer, name="levels", title=f"Levels of {answer.label}", estimate=shares, again=None)
    if kind == "everything" and numbers:
        yield from by_level
    if kind in ("table", "everything"):
        split = [] if group else [*product(query.by, categories), *combinations(query.by, 2)]
        for pair in [*combinations(categories, 2), *split]:
            yield answer_table(release, *pair, chosen)
    if len(numbers) ** 2 * (query.groups + 1) > _MOST_PAIRS and group:
        return
    for matrix in ("covariance", "correlation"):
        if matrix == kind or (kind == "everything" and len(numbers) > 1):
            yield answer_matrix(release, matrix, chosen)


def answer_groups(release: Asked) -> Answer:
    """Share of the records, and means, of each group of a release by group, in one table."""
    table = _require_table(release)
    query: TableMoments = table.design.query
    *first, last = query.by
    names = tuple(", ".join(levels) for levels in query.group_levels)
    parts = []
    for levels in dict.fromkeys(levels[:-1] for levels in query.group_levels):
        given = dict(zip(first, levels, strict=True))
        parts.append(table.means(last, group=given or None))
    estimate = join(parts, names, parts[0].columns)
    return Answer(f"Groups by {' and '.join(query.by)}", ", ".join(query.by), estimate, name="groups")


def add_totals(release: Release) -> Estimate | None:
    """The released counts with a last row and a last column of totals; None if it is not a table of counts.

    None also for noise that is not a product of rows and columns (``design.flat``).

    Counts with totals are ``AXB'``, where A and B add a row of ones to the identity. For noise with covariances R
    between rows and C between columns, entry (i, j) has the variance ``(ARA')_ii (BCB')_jj``. Where counts are adjusted
    to a public total, this takes ``(AR1)_i^2 (BC1)_j^2 / (1'R1 1'C1)`` of it, of all counts together everything
    (`matrixdp.noise.matrix`).

    Post-processing: uses no privacy budget.
    """
    query = release.design.query
    if not isinstance(query, ContingencyTable) or release.design.flat:
        return None
    rows, columns = query.entry_names
    sums = release.matrix.sum(axis=1, keepdims=True)
    value = np.vstack([np.hstack([release.matrix, sums]), np.append(release.matrix.sum(axis=0), sums.sum())])
    (r, left), (c, right) = (_extend(one) for one in (release.design.noise.rowcov, release.design.noise.colcov))
    variance = np.multiply.outer(r, c)
    if query.total is not None:
        variance -= np.multiply.outer(left**2 / left[-1], right**2 / right[-1])
        variance[-1, -1] = 0.0
    std = np.sqrt(np.maximum(variance, 0.0))
    std[:-1, :-1] = release.std
    most = np.inf if query.total is None else query.total
    return settle(value, std, (*rows, ALL), (*columns, ALL), (np.zeros(()), np.array(most)))


def _extend(covariance: Covariance) -> tuple[Floats, Floats]:
    """``diag(ACA')`` and ``AC1`` of a covariance C, where A adds a row of ones to the identity."""
    sums, directions = np.asarray(covariance.variances), covariance.directions
    if directions is not None:
        sums = directions @ (covariance.variances * directions.sum(axis=0))
    return np.append(covariance.marginal(), sums.sum()), np.append(sums, sums.sum())
