"""Fits of simulated records, which may stand for many more, and what is read off them.

The strategies of a fit run on plain arrays with simulated noise (`SimulatedMeasurements`): no query is designed, and
nothing is released.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from matrixdp.adaptive.fit import Purpose, fit_moment
from matrixdp.adaptive.measure import SimulatedMeasurements, SimulatedRecords
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.record_families import simulate_records
from matrixdp.adaptive.settings import settings_for
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person, most_rows
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.types import Floats

if TYPE_CHECKING:
    from matrixdp.adaptive.moment import PrivateMoment

_NUMBERS = 60_000  # of simulated records times features
_LEAST_RECORDS = 2_000

Statistics = dict[str, Floats]


def simulated_number(public: int, features: int) -> int:
    """How many records to simulate for `public` ones: all, or enough to show how a fit treats them."""
    return min(public, max(_LEAST_RECORDS, _NUMBERS // features))


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
    units, rng = options.bounds.halfwidths, np.random.default_rng(seed)
    number = simulated_number(options.records, mean.size)
    records = SimulatedRecords.of(simulate_records(family, mean, covariance, number, rng))
    fits = [fit_simulated(records, options, rng) for _ in range(times)]
    means, covariances, seconds = (np.array([getattr(fit, name) for fit in fits]) for name in Fitted.READ)
    truth, found = read_off(*records.moments, units), read_off(means, covariances, units, seconds)
    errors = {name: np.sqrt(np.mean(np.square(found[name] - truth[name]), axis=0)) for name in truth}
    variances = np.mean([np.diagonal(likeliest(fit)) for fit in fits], axis=0)
    return SimulatedErrors(errors, np.mean(means, axis=0), variances)


def fit_simulated(records: SimulatedRecords, options: FitOptions, rng: np.random.Generator) -> Fitted:
    """A fit of simulated records, with noise of its own."""
    mu = options.privacy.mu / most_rows(options.person)
    measure = SimulatedMeasurements(records, options.records, mu, options.neighbours, rng, options.person)
    with np.errstate(all="ignore"):
        return fit_moment(measure, Purpose(settings_for(options.aim), options.basis))


def likeliest(fitted: Fitted) -> Floats:
    """Covariance to simulate for a fit, of shape (d, d): that of the second moment, which is not set to zero."""
    covariance = fitted.second - np.multiply.outer(fitted.mean, fitted.mean)
    return (covariance + covariance.T) / 2


def public_seed(fitted: Fitted) -> int:
    """A seed for simulations: the same private answers have the same error bars."""
    answers = fitted.mean.tobytes() + fitted.covariance.tobytes()
    return int.from_bytes(hashlib.sha256(answers).digest()[:8], "big")


def read_off(mean: Floats, covariance: Floats, units: Floats, second: Floats | None = None) -> Statistics:
    """Everything that is read off a mean and a covariance of records in [-1, 1]^d.

    Parameters
    ----------
    mean, covariance : float64 arrays of shape (..., d) and (..., d, d)
    units : float64 array of shape (d,)
        Units of the features, for eigenvalues: the other statistics are in units of the halfwidths of the bounds.
    second : float64 array of shape (..., d, d), optional
        Second moment about the midpoint, where it does not follow from mean and covariance.

    Examples
    --------
    >>> {name: value.tolist() for name, value in read_off(np.zeros(1), np.ones((1, 1)), np.array([2.0])).items()}
    {'mean': [0.0], 'second_moment': [[1.0]], 'covariance': [[1.0]], 'correlation': [[1.0]], 'eigenvalue': [4.0]}
    """
    return {
        "mean": mean,
        "second_moment": covariance + mean[..., :, None] * mean[..., None, :] if second is None else second,
        "covariance": covariance,
        "correlation": np.clip(_correlations(covariance), -1.0, 1.0),
        "eigenvalue": np.asarray(
            np.linalg.eigvalsh(covariance * np.multiply.outer(units, units))[..., ::-1], np.float64
        ),
    }


def _correlations(covariance: Floats) -> Floats:
    """Correlations of covariances of shape (..., d, d), zero for features without variance."""
    variances = np.diagonal(covariance, axis1=-2, axis2=-1)
    inverse = np.where(variances > 0, 1 / np.sqrt(np.where(variances > 0, variances, 1.0)), 0.0)
    found = covariance * inverse[..., :, None] * inverse[..., None, :]
    places = np.arange(found.shape[-1])
    found[..., places, places] = 1.0
    return np.asarray(found)


def moments_of(records: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance, over N, of records of shape (n, d)."""
    mean = records.mean(axis=0)
    centred = records - mean
    return mean, centred.T @ centred / len(records)


def sampling_errors(records: Floats, count: float, units: Floats) -> Statistics:
    """Standard deviation of each statistic for samples of `count` records from a population like `records`.

    To first order, from the influence of each record.

    Parameters
    ----------
    records : float64 array of shape (n, d)
    count : float
    units : float64 array of shape (d,)
    """
    mean, covariance = moments_of(records)
    centred = records - mean
    std = np.sqrt(np.diagonal(covariance))
    white = centred / np.where(std > 0, std, np.inf)
    correlation = read_off(mean, covariance, units)["correlation"]
    fourth, third = _mean_product(white**2, white**2), _mean_product(white**3, white)
    own = np.diagonal(fourth)
    relative = (
        fourth - correlation * (third + third.T) + correlation**2 * (own[:, None] + own[None, :] + 2 * fourth) / 4
    )
    values, vectors = np.linalg.eigh(covariance * np.multiply.outer(units, units))
    scores = (centred * units) @ vectors
    variances = {
        "mean": np.diagonal(covariance),
        "second_moment": _mean_product(records**2, records**2) - _mean_product(records, records) ** 2,
        "covariance": _mean_product(centred**2, centred**2) - covariance**2,
        "correlation": relative,
        "eigenvalue": ((scores**4).mean(axis=0) - values**2)[::-1],
    }
    return {name: np.sqrt(np.maximum(variance, 0.0) / count) for name, variance in variances.items()}


def _mean_product(left: Floats, right: Floats) -> Floats:
    return np.asarray(left.T @ right / len(left))
