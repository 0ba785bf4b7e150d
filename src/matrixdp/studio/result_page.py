"""Results: the report, an explorer of the released matrix, and downloads. Post-processing, which costs nothing."""

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fastapi import APIRouter
from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.responses import FileResponse, Response

from matrixdp.display import write_csv
from matrixdp.domain.fields import unquote_line
from matrixdp.domain.file_rules import DateRule
from matrixdp.domain.schema_file import parse_schema
from matrixdp.errors import ParameterError, show
from matrixdp.queries import MatrixQuery, TableMoments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.report import answers
from matrixdp.report.advice import list_notes, to_facts
from matrixdp.report.answers import Answer, Answerable
from matrixdp.report.charts import draw_charts
from matrixdp.report.content import find_query, list_columns
from matrixdp.report.dates import list_dates
from matrixdp.report.guarantee import describe_odds
from matrixdp.report.page import render_blocks, write_words
from matrixdp.report.provenance import PROVENANCE, cite, read_provenance
from matrixdp.report.release_page import show_answer
from matrixdp.report.stream_page import render_stream
from matrixdp.report.svg import STRIP
from matrixdp.report.synthetic import load_table_release, make_files
from matrixdp.studio.rendering import CurrentVisit, Visit
from matrixdp.studio.requests import StoredRequest

router = APIRouter()
# A report is a document of its own, with styles of its own: no script runs in it, and the studio is out of its reach.
_REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
_SYNTHETIC_ROWS = 10_000  # at most
_MEDIA = {"csv": "text/csv", "json": "application/json", "ipynb": "application/x-ipynb+json"}  # of files with answers
_MOST_NUMBERS = 200  # columns of numbers whose pairs are shown


class Kind(NamedTuple):
    """A kind of question: its words, its answer, and the columns that it is about."""

    title: str
    answer: Callable[..., Answer]
    fields: tuple[str, ...] = ()


KINDS = {
    "means": Kind("Means", answers.answer_means),
    "means_by": Kind("Means by group", answers.answer_means, ("by",)),
    "table": Kind("Table of two categories", answers.answer_table, ("rows", "columns")),
    "quantiles": Kind("Quantiles", answers.answer_quantiles),
    "correlation": Kind("Correlations", partial(answers.answer_matrix, kind="correlation")),
    "covariance": Kind("Covariances", partial(answers.answer_matrix, kind="covariance")),
    "regression": Kind("Regression", answers.answer_regression, ("target", "on")),
    "components": Kind("Principal components", answers.answer_components),
}


@dataclass(frozen=True)
class Choices:
    """What can be asked of a release: kinds of questions, none if `reason` says why, and names of columns."""

    kinds: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()  # by whose levels means can be given, and records counted
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # the levels of those that group the release
    reason: str = ""
    dates: frozenset[str] = frozenset()  # which a regression explains only if it is asked to


