"""The studio's API from Python, with the standard library alone."""

import json
import time
import uuid
from contextlib import suppress
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from matrixdp.errors import MatrixDPError, ParameterError, show

T = TypeVar("T")
_OVER = ("refused", "released", "failed")
_LOCAL = ("127.0.0.1", "localhost", "::1")


class StudioError(MatrixDPError, RuntimeError):
    """The studio refused something, or could not be reached.

    Attributes
    ----------
    status : int or None
        The HTTP status; None if it could not be reached.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect, which could send the token elsewhere."""

    def redirect_request(self, *_arguments: Any, **_options: Any) -> None:
        """Follow nothing."""
        return


class Studio:
    """A studio that runs elsewhere.

    Parameters
    ----------
    url : str
        Its address, such as ``"https://studio.example.org"``. Without TLS it must be on this machine, since the token
        could be read on the way.
    token : str
        From ``matrixdp studio token new``.
    timeout : float
        Seconds to wait for an answer.

    Examples
    --------
    Ask for a release, wait for it, and read it:

        studio = mdp.Studio("http://127.0.0.1:8765", token)
        asked = studio.ask("clinic", "clinic.csv", purpose="annual report", query="covariance", epsilon=1, delta=1e-6)
        studio.wait(asked["id"])  # until a curator has approved it and it is released
        release = studio.release(asked["id"])
    """

    def __init__(self, url: str, token: str, *, timeout: float = 30.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ParameterError(f"url must be an address such as https://studio.example.org, got {show(url)} instead.")
        if parts.scheme == "http" and parts.hostname not in _LOCAL:
            raise ParameterError("url must begin with https: the token could be read on the way otherwise.")
        if not token.isascii() or not token.isprintable() or not token.strip():
            raise ParameterError("token must be the text that matrixdp studio token new printed.")
        self._url, self._token, self._timeout = url.rstrip("/"), token.strip(), timeout
        self._opener = build_opener(_NoRedirects)

    def __repr__(self) -> str:
        return f"Studio({self._url!r})"

    def me(self) -> dict[str, Any]:
        """Whose token it is, and the roles of that person."""
        return self._call(dict, "GET", "me")

    def datasets(self) -> list[dict[str, Any]]:
        """All data sets: totals, what is spent and left, allowances and tables."""
        return self._call(list, "GET", "datasets")

    def history(self, dataset: str) -> list[dict[str, Any]]:
        """What was charged to a data set, by whom and what for."""
        return self._call(list, "GET", "datasets", dataset, "history")

    def schema(self, dataset: str, table: str) -> str | None:
        """The schema of a data set's table as TOML; None if there is none yet."""
        found: str | None = self._call(dict, "GET", "datasets", dataset, "tables", table, "schema")["toml"]
        return found

    def forecast(self, dataset: str, table: str, **release: Any) -> dict[str, Any]:
        """Predicted errors and the cost of a release, whose options are those of ``matrixdp release``."""
        return self._call(dict, "POST", "forecast", body={"dataset": dataset, "table": table, "release": release})

    def ask(
        self, dataset: str, table: str, *, purpose: str, form_id: str | None = None, **release: Any
    ) -> dict[str, Any]:
        """Ask for a release, whose options are those of ``matrixdp release``.

        With the same `form_id`, such as a date, it is the same request, however often it is asked.
        """
        body = {"dataset": dataset, "table": table, "purpose": purpose, "release": release}
        return self._call(dict, "POST", "requests", body={**body, "form_id": form_id or uuid.uuid4().hex})

    def requests(self, status: str | None = None) -> list[dict[str, Any]]:
        """Requests, the latest first: for a curator all of them, for an analyst her own."""
        return self._call(list, "GET", "requests" + ("" if status is None else f"?status={quote(status, safe='')}"))

    def request(self, request_id: str) -> dict[str, Any]:
        """One request."""
        return self._call(dict, "GET", "requests", request_id)

    def approve(self, request_id: str) -> dict[str, Any]:
        """Approve a request; it is released in the background."""
        return self._call(dict, "POST", "requests", request_id, "approve")

    def refuse(self, request_id: str, reason: str) -> dict[str, Any]:
        """Refuse a request."""
        return self._call(dict, "POST", "requests", request_id, "refuse", body={"reason": reason})

    def wait(self, request_id: str, timeout: float = 3600.0) -> dict[str, Any]:
        """Wait until a request is released, and return it; a `StudioError` if it is refused, fails or takes longer.

        An analyst is not told of a failure that cost nothing: such a request is approved until a curator decides again.
        """
        deadline, pause = time.monotonic() + timeout, 0.1
        while (found := self.request(request_id))["status"] not in _OVER:
            if time.monotonic() > deadline:
                raise StudioError(f"request {request_id} is still {found['status']} after {timeout:g} seconds.")
            time.sleep(pause)
            pause = min(2 * pause, 5.0)
        if found["status"] != "released":
            raise StudioError(f"request {request_id} was not released: {found['message']}")
        return found

    def results(self) -> list[dict[str, Any]]:
        """All requests that are released, by anybody, the latest first."""
        return self._call(list, "GET", "results")

    def files(self, request_id: str) -> list[str]:
        """The names of a release's files."""
        return self._call(list, "GET", "results", request_id)

    def file(self, request_id: str, name: str) -> bytes:
        """One of a release's files, such as ``report.html``."""
        return self._send("GET", ("results", request_id, "files", name))

    def release(self, request_id: str) -> Any:
        """A release, as `matrixdp.load` gives it, for post-processing, which costs nothing."""
        from matrixdp.release.reading import from_json

        return from_json(self.file(request_id, "release.json").decode())

    def register(self, name: str, table: str, *, epsilon: float, delta: float, **options: str) -> dict[str, Any]:
        """Register a data set; for curators. The options are `neighbours` and `unit`."""
        body = {"name": name, "table": table, "epsilon": epsilon, "delta": delta, **options}
        return self._call(dict, "POST", "datasets", body=body)

    def remove(self, dataset: str) -> None:
        """Take a data set that nothing was charged to off the lists; for curators."""
        self._send("DELETE", ("datasets", dataset))

    def allow(self, dataset: str, name: str, **size: Any) -> dict[str, Any]:
        """Set an allowance apart, with `epsilon` or `share`, for the people and groups `payers`; for curators."""
        return self._call(dict, "POST", "datasets", dataset, "allowances", body={"name": name, **size})

    def return_allowance(self, dataset: str, name: str) -> dict[str, Any]:
        """Return what is left of an allowance to its data set; for curators."""
        return self._call(dict, "POST", "datasets", dataset, "allowances", name, "return")

    def tables(self) -> list[str]:
        """The names of all tables in the folder; for curators."""
        return self._call(list, "GET", "tables")

    def columns(self, table: str) -> list[dict[str, Any]]:
        """The columns of a table, and their types; for curators."""
        return self._call(list, "GET", "tables", table)

    def write_schema(self, table: str, toml: str) -> None:
        """Check the schema of a table, and keep it; for curators."""
        self._call(dict, "PUT", "tables", table, "schema", body={"toml": toml})

    def _call(self, kind: type[T], method: str, *path: str, body: Any = None) -> T:
        found = json.loads(self._send(method, path, body))
        if not isinstance(found, kind):
            raise StudioError(f"{self._url} does not answer as a studio does.")
        return found

    def _send(self, method: str, path: tuple[str, ...], body: Any = None) -> bytes:
        first, *rest = path
        address = "/".join([self._url, "api", first, *(quote(part, safe="") for part in rest)])
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        headers |= {} if data is None else {"Content-Type": "application/json"}
        request = Request(address, data, headers, method=method)  # noqa: S310 (http or https, checked above)
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            with error:
                text = error.read(10_000).decode(errors="replace")
            message = text[:200] or f"HTTP status {error.code}."
            with suppress(ValueError, KeyError, TypeError):
                message = str(json.loads(text)["error"])
            raise StudioError(message, error.code) from None
        except (URLError, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", None) or error
            raise StudioError(f"{self._url} cannot be reached: {reason}.") from None
