"""Principal components of a private moment, and private principal directions for a share of a budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from matrixdp.checks import check_integer
from matrixdp.design import isotropic, make_design
from matrixdp.display import short_repr
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person
from matrixdp.privacy import Privacy
from matrixdp.queries import SecondMoment
from matrixdp.release import Release
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
        As for `matrixdp.release.release`.

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


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components as rows, of shape (k, m), and the variance along each, of shape (k,)."""

    components: Floats
    variances: Floats
    ratios: Floats

    __repr__ = short_repr


class _Covariance(Protocol):
    @property
    def covariance(self) -> Floats: ...


def principal_components(moment: _Covariance, count: int | float | None = None) -> Components:
    """Principal components of a private moment, in the data's units; post-processing.

    Parameters
    ----------
    moment : PrivateMoment
        Fitted with ``aim='components'``.
    count : int, float or None
        Number of components, share of the variance that they must explain, or None for all.
    """
    values, vectors = np.linalg.eigh(moment.covariance)
    values, rows = np.maximum(values[::-1], 0.0), vectors[:, ::-1].T
    signs = np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)])
    total = float(values.sum())
    ratios = values / total if total > 0 else np.full(values.size, 1 / values.size)
    k = check_count(count, values.size)
    if isinstance(k, float):
        k = min(int(np.searchsorted(np.cumsum(ratios), k)) + 1, values.size)
    return Components((rows * signs[:, None])[:k], values[:k], ratios[:k])


def check_count(count: Any, size: int) -> int | float:
    """Validated number of components from 1 to `size`, or share of the variance strictly between 0 and 1."""
    if count is None:
        return size
    if isinstance(count, float | np.floating) and 0 < count < 1:
        return float(count)
    rule = f"an integer from 1 to {size}, or a share strictly between 0 and 1"
    return check_integer(count, "n_components", at_least=1, at_most=size, rule=rule)
