"""Data sets: budgets, allowances and what was released."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from matrixdp.domain.fields import read_number
from matrixdp.errors import MatrixDPError
from matrixdp.ledger import Charge, Gaussian
from matrixdp.studio.datasets import Dataset, measure_budget
from matrixdp.studio.refusals import place_error
from matrixdp.studio.rendering import CurrentVisit, Visit
from matrixdp.studio.security import SentFields

router = APIRouter()
_SHOWN_CHARGES = 100
# The fields of the two forms, and what they have at first.
_DATASET = {"dataset": "", "table": "", "epsilon": "", "delta": "1e-6"}
_DATASET |= {"neighbours": "replace", "unit": "record", "person": ""}
_ALLOWANCE = {"allowance": "", "epsilon": "", "share": ""}


@router.get("/")
def show_start() -> Response:
    """The first page."""
    return RedirectResponse("/datasets", 303)


@router.get("/datasets")
def list_datasets(visit: CurrentVisit, table: str = "") -> Response:
    """All data sets, with a gauge of each budget; for a curator, a form for a new one."""
    return _show_list(visit, {**_DATASET, "table": table})


@router.post("/datasets")
def register(visit: CurrentVisit, sent: SentFields) -> Response:
    """Register a data set. The same form sent twice is one registration."""
    form = {**_DATASET, **sent}
    total: Any = {name: read_number(form[name]) for name in ("epsilon", "delta")}
    unit = f"{form['unit']}:{form['person']}" if form["unit"] in ("person", "values") else form["unit"]
    options = {**total, "neighbours": form["neighbours"], "unit": unit}
    try:
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
    size: Any = {"epsilon": epsilon, "share": form["share"].strip() or None}
    try:
        visit.studio.datasets.allow(visit.viewer, dataset, form["allowance"], **size)
    except MatrixDPError as error:
        return _show_one(visit, visit.studio.datasets.get(dataset), form, error)
    return _go_to(dataset)


@router.post("/datasets/{dataset}/allowances/{allowance}/return")
def return_allowance(visit: CurrentVisit, dataset: str, allowance: str) -> Response:
    """End an allowance; what it has not spent is available to all again."""
    found = {one.name: one for one in visit.studio.datasets.get(dataset).summary.allowances}
    if allowance not in found or not found[allowance].returned:  # a second time changes nothing
        visit.studio.datasets.return_allowance(visit.viewer, dataset, allowance)
    return _go_to(dataset)


def _show_list(visit: Visit, form: Mapping[str, str], error: MatrixDPError | None = None) -> Response:
    datasets = [(one, measure_budget(one.summary)) for one in visit.studio.datasets.list_all()]
    return visit.render(
        "datasets.html",
        mistake=error,
        datasets=datasets,
        tables=visit.studio.tables.list_all() if visit.viewer.is_curator else [],
        values=form,
        errors=place_error(error, _DATASET, {"name": "dataset"}),
        open_form=bool(error or form["table"] or not datasets),
    )


def _show_one(visit: Visit, found: Dataset, form: Mapping[str, str], error: MatrixDPError | None = None) -> Response:
    charges = visit.studio.datasets.history(found.name)[::-1]
    present = [table for table in found.tables if visit.studio.tables.find(table)]
    others = [one for one in visit.studio.datasets.list_all() if one.name != found.name]
    history = [(charge, _name_charge(charge), _name_cost(charge)) for charge in charges[:_SHOWN_CHARGES]]
    return visit.render(
        "dataset.html",
        mistake=error,
        found=found,
        gauge_shares=measure_budget(found.summary),
        allowances=[(one, measure_budget(one)) for one in found.summary.allowances],
        history=history,
        more=len(charges) - len(history),
        schemas={table: visit.studio.schemas.read(table) is not None for table in present},
        others={table: [one.name for one in others if table in one.tables] for table in found.tables},
        values=form,
        errors=place_error(error, _ALLOWANCE, {"name": "allowance"}),
    )


def _name_charge(charge: Charge) -> str:
    """What was released, as far as the ledger says it."""
    found = charge.description.get("aim") or charge.description.get("query") or charge.description.get("mechanism")
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(found or "a release")).lower()
    shape = charge.description.get("shape")
    return f"{words}, {shape[0]} x {shape[1]}" if isinstance(shape, list) and len(shape) == 2 else words


def _name_cost(charge: Charge) -> str:
    """What a charge cost: its epsilon and delta, and mu for Gaussian noise."""
    epsilon, delta = (charge.description.get(name) for name in ("epsilon", "delta"))
    parts = [f"epsilon {epsilon:.3g}"] if isinstance(epsilon, int | float) else []
    parts += [f"delta {delta:.2g}"] if isinstance(delta, int | float) else []
    parts += [f"mu {charge.event.mu:.4g}"] if isinstance(charge.event, Gaussian) else []
    return ", ".join(parts) or str(charge.event)


def _go_to(dataset: str) -> Response:
    return RedirectResponse(f"/datasets/{quote(dataset, safe='')}", 303)
