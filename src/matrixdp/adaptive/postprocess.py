"""Post-processing of the noisy moments of a fit into a mean and a covariance, at no privacy cost."""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.measure import NoisyMoment, share_count
from matrixdp.adaptive.settings import Settings
from matrixdp.adaptive.shrinkage import denoise, keep_spikes, nearest_of_same_trace, shrink_spectrum
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats

_SURE = 1.5  # least excess of squared differences, in standard deviations, that is taken for clipping
_TINY = float(np.finfo(float).tiny) ** 0.5
_MOST_CLIPPED = 4.0  # largest factor by which clipping in earlier coordinates may have taken more
_EVIDENCE = 3.0  # standard deviations of a trace below which the covariance is zero


class FinalPlan(NamedTuple):
    """Public coordinates ``u = A (x - m)`` of the final moment, and errors to expect there, in the Frobenius norm."""

    coordinates: Coordinates
    ratio: float  # square of the constant before each record, in units of r^2 for the clipping norm r
    mean_square: float  # expected mean of ``|u|^2``, which varies like a sum of `freedom` squares of Gaussian numbers
    freedom: float
    noise: float  # of the size ``noise r^2/(N mu)``
    clipping: float  # of n records by t in ``|u|^2``, of the size ``clipping n t/N/mean_square``


class Placed(NamedTuple):
    """A noisy moment, and the public coordinates in which it was measured."""

    moment: NoisyMoment
    coordinates: Coordinates


class FinalBall(NamedTuple):
    """Clipping norm of the final moment in its coordinates, and the noisy mean that clipping takes from ``|u|^2``."""

    radius: float
    excess: float
    times: float = 0.0  # records to clip, over the number that balances noise and clipping


@builtin_kind
@dataclass(frozen=True, eq=False)
class Fitted:
    """Mean and covariance of records in [-1, 1]^d, and the noise in them; vectors (d,), matrices (d, d)."""

    mean: Floats
    covariance: Floats  # positive semidefinite, and zero where nothing tells it from zero
    evident: float  # by which it was multiplied, from 0 to 1, since noise may be all there is
    second: Floats  # second moment about the midpoint of the box
    mean_std: Floats  # of the noise before shrinkage, to first order, as `std`, that of the covariance
    std: Floats
    unshrunk: Floats  # covariance before shrinkage, which may have negative eigenvalues
    noise_shape: Floats  # B B' for which the final noise is ``B G B'``, G symmetric with independent entries
    noise_std: float  # of G off the diagonal
    radius: float  # clipping norm of the final moment in its coordinates
    learned: bool  # whether there were enough records to learn them


def finish_single(moment: NoisyMoment, radius: float, settings: Settings) -> Fitted:
    """Mean and covariance from one moment about the midpoint, all of which may be noise: records are few."""
    identity = Coordinates.of(np.eye(moment.mean.size), np.zeros(moment.mean.size))
    return _fitted(*moment.transform(), moment, identity, FinalBall(radius, 0.0), settings, learned=False)


def finish_learned(
    found: list[Placed],
    final: NoisyMoment,
    box: NoisyMoment | None,
    plan: FinalPlan,
    ball: FinalBall,
    settings: Settings,
) -> Fitted:
    """Mean and covariance from moments in earlier coordinates, in the plan's, and perhaps of the whole box."""
    boxes = [] if box is None else [box]
    moments = share_count(*(one.moment for one in found), final, *boxes)
    placed = [one._replace(moment=moment) for one, moment in zip(found, moments, strict=False)]
    final = moments[len(found)]
    second, variances = combine([*placed, Placed(final, plan.coordinates)], settings)
    fitted = _fitted(second, variances, final, plan.coordinates, ball, settings)
    return _mix_box(fitted, final, plan, moments[-1]) if boxes else fitted


def combine(found: list[Placed], settings: Settings) -> tuple[Floats, Floats]:
    """Average of moments in the coordinates of the last, entry by entry with their precisions, and its variances.

    Of shape (d + 1, d + 1). Clipping takes more from records in coordinates that do not fit them yet, so moments of
    located records get what their trace lacks of that of the last one, and the average loses what it has more, both
    shrunk by noise.
    """
    final, last = found[-1]
    parts = []
    for moment, own in found:
        matrix = last.matrix @ own.inverse
        second, variances = moment.transform(matrix, own.matrix @ (last.centre - own.centre))
        if settings.locate_share:
            missing, noise = _trace(final.second) - _trace(second), final.trace_std**2 + moment.trace_variance(matrix)
            factor = 1 + shrink_by_noise(missing, math.sqrt(noise)) / max(_trace(second), _TINY)
            factor = min(factor, _MOST_CLIPPED)
            second[1:, 1:] *= factor
            variances[1:, 1:] *= factor**2
        parts.append((second, variances))
    second, variances = _average(parts)
    second[0, 0] = 1.0
    if settings.locate_share:
        more = shrink_by_noise(_trace(second) - _trace(final.second), final.trace_std)
        second[1:, 1:] *= max(1 - more / max(_trace(second), _TINY), 1 / _MOST_CLIPPED)
    return second, variances


