"""What operators watch: counts and latencies of answers, one line of log for each request, and its id.

Lines of the log have the route of a request, never its address, whose parts are names, nor its content.
"""

import json
import logging
import math
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from threading import Lock

from starlette.types import Scope

from matrixdp.ledger.metrics import describe_metric, write_sample
from matrixdp.studio.state import now

LOG = logging.getLogger("matrixdp.studio.requests")
_BOUNDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # seconds, of the histogram of latencies
_GIVEN_ID = re.compile(rb"[A-Za-z0-9._-]{8,64}")
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")


class Monitor:
    """Counts answers by route and status, and measures how long they take."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._latencies: Counter[float] = Counter()
        self._seconds = 0.0

    def add(self, scope: Scope, status: int, seconds: float) -> None:
        """Count an answer, and log a line for it. Methods and routes are those of a list, so that there are few."""
        route, viewer = name_route(scope), scope["state"].get("viewer")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        with self._lock:
            self._answers[method if route else "", route, status] += 1
            self._latencies.update(bound for bound in (*_BOUNDS, math.inf) if seconds <= bound)
            self._seconds += seconds
        facts = {"time": now(), "request": scope["state"]["id"], "method": method, "route": route, "status": status}
        facts |= {"seconds": round(seconds, 6), "person": None if viewer is None else viewer.name}
        LOG.info("%s", json.dumps(facts))

    def render(self) -> Iterator[str]:
        """Lines in the text format of Prometheus."""
        with self._lock:
            answers, latencies, seconds = dict(self._answers), dict(self._latencies), self._seconds
        yield from describe_metric("studio_http_requests_total", "counter", "Answered requests.")
        for (method, route, status), number in sorted(answers.items()):
            labels = {"method": method, "route": route, "status": str(status)}
            yield write_sample("studio_http_requests_total", labels, number)
        name = "studio_http_request_seconds"
        yield from describe_metric(name, "histogram", "Time to the end of an answer.")
        for bound in (*_BOUNDS, math.inf):
            label = {"le": f"{bound:g}" if math.isfinite(bound) else "+Inf"}
            yield write_sample(f"{name}_bucket", label, latencies.get(bound, 0))
        yield write_sample(f"{name}_sum", {}, seconds)
        yield write_sample(f"{name}_count", {}, latencies.get(math.inf, 0))


def name_route(scope: Scope) -> str:
    """The route of a request, with the names of its parameters in place of what was sent; empty if it has none."""
    return getattr(scope.get("route"), "path", "") or ("/static" if scope["path"].startswith("/static/") else "")


def find_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The id of a request, which its answer has, too: the one that it brings, as from a proxy, or a new one."""
    given = next((value for name, value in headers if name == b"x-request-id"), b"")
    return given.decode() if _GIVEN_ID.fullmatch(given) else secrets.token_hex(8)
