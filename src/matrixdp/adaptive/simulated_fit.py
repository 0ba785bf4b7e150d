"""Repetitions of a fit on simulated records, which may stand for many more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.fit import fit_moment
from matrixdp.adaptive.grid_records import GridRecords, PrivateRecords, Sums, grid_levels
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.settings import Settings
from matrixdp.domain.bounds import Bounds
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries.moment_sums import MomentSum
from matrixdp.types import Floats

_NUMBERS = 200_000  # of simulated records times features
_LEAST_RECORDS = 2_000


def simulated_number(public: int, features: int) -> int:
    """How many records to simulate for `public` ones: all, or enough to show how a fit treats them."""
    return min(public, max(_LEAST_RECORDS, _NUMBERS // features))


class RepeatedRecords(PrivateRecords):
    """Each record of a smaller set, counted as often as makes `count` records of them. For simulations only."""

    def __init__(self, records: PrivateRecords, count: int) -> None:
        self._records, self._times = records, count / len(records)
        self.shape, self.levels, self.coordinates = (count, records.shape[1]), records.levels, records.coordinates

    def counter(self, cuts: Sequence[float]) -> Callable[[float], int]:
        """Count the smaller set."""
        count = self._records.counter(cuts)
        return lambda cut: round(self._times * count(cut))

    def excess(self, radius: float, limit: float) -> int:
        """Sum over the smaller set, times the repetitions."""
        return round(self._times * self._records.excess(radius, limit))

    def split(self, ball: Bounds, public: int) -> tuple[Sums, MomentSum]:
        """Sums over the smaller set, which are not repeated."""
        return self._records.split(ball, public)

    def transform(self, coordinates: Coordinates) -> PrivateRecords:
        """The same records in public coordinates."""
        return RepeatedRecords(self._records.transform(coordinates), len(self))

    def moment(self, ball: Bounds, public: int) -> Floats:
        """Mean over the smaller set, times ``count/public``."""
        return self._records.moment(ball, len(self._records)) * (len(self) / public)


def repeat_fit(
    records: Floats,
    settings: Settings,
    privacy: Privacy,
    neighbours: Neighbours,
    *,
    public: int,
    basis: Floats | None,
    stream: Stream,
    times: int,
) -> list[Fitted]:
    """Fits of the same simulated records in [-1, 1]^d, of shape (n, d), each with noise of its own.

    With fewer than `public` records, each counts as ``public/n`` records: the noise is that of `public` records.
    """
    d = records.shape[1]
    bounds = Bounds(-np.ones(d), np.ones(d))
    on_grid: PrivateRecords = GridRecords(bounds, records, grid_levels(public))
    if len(records) != public:
        on_grid = RepeatedRecords(on_grid, public)
    fits = []
    with np.errstate(all="ignore"):
        for index in range(times):
            budget = FitBudget(privacy, neighbours, stream.child(index), simulation=True)
            fits.append(fit_moment(on_grid, settings, budget, public=public, basis=basis))
    return fits