@dataclass(frozen=True)
class Inquiry:
    """One question: its kind, one of `KINDS`, and the `columns` that it is about, by the names of its fields.

    A regression explains ``target`` by ``on``, or by all others if that is None. `group` is empty for all records.
    """

    kind: str
    columns: Mapping[str, Any]
    group: Mapping[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> list[Any]:
        """The columns, as the method of a release takes them."""
        return [value for value in self.columns.values() if value is not None]


def list_choices(release: Answerable | None) -> Choices:
    """What can be asked of a release."""
    if release is None:
        return Choices(reason="No further answers follow from this release by itself: its report shows the matrix.")
    query = find_query(release)
    table = query if isinstance(query, TableMoments) else None
    numbers = tuple(one.name for one in list_columns(query))
    categories = tuple(one.name for one in table.used.categories) if table else ()
    groups = {one: table.columns.category(one).level_names for one in table.by} if table else {}
    splits, models = (*groups, *categories), table is not None or isinstance(release, AdaptiveRelease)
    few = len(numbers) <= _MOST_NUMBERS
    possible = {
        "means": bool(numbers),
        "means_by": bool(splits),
        "table": len(splits) > 1,
        "quantiles": bool(getattr(query, "shapes", 0.0)),
        "correlation": len(numbers) > 1 and few,
        "covariance": bool(numbers) and few,
        "regression": models and bool(numbers) and len(numbers) + len(categories) > 1,
        "components": models and len(numbers) > 1 and few,
    }
    return Choices(tuple(kind for kind, can in possible.items() if can), numbers, categories, splits, groups)


def read_question(sent: Sequence[tuple[str, str]], choices: Choices) -> Inquiry:
    """The question that a browser sent; what is not said is the first that is possible.

    Columns and levels that there are not are refused by whoever answers it.
    """
    given = {name: unquote_line(value) for name, value in sent}
    kind = given.get("kind") or ("means_by" if choices.groups else choices.kinds[0])
    if kind not in choices.kinds:
        raise ParameterError(f"kind must be one of {', '.join(choices.kinds)}, got {show(kind)} instead.")
    columns: dict[str, Any] = {}
    for name in KINDS[kind].fields:
        if name == "on":
            ticked = [unquote_line(value) for key, value in sent if key == "on" and value]
            others = [one for one in ticked if one != columns["target"]]
            columns["on"] = others if others or ("chosen" in given and not ticked) else None
        else:
            known = choices.numbers if name == "target" else choices.splits
            free = [one for one in known if one not in columns.values()]
            usual = next((one for one in free if one not in choices.dates), free[0])
            columns[name] = given.get(name) or usual
    levels = {name: given.get(f"group.{number}") for number, name in enumerate(choices.groups)}
    apart = columns.values()  # of these, the answer has all levels
    return Inquiry(kind, columns, {name: level for name, level in levels.items() if level and name not in apart})


def answer_question(release: Answerable, question: Inquiry) -> Answer:
    """The answer to a question; raises a `ParameterError` where there is none."""
    with np.errstate(all="ignore"):
        return KINDS[question.kind].answer(release, *question.arguments, group=dict(question.group) or None)


def render_answer(query: MatrixQuery, answer: Answer, dates: Sequence[DateRule] = ()) -> str:
    """An answer as HTML: its table and pictures, as a report shows them."""
    with np.errstate(all="ignore"):
        return render_blocks([*show_answer(query, answer, dates, whole=True), *draw_charts(answer, dates)])


def _write_call(question: Inquiry) -> str:
    """The method of a release that answers a question, with its arguments, in Python."""
    written = [*map(repr, question.arguments), *([f"group={question.group!r}"] if question.group else [])]
    return f"release.{question.kind.removesuffix('_by')}({', '.join(written)})"


_LOAD = 'import matrixdp as mdp\n\nrelease = mdp.load("release.json")'


def to_python(question: Inquiry) -> str:
    """Lines of Python that print the same answer from the downloaded file of the release."""
    return f"{_LOAD}\nprint({_write_call(question)})"


def make_notebook(source: Mapping[str, Any], questions: Sequence[Inquiry]) -> dict[str, Any]:
    """A notebook that repeats an exploration from ``release.json``, which lies beside it; in the format of Jupyter."""
    about = (
        f"# {source['title']}\n\n{source['citation']}\n\nSave `release.json` of the same page beside this notebook. "
        "All answers are post-processing: they cost no privacy, and read no table."
    )
    check = (
        "import hashlib\nfrom pathlib import Path\n\n"
        f"found = hashlib.sha256(Path('release.json').read_bytes()).hexdigest()\n"
        f"assert found == {source['sha256']!r}, 'this is another release.json'"
    )
    cells = [("markdown", about), ("code", f"{check}\n{_LOAD}\nrelease")]
    for question in questions:
        cells += [("markdown", f"## {KINDS[question.kind].title}"), ("code", _write_call(question))]
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "cells": [
            {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
            | ({"execution_count": None, "outputs": []} if kind == "code" else {})
            for number, (kind, text) in enumerate(cells)
        ],
    }


@router.get("/results")
def list_results(visit: CurrentVisit) -> Response:
    """All releases, the latest first."""
    return visit.render("results.html", results=visit.studio.results.list_all())


@router.get("/results/{request_id}")
@router.get("/results/{request_id}/explore")
def explore(visit: CurrentVisit, request_id: str) -> Response:
    """A release with the answer to a question about it, by default the first; with ``format``, as a file.

    A notebook repeats the question, and has one of each other kind.
    """
    form, sent = visit.request.query_params.get("format"), visit.request.query_params.multi_items()
    if form not in (None, *_MEDIA):
        raise ParameterError(f"format must be one of {', '.join(_MEDIA)}.")
    opened = _open(visit, request_id)
    if form is None:
        return _show(visit, opened)
    if opened.release is None or not opened.choices.kinds:
        raise ParameterError(opened.choices.reason or "nothing can be asked of this release but its matrix.")
    question = read_question(sent, opened.choices)
    answer = answer_question(opened.release, question)
    if form == "csv":
        source = {"source": [opened.source["citation"]] * answer.estimate.value.size}
        text = write_csv(answer.estimate, list_dates(answer, opened.dates) | source)
    elif form == "json":
        text = json.dumps({**to_facts(opened.release, answer), "source": opened.source}, allow_nan=False)
    else:
        others = [one for one in opened.choices.kinds if one != question.kind]
        asked = [question, *(read_question([("kind", one)], opened.choices) for one in others)]
        text = json.dumps(make_notebook(opened.source, asked), indent=1) + "\n"
    return _download(text, _MEDIA[form], f"{question.kind}-{request_id[:8]}.{form}")


class Opened(NamedTuple):
    """A finished release."""

    found: StoredRequest
    stored: Any
    release: Answerable | None
    choices: Choices
    dates: tuple[DateRule, ...]
    source: dict[str, Any]  # where answers come from


def _open(visit: Visit, request_id: str) -> Opened:
    found, stored = visit.studio.results.get(request_id), visit.studio.results.load(request_id)
    release, dates = answers.as_answerable(stored), tuple(parse_schema(found.schema).rules.dates)
    choices = replace(list_choices(release), dates=frozenset(rule.name for rule in dates))
    origin = read_provenance(visit.studio.results.path(request_id, PROVENANCE))
    source = {"title": origin["question"], "table": found.table, "request": found.id, "citation": cite(origin)[0]}
    return Opened(found, stored, release, choices, dates, origin | source)


def _download(content: str | bytes, media: str, name: str) -> Response:
    return Response(content, media_type=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})


