"""Data sets with their budgets, allowances and what was released; and people: who may sign in, with which roles."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from matrixdp.domain.fields import read_number
from matrixdp.errors import MatrixDPError, ParameterError
from matrixdp.release.options import title_charge
from matrixdp.report.dossier import charge_epsilon
from matrixdp.studio.datasets import Dataset
from matrixdp.studio.refusals import ConflictError, place_error
from matrixdp.studio.rendering import CurrentVisit, Visit
from matrixdp.studio.roles import Role
from matrixdp.studio.security import SentFields, SentForm, split_names
from matrixdp.studio.sign_in import create_token, list_people, revoke_token

router = APIRouter()
_SHOWN_CHARGES = 100
# The fields of the forms, and what they have at first.
_DATASET = {"dataset": "", "table": "", "epsilon": "", "delta": "1e-6"}
_DATASET |= {"neighbours": "replace", "unit": "", "person": ""}
_ALLOWANCE = {"allowance": "", "epsilon": "", "share": "", "payers": ""}
_INVITATION = {"name": "", "groups": "", "days": "", "roles": ""}
_ROWS = (
    "unit must say whether a person can have several rows. If unsure, ask where the table comes from: protection of "
    "rows is no protection of people who have several."
)


@router.get("/")
def show_start() -> Response:
    """The first page."""
    return RedirectResponse("/datasets", 303)


@router.get("/datasets")
def list_datasets(visit: CurrentVisit) -> Response:
    """All data sets, with a gauge of each budget; for a curator, a form for a new one, filled from the address."""
    given = visit.request.query_params
    return _show_list(visit, {name: given.get(name, usual) for name, usual in _DATASET.items()})


@router.post("/datasets")
def register(visit: CurrentVisit, sent: SentFields) -> Response:
    """Register a data set. The same form sent twice is one registration."""
    form = {**_DATASET, **sent}
    total: Any = {name: read_number(form[name]) for name in ("epsilon", "delta")}
    unit = f"{form['unit']}:{form['person']}" if form["unit"] in ("person", "values") else form["unit"]
    options = {**total, "neighbours": form["neighbours"], "unit": unit}
    try:
        if not unit:
            raise ParameterError(_ROWS, parameter="unit")
        visit.studio.datasets.register(visit.viewer, form["dataset"], form["table"], **options)
    except MatrixDPError as error:
        return _show_list(visit, form, error)
    return _go_to(form["dataset"])


@router.get("/datasets/{dataset}")
def show_dataset(visit: CurrentVisit, dataset: str) -> Response:
    """One data set: its budget, its allowances, and what was released."""
    return _show_one(visit, visit.studio.datasets.get(dataset), _ALLOWANCE)


@router.post("/datasets/{dataset}/allowances")
def allow(visit: CurrentVisit, dataset: str, sent: SentFields) -> Response:
    """Set a part of the total apart. The same form sent twice is one allowance."""
    form = {**_ALLOWANCE, **sent}
    epsilon = read_number(form["epsilon"]) if form["epsilon"].strip() else None
    size: Any = {"epsilon": epsilon, "share": form["share"].strip().replace(",", ".") or None}
    payers = split_names(form["payers"])
    try:
        if not payers:
            raise ParameterError("payers must name people or groups, separated by commas.", parameter="payers")
        visit.studio.datasets.allow(visit.viewer, dataset, form["allowance"] or payers[0], **size, payers=payers)
    except MatrixDPError as error:
        return _show_one(visit, visit.studio.datasets.get(dataset), form, error)
    return _go_to(dataset)


@router.post("/datasets/{dataset}/allowances/{allowance}/return")
def return_allowance(visit: CurrentVisit, dataset: str, allowance: str) -> Response:
    """End an allowance; what it has not spent is available to all again."""
    visit.studio.datasets.return_allowance(visit.viewer, dataset, allowance)  # a second time changes nothing
    return _go_to(dataset)


@router.post("/datasets/{dataset}/remove")
def remove(visit: CurrentVisit, dataset: str) -> Response:
    """Take a data set that nothing was charged to off the pages."""
    try:
        visit.studio.datasets.remove(visit.viewer, dataset)
    except ConflictError as error:
        return _show_one(visit, visit.studio.datasets.get(dataset), _ALLOWANCE, error)
    return RedirectResponse("/datasets", 303)


def _show_list(visit: Visit, form: Mapping[str, str], error: MatrixDPError | None = None) -> Response:
    datasets = visit.studio.datasets.list_all()
    tables = visit.studio.tables.list_all() if visit.viewer.is_curator else []
    columns, person, table = [], None, form["table"] or next(iter(tables), "")
    with suppress(MatrixDPError):  # which could quote a value
        if tables and visit.studio.tables.find(table) is not None:
            schema = visit.studio.schemas.parse(table)
            fields = visit.studio.tables.open(table, None if schema is None else schema.rules).fields()
            columns = [name for name in fields if name]  # those that can say whose a row is
            person = None if schema is None or schema.person is None else schema.person.column
    if person is not None and not form["unit"]:
        form = {**form, "unit": "person", "person": person}
    return visit.render(
        "datasets.html",
        mistake=error,
        datasets=datasets,
        tables=tables,
        columns=columns,
        person=person,
        values=form,
        errors=place_error(error, _DATASET, name="dataset"),
        open_form=bool(error or form["table"] or not datasets),
    )


def _show_one(visit: Visit, found: Dataset, form: Mapping[str, str], error: MatrixDPError | None = None) -> Response:
    charges, delta = visit.studio.datasets.history(found.name)[::-1], found.summary.registration.privacy.delta
    shown = charges[:_SHOWN_CHARGES]
    present = [table for table in found.tables if visit.studio.tables.find(table)]
    others = [one for one in visit.studio.datasets.list_all() if one.name != found.name]
    return visit.render(
        "dataset.html",
        mistake=error,
        found=found,
        history=[(one, title_charge(one), f"epsilon {charge_epsilon(one, delta):.3g}") for one in shown],
        more=len(charges) - len(shown),
        streams={f"stream {path.stem}": path.stem for path in visit.studio.settings.streams.glob("*.json")},
        schemas={table: visit.studio.schemas.read(table) is not None for table in present},
        others={table: [one.name for one in others if table in one.tables] for table in found.tables},
        values=form,
        errors=place_error(error, _ALLOWANCE, name="allowance"),
        people=sorted({name for one in list_people(visit.studio.state) for name in (one.name, *one.groups)}),
    )


def _go_to(dataset: str) -> Response:
    return RedirectResponse(f"/datasets/{quote(dataset, safe='')}", 303)


@router.get("/people")
def show_people(visit: CurrentVisit) -> Response:
    """Everybody, with their tokens, and a form to invite somebody."""
    return _show_people(visit, _INVITATION)


@router.post("/people")
def invite(visit: CurrentVisit, sent: SentForm) -> Response:
    """Make a token for a person, and show it once."""
    form = {name: str(sent.get(name, "")).strip() for name in _INVITATION}
    roles = [Role(value) for value in sent.getlist("roles") if value in {role.value for role in Role}]
    form["roles"] = ",".join(role.value for role in roles)
    groups = split_names(form["groups"])
    try:
        days = read_number(form["days"]) if form["days"] else None
        if isinstance(days, str):
            raise ParameterError("days must be a number, or empty for no end.", parameter="days")
        secret, _ = create_token(visit.studio.state, form["name"], roles, days, groups or None)
    except MatrixDPError as error:
        return _show_people(visit, form, error)
    return _show_people(visit, _INVITATION, invited=form["name"], secret=secret)


@router.post("/people/{token_id}/revoke")
def revoke(visit: CurrentVisit, token_id: str) -> Response:
    """Revoke a token, and sign out the browsers that signed in with it."""
    revoke_token(visit.studio.state, token_id)
    return RedirectResponse("/people", 303)


def _show_people(
    visit: Visit, form: Mapping[str, str], error: MatrixDPError | None = None, *, invited: str = "", secret: str = ""
) -> Response:
    return visit.render(
        "people.html",
        mistake=error,
        people=list_people(visit.studio.state),
        roles=[role.value for role in Role],
        values=form,
        errors=place_error(error, _INVITATION),
        invited=invited,
        secret=secret,
        address=visit.studio.settings.addresses[0],
    )
