"""The release of one approved request.

``python -m matrixdp.studio.worker`` does it in a process of its own, which finishes even if the server is killed. The
ledger charges the request's id once, so a request may be released again after any fault: what was paid is read from
the ledger.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from matrixdp.cli.actions.output import write_file
from matrixdp.cli.actions.release import write_release
from matrixdp.cli.actions.release_options import ReleaseOptions
from matrixdp.studio.outcomes import (
    LEDGER_TIMEOUT,
    STORED,
    load_request,
    note_failure,
    require_stored,
    update_request,
)
from matrixdp.studio.refusals import UnavailableError
from matrixdp.studio.requests import FullRequest, Status
from matrixdp.studio.settings import Settings
from matrixdp.studio.state import State, now
from matrixdp.studio.tables import TableFolder

_PROGRESS_STEP = 0.5  # seconds


def release_request(settings: Settings, request_id: str) -> None:
    """Release an approved request and write its folder; the outcome is in the studio's file."""
    state = State(settings.database)
    with _hold_lock(settings.state / "locks" / request_id):
        request = load_request(state, request_id)
        if request.status not in (Status.APPROVED, Status.RUNNING):
            return
        update_request(state, request_id, status="running", progress=None)
        try:
            _write_folder(settings, state, request)
        except Exception as error:
            note_failure(settings, state, request, error)
        else:
            outcome = {"status": "released", "finished": now(), "payment": STORED}
            update_request(state, request_id, **outcome, progress=None, error=None, error_kind=None)


def _write_folder(settings: Settings, state: State, request: FullRequest) -> None:
    """Release to the request's folder, as ``matrixdp release`` does; a folder that is there is complete."""
    out = settings.releases / request.id
    if (out / "release.json").is_file():
        return
    if request.payment == STORED:
        require_stored(settings, request)
    schema = settings.state / "requests" / f"{request.id}.toml"
    write_file(schema, request.schema, option="state")
    tables = TableFolder(settings.folder)
    tables.open(request.table)  # refuses links that lead out of the folder
    options = ReleaseOptions(
        data=(str(tables.path(request.table)),),
        out=out,
        ledger=settings.ledger,
        ledger_timeout=LEDGER_TIMEOUT,
        dataset=request.dataset,
        request=request.ledger_id,
        allowance=request.spec.allowance,
        wait=0.0,  # this process holds the request's lock: nobody else is releasing it
        actor=request.asker,
        purpose=f"{request.purpose} (approved by {request.decided_by})",
        anchor_to=None,
        anchor_command=None,
        missing=request.spec.missing,
        delimiter=None,
        workers=None,
        force=False,
        as_json=True,
        report_progress=_ProgressWriter(state, request.id),
    )
    write_release(request.spec.to_design_options(schema), options)


class _ProgressWriter:
    """Writes the share of the records that were read to the studio's file, twice a second."""

    def __init__(self, state: State, request_id: str) -> None:
        self._state, self._request_id, self._next = state, request_id, time.monotonic() + _PROGRESS_STEP

    def __call__(self, share: float) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _PROGRESS_STEP
            with suppress(UnavailableError):
                update_request(self._state, self._request_id, progress=share)


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """Wait until no other process or thread releases the same request; a killed process holds no lock."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


if __name__ == "__main__":
    release_request(*pickle.load(sys.stdin.buffer))  # noqa: S301 (written by the server, its parent)
