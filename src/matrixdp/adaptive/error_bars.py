"""Errors of private moments: error bars from private answers alone, and forecasts before any data are read.

The noise is known, but not what clipping and shrinkage do to records that nobody may look at. So the fit is repeated on
simulated records of six families (`simulation`) that have the private mean and covariance: once as they are, and
twice with means and variances raised until the *fit* has about the private ones. An error bar is the root mean square
of the errors of the three worst families or the noise, whichever is larger. In squares, it adds half of the smaller
one, what was taken from a covariance because it may be noise, and what a few records at the end of their bounds
contribute, which no private answer tells from none. A forecast simulates records that match a public description; the
errors of a fit depend on the shape of the data, which a description does not tell, so it is a range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.adaptive import simulation
from matrixdp.adaptive.measure import SimulatedRecords
from matrixdp.adaptive.records import check_features
from matrixdp.adaptive.settings import settings_for
from matrixdp.adaptive.simulation import FAMILIES, Statistics, likeliest, public_seed, read_off
from matrixdp.answers.described_table import factor_loadings
from matrixdp.display import short_repr
from matrixdp.domain.bounds import Bounds, check_bounds
from matrixdp.domain.person import Person, least_sample, most_rows
from matrixdp.errors import ParameterError
from matrixdp.privacy import Neighbours, Privacy, check_privacy
from matrixdp.queries.base import parse_records
from matrixdp.types import Floats

if TYPE_CHECKING:
    from matrixdp.adaptive.moment import PrivateMoment

NORMAL = 1.9599  # error bars in half a 95% interval, rounded down: a bar that leaves all open reaches the bounds
_REPETITIONS = 2  # fits of the same simulated records
_UNSEEN = 1.5  # records at the end of their bounds that may be overlooked, over 1/mu: the noise of a private count
_TOGETHER = 0.5  # part of the error bars of two variances by which their covariance may move
_FORECASTS, _FORECAST_SEED = 3, 1  # fits of the same simulated records in a forecast, and its first seed
_RAISED = 2  # times that means and variances are raised
_MOST_RAISED = 4.0  # factor on a variance, each time
_MOST_RAISED_MEAN = 2.0  # factor on a mean, each time
_LARGEST = 3  # families whose errors count: those of the others say little about records of these shapes


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

    Takes about as long as 38 fits of some thousand records in arrays. The same moment has the same error bars.

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
    fitted = moment.fitted
    found = read_off(fitted.mean, fitted.covariance, half, fitted.second)
    noise, known = noise_bars(moment), _overlooked_errors(moment)
    simulated = _simulate(moment)
    most = {"eigenvalue": float(half @ half)}  # no true value lies further from zero than this, or one
    bars = {}
    for name, value in found.items():
        errors = _largest_families(simulated[name])
        bar = np.hypot(_with_noise(errors, noise[name]), known[name])
        bars[name] = np.minimum(bar, (most.get(name, 1.0) + np.abs(value)) / NORMAL)
    bars["covariance"] = np.maximum(bars["covariance"], _size_bars(moment, found, bars, known))
    if sampling:
        samples = _sampling(moment)
        bars = {name: np.hypot(bar, samples[name]) for name, bar in bars.items()}
    np.fill_diagonal(bars["correlation"], 0.0)
    return MomentErrors.in_units(bars, half)


def _with_noise(simulated: Floats, noise: Floats) -> Floats:
    """The larger of simulated errors and the noise, which they contain, and half of the smaller one, in squares."""
    with np.errstate(invalid="ignore"):  # the noise of a correlation may be infinite
        return np.asarray(np.hypot(np.maximum(simulated, noise), np.minimum(simulated, noise) / 2))


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


def _size_bars(moment: PrivateMoment, found: Statistics, bars: Statistics, known: Statistics) -> Floats:
    """How far covariances move with the sizes of their features, of shape (d, d), zero on the diagonal.

    At the released correlation, or at any: what is missing of two variances may be missing together. Overlooked records
    count in that only as far as the covariance was set to zero.
    """
    variances, own = np.maximum(np.diagonal(found["covariance"]), 0.0), np.diagonal(bars["covariance"])
    most = variances + own
    moved = np.sqrt(np.multiply.outer(most, most)) - np.sqrt(np.multiply.outer(variances, variances))
    overlooked = moment.fitted.evident * np.diagonal(known["covariance"])
    missing = np.sqrt(np.maximum(own**2 - overlooked**2, 0.0))
    size = _TOGETHER * np.maximum(np.abs(found["correlation"]) * moved, np.sqrt(np.multiply.outer(missing, missing)))
    np.fill_diagonal(size, 0.0)
    return np.asarray(np.minimum(size, (1 + np.abs(found["covariance"])) / NORMAL))


def _largest_families(errors: Floats) -> Floats:
    """Root mean square over the families with the largest errors, number by number, from one row a simulation."""
    squares = np.square(errors).reshape(len(FAMILIES), 1 + _RAISED, *errors.shape[1:]).mean(axis=1)
    return np.asarray(np.sqrt(np.sort(squares, axis=0)[-_LARGEST:].mean(axis=0)))


def _simulate(moment: PrivateMoment) -> Statistics:
    """Errors of the fit for each family, as it is and with its mean and variances raised, one row each."""
    fitted, seed = moment.fitted, public_seed(moment.fitted)
    wanted = np.diagonal(likeliest(fitted))
    found: list[Any] = []
    for family in FAMILIES:
        mean, covariance = fitted.mean, likeliest(fitted)
        for _ in range(1 + _RAISED):
            found.append(simulation.simulate_fits(family, mean, covariance, moment, seed + len(found), _REPETITIONS))
            fits = found[-1][1]
            mean = _raise_mean(mean, fitted.mean, np.mean([fit.mean for fit in fits], axis=0))
            variances = np.mean([np.diagonal(likeliest(fit)) for fit in fits], axis=0)
            covariance = _raise_variances(covariance, wanted, variances)
    return simulation.find_errors(found, moment.bounds.halfwidths)


def _raise_mean(mean: Floats, wanted: Floats, found: Floats) -> Floats:
    """A mean that is further from the midpoint by what a fit of such records lacks of the wanted one.

    One factor for all features, since a fit of few records may have clipped all of them.
    """
    along = float(wanted @ found)
    factor = min(max(float(wanted @ wanted) / along, 1.0), _MOST_RAISED_MEAN) if along > 0 else _MOST_RAISED_MEAN
    return np.asarray(np.clip(factor * mean, -1.0, 1.0))


def _raise_variances(covariance: Floats, wanted: Floats, found: Floats) -> Floats:
    """A covariance with its variances raised by what a fit of such records lacks of the wanted ones."""
    factor = np.sqrt(np.clip(wanted / np.maximum(found, np.finfo(float).tiny), 1.0, _MOST_RAISED))
    return np.asarray(covariance * np.multiply.outer(factor, factor))


def noise_bars(moment: PrivateMoment) -> Statistics:
    """Standard deviation of the noise in each statistic, before shrinkage and to first order; may be infinite."""
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


def _overlooked_errors(moment: PrivateMoment) -> Statistics:
    """What overlooked records at the further end of their bounds contribute, and what was taken from a covariance.

    For pairs of features it is one record: others are rarely at the end of the bounds of both.
    """
    fitted, half = moment.fitted, moment.bounds.halfwidths
    most = most_rows(moment.person)
    reach, unseen = 1 + np.abs(fitted.mean), max(_UNSEEN / moment.privacy.mu, 1.0)
    record = most * np.multiply.outer(reach, reach) / moment.records
    turned = _turned_correlations(fitted.covariance, np.diagonal(record))
    np.fill_diagonal(record, np.minimum(unseen * np.diagonal(record), 1.0))
    taken = likeliest(fitted) - fitted.covariance
    length, spread = _short_of_corners(moment)
    pairs = np.where(np.eye(len(spread), dtype=bool), 1.0, _TOGETHER)  # covariances of moderate correlation follow
    return {
        "mean": np.minimum(unseen * most / moment.records, 1.0) * reach + length,
        "second_moment": record,
        "covariance": np.hypot(record, taken) + np.sqrt(np.multiply.outer(spread, spread)) * pairs,
        "correlation": turned,
        "eigenvalue": np.hypot(float(np.max(half**2 * np.diagonal(record))), simulation.find_eigenvalues(taken, half)),
    }


def _turned_correlations(covariance: Floats, record: Floats) -> Floats:
    """How far one record that adds `record` to the variances of its features moves correlations, of shape (d, d).

    It lies at the ends of both bounds, against the sign of the correlation. In error bars, so that intervals reach it.
    """
    variances = np.maximum(np.diagonal(covariance), 0.0)
    before = np.sqrt(np.multiply.outer(variances, variances))
    after = np.sqrt(np.multiply.outer(variances + record, variances + record))
    added = np.sqrt(np.multiply.outer(record, record))
    correlation = np.abs(np.divide(covariance, before, out=np.zeros_like(covariance), where=before > 0))
    return np.asarray(correlation + (added - correlation * before) / after) / NORMAL


def _short_of_corners(moment: PrivateMoment) -> tuple[Floats, Floats]:
    """How far means and variances are from those of records at the corners of the box, where a fit finds as little.

    With few records all of them are clipped, and what is found of a full box is not told from little. Zero where the
    fit would have found more. In error bars, of shape (d,) each.
    """
    fitted, d = moment.fitted, moment.bounds.size
    seed = public_seed(fitted)
    number = simulation.simulated_number(moment.records, d)
    rng = np.random.default_rng(seed)
    corners = SimulatedRecords.of(rng.choice([-1.0, 1.0], (number, d)))
    fits = [simulation.fit_simulated(corners, moment, rng) for _ in range(_REPETITIONS)]
    noise = 2 * float(np.linalg.norm(np.diagonal(fitted.std)))
    squares = min(float(np.trace(fit.second)) for fit in fits)
    variances = min(float(np.trace(likeliest(fit))) for fit in fits)
    length, spread = np.zeros(d), np.zeros(d)
    if float(np.trace(fitted.second)) + noise >= squares:
        length = (1 - np.sqrt(min(max(squares, 0.0) / d, 1.0))) * (1 - np.abs(fitted.mean))
    if float(np.trace(likeliest(fitted))) + noise >= variances:
        spread = np.maximum(1 - np.diagonal(fitted.covariance), 0.0)
    return np.asarray(length / NORMAL), np.asarray(spread / NORMAL)


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
        For the family with the largest error of each number.
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
    found, half = simulation.find_errors(simulated, bounds.halfwidths), bounds.halfwidths
    return Forecast(  # the first family is Gaussian
        friendly=MomentErrors.in_units({name: errors[0] for name, errors in found.items()}, half),
        typical=MomentErrors.in_units({name: errors.mean(axis=0) for name, errors in found.items()}, half),
        hostile=MomentErrors.in_units({name: errors.max(axis=0) for name, errors in found.items()}, half),
    )


def _within(name: str, value: ArrayLike, most: float, size: int) -> Floats:
    """One number for each feature, from 0 to `most`."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((), (size,)) or not ((array >= 0) & (array <= most)).all():
        raise ParameterError(
            f"{name} must be a number from 0 to {most:g}, or one for each of {size} features, got {value!r} instead."
        )
    return np.broadcast_to(array, (size,))
