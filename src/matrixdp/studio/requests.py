"""Requests for releases: asked by an analyst, approved or refused by a curator; and the folders of their results."""

import json
import shlex
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import lru_cache
from pathlib import Path
from sqlite3 import Row
from typing import Any, Self

from matrixdp.errors import ParameterError, show
from matrixdp.release.options import OPTION, Option, json_name, name_flag, parse_options
from matrixdp.release.reading import from_json
from matrixdp.release.request import Request
from matrixdp.studio.datasets import DatasetBook, SchemaStore
from matrixdp.studio.refusals import ConflictError, NotFoundError
from matrixdp.studio.roles import Viewer
from matrixdp.studio.sign_in import find_person
from matrixdp.studio.state import State, insert, now, update_request

_LONGEST_PURPOSE = 1000
_MOST_PENDING = 1000  # of one person
_FORM_ID = 100
_PAID = ("stored", "lost")  # what is known of a payment where something was charged
_LARGEST_RELEASE = 1 << 24  # bytes of a release that is explored


_ALLOWANCE = Option(name="allowance", kind="name", help="The allowance that pays; without one, what is not allotted.")
_ALLOWED = tuple(name for name in OPTION if name not in ("points", "directions", "id"))  # no files of the server's
_JSON_TYPES = {"number": "number", "integer": "integer"}  # of kinds of options; others are texts


@dataclass(frozen=True, kw_only=True)
class ReleaseSpec(Request):
    """A request for a release before a schema is added to it, and the allowance that would pay for it."""

    schema: Any = field(default=None, compare=False)
    allowance: str | None = None

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """A request from JSON content or from the fields of a form, in which empty texts are left out."""
        given = dict(values)
        allowance = given.pop("allowance", None) or None
        found = parse_options(given, allowed=_ALLOWED)
        return cls(**found, allowance=allowance and _ALLOWANCE.parse(allowance))

    def to_mapping(self) -> dict[str, Any]:
        """All options that differ from their defaults, by their names in JSON."""
        return self.to_options() | ({} if self.allowance is None else {"allowance": self.allowance})

    def write_command(self, schema: str, table: str, dataset: str) -> str:
        """The command ``matrixdp release`` for a request."""
        options = {**self.to_mapping(), "ledger": "ledger.db", "dataset": dataset, "out": "out"}
        texts = {name: one if isinstance(one, str) else repr(one).removesuffix(".0") for name, one in options.items()}
        flags = [[name_flag(name), text] for name, text in texts.items()]
        words = ["matrixdp", "release", f"./{table}" if table.startswith("-") else table, "--schema", schema]
        return " \\\n  ".join(map(shlex.join, [words, *flags]))

    def write_python(self, address: str, dataset: str, table: str) -> str:
        """Python code that forecasts the request and asks for it, at the studio's own address."""
        options = "".join(f", {name}={value!r}" for name, value in self.to_mapping().items())
        return (
            "import matrixdp as mdp\n\n"
            f"studio = mdp.Studio({address!r}, token)  # your own token\n"
            f"release = dict({options[2:]})\n"
            f"studio.forecast({dataset!r}, {table!r}, **release)  # costs nothing\n"
            f"asked = studio.ask({dataset!r}, {table!r}, purpose='...', **release)\n"
            "studio.wait(asked['id'])\n"
            "release = studio.release(asked['id'])\n"
        )


def describe_options() -> dict[str, Any]:
    """The options of a release as properties of JSON Schema."""
    found = {}
    for option in [*(OPTION[name] for name in _ALLOWED if name != "rows"), _ALLOWANCE]:  # rows are the schema's
        facts = {"type": _JSON_TYPES.get(option.kind, "string"), "description": option.help, "default": option.default}
        found[json_name(option.name)] = {**facts, **({"enum": list(option.choices)} if option.choices else {})}
    return found


class Status(Enum):
    """Where a request is on its way."""

    PENDING = "pending"  # waits for a curator
    REFUSED = "refused"
    APPROVED = "approved"  # waits for its turn
    RUNNING = "running"
    RELEASED = "released"
    FAILED = "failed"  # a curator sees why, and can approve it again at no further cost


@dataclass(frozen=True)
class StoredRequest:
    """A request for a release, as the studio's file keeps it. Times are in UTC."""

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
    progress: float | None  # the share of the records that were read, if their number is public and it is running
    error_kind: str | None
    error: str | None  # for curators alone
    # What the ledger knew when it failed: a name of `Payment`. Once it is stored or released, it stays "stored": a
    # ledger without it is another one.
    payment: str | None
    schema: str = ""  # with which it was asked and is released; empty in lists

    @property
    def ledger_id(self) -> str:
        """The request id in the ledger, by which it is charged once."""
        return f"studio-{self.id}"

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self.status in (Status.REFUSED, Status.RELEASED, Status.FAILED)

    @property
    def step(self) -> str:
        """The state as far as a page shows it."""
        return self.status.value if self.progress is None else f"{self.status.value} {self.progress:.2f}"

    @property
    def message(self) -> str | None:
        """Why it was refused or failed."""
        return {Status.REFUSED: self.reason, Status.FAILED: self.error}.get(self.status)

    def seen_by(self, viewer: Viewer) -> Self:
        """The request as far as `viewer` may know what became of it.

        Privacy
        -------
        Whether a release fails may depend on the data, such as a missing value, and so may how far it was read by
        then; nothing is charged for it. To analysts, a request that runs or that failed without a charge is therefore
        one that is approved, until a curator decides about it again. A failure after the charge is shown, without its
        message: errors of the data are raised before it.
        """
        if viewer.is_curator or self.status not in (Status.RUNNING, Status.FAILED):
            return self
        if self.status is Status.FAILED and self.payment in _PAID:
            return replace(self, error="It failed after it was charged. A curator sees why.")
        waits = replace(self, status=Status.APPROVED, finished=None, progress=None)
        return replace(waits, error_kind=None, error=None, payment=None)


