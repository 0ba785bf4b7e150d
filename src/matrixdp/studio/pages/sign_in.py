"""Signing in with a link or a token, and out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from matrixdp.studio.rendering import render
from matrixdp.studio.security import CurrentStudio, cookie_name, refuse_wrong_token
from matrixdp.studio.sessions import sign_in, sign_out
from matrixdp.studio.studio import Studio

router = APIRouter()
_LONGEST = 200


@router.get("/enter")
def show_entry(request: Request, studio: CurrentStudio, token: Annotated[str | None, Query()] = None) -> Response:
    """Exchange the token of a printed address for a cookie; without one, ask for it."""
    if token is not None and "prefetch" not in request.headers.get("sec-purpose", ""):
        return _enter(request, studio, token)
    return render(request, "enter.html", problem=None)


@router.post("/enter")
def enter(request: Request, studio: CurrentStudio, token: Annotated[str, Form()]) -> Response:
    """Sign in with a person's token."""
    return _enter(request, studio, token.strip())


@router.post("/leave")
def leave(request: Request, studio: CurrentStudio) -> Response:
    """Sign out."""
    name = cookie_name(studio.settings)
    sign_out(studio.state, request.cookies[name])
    response = RedirectResponse("/enter", 303)
    response.delete_cookie(name, httponly=True, samesite="strict", secure=studio.settings.secure)
    return response


def _enter(request: Request, studio: Studio, secret: str) -> Response:
    settings = studio.settings
    cookie = sign_in(studio.state, studio.links, secret[:_LONGEST], settings.session_hours)
    if cookie is None:
        problem = refuse_wrong_token(request, studio)
        return render(request, "enter.html", status=problem.status, problem=str(problem))
    # Browsers do not send a strict cookie after a redirect from another site, such as a page with the address.
    foreign = request.headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
    response = render(request, "entered.html") if foreign else RedirectResponse("/", 303)
    response.set_cookie(
        cookie_name(settings),
        cookie,
        max_age=int(settings.session_hours * 3600),
        httponly=True,
        samesite="strict",
        secure=settings.secure,
    )
    return response
