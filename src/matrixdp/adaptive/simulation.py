"""Fits of simulated records, which may stand for many more, and what is read off them.

A private moment tells the mean and the covariance of the records, not their shape; yet what clipping takes depends on
the shape. Families of records in [-1, 1]^d cover the shapes that tables have, from friendly to hostile. A feature
whose variance does not fit between its bounds in such a shape has many of its values at the bounds, as features with
two values have.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from matrixdp.adaptive.fit import Purpose, fit_moment
from matrixdp.adaptive.measure import SimulatedMeasurements, SimulatedRecords
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.settings import settings_for
from matrixdp.adaptive.shrinkage import find_directions, nearest_of_same_trace, psd_root
from matrixdp.answers.moments import correlation_from_covariance
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person, most_rows
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.types import Floats

_NUMBERS = 30_000  # of simulated records times features
_LEAST_RECORDS = 2_000
_LONG_SHARE, _LONG_TIMES = 0.03, 7.0  # of records that are longer than the others, and how much longer
_LOG_STD = 1.0  # of log-normal features: a skewness of 6
_GROUPS = np.array([0.55, 0.25, 0.15, 0.05])  # shares of the records
_CLOSE = 0.02  # share of a variance that clipping to the box may take
_WITHIN = 0.2  # share of the variance within groups, in the directions that separate them
_ROUNDS = 4  # simulations of each family that repeat a fit
_MOST = 4.0  # factor on a mean or a standard deviation between two rounds, or one over it
_TOLERANCE = 3.0  # squared difference between two fits beyond which a simulation counts less

_TINY = 1e-100

Statistics = dict[str, Floats]


def simulated_number(public: int, features: int) -> int:
    """How many records to simulate for `public` ones: all, or enough to show how a fit treats them."""
    return min(public, max(_LEAST_RECORDS, _NUMBERS // features))


@dataclass(frozen=True, eq=False, kw_only=True)
class FitOptions:
    """Public options of a fit, of private or simulated records."""

    bounds: Bounds
    privacy: Privacy
    neighbours: Neighbours
    records: int
    aim: str = "covariance"
    targets: int = 0
    basis: Floats | None = None
    person: Person | None = None

    @cached_property
    def effective_mu(self) -> float:
        """`mu` of one row that counts: where k rows of a person count, the noise is k times that of one record."""
        return self.privacy.mu / most_rows(self.person)


Simulation = tuple[tuple[Floats, Floats], list[Fitted]]  # mean and covariance of simulated records, and fits of them


def simulate_fits(
    family: str, mean: Floats, covariance: Floats, options: FitOptions, seed: int, times: int
) -> Simulation:
    """Mean and covariance of simulated records of a family with about those given, and several fits of them."""
    rng, number = np.random.default_rng(seed), simulated_number(options.records, mean.size)
    records = SimulatedRecords(simulate_records(family, mean, covariance, number, rng))
    return records.moments, [fit_simulated(records, options, rng) for _ in range(times)]


def fit_simulated(records: SimulatedRecords, options: FitOptions, rng: np.random.Generator) -> Fitted:
    """A fit of simulated records, with noise of its own."""
    who = options.effective_mu, options.neighbours
    measure = SimulatedMeasurements(records, options.records, *who, rng, options.person)
    with np.errstate(all="ignore"):
        return fit_moment(measure, Purpose(settings_for(options.aim), options.basis, options.targets))


@dataclass(frozen=True, eq=False)
class RepeatedFit:
    """A fit that was repeated once on each of several simulated data sets, and their weights, of shape (k,)."""

    fits: list[Simulation]
    weights: Floats

    def average(self, errors: Floats) -> Floats:
        """Root mean squares of errors with one row for each simulation, of shape (k, ...)."""
        return np.asarray(np.sqrt(np.tensordot(self.weights, np.square(errors), axes=1)))


def repeat_fit(fitted: Fitted, options: FitOptions) -> RepeatedFit:
    """Fits of records that may have led to a fit: of each family, in several rounds.

    The first round has the mean and covariance of the fit. Each later one corrects those of the round before by how far
    its own fit was from the given one, so that clipping and shrinkage lead to about that. The weight of a simulation is
    ``1/(t + D)`` for a squared difference D of means and variances in units of their noise and of the features' spread.
    """
    seed, wanted = public_seed(fitted), np.maximum(np.diagonal(likeliest(fitted)), 0.0)
    squares = fitted.mean_std**2 + wanted + _TINY, np.diagonal(fitted.std) ** 2 + wanted**2 + _TINY
    found: list[Simulation] = []
    differences = []
    for family in FAMILIES:
        mean, covariance = fitted.mean, likeliest(fitted)
        for _ in range(_ROUNDS):
            found.append(simulate_fits(family, mean, covariance, options, seed + len(found), 1))
            (fit,) = found[-1][1]
            variances = np.diagonal(likeliest(fit))
            apart = (fit.mean - fitted.mean) ** 2 / squares[0] + (variances - wanted) ** 2 / squares[1]
            differences.append(float(apart.mean()))
            mean, covariance = _correct_mean(mean, fitted.mean, fit.mean), _correct(covariance, wanted, variances)
    weights = 1 / (_TOLERANCE + np.minimum(differences, 1 / _TINY))
    return RepeatedFit(found, weights / weights.sum())


def _correct_mean(mean: Floats, wanted: Floats, found: Floats) -> Floats:
    """A mean nearer to one of which a fit finds the wanted one, by one factor: a fit may have clipped all features."""
    along = float(wanted @ found)
    factor = min(max(float(wanted @ wanted) / along, 1 / _MOST), _MOST) if along > 0 else _MOST
    return np.asarray(np.clip(factor * mean, -1.0, 1.0))


def _correct(covariance: Floats, wanted: Floats, found: Floats) -> Floats:
    """A covariance nearer to one of which a fit finds the wanted variances."""
    factor = np.clip(np.sqrt(wanted / np.maximum(found, _TINY)), 1 / _MOST, _MOST)
    return np.asarray(covariance * np.multiply.outer(factor, factor))


def find_errors(simulated: Sequence[Simulation], units: Floats) -> Statistics:
    """Root mean square errors of the statistics of `read_off` over the fits of each simulation, one row each."""
    means, covariances = (np.array(parts)[:, None] for parts in zip(*(truth for truth, _ in simulated), strict=True))
    found = [[(fit.mean, fit.covariance, fit.second) for fit in fits] for _, fits in simulated]
    mean, covariance, second = (np.array([[one[k] for one in row] for row in found]) for k in range(3))
    errors, truth = read_off(mean, covariance, units, second), read_off(means, covariances, units)
    return {name: np.sqrt(np.mean(np.square(errors[name] - truth[name]), axis=1)) for name in truth}


def likeliest(fitted: Fitted) -> Floats:
    """Covariance to simulate for a fit, of shape (d, d): that of the second moment, which is not set to zero."""
    covariance = fitted.second - np.multiply.outer(fitted.mean, fitted.mean)
    return (covariance + covariance.T) / 2


def public_seed(fitted: Fitted) -> int:
    """A seed for simulations: the same private answers have the same error bars."""
    answers = np.concatenate([fitted.mean, fitted.covariance.ravel()])
    # Their last digits depend on the processor.
    digits = np.rint(answers / np.abs(answers).max(initial=_TINY) * 1e7).astype(np.int64)
    return int.from_bytes(hashlib.sha256(digits.tobytes()).digest()[:8], "big")


def read_off(mean: Floats, covariance: Floats, units: Floats, second: Floats | None = None) -> Statistics:
    """Everything that is read off means and covariances of records in [-1, 1]^d, of shape (..., d) and (..., d, d).

    Eigenvalues are for features in `units`, of shape (d,); all else is in units of the halfwidths. `second` is the
    second moment about the midpoint, where it does not follow from mean and covariance.
    """
    return {
        "mean": mean,
        "second_moment": covariance + mean[..., :, None] * mean[..., None, :] if second is None else second,
        "covariance": covariance,
        "correlation": np.clip(correlation_from_covariance(covariance, undefined=0.0), -1.0, 1.0),
        "eigenvalue": np.linalg.eigvalsh(covariance * np.multiply.outer(units, units))[..., ::-1].astype(float),
    }


def moments_of(records: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance, over N, of records of shape (n, d)."""
    mean = records.mean(axis=0)
    centred = records - mean
    return mean, centred.T @ centred / len(records)


