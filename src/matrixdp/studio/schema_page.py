"""The tables of the folder, and the editor of their schemas: a form with the fields that `domain.fields` lists.

Fields of the table are named as in the file (``records``, ``person.column``, ``files.decimal``), those of columns
``column.NUMBER.FIELD``, by the place of the column in the form. Types are proposed from the Arrow type of a column
alone, never from its values.
"""

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from matrixdp.domain.fields import COLUMN_FIELDS, SECTIONS, TYPES, Field, quote_line, unquote_line
from matrixdp.domain.file_rules import HEAD_RULES, FileRules
from matrixdp.domain.schema_file import describe_type, parse_schema, parse_toml, propose_type, read_content, write_toml
from matrixdp.errors import DataError, MatrixDPError, ParameterError
from matrixdp.records.heads import propose_rules
from matrixdp.studio.refusals import NotFoundError
from matrixdp.studio.rendering import CurrentVisit, Studio, Visit
from matrixdp.studio.security import SentFields

router = APIRouter()
_HEAD_TYPES = str | int
_COLUMN_FIELD = re.compile(r"column\.(\d{1,6})\.([a-z_]+)")
_CHANGED = (
    "The schema was saved from another page since this one was loaded. What you have entered is still here: compare it "
    "with the saved schema, and save again to replace that."
)
Texts = dict[str, str]


# The form


@dataclass(frozen=True)
class SchemaForm:
    """The texts of a schema that are not empty: of each column, with its ``name`` and ``type``, and of other fields."""

    columns: tuple[Texts, ...] = ()
    texts: Texts = field(default_factory=dict)


def propose_columns(table: Mapping[str, Any]) -> tuple[dict[str, Texts], Texts]:
    """Columns of a table by name, without bounds and levels; and those that a schema cannot describe: what they hold.

    `table` has Arrow fields by name. The type is empty where it is unknown (None), as in CSV. Only both are used.
    """
    types = {name: "" if field is None else propose_type(field.type) for name, field in table.items()}
    usable = {name: {"name": name, "type": kind} for name, kind in types.items() if name and kind is not None}
    unusable = {name: describe_type(table[name].type) for name, kind in types.items() if kind is None}
    return usable, unusable


def read_form(sent: Mapping[str, str]) -> SchemaForm:
    """The form that a browser sent."""
    columns: defaultdict[int, Texts] = defaultdict(lambda: {"name": ""})
    texts: Texts = {}
    for key, text in sent.items():
        if (found := _COLUMN_FIELD.fullmatch(key)) is None:
            texts |= {key: text} if text else {}
        elif found[2] == "name":
            with suppress(ParameterError):
                columns[int(found[1])]["name"] = unquote_line(text)
        elif text:
            columns[int(found[1])][found[2]] = text
    return SchemaForm(tuple(columns[number] for number in sorted(columns)), texts)


def form_from_toml(text: str) -> SchemaForm:
    """The form of a schema that `matrixdp schema check` accepts."""
    if parse_schema(text).graph is not None:
        raise ParameterError("the schema has a [graph], which this form does not show. Edit its file.")
    content = parse_toml(text)
    texts: Texts = {}
    for section, fields in SECTIONS.items():
        values = content.get(section, {}) if section else content
        texts |= {f"{section}.{one.name}".strip("."): one.show(values) for one in fields}
    columns = []
    for name, values in content.get("columns", {}).items():
        entry = {"levels" if key == "categories" else key: value for key, value in values.items()}
        kind = entry.get("type", "category" if "levels" in entry else "number")
        found = {one.name: one.show(entry, kind) for one in COLUMN_FIELDS if kind in one.types}
        columns.append({"name": name, "type": kind} | {key: text for key, text in found.items() if text})
    return SchemaForm(tuple(columns), {name: text for name, text in texts.items() if text})


