"""`release`: the noisy answer of a single design, charged once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from matrixdp.checks import check_flag
from matrixdp.design.design import Design, check_design
from matrixdp.domain.bounds import check_missing
from matrixdp.ledger import Ledger, Receipt
from matrixdp.mechanisms.mechanism import draw_answer, prepare
from matrixdp.noise import Stream
from matrixdp.release.charging import Account, Paid, Price, design_price, make_once, open_account
from matrixdp.release.result import Release, require_same_release


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
    account = open_account(ledger, dataset, request, allowance, stream=stream, simulation=simulation)
    released: Release
    released, _ = release_design(
        design, data, account, clip=clip, missing=missing, stream=stream, simulation=simulation
    )
    return released


def release_design(
    design: Design,
    data: Any,
    account: Account | None,
    *,
    clip: bool = True,
    missing: str = "error",
    aims: Mapping[str, Any] = MappingProxyType({}),
    ready: Callable[[], object] | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
) -> Paid:
    """`release` for an account; `aims` are further public options, which a repeat of the request must have again."""
    check_design(design)
    check_flag(clip, "clip")
    check_missing(missing)

    request = None if account is None else account.request

    def find_price() -> Price:
        price = design_price(design, data, clip=clip, missing=missing, request=request)
        return replace(price, options={**price.options, **aims})

    def read(text: str, account: Account) -> Release:
        released = Release.from_json(text)
        require_same_release(released, design, missing, account)
        return released

    def make(prepared: Any, _: Receipt | None) -> Release:
        noisy = draw_answer(design, prepared, stream, simulation=simulation)
        return Release(noisy.matrix, design, simulation=noisy.simulation, missing=missing)

    with np.errstate(all="ignore"):  # a warning could reveal private data
        return make_once(
            account,
            find_price,
            read=read,
            prepare=lambda: prepare(design, data, clip=clip, missing=missing),
            make=make,
            ready=ready,
        )
