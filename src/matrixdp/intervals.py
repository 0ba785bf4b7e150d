"""The one rule for intervals of answers.

Where noise leaves an answer, its interval is that of the noise, cut to what is possible; the true number is possible,
so this loses no coverage. A value beyond the end of the possible range is moved to that end. Its interval reaches at
least so far that it has `level` of the part of the noise's law that is possible, and is never empty.

Where noise leaves no answer, draws of possible moments (`matrixdp.answers.draws`) give a *plausible range*: the central
99% of the draws, and their median. It depends on what tables are like, and is marked as such wherever it is shown.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri, ndtri_exp

from matrixdp.checks import check_number
from matrixdp.types import Floats

LEVEL = 0.95  # of intervals, unless another level is asked for
CENTRAL = 0.99  # of the draws in a plausible range
_FAR, _NEAR, _WIDE = 0.7, 0.1, 0.1  # ends of a share or correlation beyond which noise tells nothing, in a wide range

Pair = tuple[Floats, Floats]


class Range(NamedTuple):
    """What is plausible of answers: the median, and both ends."""

    median: Floats
    low: Floats
    high: Floats


def interval(value: Floats, std: Floats, level: float = LEVEL, possible: Pair | None = None) -> Pair:
    """Bounds that contain the number without noise with probability `level`, for normal noise.

    `possible` has the least and the largest possible number, in arrays that broadcast to the values.
    """
    level = check_number(level, "level", above=0, below=1)
    reach = float(ndtri((1 + level) / 2)) * std
    low, high = value - reach, value + reach
    if possible is None:
        return low, high
    least, most = possible
    with np.errstate(all="ignore"):
        high = np.where(value < least, np.fmax(high, value + std * _quantile(value, std, level, possible)), high)
        flipped = _quantile(-value, std, level, (-most, -least))
        low = np.where(value > most, np.fmin(low, value - std * flipped), low)
    return np.clip(low, least, most), np.clip(high, least, most)


def _quantile(value: Floats, std: Floats, level: float, possible: Pair) -> Floats:
    """The quantile of the possible part of a normal law, in standard deviations from its mean, which lies below."""
    least, most = (log_ndtr(-(end - value) / std) for end in possible)
    return np.asarray(-ndtri_exp(least + np.log1p(-level * -np.expm1(most - least))))


def limit_products(reach: Floats) -> Pair:
    """Least and largest means of products, or covariances, of numbers within `reach` of zero, of shape (n, n)."""
    most = np.multiply.outer(reach, reach)
    return np.where(np.eye(len(most), dtype=bool), 0.0, -most), most


def root_range(square: Floats, std: Floats, most: Floats) -> Range:
    """The interval of a standard deviation of at most `most`, from a noisy variance; and a value in it."""
    least = np.zeros_like(most)
    low, high = interval(square, std, LEVEL, (least, most**2))
    middle = np.where(square > 0, np.clip(square, low, high), low + (high - low) / 4)
    return Range(np.sqrt(middle), np.sqrt(low), np.sqrt(high))


def find_range(draws: Floats) -> Range:
    """The plausible range of answers, from draws along the first axis."""
    with np.errstate(invalid="ignore"):
        low, median, high = np.quantile(draws, [(1 - CENTRAL) / 2, 0.5, (1 + CENTRAL) / 2], axis=0)
    return Range(median, low, high)


def extend_range(found: Range, ends: Pair) -> Range:
    """The range of correlations, or of shares that are explained, on a scale with these ends; NaN for other answers.

    An end of a wide range moves to that of the scale if it is beyond 0.7 of it, or within 0.1 of zero where the scale
    begins there: noise tells nothing about what lies beyond.
    """
    (median, low, high), (least, most) = found, ends
    wide = high - low > _WIDE
    low = np.where(wide & (low < np.where(least < 0, _FAR * least, least + _NEAR)), least, low)
    high = np.where(wide & (high > _FAR * most), most, high)
    return Range(median, low, high)
