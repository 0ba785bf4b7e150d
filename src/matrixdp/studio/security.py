"""What every request passes: Host, Origin and size, the table of roles, tokens against forged forms; and signing in."""

import hmac
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from matrixdp.studio import sign_in
from matrixdp.studio.monitor import Monitor, find_id
from matrixdp.studio.refusals import SignInError
from matrixdp.studio.rendering import CurrentVisit, Studio, Visit
from matrixdp.studio.roles import ROUTES, Role, Viewer, permits
from matrixdp.studio.state import Proxy, Settings

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
API = "/api"
DOCS = f"{API}/docs"
# Called by machines under any name of the server. They know nobody by a cookie, which is what names are checked for.
_WATCHED = ("/healthz", "/readyz", f"{API}/metrics")
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer, browsers would send "Origin: null" with forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
BODY_LIMIT = 1 << 20  # bytes of a request
_TOO_LARGE = f"The request has over {BODY_LIMIT:,} bytes."
_MOST_FIELDS = 50_000
AnswerError = Callable[[Request, Exception], Awaitable[Response]]
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
router = APIRouter()


def cookie_name(settings: Settings) -> str:
    """Name of the cookie; by HTTPS, browsers accept one with this prefix from this host alone.

    Browsers send cookies to all ports of a host, so the port tells two studios apart.
    """
    return f"{'__Host-' if settings.secure else ''}matrixdp-studio-{settings.port}"


class Guard:
    """Refuses foreign hosts and origins and large bodies, adds security headers to every answer, and notes it."""

    def __init__(self, app: ASGIApp, settings: Settings, monitor: Monitor, answer_error: AnswerError) -> None:
        self._app, self._monitor, self._answer_error = app, monitor, answer_error
        headers = {**_HEADERS, "strict-transport-security": "max-age=31536000"} if settings.secure else _HEADERS
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._origins = frozenset(settings.addresses)
        self._hosts = {address.partition("://")[2] for address in self._origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # no route is a websocket
            await self._app(scope, receive, send)
            return
        status, size, begun, number = 0, 0, time.perf_counter(), find_id(scope["headers"])
        scope.setdefault("state", {})["id"] = number

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in self._headers if pair[0] not in own)]
                message["headers"].append((b"x-request-id", number.encode()))
            await send(message)

        async def receive_some() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > BODY_LIMIT:
                raise HTTPException(413, _TOO_LARGE)
            return message

        try:
            self._refuse_strangers(scope["path"], scope["headers"])
            await self._app(scope, receive_some, send_safely)
        except Exception as error:  # an unforeseen one; the server would log its message
            response = await self._answer_error(Request(scope), error)
            if not status:
                await response(scope, receive, send_safely)
        finally:
            self._monitor.add(scope, status or 500, time.perf_counter() - begun)

    def _refuse_strangers(self, path: str, headers: Sequence[tuple[bytes, bytes]]) -> None:
        hosts = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
        if path not in _WATCHED and (len(hosts) != 1 or hosts[0] not in self._hosts):
            raise HTTPException(421, "This server does not answer for that host.")
        origins = {value.decode("latin-1").lower() for name, value in headers if name == b"origin"}
        if origins - self._origins:
            raise HTTPException(403, "Requests from pages of other sites are refused.")
        for name, value in headers:
            if name == b"content-length" and not (re.fullmatch(rb"\d{1,18}", value) and int(value) <= BODY_LIMIT):
                raise HTTPException(413, _TOO_LARGE)


def authorise(request: Request) -> None:
    """Find out who sent a request, and refuse it unless the table of roles permits it. The only check of roles.

    Pages know a person by the cookie, addresses below /api by a bearer token, and neither by the other.
    """
    studio: Studio = request.app.state.studio
    request.state.viewer = request.state.session = session = None
    if is_api(request.url.path):
        request.state.viewer = _find_bearer(request, studio)
    elif session := _find_session(request, studio):
        request.state.session, request.state.viewer = session, session.viewer
    if request.state.viewer is not None:
        keep_groups = session is None or not session.is_forwarded
        sign_in.note_sighting(studio.state, request.state.viewer, keep_groups=keep_groups)
    access = ROUTES.get(f"{request.method} {request.scope['route'].path}")
    if access is None:
        raise HTTPException(403, "this address is not in the table of roles.")
    if permits(access, request.state.viewer):
        return
    if request.state.viewer is None:
        raise SignInError("sign in first: the address has expired, or no token was given.")
    raise HTTPException(403, f"this is for {access.value}.")


def find_sender(request: Request) -> str:
    """The address that a request comes from."""
    return "" if request.client is None else request.client.host


def is_api(path: str) -> bool:
    """Whether an address is called with a bearer token; others, and the documentation of the API, with a cookie."""
    return path.startswith(f"{API}/") and path != DOCS


