"""Questions about a released matrix, their answers as tables of texts, and the same in Python. Post-processing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from matrixdp.display.numbers import format_estimate, format_number
from matrixdp.errors import ParameterError, show
from matrixdp.release import AdaptiveRelease, PlainRelease
from matrixdp.queries import TableMoments
from matrixdp.release import Release
from matrixdp.report.questions import (
    Answer,
    Answerable,
    answer_components,
    answer_matrix,
    answer_means,
    answer_regression,
    answer_table,
)
from matrixdp.studio.field_text import unquote_line

KINDS = {
    "means": "Means",
    "means_by": "Means by group",
    "table": "Table of two categories",
    "correlation": "Correlations",
    "covariance": "Covariances",
    "regression": "Regression",
    "components": "Principal components",
}
_MOST_NUMBERS = 200  # columns of numbers whose pairs are shown
_PALE = 2.0  # numbers within so many error bars of zero


@dataclass(frozen=True)
class Choices:
    """What can be asked of a release.

    Attributes
    ----------
    kinds : tuple of str
        Questions that it answers, among `KINDS`; none if `reason` says why.
    numbers, categories : tuple of str
    splits : tuple of str
        Categories and columns of groups, by whose levels means can be given and records counted.
    groups : mapping of str to tuple of str
        Columns by which the release is grouped, with their levels.
    reason : str
    """

    kinds: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reason: str = ""

    @property
    def explaining(self) -> tuple[str, ...]:
        """Columns that a regression can use."""
        return self.numbers + self.categories


@dataclass(frozen=True)
class Question:
    """One question: its kind, and the columns that it is about.

    Attributes
    ----------
    kind : one of `KINDS`
    by : str
        Whose levels means are given for.
    rows, columns : str
        The categories of a table, or columns of groups.
    target : str
        What a regression explains.
    on : tuple of str
        The columns that explain it; all others if there are none.
    group : mapping of str to str
        Levels of columns by which the release is grouped, unless the answer has all levels of them; all records if
        it is empty.
    """

    kind: str
    by: str = ""
    rows: str = ""
    columns: str = ""
    target: str = ""
    on: tuple[str, ...] = ()
    group: Mapping[str, str] = field(default_factory=dict)

    @property
    def told_apart(self) -> tuple[str, ...]:
        """Columns all of whose levels are in the answer."""
        return {"means_by": (self.by,), "table": (self.rows, self.columns)}.get(self.kind, ())


@dataclass(frozen=True)
class Cell:
    """A number as text with its error bar, or the reason why there is none.

    Attributes
    ----------
    value, bar, reason : str
    pale : bool
        Whether the number may be noise alone.
    """

    value: str
    bar: str = ""
    reason: str = ""
    pale: bool = False


def list_choices(release: Answerable | None) -> Choices:
    """What can be asked of a release."""
    if release is None:
        return Choices(reason="No further answers follow from this release by itself: its report shows the matrix.")
    if isinstance(release, AdaptiveRelease):
        return Choices(_offer(release.names, (), (), models=True), release.names)
    query: Any = release.design.query
    if not isinstance(query, TableMoments):
        names = query.moment_bounds.names or tuple(map(str, range(query.moment_bounds.size)))
        return Choices(_offer(names, (), (), models=False), names)
    numbers, categories = (tuple(one.name for one in part) for part in (query.used.numbers, query.used.categories))
    splits = (*query.by, *categories)
    groups = {name: query.columns.category(name).level_names for name in query.by}
    return Choices(_offer(numbers, categories, splits, models=True), numbers, categories, splits, groups)


def _offer(
    numbers: Sequence[str], categories: Sequence[str], splits: Sequence[str], *, models: bool
) -> tuple[str, ...]:
    few = len(numbers) <= _MOST_NUMBERS
    possible = {
        "means": bool(numbers),
        "means_by": bool(splits),
        "table": len(splits) > 1,
        "correlation": len(numbers) > 1 and few,
        "covariance": bool(numbers) and few,
        "regression": models and bool(numbers) and len(numbers) + len(categories) > 1,
        "components": models and len(numbers) > 1 and few,
    }
    return tuple(kind for kind, can in possible.items() if can)


def read_question(sent: Sequence[tuple[str, str]], choices: Choices) -> Question:
    """The question that a browser sent; what is not said is the first that is possible.

    Raises a `ParameterError` for a column or level that there is not.
    """
    given = dict(sent)
    kind = given.get("kind") or choices.kinds[0]
    if kind not in choices.kinds:
        raise ParameterError(f"kind must be one of {', '.join(choices.kinds)}, got {show(kind)} instead.")
    rows = _choose(given, "rows", choices.splits)
    others = tuple(name for name in choices.splits if name != rows)
    columns = _choose(given, "columns", choices.splits) if given.get("columns") else (others or ("",))[0]
    if kind == "table" and rows == columns:
        raise ParameterError("rows and columns must be two different categories.")
    group = {}
    for name, levels in choices.groups.items():
        level = unquote_line(given.get(f"group.{list(choices.groups).index(name)}", ""))
        if level:
            group[name] = _require(level, f"the level of {name}", levels)
    target = _choose(given, "target", choices.numbers)
    by = _choose(given, "by", choices.splits)
    on = [_require(unquote_line(value), "on", choices.explaining) for name, value in sent if name == "on" and value]
    question = Question(kind, by, rows, columns, target, tuple(name for name in on if name != target), group)
    return replace(question, group={name: group[name] for name in group if name not in question.told_apart})


def _choose(given: Mapping[str, str], name: str, known: Sequence[str]) -> str:
    """The name in a field, or the first that is known."""
    value = unquote_line(given.get(name, ""))
    return _require(value, name, known) if value else (known[0] if known else "")


def _require(value: str, name: str, known: Sequence[str]) -> str:
    if value not in known:
        raise ParameterError(f"{name} must be one of {', '.join(known[:20])}, got {show(value)} instead.")
    return value


def ask(release: Answerable, question: Question) -> Answer:
    """The answer to a question; raises a `ParameterError` where there is none."""
    kind = question.kind
    group = dict(question.group) or None
    with np.errstate(all="ignore"):
        if kind == "means_by":
            return answer_means(release, question.by, group)
        if kind == "means":
            return answer_means(release, None, group)
        if kind == "table":
            return answer_table(release, question.rows, question.columns, group)
        if kind == "regression":
            return answer_regression(release, question.target, question.on or None, group)
        if kind == "components":
            return answer_components(release, None, group)
        return answer_matrix(release, kind, group)


def show_cells(answer: Answer) -> list[list[Cell]]:
    """The numbers of an answer as texts, row by row."""
    estimate = answer.estimate
    m, n = estimate.value.shape
    return [[_show_cell(answer, i, j) for j in range(n)] for i in range(m)]


def _show_cell(answer: Answer, i: int, j: int) -> Cell:
    estimate = answer.estimate
    value, std = float(estimate.value[i, j]), float(estimate.std[i, j])
    if not np.isfinite(value):
        return Cell("–", reason=estimate.reason(i, j))
    if not np.isfinite(std) or std == 0:
        return Cell(format_number(value, 4))
    return Cell(*format_estimate(value, std), pale=abs(value) < _PALE * std)


def to_python(question: Question, stored: Any) -> str:
    """Lines of Python that print the same answer from the downloaded file of `stored`, the whole release."""
    plain = isinstance(stored, Release) and not isinstance(stored.design.query, TableMoments)
    calls: dict[str, tuple[str, list[Any]]] = {
        "means": ("mean" if plain else "means", []),
        "means_by": ("means", [question.by]),
        "table": ("table", [question.rows, question.columns]),
        "regression": ("regression", [question.target, *([list(question.on)] if question.on else [])]),
    }
    method, arguments = calls.get(question.kind, (question.kind, []))
    written = [*map(repr, arguments), *([f"group={question.group!r}"] if question.group else [])]
    part = ".release" if isinstance(stored, PlainRelease) else ""
    return (
        "from pathlib import Path\n\nimport matrixdp as mdp\n\n"
        f'release = mdp.read_release(Path("release.json").read_text()){part}\n'
        f"print(release.{method}({', '.join(written)}))"
    )
