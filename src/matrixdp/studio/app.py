"""The web application: routes, errors, health and the server."""

import asyncio
import itertools
import logging
import socket
from asyncio import CancelledError
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import h11
import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, RedirectResponse, Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from matrixdp.errors import LedgerError, MatrixDPError
from matrixdp.studio import api, dataset_page, design_page, request_page, result_page, schema_page, security
from matrixdp.studio.monitor import name_route
from matrixdp.studio.refusals import SignInError, find_status, word_error
from matrixdp.studio.rendering import CachedStatic, CurrentVisit, Studio, Visit
from matrixdp.studio.roles import Viewer
from matrixdp.studio.security import Guard, authorise, check_form, is_api
from matrixdp.studio.state import Settings
from matrixdp.version import __version__

_LOG = logging.getLogger("matrixdp.studio")
PAGES = (security, dataset_page, schema_page, design_page, request_page, result_page, api)
router = APIRouter()
HEAD_SECONDS, BODY_SECONDS = 15.0, 60.0  # in which the head of a request arrives, and then its body
ANSWER_SECONDS = 60.0  # in which a part of an answer is taken
MOST_FROM_ADDRESS, MOST_WAITING = 100, 300  # connections that wait for a request
_LOOK = 0.25  # seconds between two looks at a connection


def create_app(settings: Settings, announce: Callable[[], None] = lambda: None) -> FastAPI:
    """The application for these settings; its services are ``app.state.studio``. `announce` is called at its start."""
    studio = Studio(settings)

    @asynccontextmanager
    async def run(_app: FastAPI) -> AsyncIterator[None]:
        studio.runner.start()
        announce()
        yield
        studio.runner.stop()

    app = FastAPI(
        title="matrixdp studio",
        version=__version__,
        lifespan=run,
        openapi_url=None,  # a route of the API gives it to those who are signed in
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(authorise), Depends(check_form)],
        middleware=[Middleware(Guard, settings=settings, monitor=studio.monitor, answer_error=_answer_error)],
    )
    app.state.studio = studio
    app.include_router(router, include_in_schema=False)
    for module in PAGES:
        app.include_router(module.router, include_in_schema=module is api)
    app.mount("/static", CachedStatic(), name="static")
    for kind in (MatrixDPError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _answer_error)
    return app


@router.get("/healthz")
def show_health() -> Response:
    """Whether the process answers."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz")
def show_readiness(visit: CurrentVisit) -> Response:
    """Whether the studio's file and the ledger can be read; the reason is for curators, on the pages."""
    try:
        visit.studio.state.select("SELECT 1 FROM requests LIMIT 1")
        with visit.studio.datasets.open_ledger() as ledger:
            _ = ledger.head
    except MatrixDPError:
        return JSONResponse({"status": "unavailable"}, 503)
    return JSONResponse({"status": "ready"})


async def _answer_error(request: Request, error: Exception) -> Response:
    """A page, or JSON below /api, with the message of an error; of an unforeseen one, only its class.

    Its message could contain private values, so neither the answer nor the log shows it. Curators alone see where a
    ledger that cannot be used is.
    """
    status, message = _describe(error)
    viewer = getattr(request.state, "viewer", None)
    if isinstance(error, LedgerError) and status == 503 and viewer is not None and viewer.is_curator:
        message = str(error)
    if status == 500:
        number = getattr(request.state, "id", "")
        _LOG.error("internal error (%s) at %s, request %s", type(error).__name__, name_route(request.scope), number)
    if is_api(request.url.path):
        return JSONResponse({"error": message}, status, headers={"WWW-Authenticate": "Bearer"} if status == 401 else {})
    if isinstance(error, SignInError) and request.url.path != "/enter":
        if "hx-request" in request.headers:
            return Response(status_code=401, headers={"HX-Redirect": "/enter"})
        return RedirectResponse("/enter", 303)
    return Visit(request).render("error.html", status=status, code=status, message=message)


def _describe(error: Exception) -> tuple[int, str]:
    if isinstance(error, MatrixDPError):
        return find_status(error), word_error(error)
    if isinstance(error, HTTPException):
        return error.status_code, str(error.detail)
    if isinstance(error, ClientDisconnect):
        return 400, "the connection was closed before the request was complete."
    if isinstance(error, RequestValidationError):
        problems = [(".".join(map(str, one["loc"][1:])), one["msg"]) for one in error.errors()]
        return 422, "; ".join(f"{place or 'the request'}: {message}" for place, message in problems)
    return 500, f"internal error ({type(error).__name__})."


_numbers = itertools.count()


class LimitedProtocol(H11Protocol):
    """A connection that is closed if a request takes too long to arrive, or if too many others wait for theirs, too.

    It waits from its beginning, or from the end of an answer, until a request has arrived with its body, and while
    nobody takes its answer. Of too many, from one address or from all, those that have waited longest are closed:
    requests of people arrive within moments.
    """

    _number = 0  # in the order of connections
    _step: object = None
    _since = 0.0  # when the step was seen first

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._number = next(_numbers)
        found = [one for one in self.connections if isinstance(one, LimitedProtocol)]
        found.sort(key=lambda one: one._number)  # steps that are seen now are dated in this order, the new one last
        known = [one for one in found if one._find_limit()]
        known.sort(key=lambda one: one._since)
        same = [one for one in known if one.client and self.client and one.client[0] == self.client[0]]
        for one in (*same[:-MOST_FROM_ADDRESS], *known[:-MOST_WAITING]):
            one.transport.abort()
        self._look()

    def _look(self) -> None:
        """Close the connection if its step takes too long; otherwise look again after a while."""
        if self.transport.is_closing():
            return
        limit = self._find_limit()
        if limit is not None and self.loop.time() - self._since > limit:
            self.transport.abort()
        else:
            self.loop.call_later(_LOOK, self._look)

    def _find_limit(self) -> float | None:
        """The seconds that the present step may take; None if it is the server's turn.

        It is another step if a request is complete or a part of its answer was taken: bytes of a request alone give no
        further time.
        """
        left = self.transport.get_write_buffer_size()  # bytes of an answer that were not taken
        step = self.conn.their_state, self.cycle, left
        if step != self._step:
            self._step, self._since = step, self.loop.time()
        arriving = {h11.IDLE: HEAD_SECONDS, h11.SEND_BODY: BODY_SECONDS}
        return ANSWER_SECONDS if left else arriving.get(self.conn.their_state)


def run_server(
    settings: Settings,
    listening: socket.socket,
    certificate: tuple[Path | None, Path | None],
    user: Viewer,
    announce: Callable[[str], None],
) -> None:
    """Serve on a socket that listens, until the process is interrupted.

    `certificate` are the files of a TLS certificate and its key, `user` is the person whom the printed address signs
    in, and `announce` is called with the token of that address when the server starts.
    """
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(  # a simulation that is interrupted when the server stops is no error
        lambda record: record.exc_info is None or not isinstance(record.exc_info[1], CancelledError)
    )
    app = create_app(settings, lambda: announce(app.state.studio.links.create(user)))
    config = uvicorn.Config(
        app,
        http=LimitedProtocol,
        log_config=None,
        access_log=False,  # it would contain the tokens of addresses
        proxy_headers=False,
        server_header=False,
        ws="none",
        lifespan="on",
        limit_concurrency=500,  # connections, of which `MOST_WAITING` are not in use
        timeout_keep_alive=10,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=32 << 10,
        ssl_certfile=certificate[0],
        ssl_keyfile=certificate[1],
    )
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])
