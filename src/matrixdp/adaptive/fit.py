"""Strategies of a private moment: how a fit spends its budget, and what it measures next.

A strategy sees records through `Measurements` alone, so the same functions fit private records and, for error bars
and forecasts, simulated ones. docs/adaptive.md has the reasons of each step.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.measure import Measurements, box_noise
from matrixdp.adaptive.postprocess import (
    FinalBall,
    FinalPlan,
    Fitted,
    Placed,
    combine,
    finish_box,
    finish_learned,
    finish_single,
    finish_targets,
    shrink_by_noise,
)
from matrixdp.adaptive.settings import Settings
from matrixdp.adaptive.shrinkage import denoise, find_directions, shrink_spectrum
from matrixdp.types import Floats

_BOX_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)
_LEAST = 1e-9  # of a number of records, and of a variance, that is divided by
_GAIN = 0.05  # smallest gain, in the sum of two logarithms of squared errors, for which a share is spent
_BOX_RATIOS = 1 / 32, 0.9  # limits of `box_ratio`
_TARGET_RATIOS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
_REACH = 3.0  # standard deviations about a target's mean that are measured
_UNSEEN = 1e-4  # scale of the features where only targets are measured: too small to add to a length
_EXPLAINED = 0.5  # share of a target's variance that features may explain


@dataclass(frozen=True, eq=False)
class Purpose:
    """What a fit is for."""

    settings: Settings  # of its aim
    basis: Floats | None = None  # public orthonormal columns to use instead of learned ones
    targets: int = 0  # number of last features, which a regression predicts


def fit_moment(measure: Measurements, purpose: Purpose) -> Fitted:
    """Mean and covariance of records, by the strategy that public numbers choose, or by the box that records fill."""
    settings = purpose.settings
    if settings.filled:
        squares = measure.scales("location", settings.locate_share)[1]
        if float(squares.mean()) * (1 + 2 / measure.size) > settings.filled:
            return fit_box(measure, purpose)  # no ball has less noise
        purpose = replace(purpose, settings=replace(settings, locate_share=0.0))  # coordinates are those of the box
    return STRATEGIES[choose_strategy(measure, purpose)](measure, purpose)


def choose_strategy(measure: Measurements, purpose: Purpose) -> str:
    """Name of the strategy; reads public numbers alone."""
    scarce = measure.size / (measure.public * measure.mu) > purpose.settings.scarce
    if scarce and purpose.targets:
        return "target mean"
    if measure.size == 1 and not (purpose.settings.about_mean and purpose.settings.clipping):
        return "box"  # all but a covariance, which has a moment of the box beside
    return "ball" if scarce else "learned"


def fit_target_mean(measure: Measurements, purpose: Purpose, mean: Floats | float = 0.0, half: float = 1.0) -> Fitted:
    """Spend everything on the means of targets: first within `half` of `mean`, then in the part that most are in."""
    settings, count, found = purpose.settings, purpose.targets, list[Placed]()
    others, longest = measure.size - count, math.sqrt(count)

    def place(centre: Floats) -> Coordinates:
        scales = np.repeat([_UNSEEN, 1 / half], [others, count])
        return Coordinates.of(np.diag(scales), np.append(np.zeros(others), centre), measure.levels)

    mean = np.zeros(count) + mean
    for share in [settings.rough_share] * settings.rough_moments + [0.0]:
        if found:
            bracket = 2 * longest / 2.0**settings.bisections, 2 * longest
            radius = find_radius("radius", measure.transform(place(mean)), 1 / measure.mu, bracket, settings)
            half *= min(_REACH * radius / longest, 1.0)
        placed = place(np.clip(mean, half - 1, 1 - half))
        moment = measure.transform(placed).ball("target mean", longest, 1.0, share or measure.remaining)
        found.append(Placed(moment, placed))
        mean = np.clip(placed.centre[others:] + half * moment.mean[others:], -1.0, 1.0)
    return finish_targets(found, count)


def fit_box(measure: Measurements, purpose: Purpose) -> Fitted:
    """Spend everything on a moment of the whole box: no ball has less noise, or nothing else would show clipping."""
    ratio = _BOX_RATIOS[0] if purpose.settings.filled else purpose.settings.ratio
    return finish_box(measure.box("box moment", ratio, measure.remaining))


def fit_ball(measure: Measurements, purpose: Purpose) -> Fitted:
    """Spend everything on one moment in a ball about the midpoint: records are too few to learn coordinates."""
    radius = find_first_radius(measure, purpose.settings)
    moment = measure.ball("moment", radius, purpose.settings.ratio, measure.remaining)
    return finish_single(moment, radius, purpose.settings)


def fit_learned(measure: Measurements, purpose: Purpose) -> Fitted:
    """Learn coordinates from a rough moment; measure the final one there, and perhaps one of the whole box."""
    settings = purpose.settings
    found = measure_rough(measure, purpose)
    plan = _expect_errors(*new_coordinates(found, settings, purpose.basis, measure.levels), settings)
    inside = measure.transform(plan.coordinates)
    ball = find_final_ball(inside, plan, settings)
    reach = measure.public * measure.mu * math.sqrt(measure.remaining)
    if purpose.targets:
        variances = target_variances(found, purpose)
        plan, error = for_targets(plan, ball, variances, reach)
        half = min(_REACH * math.sqrt(float(variances.max())), 1.0)
        alone = _EXPLAINED + (2 * half / reach) ** 2 * float((1 / variances).sum())
        if alone < error:  # coefficients would explain less than they cost
            return fit_target_mean(measure, purpose, plan.coordinates.centre[-purpose.targets :], half)
    rough = in_box(found, settings)
    ratio = box_ratio(rough, public_number=measure.public_number)
    share = box_share(rough, plan, ball, settings, reach, ratio) * measure.remaining
    box = measure.box("box moment", ratio, share) if share else None
    final = inside.ball("final moment", ball.radius, plan.ratio, measure.remaining)
    return finish_learned(found, final, box, plan, ball, settings)


def measure_rough(measure: Measurements, purpose: Purpose) -> list[Placed]:
    """Steps 1 and 2: moments that tell directions, in coordinates of the box, or of located records."""
    settings, d = purpose.settings, measure.size
    if not settings.locate_share:
        radius = find_first_radius(measure, settings)
        rough = measure.ball("rough moment", radius, settings.ratio, settings.rough_share)
        return [Placed(rough, Coordinates.of(np.eye(d), np.zeros(d), measure.levels))]
    mean, spread = locate(measure, settings)
    variances = np.ones(d) if settings.scaled else spread**2
    coordinates = Coordinates.of(np.diag(variances**0.25 / spread), mean, measure.levels)
    found: list[Placed] = []
    for _ in range(min(settings.rough_moments, d)):  # one feature has no directions
        inside, square = measure.transform(coordinates), float(np.sqrt(variances).sum())
        balanced = square**2 / float(np.linalg.norm(variances)) / measure.mu
        radius = find_radius("radius", inside, balanced, _about(math.sqrt(square), settings), settings)
        rough = inside.ball("rough moment", radius, settings.ratio, settings.rough_share)
        found.append(Placed(rough, coordinates))
        coordinates, variances = new_coordinates(found, settings, purpose.basis, measure.levels)
    return found


def locate(measure: Measurements, settings: Settings) -> tuple[Floats, Floats]:
    """Posterior mean and spread of each feature, of shape (d,), as far as noisy means of values and squares tell."""
    values, squares, std, square_std = measure.scales("location", settings.locate_share)
    prior = settings.prior**2
    mean = values * prior / (prior + std**2)
    noise = square_std**2 + 4 * prior / (prior + std**2) * (std * mean) ** 2
    return mean, np.sqrt(expect_variance(squares - mean**2, noise, prior))


def expect_variance(noisy: Floats, noise: Floats, prior: float) -> Floats:
    """Posterior means of variances of which `noisy` ones are known, for a prior; raised by a standard deviation."""
    kept = prior**2 / (prior**2 + noise)
    # One is added, since too small variances would stretch the coordinates.
    return np.minimum(np.clip(prior + kept * (noisy - prior), 0.0, 1.0) + np.sqrt(kept * noise), 1.0)


STRATEGIES: dict[str, Callable[[Measurements, Purpose], Fitted]] = {
    "target mean": fit_target_mean,
    "box": fit_box,
    "ball": fit_ball,
    "learned": fit_learned,
}


def find_first_radius(measure: Measurements, settings: Settings) -> float:
    """Step 1: clipping norm about the midpoint; public where the counts would be lost in their noise."""
    mu, longest = measure.mu, math.sqrt(measure.size)
    if count_std(settings.bisections, settings.radius_share, mu) > settings.lost_counts * measure.public:
        return settings.public_radius * longest
    bracket = longest / 2.0**settings.bisections, longest
    return find_radius("radius", measure, measure.size / mu, bracket, settings)


def find_radius(
    name: str, measure: Measurements, balanced: float, bracket: tuple[float, float], settings: Settings
) -> float:
    """Radius in a bracket that about `count_clipped` records exceed; spends `radius_share`."""
    above = count_clipped(measure, balanced, settings)
    return bisect_radius(name, measure, bracket, above, settings.bisections, settings.radius_share)


def count_clipped(measure: Measurements, balanced: float, settings: Settings) -> float:
    """Number of records to clip where a balanced number would have the error of the noise, at most half of them."""
    lost = 2 * count_std(settings.bisections, settings.radius_share, measure.mu)  # fewer would be lost in the noise
    return min(max(settings.clip_factor * balanced, lost), measure.public / 2)


def _about(typical: float, settings: Settings) -> tuple[float, float]:
    """Bracket about an expected length."""
    half = 2.0 ** (settings.bisections / 2)
    return typical / half, typical * half


def count_std(counts: int, share: float, mu: float) -> float:
    """Standard deviation of the noise in each of some counts that together spend `share` of ``mu^2``."""
    return math.sqrt(counts / share) / mu


def bisect_radius(
    name: str, measure: Measurements, bracket: tuple[float, float], above: float, steps: int, share: float
) -> float:
    """Radius in a bracket that about `above` records exceed, by noisy counts that spend `share` together.

    Privacy
    -------
    Later counts are chosen from earlier noisy ones alone.
    """
    cuts = np.geomspace(*bracket, 2**steps + 1).tolist()  # all that a bisection can reach
    low, high = 0, len(cuts) - 1
    below, beyond = float(measure.public), 0.0  # counts at the ends of the bracket
    count = measure.counter(name, cuts[1:-1], share / steps)
    for _ in range(steps):
        middle = (low + high) // 2
        noisy = count(cuts[middle])
        if noisy > above:
            low, below = middle, noisy
        else:
            high, beyond = middle, noisy
    part = (below - above) / (below - beyond) if below > beyond else 0.5  # linear in the counts
    return float(cuts[low] * (cuts[high] / cuts[low]) ** min(max(part, 0.0), 1.0))


def new_coordinates(
    found: list[Placed], settings: Settings, basis: Floats | None, levels: int
) -> tuple[Coordinates, Floats]:
    """Step 3: coordinates along the directions of moments so far; variances there, raised by some of their noise."""
    last, own = found[-1]
    second, _ = combine(found, settings)
    mean, covariance = denoise(second, last.constant, last.std, partial(shrink_spectrum, level=settings.level))
    back = own.inverse
    mean, covariance, shape = own.centre + back @ mean, back @ covariance @ back.T, back @ back.T
    noise = math.sqrt(2) * last.std * shape
    scales = np.ones(len(mean))
    if settings.scaled:
        scales = np.sqrt(np.maximum(np.diagonal(covariance), 0.0) + np.diagonal(noise))
        units = np.multiply.outer(scales, scales)
        covariance, noise = covariance / units, noise / units
    if basis is None:
        basis = find_directions(covariance)[1]
    values, errors = (np.einsum("ji,jk,ki->i", basis, matrix, basis) for matrix in (covariance, noise))
    variances = np.maximum(values, 0.0) + settings.floor * errors
    matrix = (basis / variances**0.25).T / scales  # of all powers, this has the least noise for a clipping error
    centre = pull_to_midpoint(np.clip(mean, -1.0, 1.0), basis, variances, settings.pull)
    return Coordinates.of(matrix, centre, levels), variances


def pull_to_midpoint(mean: Floats, basis: Floats, variances: Floats, pull: float) -> Floats:
    """The mean, `pull` standard deviations nearer to the midpoint, on whose side most long records lie."""
    far = float(np.linalg.norm(mean))
    if not far:
        return mean
    # Along the line to the midpoint, to which noise of the mean adds; hence the limit.
    variance = min(float(variances @ (mean @ basis / far) ** 2), float(variances.mean()))
    return mean * max(0.0, 1 - pull * math.sqrt(variance) / far)


def _expect_errors(coordinates: Coordinates, variances: Floats, settings: Settings) -> FinalPlan:
    """Plan with the ratio y that has the least expected error, and the sizes of noise and clipping error.

    All noise is proportional to ``1 + y``, and that of the mean to ``(1 + y)/sqrt(y)``; its error changes the second
    moment by its product with the centre. Clipping t of a square on one side moves it by ``t/sqrt(8 mean_square)``.
    """
    total, trace = float(np.sqrt(variances).sum()), float(variances.sum())
    freedom, clipping = total**2 / trace, float(np.linalg.norm(variances))
    if settings.about_mean:
        ratio = settings.ratio
        return FinalPlan(coordinates, ratio, total, freedom, (1 + ratio) * total, clipping)
    far = float(coordinates.centre @ coordinates.centre)
    own = total**2 + trace
    best = 2 / (1 + math.sqrt(1 + 4 * own / far)) if far else 0.0  # least (1 + y)^2 (own + 2 far/y), at most 1
    ratio = max(best, settings.ratio)
    noise = (1 + ratio) * math.sqrt(own + 2 * far / ratio)
    shift = settings.one_sided * math.sqrt(far * trace / 2)
    clipping = math.hypot(clipping, shift)
    return FinalPlan(coordinates, ratio, total, freedom, noise, clipping)


def find_final_ball(measure: Measurements, plan: FinalPlan, settings: Settings) -> FinalBall:
    """Step 4: clipping norm in the plan's coordinates, and the trace of what clipping takes, shrunk by its noise."""
    tail = settings.tail_share
    final = measure.mu * math.sqrt(measure.remaining - settings.radius_share - tail)
    balance = plan.noise * plan.mean_square / plan.clipping
    bracket = _about(math.sqrt(plan.mean_square), settings)
    radius = find_radius("second radius", measure, balance / final, bracket, settings)
    clipped = count_clipped(measure, balance / final, settings)
    times = clipped / max(balance / final, _LEAST)
    if not tail:
        return FinalBall(radius, 0.0, times)
    precision = math.sqrt(tail / (measure.remaining - tail))  # relative to that of the final moment
    # Where counts are too noisy to clip as few records as wanted, more is missing, and the limit may be larger.
    limit = settings.tail_noise * precision * max(balance, clipped * final / settings.clip_factor) * radius**2
    noisy, std = measure.excess("tail", radius, limit, tail)
    return FinalBall(radius, shrink_by_noise(noisy, std), times)


