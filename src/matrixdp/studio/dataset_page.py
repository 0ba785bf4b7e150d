"""Data sets: budgets, allowances and what was released."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form
from pydantic import BaseModel
from starlette.responses import RedirectResponse, Response

from matrixdp.errors import MatrixDPError, ParameterError
from matrixdp.ledger import Charge, Gaussian
from matrixdp.studio.datasets import Dataset, measure_budget
from matrixdp.studio.refusals import find_status, place_error
from matrixdp.studio.rendering import CurrentVisit, Visit

router = APIRouter()
_SHOWN_CHARGES = 100


class DatasetForm(BaseModel):
    """The fields of the form that registers a data set, as they were sent."""

    dataset: str = ""
    table: str = ""
    epsilon: str = ""
    delta: str = "1e-6"
    neighbours: str = "replace"
    unit: str = "record"
    person: str = ""


class AllowanceForm(BaseModel):
    """The fields of the form that sets an allowance apart, as they were sent."""

    allowance: str = ""
    epsilon: str = ""
    share: str = ""


@router.get("/")
def show_start() -> Response:
    """The first page."""
    return RedirectResponse("/datasets", 303)


@router.get("/datasets")
def list_datasets(visit: CurrentVisit, table: str = "") -> Response:
    """All data sets, with a gauge of each budget; for a curator, a form for a new one."""
    return _show_list(visit, DatasetForm(table=table))


@router.post("/datasets")
def register(visit: CurrentVisit, form: Annotated[DatasetForm, Form()]) -> Response:
    """Register a data set. The same form sent twice is one registration."""
    try:
        _check_name(form.dataset, "dataset")
        visit.studio.datasets.register(
            visit.viewer,
            form.dataset,
            form.table,
            epsilon=_read_number(form.epsilon, "epsilon"),
            delta=_read_number(form.delta, "delta"),
            neighbours=form.neighbours,
            unit=f"{form.unit}:{form.person}" if form.unit in ("person", "values") else form.unit,
        )
    except MatrixDPError as error:
        return _show_list(visit, form, error)
    return _go_to(form.dataset)


@router.get("/datasets/{dataset}")
def show_dataset(visit: CurrentVisit, dataset: str) -> Response:
    """One data set: its budget, its allowances, and what was released."""
    return _show_one(visit, visit.studio.datasets.get(dataset), AllowanceForm())


@router.post("/datasets/{dataset}/allowances")
def allow(
    visit: CurrentVisit,
    dataset: str,
    form: Annotated[AllowanceForm, Form()],
) -> Response:
    """Set a part of the total apart. The same form sent twice is one allowance."""
    try:
        _check_name(form.allowance, "allowance")
        size = _read_number(form.epsilon, "epsilon") if form.epsilon.strip() else None
        visit.studio.datasets.allow(
            visit.viewer, dataset, form.allowance, epsilon=size, share=form.share.strip() or None
        )
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


def _show_list(visit: Visit, form: DatasetForm, error: MatrixDPError | None = None) -> Response:
    datasets = [(one, measure_budget(one.summary)) for one in visit.studio.datasets.list_all()]
    return visit.render(
        "datasets.html",
        status=200 if error is None else find_status(error),
        datasets=datasets,
        tables=visit.studio.tables.list_all() if visit.viewer.is_curator else [],
        values=form,
        errors={} if error is None else place_error(error, DatasetForm.model_fields),
        open_form=bool(error or form.table or not datasets),
    )


def _show_one(visit: Visit, found: Dataset, form: AllowanceForm, error: MatrixDPError | None = None) -> Response:
    charges = visit.studio.datasets.history(found.name)[::-1]
    present = [table for table in found.tables if visit.studio.tables.find(table)]
    others = [one for one in visit.studio.datasets.list_all() if one.name != found.name]
    history = [(charge, _name_charge(charge), _name_cost(charge)) for charge in charges[:_SHOWN_CHARGES]]
    return visit.render(
        "dataset.html",
        status=200 if error is None else find_status(error),
        found=found,
        gauge_shares=measure_budget(found.summary),
        allowances=[(one, measure_budget(one)) for one in found.summary.allowances],
        history=history,
        more=len(charges) - len(history),
        schemas={table: visit.studio.schemas.read(table) is not None for table in present},
        others={table: [one.name for one in others if table in one.tables] for table in found.tables},
        values=form,
        errors={} if error is None else place_error(error, AllowanceForm.model_fields),
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


def _read_number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{name} must be a number, got {text[:40]!r} instead.", parameter=name) from None


def _check_name(name: str, field: str) -> None:
    """Raise unless a name can stand in an address."""
    if not name.strip() or not name.isprintable() or "/" in name or name != name.strip():
        message = f"{field} must be a name of printable characters, without / and spaces at its ends."
        raise ParameterError(message, parameter=field)


def _go_to(dataset: str) -> Response:
    return RedirectResponse(f"/datasets/{quote(dataset, safe='')}", 303)