@router.get("/results/{request_id}/synthetic")
def download_synthetic(visit: CurrentVisit, request_id: str) -> Response:
    """A synthetic table of a release with its report, in a ZIP file; the same for every visit."""
    release, out = load_table_release(visit.studio.results.load(request_id)), io.BytesIO()
    dates = parse_schema(visit.studio.results.get(request_id).schema).rules.dates
    rows = min(release.records, _SYNTHETIC_ROWS)
    files, _ = make_files(release, Path(f"synthetic-{request_id[:8]}.csv"), rows=rows, dates=dates)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, content in files.items():
            packed.writestr(zipfile.ZipInfo(path.name), content, zipfile.ZIP_DEFLATED)
    return _download(out.getvalue(), "application/zip", f"synthetic-{request_id[:8]}.zip")


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


@router.get("/datasets/{dataset}/streams/{name}")
def show_stream(visit: CurrentVisit, dataset: str, name: str, by: str | None = None) -> Response:
    """The report on a stream, with means by the first category unless the address has another."""
    _, public = visit.studio.datasets.find_stream(visit.studio.settings.streams, dataset, name)
    if by is None and isinstance(query := public.plan.query, TableMoments):
        by = next(iter((*query.by, *(one.name for one in query.used.categories))), None)
    page = render_stream(public, by=by or None)
    return Response(page, media_type="text/html", headers={"Content-Security-Policy": _REPORT_POLICY})


@router.get("/datasets/{dataset}/streams/{name}/file")
def download_stream(visit: CurrentVisit, dataset: str, name: str) -> Response:
    """The public file of a stream, from which all answers are read."""
    path, _ = visit.studio.datasets.find_stream(visit.studio.settings.streams, dataset, name)
    return FileResponse(path, filename=path.name, headers={"Content-Security-Policy": _REPORT_POLICY})


def _show(visit: Visit, opened: Opened) -> Response:
    """The page of a release, with the answer to the question in its address."""
    stored, release, privacy, odds = opened.stored, opened.release, opened.found.spec.privacy, ""
    context: dict[str, Any] = {"answer": None, "question": None, "problem": None}
    if release is not None and opened.choices.kinds:
        context |= _describe_answer(visit.request.query_params, release, opened)
    if stored is not None:
        odds = describe_odds(privacy.epsilon, privacy.delta, find_query(release or stored).protects)
    return visit.render(
        "result.html",
        status=422 if context["problem"] else 200,
        asked=visit.request.url.query,
        odds=odds,
        files=visit.studio.results.files(opened.found.id),
        kinds=KINDS,
        synthetic=write_words("synthetic_warning") if isinstance(getattr(stored, "query", None), TableMoments) else [],
        **opened._asdict() | context,
    )


def _describe_answer(sent: QueryParams, release: Answerable, opened: Opened) -> dict[str, Any]:
    """What the template needs to show a question and its answer, or why there is none."""
    question = None
    try:
        question = read_question(sent.multi_items(), opened.choices)
        answer = answer_question(release, question)
    except ParameterError as error:
        return {"problem": str(error), "question": question or read_question([], opened.choices)}
    dates = opened.dates
    return {
        "question": question,
        "answer": answer,
        "shown": Markup(render_answer(find_query(release), answer, dates)),  # noqa: S704 (its template escapes all names)
        "notes": [*list_notes(release, answer, dates), *([STRIP] if answer.list_means() else [])],
        "python": to_python(question),
    }
