"""`release`: the noisy answer of a single design, charged once; and directions that are learned by one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from matrixdp.checks import check_flag
from matrixdp.design import isotropic, make_design
from matrixdp.design.design import Design, check_design
from matrixdp.display import short_repr
from matrixdp.domain.bounds import Bounds, check_missing
from matrixdp.domain.person import Person
from matrixdp.ledger import Ledger, Receipt
from matrixdp.mechanisms.mechanism import draw_noisy_answer, prepare
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import SecondMoment
from matrixdp.release.charging import Account, Paid, Price, design_price, make_once, open_account
from matrixdp.release.result import Release, require_same_release
from matrixdp.types import Floats


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
        noisy = draw_noisy_answer(design, prepared, stream, simulation=simulation)
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


@dataclass(frozen=True, eq=False)
class PrincipalDirections:
    """Directions learned from private data, and their privacy cost.

    Attributes
    ----------
    directions : float64 array of shape (m, m)
        Orthonormal columns, the largest second moment first.
    moments : float64 array of shape (m,)
        Noisy second moment along each.
    release : Release
        The noisy second moment that they are eigenvectors of.
    """

    directions: Floats
    moments: Floats
    release: Release

    __repr__ = short_repr

    @property
    def mu(self) -> float:
        """Gaussian differential privacy of the directions."""
        return self.release.mu


def principal_directions(
    data: Any,
    bounds: Bounds,
    privacy: Privacy,
    *,
    records: int,
    share: float = 0.2,
    person: Person | str | None = None,
    **options: Any,
) -> PrincipalDirections:
    """Eigenvectors of a private second moment about the bounds' midpoint.

    Parameters
    ----------
    data : array, pandas, polars or Arrow table of shape (records, m)
    bounds : Bounds
    privacy : Privacy
        The whole budget.
    records : int
        The public number of records.
    share : float
        Share of ``privacy.mu^2`` to spend here; give ``share=1 - share`` to the design that uses the directions.
    person : str or Person, optional
        The column that says whose row it is, if people may have several rows.
    **options
        As for `matrixdp.release.matrix.release`.

    Privacy
    -------
    Replace-one neighbours. `mu` is spent; the directions are public afterwards.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> data = rng.uniform(-1, 1, (1000, 1)) * [1.0, 1.0] + rng.uniform(-0.1, 0.1, (1000, 2))
    >>> learned = principal_directions(data, Bounds([-2, -2], [2, 2]), Privacy(1, 1e-5), records=1000)
    >>> learned.directions.shape
    (2, 2)
    """
    account = open_account(
        *(options.pop(name, None) for name in ("ledger", "dataset", "request", "allowance")),
        stream=options.get("stream"),
        simulation=options.get("simulation", False),
    )
    return learn_directions(data, bounds, privacy, account, records=records, share=share, person=person, **options)


def learn_directions(
    data: Any,
    bounds: Bounds,
    privacy: Privacy,
    account: Account | None,
    *,
    records: int,
    share: float,
    person: Person | str | None = None,
    **options: Any,
) -> PrincipalDirections:
    """`principal_directions` for an account; options are as for `release_design`."""
    query = SecondMoment(bounds, records, person=Person.parse(person))
    design = make_design(query, privacy, allocation=isotropic(), share=share)
    released = release_design(design, data, account, **options).release
    moments, directions = np.linalg.eigh(released.matrix)
    return PrincipalDirections(directions[:, ::-1].copy(), moments[::-1].copy(), released)
