"""Requests for releases: asked by an analyst, approved or refused by a curator, and released in the background."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from sqlite3 import Row
from typing import Any

from matrixdp.domain.schema import Schema
from matrixdp.errors import ParameterError, show
from matrixdp.studio.datasets import DatasetBook
from matrixdp.studio.refusals import ConflictError, NotFoundError
from matrixdp.studio.roles import Viewer
from matrixdp.studio.schemas import SchemaStore
from matrixdp.studio.spec import ReleaseSpec
from matrixdp.studio.state import State, now

_LONGEST_PURPOSE = 1000
_MOST_PENDING = 1000  # of one person
_FORM_ID = 100


class Status(Enum):
    """Where a request is on its way."""

    PENDING = "pending"  # waits for a curator
    REFUSED = "refused"
    APPROVED = "approved"  # waits for its turn
    RUNNING = "running"
    RELEASED = "released"
    FAILED = "failed"  # a curator sees why, and can approve it again at no further cost


@dataclass(frozen=True)
class Request:
    """A request for a release, as lists show it.

    Attributes
    ----------
    id : str
        Also the name of its folder of results.
    asker : str
        The analyst.
    dataset, table : str
    spec : ReleaseSpec
        What is asked for.
    purpose : str
    status : Status
    asked, decided, finished : str or None
        Times in UTC.
    decided_by, reason : str or None
        The curator who approved or refused it, and why.
    progress : float or None
        Share of the records that were read, if their number is public and it is running.
    error_kind, error : str or None
        The class of the error with which it failed, and its message, which is for curators alone.
    payment : str or None
        What the ledger knew when it failed: ``"none"``, ``"directions"``, ``"stored"``, ``"lost"`` or ``"unknown"``.
        Once it is stored or released, it stays ``"stored"``: a ledger without it is another one.
    """

    id: str
    asker: str
    dataset: str
    table: str
    spec: ReleaseSpec
    purpose: str
    status: Status
    asked: str
    decided: str | None
    decided_by: str | None
    reason: str | None
    finished: str | None
    progress: float | None
    error_kind: str | None
    error: str | None
    payment: str | None

    @property
    def ledger_id(self) -> str:
        """The request id in the ledger, by which it is charged once."""
        return f"studio-{self.id}"

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self.status in (Status.REFUSED, Status.RELEASED, Status.FAILED)

    def explain(self, viewer: Viewer) -> str | None:
        """Why it was refused or failed, as far as `viewer` may know: errors may depend on the data."""
        if self.status is Status.REFUSED:
            return self.reason
        if self.status is not Status.FAILED:
            return None
        return self.error if viewer.is_curator else "It failed. A curator sees why, and can approve it again."


@dataclass(frozen=True)
class FullRequest(Request):
    """A request with the text of the schema when it was asked, with which it is released."""

    schema: str


_LISTED = ", ".join("table_name" if field.name == "table" else field.name for field in fields(Request))


class RequestBook:
    """Keeps requests in the studio's file.

    Parameters
    ----------
    wake : callable
        Called after a request was approved.
    """

    def __init__(self, state: State, datasets: DatasetBook, schemas: SchemaStore, wake: Callable[[], object]) -> None:
        self._state, self._datasets, self._schemas, self._wake = state, datasets, schemas, wake

    def submit(
        self, viewer: Viewer, dataset: str, table: str, spec: ReleaseSpec, purpose: str, form_id: str
    ) -> FullRequest:
        """Ask for a release. The same form of the same person is one request, however often it is sent.

        Parameters
        ----------
        viewer : Viewer
        dataset, table : str
            A data set of the ledger, and one of its tables.
        spec : ReleaseSpec
        purpose : str
            What it is for, in one line; the ledger records it.
        form_id : str
            The hidden field of the form, or any text that a client chooses for this request.
        """
        purpose, form_id = _check_line(purpose, "purpose", _LONGEST_PURPOSE), _check_line(form_id, "form_id", _FORM_ID)
        if (earlier := self._find_form(viewer, form_id)) is not None:
            return _require_same(earlier, dataset, table, spec)
        self._datasets.require_table(dataset, table)
        schema = self._schemas.read(table)
        if schema is None:
            raise NotFoundError(f"{table} has no schema yet. A curator writes it first.")
        self._require_affordable(dataset, spec, self._schemas.parse(table))
        row = (uuid.uuid4().hex, viewer.name, form_id, dataset, table, spec.to_json(), purpose, schema, now())
        with self._state.writing() as connection:
            (waiting,) = connection.execute(
                "SELECT count(*) FROM requests WHERE asker = ? AND status = 'pending'", (viewer.name,)
            ).fetchone()
            if waiting >= _MOST_PENDING:
                raise ConflictError(f"{waiting:,} of your requests wait for a curator already. Wait for an answer.")
            connection.execute(
                "INSERT OR IGNORE INTO requests (id, asker, form_id, dataset, table_name, spec, purpose, schema, "
                "asked, status) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')",
                row,
            )
        found = self._find_form(viewer, form_id)
        assert found is not None  # this thread or another has just written it
        return _require_same(found, dataset, table, spec)

    def list_all(self, viewer: Viewer, status: Status | None = None) -> list[Request]:
        """Requests with this status, or all, the latest first: for a curator all of them, for an analyst her own."""
        with self._state.reading() as connection:
            rows = connection.execute(
                f"SELECT {_LISTED} FROM requests WHERE (? OR asker = ?) AND (? IS NULL OR status = ?) "  # noqa: S608
                "ORDER BY asked DESC, id",
                (viewer.is_curator, viewer.name, status and status.value, status and status.value),
            ).fetchall()
        return [Request(**_read_values(row)) for row in rows]

    def pending(self, viewer: Viewer) -> list[Request]:
        """Requests that wait for a curator, the oldest first."""
        return self.list_all(viewer, Status.PENDING)[::-1]

    def get(self, viewer: Viewer, request_id: str) -> FullRequest:
        """One request, or a `NotFoundError`; an analyst sees her own, and all that are released."""
        with self._state.reading() as connection:
            row = connection.execute("SELECT * FROM requests WHERE id = ?", (request_id,)).fetchone()
        found = None if row is None else read_request(row)
        if found is None or not (viewer.is_curator or found.asker == viewer.name or found.status is Status.RELEASED):
            raise NotFoundError(f"there is no request {show(request_id)}.")
        return found

    def approve(self, viewer: Viewer, request_id: str) -> FullRequest:
        """Approve a request that is pending, or that failed; it is released in the background.

        A second time changes nothing. A request that was refused is a `ConflictError`; so is one whose table has
        another schema now. A `BudgetExceededError` says that the ledger does not cover it.
        """
        found = self.get(viewer, request_id)
        if found.status is Status.PENDING or (found.status is Status.FAILED and found.payment == "none"):
            if self._schemas.read(found.table) != found.schema:
                advice = "Refuse the request; it" if found.status is Status.PENDING else "It"
                raise ConflictError(f"the schema of {found.table} has changed since. {advice} has to be asked again.")
            self._require_affordable(found.dataset, found.spec, self._schemas.parse(found.table))
        with self._state.writing() as connection:
            connection.execute(
                "UPDATE requests SET status = 'approved', decided_by = ?, decided = ?, error = NULL, "
                "error_kind = NULL, finished = NULL, progress = NULL "
                "WHERE id = ? AND status IN ('pending', 'failed')",
                (viewer.name, now(), request_id),
            )
        found = self.get(viewer, request_id)
        if found.status is Status.REFUSED:
            raise ConflictError(f"it was refused by {found.decided_by}. It has to be asked again.")
        self._wake()
        return found

    def refuse(self, viewer: Viewer, request_id: str, reason: str) -> FullRequest:
        """Refuse a request that is pending. A second time changes nothing; one that was approved is a conflict."""
        reason = _check_line(reason, "reason", _LONGEST_PURPOSE)
        with self._state.writing() as connection:
            connection.execute(
                "UPDATE requests SET status = 'refused', decided_by = ?, decided = ?, reason = ? "
                "WHERE id = ? AND status = 'pending'",
                (viewer.name, now(), reason, request_id),
            )
        found = self.get(viewer, request_id)
        if found.status is not Status.REFUSED:
            raise ConflictError(f"it was approved by {found.decided_by}, and cannot be refused any more.")
        return found

    def _find_form(self, viewer: Viewer, form_id: str) -> FullRequest | None:
        with self._state.reading() as connection:
            row = connection.execute(
                "SELECT * FROM requests WHERE asker = ? AND form_id = ?", (viewer.name, form_id)
            ).fetchone()
        return None if row is None else read_request(row)

    def _require_affordable(self, dataset: str, spec: ReleaseSpec, schema: Schema) -> None:
        """Raise unless a release can be made and the ledger covers it."""
        from matrixdp.studio.planning import plan_release  # imports queries and designs, which are slow to import

        plan = plan_release(spec, schema)
        if not plan.public_number:
            _require_public_estimate(spec, schema)
        with self._datasets.open_ledger() as ledger:
            ledger.whatif(dataset, plan, allowance=spec.allowance)


def read_request(row: Row) -> FullRequest:
    """A request from its row in the studio's file."""
    return FullRequest(**_read_values(row))


