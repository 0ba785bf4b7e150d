"""Errors of private moments: error bars from private answers alone, and forecasts before any data are read.

The noise is known, but not what clipping and shrinkage do to records that nobody may look at. So the fit is repeated on
simulated records of six families, with the mean and covariance that was released or, in later rounds, with those that
a fit would make of it (`simulation.repeat_fit`). An error bar is the root mean square of the errors of these fits, or
the noise where that is larger; that of a covariance is at least the correlation times those of both variances. A
forecast simulates records that match a public description, which does not tell the shape of the data: so it is a range.
What a few records at the ends of their bounds contribute, which no private answer tells from none, is in its hostile
end alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.adaptive import simulation
from matrixdp.adaptive.records import check_features
from matrixdp.adaptive.settings import settings_for
from matrixdp.adaptive.simulation import FAMILIES, Statistics, likeliest, public_seed, read_off
from matrixdp.answers.described_table import factor_loadings
from matrixdp.display import short_repr
from matrixdp.domain.bounds import Bounds, check_bounds
from matrixdp.domain.person import Person, least_sample
from matrixdp.errors import ParameterError
from matrixdp.privacy import Neighbours, Privacy, check_privacy
from matrixdp.queries.base import parse_records
from matrixdp.types import Floats

if TYPE_CHECKING:
    from matrixdp.adaptive.moment import PrivateMoment

NORMAL = 1.9599  # error bars in half a 95% interval, rounded down: a bar that leaves all open reaches the bounds
_UNSEEN = 1.5  # records at the ends of their bounds that may be overlooked, over 1/mu: the noise of a private count
_FORECASTS, _FORECAST_SEED = 3, 1  # fits of the same simulated records in a forecast, and its first seed


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
        pairs = np.multiply.outer(half, half)
        units: Statistics = {"mean": half, "second_moment": pairs, "covariance": pairs}
        return cls(**{f"{name}_std": units.get(name, np.ones(())) * error for name, error in errors.items()})


def error_bars(moment: PrivateMoment, *, sampling: bool = False) -> MomentErrors:
    """Error bars for everything that is read off a private moment.

    Takes about as long as 24 fits of some thousand records in arrays. The same moment has the same error bars.

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
    half, fitted = moment.bounds.halfwidths, moment.fitted
    found = read_off(fitted.mean, fitted.covariance, half, fitted.second)
    noise, simulated = noise_bars(moment), simulation.find_errors(moment.simulated.fits, half)
    most = {"eigenvalue": float(half @ half)}  # no true value lies further from zero than this, or one
    bars = {}
    for name, value in found.items():
        bar = np.maximum(moment.simulated.average(simulated[name]), noise[name])
        bars[name] = np.minimum(bar, (most.get(name, 1.0) + np.abs(value)) / NORMAL)
    own = np.diagonal(bars["covariance"])  # what is missing of two variances is missing of their covariance
    together = np.abs(found["correlation"]) * np.sqrt(np.multiply.outer(own, own))
    bars["covariance"] = np.maximum(bars["covariance"], together)
    if sampling:
        samples = _sampling(moment)
        bars = {name: np.hypot(bar, samples[name]) for name, bar in bars.items()}
    np.fill_diagonal(bars["correlation"], 0.0)
    return MomentErrors.in_units(bars, half)


def simulated_errors(moment: PrivateMoment, error: Callable[[PrivateMoment, Floats, Floats], Floats]) -> Floats:
    """Root mean square of the `error` of simulated fits, given the mean and covariance of records in data units."""
    middle, half = moment.bounds.midpoint, moment.bounds.halfwidths
    pairs = np.multiply.outer(half, half)
    found = [
        error(replace(moment, fitted=fit), middle + half * mean, covariance * pairs)
        for (mean, covariance), fits in moment.simulated.fits
        for fit in fits
    ]
    return moment.simulated.average(np.array(found))


def sampling_bars(moment: PrivateMoment) -> MomentErrors:
    """The error of the records as a sample from a population, which adds to `error_bars` in squares."""
    bars = _sampling(moment)
    np.fill_diagonal(bars["correlation"], 0.0)
    return MomentErrors.in_units(bars, moment.bounds.halfwidths)


def _sampling(moment: PrivateMoment) -> Statistics:
    """Standard deviations over samples, in units of the halfwidths: root mean squares over the families."""
    fitted, seed = moment.fitted, public_seed(moment.fitted)
    number = simulation.simulated_number(moment.records, moment.bounds.size)
    found = []
    for index, family in enumerate(FAMILIES):
        rng = np.random.default_rng(seed + index)
        records = simulation.simulate_records(family, fitted.mean, likeliest(fitted), number, rng)
        sample = least_sample(moment.records, moment.person)
        found.append(simulation.sampling_errors(records, sample, moment.bounds.halfwidths))
    return {name: np.sqrt(np.mean(np.square([one[name] for one in found]), axis=0)) for name in found[0]}


def noise_bars(moment: PrivateMoment) -> Statistics:
    """Standard deviation of the noise in each statistic, before shrinkage and to first order; may be infinite."""
    fitted, half = moment.fitted, moment.bounds.halfwidths
    cross = np.multiply.outer(np.abs(fitted.mean), fitted.mean_std)
    covariance, variances = fitted.covariance, np.diagonal(fitted.covariance)
    known = variances > 0
    size = np.sqrt(np.where(known, variances, 1.0))
    units, own = np.multiply.outer(size, size), np.diagonal(fitted.std) / size**2
    noise = np.hypot(fitted.std / units, covariance / units / 2 * np.hypot(own[:, None], own[None, :]))
    vectors = np.linalg.eigh(fitted.covariance * np.multiply.outer(half, half))[1][:, ::-1] * half[:, None]
    return {
        "mean": fitted.mean_std,
        "second_moment": np.hypot(fitted.std, cross + cross.T),
        "covariance": fitted.std,
        "correlation": np.where(np.logical_and.outer(known, known), noise, np.inf),
        "eigenvalue": np.sqrt(2) * fitted.noise_std * np.einsum("ik,ij,jk->k", vectors, fitted.noise_shape, vectors),
    }


