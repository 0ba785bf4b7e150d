"""Whether the studio works, for whatever restarts it, and its metrics in the text format of Prometheus."""

from datetime import UTC, datetime

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from matrixdp.errors import MatrixDPError
from matrixdp.ledger.metrics import describe_metric, measure_age, render_metrics, write_sample
from matrixdp.studio.rendering import CurrentVisit, Studio
from matrixdp.studio.requests import Status

router = APIRouter()


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


def render_all(studio: Studio) -> str:
    """All metrics: of the ledger, of requests for releases, and of answers."""
    with studio.datasets.open_ledger() as ledger:
        summaries, entries = ledger.summaries(), ledger.head.entry
    rows = studio.state.select("SELECT status, count(*) AS number FROM requests GROUP BY status")
    counted = {row["status"]: row["number"] for row in rows}
    lines = [*describe_metric("studio_requests", "gauge", "Requests for releases, by their state.")]
    lines += [write_sample("studio_requests", {"status": one.value}, counted.get(one.value, 0)) for one in Status]
    (first,) = studio.state.select("SELECT min(decided) AS time FROM requests WHERE status = 'approved'")
    name, present = "studio_queue_age_seconds", datetime.now(UTC)
    lines += describe_metric(name, "gauge", "Time since the approval of the oldest request that waits.")
    lines += [write_sample(name, {}, measure_age(first["time"], present) or 0.0), *studio.monitor.render()]
    return render_metrics(summaries, entries, present) + "\n".join(lines) + "\n"
