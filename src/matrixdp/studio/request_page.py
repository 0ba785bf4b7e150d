"""Requests: asking, approving, refusing, progress."""

import hashlib
import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Form
from starlette.responses import RedirectResponse, Response

from matrixdp.errors import MatrixDPError, ParameterError
from matrixdp.studio import design_page
from matrixdp.studio.refusals import NotFoundError, place_error, word_error
from matrixdp.studio.rendering import CurrentVisit, Visit
from matrixdp.studio.requests import Status, StoredRequest
from matrixdp.studio.security import SentForm
from matrixdp.studio.sign_in import find_person, list_revoked

router = APIRouter()
_SHOWN = 200  # requests of a list
# The label, the style of its tag, and what happens next.
STATES = {
    Status.PENDING: ("Waits for a curator", "warn", "A curator approves or refuses it. Nothing is spent so far."),
    Status.REFUSED: ("Refused", "bad", "Nothing was spent. Change the design and ask again."),
    Status.APPROVED: ("Approved", "live", "It is released by itself. If that takes long, ask a curator."),
    Status.RUNNING: ("Being released", "live", "The table is read, the ledger charged, and noise added."),
    Status.RELEASED: ("Released", "good", "The result and its report can be read."),
    Status.FAILED: ("Failed", "bad", "A curator can approve it again; it is charged at most once."),
}


@router.get("/requests")
def list_requests(visit: CurrentVisit) -> Response:
    """For an analyst her own requests; for a curator all, those that wait for her first."""
    found = visit.studio.requests.list_all(visit.viewer)
    waiting = Status.PENDING if visit.viewer.is_curator else None
    pending = [one for one in reversed(found) if one.status is waiting]
    others = [one for one in found if one.status is not waiting]
    more = max(0, len(others) - _SHOWN)
    listed: Any = {"pending": pending, "others": others[:_SHOWN], "more": more}
    return visit.render("requests.html", states=STATES, revoked=list_revoked(visit.studio.state), **listed)


@router.post("/requests")
def ask(visit: CurrentVisit, sent: SentForm) -> Response:
    """Ask for the release that the design page shows.

    The same form with the same values is one request, however often it is sent.
    """
    form_id, purpose = str(sent.get("form_id", "")), " ".join(str(sent.get("purpose", "")).split())
    try:
        source, _, spec = design_page.read_filled(visit.studio, sent)
        what = json.dumps([form_id, source.dataset.name, source.table, spec.to_mapping(), purpose], sort_keys=True)
        form_id = form_id and hashlib.sha256(what.encode()).hexdigest()  # the same form with other values is another
        found = visit.studio.requests.submit(visit.viewer, source.dataset.name, source.table, spec, purpose, form_id)
    except NotFoundError:
        raise
    except MatrixDPError as error:
        return design_page.show_form(visit, sent, error, str(sent.get("form_id", "")))
    return RedirectResponse(f"/requests/{found.id}", 303)


@router.get("/requests/{request_id}")
def show_request(visit: CurrentVisit, request_id: str) -> Response:
    """One request: what would be spent and published, and what became of it."""
    return _show(visit, visit.studio.requests.get(visit.viewer, request_id))


@router.get("/requests/{request_id}/progress")
def show_progress(visit: CurrentVisit, request_id: str, seen: str = "") -> Response:
    """The state of a request, which its page asks for while it waits or runs.

    Nothing if it is the one that was `seen`; the whole page once it is decided or over.
    """
    found = visit.studio.requests.get(visit.viewer, request_id)
    if found.step == seen:
        return Response(status_code=204)
    if found.is_over or seen == Status.PENDING.value:
        return Response(headers={"HX-Refresh": "true"})
    return visit.render("request_state.html", found=found, states=STATES)


@router.post("/requests/{request_id}/approve")
def approve(visit: CurrentVisit, request_id: str) -> Response:
    """Approve a request; it is released in the background. A second time changes nothing."""
    return _decide(visit, request_id, lambda: visit.studio.requests.approve(visit.viewer, request_id))


@router.post("/requests/{request_id}/refuse")
def refuse(visit: CurrentVisit, request_id: str, reason: Annotated[str, Form()] = "") -> Response:
    """Refuse a request, with a reason that the analyst reads. A second time changes nothing."""
    line, refuse = " ".join(reason.split()), visit.studio.requests.refuse
    return _decide(visit, request_id, lambda: refuse(visit.viewer, request_id, line), reason)


def _decide(visit: Visit, request_id: str, decide: Callable[[], object], reason: str = "") -> Response:
    try:
        decide()
    except NotFoundError:
        raise
    except MatrixDPError as error:
        return _show(visit, visit.studio.requests.get(visit.viewer, request_id), error, reason)
    return RedirectResponse(f"/requests/{request_id}", 303)


def _show(visit: Visit, found: StoredRequest, error: MatrixDPError | None = None, reason: str = "") -> Response:
    """The page of a request: what the release costs and publishes, or the reason if it cannot be told any more."""
    try:
        source = design_page.ReleasedTable(visit.studio.datasets.get(found.dataset), found.table, found.schema)
        asker, plan = find_person(visit.studio.state, found.asker), source.forecaster.plan(found.spec)
        context = {"known": True, **design_page.describe_cost(visit.studio, asker, source, found.spec, plan)}
        context["again"] = design_page.write_address(found.spec, source.forecaster.schema, found.dataset, found.table)
    except (ParameterError, NotFoundError) as problem:
        context = {"known": False, "unknown": word_error(problem), "again": "/design", "spec": found.spec}
    context |= {"states": STATES, "reason": reason, "errors": place_error(error, ["reason"])}
    revoked = found.asker in list_revoked(visit.studio.state)
    return visit.render("request.html", mistake=error, found=found, revoked=revoked, **context)
