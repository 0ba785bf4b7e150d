"""The web application: routes, checks and errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, RedirectResponse, Response

from matrixdp.errors import LedgerError, MatrixDPError
from matrixdp.studio.late_routes import LateRoutes, import_routers
from matrixdp.studio.refusals import SignInError, find_status
from matrixdp.studio.rendering import STATIC, CachedStatic, render
from matrixdp.studio.security import API, Guard, authorise, check_form
from matrixdp.studio.settings import Settings
from matrixdp.studio.studio import Studio
from matrixdp.version import __version__

_LOG = logging.getLogger("matrixdp.studio")
_LEDGER_PROBLEM = "the ledger cannot be used at the moment. A curator sees why."


EARLY = ("matrixdp.studio.pages.sign_in", "matrixdp.studio.pages.datasets")
LATE = (
    "matrixdp.studio.pages.schema",
    "matrixdp.studio.pages.design",
    "matrixdp.studio.pages.requests",
    "matrixdp.studio.pages.results",
    "matrixdp.studio.api",
)
_EARLY_PATHS = ("/", "/enter", "/leave", "/datasets")


def create_app(settings: Settings, *, quick: bool = False) -> FastAPI:
    """The application for these settings; its services are ``app.state.studio``.

    With `quick`, routes that are slow to import are added when it has started.
    """
    studio, late = Studio(settings), LateRoutes(LATE if quick else ())

    @asynccontextmanager
    async def run(app: FastAPI) -> AsyncIterator[None]:
        studio.runner.start()
        loading = asyncio.create_task(late.add_soon(app))
        yield
        loading.cancel()
        studio.runner.stop()

    app = FastAPI(
        title="matrixdp studio",
        version=__version__,
        lifespan=run,
        openapi_url=None,  # a route of the API gives it to those who are signed in
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(authorise), Depends(check_form)],
        middleware=[
            Middleware(Guard, settings=settings, answer_error=_answer_error),
            Middleware(late.make_middleware(_is_early)),
        ],
    )
    app.state.studio = studio
    for router in import_routers(EARLY if quick else EARLY + LATE):
        app.include_router(router)
    app.mount("/static", CachedStatic(directory=STATIC), name="static")
    for kind in (MatrixDPError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _answer_error)
    return app


def _is_early(path: str) -> bool:
    return path in _EARLY_PATHS or path.startswith("/static/")


async def _answer_error(request: Request, error: Exception) -> Response:
    """A page, or JSON below /api, with the message of an error; of an unforeseen one, only its class.

    Its message could contain private values, so neither the answer nor the log shows it. Curators alone see where a
    ledger that cannot be used is.
    """
    status, message = _describe(error)
    if isinstance(error, LedgerError) and status == 503:
        viewer = getattr(request.state, "viewer", None)
        message = message if viewer is not None and viewer.is_curator else _LEDGER_PROBLEM
    if status == 500:
        _LOG.error("internal error (%s) at %s", type(error).__name__, request.scope["path"])
    if request.url.path.startswith(f"{API}/"):
        return JSONResponse({"error": message}, status, headers=_add_challenge(status))
    if isinstance(error, SignInError) and request.url.path != "/enter":
        if "hx-request" in request.headers:
            return Response(status_code=401, headers={"HX-Redirect": "/enter"})
        return RedirectResponse("/enter", 303)
    return render(request, "error.html", status=status, code=status, message=message)


def _describe(error: Exception) -> tuple[int, str]:
    if isinstance(error, MatrixDPError):
        return find_status(error), str(error)
    if isinstance(error, HTTPException):
        return error.status_code, str(error.detail)
    if isinstance(error, ClientDisconnect):
        return 400, "the connection was closed before the request was complete."
    if isinstance(error, RequestValidationError):
        return 422, "; ".join(map(_describe_field, error.errors()))
    return 500, f"internal error ({type(error).__name__})."


def _describe_field(problem: Any) -> str:
    place = [str(part) for part in problem["loc"] if part not in ("body", "query", "path")]
    return f"{'.'.join(place) or 'the request'}: {problem['msg']}"


def _add_challenge(status: int) -> dict[str, str]:
    return {"WWW-Authenticate": "Bearer"} if status == 401 else {}
