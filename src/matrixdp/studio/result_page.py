"""Results: the report, an explorer of the released matrix, and downloads. Post-processing, which costs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from markupsafe import Markup
from starlette.responses import FileResponse, JSONResponse, Response

from matrixdp.display import CERTAIN, make_visible, write_csv, write_table
from matrixdp.domain.fields import quote_line, unquote_line
from matrixdp.domain.schema_file import parse_schema
from matrixdp.errors import ParameterError, show
from matrixdp.privacy import Privacy
from matrixdp.queries import TableMoments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.report.answers import (
    Answer,
    Answerable,
    answer_components,
    answer_matrix,
    answer_means,
    answer_regression,
    answer_table,
    as_answerable,
    list_notes,
    to_facts,
)
from matrixdp.report.guarantee import describe_odds, name_loss, read_mechanism
from matrixdp.studio.charts import draw_answer
from matrixdp.studio.rendering import render
from matrixdp.studio.roles import Viewer
from matrixdp.studio.security import CurrentStudio, CurrentViewer
from matrixdp.studio.studio import Studio

router = APIRouter()
# A report is a document of its own, with styles of its own: no script runs in it, and the studio is out of its reach.
_REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
_FORMATS = ("csv", "json")
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


def list_choices(release: Answerable | None) -> Choices:
    """What can be asked of a release."""
    if release is None:
        return Choices(reason="No further answers follow from this release by itself: its report shows the matrix.")
    if isinstance(release, AdaptiveRelease):
        return Choices(_offer(release.names, (), (), models=True), release.names)
    query: Any = release.design.query
    if not isinstance(query, TableMoments):
        names = query.bounds.names or tuple(map(str, range(query.bounds.size)))
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


def show_table(answer: Answer) -> Markup:
    """The numbers of an answer as the HTML of a table."""

    def label(name: str) -> str:
        return str(Markup('<span title="{0}">{0}</span>').format(make_visible(name)))

    table = write_table(answer.estimate, kind="matrix answers", corner=(answer.label, ""), label=label)
    return Markup(table)  # noqa: S704 (it has escaped all names)


def to_python(question: Question) -> str:
    """Lines of Python that print the same answer from the downloaded file of the release."""
    calls: dict[str, tuple[str, list[Any]]] = {
        "means_by": ("means", [question.by]),
        "table": ("table", [question.rows, question.columns]),
        "regression": ("regression", [question.target, *([list(question.on)] if question.on else [])]),
    }
    method, arguments = calls.get(question.kind, (question.kind, []))
    written = [*map(repr, arguments), *([f"group={question.group!r}"] if question.group else [])]
    return (
        f'import matrixdp as mdp\n\nrelease = mdp.load("release.json")\nprint(release.{method}({", ".join(written)}))'
    )


@router.get("/results")
def list_results(request: Request, studio: CurrentStudio, viewer: CurrentViewer) -> Response:
    """All releases, the latest first."""
    return render(request, "results.html", results=studio.results.list_all(viewer))


@router.get("/results/{request_id}")
def show_result(request: Request, studio: CurrentStudio, viewer: CurrentViewer, request_id: str) -> Response:
    """One release, with its first answer."""
    return _show(request, studio, viewer, request_id)


@router.get("/results/{request_id}/explore")
def explore(request: Request, studio: CurrentStudio, viewer: CurrentViewer, request_id: str) -> Response:
    """The answer to a question about a release, as a page or, with ``format``, as a file."""
    form = request.query_params.get("format")
    if form is None:
        return _show(request, studio, viewer, request_id)
    if form not in _FORMATS:
        raise ParameterError(f"format must be one of {', '.join(_FORMATS)}.")
    release = as_answerable(studio.results.load(viewer, request_id))
    choices = list_choices(release)
    if release is None:
        raise ParameterError(choices.reason)
    question = read_question(request.query_params.multi_items(), choices)
    answer = ask(release, question)
    headers = {"Content-Disposition": f'attachment; filename="{question.kind}.{form}"'}
    if form == "csv":
        return Response(write_csv(answer.estimate), media_type="text/csv", headers=headers)
    return JSONResponse(to_facts(release, answer), headers=headers)


@router.get("/results/{request_id}/report")
def show_report(studio: CurrentStudio, viewer: CurrentViewer, request_id: str) -> Response:
    """The report of a release, as ``matrixdp release`` writes it."""
    path = studio.results.path(viewer, request_id, "report.html")
    return FileResponse(path, media_type="text/html", headers={"Content-Security-Policy": _REPORT_POLICY})


@router.get("/results/{request_id}/files/{name}")
def download_file(studio: CurrentStudio, viewer: CurrentViewer, request_id: str, name: str) -> Response:
    """One file of a release."""
    path = studio.results.path(viewer, request_id, name)
    return FileResponse(path, filename=path.name, headers={"Content-Security-Policy": _REPORT_POLICY})


def _show(request: Request, studio: Studio, viewer: Viewer, request_id: str) -> Response:
    """The page of a release, with the answer to the question in its address."""
    found, stored = studio.results.get(viewer, request_id), studio.results.load(viewer, request_id)
    release = as_answerable(stored)
    choices = list_choices(release)
    privacy = Privacy(found.spec.epsilon, found.spec.delta)
    context: dict[str, Any] = {"answer": None, "question": None, "problem": None, "kind": None}
    if release is not None and choices.kinds:
        context |= _describe_answer(request, release, choices)
    if context["answer"]:
        context["dates"] = _describe_dates(found.schema, context["answer"])
    odds = ""
    if stored is not None:
        odds = describe_odds(privacy.epsilon, privacy.delta, read_mechanism(release or stored).query.protects)
    return render(
        request,
        "result.html",
        status=422 if context["problem"] else 200,
        found=found,
        address=f"/results/{found.id}",
        title=f"{found.spec.title} · {found.dataset}",
        loss=name_loss(privacy.epsilon).capitalize(),
        odds=odds,
        privacy=privacy,
        files=studio.results.files(viewer, request_id),
        choices=choices,
        kinds=KINDS,
        quote_line=quote_line,
        **context,
    )


def _describe_answer(request: Request, release: Answerable, choices: Choices) -> dict[str, Any]:
    """What the template needs to show a question and its answer, or why there is none."""
    question = None
    try:
        question = read_question(request.query_params.multi_items(), choices)
        answer = ask(release, question)
    except ParameterError as error:
        if question is None:
            kind = request.query_params.get("kind")
            question = read_question([("kind", kind)] if kind in choices.kinds else [], choices)
        return {"problem": str(error), "kind": question.kind, "question": question}
    estimate = answer.estimate
    return {
        "kind": question.kind,
        "question": question,
        "answer": answer,
        "table": show_table(answer),
        "weak": bool((abs(estimate.value) < CERTAIN * estimate.std).any()),
        "hidden": bool((~estimate.reliable).any()),
        "charts": draw_answer(release, question.kind, answer),
        "notes": list_notes(release, answer),
        "python": to_python(question),
    }


def _describe_dates(schema: str, answer: Answer) -> list[str]:
    """What the numbers of those columns of an answer count that are dates or times."""
    rules = parse_schema(schema).rules
    names = {*answer.estimate.rows, *answer.estimate.columns, answer.facts.get("target")}
    return [f"{rule.name}: a {rule.kind}, in {rule.meaning}." for rule in rules.dates if rule.name in names]
