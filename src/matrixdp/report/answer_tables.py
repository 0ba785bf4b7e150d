"""The tables of a report on the moments of a table: means, levels, cross tables, correlations, for all and by group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TypeAlias

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.answers.table_forecast import TableForecast
from matrixdp.queries import TableMoments
from matrixdp.release.result import Release

MODELS = ("components", "regression")
SUMMARIES = ("means", "table", "everything", *MODELS)  # shown in place of the matrix
BY_COLUMN = ("groups", "means_by_level")  # tables of means whose columns are columns of the data
Answering: TypeAlias = Release | TableForecast  # they have the same methods

_MATRICES = ("covariance", "correlation")
_MOST_PAIRS = 20_000  # pairs of numbers in all groups together whose correlations are computed


@dataclass(frozen=True, eq=False)
class AnswerTable:
    """One table of numbers with error bars.

    Attributes
    ----------
    name : str
        Of the file that it is written to, without the ending.
    title : str
    label : str
        What the rows are.
    estimate : Estimate
    group : tuple of str
        Levels of the group that it is of; empty for all records.
    """

    name: str
    title: str
    label: str
    estimate: Estimate
    group: tuple[str, ...] = ()


def make_answers(release: Answering, kind: str, *, groups: bool = True) -> tuple[AnswerTable, ...]:
    """The tables that a report of this kind shows; post-processing.

    Parameters
    ----------
    release : Release or TableForecast
        Of `TableMoments`. The error bars of a forecast are a prediction for the data that it describes.
    kind : 'means', 'table', 'everything', 'covariance' or 'correlation'
    groups : bool
        Whether to include the tables of single groups; the one that describes all groups is always there.
    """
    query = release.design.query
    assert isinstance(query, TableMoments)
    with np.errstate(all="ignore"):
        return tuple(_list_answers(release, query, kind, groups=groups))


def _list_answers(release: Answering, query: TableMoments, kind: str, *, groups: bool) -> Iterator[AnswerTable]:
    yield from _answer_group(release, query, kind, ())
    if not query.by:
        return
    yield _describe_groups(release, query)
    for group in query.group_levels if groups else ():
        yield from _answer_group(release, query, kind, group)


def _answer_group(release: Answering, query: TableMoments, kind: str, group: tuple[str, ...]) -> Iterator[AnswerTable]:
    """The tables of all records together, or of one group."""
    chosen = group or None
    numbers, categories = query.used.numbers, query.used.categories
    if numbers and kind != "table":
        yield AnswerTable("means", "Means", "column", release.means(group=chosen), group)
    if kind in ("means", "everything"):
        for column in categories:
            share = _first_column(release.means(column.name, group=chosen))
            yield AnswerTable("levels", f"Levels of {column.name}", column.name, share, group)
    if kind == "everything" and numbers:
        for column in categories:
            means = release.means(column.name, group=chosen)
            yield AnswerTable("means_by_level", f"Means by {column.name}", column.name, means, group)
    if kind in ("table", "everything"):
        for one, other in _list_pairs(query, split=not group):
            counts = _count(release.table(one, other, group=chosen), query.records)
            title = f"{query.count_word.capitalize()} by {one} and {other}"
            yield AnswerTable("table", title, f"{one} \\ {other}", counts, group)
    if len(numbers) ** 2 * (query.groups + 1) > _MOST_PAIRS and group:
        return
    for matrix in _MATRICES:
        if matrix == kind or (kind == "everything" and len(numbers) > 1):
            found = release.covariance(chosen) if matrix == "covariance" else release.correlation(chosen)
            assert isinstance(found, Estimate)
            yield AnswerTable(matrix, matrix.capitalize(), "column", found, group)


def _list_pairs(query: TableMoments, *, split: bool) -> list[tuple[str, str]]:
    """Pairs of categories; with `split` also those with a column of groups."""
    names = [column.name for column in query.used.categories]
    pairs = list(combinations(names, 2))
    return [*pairs, *product(query.by, names), *combinations(query.by, 2)] if split else pairs


def _describe_groups(release: Answering, query: TableMoments) -> AnswerTable:
    """Share of the records, and means, of each group in one table."""
    *first, last = query.by
    names = tuple(", ".join(levels) for levels in query.group_levels)
    parts = []
    seen = dict.fromkeys(levels[:-1] for levels in query.group_levels)
    for levels in seen:
        given = dict(zip(first, levels, strict=True))
        parts.append(release.means(last, group=given or None))
    value, std = (np.concatenate([getattr(part, name) for part in parts]) for name in ("value", "std"))
    estimate = Estimate(value, std, names, parts[0].columns)
    return AnswerTable("groups", f"Groups by {' and '.join(query.by)}", ", ".join(query.by), estimate)


def _first_column(estimate: Estimate) -> Estimate:
    return Estimate(estimate.value[:, :1], estimate.std[:, :1], estimate.rows, estimate.columns[:1])


def _count(shares: Estimate, records: int) -> Estimate:
    return replace(shares, value=shares.value * records, std=shares.std * records)
