"""Error bars of a private moment: noise, clipping, shrinkage and learned steps together, from private answers alone.

The noise is known, but not what clipping and shrinkage do to records that nobody may look at. So the fit is repeated on
simulated records of five families (`record_families`) that have the private mean and covariance: once as they are, and
once with variances raised until the *fit* of them has the private ones. An error bar is taken from the largest of these
ten root mean square errors, and is at least the standard deviation of the noise. It also contains two records at the
end of the bounds, which private answers can hardly tell from none.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from matrixdp.adaptive.record_families import FAMILIES
from matrixdp.adaptive.simulated_fit import FitOptions, SimulatedErrors, simulate_errors
from matrixdp.adaptive.statistics import Statistics, read_off, sampling_errors
from matrixdp.types import Floats

if TYPE_CHECKING:
    from matrixdp.adaptive.moment import PrivateMoment

NORMAL = 1.96  # error bars in half a 95% interval
_REPETITIONS = 3  # fits of the same simulated records
_LARGEST = {"correlation": 10}  # how many of the ten errors are averaged, in squares: scale does not matter here
_LARGEST_OTHERS = 3
_UNSEEN = 2.0  # records at the end of the bounds
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


def error_bars(moment: PrivateMoment, *, sampling: bool = False) -> MomentErrors:
    """Error bars for everything that is read off a private moment.

    Takes as long as thirty fits of at most some thousand records. The same moment has the same error bars.

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
    half, reach = moment.bounds.halfwidths, 1 + np.abs(moment.fitted.mean)
    units = np.multiply.outer(half, half)
    found, noise = read_off(moment.fitted.mean, moment.fitted.covariance, half), noise_bars(moment)
    simulated = _simulate(moment)
    unseen = {
        "mean": reach,
        "second_moment": np.multiply.outer(reach, reach),
        "covariance": np.multiply.outer(reach, reach),
        "correlation": 0.0,
        "eigenvalue": float((half * reach) @ (half * reach)),
    }
    most = {"eigenvalue": float(half @ half)}  # no true value lies further from zero than this, or one
    bars = {}
    for name, value in found.items():
        known = np.maximum(_largest(name, [one.errors for one in simulated]), noise[name])
        bar = np.hypot(known, _UNSEEN / moment.records * unseen[name])
        bar = np.minimum(bar, (most.get(name, 1.0) + np.abs(value)) / NORMAL)
        bars[name] = bar
    if sampling:
        samples = [sampling_errors(one.records, moment.records, half) for one in simulated]
        bars = {name: np.hypot(bar, _largest(name, samples)) for name, bar in bars.items()}
    np.fill_diagonal(bars["correlation"], 0.0)
    return MomentErrors(
        mean_std=half * bars["mean"],
        second_moment_std=units * bars["second_moment"],
        covariance_std=units * bars["covariance"],
        correlation_std=bars["correlation"],
        eigenvalue_std=bars["eigenvalue"],
    )


def _largest(name: str, errors: list[Statistics]) -> Floats:
    """Root mean square of the largest errors of one statistic."""
    every = np.sort([error[name] for error in errors], axis=0)
    return np.asarray(np.sqrt((every[-_LARGEST.get(name, _LARGEST_OTHERS) :] ** 2).mean(axis=0)))


def _simulate(moment: PrivateMoment) -> list[SimulatedErrors]:
    """Errors of the fit for each family, as it is and with its variances raised."""
    fitted = moment.fitted
    options = FitOptions(moment.bounds, moment.privacy, moment.neighbours, moment.records, moment.aim, moment.basis)
    seed, found = _seed(moment), []
    for index, family in enumerate(FAMILIES):
        as_it_is = simulate_errors(family, fitted.mean, fitted.covariance, options, seed + 2 * index, _REPETITIONS)
        raised = _raise_variances(fitted.covariance, as_it_is.variances)
        found += [as_it_is, simulate_errors(family, fitted.mean, raised, options, seed + 2 * index + 1, _REPETITIONS)]
    return found


def _raise_variances(wanted: Floats, found: Floats) -> Floats:
    """The private covariance with its variances raised by what a fit lost of them."""
    lost = np.diagonal(wanted) / np.maximum(found, np.finfo(float).tiny)
    factor = np.sqrt(np.clip(lost, 1.0, _MOST_RAISED))
    return np.asarray(wanted * np.multiply.outer(factor, factor))


def noise_bars(moment: PrivateMoment) -> Statistics:
    """Standard deviation of the noise alone in each statistic of `read_off`, before shrinkage and to first order."""
    fitted, half = moment.fitted, moment.bounds.halfwidths
    mean = np.abs(fitted.mean)
    cross = np.multiply.outer(mean, fitted.mean_std)
    variances = np.maximum(np.diagonal(fitted.covariance), np.finfo(float).tiny)
    size = np.multiply.outer(np.sqrt(variances), np.sqrt(variances))
    own = (np.diagonal(fitted.std) / variances) ** 2
    correlation = fitted.covariance / size
    vectors = np.linalg.eigh(fitted.covariance * np.multiply.outer(half, half))[1][:, ::-1] * half[:, None]
    return {
        "mean": fitted.mean_std,
        "second_moment": np.hypot(fitted.std, cross + cross.T),
        "covariance": fitted.std,
        "correlation": np.hypot(fitted.std / size, correlation / 2 * np.sqrt(own[:, None] + own[None, :])),
        "eigenvalue": np.sqrt(2) * fitted.noise_std * np.einsum("ik,ij,jk->k", vectors, fitted.noise_shape, vectors),
    }


def _seed(moment: PrivateMoment) -> int:
    """A public seed: the same private answers have the same error bars."""
    answers = moment.fitted.mean.tobytes() + moment.fitted.covariance.tobytes()
    return int.from_bytes(hashlib.sha256(answers).digest()[:8], "big")
