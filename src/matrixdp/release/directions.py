"""Private principal directions, for a share of a budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.design import isotropic, make_design
from matrixdp.display import short_repr
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person
from matrixdp.privacy import Privacy
from matrixdp.queries import SecondMoment
from matrixdp.release.result import Release
from matrixdp.types import Floats


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
    query = SecondMoment(bounds, records, person=Person.parse(person))
    released = make_design(query, privacy, allocation=isotropic(), share=share).release(data, **options)
    moments, directions = np.linalg.eigh(released.matrix)
    return PrincipalDirections(directions[:, ::-1].copy(), moments[::-1].copy(), released)
