"""Releases in the background: approved requests, each in a process of its own, which finishes even if the server dies.

The ledger charges the id of a request once, so a request may be released again after any fault: what was paid is read
from the ledger. ``python -m matrixdp.studio.worker`` is the process of one release.
"""

import logging
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from threading import Event, Thread

from matrixdp.domain.schema_file import parse_schema
from matrixdp.errors import ChargedError, LedgerError, MatrixDPError, RequestPendingError
from matrixdp.ledger import Ledger
from matrixdp.ledger.ledger import LedgerOptions
from matrixdp.release.charging import Account
from matrixdp.release.plan import plan
from matrixdp.release.run import count_units
from matrixdp.report.provenance import note_approval
from matrixdp.report.release_folder import write_release
from matrixdp.studio.datasets import TableFolder
from matrixdp.studio.refusals import UnavailableError
from matrixdp.studio.requests import Status, StoredRequest, load_request
from matrixdp.studio.sign_in import find_person
from matrixdp.studio.state import Settings, State, hold_lock, now, update_request

LEDGER_TIMEOUT = 60.0  # seconds to wait for others who write the ledger
_PROGRESS_STEP = 0.5  # seconds
_LOOK = 5.0  # seconds after which approved requests are looked for, even if nobody calls `wake`
_POLL = 0.1  # seconds between two looks at a process
_LOG = logging.getLogger("matrixdp.studio")


class InterruptedReleaseError(MatrixDPError):
    """The process of a release ended before it had finished."""


class Payment(Enum):
    """What the ledger knows of a request that failed, and what follows for the person who reads it."""

    NONE = "Nothing was charged."
    STORED = "It is paid, and the ledger has the release. Approve it again, at no cost."
    LOST = (
        "It is paid, but it was interrupted before the release was stored, and noise is not drawn twice. Its charge "
        "stays spent."
    )
    UNKNOWN = "The ledger cannot be read. Approve it again once it can: it is charged at most once."


_STORED = Payment.STORED.name.lower()  # as the studio's file has it


def release_request(settings: Settings, request_id: str) -> None:
    """Release an approved request and write its folder; the outcome is in the studio's file."""
    state = State(settings.database)
    with hold_lock(settings.state / "locks" / request_id):  # no other process or thread releases the same request
        request = load_request(state, request_id)
        if request.status not in (Status.APPROVED, Status.RUNNING):
            return
        update_request(state, request_id, status="running", progress=None)
        try:
            _release_to_folder(settings, state, request)
        except Exception as error:
            note_failure(settings, state, request.id, error)
        else:
            outcome = {"status": "released", "finished": now(), "payment": _STORED}
            update_request(state, request_id, **outcome, progress=None, error=None, error_kind=None)


def _release_to_folder(settings: Settings, state: State, request: StoredRequest) -> None:
    """Release to the request's folder, as ``matrixdp release`` does; a folder that is there is complete."""
    out = settings.releases / request.id
    if (out / "release.json").is_file():
        return
    schema = parse_schema(request.schema, f"{request.id}.toml")
    source = TableFolder(settings.folder).open(request.table, schema.rules)
    asked = replace(request.spec, schema=schema, id=request.ledger_id)
    made = plan(asked, lambda: count_units(asked, source))
    options: LedgerOptions = {"actor": request.asker, "groups": find_person(state, request.asker).groups}
    options["purpose"] = note_approval(request.purpose, str(request.decided_by))
    options |= {"timeout": LEDGER_TIMEOUT, "wait": 0.0}  # nobody else is releasing it: this process holds its lock
    with Ledger.open(settings.ledger, **options) as ledger:
        if request.payment == _STORED and ledger.stored(request.dataset, request.ledger_id) is None:
            raise LedgerError(  # other noise would be another release
                "the ledger has no release for this request, though it was released before: it is another ledger, or "
                "an older copy. Start the studio with the ledger that it was charged to."
            )
        account = Account(ledger, request.dataset, allowance=request.spec.allowance)
        progress = _note_progress(state, request.id, made.records or 1) if made.public_progress else None
        write_release(made, source, out, account, progress=progress)


def note_failure(settings: Settings, state: State, request_id: str, error: BaseException) -> None:
    """Record why a request failed: the message of a declared error, or the class of any other, and what was paid."""
    if isinstance(error, ChargedError):
        error = error.error
    payment, kind = _find_payment(settings, state, request_id), type(error).__name__
    text = f"internal error ({kind})."
    if isinstance(error, MatrixDPError):
        text = str(error)
    elif isinstance(error, MemoryError):
        text = "there is not enough memory. Use fewer columns or records, or a machine with more memory."
    elif isinstance(error, OSError):
        text = f"{error.strerror or kind}."
    update_request(state, request_id, f"payment IS NOT '{_STORED}'", payment=payment.name.lower())
    outcome = {"status": "failed", "finished": now(), "error": f"{text} {payment.value}", "error_kind": kind}
    update_request(state, request_id, **outcome)