def target_variances(found: list[Placed], purpose: Purpose) -> Floats:
    """Variances of the targets in their box, of shape (k,), as far as moments so far tell."""
    settings, rows = purpose.settings, found[-1].coordinates.inverse[-purpose.targets :]
    second, _ = combine(found, settings)
    covariance = second[1:, 1:] - np.multiply.outer(second[0, 1:], second[0, 1:])
    noise = 2 * (found[-1].moment.std * (rows**2).sum(axis=1)) ** 2
    expected = expect_variance(np.einsum("ti,ij,tj->t", rows, covariance, rows), noise, settings.prior**2)
    return np.maximum(expected, _LEAST)


def for_targets(plan: FinalPlan, ball: FinalBall, variances: Floats, reach: float) -> tuple[FinalPlan, float]:
    """The plan with the constant before each record that has the least error of guesses of targets, and that error.

    Errors are squares over the targets' `variances`, less one. In the plan's coordinates, in which features have
    variances v, noise of covariances of size s adds ``s^2 sum 1/v`` to the square of a guess, but not more than
    `_EXPLAINED` of the target's variance.
    """
    back = plan.coordinates.inverse
    spreads, lengths = (back**2).sum(axis=0), (back[-variances.size :] ** 2).sum(axis=1)
    share = float(np.mean(lengths / variances))
    mean = share * (ball.radius / reach) ** 2
    cross = share * (ball.radius**2 / reach) ** 2 * float((1 / spreads).sum())

    def error(ratio: float) -> float:
        noise = (1 + ratio) ** 2
        return mean * noise / ratio + _EXPLAINED * cross * noise / (_EXPLAINED + cross * noise)

    ratio = min((ratio for ratio in _TARGET_RATIOS if ratio >= plan.ratio), key=error)
    return plan._replace(ratio=ratio), error(ratio)