@dataclass(frozen=True, eq=False)
class Description:
    """Public guesses about the data; the defaults are typical of tables in bounds somewhat wider than their range.

    Attributes
    ----------
    spread : float or array_like of shape (m,)
        Standard deviation of each feature, as a share of the width of its bounds: from 0 to 0.5.
    position : float or array_like of shape (m,)
        Mean of each feature, as a share of the width above the lower bound: from 0 to 1.
    correlation : float
        Root mean square of the correlations: from 0 to 1.
    """

    spread: ArrayLike = 0.15
    position: ArrayLike = 0.3
    correlation: float = 0.3

    __repr__ = short_repr

    def moments(self, size: int) -> tuple[Floats, Floats]:
        """Mean and covariance of records scaled to [-1, 1], of shape (size,) and (size, size).

        A spread that is not possible at its position is reduced to the largest that is.
        """
        mean = 2 * _within("position", self.position, 1.0, size) - 1
        std = np.minimum(2 * _within("spread", self.spread, 0.5, size), np.sqrt(1 - mean**2))
        wanted = float(_within("correlation", self.correlation, 1.0, 1)[0])
        loadings, common = factor_loadings(wanted, size)
        correlation = common * (loadings @ loadings.T)
        np.fill_diagonal(correlation, 1.0)
        return mean, correlation * np.multiply.outer(std, std)


@dataclass(frozen=True, eq=False)
class Forecast:
    """Root mean square errors to expect against the same records without privacy, in the data's units.

    Attributes
    ----------
    friendly : MomentErrors
        For Gaussian features.
    typical : MomentErrors
        Mean over all families of simulated records.
    hostile : MomentErrors
        For the family with the largest error of each number, beside as many records at the further ends of their
        bounds as no private answer tells from none. Error bars do not cover those.
    """

    friendly: MomentErrors
    typical: MomentErrors
    hostile: MomentErrors

    __repr__ = short_repr


def forecast(
    bounds: Bounds,
    records: int,
    privacy: Privacy,
    *,
    description: Description | None = None,
    aim: str = "covariance",
    neighbours: str = Neighbours.REPLACE,
    person: str | Person | None = None,
) -> Forecast:
    """Errors of a private moment to expect for data that match a public description.

    Above some thousand records, fewer are simulated, each of which counts as several: their noise is that of all, but
    rare records are missing. The same arguments give the same forecast.

    Parameters
    ----------
    bounds : Bounds
    records : int
        The public number of records.
    privacy : Privacy
    description : Description, optional
        Guesses about the data; by default typical ones.
    aim, neighbours, person
        As for `private_moment`. With a person, `records` is the number of people, or of rows that count.

    Privacy
    -------
    Reads no data.

    Examples
    --------
    >>> box = Bounds([0, 0, 0], [10, 10, 10])
    >>> found = forecast(box, 3000, Privacy(1, 1e-6), description=Description(spread=0.1))
    >>> bool(found.friendly.mean_std.max() <= found.hostile.mean_std.max() < 0.2)
    True
    """
    settings_for(aim)
    check_bounds(bounds)
    check_features(bounds.size)
    check_privacy(privacy)
    who: dict[str, Any] = {"neighbours": Neighbours.parse(neighbours), "person": Person.parse(person)}
    options = simulation.FitOptions(bounds=bounds, privacy=privacy, records=parse_records(records), aim=aim, **who)
    mean, covariance = (description or Description()).moments(bounds.size)
    simulated = [
        simulation.simulate_fits(family, mean, covariance, options, _FORECAST_SEED + index, _FORECASTS)
        for index, family in enumerate(FAMILIES)
    ]
    found = simulation.find_errors(simulated, bounds.halfwidths)
    overlooked = _overlooked_errors(mean, covariance, options)
    friendly = {name: errors[0] for name, errors in found.items()}  # the first family is Gaussian
    typical = {name: errors.mean(axis=0) for name, errors in found.items()}
    hostile = {name: np.hypot(errors.max(axis=0), overlooked[name]) for name, errors in found.items()}
    return Forecast(*(MomentErrors.in_units(one, bounds.halfwidths) for one in (friendly, typical, hostile)))


def _overlooked_errors(mean: Floats, covariance: Floats, options: simulation.FitOptions) -> Statistics:
    """What records at the further ends of their bounds contribute, as many as the noise of a private count hides."""
    share = min(max(_UNSEEN / options.effective_mu, 1.0) / options.records, 0.5)
    far, units = np.where(mean > 0, -1.0, 1.0) - mean, options.bounds.halfwidths
    moved = (1 - share) * covariance + share * (1 - share) * np.multiply.outer(far, far)
    own, other = read_off(mean, covariance, units), read_off(mean + share * far, moved, units)
    return {name: np.abs(other[name] - own[name]) for name in own}


def _within(name: str, value: ArrayLike, most: float, size: int) -> Floats:
    """One number for each feature, from 0 to `most`."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((), (size,)) or not ((array >= 0) & (array <= most)).all():
        raise ParameterError(
            f"{name} must be a number from 0 to {most:g}, or one for each of {size} features, got {value!r} instead."
        )
    return np.broadcast_to(array, (size,))
