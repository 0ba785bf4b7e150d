"""The services of a studio; a request to it, the pages from templates that answer it, and their static files."""

import hashlib
import secrets
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from matrixdp.domain.fields import quote_line
from matrixdp.errors import MatrixDPError, join_names
from matrixdp.report.guarantee import name_loss
from matrixdp.studio.datasets import DatasetBook, SchemaStore, TableFolder, measure_budget
from matrixdp.studio.monitor import Monitor
from matrixdp.studio.refusals import find_status
from matrixdp.studio.requests import RequestBook, Results
from matrixdp.studio.roles import Viewer
from matrixdp.studio.sign_in import OneTimeLinks, WrongTokens
from matrixdp.studio.state import Settings, State
from matrixdp.studio.worker import Runner
from matrixdp.version import __version__

_HERE = Path(__file__).parent
STATIC = _HERE / "static"
STYLES = _HERE.parent / "report" / "styles"  # of the pictures that reports have, too


@lru_cache(maxsize=256)
def _find_static(name: str) -> str:
    """The address of a static file, with a part of the hash of its content."""
    path = next(path for path in (STATIC / name, STYLES / name) if path.exists())
    return f"/static/{name}?v={hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"


_TEMPLATES = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["zip"] = zip
_TEMPLATES.filters["when"] = lambda time: f"{time[:16].replace('T', ' ')} UTC"  # to the minute
_TEMPLATES.filters["loss"] = name_loss  # of an epsilon
_TEMPLATES.filters["listed"] = lambda name: join_names([name])  # as an entry of an option that lists columns
_TEMPLATES.globals |= {"measure_budget": measure_budget, "quote_line": quote_line, "static": _find_static}


class Studio:
    """The services of a studio."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.state = State(settings.database)
        self.key = secrets.token_bytes(32)  # of the forms of those whom a proxy signs in
        self.links = OneTimeLinks()
        self.wrong_tokens = WrongTokens()
        self.monitor = Monitor()
        self.tables = TableFolder(settings.folder)
        self.schemas = SchemaStore(settings.state / "schemas", self.tables)
        self.datasets = DatasetBook(settings.ledger, self.state, self.tables, self.schemas)
        self.runner = Runner(settings, self.state)
        self.requests = RequestBook(self.state, self.datasets, self.schemas, self.runner.wake)
        self.results = Results(settings.releases, self.state)


class Visit:
    """A request as routes take it: with the studio, the person who sent it, and pages to answer with."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.studio: Studio = request.app.state.studio
        viewer: Any = getattr(request.state, "viewer", None)
        self.viewer: Viewer = viewer  # nobody on public pages, which do not use it

    def render(
        self, template: str, *, status: int = 200, mistake: MatrixDPError | None = None, **context: Any
    ) -> HTMLResponse:
        """A page from a template, which has besides `context` what `fixed` lists; a `mistake` gives the status."""
        session = getattr(self.request.state, "session", None)
        csrf = "" if session is None else session.csrf
        fixed = {
            "viewer": self.viewer,
            "csrf": csrf,  # for ``hx-headers``, and as a field of every form that is sent with POST
            "csrf_field": Markup('<input type="hidden" name="csrf_token" value="{}">').format(csrf),
            "version": __version__,
            "request": self.request,
        }
        page = _TEMPLATES.get_template(template).render({**fixed, **context})
        return HTMLResponse(page, status if mistake is None else find_status(mistake))


def _begin_visit(request: Request) -> Visit:
    return Visit(request)


# Older versions of FastAPI read the annotations of a function, not those of a class.
CurrentVisit = Annotated[Visit, Depends(_begin_visit)]


class CachedStatic(StaticFiles):
    """Static files that browsers keep for a year if the address has a hash, and otherwise check every time."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)
        self.all_directories.append(STYLES)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The answer with a file."""
        if "\0" in path:  # older versions of starlette ask the operating system, which raises an error
            raise HTTPException(404)
        response = await super().get_response(path, scope)
        kept = scope["query_string"].startswith(b"v=")
        response.headers["cache-control"] = "public, max-age=31536000, immutable" if kept else "no-cache"
        return response
