"""One question about a release: numbers with error bars, and the words that go with them. Post-processing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from matrixdp.answers.estimate import HIDDEN, Estimate
from matrixdp.errors import ParameterError
from matrixdp.queries import Moments, TableMoments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.covariance_release import CovarianceRelease
from matrixdp.release.error_parts import error_parts
from matrixdp.release.plain_release import PlainRelease
from matrixdp.release.result import Release
from matrixdp.report.content import REPLACED

NO_COST = "This costs no privacy: it follows from the release alone, however many answers are read off it."
_BARS = "± is one standard deviation of the privacy noise; sampling error is not in it."
_SHRUNK = (
    "Shrunk towards {} by as much as noise suggests: biased, with less error on average where noise dominates. ± is "
    "one standard deviation of the privacy noise before that."
)
_FIT_BARS = "± is the error that privacy adds, estimated by simulation; sampling error is not in it."

Answerable = Release | AdaptiveRelease
Group = Mapping[str, str] | None


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to one question.

    Attributes
    ----------
    title : str
    label : str
        What the rows are.
    estimate : Estimate
    notes : tuple of str
        How to read the numbers.
    facts : dict
        Further entries of the answer as JSON.
    """

    title: str
    label: str
    estimate: Estimate
    notes: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


def as_answerable(release: object) -> Answerable | None:
    """The part of a release that questions are asked of, or None if there is none."""
    if isinstance(release, PlainRelease):
        return release.release
    if isinstance(release, AdaptiveRelease):
        return release
    if isinstance(release, Release) and isinstance(release.design.query, Moments | TableMoments):
        return release
    return None


def _explain_bars(towards: str, *, shrunk: bool) -> str:
    return _SHRUNK.format(towards) if shrunk else _BARS


def answer_means(release: Answerable, by: str | None = None, group: Group = None, *, shrunk: bool = False) -> Answer:
    """Means, by level if `by` is given."""
    if by is not None:
        found = _require_table(release).means(by, group, shrunk=shrunk)
        return Answer(f"Means by {by}", by, found, (_explain_bars("the means of all records", shrunk=shrunk),))
    _refuse_groups(release, group)
    if shrunk:
        raise ParameterError("shrunk means need by: the means of all records are not shrunk.")
    if isinstance(release, AdaptiveRelease):
        return Answer("Means", "column", release.means(), (_FIT_BARS,))
    if not isinstance(release.design.query, TableMoments):
        return Answer("Means", "column", release.mean(), (_BARS,))
    return Answer("Means", "column", release.means(group=group), (_BARS,))


def answer_table(release: Answerable, rows: str, columns: str, group: Group = None, *, shrunk: bool = False) -> Answer:
    """How many records or people have each pair of levels."""
    table = _require_table(release)
    shares, query = table.table(rows, columns, group, shrunk=shrunk), table.design.query
    records = query.records  # type: ignore[attr-defined]
    counts = replace(shares, value=shares.value * records, std=shares.std * records)
    title = f"{query.count_word.capitalize()} by {rows} and {columns}"
    return Answer(title, f"{rows} \\ {columns}", counts, (_explain_bars("independence", shrunk=shrunk),))


def answer_matrix(release: Answerable, kind: str, group: Group = None, *, shrunk: bool = False) -> Answer:
    """Correlations or covariances; `shrunk` is for correlations of a table."""
    _refuse_groups(release, group)
    if isinstance(release, AdaptiveRelease):
        if shrunk:
            raise ParameterError("shrunk (--shrunk) must be left out: an adaptive fit shrinks its correlations itself.")
        found = release.correlation() if kind == "correlation" else release.covariance()
        return Answer(kind.capitalize(), "column", found, (_FIT_BARS,))
    estimate = release.correlation(group, shrunk=shrunk) if kind == "correlation" else release.covariance(group)
    return Answer(kind.capitalize(), "column", estimate, (_explain_bars("zero and a possible matrix", shrunk=shrunk),))


def answer_sampling(release: CovarianceRelease | Release, kind: str) -> Answer:
    """The error that privacy adds and the sampling error, for 'means', 'covariance' or 'correlation'."""
    notes = (
        "privacy std: the error against the same records without privacy. sampling std: the error that these records "
        "have as a sample from a population. Both add in squares.",
    )
    return Answer(f"Errors of the {kind}", "number", error_parts(release, kind), notes)


def answer_components(release: Answerable, count: int | None = None, group: Group = None) -> Answer:
    """Principal components."""
    _refuse_groups(release, group)
    if isinstance(release, AdaptiveRelease):
        found, bars = release.components(count), _FIT_BARS
    else:
        found, bars = _require_table(release).components(count, group), _BARS
    notes = [bars, "Loadings of the standardised numbers; the sign of a component is arbitrary."]
    if not found.reliable.all():
        notes.append("A component that noise mixes with another one is not shown.")
    return Answer("Principal components", "column", found, tuple(notes))


