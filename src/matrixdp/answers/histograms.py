"""Histograms of the numbers of a table, with less noise, and quantiles with intervals; post-processing.

The bins of a release with `TableMoments.shapes` have independent noise of one standard deviation. "Histograms and
quantiles" in `docs/postprocessing.md` has the intervals of quantiles and the rule by which shares are denoised.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainc, ndtri

from matrixdp.answers.estimate import Estimate, join, settle
from matrixdp.answers.moments import TINY, shrink, summarise
from matrixdp.answers.psd import project_simplex
from matrixdp.answers.view import table_query, view_moments
from matrixdp.checks import check_number
from matrixdp.design.design import Design
from matrixdp.domain.columns import Number
from matrixdp.errors import ParameterError
from matrixdp.intervals import LEVEL
from matrixdp.types import Floats

QUARTILES = (0.25, 0.5, 0.75)
_CUT = 2.5  # standard deviations below which a candidate takes a bin as empty
_CUT_COST = 2 * _CUT * math.exp(-(_CUT**2) / 2) / math.sqrt(2 * math.pi)  # degrees of freedom of such a bin
_WIDEST = 0.999  # variance of a shape on the bounds, relative to the largest possible


@dataclass(frozen=True, eq=False)
class Histogram:
    """The shape of a number: shares of the values that are there, at its bounds and in bins between them.

    Attributes
    ----------
    edges : float64 array of shape (bins + 1,)
        Of the bins, in units of the column. Where it has steps, an edge is in the middle of two values.
    shares : float64 array of shape (bins + 2,)
        Not negative, with sum 1: at the lower bound, in each bin, at the upper bound. They have less expected error
        than `noisy`, and are biased.
    noisy : float64 array of shape (bins + 2,)
        The same shares as they were released: unbiased, possibly negative.
    std : float
        Standard deviation of the noise in each of them.
    """

    number: Number
    edges: Floats
    shares: Floats
    noisy: Floats
    std: float

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Least and largest value at each bound and in each bin, of shape (bins + 2,)."""
        half, (lower, upper) = (self.number.step or 0.0) / 2, (self.number.lower, self.number.upper)
        least, most = self.edges[:-1] + half, self.edges[1:] - half
        return np.concatenate([[lower], least, [upper]]), np.concatenate([[lower], most, [upper]])

    def to_estimate(self) -> Estimate:
        """The shares as a table, with a row for each bound and bin, and where it begins and ends.

        Intervals are those of `noisy`, and each share is within its own.
        """
        names = ("lower bound", *(f"bin {i}" for i in range(1, self.edges.size)), "upper bound")
        ends, std = np.stack(self.ends, axis=1), np.full((len(names), 1), self.std)
        noisy = settle(self.noisy[:, None], std, names, ("share",), (0.0, 1.0))
        shares = replace(noisy, value=np.clip(self.shares[:, None], *noisy.interval()))
        places = Estimate(ends, np.zeros_like(ends), names, ("from", "to"))
        return join((places, shares), names, ("from", "to", "share"), 1)


class _Counts(NamedTuple):
    """Noisy shares of all records in the bins of a number, of shape (n,), of those that have a value, and its shape."""

    bins: Floats
    total: float
    total_std: float
    histogram: Histogram

    def quantile(self, q: float) -> tuple[float, float, float]:
        """A value and the ends of its interval: all bins that no test of the cumulative share excludes."""
        histogram, n, (least, most) = self.histogram, self.bins.size, self.histogram.ends
        k, std = np.arange(1, n) / n, histogram.std * max(self.total, self.total_std, TINY)
        below = np.cumsum(self.bins)[:-1] - k * (self.bins.sum() - self.total) - q * self.total
        reach = float(ndtri((1 + LEVEL) / 2)) * np.sqrt(std**2 * n * k * (1 - k) + ((k - q) * self.total_std) ** 2)
        kept = np.flatnonzero(np.append(True, below <= reach) & np.append(below >= -reach, True))
        low, high = least[kept[0]], most[kept[-1]]
        above = np.cumsum(histogram.shares)
        place = min(int(np.searchsorted(above, q - 1e-12)), n - 1)
        part = (q - above[place]) / max(histogram.shares[place], TINY) + 1
        value = least[place] + float(np.clip(part, 0.0, 1.0)) * (most[place] - least[place])
        if (step := histogram.number.step) is not None:
            value = histogram.number.lower + step * round((value - histogram.number.lower) / step)
        return float(np.clip(value, low, high)), float(low), float(high)


