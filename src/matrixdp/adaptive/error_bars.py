"""Error bars of a private moment: noise, clipping, shrinkage and learned steps together, from private answers alone.

The noise is known, but not what clipping and shrinkage do to records that nobody may look at. So the fit is repeated on
simulated records of six families (`record_families`) that have the private mean and covariance: once as they are, and
once with variances raised until the *fit* of them has about the private ones. An error bar combines the largest of
these errors, the noise, what was taken from a covariance because it may be noise, and what one record at the end of its
bounds contributes, which private answers can hardly tell from none.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from matrixdp.adaptive.record_families import FAMILIES
from matrixdp.adaptive.simulated_fit import (
    FitOptions,
    SimulatedErrors,
    likeliest,
    repeat_fit,
    simulate_errors,
    simulated_number,
)
from matrixdp.adaptive.statistics import Statistics, read_off, sampling_errors
from matrixdp.noise import Stream
from matrixdp.types import Floats

if TYPE_CHECKING:
    from matrixdp.adaptive.moment import PrivateMoment

NORMAL = 1.96  # error bars in half a 95% interval
_REPETITIONS = 3  # fits of the same simulated records
_LARGEST = 4  # errors of which the root mean square is taken, of all twelve
_MOST_RAISED = 4.0  # factor on a variance


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

    Takes as long as 39 fits of at most some thousand records. The same moment has the same error bars.

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
        errors = np.sort([one.errors[name] for one in simulated], axis=0)
        if name == "correlation":  # a ratio, in which much of what clipping does cancels
            bar = np.maximum(_root_mean_square(errors), noise[name])
        else:
            bar = np.hypot(_add_noise(_root_mean_square(errors[-_LARGEST:]), noise[name]), known[name])
        bars[name] = np.minimum(bar, (most.get(name, 1.0) + np.abs(value)) / NORMAL)
    bars["covariance"] = np.maximum(bars["covariance"], _product_bars(found, bars))
    if sampling:
        samples = [sampling_errors(one.records, moment.records, half) for one in simulated]
        for name, bar in bars.items():
            bars[name] = np.hypot(bar, _root_mean_square(np.sort([one[name] for one in samples], axis=0)[-_LARGEST:]))
    np.fill_diagonal(bars["correlation"], 0.0)
    return MomentErrors.in_units(bars, half)


def _add_noise(simulated: Floats, noise: Floats) -> Floats:
    """Root of the sum of squares for numbers of one feature, which clipping changes most; else the larger one."""
    bar = np.hypot(simulated, noise)
    if simulated.ndim == 1:
        return bar
    return np.where(np.eye(len(bar), dtype=bool), bar, np.maximum(simulated, noise))


def _product_bars(found: Statistics, bars: Statistics) -> Floats:
    """Error bars of covariances as products of a correlation and two standard deviations, of shape (d, d)."""
    own, variances = np.diagonal(bars["covariance"]), np.diagonal(found["covariance"])
    by_size, most = np.sqrt(own), np.sqrt(np.maximum(variances, 0.0) + own)
    from_size = found["correlation"] * np.multiply.outer(by_size, by_size)
    from_correlation = bars["correlation"] * np.multiply.outer(most, most)
    product = np.hypot(from_size, from_correlation)
    return np.where(np.eye(len(own), dtype=bool), 0.0, np.minimum(product, (1 + np.abs(found["covariance"])) / NORMAL))


def _found(moment: PrivateMoment) -> Statistics:
    fitted = moment.fitted
    return read_off(fitted.mean, fitted.covariance, moment.bounds.halfwidths, fitted.second)


def _known_errors(moment: PrivateMoment) -> Statistics:
    """What one record at the further end of its bounds contributes, and what was taken from a covariance in doubt."""
    fitted, half = moment.fitted, moment.bounds.halfwidths
    reach = 1 + np.abs(fitted.mean)
    record = np.multiply.outer(reach, reach) / moment.records
    taken = likeliest(fitted) - fitted.covariance
    return {
        "mean": reach / moment.records,
        "second_moment": record,
        "covariance": np.hypot(record, taken) + np.diag(_short_of_corners(moment)),
        "eigenvalue": np.hypot((half * reach) @ (half * reach) / moment.records, _eigenvalues(taken, half)),
    }


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
    least = min(float(np.trace(fit.covariance)) for fit in fits)
    found, variances = float(np.trace(fitted.covariance)), np.diagonal(fitted.covariance)
    if found + 2 * float(np.linalg.norm(np.diagonal(fitted.std))) < least:
        return np.zeros(d)
    return np.asarray(np.maximum(1 - variances, 0.0) / NORMAL)


def _options(moment: PrivateMoment) -> FitOptions:
    return FitOptions(moment.bounds, moment.privacy, moment.neighbours, moment.records, moment.aim, moment.basis)


def _eigenvalues(matrix: Floats, half: Floats) -> Floats:
    """Eigenvalues in the data's units, the largest first."""
    return np.asarray(np.linalg.eigvalsh(matrix * np.multiply.outer(half, half))[::-1], np.float64)


def _root_mean_square(errors: Floats) -> Floats:
    return np.asarray(np.sqrt(np.mean(np.square(errors), axis=0)))


def _simulate(moment: PrivateMoment) -> list[SimulatedErrors]:
    """Errors of the fit for each family, as it is and with its variances raised."""
    mean, covariance = moment.fitted.mean, likeliest(moment.fitted)
    options, seed, found = _options(moment), _seed(moment), []
    for index, family in enumerate(FAMILIES):
        as_it_is = simulate_errors(family, mean, covariance, options, seed + 2 * index, _REPETITIONS)
        raised = _raise_variances(covariance, as_it_is.variances)
        found += [as_it_is, simulate_errors(family, mean, raised, options, seed + 2 * index + 1, _REPETITIONS)]
    return found


def _raise_variances(wanted: Floats, found: Floats) -> Floats:
    """The private covariance with its variances raised by what a fit lost of them."""
    lost = np.diagonal(wanted) / np.maximum(found, np.finfo(float).tiny)
    factor = np.sqrt(np.clip(lost, 1.0, _MOST_RAISED))
    return np.asarray(wanted * np.multiply.outer(factor, factor))


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
