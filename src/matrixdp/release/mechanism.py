"""The one place where private data and noise meet.

The answer is whitened, rounded to integers, and exact Gaussian integers are added; all that follows is post-processing.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.design.design import Design
from matrixdp.design.grid import monotone
from matrixdp.errors import ParameterError, StreamError, show
from matrixdp.ledger import Ledger
from matrixdp.noise import Stream, apply_factors, draw_gaussian
from matrixdp.noise.triangle import triangle_to_vector, vector_to_triangle
from matrixdp.queries import Identity
from matrixdp.release.charging import open_account
from matrixdp.release.noisy_rows import MonotoneRows
from matrixdp.release.result import Release
from matrixdp.types import Floats

_BLOCK = 1 << 18  # entries of a data set that are released at a time


def release(
    design: Design,
    data: Any,
    *,
    clip: bool = True,
    missing: str = "error",
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    request: str | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
) -> Release:
    """Release the answer of a design's query on private data.

    Parameters
    ----------
    design : Design
    data : array, pandas, polars or Arrow table of shape (records, features), or what the query takes
    clip : bool
        Move records into their bounds; otherwise one outside is an error.
    missing : 'error' or 'midpoint'
        What NaN and infinities are.
    ledger : Ledger or path, optional
        Where the release is charged, before its first random bit is drawn.
    dataset : str, optional
        Name of the data set in the ledger.
    request : str, optional
        An id. Asked for again under the same id, the stored release is given back and nothing is spent. The data are
        not looked at then: after a correction of the data use a new id.
    stream : Stream, optional
        For simulations only. A release that protects anything draws from a new stream, keyed from the operating system.
    simulation : bool
        Must be said when a stream is given; the release carries the mark for ever.

    Privacy
    -------
    `design.distance`-GDP for `design.neighbours`, under the assumption that AES-256 in counter mode cannot be told
    from random bits. An error in the data comes before anything is charged or drawn. Without a ledger nobody adds up
    what is spent.
    """
    check_stream(stream, simulation=simulation)
    if not isinstance(clip, bool):
        raise ParameterError(f"clip must be True or False, got {show(clip)} instead.")
    account = open_account(design, ledger, dataset, request, simulation=simulation)
    if account is not None and (stored := account.stored()) is not None:
        return Release.from_json(stored)
    with np.errstate(all="ignore"):  # a warning would speak of private data
        prepared = _prepare(design, data, clip=clip, missing=missing)
    receipt = account.charge() if account is not None else None
    stream = Stream() if stream is None else stream
    if monotone(design.query, design.noise):
        with np.errstate(all="ignore"):
            matrix = _noisy_rows(design, prepared, stream)
    else:
        matrix = _unwhiten(design, prepared + draw_gaussian(stream, design.grid.bits, shape=prepared.shape))
    released = Release(design.query.finish(matrix), design, simulation=simulation)
    if account is not None and receipt is not None:
        account.complete(receipt, released.to_json)
    return released


def check_stream(stream: Stream | None, *, simulation: bool) -> None:
    """An error for a stream given from outside, unless what it makes is marked as a simulation."""
    if stream is not None and not isinstance(stream, Stream):
        raise ParameterError(f"stream must be a Stream, such as Stream(seed=1), got {show(stream)} instead.")
    if stream is not None and not simulation:
        raise StreamError(
            "a stream that others may know or use again must not protect data. "
            "Leave it out, or say simulation=True and the release is marked as a simulation."
        )


def _noisy_rows(design: Design, records: NDArray[np.generic], stream: Stream) -> Floats:
    """Noisy records of a monotone query less the midpoint, of shape (records, features), made block by block."""
    rows, columns = design.query.shape
    out = np.empty((rows, columns))
    step = max(1, _BLOCK // columns)
    integers = np.empty((min(step, rows), columns), np.int64)
    grid = MonotoneRows(design)
    for start in range(0, rows, step):
        block, noisy = out[start : start + step], integers[: min(step, rows - start)]
        grid.steps(records[start : start + step], out=block)
        draw_gaussian(stream, design.grid.bits, out=noisy)
        noisy += block.astype(np.int64)
        grid.values(noisy, out=block)
    return out


def _prepare(design: Design, data: Any, *, clip: bool, missing: str) -> NDArray[Any]:
    """The private answer in whole steps of the grid, ready for noise, or the records of a monotone query, which are
    rounded block by block; every error of the data comes from here.
    """
    query = design.query
    if monotone(query, design.noise):
        assert isinstance(query, Identity)
        return query.bounds.checked(query.checked(data), clip=clip, missing=missing)
    answer = query.evaluate(data, clip=clip, missing=missing)
    if design.flat:
        answer = answer.reshape(-1, 1)
    whitened = design.noise.whiten(answer)
    if query.symmetric and not design.flat:
        whitened = triangle_to_vector(whitened)
    steps = np.rint(whitened * 2.0**design.grid.bits)
    return np.clip(steps, -design.grid.limit, design.grid.limit).astype(np.int64)


def _unwhiten(design: Design, integers: NDArray[np.int64]) -> Floats:
    """Noisy integers back in the answer's units; post-processing."""
    noisy: Floats = (integers.astype(np.float64) + 0.5) * 2.0**-design.grid.bits
    left, right = design.noise.factors()
    if design.flat:
        matrix = apply_factors(left, noisy, right).reshape(design.query.shape)
    elif design.query.symmetric:
        matrix = apply_factors(left, vector_to_triangle(noisy, design.query.shape[0]), right)
    else:
        return apply_factors(left, noisy, right)
    return (matrix + matrix.T) / 2 if design.query.symmetric else matrix
