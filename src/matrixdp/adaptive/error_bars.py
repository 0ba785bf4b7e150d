"""Error bars of a private moment: noise, clipping, shrinkage and learned steps together, from private answers alone.

The noise is known, but not what clipping and shrinkage do to records that nobody may look at. So the fit is repeated on
simulated records of six families (`record_families`) that have the private mean and covariance: once as they are, and
twice with variances raised until the *fit* of them has about the private ones. An error bar is the root mean square of
these errors or the noise, whichever is larger. In squares, it adds half of the smaller one, what was taken from a
covariance because it may be noise, and what a few records at the end of their bounds contribute, which no private
answer tells from none.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from matrixdp.adaptive.record_families import FAMILIES, simulate_records
from matrixdp.adaptive.simulated_fit import (
    FitOptions,
    SimulatedErrors,
    likeliest,
    repeat_fit,
    simulate_errors,
    simulated_number,
)
from matrixdp.adaptive.statistics import Statistics, read_off, sampling_errors
from matrixdp.display.short_repr import short_repr
from matrixdp.domain.person import least_sample, most_rows
from matrixdp.noise import Stream
from matrixdp.types import Floats

if TYPE_CHECKING:
    from matrixdp.adaptive.moment import PrivateMoment

NORMAL = 1.96  # error bars in half a 95% interval
_REPETITIONS = 2  # fits of the same simulated records
_RAISED = 2  # times that variances are raised
_MOST_RAISED = 4.0  # factor on a variance, each time
_UNSEEN = 1.5  # records at the end of their bounds that may be overlooked, over 1/mu: the noise of a private count
_TOGETHER = 0.5  # part of the error bars of two variances by which their covariance may move


@dataclass(frozen=True, eq=False)
class MomentErrors:
    """Error bars of a private moment, in the data's units: 1.96 of them should cover 95% of all errors.

    Attributes
    ----------
    mean_std : float64 array of shape (m,)
    second_moment_std, covariance_std, correlation_std : float64 arrays of shape (m, m)
        The second moment is about the midpoint of the bounds. The diagonal of `correlation_std` is zero.
    eigenvalue_std : float64 array of shape (m,)
        For the eigenvalues of the covariance, the largest first.
    """

    mean_std: Floats
    second_moment_std: Floats
    covariance_std: Floats
    correlation_std: Floats
    eigenvalue_std: Floats

    __repr__ = short_repr

    @classmethod
    def in_units(cls, errors: Statistics, half: Floats) -> MomentErrors:
        """From errors of the statistics of `read_off`, for bounds with these halfwidths."""
        units = np.multiply.outer(half, half)
        return cls(
            half * errors["mean"],
            units * errors["second_moment"],
            units * errors["covariance"],
            errors["correlation"],
            errors["eigenvalue"],
        )


def error_bars(moment: PrivateMoment, *, sampling: bool = False) -> MomentErrors:
    """Error bars for everything that is read off a private moment.

    Takes as long as 38 fits of at most some thousand records. The same moment has the same error bars.

    Parameters
    ----------
    moment : PrivateMoment
    sampling : bool
        Whether to add the error that the records have as a sample from a population. By default the error is that
        against the same records without privacy.

    Privacy
    -------
    Post-processing: reads private answers and public numbers alone.

    Examples
    --------
    >>> from matrixdp import Bounds, Privacy
    >>> from matrixdp.adaptive import private_moment
    >>> from matrixdp.noise import Stream
    >>> records = np.random.default_rng(0).normal(size=(3000, 2))
    >>> box = Bounds([-5, -5], [5, 5])
    >>> moment = private_moment(records, box, Privacy(1, 1e-6), stream=Stream(0), simulation=True)
    >>> bool((abs(moment.covariance - np.cov(records.T)) < 1.96 * error_bars(moment).covariance_std).all())
    True
    """
    half = moment.bounds.halfwidths
    found, noise, known = _found(moment), noise_bars(moment), _known_errors(moment)
    simulated = _simulate(moment)
    most = {"eigenvalue": float(half @ half)}  # no true value lies further from zero than this, or one
    bars = {}
    for name, value in found.items():
        errors = _root_mean_square(np.array([one.errors[name] for one in simulated]))
        bar = np.hypot(_with_noise(errors, noise[name]), known[name])
        bars[name] = np.minimum(bar, (most.get(name, 1.0) + np.abs(value)) / NORMAL)
    bars["covariance"] = np.maximum(bars["covariance"], _size_bars(found, bars))
    if sampling:
        samples = _sampling(moment)
        bars = {name: np.hypot(bar, samples[name]) for name, bar in bars.items()}
    np.fill_diagonal(bars["correlation"], 0.0)
    return MomentErrors.in_units(bars, half)


def _with_noise(simulated: Floats, noise: Floats) -> Floats:
    """The larger of simulated errors and the noise, and half of the smaller one, in squares.

    Simulated errors contain noise, but that of the simulated fits.
    """
    with np.errstate(invalid="ignore"):  # the noise of a correlation may be infinite
        return np.asarray(np.hypot(np.maximum(simulated, noise), np.minimum(simulated, noise) / 2))


def sampling_bars(moment: PrivateMoment) -> MomentErrors:
    """The error that the records have as a sample from a population, apart from what privacy costs.

    That of records like the simulated ones, on average over their families. `error_bars` are the other part; both add
    in squares.

    Examples
    --------
    >>> from matrixdp import Bounds, Privacy
    >>> from matrixdp.adaptive import private_moment
    >>> from matrixdp.noise import Stream
    >>> records = np.random.default_rng(0).normal(size=(10_000, 1))
    >>> moment = private_moment(records, Bounds([-5], [5]), Privacy(3, 1e-6), stream=Stream(0), simulation=True)
    >>> sampling_bars(moment).mean_std.round(3).tolist()  # the standard deviation over 100
    [0.01]
    """
    bars = _sampling(moment)
    np.fill_diagonal(bars["correlation"], 0.0)
    return MomentErrors.in_units(bars, moment.bounds.halfwidths)


def _sampling(moment: PrivateMoment) -> Statistics:
    """Standard deviations over samples, in units of the halfwidths: root mean squares over the families."""
    fitted, seed = moment.fitted, _seed(moment)
    number = simulated_number(moment.records, moment.bounds.size)
    found = []
    for index, family in enumerate(FAMILIES):
        rng = np.random.default_rng(seed + index)
        records = simulate_records(family, fitted.mean, likeliest(fitted), number, rng)
        sample = least_sample(moment.records, moment.person)
        found.append(sampling_errors(records, sample, moment.bounds.halfwidths))
    return {name: _root_mean_square(np.array([one[name] for one in found])) for name in found[0]}


def _size_bars(found: Statistics, bars: Statistics) -> Floats:
    """How far covariances move with the sizes of their features, of shape (d, d), zero on the diagonal."""
    variances = np.maximum(np.diagonal(found["covariance"]), 0.0)
    most = variances + np.diagonal(bars["covariance"])
    moved = np.sqrt(np.multiply.outer(most, most)) - np.sqrt(np.multiply.outer(variances, variances))
    size = _TOGETHER * np.abs(found["correlation"]) * moved
    np.fill_diagonal(size, 0.0)
    return np.asarray(np.minimum(size, (1 + np.abs(found["covariance"])) / NORMAL))


def _found(moment: PrivateMoment) -> Statistics:
    fitted = moment.fitted
    return read_off(fitted.mean, fitted.covariance, moment.bounds.halfwidths, fitted.second)


def _known_errors(moment: PrivateMoment) -> Statistics:
    """What overlooked records at the further end of their bounds contribute, and what was taken from a covariance.

    For pairs of features it is one record: others are rarely at the end of the bounds of both. Where k rows of a person
    count, all of them may be there.
    """
    fitted, half = moment.fitted, moment.bounds.halfwidths
    most = most_rows(moment.person)
    reach, unseen = 1 + np.abs(fitted.mean), max(_UNSEEN / moment.privacy.mu, 1.0)
    record = most * np.multiply.outer(reach, reach) / moment.records
    np.fill_diagonal(record, np.minimum(unseen * np.diagonal(record), 1.0))
    taken = likeliest(fitted) - fitted.covariance
    return {
        "mean": np.minimum(unseen * most / moment.records, 1.0) * reach,
        "second_moment": record,
        "covariance": np.hypot(record, taken) + _spread_pairs(_short_of_corners(moment)),
        "correlation": np.zeros_like(record),
        "eigenvalue": np.hypot(float(np.max(half**2 * np.diagonal(record))), _eigenvalues(taken, half)),
    }


def _spread_pairs(own: Floats) -> Floats:
    """Error bars of variances on the diagonal, and beside it what follows for covariances of moderate correlation."""
    return np.sqrt(np.multiply.outer(own, own)) * np.where(np.eye(len(own), dtype=bool), 1.0, _TOGETHER)


def _short_of_corners(moment: PrivateMoment) -> Floats:
    """How far variances are from those of records at the corners of the box, where a fit of such finds as little.

    With few records all of them are clipped, and what is found of a full box is not told from a small variance.
    Zero where the fit would have found more. In error bars, of shape (d,).
    """
    fitted, d = moment.fitted, moment.bounds.size
    seed = _seed(moment)
    number = simulated_number(moment.records, d)
    corners = np.random.default_rng(seed).choice([-1.0, 1.0], (number, d))
    fits = repeat_fit(corners, _options(moment), Stream(seed), _REPETITIONS)
    least = min(float(np.trace(likeliest(fit))) for fit in fits)
    found, variances = float(np.trace(likeliest(fitted))), np.diagonal(fitted.covariance)
    if found + 2 * float(np.linalg.norm(np.diagonal(fitted.std))) < least:
        return np.zeros(d)
    return np.asarray(np.maximum(1 - variances, 0.0) / NORMAL)


def _options(moment: PrivateMoment) -> FitOptions:
    asked = moment.privacy, moment.neighbours, moment.records
    return FitOptions(moment.bounds, *asked, moment.aim, moment.basis, moment.person)


def _eigenvalues(matrix: Floats, half: Floats) -> Floats:
    """Eigenvalues in the data's units, the largest first."""
    return np.asarray(np.linalg.eigvalsh(matrix * np.multiply.outer(half, half))[::-1], np.float64)