def _find_payment(settings: Settings, state: State, request_id: str) -> Payment:
    try:
        request = load_request(state, request_id)
        with Ledger.open(settings.ledger, timeout=LEDGER_TIMEOUT) as ledger:
            if ledger.stored(request.dataset, request.ledger_id) is not None:
                return Payment.STORED
    except RequestPendingError:
        return Payment.LOST
    except Exception:  # whatever it is, the request may be paid
        return Payment.UNKNOWN
    return Payment.NONE


def _note_progress(state: State, request_id: str, records: int) -> Callable[[int], None]:
    """A function that writes the share of the records that were read to the studio's file, twice a second."""
    done, later = 0, time.monotonic() + _PROGRESS_STEP

    def add(read: int) -> None:
        nonlocal done, later
        done += read
        if time.monotonic() >= later:
            later = time.monotonic() + _PROGRESS_STEP
            with suppress(UnavailableError):
                update_request(state, request_id, progress=min(1.0, done / records))

    return add


class Runner:
    """Takes approved requests from the studio's file, the first that was approved first, and releases them.

    A request is charged under its own id, so it may be started any number of times.
    """

    def __init__(self, settings: Settings, state: State) -> None:
        self._settings, self._state = settings, state
        self._called, self._stopping = Event(), False
        self._thread = Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Resume what a stopped server left: approved, running, or paid but not written."""
        self._resume()
        self._stopping = False
        self._thread = Thread(target=self._work, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look for approved requests."""
        self._called.set()

    def stop(self) -> None:
        """Start no further release. A process that is releasing finishes by itself."""
        self._stopping = True
        self._called.set()
        self._thread.join()

    def _resume(self) -> None:
        with self._state.writing() as connection:
            released = connection.execute("SELECT id FROM requests WHERE status = 'released'").fetchall()
            lost = [row["id"] for row in released if not (self._settings.releases / row["id"]).is_dir()]
            connection.executemany("UPDATE requests SET status = 'approved' WHERE id = ?", [(each,) for each in lost])
            connection.execute(
                "UPDATE requests SET status = 'approved', error = NULL, error_kind = NULL "
                "WHERE status = 'running' OR (status = 'failed' AND payment IN ('stored', 'unknown'))"
            )

    def _work(self) -> None:
        """Release one request after the other, and wait where there is none, until the studio stops."""
        while True:
            self._called.clear()  # before anything is looked at, so that no call is missed
            if self._stopping:
                return
            try:
                waiting = self._state.select("SELECT id FROM requests WHERE status = 'approved' ORDER BY decided, id")
                if waiting:
                    self._try(waiting[0]["id"])
                    continue
            except UnavailableError as error:  # tried again after a while
                _LOG.error("%s", error)
            self._called.wait(_LOOK)

    def _try(self, request_id: str) -> None:
        """Release a request, or note why it cannot be, so that others are released all the same."""
        try:
            self._release(request_id)
        except UnavailableError:
            raise
        except Exception as error:  # no process could be started, or unforeseen
            reason = error.strerror if isinstance(error, OSError) else type(error).__name__
            _LOG.error("request %s cannot be released: %s", request_id, reason)
            note_failure(self._settings, self._state, request_id, error)

    def _release(self, request_id: str) -> None:
        if not self._settings.isolated:
            release_request(self._settings, request_id)
            return
        code = self._run_process(request_id)
        request = load_request(self._state, request_id)
        if code is not None and request.status in (Status.APPROVED, Status.RUNNING):
            _LOG.error("the process that released request %s ended with code %d", request_id, code)
            ended = "the process that released it ended before it had finished."
            note_failure(self._settings, self._state, request_id, InterruptedReleaseError(ended))

    def _run_process(self, request_id: str) -> int | None:
        """The exit code of the process that released a request; None if the studio stopped before it had finished."""
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "matrixdp.studio.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that Ctrl-C stops the server alone
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as pipe:  # broken if the process has ended by now
            pipe.write(pickle.dumps((self._settings, request_id)))
        while not self._stopping:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_POLL)
        process.returncode = 0  # it finishes by itself; otherwise Python warns that nobody waits for it
        return None


if __name__ == "__main__":
    release_request(*pickle.load(sys.stdin.buffer))  # noqa: S301 (written by the server, its parent)
