"""How much of the budget a moment of the whole box gets, beside the one in learned coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from matrixdp.adaptive.ball_moment import BallMoment
from matrixdp.adaptive.box_moment import expected_noise
from matrixdp.adaptive.plan import FinalBall, FinalPlan
from matrixdp.adaptive.settings import Settings

_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8)
_GAIN = 0.05  # smallest gain, in the sum of two logarithms of squared errors, for which a share is spent
_FEWEST = 0.05  # smallest share that is worth a release
_RATIOS = 1 / 32, 0.9  # limits of `plain_ratio`


def plain_share(
    rough: BallMoment, plan: FinalPlan, ball: FinalBall, settings: Settings, reach: float, ratio: float
) -> float:
    """Share, of what remains of the budget, for a moment of the whole box; a function of noisy answers.

    Both moments are averaged by their precisions, so the share minimises the expected error of that average: the sum of
    logarithms for the second moment about the midpoint and the covariance. It is at least `settings.plain_share` over
    the squared number of features: the fewer there are, the less is gained by clipping, and the more it can cost.
    It is at least `settings.check_share` where noise is small, so that clipping cannot remain unseen. It is one only if
    the rough moment is of the whole box, too.

    Parameters
    ----------
    rough : BallMoment
    plan : FinalPlan
    ball : FinalBall
    settings : Settings
    reach : float
        The public number of records times the `mu` that remains.
    ratio : float
        Of the moment of the box: `plain_ratio`.
    """
    if not settings.plain_share:
        return 0.0
    d = rough.mean.size
    log_error = _moment_errors(rough, plan, ball, reach, ratio)
    shares = (*_SHARES, 1.0) if rough.diagonal is not None else _SHARES
    best = min(shares, key=log_error)
    if log_error(0.0) - log_error(best) < _GAIN:
        best = 0.0
    least = min(settings.plain_share / d**2, _SHARES[-1])
    check = settings.check_share if d < settings.check_below * reach else 0.0
    return max(best, check, least if least > _FEWEST else 0.0)


def _moment_errors(
    rough: BallMoment, plan: FinalPlan, ball: FinalBall, reach: float, ratio: float
) -> Callable[[float], float]:
    """Logarithms of the mean square errors of second moment and covariance, added, as a function of the share."""
    d, mean = rough.mean.size, np.clip(rough.mean, -1.0, 1.0)
    std, diagonal, constant = expected_noise(d, ratio, reach)
    second = d * (d - 1) * std**2 + float(diagonal.sum())
    centred = second + 2 * (d + 1) * float(mean @ mean) * (std / constant) ** 2
    size = (ball.radius**2 / reach) ** 2
    learned = size * ((1 + plan.ratio) * plan.mean_square) ** 2 * (1 + 1 / plan.freedom)
    about_midpoint = size * plan.noise**2

    def log_error(share: float) -> float:
        rest = 1 - share
        return -math.log(share / second + rest / about_midpoint) - math.log(share / centred + rest / learned)

    return log_error


def plain_ratio(rough: BallMoment, *, public_number: bool) -> float:
    """Square of the constant before each record of a box moment, in units of d.

    Half of what has the least error about the mean, since the second moment about the midpoint needs none. Where the
    number of records is private, its noise is in both, and the ratio is the best one for both together.
    """
    d = rough.mean.size
    if not public_number:
        return float(min(np.geomspace(*_RATIOS, 20), key=_counted_errors(rough)))
    far = 2 * float(rough.mean @ rough.mean) / d
    best = (math.sqrt(far**2 + 8 * d * far) - far) / 4 / d
    return min(max(best / 2, _RATIOS[0]), _RATIOS[1])


def _counted_errors(rough: BallMoment) -> Callable[[float], float]:
    """Squared errors of second moment and covariance, added, as a function of the ratio; relative to those of noise.

    The noise of the number of records, relative to that number, moves the second moment S by S, and the covariance C
    about the mean m by ``C - m m'``.
    """
    d, mean = rough.mean.size, np.clip(rough.mean, -1.0, 1.0)
    own, second = np.multiply.outer(mean, mean), rough.second[1:, 1:]
    moved = float(np.square(second).sum() + np.square(second - 2 * own).sum())

    def error(ratio: float) -> float:
        weight = ratio * d
        return (1 + ratio) ** 2 * (2 * d * (d + 1) + 2 * (d + 1) * float(mean @ mean) / weight + 2 * moved / weight**2)

    return error
