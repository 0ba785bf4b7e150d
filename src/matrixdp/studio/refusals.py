"""Errors with the HTTP status that they are answered with."""

from collections.abc import Iterable

from matrixdp import errors
from matrixdp.errors import MatrixDPError, ParameterError
from matrixdp.release.options import json_name


class RefusalError(MatrixDPError):
    """A request that the studio refuses; the message is shown to the person who sent it."""

    status = 400


class SignInError(RefusalError):
    """Nobody is signed in: there is no cookie or token, or it is unknown, expired or revoked."""

    status = 401


class NotFoundError(RefusalError):
    """There is no such thing, or none that this person may see."""

    status = 404


class ConflictError(RefusalError):
    """The thing is in another state than the request assumes."""

    status = 409


class UnavailableError(RefusalError):
    """The studio's own files cannot be read or written at the moment, or it is busy."""

    status = 503


def place_error(error: MatrixDPError | None, fields: Iterable[str], **places: str) -> dict[str, str]:
    """The message of an error, if there is one, by the field of a form that it is about; else by ``"form"``.

    `places` are fields of parameters that have none of their own name.
    """
    parameter = getattr(error, "parameter", "")
    place = places.get(parameter, parameter)
    return {} if error is None else {place if place in fields else "form": word_error(error)}


def word_error(error: MatrixDPError) -> str:
    """The message of an error as pages and the API show it: without paths of the server and commands of a terminal."""
    if isinstance(error, errors.RefusedError):
        return str(error).partition("\n")[0]
    if isinstance(error, errors.LedgerError) and find_status(error) == 503:
        return "the ledger cannot be used at the moment. A curator sees why."
    return errors.word_options(error.template, json_name) if isinstance(error, ParameterError) else str(error)


def find_status(error: MatrixDPError) -> int:
    """The HTTP status for an error of the library or the studio."""
    match error:
        case RefusalError():
            return error.status
        case errors.RefusedError() | errors.RequestPendingError():
            return 409
        case errors.LedgerError():
            return 503
        case ParameterError() | errors.DataError():
            return 422
    return 500