def sampling_errors(records: Floats, count: float, units: Floats) -> Statistics:
    """Standard deviation of each statistic for samples of `count` records from a population like `records`, (n, d)."""
    mean, covariance = moments_of(records)
    centred = records - mean
    std = np.sqrt(np.diagonal(covariance))
    white = centred / np.where(std > 0, std, np.inf)
    correlation = read_off(mean, covariance, units)["correlation"]
    fourth, third = _mean_product(white**2, white**2), _mean_product(white**3, white)
    both = np.add.outer(np.diagonal(fourth), np.diagonal(fourth))
    relative = fourth - correlation * (third + third.T) + correlation**2 * (both + 2 * fourth) / 4
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


def gaussian_records(mean: Floats, covariance: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Gaussian records."""
    return mean + rng.standard_normal((count, mean.size)) @ psd_root(covariance).T


def long_records(mean: Floats, covariance: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Gaussian records of which a few are much longer than the others, in all features."""
    lengths = np.where(rng.random((count, 1)) < _LONG_SHARE, _LONG_TIMES, 1.0)
    lengths /= math.sqrt(1 - _LONG_SHARE + _LONG_SHARE * _LONG_TIMES**2)
    return mean + rng.standard_normal((count, mean.size)) * lengths @ psd_root(covariance).T


def lognormal_records(
    mean: Floats, covariance: Floats, count: int, rng: np.random.Generator, *, towards: float
) -> Floats:
    """Log-normal features, with their tail on the side where the bounds are further away, or closer with -1."""
    std, correlation = _split(covariance)
    side, most = towards * np.where(mean > 0, -1.0, 1.0), math.exp(_LOG_STD**2)
    wanted = np.multiply.outer(side, side) * correlation
    latent = np.log(np.maximum(1 + wanted * (most - 1), 1 / most)) / _LOG_STD**2
    normal = _correlated(latent, count, rng)
    values = (np.exp(_LOG_STD * normal) - math.sqrt(most)) / math.sqrt(most * (most - 1))
    return np.asarray(mean + side * std * values)


def rare_records(mean: Floats, covariance: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Features with two values, the rarer one at the further bound."""
    std, correlation = _split(covariance)
    side = np.where(mean > 0, -1.0, 1.0)
    reach = 1 - side * mean  # to the bound on that side
    share = std**2 / (std**2 + reach**2)
    normal = _correlated(np.multiply.outer(side, side) * correlation, count, rng)
    ranks = count - 1 - np.argsort(np.argsort(normal, axis=0), axis=0)
    rare = ranks < np.maximum(np.round(count * share), 1)
    common = np.divide(std**2, reach, out=np.zeros_like(std), where=reach > 0)
    return np.asarray(mean + side * np.where(rare, reach, -common))


def grouped_records(mean: Floats, covariance: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Four groups of unequal size, apart along the leading directions."""
    leading, shares = min(mean.size, len(_GROUPS) - 1), _GROUPS[:-1]
    values, vectors = find_directions(np.diag(shares) - np.multiply.outer(shares, shares))
    centred = np.eye(len(_GROUPS))[:, :-1] - shares
    scores = (centred @ (vectors / np.sqrt(values)))[:, :leading]  # mean zero, identity covariance over the groups
    white = rng.standard_normal((count, mean.size))
    groups = rng.choice(len(_GROUPS), count, p=_GROUPS)
    white[:, -leading:] *= math.sqrt(_WITHIN)
    white[:, -leading:] += math.sqrt(1 - _WITHIN) * scores[groups]
    return mean + white @ psd_root(covariance).T


Family = Callable[[Floats, Floats, int, np.random.Generator], Floats]
FAMILIES: dict[str, Family] = {
    "Gaussian": gaussian_records,
    "long": long_records,
    "skewed": partial(lognormal_records, towards=1.0),
    "opposed": partial(lognormal_records, towards=-1.0),
    "rare": rare_records,
    "grouped": grouped_records,
}


def simulate_records(family: str, mean: Floats, covariance: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Records of one family within [-1, 1]^d, of shape (count, d), with these means and possible variances."""
    records = FAMILIES[family](mean, covariance, count, rng)
    return fit_into_box(records, mean, np.sqrt(np.maximum(np.diagonal(covariance), 0.0)), rng)


def fit_into_box(records: Floats, mean: Floats, std: Floats, rng: np.random.Generator) -> Floats:
    """Records within [-1, 1]^d with this mean and standard deviation of each feature, at most ``sqrt(1 - mean^2)``.

    What clipping takes from a variance is restored by moving values to the bounds, large ones to the upper one.
    """
    own, std = records.std(axis=0), np.minimum(std, np.sqrt(np.maximum(1 - mean**2, 0.0)))
    shape = (records - records.mean(axis=0)) / np.where(own > 0, own, 1.0)
    result = np.clip(mean + std * shape, -1.0, 1.0)
    square, wanted = (result**2).mean(axis=0), std**2 + mean**2
    for k in np.flatnonzero(wanted - square > _CLOSE * std**2):
        moved = (wanted[k] - square[k]) / (1 - square[k])
        upper = (1 + (mean[k] - (1 - moved) * result[:, k].mean()) / moved) / 2  # share of those moved
        chosen = rng.random(len(result)) < moved
        above = shape[chosen, k]
        if above.size:
            result[chosen, k] = np.where(above > np.quantile(above, np.clip(1 - upper, 0.0, 1.0)), 1.0, -1.0)
    return np.asarray(result)


def _split(covariance: Floats) -> tuple[Floats, Floats]:
    """Standard deviations, and correlations with ones on the diagonal."""
    std = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    safe = np.where(std > 0, std, 1.0)
    correlation = np.clip(covariance / np.multiply.outer(safe, safe), -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    return std, correlation


def _correlated(correlation: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Standard Gaussian numbers with about these correlations, of shape (count, d)."""
    possible = nearest_of_same_trace(correlation)
    size = np.sqrt(np.maximum(np.diagonal(possible), np.finfo(float).tiny))
    return np.asarray(rng.standard_normal((count, len(size))) @ psd_root(possible).T / size)
