"""Checks of queries, of their answers, and of what most queries are given: the number of records, and people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from matrixdp.checks import check_integer
from matrixdp.domain.person import Person
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.privacy import Neighbours
from matrixdp.queries.base import MatrixQuery
from matrixdp.sensitivity import Sensitivity
from matrixdp.types import Floats

_MOST_RECORDS = 1 << 50
_BLOCK = 1 << 18  # entries of an answer that are checked at a time
SIDES = ("rows", "columns", "both")


def check_query(query: Any) -> None:
    """Raise a `ParameterError` unless `query` is a query whose public attributes fit together."""
    if not isinstance(query, MatrixQuery):
        raise ParameterError(
            f"query must be a query such as Moments(bounds, records=...), got {type(query).__name__} instead."
        )
    name = type(query).__name__
    shape: Any = getattr(query, "shape", None)
    side, sensitivity = getattr(query, "side", None), getattr(query, "sensitivity", None)
    sized = isinstance(shape, tuple) and len(shape) == 2 and all(isinstance(n, int | np.integer) for n in shape)
    if not sized or min(shape) < 1:
        raise ParameterError(f"{name}.shape must be two positive integers, got {show(shape)} instead.")
    if side not in SIDES or (side == "both" and shape[0] != shape[1]):
        raise ParameterError(
            f"{name}.side must be 'rows', 'columns', or 'both' for a symmetric answer, got {show(side)} instead."
        )
    if not isinstance(getattr(query, "neighbours", None), Neighbours):
        raise ParameterError(f"{name}.neighbours must be Neighbours.REPLACE or Neighbours.ADD_REMOVE.")
    query.protected_unit  # noqa: B018  (raises for a unit that does not exist)
    if not isinstance(sensitivity, Sensitivity):
        raise ParameterError(
            f"{name}.sensitivity must be a sensitivity set such as FrobeniusBall(0.1), got {show(sensitivity)} instead."
        )
    sensitivity.check_shape(shape)
    magnitude = query.magnitude
    if not isinstance(magnitude, np.ndarray) or magnitude.ndim != 2 or not _broadcasts(magnitude.shape, shape):
        raise ParameterError(f"{name}.magnitude must be an array that broadcasts to {shape}, such as shape (1, 1).")


def _broadcasts(given: tuple[int, ...], shape: tuple[int, int]) -> bool:
    return all(size in (1, full) for size, full in zip(given, shape, strict=True))


def check_answer(query: MatrixQuery, answer: Any) -> Floats:
    """The answer of a query as floats, or a `DataError` if it is not what the query declares.

    Privacy
    -------
    The sensitivity is claimed for answers of the declared shape and magnitude. An answer outside is refused rather
    than clipped, since clipping could produce a change that the sensitivity set does not hold.
    """
    array = np.asarray(answer)
    if array.dtype.kind not in "biuf" or array.shape != query.shape:
        raise DataError(
            f"the answer of {type(query).__name__} must be real numbers of shape {query.shape}, "
            f"got {array.dtype} of {array.shape} instead."
        )
    step = max(1, _BLOCK // query.shape[1])  # in blocks of rows, since an answer may be as large as memory allows
    for start in range(0, query.shape[0], step):
        rows = slice(start, start + step)
        block, largest = array[rows], query.magnitude if len(query.magnitude) == 1 else query.magnitude[rows]
        if not np.isfinite(block).all():
            raise DataError(f"the answer of {type(query).__name__} must be finite, got NaN or infinity instead.")
        if not (np.abs(block) <= largest * (1 + 1e-9)).all():
            raise DataError(f"the answer of {type(query).__name__} must not exceed its public magnitude; widen it.")
        if query.symmetric and not (np.abs(block - array[:, rows].T) <= 1e-9 * largest).all():  # up to rounding
            raise DataError(f"the answer of {type(query).__name__} must be symmetric, as its side is 'both'.")
    return array.astype(np.float64, copy=False)


def parse_records(records: Any) -> int:
    """The public number of records."""
    number = check_integer(records, "records (the public number of records)", at_least=1)
    return check_integer(number, "records", at_most=_MOST_RECORDS, rule="at most 2^50")


def parse_person(person: Any, columns: Sequence[str] | None) -> Person | None:
    """The `Person` that the argument of a query stands for; its column must not be one of those that are released."""
    found = Person.parse(person)
    if found is not None and found.column in (columns or ()):
        raise ParameterError(
            f"person must name a column of ids, and {found.column!r} is among the columns that are released. Leave it "
            "out there."
        )
    return found


def check_count(rows: int, records: int) -> None:
    """Raise a `ParameterError` unless there are as many rows as the public number of records says."""
    if rows != records:
        raise ParameterError(f"records must be the number of rows of the data, {rows}, got {records} instead.")


def check_domain(rows: int, records: int, neighbours: Neighbours) -> None:
    """Raise an error unless the number of records is the public one or, where it is private, at most twice that."""
    if neighbours is Neighbours.REPLACE:
        check_count(rows, records)
    elif rows > 2 * records:
        raise DataError(f"a data set must have at most 2 x {records} records; give a larger public number of records.")


def require_replace(query: MatrixQuery, why: str) -> None:
    """Raise a `ParameterError` unless the neighbours are 'replace'; `why` completes the sentence."""
    if query.neighbours is not Neighbours.REPLACE:
        raise ParameterError(f"neighbours must be 'replace' for {why}")