_LISTED = ", ".join("table_name" if one.name == "table" else one.name for one in fields(StoredRequest)[:-1])


class RequestBook:
    """Keeps requests in the studio's file; `wake` is called after one was approved."""

    def __init__(self, state: State, datasets: DatasetBook, schemas: SchemaStore, wake: Callable[[], object]) -> None:
        self._state, self._datasets, self._schemas, self._wake = state, datasets, schemas, wake

    def submit(
        self, viewer: Viewer, dataset: str, table: str, spec: ReleaseSpec, purpose: str, form_id: str
    ) -> StoredRequest:
        """Ask for a release of one of a data set's tables; the ledger records the `purpose`, one line.

        The same `form_id` of the same person is one request, however often it is sent.
        """
        purpose, form_id = _check_line(purpose, "purpose", _LONGEST_PURPOSE), _check_line(form_id, "form_id", _FORM_ID)
        if (found := self._find_form(viewer, form_id)) is None:
            self._datasets.require_table(dataset, table)
            schema = self._schemas.require(table)
            self._require_affordable(viewer, dataset, table, spec, schema)
            values = {"id": uuid.uuid4().hex, "asker": viewer.name, "form_id": form_id, "dataset": dataset}
            values |= {"table_name": table, "spec": json.dumps(spec.to_mapping(), sort_keys=True)}
            with self._state.writing() as connection:
                (waiting,) = connection.execute(
                    "SELECT count(*) FROM requests WHERE asker = ? AND status = 'pending'", (viewer.name,)
                ).fetchone()
                if waiting >= _MOST_PENDING:
                    raise ConflictError(f"{waiting:,} of your requests wait for a curator already. Wait for an answer.")
                insert(connection, "requests", **values, purpose=purpose, schema=schema, asked=now(), status="pending")
            found = self._find_form(viewer, form_id)
            assert found is not None  # this thread or another has just written it
        if (found.dataset, found.table, found.spec) != (dataset, table, spec):
            raise ConflictError(
                "this form was sent before with other values. Load the page again to ask for another one."
            )
        return found

    def list_all(self, viewer: Viewer, status: Status | None = None) -> list[StoredRequest]:
        """Requests with this status, or all, the latest first: for a curator all of them, for an analyst her own."""
        asker = None if viewer.is_curator else viewer.name
        found = _list_rows(self._state, "asker = coalesce(?, asker)", asker)
        return [one for one in (one.seen_by(viewer) for one in found) if status in (None, one.status)]

    def get(self, viewer: Viewer, request_id: str) -> StoredRequest:
        """One request, or a `NotFoundError`; an analyst sees her own, and all that are released."""
        found = _find_row(self._state, "id = ?", request_id)
        if found is None or not (viewer.is_curator or found.asker == viewer.name or found.status is Status.RELEASED):
            raise NotFoundError(f"there is no request {show(request_id)}.")
        return found.seen_by(viewer)

    def approve(self, viewer: Viewer, request_id: str) -> StoredRequest:
        """Approve a request that is pending, or that failed; it is released in the background.

        One that was refused is a `ConflictError`; so is one whose table has another schema now.
        """
        found = self.get(viewer, request_id)
        if found.status is Status.PENDING or (found.status is Status.FAILED and found.payment == "none"):
            if self._schemas.read(found.table) != found.schema:
                advice = "Refuse the request; it" if found.status is Status.PENDING else "It"
                raise ConflictError(f"the schema of {found.table} has changed since. {advice} has to be asked again.")
            asker = find_person(self._state, found.asker)
            self._require_affordable(asker, found.dataset, found.table, found.spec, found.schema)
        cleared = dict.fromkeys(("error", "error_kind", "finished", "progress"))
        decision = {"status": "approved", "decided_by": viewer.name, "decided": now(), **cleared}
        update_request(self._state, request_id, "status IN ('pending', 'failed')", **decision)
        found = self.get(viewer, request_id)
        if found.status is Status.REFUSED:
            raise ConflictError(f"it was refused by {found.decided_by}. It has to be asked again.")
        self._wake()
        return found

    def refuse(self, viewer: Viewer, request_id: str, reason: str) -> StoredRequest:
        """Refuse a request that is pending, or that failed unpaid; the analyst reads the reason."""
        reason = _check_line(reason, "reason", _LONGEST_PURPOSE)
        unpaid = "status = 'pending' OR (status = 'failed' AND payment = 'none')"
        decision = {"status": "refused", "decided_by": viewer.name, "decided": now(), "reason": reason}
        update_request(self._state, request_id, unpaid, **decision)
        found = self.get(viewer, request_id)
        if found.status is not Status.REFUSED:
            raise ConflictError(f"it was approved by {found.decided_by}, and cannot be refused any more.")
        return found

    def _find_form(self, viewer: Viewer, form_id: str) -> StoredRequest | None:
        found = _find_row(self._state, "asker = ? AND form_id = ?", viewer.name, form_id)
        return None if found is None else found.seen_by(viewer)

    def _require_affordable(self, asker: Viewer, dataset: str, table: str, spec: ReleaseSpec, schema: str) -> None:
        """Raise unless a release can be made, the ledger covers it, and the allowance is for the one who asks.

        Privacy
        -------
        Limits beyond which a release fails must be those of the schema. A few requests with different ones would find
        the largest number of rows of a person, or a private number of records, by whether they fail.
        """
        from matrixdp.studio.forecasts import open_forecaster  # imports queries and designs, which are slow to import

        forecaster = open_forecaster(schema, f"{table}.toml")
        plan, known = forecaster.plan(spec), forecaster.schema
        if spec.rows is not None and (known.person is None or spec.rows != known.person.rows):
            raise ParameterError(
                "«rows» must be that of the schema: whether a release fails with another one would tell how many rows "
                "a person has. Leave it out; a curator gives rows in [person] of the schema."
            )
        if not plan.query.public_number and spec.records not in (None, known.records):
            raise ParameterError(
                "«records» must be that of the schema where the number of records is private: whether a release fails "
                "with another one would tell that number. Leave it out; a curator gives it in the schema."
            )
        with self._datasets.open_ledger(asker) as ledger:
            ledger.whatif(dataset, plan, allowance=spec.allowance)


