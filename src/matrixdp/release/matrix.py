"""`release`: check, charge, draw, finish."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from matrixdp.checks import check_flag
from matrixdp.design.design import Design, check_design
from matrixdp.device import is_on_device
from matrixdp.domain.clipping import check_missing
from matrixdp.errors import ParameterError, StreamError, show
from matrixdp.ledger import Ledger
from matrixdp.noise import Stream
from matrixdp.release.charging import Account, open_account
from matrixdp.release.device_rows import noisy_device_rows
from matrixdp.release.interception import current_answer
from matrixdp.release.mechanism import add_noise, prepare
from matrixdp.release.request_options import list_options, require_same_release
from matrixdp.release.result import Release


def release(
    design: Design,
    data: Any,
    *,
    clip: bool = True,
    missing: str = "error",
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    request: str | None = None,
    allowance: str | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
) -> Release:
    """Release the answer of a design's query on private data.

    Parameters
    ----------
    design : Design
    data : array, pandas, polars or Arrow table of shape (records, features), or what the query takes
        Arrays on a GPU (CuPy, PyTorch, JAX) are summed there; a noisy data set stays there (`Release.to_host`).
    clip : bool
        Move records into their bounds; otherwise one outside is an error.
    missing : 'error' or 'midpoint'
        Whether NaN and infinity raise an error or are replaced with the midpoint of their bounds.
    ledger : Ledger or path, optional
        Where the release is charged, before its first random bit is drawn.
    dataset : str, optional
        Name of the data set in the ledger.
    request : str, optional
        Request id. A later call with the same id and the same options returns the stored release, without a charge and
        without reading the data: after a correction of the data, use a new id. With another design, `clip`, `missing`
        or way to read the data, it is refused with a `LedgerError` that names what differs. If another process releases
        the same request, its release is waited for (`Ledger.wait`).
    allowance : str, optional
        The allowance of the data set that pays for the release. Without one, what is not allotted pays for it.
    stream : Stream, optional
        For simulations only. A release that protects anything draws from a new stream, keyed from the operating system.
    simulation : bool
        Must be True if a stream is given. The release is permanently marked as a simulation.

    Privacy
    -------
    `design.distance`-GDP for `design.neighbours`, under the assumption that AES-256 in counter mode cannot be told
    from random bits. Errors in the data are raised before anything is charged or drawn. Without a ledger, the
    cumulative privacy loss is not tracked.
    """
    account: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "request": request, "allowance": allowance}
    return release_with_options(design, data, {}, clip, missing, stream=stream, simulation=simulation, **account)


def release_with_options(
    design: Design,
    data: Any,
    options: Mapping[str, Any],
    clip: bool = True,
    missing: str = "error",
    *,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    request: str | None = None,
    allowance: str | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
) -> Release:
    """`release` for a caller with further public `options`, which a repeat of the request must have again."""
    check_stream(stream, simulation=simulation)
    check_design(design)
    check_flag(clip, "clip")
    check_missing(missing)
    account = open_account(
        design,
        ledger,
        dataset,
        request,
        allowance,
        simulation=simulation,
        options=lambda: {**list_options(design, data, clip=clip, missing=missing), **options},
    )
    if account is not None and (stored := account.stored()) is not None:
        return _read_stored(stored, design, missing, account)
    with np.errstate(all="ignore"):  # a warning could reveal private data
        prepared = prepare(design, data, clip=clip, missing=missing)
        receipt = account.charge_or_find() if account is not None else None
        if isinstance(receipt, str):
            assert account is not None  # otherwise there is no receipt
            return _read_stored(receipt, design, missing, account)
        answer = current_answer()
        if is_on_device(prepared):
            matrix = noisy_device_rows(design, prepared, Stream() if stream is None else stream)
        elif answer is None:
            matrix = design.query.finish(add_noise(design, prepared, Stream() if stream is None else stream))
        else:
            matrix, simulation = design.query.finish(answer(design, prepared)), True
    released = Release(matrix, design, simulation=simulation, missing=missing)
    if account is not None and receipt is not None:
        account.complete(receipt, released.to_json)
    return released


def _read_stored(text: str, design: Design, missing: str, account: Account) -> Release:
    """The release of an earlier request, which must have the same options as far as it tells them."""
    released = Release.from_json(text)
    require_same_release(released, design, missing, account)
    return released


def check_stream(stream: Stream | None, *, simulation: bool) -> None:
    """Raise an error for a stream from outside, unless the release is marked as a simulation."""
    check_flag(simulation, "simulation")
    if stream is not None and not isinstance(stream, Stream):
        raise ParameterError(f"stream must be a Stream, such as Stream(seed=1), got {show(stream)} instead.")
    if stream is not None and not simulation:
        raise StreamError(
            "a stream that others may know or use again must not protect data. "
            "Leave it out, or say simulation=True and the release is marked as a simulation."
        )
