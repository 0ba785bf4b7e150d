"""Results: the report, an explorer of the released matrix, and downloads."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, JSONResponse, Response

from matrixdp.cli.actions.schema_file import parse_schema
from matrixdp.errors import ParameterError
from matrixdp.release import read_release
from matrixdp.privacy import Privacy
from matrixdp.report.mechanism_facts import read_mechanism
from matrixdp.report.questions import Answer, Answerable, as_answerable, list_notes, to_csv, to_facts
from matrixdp.report.strength import describe_odds, name_loss
from matrixdp.studio.answer_charts import draw_answer
from matrixdp.studio.explorer import (
    KINDS,
    Choices,
    Question,
    ask,
    list_choices,
    read_question,
    show_cells,
    to_python,
)
from matrixdp.studio.field_text import quote_line
from matrixdp.studio.rendering import render
from matrixdp.studio.security import CurrentStudio, CurrentViewer
from matrixdp.studio.studio import Studio
from matrixdp.studio.wording import name_query

router = APIRouter()

# A report is a document of its own, with styles of its own: no script runs in it, and the studio is out of its reach.
_REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
_LARGEST = 1 << 24  # bytes of a release that is explored
_FORMATS = ("csv", "json")


@router.get("/results")
def list_results(request: Request, studio: CurrentStudio, viewer: CurrentViewer) -> Response:
    """All releases, the latest first."""
    return render(request, "results.html", results=studio.results.list_all(viewer), name_query=name_query)


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
    release = as_answerable(_load(studio, viewer, request_id))
    choices = list_choices(release)
    if release is None:
        raise ParameterError(choices.reason)
    question = read_question(request.query_params.multi_items(), choices)
    answer = ask(release, question)
    headers = {"Content-Disposition": f'attachment; filename="{question.kind}.{form}"'}
    if form == "csv":
        return Response(to_csv(answer), media_type="text/csv", headers=headers)
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


def _load(studio: Studio, viewer: CurrentViewer, request_id: str) -> Any:
    """A release; None if it is too large to be kept in memory for questions, such as a noisy data set."""
    path = studio.results.path(viewer, request_id, "release.json")
    facts = path.stat()
    return None if facts.st_size > _LARGEST else _read(path, facts.st_mtime_ns)


@lru_cache(maxsize=4)
def _read(path: Path, _changed: int) -> Any:
    """A release, which is checked when it is read for the first time."""
    return read_release(path.read_text(encoding="utf-8"))


def _show(request: Request, studio: Studio, viewer: CurrentViewer, request_id: str) -> Response:
    """The page of a release, with the answer to the question in its address."""
    found, stored = studio.results.get(viewer, request_id), _load(studio, viewer, request_id)
    release = as_answerable(stored)
    choices = list_choices(release)
    privacy = Privacy(found.spec.epsilon, found.spec.delta)
    context: dict[str, Any] = {"answer": None, "question": None, "problem": None, "kind": None}
    if release is not None and choices.kinds:
        context |= _answer(request, release, stored, choices)
    if context["answer"]:
        context["dates"] = _describe_dates(found.schema, context["answer"])
    return render(
        request,
        "result.html",
        status=422 if context["problem"] else 200,
        found=found,
        address=f"/results/{found.id}",
        title=f"{name_query(found.spec)} · {found.dataset}",
        loss=name_loss(privacy.epsilon).capitalize(),
        odds="" if stored is None else _describe_odds(privacy, release or stored),
        privacy=privacy,
        files=studio.results.files(viewer, request_id),
        choices=choices,
        kinds=KINDS,
        quote_line=quote_line,
        **context,
    )


def _describe_odds(privacy: Privacy, release: Any) -> str:
    return describe_odds(privacy.epsilon, privacy.delta, read_mechanism(release).query.protects)


def _answer(request: Request, release: Answerable, stored: Any, choices: Choices) -> dict[str, Any]:
    """What the template needs to show a question and its answer, or why there is none."""
    sent = request.query_params.multi_items()
    kind = request.query_params.get("kind") or choices.kinds[0]
    try:
        question = read_question(sent, choices)
    except ParameterError as error:
        first = kind if kind in choices.kinds else choices.kinds[0]
        return {"problem": str(error), "kind": first, "question": read_question([("kind", first)], choices)}
    try:
        answer = ask(release, question)
    except ParameterError as error:
        return {"problem": str(error), "kind": question.kind, "question": question}
    return {"kind": question.kind, "question": question, **_describe(release, stored, question, answer)}


def _describe(release: Answerable, stored: Any, question: Question, answer: Answer) -> dict[str, Any]:
    cells = show_cells(answer)
    return {
        "answer": answer,
        "cells": cells,
        "pale": any(cell.pale for row in cells for cell in row),
        "hidden": bool((~answer.estimate.reliable).any()),
        "charts": draw_answer(release, question, answer),
        "notes": list_notes(release, answer),
        "python": to_python(question, stored),
    }


def _describe_dates(schema: str, answer: Answer) -> list[str]:
    """What the numbers of those columns of an answer count that are dates or times."""
    rules = parse_schema(Path("schema"), tomllib.loads(schema)).rules
    names = {*answer.estimate.rows, *answer.estimate.columns, answer.facts.get("target")}
    return [f"{rule.name}: a {rule.kind}, in {rule.meaning}." for rule in rules.dates if rule.name in names]