def _read_values(row: Row) -> dict[str, Any]:
    values = {name: row[name] for name in row.keys() if name != "form_id"}  # noqa: SIM118 (a Row has its values)
    values["table"] = values.pop("table_name")
    values["spec"] = ReleaseSpec.from_json(values["spec"])
    values["status"] = Status(values["status"])
    return values


def _require_same(found: FullRequest, dataset: str, table: str, spec: ReleaseSpec) -> FullRequest:
    if (found.dataset, found.table, found.spec) != (dataset, table, spec):
        raise ConflictError("this form was sent before with other values. Load the page again to ask for another one.")
    return found


def _require_public_estimate(spec: ReleaseSpec, schema: Schema) -> None:
    """Raise if the one who asks chose the limit beyond which a release of a private number of records fails."""
    person = schema.person
    allowed = {"records": schema.records, "rows_per_person": None if person is None else person.rows}
    for name, value in allowed.items():
        if getattr(spec, name) not in (None, value):
            raise ParameterError(
                f"{name} must be that of the schema where the number of records is private: whether a release fails "
                "with another one would tell that number. Leave it out; a curator gives it in the schema."
            )


def _check_line(text: str, name: str, longest: int) -> str:
    text = text.strip()
    if not text or not text.isprintable() or len(text) > longest:
        raise ParameterError(f"{name} must be one line of 1 to {longest:,} printable characters.")
    return text