def in_box(found: list[Placed], settings: Settings) -> Floats:
    """Moment of (1, x) from moments so far, of shape (d + 1, d + 1), with means that are possible in [-1, 1]^d."""
    last = found[-1].coordinates
    turn = np.eye(len(last.numbers) + 1)
    turn[1:, 1:], turn[1:, 0] = last.inverse, last.centre
    second = turn @ combine(found, settings)[0] @ turn.T
    second[0, 1:] = second[1:, 0] = np.clip(second[0, 1:], -1.0, 1.0)
    return second


def box_share(rough: Floats, plan: FinalPlan, ball: FinalBall, settings: Settings, reach: float, ratio: float) -> float:
    """Share, of what remains of the budget, for a moment of the whole box; a function of noisy answers.

    It minimises the sum of logarithms of the expected errors of the average of both moments, for the second moment
    about the midpoint and the covariance. Clipping adds to the error in learned coordinates, however small the noise.
    """
    if not settings.clipping:
        return 0.0
    d, mean = len(rough) - 1, rough[0, 1:]  # of the moment of (1, x) so far
    box = box_noise(rough, ratio, reach)
    assert box.diagonal is not None
    second = d * (d - 1) * box.std**2 + float(box.diagonal.sum())
    centred = second + 2 * (d + 1) * float(mean @ mean) * (box.std / box.constant) ** 2
    size = (ball.radius**2 / reach) ** 2
    learned = size * ((1 + plan.ratio) * plan.mean_square) ** 2 * (1 + 1 / plan.freedom)
    about_midpoint = size * plan.noise**2

    clipped = (settings.clipping * ball.times) ** 2

    def log_error(share: float) -> float:
        rest = 1 / (1 / (1 - share) + clipped)
        return -math.log(share / second + rest / about_midpoint) - math.log(share / centred + rest / learned)

    best = min(_BOX_SHARES, key=log_error)
    return best if log_error(0.0) - log_error(best) >= _GAIN else 0.0


def box_ratio(rough: Floats, *, public_number: bool) -> float:
    """Square of the constant before each record of a box moment, in units of d, for the moment of (1, x) so far.

    The noise of a private number of records, relative to it, moves the second moment S by S, and the covariance C about
    the mean m by ``C - m m'``; the ratio has the least sum of both squared errors.
    """
    d, mean, second = len(rough) - 1, rough[0, 1:], rough[1:, 1:]
    moved = float(np.square(second).sum() + np.square(second - 2 * np.multiply.outer(mean, mean)).sum())
    moved *= not public_number

    def error(ratio: float) -> float:
        weight = ratio * d
        return (1 + ratio) ** 2 * (2 * d * (d + 1) + 2 * (d + 1) * float(mean @ mean) / weight + 2 * moved / weight**2)

    return float(min(np.geomspace(*_BOX_RATIOS, 20), key=error))