def _parse_form(form: SchemaForm) -> tuple[dict[str, Any], Texts]:
    """The content of a TOML file, in which a field that cannot be read is text, and mistakes by the names of fields.

    The mistakes are texts that are not as the form wants them, and columns that are described twice.
    """
    mistakes: Texts = {}

    def parse(texts: Texts, prefix: str, fields: Iterable[Field], place: str, kind: str = "") -> dict[str, Any]:
        found = {}
        for one in fields:
            try:
                found[one.name] = one.parse(texts.get(f"{prefix}{one.name}", ""), kind)
            except ParameterError as error:
                mistakes[f"{place}{one.name}"] = str(error)
        return {name: value for name, value in found.items() if value is not None}

    content: dict[str, Any] = {}
    for section, fields in SECTIONS.items():
        place = f"{section}." if section else ""
        entry = parse(form.texts, place, fields, place)
        content |= {section: entry} if section and entry else entry
    columns: dict[str, Any] = {}
    for number, column in enumerate(form.columns):
        name, kind, place = column["name"], column.get("type", ""), f"column.{number}."
        if name in columns:
            mistakes[f"{place}name"] = f"column {name!r} is described twice. Remove one of them."
        entry = parse(column, "", [one for one in COLUMN_FIELDS if kind in one.types], place, kind)
        columns.setdefault(name, {"type": kind, **entry})
    return {**content, "columns": columns}, mistakes


def find_mistakes(form: SchemaForm) -> Texts:
    """Messages by the name of the field that they are about, columns first; those about the form have an empty name."""
    content, mistakes = _parse_form(form)
    places = {column["name"]: number for number, column in reversed(list(enumerate(form.columns)))}
    found = {
        f"column.{places[place[1]]}.{place[2]}" if place[0] == "columns" else ".".join(place): message
        for place, message in read_content(content)[1].items()
    } | mistakes
    if not form.columns:
        found[""] = "there are no columns. Add at least one."
    order = sorted(found, key=lambda name: int(name.split(".")[1]) if name.startswith("column.") else math.inf)
    return {name: found[name][:1].upper() + found[name][1:] for name in order}


def form_to_toml(form: SchemaForm) -> str:
    """The schema as TOML; texts that cannot be read are left out, and comments say so."""
    content, mistakes = _parse_form(form)
    return "".join(f"# {message}\n" for message in mistakes.values()) + write_toml(content)


# The pages


@router.get("/tables")
def list_tables(visit: CurrentVisit) -> Response:
    """All tables of the folder, and whether they have a schema."""
    datasets = visit.studio.datasets.list_all()
    tables = []
    for name in visit.studio.tables.list_all():
        try:
            columns: int | None = len(visit.studio.tables.columns(name))
        except MatrixDPError:  # which could quote a value
            columns = None
        used = [one.name for one in datasets if name in one.tables]
        written = visit.studio.schemas.read(name) is not None
        tables.append({"name": name, "columns": columns, "written": written, "datasets": used})
    return visit.render("tables.html", tables=tables)


@router.get("/tables/{table}/schema")
def edit_schema(visit: CurrentVisit, table: str, saved: str | None = None) -> Response:
    """The form of a table's schema; of a new one, with the types that its files declare."""
    text, problem = visit.studio.schemas.read(table), None
    try:
        form = None if text is None else form_from_toml(text)
    except ParameterError as error:
        form, problem = None, f"The stored schema cannot be shown as a form: {error}"
    if form is None:
        rules = propose_rules(visit.studio.tables.open(table).files[0])
        fields = visit.studio.tables.open(table, FileRules(**rules)).fields()
        texts = {f"files.{name}": str(value) for name, value in rules.items()}
        form = SchemaForm(tuple(propose_columns(fields)[0].values()), texts)
    return _show(visit, table, form, problem=problem, saved=saved is not None and text is not None)