def _find_bearer(request: Request, studio: Studio) -> Viewer | None:
    """The person of the bearer token; None if none was sent."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        return None
    token = sign_in.find_token(studio.state, secret.strip())
    if token is None:
        raise refuse_wrong_token(request, studio)
    return sign_in.find_person(studio.state, token.name, token.roles)


def _find_session(request: Request, studio: Studio) -> sign_in.Session | None:
    """The session of the cookie, or else of the person whom a proxy names.

    Privacy
    -------
    The latter is that of one request: a browser without the header, such as one that the proxy has signed out, or that
    comes past the proxy, is nobody's. The token of its forms follows from the name, by a key that nobody knows.
    """
    known = sign_in.find_session(studio.state, request.cookies.get(cookie_name(studio.settings), ""))
    found = None if known is not None else read_forwarded(request, studio.settings.proxy)
    if found is None:
        return known
    sign_in.check_distinct(studio.state, found.name)
    return sign_in.Session(found, hmac.digest(studio.key, found.name.encode(), "sha256").hex(), is_forwarded=True)


def split_names(text: str) -> list[str]:
    """Names that are separated by commas."""
    return [name for part in text.split(",") if (name := part.strip())]


def read_forwarded(request: Request, proxy: Proxy | None) -> Viewer | None:
    """The person whom a proxy names, with the roles of their groups; None if it names nobody, or nobody with a role."""
    if proxy is None or not proxy.trusts(find_sender(request)):
        return None
    names = request.headers.getlist(proxy.user_header)
    if len(names) != 1 or not names[0].strip() or not names[0].isprintable() or len(names[0]) > 100:
        return None
    lines = request.headers.getlist(proxy.groups_header)
    groups = tuple(sorted(set(split_names(",".join(lines)))))
    roles = set() if proxy.analysts and not set(proxy.analysts) & set(groups) else {Role.ANALYST}
    roles |= {Role.CURATOR} if set(proxy.curators) & set(groups) else set()
    return Viewer(names[0].strip(), frozenset(roles), groups) if roles else None


async def check_form(request: Request) -> None:
    """Refuse a request of a signed-in browser that changes something, unless it comes from a form of the studio."""
    session = request.state.session
    if session is None or request.method in _SAFE_METHODS:
        return
    if "origin" not in request.headers:
        raise HTTPException(403, "the header Origin is missing, which browsers send with forms.")
    sent = request.headers.get("x-csrf-token")
    if sent is None:
        field = (await receive_form(request)).get("csrf_token")
        sent = field if isinstance(field, str) else ""
    if not hmac.compare_digest(sent.encode(), session.csrf.encode()):
        raise HTTPException(403, "the form has expired. Load the page again.")


async def receive_form(request: Request) -> FormData:
    """The fields of a form; that of a schema has some for each column. The size of the body limits them as well."""
    return await request.form(max_fields=_MOST_FIELDS)


async def _receive_fields(request: Request) -> dict[str, str]:
    return {name: value for name, value in (await receive_form(request)).items() if isinstance(value, str)}


SentForm = Annotated[FormData, Depends(receive_form)]
SentFields = Annotated[dict[str, str], Depends(_receive_fields)]  # of a form in which each field is there once


def refuse_wrong_token(request: Request, studio: Studio) -> HTTPException:
    """The error for a wrong token, which is counted."""
    if studio.wrong_tokens.add(find_sender(request)):
        return HTTPException(429, "too many wrong tokens. Wait a minute.")
    return HTTPException(401, "the token is unknown, expired or revoked.")


@router.get("/enter")
def show_entry(visit: CurrentVisit, token: Annotated[str | None, Query()] = None) -> Response:
    """Exchange the token of a printed address for a cookie; without one, ask for a person's token.

    A person's token is not accepted here: addresses are remembered by browsers and proxies.
    """
    session = visit.request.state.session
    if token is None and session is not None and session.is_forwarded:
        return RedirectResponse("/", 303)
    if token is not None and "prefetch" not in visit.request.headers.get("sec-purpose", ""):
        return _enter(visit, visit.studio.links.take(visit.studio.state, token))
    return visit.render("enter.html", problem=None)


@router.post("/enter")
def enter(visit: CurrentVisit, token: Annotated[str, Form()]) -> Response:
    """Sign in with a person's token."""
    return _enter(visit, sign_in.find_token(visit.studio.state, token.strip()))


@router.post("/leave")
def leave(visit: CurrentVisit) -> Response:
    """Sign out."""
    name, response = cookie_name(visit.studio.settings), RedirectResponse("/enter", 303)
    sign_in.sign_out(visit.studio.state, visit.request.cookies.get(name, ""))
    response.delete_cookie(name, httponly=True, samesite="strict", secure=visit.studio.settings.secure)
    return response


def _enter(visit: Visit, token: sign_in.Token | None) -> Response:
    if token is None:
        problem = refuse_wrong_token(visit.request, visit.studio)
        return visit.render("enter.html", status=problem.status_code, problem=problem.detail)
    # Browsers do not send a strict cookie after a redirect from another site, such as a page with the address.
    foreign = visit.request.headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
    response = visit.render("entered.html") if foreign else RedirectResponse("/", 303)
    response.set_cookie(
        cookie_name(visit.studio.settings),
        sign_in.start_session(visit.studio.state, token),
        max_age=int(sign_in.SESSION.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=visit.studio.settings.secure,
    )
    return response