def _expect(number: Number, edges: Floats, noisy: Floats, std: float, mean: float, variance: float) -> Floats:
    """Shares of a beta law on the bounds, -1 and 1, with a released mean and variance; uniform where these are NaN."""
    a = b = 1.0
    # Of a number without steps, values at a bound that stand out from the noise are apart from that law.
    low, high = noisy[[0, -1]] * ((noisy[[0, -1]] > _CUT * std) & (number.step is None))
    rest = max(1 - low - high, TINY)
    square = (variance + mean**2 - low - high) / rest
    mean = (mean + low - high) / rest
    variance = square - mean**2
    if math.isfinite(mean + variance):
        mean = float(np.clip(mean, -_WIDEST, _WIDEST))
        spread = (1 - mean**2) / float(np.clip(variance, TINY, _WIDEST * (1 - mean**2))) - 1
        a, b = spread * (1 + mean) / 2, spread * (1 - mean) / 2
    places = np.clip((edges - number.lower) / (number.upper - number.lower), 0.0, 1.0)
    found: Floats = rest * np.diff(betainc(a, b, places), prepend=0.0, append=1.0)
    found[[0, -1]] += low, high
    return found


def _denoise(noisy: Floats, std: float, expected: Floats) -> Floats:
    """The candidate with the least estimate of its risk, ``|x - noisy|^2 + 2 std^2 df``."""
    weight = np.sqrt(np.maximum(expected, 1 / noisy.size))
    apart = noisy - expected
    moved = shrink(apart, weight, np.full(noisy.size, std), together=True).mean
    kept = noisy >= min(_CUT * std, float(noisy.max()))
    sparse = np.zeros_like(noisy)
    sparse[kept] = project_simplex(noisy[kept] + (1 - noisy[kept].sum()) / kept.sum())
    plain = project_simplex(noisy)
    factors = float((moved / np.where(apart == 0, 1.0, apart)).sum())
    candidates = [
        (project_simplex(expected + moved + (apart - moved).mean()), factors),
        (plain, float((plain > 0).sum() - 1)),
        (sparse, float((sparse > 0).sum() - 1) + _CUT_COST * float((~kept).sum())),
    ]
    return min(candidates, key=lambda one: float(np.square(one[0] - noisy).sum()) + 2 * std**2 * one[1])[0]


@np.errstate(all="ignore")
def _read_counts(matrix: Floats, design: Design) -> dict[str, _Counts]:
    query, first, counts = table_query(design), 0, {}
    if not query.shapes:
        raise ParameterError(
            "histograms and quantiles follow from a release with a share of the budget for them: TableMoments(..., "
            "shapes=0.1), or --shapes 0.1 with --query everything."
        )
    view, bins, std = view_moments(matrix, design), matrix[-query.histogram_bins :, 0], float(design.std[-1, 0])
    summary = summarise(view).value / view.halfwidths[:, None]
    for number, r, (mean, spread, _) in zip(query.used.numbers, view.variables[1], summary, strict=True):
        edges = query.edges[number.name]
        total, noise = float(view.read(r, r)), float(view.law.entry_std(r, r))
        found, first = bins[first : first + edges.size + 1], first + edges.size + 1
        size = max(total, noise, TINY)
        noisy, own = (found - (found.sum() - size) / found.size) / size, std / size
        shares = _denoise(noisy, own, _expect(number, edges, noisy, own, float(mean), float(spread) ** 2))
        counts[number.name] = _Counts(found, total, noise, Histogram(number, edges, shares, noisy, own))
    return counts


def find_histograms(matrix: Floats, design: Design) -> dict[str, Histogram]:
    """The histogram of each number of a table, by its name; those of groups are of all records together."""
    return {name: one.histogram for name, one in _read_counts(matrix, design).items()}


def find_quantiles(matrix: Floats, design: Design, columns: Sequence[str] | None, q: Any) -> Estimate:
    """Quantiles of the values that are there, with 95% intervals; a row for each number, a column for each of `q`."""
    asked = [check_number(one, "q", above=0, below=1) for one in np.atleast_1d(q).tolist()]
    counts, used = _read_counts(matrix, design), table_query(design).used
    names = tuple(counts) if columns is None else tuple(used.number(name).name for name in columns)
    value, low, high = np.moveaxis(np.array([[counts[name].quantile(one) for one in asked] for name in names]), -1, 0)
    least, most = (np.array([[getattr(used.number(name), end)] for name in names]) for end in ("lower", "upper"))
    titles = tuple("median" if one == 0.5 else f"{100 * one:.6g}%" for one in asked)
    std = np.full_like(value, np.nan)
    return Estimate(value, std, names, titles, least=least, most=most, low=low, high=high)