@router.post("/tables/{table}/schema")
def change_schema(visit: CurrentVisit, table: str, sent: SentFields) -> Response:
    """Save the form, or show it again with a column more or less, or with its mistakes."""
    form, (action, _, place) = read_form(sent), sent.get("action", "check").partition(".")
    if action == "save":
        if mistakes := find_mistakes(form):
            return _show(visit, table, form, mistakes=mistakes, status=422)
        if sent.get("version", "") != _find_version(visit.studio.schemas.read(table)):
            return _show(visit, table, form, problem=_CHANGED, status=409)
        try:
            visit.studio.schemas.write(table, form_to_toml(form))
        except (ParameterError, DataError) as error:
            return _show(visit, table, form, mistakes={"": str(error)}, status=422)
        return RedirectResponse(f"{visit.request.url.path}?saved=yes", 303)
    if action == "remove":
        kept = tuple(column for number, column in enumerate(form.columns) if str(number) != place)
        return _show(visit, table, SchemaForm(kept, form.texts))
    if action == "add all" or (action == "add" and sent.get("new")):
        columns, _ = propose_columns(_find_columns(visit.studio, table, form)[0])
        names = list(columns) if action == "add all" else [unquote_line(sent["new"])]
        if not columns.keys() >= set(names):
            raise NotFoundError("there is no such column in the table.")
        known = {column["name"] for column in form.columns}
        added = [columns[name] for name in names if name not in known]
        form = SchemaForm((*form.columns, *added), form.texts)
        return _show(visit, table, form, opened=len(form.columns) - 1 if action == "add" else None)
    return _show(visit, table, form, mistakes=find_mistakes(form))


@router.post("/tables/{table}/schema/check")
def check_schema(visit: CurrentVisit, table: str, sent: SentFields) -> Response:
    """The TOML of a form and what is wrong with it, without saving anything."""
    visit.studio.tables.path(table)  # or there is none of this name
    form = read_form(sent)
    mistakes = find_mistakes(form)
    return visit.render("schema_preview.html", form=form, toml=form_to_toml(form), mistakes=mistakes, live=True)


@router.get("/tables/{table}/schema.toml")
def download_schema(visit: CurrentVisit, table: str) -> Response:
    """The saved schema as a file."""
    headers = {"Content-Disposition": 'attachment; filename="schema.toml"'}
    return Response(visit.studio.schemas.require(table), media_type="application/toml", headers=headers)


def _show(
    visit: Visit,
    table: str,
    form: SchemaForm,
    *,
    mistakes: Mapping[str, str] | None = None,
    problem: str | None = None,
    saved: bool = False,
    opened: int | None = None,
    status: int = 200,
) -> Response:
    text = visit.studio.schemas.read(table)
    fields, unfit = _find_columns(visit.studio, table, form)
    _, unusable = propose_columns(fields)
    known = {"", *unusable, *(column["name"] for column in form.columns)}
    workbook = table.lower().endswith((".xlsx", ".xls"))
    hidden, errors = ("encoding", "delimiter") if workbook else ("sheet",), {**(mistakes or {}), **unfit}
    return visit.render(
        "schema.html",
        status=status,
        table=table,
        problem=problem,
        saved=saved,
        opened=opened,
        exists=text is not None,
        version_field=_find_version(text),
        names=[(quote_line(name), name) for name in fields if name],
        more=[(quote_line(name), name) for name in fields if name not in known],
        unusable=unusable,
        workbook=workbook,
        sections=SECTIONS,
        file_fields=[one for one in SECTIONS["files"] if one.name not in hidden],
        form=form,
        toml=form_to_toml(form),
        mistakes=find_mistakes(form) if mistakes is None else mistakes,
        live=False,
        address=visit.request.url.path,  # as the browser wrote it
        errors=defaultdict(str, errors),
        checked=mistakes is not None or bool(unfit),
        wrong=Counter(int(name.split(".")[1]) for name in errors if name.startswith("column.")),
        types=TYPES,
        column_fields=COLUMN_FIELDS,
    )


def _find_columns(studio: Studio, table: str, form: SchemaForm) -> tuple[Mapping[str, Any], Texts]:
    """The columns of a table by name; where the form's rules for files do not fit it, by the default, and why not."""
    entry = _parse_form(form)[0].get("files", {})
    given = {name: entry[name] for name in HEAD_RULES if isinstance(entry.get(name), _HEAD_TYPES)}
    try:
        return studio.tables.open(table, FileRules(**given)).fields(), {}
    except (ParameterError, DataError) as error:
        if not given:
            raise
        place = getattr(error, "parameter", "") or next(iter(given))
        return studio.tables.open(table).fields(), {f"files.{place}": str(error)}


def _find_version(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()
