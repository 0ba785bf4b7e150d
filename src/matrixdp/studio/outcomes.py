"""How a request ended: what is kept in the studio's file, and what the ledger knows of it."""

from __future__ import annotations

from enum import Enum

from matrixdp.cli.exits import ChargedError
from matrixdp.errors import LedgerError, MatrixDPError, RequestPendingError
from matrixdp.ledger import Ledger
from matrixdp.studio.requests import FullRequest, Request, read_request
from matrixdp.studio.settings import Settings
from matrixdp.studio.state import State, now

LEDGER_TIMEOUT = 60.0  # seconds to wait for others who write the ledger
_DIRECTIONS = "-directions"  # as the command adds it to the request id of the release that learns directions


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


STORED = Payment.STORED.name.lower()  # as the studio's file has it


def load_request(state: State, request_id: str) -> FullRequest:
    """A request, whoever asked for it."""
    with state.reading() as connection:
        return read_request(connection.execute("SELECT * FROM requests WHERE id = ?", (request_id,)).fetchone())


def note_failure(settings: Settings, state: State, request: Request, error: BaseException) -> None:
    """Record why a request failed: the message of a declared error, or the class of any other, and what was paid."""
    if isinstance(error, ChargedError):
        error = error.error
    payment = find_payment(settings, request)
    text = f"{_describe(error)} {payment.value}"
    kind, paid = type(error).__name__, STORED if request.payment == STORED else payment.name.lower()
    update_request(state, request.id, status="failed", finished=now(), error=text, error_kind=kind, payment=paid)


def find_payment(settings: Settings, request: Request) -> Payment:
    """What the ledger knows of a request."""
    try:
        with Ledger.open(settings.ledger, timeout=LEDGER_TIMEOUT) as ledger:
            if ledger.stored(request.dataset, request.ledger_id) is not None:
                return Payment.STORED
            if ledger.stored(request.dataset, request.ledger_id + _DIRECTIONS) is not None:
                return Payment.DIRECTIONS
    except RequestPendingError:
        return Payment.LOST
    except MatrixDPError:
        return Payment.UNKNOWN
    return Payment.NONE


def require_stored(settings: Settings, request: Request) -> None:
    """Raise unless the ledger has the release of a request that it had before: other noise would be another release."""
    with Ledger.open(settings.ledger, timeout=LEDGER_TIMEOUT) as ledger:
        if ledger.stored(request.dataset, request.ledger_id) is None:
            raise LedgerError(
                "the ledger has no release for this request, though it was released before: it is another ledger, or "
                "an older copy. Start the studio with the ledger that it was charged to."
            )


def update_request(state: State, request_id: str, **values: str | float | None) -> None:
    """Set columns of a request in the studio's file."""
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
