"""Signing in with a link or a token, and out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from matrixdp.studio.rendering import render
from matrixdp.studio.security import CurrentStudio, cookie_name, refuse_wrong_token
from matrixdp.studio.sessions import enter_by_link, enter_by_token, sign_out
from matrixdp.studio.studio import Studio

router = APIRouter()


@router.get("/enter")
def show_entry(request: Request, studio: CurrentStudio, token: Annotated[str | None, Query()] = None) -> Response:
    """Exchange the token of a printed address for a cookie; without one, ask for a person's token.

    A person's token is not accepted here: addresses are remembered by browsers and proxies.
    """
    if token is not None and "prefetch" not in request.headers.get("sec-purpose", ""):
        cookie = enter_by_link(studio.state, studio.links, token, studio.settings.session_hours)
        return _answer(request, studio, cookie)
    return render(request, "enter.html", problem=None)


@router.post("/enter")
def enter(request: Request, studio: CurrentStudio, token: Annotated[str, Form()]) -> Response:
    """Sign in with a person's token."""
    return _answer(request, studio, enter_by_token(studio.state, token.strip(), studio.settings.session_hours))


@router.post("/leave")
def leave(request: Request, studio: CurrentStudio) -> Response:
    """Sign out."""
    name = cookie_name(studio.settings)
    sign_out(studio.state, request.cookies[name])
    response = RedirectResponse("/enter", 303)
    response.delete_cookie(name, httponly=True, samesite="strict", secure=studio.settings.secure)
    return response


def _answer(request: Request, studio: Studio, cookie: str | None) -> Response:
    settings = studio.settings
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
