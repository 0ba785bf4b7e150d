"""Repetitions of a fit on simulated records, which may stand for many more."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.fit import fit_moment
from matrixdp.adaptive.grid_records import GridRecords, PrivateRecords, grid_levels
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.record_families import simulate_records
from matrixdp.adaptive.settings import settings_for
from matrixdp.adaptive.statistics import Statistics, moments_of, read_off
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person
from matrixdp.mechanisms.interception import pass_releases
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.types import Floats

if TYPE_CHECKING:
    from matrixdp.adaptive.moment import PrivateMoment

_NUMBERS = 200_000  # of simulated records times features
_LEAST_RECORDS = 2_000
REPETITIONS = 2  # fits of the same simulated records, for error bars


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

    def transform(self, coordinates: Coordinates) -> PrivateRecords:
        """The same records in public coordinates."""
        return RepeatedRecords(self._records.transform(coordinates), len(self))

    def moment(self, ball: Bounds, public: int) -> Floats:
        """Mean over the smaller set, times ``count/public``."""
        return self._records.moment(ball, len(self._records)) * (len(self) / public)


@dataclass(frozen=True, eq=False)
class FitOptions:
    """Public options of a fit that is repeated on simulated records.

    Attributes
    ----------
    bounds : Bounds
    privacy : Privacy
    neighbours : Neighbours
    records : int
        The public number of records.
    aim : str
    basis : float64 array of shape (d, d) or None
    person : Person or None
        Where k rows of a person count, the noise is k times that of one record.
    """

    bounds: Bounds
    privacy: Privacy
    neighbours: Neighbours
    records: int
    aim: str
    basis: Floats | None = None
    person: Person | None = None

    @classmethod
    def of(cls, moment: PrivateMoment) -> FitOptions:
        """The options of a private moment."""
        asked = moment.privacy, moment.neighbours, moment.records
        return cls(moment.bounds, *asked, moment.aim, moment.basis, moment.person)


@dataclass(frozen=True, eq=False)
class SimulatedErrors:
    """Root mean square errors of a fit of simulated records, in units of the halfwidths of the bounds.

    Attributes
    ----------
    errors : dict of float64 arrays
        One for each of the statistics of `read_off`.
    mean, variances : float64 arrays of shape (d,)
        The fitted ones, on average.
    """

    errors: Statistics
    mean: Floats
    variances: Floats


def simulate_errors(
    family: str, mean: Floats, covariance: Floats, options: FitOptions, seed: int, times: int
) -> SimulatedErrors:
    """Errors of a fit of simulated records, from several repetitions with the same records.

    Parameters
    ----------
    family : str
        Of `record_families`.
    mean, covariance : float64 arrays of shape (d,) and (d, d)
        Of the records, scaled to [-1, 1].
    options : FitOptions
    seed : int
        Public.
    times : int
        Number of repetitions.
    """
    units = options.bounds.halfwidths
    number = simulated_number(options.records, mean.size)
    records = simulate_records(family, mean, covariance, number, np.random.default_rng(seed))
    fits = repeat_fit(records, options, Stream(seed), times)
    truth = read_off(*moments_of(records), units)
    found = [read_off(fit.mean, fit.covariance, units, fit.second) for fit in fits]
    errors = {name: _root_mean_square([one[name] - truth[name] for one in found]) for name in truth}
    location = np.mean([fit.mean for fit in fits], axis=0)
    return SimulatedErrors(errors, location, np.mean([np.diagonal(likeliest(fit)) for fit in fits], axis=0))


def likeliest(fitted: Fitted) -> Floats:
    """Covariance to simulate for a fit, of shape (d, d): that of the second moment, which is not set to zero."""
    covariance = fitted.second - np.multiply.outer(fitted.mean, fitted.mean)
    return (covariance + covariance.T) / 2


def public_seed(fitted: Fitted) -> int:
    """A seed for simulations: the same private answers have the same error bars."""
    answers = fitted.mean.tobytes() + fitted.covariance.tobytes()
    return int.from_bytes(hashlib.sha256(answers).digest()[:8], "big")


def repeat_fit(records: Floats, options: FitOptions, stream: Stream, times: int) -> list[Fitted]:
    """Fits of the same simulated records in [-1, 1]^d, of shape (n, d), each with noise of its own.

    With fewer records than `options.records`, each counts as several: the noise is that of the public number.
    """
    d, public = records.shape[1], options.records
    on_grid: PrivateRecords = GridRecords(Bounds(-np.ones(d), np.ones(d)), records, grid_levels(public))
    if len(records) != public:
        on_grid = RepeatedRecords(on_grid, public)
    fits = []
    with np.errstate(all="ignore"), pass_releases():
        for index in range(times):
            own = stream.child(index)
            budget = FitBudget(options.privacy, options.neighbours, own, simulation=True, person=options.person)
            settings = settings_for(options.aim)
            fits.append(fit_moment(on_grid, settings, budget, public=public, basis=options.basis))
    return fits


def _root_mean_square(errors: list[Floats]) -> Floats:
    return np.asarray(np.sqrt(np.mean(np.square(errors), axis=0)))