def load_request(state: State, request_id: str) -> StoredRequest:
    """A request that exists, whoever asked for it."""
    found = _find_row(state, "id = ?", request_id)
    assert found is not None  # requests are never removed
    return found


def _list_rows(state: State, condition: str, *values: str | None, columns: str = _LISTED) -> list[StoredRequest]:
    """Requests, the latest first, without their schemas."""
    query = f"SELECT {columns} FROM requests WHERE {condition} ORDER BY asked DESC, id"  # noqa: S608
    return [_read_row(row) for row in state.select(query, *values)]


def _find_row(state: State, condition: str, *values: str) -> StoredRequest | None:
    return next(iter(_list_rows(state, condition, *values, columns="*")), None)


def _read_row(row: Row) -> StoredRequest:
    values = dict(row)
    values.pop("form_id", None)
    spec = ReleaseSpec.from_mapping(json.loads(values.pop("spec")))
    return StoredRequest(table=values.pop("table_name"), spec=spec, status=Status(values.pop("status")), **values)


def _check_line(text: str, name: str, longest: int) -> str:
    text = text.strip()
    if not text or not text.isprintable() or len(text) > longest:
        raise ParameterError(f"{name} must be one line of 1 to {longest:,} printable characters.", parameter=name)
    return text


class Results:
    """Reads the folders of finished releases, as ``matrixdp release`` writes them. Everybody who is signed in may."""

    def __init__(self, folder: Path, state: State) -> None:
        self._folder, self._state = folder, state

    def list_all(self) -> list[StoredRequest]:
        """All requests that are released, by anybody, the latest first."""
        return _list_rows(self._state, "status = 'released'")

    def get(self, request_id: str) -> StoredRequest:
        """The request of a finished release, or a `NotFoundError`."""
        found = _find_row(self._state, "id = ? AND status = 'released'", request_id)
        if found is None:
            raise NotFoundError(f"request {show(request_id)} is not released, or there is none of this id.")
        return found

    def files(self, request_id: str) -> list[str]:
        """The names of a release's files: ``report.html``, ``release.json``, ``matrix.csv`` and others."""
        folder = self._folder / self.get(request_id).id
        if not folder.is_dir():
            raise NotFoundError("the folder of this release is gone. The ledger has the release: restart the studio.")
        return sorted(path.name for path in folder.iterdir() if path.is_file() and not path.is_symlink())

    def path(self, request_id: str, name: str) -> Path:
        """The path of one of a release's files, or a `NotFoundError`; never one outside of its folder."""
        if name not in self.files(request_id):
            raise NotFoundError(f"this release has no file {show(name)}.")
        return self._folder / request_id / name

    def load(self, request_id: str) -> Any:
        """The release, for post-processing, which costs nothing; None if it is too large to be kept in memory."""
        path = self.path(request_id, "release.json")
        facts = path.stat()
        return None if facts.st_size > _LARGEST_RELEASE else _read_release(path, facts.st_mtime_ns)


@lru_cache(maxsize=4)
def _read_release(path: Path, _changed: int) -> Any:
    """A release, which is checked when it is read for the first time."""
    return from_json(path.read_text(encoding="utf-8"))
