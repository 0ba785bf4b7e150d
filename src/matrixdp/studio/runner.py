"""Releases in the background, also of requests that a stopped server left unfinished."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
from contextlib import suppress
from threading import Condition, Thread

from matrixdp.errors import MatrixDPError
from matrixdp.studio.outcomes import load_request, note_failure
from matrixdp.studio.refusals import UnavailableError
from matrixdp.studio.requests import Status
from matrixdp.studio.settings import Settings
from matrixdp.studio.state import State

_LOG = logging.getLogger("matrixdp.studio")
_LOOK = 5.0  # seconds after which approved requests are looked for, even if nobody calls `wake`
_POLL = 0.1  # seconds between two looks at a process


class InterruptedReleaseError(MatrixDPError):
    """The process of a release ended before it had finished."""


class Runner:
    """Takes approved requests from the studio's file, the first that was approved first, and releases them.

    A request is charged under its own id, so it may be started any number of times.
    """

    def __init__(self, settings: Settings, state: State) -> None:
        self._settings, self._state = settings, state
        self._changed = Condition()
        self._active: set[str] = set()
        self._unusable: set[str] = set()
        self._stopping = False
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Resume what a stopped server left: approved, running, or paid but not written."""
        self._resume()
        self._stopping = False
        self._threads = [Thread(target=self._work, daemon=True) for _ in range(self._settings.releases_at_once)]
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Look for approved requests."""
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Start no further release. A process that is releasing finishes by itself."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

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
        while (request_id := self._take()) is not None:
            try:
                self._release(request_id)
            except UnavailableError as error:  # tried again after a while
                _LOG.error("%s", error)
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping, _LOOK)
            except Exception as error:  # no process could be started, or unforeseen; others are released all the same
                reason = error.strerror if isinstance(error, OSError) else type(error).__name__
                _LOG.error("request %s cannot be released: %s", request_id, reason)
                try:
                    with suppress(UnavailableError):
                        note_failure(self._settings, self._state, load_request(self._state, request_id), error)
                except Exception:  # not tried again by this server, so that it does not keep others waiting
                    self._unusable.add(request_id)
            finally:
                with self._changed:
                    self._active.discard(request_id)

    def _take(self) -> str | None:
        """The next approved request; waits for one. None if the studio is stopping."""
        with self._changed:
            while not self._stopping:
                try:
                    waiting = self._list_approved()
                except UnavailableError as error:
                    _LOG.error("%s", error)
                    waiting = []
                for request_id in waiting:
                    if request_id not in self._active | self._unusable:
                        self._active.add(request_id)
                        return request_id
                self._changed.wait(_LOOK)
            return None

    def _list_approved(self) -> list[str]:
        with self._state.reading() as connection:
            rows = connection.execute("SELECT id FROM requests WHERE status = 'approved' ORDER BY decided, id")
            return [row["id"] for row in rows]

    def _release(self, request_id: str) -> None:
        if not self._settings.isolated:
            from matrixdp.studio.worker import release_request  # which imports all that a release needs

            release_request(self._settings, request_id)
            return
        code = self._run_process(request_id)
        if code is None:
            return
        request = load_request(self._state, request_id)
        if request.status in (Status.APPROVED, Status.RUNNING):
            _LOG.error("the process that released request %s ended with code %d", request_id, code)
            ended = InterruptedReleaseError("the process that released it ended before it had finished.")
            note_failure(self._settings, self._state, request, ended)

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
            try:
                return process.wait(_POLL)
            except subprocess.TimeoutExpired:
                continue
        process.returncode = 0  # it finishes by itself; otherwise Python warns that nobody waits for it
        return None
