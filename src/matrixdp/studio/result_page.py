"""Results: the report, an explorer of the released matrix, and downloads. Post-processing, which costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from fastapi import APIRouter
from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.responses import FileResponse, JSONResponse, Response

from matrixdp.display import CERTAIN, make_visible, write_csv, write_table
from matrixdp.domain.fields import quote_line, unquote_line
from matrixdp.domain.schema_file import parse_schema
from matrixdp.errors import ParameterError, show
from matrixdp.queries import TableMoments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.report import answers
from matrixdp.report.answers import Answer, Answerable
from matrixdp.report.guarantee import describe_odds, name_loss, read_mechanism
from matrixdp.studio.charts import draw_answer
from matrixdp.studio.rendering import CurrentVisit, Visit

router = APIRouter()
# A report is a document of its own, with styles of its own: no script runs in it, and the studio is out of its reach.
_REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
_MOST_NUMBERS = 200  # columns of numbers whose pairs are shown


class Kind(NamedTuple):
    """A kind of question: its words, the method of a release, its answer, and the fields of a `Question` it takes."""

    title: str
    method: str
    answer: Callable[..., Answer]
    fields: tuple[str, ...] = ()


KINDS = {
    "means": Kind("Means", "means", answers.answer_means),
    "means_by": Kind("Means by group", "means", answers.answer_means, ("by",)),
    "table": Kind("Table of two categories", "table", answers.answer_table, ("rows", "columns")),
    "correlation": Kind("Correlations", "correlation", partial(answers.answer_matrix, kind="correlation")),
    "covariance": Kind("Covariances", "covariance", partial(answers.answer_matrix, kind="covariance")),
    "regression": Kind("Regression", "regression", answers.answer_regression, ("target", "on")),
    "components": Kind("Principal components", "components", answers.answer_components),
}


@dataclass(frozen=True)
class Choices:
    """What can be asked of a release: kinds of questions, none if `reason` says why, and names of columns.

    By the levels of `splits`, means can be given and records counted; `groups` are the columns by which the release is
    grouped, with their levels.
    """

    kinds: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class Question:
    """One question: its kind, one of `KINDS`, and the columns that it is about.

    A regression explains `target` by `on`, or by all others if that is empty. `group` has levels of columns by which
    the release is grouped, unless the answer has all levels of them; it is empty for all records.
    """

    kind: str
    by: str = ""
    rows: str = ""
    columns: str = ""
    target: str = ""
    on: tuple[str, ...] = ()
    group: Mapping[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> list[Any]:
        """The columns, as the method of a release takes them."""
        found = [getattr(self, name) for name in KINDS[self.kind].fields]
        return [list(one) if isinstance(one, tuple) else one for one in found if one]

    @property
    def told_apart(self) -> list[Any]:
        """Columns all of whose levels are in the answer."""
        return self.arguments if self.kind in ("means_by", "table") else []


def list_choices(release: Answerable | None) -> Choices:
    """What can be asked of a release."""
    if release is None:
        return Choices(reason="No further answers follow from this release by itself: its report shows the matrix.")
    query: Any = None if isinstance(release, AdaptiveRelease) else release.design.query
    categories: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    groups, models = {}, True
    if isinstance(release, AdaptiveRelease):
        numbers = release.names
    elif isinstance(query, TableMoments):
        numbers, categories = (tuple(one.name for one in part) for part in (query.used.numbers, query.used.categories))
        splits = (*query.by, *categories)
        groups = {name: query.columns.category(name).level_names for name in query.by}
    else:
        numbers, models = query.bounds.names or tuple(map(str, range(query.bounds.size))), False
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
    return Choices(tuple(kind for kind, can in possible.items() if can), numbers, categories, splits, groups)


def read_question(sent: Sequence[tuple[str, str]], choices: Choices) -> Question:
    """The question that a browser sent; what is not said is the first that is possible.

    Raises a `ParameterError` for a column or level that there is not.
    """
    given = dict(sent)
    kind = given.get("kind") or choices.kinds[0]
    if kind not in choices.kinds:
        raise ParameterError(f"kind must be one of {', '.join(choices.kinds)}, got {show(kind)} instead.")
    by, rows, target = (
        _choose(given, name, known)
        for name, known in (("by", choices.splits), ("rows", choices.splits), ("target", choices.numbers))
    )
    others = tuple(name for name in choices.splits if name != rows)
    columns = _choose(given, "columns", choices.splits if given.get("columns") else others)
    if kind == "table" and rows == columns:
        raise ParameterError("rows and columns must be two different categories.")
    explaining = choices.numbers + choices.categories
    on = [_require(unquote_line(value), "on", explaining) for name, value in sent if name == "on" and value]
    question = Question(kind, by, rows, columns, target, tuple(name for name in on if name != target))
    group = {}
    for number, (name, levels) in enumerate(choices.groups.items()):
        level = unquote_line(given.get(f"group.{number}", ""))
        if level and _require(level, f"the level of {name}", levels) and name not in question.told_apart:
            group[name] = level
    return replace(question, group=group)


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
    with np.errstate(all="ignore"):
        return KINDS[question.kind].answer(release, *question.arguments, group=dict(question.group) or None)


def show_table(answer: Answer) -> Markup:
    """The numbers of an answer as the HTML of a table."""

    def label(name: str) -> str:
        return str(Markup('<span title="{0}">{0}</span>').format(make_visible(name)))

    table = write_table(answer.estimate, kind="matrix answers", corner=(answer.label, ""), label=label)
    return Markup(table)  # noqa: S704 (it has escaped all names)


def to_python(question: Question) -> str:
    """Lines of Python that print the same answer from the downloaded file of the release."""
    written = [*map(repr, question.arguments), *([f"group={question.group!r}"] if question.group else [])]
    call = f"release.{KINDS[question.kind].method}({', '.join(written)})"
    return f'import matrixdp as mdp\n\nrelease = mdp.load("release.json")\nprint({call})'


@router.get("/results")
def list_results(visit: CurrentVisit) -> Response:
    """All releases, the latest first."""
    return visit.render("results.html", results=visit.studio.results.list_all())


@router.get("/results/{request_id}")
def show_result(visit: CurrentVisit, request_id: str) -> Response:
    """One release, with its first answer."""
    return _show(visit, request_id)


@router.get("/results/{request_id}/explore")
def explore(visit: CurrentVisit, request_id: str) -> Response:
    """The answer to a question about a release, as a page or, with ``format``, as a file."""
    form = visit.request.query_params.get("format")
    if form is None:
        return _show(visit, request_id)
    if form not in ("csv", "json"):
        raise ParameterError("format must be one of csv, json.")
    release = answers.as_answerable(visit.studio.results.load(request_id))
    choices = list_choices(release)
    if release is None:
        raise ParameterError(choices.reason)
    question = read_question(visit.request.query_params.multi_items(), choices)
    answer = ask(release, question)
    headers = {"Content-Disposition": f'attachment; filename="{question.kind}.{form}"'}
    if form == "csv":
        return Response(write_csv(answer.estimate), media_type="text/csv", headers=headers)
    return JSONResponse(answers.to_facts(release, answer), headers=headers)


@router.get("/results/{request_id}/report")
def show_report(visit: CurrentVisit, request_id: str) -> Response:
    """The report of a release, as ``matrixdp release`` writes it."""
    path = visit.studio.results.path(request_id, "report.html")
    return FileResponse(path, media_type="text/html", headers={"Content-Security-Policy": _REPORT_POLICY})


@router.get("/results/{request_id}/files/{name}")
def download_file(visit: CurrentVisit, request_id: str, name: str) -> Response:
    """One file of a release."""
    path = visit.studio.results.path(request_id, name)
    return FileResponse(path, filename=path.name, headers={"Content-Security-Policy": _REPORT_POLICY})


def _show(visit: Visit, request_id: str) -> Response:
    """The page of a release, with the answer to the question in its address."""
    found, stored = visit.studio.results.get(request_id), visit.studio.results.load(request_id)
    release = answers.as_answerable(stored)
    choices, privacy = list_choices(release), found.spec.privacy
    context: dict[str, Any] = {"answer": None, "question": None, "problem": None, "kind": None}
    if release is not None and choices.kinds:
        context |= _describe_answer(visit.request.query_params, release, choices, found.schema)
    odds = ""
    if stored is not None:
        odds = describe_odds(privacy.epsilon, privacy.delta, read_mechanism(release or stored).query.protects)
    return visit.render(
        "result.html",
        status=422 if context["problem"] else 200,
        found=found,
        address=f"/results/{found.id}",
        title=f"{found.spec.title} · {found.dataset}",
        loss=name_loss(privacy.epsilon).capitalize(),
        odds=odds,
        files=visit.studio.results.files(request_id),
        choices=choices,
        kinds=KINDS,
        quote_line=quote_line,
        **context,
    )


def _describe_answer(sent: QueryParams, release: Answerable, choices: Choices, schema: str) -> dict[str, Any]:
    """What the template needs to show a question and its answer, or why there is none."""
    question = None
    try:
        question = read_question(sent.multi_items(), choices)
        answer = ask(release, question)
    except ParameterError as error:
        if question is None:
            kind = sent.get("kind")
            question = read_question([("kind", kind)] if kind in choices.kinds else [], choices)
        return {"problem": str(error), "kind": question.kind, "question": question}
    estimate = answer.estimate
    names = {*estimate.rows, *estimate.columns, answer.facts.get("target")}
    dates = [rule for rule in parse_schema(schema).rules.dates if rule.name in names]
    return {
        "kind": question.kind,
        "question": question,
        "answer": answer,
        "table": show_table(answer),
        "weak": bool((abs(estimate.value) < CERTAIN * estimate.std).any()),
        "hidden": bool((~estimate.reliable).any()),
        "charts": draw_answer(release, question.kind, answer),
        "notes": answers.list_notes(release, answer),
        "dates": [f"{rule.name}: a {rule.kind}, in {rule.meaning}." for rule in dates],
        "python": to_python(question),
    }
