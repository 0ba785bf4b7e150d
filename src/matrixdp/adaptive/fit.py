"""Learned directions: a rough moment, new coordinates about it, and the final moment in those."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matrixdp.adaptive.ball_moment import BallMoment, ball_moment, ball_query, denoise
from matrixdp.adaptive.budget import Spending
from matrixdp.adaptive.clipped_tail import give_back, private_excess
from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.grid_records import Clippable
from matrixdp.adaptive.radius import Search, carried_on, count_query, count_std, private_radius
from matrixdp.adaptive.settings import Recipe, aimed_count, count_share, meant_count, rough_share
from matrixdp.adaptive.shrinkage import (
    clean_spectrum,
    half_level_spectrum,
    keep_spikes,
    level_spectrum,
    nearest_of_same_trace,
)
from matrixdp.design import isotropic, make_design
from matrixdp.privacy import share_mu
from matrixdp.types import Floats

_RATIOS = 2.0 ** np.arange(-4.0, 1.01, 0.25)  # squares of the constant that are tried, in squares of the radius
_LOPSIDED = 0.5  # how far clipping may move the mean, of what it would if all that is cut off lay on one side
_LEAST_WEIGHT = 1.5  # of a target beside the features
_TAIL_NOISE = 0.15  # of the noise in what clipping cut off, beside that of the final moment
_TAIL = 1.25  # squares beyond that of the radius that are asked for, at most
_GIVEN_BACK = 4 / 3  # times as many records are clipped where what is cut off is given back


@dataclass(frozen=True, eq=False)
class Fitted:
    """Mean and covariance of records in [-1, 1]^d, and the noise in them.

    Attributes
    ----------
    mean, covariance : float64 arrays of shape (d,) and (d, d)
        The covariance is positive semidefinite.
    second : float64 array of shape (d, d)
        Second moment about the midpoint. Not always the sum of what mean and covariance add to it, since what clipping
        takes from those may cancel in it.
    mean_std, std : float64 arrays of shape (d,) and (d, d)
        Standard deviation of the noise in each entry before shrinkage, to first order.
    seen : float64 array of shape (d, d)
        The covariance before shrinkage, which may have negative eigenvalues.
    scale : float64 array of shape (d, d)
        What the final moment's coordinates take for the identity: the learned shape of the noise.
    noise : float
        Standard deviation of the final noise off the diagonal, in those coordinates.
    radius : float
        To which the final moment was clipped.
    learned : bool
        Whether there were enough records for two steps.
    """

    mean: Floats
    covariance: Floats
    second: Floats
    mean_std: Floats
    std: Floats
    seen: Floats
    scale: Floats
    noise: float
    radius: float
    learned: bool


def fit_moment(
    steps: Clippable,
    recipe: Recipe,
    spending: Spending,
    *,
    records: int,
    basis: Floats | None = None,
    targets: int = 0,
) -> Fitted:
    """The whole recipe on records that are on their grid.

    Parameters
    ----------
    steps : Clippable
        Private, of shape (n, d).
    recipe : Recipe
    spending : Spending
    records : int
        The public number of records.
    basis : float64 array of shape (d, d), optional
        Public orthonormal columns to use; learned by default.
    targets : int
        How many of the last features a regression is to predict from the others.

    Privacy
    -------
    Looks at the records through `spending` alone: every count and moment has its share of the budget, and whatever
    is chosen in between is a function of earlier noisy answers.
    """
    d, mu = steps.shape[1], spending.privacy.mu
    radius = _first_radius(steps, recipe, spending, records)
    scarce = is_scarce(d, records, mu, recipe)
    part = spending.left if scarce else rough_share(recipe, features=d, records=records, mu=mu)
    name = "moment" if scarce else "rough moment"
    rough = ball_moment(name, steps, radius, spending, share=part, public=records, ratio=recipe.rough_ratio)
    if scarce:
        return _finish(None, rough, Coordinates.of(np.eye(d), np.zeros(d)), radius, recipe)
    coordinates, variances, weight = _new_coordinates(rough, recipe, basis, steps.levels, targets)
    plan = _plan(variances, coordinates.centre, recipe, more=targets * (weight - 1))
    moved = steps.moved(coordinates)
    most = float(np.linalg.norm(np.abs(coordinates.matrix) @ (1 + np.abs(coordinates.centre))))
    cut, clipped = _second_radius(moved, plan, recipe, spending, records=records, most=most)
    excess, tail = 0.0, recipe.tail_share
    if tail:
        reach = cut**2 * plan.reach(math.sqrt(tail / (spending.left - tail)))
        excess = private_excess(moved, cut, reach, spending, records=records, share=tail)
    final = ball_moment("final moment", moved, cut, spending, share=spending.left, public=records, ratio=plan.ratio)
    return _finish(rough, final, coordinates, cut, recipe, excess=excess, clipped=clipped, even=plan.even)


def rehearse(spending: Spending, size: int, records: int) -> None:
    """The errors that designs of a fit could have, before it is charged: with the whole budget they are likeliest."""
    for query in (count_query(records, spending.neighbours), ball_query(size, 1.0, records, spending.neighbours)):
        make_design(query, spending.privacy, allocation=isotropic())


def is_scarce(features: int, records: int, mu: float, recipe: Recipe) -> bool:
    """The public rule: too few records for two steps."""
    return features / (records * mu) > recipe.scarce


def _first_radius(steps: Clippable, recipe: Recipe, spending: Spending, records: int) -> float:
    """A radius about the midpoint; a public one where counts would be lost in their noise."""
    d, mu = steps.shape[1], spending.privacy.mu
    share = count_share(recipe.first_steps, features=d, records=records, mu=mu, most=recipe.radius_share)
    std = count_std(mu, share, recipe.first_steps)
    if std > records / 4:
        return math.sqrt(d) / 2
    most, wanted = math.sqrt(d), recipe.above * 1.5 * d / mu
    search = Search(most / 64, most, aimed_count(wanted, std, records), recipe.first_steps)
    radius = private_radius("radius", steps, search, spending, records=records, share=share)
    return _carried(radius, search, wanted, records, freedom=d, most=most)[0]


def _carried(
    radius: float, search: Search, wanted: float, records: int, *, freedom: float, most: float
) -> tuple[float, float]:
    """A radius that was found for more records than were wanted, carried on; and their share above it then.

    No record is longer than `most`.
    """
    meant = meant_count(wanted, search.above, records, freedom) / records
    return min(carried_on(radius, search.above / records, meant, freedom), max(radius, most)), meant


def _new_coordinates(
    rough: BallMoment, recipe: Recipe, basis: Floats | None, levels: int, targets: int
) -> tuple[Coordinates, Floats, float]:
    """Coordinates along the rough moment's directions, and its variances along them, raised by some of their noise.

    For a regression, coordinates are turned so that the last ones are what the others leave of the targets, and those
    are stretched: the squares of the lengths, by which their share in the ball grows, come last.
    """
    spectrum = level_spectrum if recipe.level else half_level_spectrum
    mean, covariance = denoise(rough.second, rough.constant, rough.std, spectrum)
    if basis is None:
        values, basis = np.linalg.eigh(covariance)
    else:
        values = np.einsum("ji,jk,ki->i", basis, covariance, basis)
    values = np.maximum(values, 0.0)
    variances = values + recipe.floor * math.sqrt(2) * rough.std
    matrix, weight = (basis / variances**recipe.power).T, 1.0
    if targets:
        weight = target_weight(values.size - targets, targets, float((values / variances).mean()))
        matrix = np.asarray(np.linalg.qr(matrix[:, ::-1], mode="r"))[::-1, ::-1]  # turned, into a lower triangle
        matrix[-targets:] *= math.sqrt(weight)
    centre = _pulled(np.clip(mean, -1.0, 1.0), basis, variances, recipe.pull)
    return Coordinates.of(matrix, centre, levels), variances, weight


def _pulled(mean: Floats, basis: Floats, variances: Floats, pull: float) -> Floats:
    """The mean, `pull` standard deviations nearer to the midpoint, or the midpoint itself if that is nearer.

    Records that lie far from the midpoint of their box have more room on its side: long ones lie there more often than
    not. And a noisy mean that is not far may be noise. Noise also shows as variance on the way to the midpoint, which
    therefore counts up to the mean variance only.
    """
    far = float(np.linalg.norm(mean))
    if not far:
        return mean
    variance = min(float(variances @ (mean @ basis / far) ** 2), float(variances.mean()))
    return mean * max(0.0, 1 - pull * math.sqrt(variance) / far)


def target_weight(features: int, targets: int, real: float) -> float:
    """Square of the factor on targets that balances the noise of their moments with that of the features' own.

    With m features and t targets of variance `real` (the rest is room left for noise), and the weight w, noise is
    ``m real + t w``; it counts ``1/w`` by the targets' moments, and by the features' own ``|b|^2``, taken for
    ``1/(2 real)``: half of the variance is explained. So ``w^2/real + w = real m/t``. It is at least 1.5: coefficients
    are shrunk, which takes more from the second kind of noise.
    """
    return max(real * (math.sqrt(1 + 4 * features / targets) - 1) / 2, _LEAST_WEIGHT)


@dataclass(frozen=True)
class _Plan:
    """What is expected of the final moment, from public numbers, as sizes in Frobenius' norm.

    `ratio` is the square of the constant before each record, in squares of the radius r; `inner` the mean of ``|u|^2``,
    which varies like a sum of `freedom` squares.
    Noise has the size ``noise r^2/(N mu)``; n records that are clipped by t in ``|u|^2`` cost ``clipping n t/N/inner``,
    of which ``covariance`` is the covariance's part.
    """

    ratio: float
    inner: float
    freedom: float
    noise: float
    clipping: float
    covariance: float

    @property
    def even(self) -> bool:
        """Whether clipping costs more by the covariance than by a mean that lies far from the midpoint.

        If not, what it takes from either may cancel in the second moment, and giving back one alone would hurt.
        """
        return 2 * self.covariance**2 > self.clipping**2

    def reach(self, precision: float) -> float:
        """How much of a square beyond r^2 to ask for, in r^2, when that number gets ``mu precision``.

        Its noise shall be small beside the moment's own.
        """
        return min(_TAIL_NOISE * self.noise * self.inner / self.covariance * precision, _TAIL)


def _plan(variances: Floats, centre: Floats, recipe: Recipe, *, more: float = 0.0) -> _Plan:
    """The ratio with the least error of the moment, and the sizes that follow.

    All noise grows with ``1 + y``. The mean's is ``1/sqrt(y)`` times larger, and moves the second moment about the
    midpoint by its product with the centre, as clipping does when it is lopsided; about the mean it hardly matters.
    Coordinates that are stretched have `more` of a squared length.
    """
    back = variances ** (2 * recipe.power)
    within = variances ** (1 - 2 * recipe.power)
    inner, outer = float(within.sum()) + more, float(back.sum())
    freedom = float(within.sum() ** 2 / (within @ within))
    norm = float(np.linalg.norm(variances))
    if recipe.about_mean:
        ratio = float(_RATIOS[0])
        return _Plan(ratio, inner, freedom, (1 + ratio) * outer, norm, norm)
    far = float(centre @ centre)
    errors = (1 + _RATIOS) ** 2 * (outer**2 + float((back**2).sum()) + 2 * far * outer / inner / _RATIOS)
    best = int(np.argmin(errors))
    clipping = math.sqrt(norm**2 + _LOPSIDED**2 * far * float(variances.sum()) / 2)
    return _Plan(float(_RATIOS[best]), inner, freedom, math.sqrt(float(errors[best])), clipping, norm)


def _second_radius(
    moved: Clippable, plan: _Plan, recipe: Recipe, spending: Spending, *, records: int, most: float
) -> tuple[float, float]:
    """The final radius: about the typical length, with as many records above it as balance the noise; their share."""
    mu, steps = spending.privacy.mu, recipe.second_steps
    share = count_share(steps, features=moved.shape[1], records=records, mu=mu, most=recipe.radius_share)
    final = share_mu(mu, spending.left - share - recipe.tail_share)
    wanted = recipe.above * plan.noise * plan.inner / plan.clipping / final
    if recipe.tail_share and plan.even:
        wanted *= _GIVEN_BACK
    above = aimed_count(wanted, count_std(mu, share, steps), records)
    search = Search(math.sqrt(plan.inner) / 4, math.sqrt(plan.inner) * 4, above, steps)
    radius = private_radius("second radius", moved, search, spending, records=records, share=share)
    return _carried(radius, search, wanted, records, freedom=plan.freedom, most=most)


def _finish(
    rough: BallMoment | None,
    final: BallMoment,
    coordinates: Coordinates,
    radius: float,
    recipe: Recipe,
    *,
    excess: float = 0.0,
    clipped: float = 0.0,
    even: bool = True,
) -> Fitted:
    """Both moments by their precisions, in the final coordinates; made a covariance, and mapped back.

    What the radius cut off, `excess` in the mean of the squared lengths, is given back along the directions of long
    records; and what it took from the mean, by the share of records that were to be `clipped`. Unless the loss is
    `even`, the second moment about the midpoint is taken from the covariance as it was found.
    """
    d = final.mean.size
    second, variances = final.moved(np.eye(d), np.zeros(d))
    if rough is not None:
        other, others = rough.moved(coordinates.matrix, coordinates.centre)
        weights = others / (variances + others)
        second = weights * second + (1 - weights) * other
        variances = weights * variances
    second[0, 0] = 1.0
    back = coordinates.inverse
    seen = back @ (second[1:, 1:] - np.multiply.outer(second[0, 1:], second[0, 1:])) @ back.T
    if recipe.shrink:
        spectrum = clean_spectrum if not recipe.level else keep_spikes if rough is None else half_level_spectrum
        mean, inner = denoise(second, final.constant, final.std, spectrum)
        whole = give_back(inner, excess / final.count, radius)
        kept = 1.0 if rough is not None else _kept(second, final.trace_std)
        mean = (1 + recipe.drawn * clipped) * math.sqrt(kept) * mean
        found, covariance = (kept * back @ matrix @ back.T for matrix in (whole if even else inner, whole))
    else:
        mean = second[0, 1:]
        inner = second[1:, 1:] - np.multiply.outer(mean, mean) + np.diag(variances[0, 1:])
        found = covariance = back @ inner @ back.T
    squares = back**2
    location = np.clip(coordinates.centre + back @ mean, -1.0, 1.0)
    return Fitted(
        mean=location,
        covariance=_possible(covariance),
        second=_possible(found) + np.multiply.outer(location, location),
        mean_std=np.sqrt(squares @ variances[0, 1:]),
        std=np.sqrt(squares @ variances[1:, 1:] @ squares.T),
        seen=seen,
        scale=back @ back.T,
        noise=final.std,
        radius=radius,
        learned=rough is not None,
    )


def _possible(covariance: Floats) -> Floats:
    """The nearest positive semidefinite matrix of the same trace, with no variance above one: the most in [-1, 1]."""
    nearest = nearest_of_same_trace(covariance)
    within = 1 / np.sqrt(np.maximum(np.diagonal(nearest), 1.0))
    return nearest * np.multiply.outer(within, within)


def _kept(second: Floats, trace_std: float) -> float:
    """How much of a moment to keep whose trace may be noise alone: Wiener's factor, with the trace as it was seen."""
    trace = float(np.trace(second)) - 1.0
    return trace**2 / (trace**2 + trace_std**2) if trace > 0 else 0.0
