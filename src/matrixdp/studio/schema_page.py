"""The tables of the folder, and the editor of their schemas."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import RedirectResponse, Response

from matrixdp.domain.fields import quote_line, unquote_line
from matrixdp.domain.schema_file import COLUMN_FIELDS, SECTIONS, TYPES
from matrixdp.errors import DataError, MatrixDPError, ParameterError
from matrixdp.studio.refusals import NotFoundError
from matrixdp.studio.rendering import render
from matrixdp.studio.schema_form import (
    SchemaForm,
    find_mistakes,
    fold_column,
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
_MOST_SHOWN = 40  # columns of a form that are there in full; of a longer one, those that are opened
_MOST_WRONG = 10  # columns that are opened because of a mistake
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
        number = _read_place(action.removeprefix("remove."))
        return _show(request, studio, table, form if number is None else form.without_column(number))
    if action.startswith("open."):
        return _show(request, studio, table, form, opened=_read_place(action.removeprefix("open.")))
    fields, _ = _find_columns(studio, table, form)
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


@router.post("/tables/{table}/schema/column")
def open_column(request: Request, studio: CurrentStudio, table: str, sent: SentFields) -> Response:
    """All fields of one column of a long form, of which the page has sent only this one."""
    studio.tables.path(table)
    form, number = read_form(sent), _read_place(sent.get("opened", ""))
    if len(form.columns) != 1 or number is None:
        raise ParameterError("opened must be the number of the column that is sent.")
    found = {name.replace("column.0.", f"column.{number}."): text for name, text in find_mistakes(form).items()}
    errors = {} if sent.get("checked", "") != "yes" else {name: one for name, one in found.items() if "." in name}
    return render(
        request,
        "schema_opened.html",
        column=form.columns[0],
        address=_address(request),
        opened=number,
        **_describe_fields(form, errors, checked=bool(errors)),
    )


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
    fields, no_sheet = _find_columns(studio, table, form)
    described = {column["name"] for column in form.columns}
    unusable = list_unusable(fields)
    workbook = table.lower().endswith((".xlsx", ".xls"))
    return render(
        request,
        "schema.html",
        status=status,
        table=table,
        address=_address(request),
        problem=problem,
        saved=saved,
        opened=opened,
        exists=text is not None,
        version_field=_find_version(text),
        names=[(quote_line(name), name) for name in fields if name],
        more=[(quote_line(name), name) for name in fields if name and name not in described and name not in unusable],
        unusable=unusable,
        workbook=workbook,
        file_fields=[one for one in SECTIONS["files"] if workbook or one.name != "sheet"],
        **_describe_fields(form, {**(mistakes or {}), **no_sheet}, checked=mistakes is not None or bool(no_sheet)),
        **_preview(form, mistakes),
    )


def _describe_fields(form: SchemaForm, errors: Mapping[str, str], *, checked: bool) -> dict[str, Any]:
    """What the template of a column needs: how many mistakes each column has, and which are folded."""
    wrong = Counter(int(name.split(".")[1]) for name in errors if name.startswith("column."))
    folded = range(len(form.columns)) if len(form.columns) > _MOST_SHOWN else ()
    return {
        "form": form,
        "errors": defaultdict(str, errors),
        "checked": checked,
        "wrong": wrong,
        "folded": set(folded) - set(sorted(wrong)[:_MOST_WRONG]),
        "fold_column": fold_column,
        "types": TYPES,
        "column_fields": COLUMN_FIELDS,
        "sections": SECTIONS,
        "quote_line": quote_line,
    }


def _read_place(text: str) -> int | None:
    """The number of a column in the form; None for a text that is none."""
    return int(text) if re.fullmatch(r"[0-9]{1,6}", text) else None


def _find_columns(studio: Studio, table: str, form: SchemaForm) -> tuple[Mapping[str, Any], dict[str, str]]:
    """The columns of a table by name; if a workbook has no such sheet, those of the first one, and the mistake."""
    sheet = form.texts.get("files.sheet")
    try:
        return studio.tables.open(table, sheet).fields(), {}
    except (ParameterError, DataError) as error:
        if not sheet:
            raise
        return studio.tables.open(table).fields(), {"files.sheet": str(error)}


def _preview(form: SchemaForm, mistakes: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The TOML, and the mistakes, which are looked for unless they are known."""
    return {"toml": form_to_toml(form), "mistakes": find_mistakes(form) if mistakes is None else mistakes}


def _find_version(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def _address(request: Request) -> str:
    """The address of the editor, as the browser wrote it."""
    return request.url.path.removesuffix("/check").removesuffix("/column")
