"""The noisy answer of a single design, charged once; and directions that are learned by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from matrixdp.checks import check_flag
from matrixdp.design import isotropic, make_design
from matrixdp.design.design import Design, check_design
from matrixdp.display import short_repr
from matrixdp.domain import Bounds, Person, check_missing
from matrixdp.ledger import Receipt
from matrixdp.mechanisms.mechanism import draw_noisy_answer, prepare
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import SecondMoment
from matrixdp.release.charging import Account, Paid, Price, design_price, make_once
from matrixdp.release.result import Release, require_same_release
from matrixdp.types import Floats


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
    """`Design.release` for an account; a repeat of the request must have its `aims`, further public options, again."""
    check_design(design)
    check_flag(clip, "clip")
    check_missing(missing)
    request = None if account is None else account.request

    def find_price() -> Price:
        price = design_price(design, data, clip=clip, missing=missing, request=request)
        return replace(price, options={**price.options, **aims})

    def make(prepared: Any, _: Receipt | None) -> Release:
        noisy = draw_noisy_answer(design, prepared, stream, simulation=simulation)
        return Release(noisy.matrix, design, simulation=noisy.simulation, missing=missing)

    with np.errstate(all="ignore"):  # a warning could reveal private data
        return make_once(
            account,
            find_price,
            read=lambda text, account: require_same_release(Release.from_json(text), design, missing, account),
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

    @classmethod
    def of(cls, release: Release) -> PrincipalDirections:
        """The eigenvectors of a released second moment."""
        moments, directions = np.linalg.eigh(release.matrix)
        return cls(directions[:, ::-1].copy(), moments[::-1].copy(), release)

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
        As for `Design.release`.

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
    query = SecondMoment(bounds, records, person=Person.parse(person))
    design = make_design(query, privacy, allocation=isotropic(), share=share)
    return PrincipalDirections.of(design.release(data, **options))
