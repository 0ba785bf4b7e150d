"""Errors of readers and tasks, reworded so that they name the file and never quote its contents."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from matrixdp.errors import DataError

P = ParamSpec("P")
T = TypeVar("T")


def sanitise_errors(place: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    r"""Call `function`; its errors name `place` and contain nothing that quotes the data.

    Examples
    --------
    >>> sanitise_errors("records.csv", bytes.decode, b"caf\xe9")
    Traceback (most recent call last):
    matrixdp.errors.DataError: records.csv is not encoded as UTF-8. Save it as UTF-8.
    """
    try:
        return function(*args, **kwargs)
    except Exception as error:
        sanitised = _sanitised(place, error)
    raise sanitised  # not inside of `except`, where the original error would be kept as its context


def _sanitised(place: str, error: Exception) -> BaseException:
    """The exception to raise in place of `error`."""
    match error:
        case DataError():
            named = not place or str(error).startswith(place)
            return DataError(str(error) if named else f"{place}: {error}")  # a copy has no cause and no context
        case UnicodeDecodeError():
            return DataError(f"{place} is not encoded as UTF-8. Save it as UTF-8.")
        case csv.Error():
            return DataError(f"{place} cannot be read as CSV. Check its quotes and line ends.")
        case FileNotFoundError():
            return DataError(f"{place} does not exist, or was removed. Restore it, or leave it out.")
        case MemoryError():
            return DataError(
                f"{place} needs more memory than there is. Write it with smaller row groups or batches, or use a "
                "machine with more memory."
            )
        case OSError():
            reason = error.strerror if error.errno else "it is damaged or truncated"
            return DataError(f"{place} cannot be read: {reason}.")
    if not type(error).__module__.startswith("pyarrow"):
        return error
    if type(error).__name__ == "ArrowCancelled":
        return KeyboardInterrupt()
    return DataError(f"{place} cannot be read: it is damaged, truncated, or not in the format that its name suggests.")
