"""Requests: asking, approving, refusing, progress."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from matrixdp.errors import MatrixDPError, ParameterError
from matrixdp.studio.design_form import write_address
from matrixdp.studio.design_page import (
    describe_code,
    describe_details,
    describe_forecast,
    describe_left,
    read_filled,
    show_form,
)
from matrixdp.studio.forecasts import Forecaster, open_forecaster
from matrixdp.studio.refusals import ConflictError, NotFoundError, find_status
from matrixdp.studio.rendering import render
from matrixdp.studio.requests import Status, StoredRequest
from matrixdp.studio.security import CurrentStudio, CurrentViewer, receive_form
from matrixdp.studio.studio import Studio
from matrixdp.studio.wording import STATES, name_query, write_plainly

router = APIRouter()
_SHOWN = 200  # requests of a list


@router.get("/requests")
def list_requests(request: Request, studio: CurrentStudio, viewer: CurrentViewer) -> Response:
    """For an analyst her own requests; for a curator all, those that wait for her first."""
    found = studio.requests.list_all(viewer)
    waiting = Status.PENDING if viewer.is_curator else None
    pending = [one for one in reversed(found) if one.status is waiting]
    others = [one for one in found if one.status is not waiting]
    return render(
        request,
        "requests.html",
        pending=pending,
        others=others[:_SHOWN],
        more=max(0, len(others) - _SHOWN),
        states=STATES,
        name_query=name_query,
    )


@router.post("/requests")
async def ask(request: Request, studio: CurrentStudio, viewer: CurrentViewer) -> Response:
    """Ask for the release that the design page shows. The same form is one request, however often it is sent."""
    form = await receive_form(request)
    form_id = str(form.get("form_id", ""))

    def respond() -> Response:
        filled, errors = read_filled(studio, form)
        purpose = " ".join(str(form.get("purpose", "")).split())
        if not purpose:
            errors |= {"purpose": "purpose must say in a line what the result is for."}
        if filled is None or errors:
            return show_form(request, studio, form, errors, 422, form_id)
        source = filled.source
        try:
            found = studio.requests.submit(viewer, source.dataset.name, source.table, filled.spec, purpose, form_id)
        except ConflictError as error:  # the same form with other values: the next try is another request
            return show_form(request, studio, form, {"form": str(error)}, find_status(error))
        except MatrixDPError as error:
            field = "purpose" if str(error).startswith("purpose") else "form"
            return show_form(request, studio, form, {field: write_plainly(str(error))}, find_status(error), form_id)
        return RedirectResponse(f"/requests/{found.id}", 303)

    return await run_in_threadpool(respond)


@router.get("/requests/{request_id}")
def show_request(request: Request, studio: CurrentStudio, viewer: CurrentViewer, request_id: str) -> Response:
    """One request: what would be spent and published, and what became of it."""
    return _show(request, studio, viewer, studio.requests.get(viewer, request_id))


@router.get("/requests/{request_id}/progress")
def show_progress(
    request: Request, studio: CurrentStudio, viewer: CurrentViewer, request_id: str, seen: str = ""
) -> Response:
    """The state of a request, which its page asks for while it waits or runs.

    Nothing if it is the one that was `seen`; the whole page once it is decided or over.
    """
    found = studio.requests.get(viewer, request_id)
    if _name_step(found) == seen:
        return Response(status_code=204)
    if found.is_over or seen == Status.PENDING.value:
        return Response(headers={"HX-Refresh": "true"})
    return render(request, "request_state.html", **_describe_state(found, viewer))


def _describe_state(found: StoredRequest, viewer: CurrentViewer) -> dict[str, Any]:
    return {"found": found, "states": STATES, "explained": found.explain(viewer), "seen": _name_step(found)}


def _name_step(found: StoredRequest) -> str:
    """The state of a request as far as its page shows it."""
    return found.status.value if found.progress is None else f"{found.status.value} {found.progress:.2f}"


@router.get("/requests/{request_id}/forecast")
def show_simulation(request: Request, studio: CurrentStudio, viewer: CurrentViewer, request_id: str) -> Response:
    """The simulated range of an adaptive fit, which takes longer."""
    found = studio.requests.get(viewer, request_id)
    context = describe_details(_open(found), found.spec)
    return render(request, "design_details.html", **context)


@router.post("/requests/{request_id}/approve")
def approve(request: Request, studio: CurrentStudio, viewer: CurrentViewer, request_id: str) -> Response:
    """Approve a request; it is released in the background. A second time changes nothing."""
    try:
        studio.requests.approve(viewer, request_id)
    except NotFoundError:
        raise
    except MatrixDPError as error:
        return _show(request, studio, viewer, studio.requests.get(viewer, request_id), error=error)
    return RedirectResponse(f"/requests/{request_id}", 303)


@router.post("/requests/{request_id}/refuse")
def refuse(
    request: Request,
    studio: CurrentStudio,
    viewer: CurrentViewer,
    request_id: str,
    reason: Annotated[str, Form()] = "",
) -> Response:
    """Refuse a request, with a reason that the analyst reads. A second time changes nothing."""
    try:
        studio.requests.refuse(viewer, request_id, " ".join(reason.split()))
    except NotFoundError:
        raise
    except MatrixDPError as error:
        found = studio.requests.get(viewer, request_id)
        return _show(request, studio, viewer, found, error=error, reason=reason)
    return RedirectResponse(f"/requests/{request_id}", 303)


def _show(
    request: Request,
    studio: Studio,
    viewer: CurrentViewer,
    found: StoredRequest,
    *,
    error: MatrixDPError | None = None,
    reason: str = "",
) -> Response:
    problem = "" if error is None else str(error)
    return render(
        request,
        "request.html",
        status=200 if error is None else find_status(error),
        title=name_query(found.spec),
        reason=reason,
        reason_problem=problem if problem.startswith("reason") else "",
        problem="" if problem.startswith("reason") else problem,
        **_describe_state(found, viewer),
        **_forecast(studio, found),
    )


def _forecast(studio: Studio, found: StoredRequest) -> dict[str, Any]:
    """What the release costs and publishes; the reason if it cannot be told any more."""
    try:
        forecaster = _open(found)
        context = describe_forecast(forecaster, found.spec)
        dataset = studio.datasets.get(found.dataset)
        with studio.datasets.open_ledger() as ledger:
            context |= describe_left(ledger, dataset, context["plan"], found.spec.allowance)
        context |= describe_code(forecaster, context["forecast"], found.table, found.dataset)
        again = write_address(found.spec, forecaster.schema, found.dataset, found.table)
    except (ParameterError, NotFoundError) as error:
        return {"known": False, "unknown": str(error), "again": "/design"}
    design = context["forecast"].design
    return context | {
        "known": True,
        "again": again,
        "explained_design": "" if context["adaptive"] else design.explain(),
    }


def _open(found: StoredRequest) -> Forecaster:
    """Forecasts for the schema with which a request was asked."""
    return open_forecaster(found.schema, f"{found.table}.toml")