def answer_regression(release: Answerable, target: str, on: Sequence[str] | None = None, group: Group = None) -> Answer:
    """The coefficients of a linear regression."""
    _refuse_groups(release, group)
    if isinstance(release, AdaptiveRelease):
        found = release.regression(target, on)
    else:
        found = _require_table(release).regression(target, on, group)
    low, high = found.interval()
    value = np.column_stack([found.coefficients, found.noise_std, found.sampling_std, low, high])
    columns = ("coefficient", "noise std", "sampling std", "95% low", "95% high")
    notes: tuple[str, ...] = (
        f"R^2 {found.r_squared:.3f}. The intervals cover the privacy noise and the sampling error.",
    )
    if not isinstance(release, AdaptiveRelease):
        notes += tuple(_name_references(release, found.names))
    if np.isnan(found.noise_std).any():
        notes += ("A dash: noise hides which of several features matters, since they are nearly collinear.",)
    facts = {"target": target, "r_squared": found.r_squared}
    reasons = np.full(value.shape, HIDDEN, object)
    estimate = Estimate(value, np.full_like(value, np.nan), found.names, columns, reasons)
    return Answer(f"Regression of {target}", "term", estimate, notes, facts)


def _name_references(release: Release, terms: Sequence[str]) -> Iterator[str]:
    """The level with which each category among the terms of a model is compared."""
    query: Any = release.design.query
    for column in query.used.categories:
        first, *others = column.level_names
        if any(f"{column.name}={level}" in terms for level in others):
            yield f"Coefficients of {column.name} are differences from its level {first}."


def answer_discriminant(
    release: Answerable, target: str, on: Sequence[str] | None = None, group: Group = None
) -> Answer:
    """The scores of a linear discriminant analysis."""
    found = _require_table(release).discriminant(target, on, group)
    value = np.column_stack([found.intercepts, found.coefficients]).T
    value = value - value.mean(axis=1, keepdims=True)
    std = np.column_stack([found.intercept_std, found.coefficient_std]).T
    estimate = Estimate(value, std, ("intercept", *found.names), found.classes)
    notes = (
        "The score of a level is its intercept plus the sum of coefficients times values (1 for a level that a record "
        "has, beside the first one), here as the difference from the mean of all scores. A record is classified as the "
        "level with the largest score.",
        _BARS,
    )
    return Answer(f"Discriminant scores of {target}", "term", estimate, notes, {"target": target})


def _refuse_groups(release: Answerable, group: Group) -> None:
    """Raise a `ParameterError` if `group` is given for a release that cannot have groups."""
    if group is not None and not (isinstance(release, Release) and isinstance(release.design.query, TableMoments)):
        raise ParameterError("group (--group) must be left out: this release has no groups. Release it with --by.")


def _require_table(release: Answerable) -> Release:
    """The release, if it is of the moments of a table."""
    if isinstance(release, Release) and isinstance(release.design.query, TableMoments):
        return release
    raise ParameterError(
        "this follows from a release of the moments of a table (--query everything, means or table), and this release "
        "is another one."
    )


def list_notes(release: Answerable | CovarianceRelease, answer: Answer) -> tuple[str, ...]:
    """All sentences that go with an answer."""
    caveats = [REPLACED] if getattr(release, "missing", "error") == "midpoint" else []
    if release.simulation:
        caveats.append("This is a simulation: it protects nothing.")
    return (*answer.notes, NO_COST, *caveats)


def to_facts(release: Answerable | CovarianceRelease, answer: Answer) -> dict[str, Any]:
    """The answer as the content of a JSON text."""
    notes = list(list_notes(release, answer))
    return {"title": answer.title, **answer.facts, **answer.estimate.to_dict(), "notes": notes}


def align_rows(estimate: Estimate, spreads: Sequence[int]) -> Callable[[int, int], str]:
    """Texts for a table in which each row has one unit; an empty text where there is nothing to go by.

    A row has as many decimals as show three digits of the root of the squares of its standard deviations, which are in
    the columns `spreads`.

    Examples
    --------
    >>> table = Estimate(np.array([[170.3241, 0.8032, 0.43]]), np.zeros((1, 3)), ("size",), ("value", "a", "b"))
    >>> [align_rows(table, (1, 2))(0, column) for column in range(3)]
    ['170.324', '0.803', '0.430']
    """

    def write(i: int, j: int) -> str:
        value, spread = float(estimate.value[i, j]), math.hypot(*np.nan_to_num(estimate.value[i, list(spreads)]))
        if not 0 < spread < 1e9 or not abs(value) < 1e9:
            return ""
        places = 2 - math.floor(math.log10(spread))
        return f"{round(value, places) + 0.0:.{max(places, 0)}f}" if places <= 8 else ""

    return write
