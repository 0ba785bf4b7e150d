"""The tables of the folder, and the editor of their schemas."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import RedirectResponse, Response

from matrixdp.cli.actions.schema_file import TYPES
from matrixdp.errors import DataError, MatrixDPError, ParameterError
from matrixdp.records.file_rules import UNITS
from matrixdp.studio.field_text import quote_line, unquote_line
from matrixdp.studio.refusals import NotFoundError
from matrixdp.studio.rendering import render
from matrixdp.studio.schema_checks import find_mistakes
from matrixdp.studio.schema_form import (
    SchemaForm,
    form_from_toml,
    form_to_toml,
    list_unusable,
    propose_column,
    propose_form,
    read_form,
)
from matrixdp.studio.security import CurrentStudio, receive_form
from matrixdp.studio.studio import Studio

router = APIRouter()
_CHANGED = (
    "The schema was saved from another page since this one was loaded. What you have entered is still here: compare it "
    "with the saved schema, and save again to replace that."
)


async def _read_fields(request: Request) -> dict[str, str]:
    return {name: value for name, value in (await receive_form(request)).items() if isinstance(value, str)}


SentFields = Annotated[dict[str, str], Depends(_read_fields)]


@router.get("/tables")
def list_tables(request: Request, studio: CurrentStudio) -> Response:
    """All tables of the folder, and whether they have a schema."""
    used = defaultdict(list)
    for dataset in studio.datasets.list_all():
        for table in dataset.tables:
            used[table].append(dataset.name)
    tables = [_describe_table(studio, name, used[name]) for name in studio.tables.list_all()]
    return render(request, "tables.html", tables=tables)


def _describe_table(studio: Studio, name: str, datasets: list[str]) -> dict[str, Any]:
    """What the list shows about a table: no value of it, and no error that quotes one."""
    try:
        columns: int | None = len(studio.tables.columns(name))
    except MatrixDPError:
        columns = None
    text = studio.schemas.read(name)
    return {"name": name, "columns": columns, "written": text is not None, "datasets": datasets}


@router.get("/tables/{table}/schema")
def edit_schema(
    request: Request, studio: CurrentStudio, table: str, saved: Annotated[str | None, Query()] = None
) -> Response:
    """The form of a table's schema; of a new one, with the types that its files declare."""
    text, problem = studio.schemas.read(table), None
    try:
        form = None if text is None else form_from_toml(text)
    except ParameterError as error:
        form, problem = None, f"The stored schema cannot be shown as a form: {error}"
    if form is None:
        form = propose_form(studio.tables.open(table).fields())
    return _show(request, studio, table, form, problem=problem, saved=saved is not None and text is not None)


@router.post("/tables/{table}/schema")
def change_schema(request: Request, studio: CurrentStudio, table: str, sent: SentFields) -> Response:
    """Save the form, or show it again with a column more or less, or with its mistakes."""
    form, action = read_form(sent), sent.get("action", "check")
    if action == "save":
        return _save(request, studio, table, form, sent)
    if action.startswith("remove."):
        number = action.removeprefix("remove.")
        return _show(request, studio, table, form.without_column(int(number)) if number.isdecimal() else form)
    fields, _ = _find_columns(studio, table, form.sheet)
    if action == "add" and sent.get("new"):
        name = unquote_line(sent["new"])
        if name not in fields:
            raise NotFoundError("there is no such column in the table.")
        form = form.with_column(propose_column(name, fields[name]))
        return _show(request, studio, table, form, opened=len(form.columns) - 1)
    if action == "add all":
        for column in propose_form(fields).columns:
            form = form.with_column(column)
        return _show(request, studio, table, form)
    return _show(request, studio, table, form, mistakes=find_mistakes(form))


def _save(request: Request, studio: Studio, table: str, form: SchemaForm, sent: Mapping[str, str]) -> Response:
    mistakes = find_mistakes(form)
    if mistakes:
        return _show(request, studio, table, form, mistakes=mistakes, status=422)
    if sent.get("version", "") != _find_version(studio.schemas.read(table)):
        return _show(request, studio, table, form, problem=_CHANGED, status=409)
    try:
        studio.schemas.write(table, form_to_toml(form))
    except (ParameterError, DataError) as error:
        return _show(request, studio, table, form, mistakes={"": str(error)}, status=422)
    return RedirectResponse(f"{_address(request)}?saved=yes", 303)


@router.post("/tables/{table}/schema/check")
def check_schema(request: Request, studio: CurrentStudio, table: str, sent: SentFields) -> Response:
    """The TOML of a form and what is wrong with it, without saving anything."""
    studio.tables.path(table)
    form = read_form(sent)
    return render(request, "schema_preview.html", form=form, **_preview(form))


@router.get("/tables/{table}/schema.toml")
def download_schema(studio: CurrentStudio, table: str) -> Response:
    """The saved schema as a file."""
    text = studio.schemas.read(table)
    if text is None:
        raise NotFoundError("this table has no schema yet. Save it first.")
    return Response(
        text, media_type="application/toml", headers={"Content-Disposition": 'attachment; filename="schema.toml"'}
    )


def _show(
    request: Request,
    studio: Studio,
    table: str,
    form: SchemaForm,
    *,
    mistakes: Mapping[str, str] | None = None,
    problem: str | None = None,
    saved: bool = False,
    opened: int | None = None,
    status: int = 200,
) -> Response:
    """The page of the editor."""
    text = studio.schemas.read(table)
    fields, no_sheet = _find_columns(studio, table, form.sheet)
    described = {column.name for column in form.columns}
    unusable = list_unusable(fields)
    return render(
        request,
        "schema.html",
        status=status,
        table=table,
        address=_address(request),
        form=form,
        errors=defaultdict(str, {**(mistakes or {}), **no_sheet}),
        checked=mistakes is not None or bool(no_sheet),
        problem=problem,
        saved=saved,
        opened=opened,
        exists=text is not None,
        version_field=_find_version(text),
        names=[(quote_line(name), name) for name in fields if name],
        more=[(quote_line(name), name) for name in fields if name and name not in described and name not in unusable],
        unusable=unusable,
        workbook=table.lower().endswith((".xlsx", ".xls")),
        types=TYPES,
        units=UNITS,
        quote_line=quote_line,
        **_preview(form),
    )


def _find_columns(studio: Studio, table: str, sheet: str) -> tuple[Mapping[str, Any], dict[str, str]]:
    """The columns of a table by name; if a workbook has no such sheet, those of the first one, and the mistake."""
    try:
        return studio.tables.open(table, sheet.strip() or None).fields(), {}
    except (ParameterError, DataError) as error:
        if not sheet.strip():
            raise
        return studio.tables.open(table).fields(), {"sheet": str(error)}


def _preview(form: SchemaForm) -> dict[str, Any]:
    """The TOML, and the mistakes with the label of the column that each is in."""
    found = find_mistakes(form)
    try:
        toml = form_to_toml(form)
    except ParameterError as error:
        toml = f"# {error}\n"
    return {"toml": toml, "mistakes": found}


def _find_version(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def _address(request: Request) -> str:
    """The address of the editor, as the browser wrote it."""
    return request.url.path.removesuffix("/check")
