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
from enum import Enum
from pathlib import Path

from matrixdp.cli.actions.charge_target import DIRECTIONS
from matrixdp.cli.actions.ledger import open_ledger
from matrixdp.cli.actions.output import write_file
from matrixdp.cli.actions.release import write_release
from matrixdp.cli.actions.release_options import ReleaseOptions
from matrixdp.cli.exits import ChargedError
from matrixdp.errors import MatrixDPError, RequestPendingError
from matrixdp.studio.refusals import UnavailableError
from matrixdp.studio.requests import Request, Status, read_request
from matrixdp.studio.settings import Settings
from matrixdp.studio.state import State, now
from matrixdp.studio.tables import TableFolder

_LEDGER_TIMEOUT = 60.0  # seconds to wait for others who write the ledger
_PROGRESS_STEP = 0.5  # seconds


class Payment(Enum):
    """What the ledger knows of a request that failed, and what follows for the person who reads it."""

    NONE = "Nothing was charged."
    DIRECTIONS = "Its directions are paid and stored. Approve it again: it is not charged for them again."
    STORED = "It is paid, and the ledger has the release. Approve it again, at no cost."
    LOST = (
        "It is paid, but it was interrupted before the release was stored, and noise is not drawn twice. Its charge "
        "stays spent."
    )
    UNKNOWN = "The ledger cannot be read. Approve it again once it can: it is charged at most once."


def release_request(settings: Settings, request_id: str) -> None:
    """Release an approved request and write its folder; the outcome is in the studio's file."""
    state = State(settings.database)
    with _hold_lock(settings.state / "locks" / request_id):
        request = load_request(state, request_id)
        if request.status not in (Status.APPROVED, Status.RUNNING):
            return
        _update(state, request_id, status="running", progress=None)
        try:
            _write_folder(settings, state, request)
        except Exception as error:
            note_failure(settings, state, request, error)
        else:
            _update(state, request_id, status="released", finished=now(), progress=None, error=None, error_kind=None)


def load_request(state: State, request_id: str) -> Request:
    """A request, whoever asked for it."""
    with state.reading() as connection:
        return read_request(connection.execute("SELECT * FROM requests WHERE id = ?", (request_id,)).fetchone())


def note_failure(settings: Settings, state: State, request: Request, error: BaseException) -> None:
    """Record why a request failed: the message of a declared error, or the class of any other, and what was paid."""
    if isinstance(error, ChargedError):
        error = error.error
    payment = find_payment(settings, request)
    text = f"{_describe(error)} {payment.value}"
    kind, paid = type(error).__name__, payment.name.lower()
    _update(state, request.id, status="failed", finished=now(), error=text, error_kind=kind, payment=paid)


def find_payment(settings: Settings, request: Request) -> Payment:
    """What the ledger knows of a request."""
    try:
        with open_ledger(settings.ledger, timeout=_LEDGER_TIMEOUT) as ledger:
            if ledger.stored(request.dataset, request.ledger_id) is not None:
                return Payment.STORED
            if ledger.stored(request.dataset, request.ledger_id + DIRECTIONS) is not None:
                return Payment.DIRECTIONS
    except RequestPendingError:
        return Payment.LOST
    except MatrixDPError:
        return Payment.UNKNOWN
    return Payment.NONE


def _write_folder(settings: Settings, state: State, request: Request) -> None:
    """Release to the request's folder, as ``matrixdp release`` does; a folder that is there is complete."""
    out = settings.releases / request.id
    if (out / "release.json").is_file():
        return
    schema = settings.state / "requests" / f"{request.id}.toml"
    write_file(schema, request.schema, option="state")
    tables = TableFolder(settings.folder)
    tables.open(request.table)  # refuses links that lead out of the folder
    options = ReleaseOptions(
        data=(str(tables.path(request.table)),),
        out=out,
        ledger=settings.ledger,
        ledger_timeout=_LEDGER_TIMEOUT,
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
                _update(self._state, self._request_id, progress=share)


def _update(state: State, request_id: str, **values: str | float | None) -> None:
    names = ", ".join(f"{name} = :{name}" for name in values)
    with state.writing() as connection:
        connection.execute(f"UPDATE requests SET {names} WHERE id = :id", {**values, "id": request_id})  # noqa: S608


def _describe(error: BaseException) -> str:
    if isinstance(error, MatrixDPError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory. Use fewer columns or records, or a machine with more memory."
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}."
    return f"internal error ({type(error).__name__})."


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