def shrink_by_noise(value: float, std: float) -> float:
    """A number that should not be negative, shrunk by the standard deviation of its noise."""
    return value * (1 - (std / value) ** 2) if value > std else 0.0


def _average(parts: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Average of matrices, entry by entry with their precisions, and its variances."""
    matrices, variances = np.array([one for one, _ in parts]), np.maximum([noise for _, noise in parts], _TINY)
    precision = (1 / variances).sum(axis=0)
    return np.asarray((matrices / variances).sum(axis=0) / precision), 1 / precision


def _trace(second: Floats) -> float:
    """Trace of ``sum u u'/N`` of a moment of (1, u)."""
    return float(np.trace(second) - second[0, 0])


def about_mean(second: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of a noisy moment of (1, u), without the bias that the mean's noise has in its square."""
    mean = second[0, 1:]
    return mean, second[1:, 1:] - np.multiply.outer(mean, mean) + np.diag(variances[0, 1:])


def _fitted(
    second: Floats,
    variances: Floats,
    moment: NoisyMoment,
    coordinates: Coordinates,
    ball: FinalBall,
    settings: Settings,
    *,
    learned: bool = True,
) -> Fitted:
    """Shrink a noisy second moment where the aim needs variances, and map everything back from u to [-1, 1]^d.

    The covariance is made possible, and gets what clipping took of it; where nothing was learned, everything is
    multiplied by a factor from 0 to 1, since the trace itself may be noise.
    """
    second[0, 0] = 1.0
    mean, covariance = about_mean(second, variances)
    evident = 1.0
    if settings.shrink:
        spectrum = partial(shrink_spectrum, level=settings.level) if learned else keep_spikes
        mean, covariance = denoise(second, moment.constant, moment.std, spectrum)
        evident = evident_share(*moment.transform(), moment.trace_std)  # its coordinates were chosen by earlier noise
        kept = 1.0 if learned else _evident(float(np.trace(second)) - 1.0, moment.trace_std)
        mean, covariance = math.sqrt(kept) * mean, kept * covariance
        covariance = restore_excess(covariance, ball.excess / moment.count)
    back = coordinates.inverse
    squares = back**2
    noise = squares @ variances[1:, 1:] @ squares.T
    np.fill_diagonal(noise, 2 * np.diagonal(noise) - squares**2 @ np.diagonal(variances)[1:])  # pairs count twice
    location = np.clip(coordinates.centre + back @ mean, -1.0, 1.0)
    possible = nearest_possible(back @ covariance @ back.T)
    about_midpoint = possible + np.multiply.outer(location, location)
    mean_std, std = np.sqrt(squares @ variances[0, 1:]), np.sqrt(noise)
    unshrunk = back @ (second[1:, 1:] - np.multiply.outer(second[0, 1:], second[0, 1:])) @ back.T
    law = back @ back.T, moment.std, ball.radius
    return Fitted(location, evident * possible, evident, about_midpoint, mean_std, std, unshrunk, *law, learned=learned)


def nearest_possible(covariance: Floats) -> Floats:
    """Nearest positive semidefinite matrix of the same trace, with variances of at most one: the most in [-1, 1]."""
    nearest = nearest_of_same_trace(covariance)
    within = 1 / np.sqrt(np.maximum(np.diagonal(nearest), 1.0))
    return nearest * np.multiply.outer(within, within)


def evident_share(second: Floats, variances: Floats, trace_std: float) -> float:
    """Factor from 0 to 1 for the covariance, by how far its trace, which is measured best, exceeds its noise."""
    mean, own = second[0, 1:], variances[0, 1:]
    trace = float(np.trace(second)) - 1.0 - float(mean @ mean) + float(own.sum())
    std = math.sqrt(trace_std**2 + 4 * float(own @ mean**2) + 2 * float(own @ own))
    return _evident(trace, std)


def _evident(value: float, std: float) -> float:
    """Zero up to `_EVIDENCE` standard deviations, and beyond a factor that approaches one quickly."""
    return 1 - (_EVIDENCE * std / value) ** 4 if value > _EVIDENCE * std else 0.0


def finish_box(moment: NoisyMoment) -> Fitted:
    """Mean and covariance from one moment of the whole box."""
    second, variances = moment.transform()
    mean, covariance, std = _with_std(second, variances)
    evident = evident_share(second, variances, moment.trace_std)
    location, possible = np.clip(mean, -1.0, 1.0), evident * nearest_possible(covariance)
    about_midpoint, law = nearest_of_same_trace(second[1:, 1:]), (np.eye(mean.size), moment.std, math.sqrt(mean.size))
    mean_std = np.sqrt(variances[0, 1:])
    return Fitted(location, possible, evident, about_midpoint, mean_std, std, covariance, *law, learned=True)


def _mix_box(fitted: Fitted, final: NoisyMoment, plan: FinalPlan, box: NoisyMoment) -> Fitted:
    """A fit in learned coordinates, averaged entry by entry with a moment of the whole box, which has no bias."""
    whole, noise = box.transform()
    mean, covariance, std = _with_std(whole, noise)
    own = final.transform(plan.coordinates.inverse, -plan.coordinates.matrix @ plan.coordinates.centre)[1][1:, 1:]
    shrunk = fitted.second - np.multiply.outer(fitted.mean, fitted.mean)
    pairs = [
        _Pair(fitted.second, own, whole[1:, 1:], noise[1:, 1:]),
        _Pair(fitted.mean, fitted.mean_std**2, mean, noise[0, 1:]),
        _Pair(shrunk, fitted.std**2, covariance, std**2),
        _Pair(fitted.unshrunk, fitted.std**2, covariance, std**2),
    ]
    biased = any(pair.is_biased for pair in pairs[:2])  # whose entries have independent noise
    second, location, about, unshrunk = (pair.average(biased=biased) for pair in pairs)
    evident = max(fitted.evident, evident_share(whole, noise, box.trace_std))
    mean, possible = np.clip(location[0], -1.0, 1.0), evident * nearest_possible(about[0])
    law = fitted.noise_shape, fitted.noise_std, fitted.radius, fitted.learned
    mean_std, std, about_midpoint = np.sqrt(location[1]), np.sqrt(about[1]), nearest_of_same_trace(second[0])
    return Fitted(mean, possible, evident, about_midpoint, mean_std, std, unshrunk[0], *law)


class _Pair(NamedTuple):
    """A result that may be biased and one that is not, of the same shape, and the variances of their noise."""

    mine: Floats
    variances: Floats
    other: Floats
    noise: Floats

    @property
    def excess(self) -> float:
        """Sum of squared differences, less what noise explains."""
        return float(((self.mine - self.other) ** 2).sum()) - float((self.variances + self.noise).sum())

    @property
    def is_biased(self) -> bool:
        """Whether noise cannot explain the difference; the more exact the first result is, the surer one must be."""
        gain = float(self.noise.sum()) / max(float(self.variances.sum()), _TINY)
        spread = math.sqrt(2 * self.mine.ndim * float(((self.variances + self.noise) ** 2).sum()))  # entries are twice
        return self.excess > max(1.0, _SURE + math.log(max(gain, 1.0)) / 2) * spread

    def average(self, *, biased: bool) -> tuple[Floats, Floats]:
        """Average by precisions, entry by entry, and its variances; `biased` adds the excess to the first variances."""
        variances = self.variances
        if biased and self.excess > 0:
            variances = variances * (1 + self.excess / max(float(variances.sum()), _TINY))
        weights = self.noise / np.maximum(variances + self.noise, _TINY)
        return weights * self.mine + (1 - weights) * self.other, weights * variances


def _with_std(second: Floats, variances: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, covariance about it, and the covariance's standard deviations, from a noisy moment of (1, x)."""
    mean, covariance = about_mean(second, variances)
    own, squares = variances[0, 1:], mean**2
    cross = np.multiply.outer(squares, own)
    return mean, covariance, np.sqrt(variances[1:, 1:] + cross + cross.T + np.diag(2 * squares * own))


def finish_targets(found: list[Placed], count: int) -> Fitted:
    """A fit in which the last features have their private means and variances, and nothing is known of the others."""
    size, parts = found[-1].moment.mean.size, []
    m = size - count
    kept = np.ix_(*[np.r_[0, m + 1 : size + 1]] * 2)
    for moment, (_, own) in zip(share_count(*(one.moment for one in found)), found, strict=True):
        second, noise = moment.transform(own.inverse, -own.matrix @ own.centre)
        parts.append((second[kept], noise[kept]))
    second, noise = _average(parts)
    mean, covariance, bars = _with_std(second, noise)
    every, std = np.zeros((size, size)), np.ones((size, size))
    every[m:, m:], std[m:, m:] = np.diag(np.clip(np.diagonal(covariance), 0.0, 1.0)), bars
    location, spread = np.append(np.zeros(m), np.clip(mean, -1.0, 1.0)), np.append(np.ones(m), np.sqrt(noise[0, 1:]))
    about_midpoint = every + np.multiply.outer(location, location)
    law = np.eye(size), found[-1].moment.std, math.sqrt(size)
    return Fitted(location, every, 1.0, about_midpoint, spread, std, every, *law, learned=False)


def restore_excess(covariance: Floats, excess: float) -> Floats:
    """Covariance of clipped records with `excess` added to its trace, at most as much as the trace itself."""
    total = float(np.trace(covariance))
    return np.asarray(covariance * (1 + min(max(excess, 0.0) / total, 1.0))) if total > 0 else covariance
