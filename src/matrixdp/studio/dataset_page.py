"""Data sets: budgets, allowances and what was released."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from matrixdp.errors import MatrixDPError, ParameterError
from matrixdp.studio.datasets import Dataset, measure_allowance, measure_dataset
from matrixdp.studio.refusals import find_status
from matrixdp.studio.rendering import render
from matrixdp.studio.roles import Viewer
from matrixdp.studio.security import CurrentStudio, CurrentViewer
from matrixdp.studio.studio import Studio
from matrixdp.studio.wording import find_field, name_charge, name_cost

router = APIRouter()
_SHOWN_CHARGES = 100
_NEW_FIELDS = ("dataset", "table", "epsilon", "delta", "neighbours", "unit", "person")
_ALLOWANCE_FIELDS = ("allowance", "epsilon", "share")

Text = Annotated[str, Form()]


@router.get("/")
def show_start() -> Response:
    """The first page."""
    return RedirectResponse("/datasets", 303)


@router.get("/datasets")
def list_datasets(request: Request, studio: CurrentStudio, viewer: CurrentViewer) -> Response:
    """All data sets, with a gauge of each budget; for a curator, a form for a new one."""
    return _show_list(request, studio, viewer)


@router.post("/datasets")
def register(
    request: Request,
    studio: CurrentStudio,
    viewer: CurrentViewer,
    dataset: Text = "",
    table: Text = "",
    epsilon: Text = "",
    delta: Text = "",
    neighbours: Text = "replace",
    unit: Text = "record",
    person: Text = "",
) -> Response:
    """Register a data set. The same form sent twice is one registration."""
    values = {"dataset": dataset, "table": table, "epsilon": epsilon, "delta": delta, "neighbours": neighbours}
    values |= {"unit": unit, "person": person}
    try:
        _check_name(dataset, "dataset")
        studio.datasets.register(
            viewer,
            dataset,
            table,
            epsilon=_read_number(epsilon, "epsilon"),
            delta=_read_number(delta, "delta"),
            neighbours=neighbours,
            unit=f"person:{person}" if unit == "person" else unit,
        )
    except MatrixDPError as error:
        errors = {find_field(str(error), _NEW_FIELDS): str(error)}
        return _show_list(request, studio, viewer, values, errors, find_status(error))
    return RedirectResponse(_address(dataset), 303)


@router.get("/datasets/{dataset}")
def show_dataset(request: Request, studio: CurrentStudio, dataset: str) -> Response:
    """One data set: its budget, its allowances, and what was released."""
    return _show_one(request, studio, studio.datasets.get(dataset))


@router.post("/datasets/{dataset}/allowances")
def allow(
    request: Request,
    studio: CurrentStudio,
    viewer: CurrentViewer,
    dataset: str,
    allowance: Text = "",
    epsilon: Text = "",
    share: Text = "",
) -> Response:
    """Set a part of the total apart. The same form sent twice is one allowance."""
    try:
        _check_name(allowance, "allowance")
        size = _read_number(epsilon, "epsilon") if epsilon.strip() else None
        studio.datasets.allow(viewer, dataset, allowance, epsilon=size, share=share.strip() or None)
    except MatrixDPError as error:
        errors = {find_field(str(error), _ALLOWANCE_FIELDS): str(error)}
        values = {"allowance": allowance, "epsilon": epsilon, "share": share}
        return _show_one(request, studio, studio.datasets.get(dataset), values, errors, find_status(error))
    return RedirectResponse(_address(dataset), 303)


@router.post("/datasets/{dataset}/allowances/{allowance}/return")
def return_allowance(studio: CurrentStudio, viewer: CurrentViewer, dataset: str, allowance: str) -> Response:
    """End an allowance; what it has not spent is available to all again."""
    found = {one.name: one for one in studio.datasets.get(dataset).summary.allowances}
    if allowance not in found or not found[allowance].returned:  # a second time changes nothing
        studio.datasets.return_allowance(viewer, dataset, allowance)
    return RedirectResponse(_address(dataset), 303)


def _show_list(
    request: Request,
    studio: Studio,
    viewer: Viewer,
    values: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    datasets = [(one, measure_dataset(one.summary)) for one in studio.datasets.list_all()]
    tables = studio.tables.list_all() if viewer.is_curator else []
    chosen = request.query_params.get("table", "")
    usual = {"dataset": "", "table": chosen, "epsilon": "", "delta": "1e-6", "neighbours": "replace"}
    usual |= {"unit": "record", "person": ""}
    return render(
        request,
        "datasets.html",
        status=status,
        datasets=datasets,
        tables=tables,
        values=values or usual,
        errors=errors or {},
        open_form=bool(errors or chosen or not datasets),
    )


def _show_one(
    request: Request,
    studio: Studio,
    found: Dataset,
    values: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    charges = studio.datasets.history(found.name)[::-1]
    present = [table for table in found.tables if studio.tables.has(table)]
    history = [(charge, name_charge(charge), name_cost(charge)) for charge in charges[:_SHOWN_CHARGES]]
    return render(
        request,
        "dataset.html",
        status=status,
        found=found,
        gauge_shares=measure_dataset(found.summary),
        allowances=[(one, measure_allowance(one)) for one in found.summary.allowances],
        history=history,
        more=len(charges) - len(history),
        schemas={table: studio.schemas.read(table) is not None for table in present},
        others={table: _list_others(studio, found.name, table) for table in found.tables},
        values=values or {"allowance": "", "epsilon": "", "share": ""},
        errors=errors or {},
    )


def _list_others(studio: Studio, name: str, table: str) -> list[str]:
    """Other data sets that a table is released as."""
    return [one.name for one in studio.datasets.list_all() if one.name != name and table in one.tables]


def _read_number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{name} must be a number, got {text[:40]!r} instead.") from None


def _check_name(name: str, field: str) -> None:
    """Raise unless a name can stand in an address."""
    if not name.strip() or not name.isprintable() or "/" in name or name != name.strip():
        raise ParameterError(f"{field} must be a name of printable characters, without / and spaces at its ends.")


def _address(dataset: str) -> str:
    return f"/datasets/{quote(dataset, safe='')}"