def _root_mean_square(errors: Floats) -> Floats:
    return np.asarray(np.sqrt(np.mean(np.square(errors), axis=0)))


def _simulate(moment: PrivateMoment) -> list[SimulatedErrors]:
    """Errors of the fit for each family, as it is and with its variances raised."""
    fitted, options, seed = moment.fitted, _options(moment), _seed(moment)
    wanted = np.diagonal(likeliest(fitted))
    found: list[SimulatedErrors] = []
    for family in FAMILIES:
        covariance = likeliest(fitted)
        for _ in range(1 + _RAISED):
            one = simulate_errors(family, fitted.mean, covariance, options, seed + len(found), _REPETITIONS)
            covariance = _raise_variances(covariance, wanted, one.variances)
            found.append(one)
    return found


def _raise_variances(covariance: Floats, wanted: Floats, found: Floats) -> Floats:
    """A covariance with its variances raised by what a fit of such records lacks of the wanted ones."""
    factor = np.sqrt(np.clip(wanted / np.maximum(found, np.finfo(float).tiny), 1.0, _MOST_RAISED))
    return np.asarray(covariance * np.multiply.outer(factor, factor))


def noise_bars(moment: PrivateMoment) -> Statistics:
    """Standard deviation of the noise alone in each statistic of `read_off`, before shrinkage and to first order.

    That of a correlation is infinite where a private variance is zero.
    """
    fitted, half = moment.fitted, moment.bounds.halfwidths
    cross = np.multiply.outer(np.abs(fitted.mean), fitted.mean_std)
    vectors = np.linalg.eigh(fitted.covariance * np.multiply.outer(half, half))[1][:, ::-1] * half[:, None]
    return {
        "mean": fitted.mean_std,
        "second_moment": np.hypot(fitted.std, cross + cross.T),
        "covariance": fitted.std,
        "correlation": _correlation_noise(fitted.covariance, fitted.std),
        "eigenvalue": np.sqrt(2) * fitted.noise_std * np.einsum("ik,ij,jk->k", vectors, fitted.noise_shape, vectors),
    }


def _correlation_noise(covariance: Floats, std: Floats) -> Floats:
    variances = np.diagonal(covariance)
    known = variances > 0
    size = np.sqrt(np.where(known, variances, 1.0))
    units = np.multiply.outer(size, size)
    own = np.diagonal(std) / size**2
    noise = np.hypot(std / units, covariance / units / 2 * np.hypot(own[:, None], own[None, :]))
    return np.where(np.logical_and.outer(known, known), noise, np.inf)


def _seed(moment: PrivateMoment) -> int:
    """A public seed: the same private answers have the same error bars."""
    answers = moment.fitted.mean.tobytes() + moment.fitted.covariance.tobytes()
    return int.from_bytes(hashlib.sha256(answers).digest()[:8], "big")
