"""Synthetic tables: rows whose shares, means, spreads and products of two columns are those of a release.

Post-processing. Each column is filled by itself, in random order, with values that have its released share, mean and
variance. Then values are swapped between rows, within a column, until the covariances between columns are the released
ones in the metric of the noise. Swaps keep what each column holds; so a table exists for any release, and the misfit
never grows (`docs/synthetic.md` has the method).

Sums over rows are of integers below 2^53, so that they are exact: a seed gives the same table on any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from matrixdp.answers.draws import draw_moments
from matrixdp.answers.estimate import Estimate
from matrixdp.answers.histograms import Histogram, find_histograms
from matrixdp.answers.moments import TINY, rake, shrink
from matrixdp.answers.psd import project_simplex
from matrixdp.answers.view import LEAST_SIZE, MomentView, table_query, view_moments
from matrixdp.checks import check_integer
from matrixdp.design.design import Design
from matrixdp.display import load_pandas
from matrixdp.domain.columns import Bins, Category, Column, Number
from matrixdp.errors import ParameterError
from matrixdp.noise.table_noise import VALUE, Place, TableNoise
from matrixdp.types import Floats

Values = NDArray[Any]
_BITS = 14  # of a coordinate: a product has 28, and the sum over 2^24 rows 52
_SLOPE_BITS = 20  # of a slope of the misfit
_SWEEPS, _FITTED = 80, 0.05
_LITTLE, _PATIENCE = 0.005, 5  # progress in so many sweeps that is not worth another
_CERTAIN = 0.9  # quantile of the gains from which on a swap is always made
_DIGITS = 6  # of a number, relative to the width of its bounds
_ROUNDED = 12  # decimals of covariances, which libraries do not compute to the last bit
_FAR = 2.0  # root mean square in standard deviations of the noise
_NONE = 1e-6  # of the largest eigenvalue: less is that of rounded coordinates whose sum is constant
_FLOOR = 0.1  # of the least eigenvalue
_ZERO_WEIGHT = 4.0  # of a pair of levels that cannot occur, over the largest weight
_GOLDEN = (np.sqrt(5) - 1) / 2  # its multiples are spread evenly over [0, 1) after their whole parts
_REMOVALS, _RARE = 20, 1e-6  # rounds, and the frequency of a level that no row has
_AGREE = 5  # rounds, of shares that agree with all tables with zeros
_INNER = 0.02  # of the means that are possible within bins, those at the ends are not used
_PARTS, _STEPS, _CLOSE, _LONGEST, _STEEPEST = 8, 25, 1e-6, 50.0, 2000.0  # of weights of a histogram
MOST_BYTES = 2 << 30  # of the coordinates of all rows
_NARROW = 1e5  # precision from which on a beta distribution is as good as Gaussian


class Margin(NamedTuple):
    """One column of n rows. A coordinate is ``(z - mean z_base)/unit``: its mean over the rows is zero.

    Coordinates are an indicator of each level; or the number, after an indicator of whether it is there if it may be
    missing, and before indicators of its `bins`.
    """

    column: Column
    place: Place
    rows: slice  # its coordinates
    values: Values  # numbers of levels, or numbers in halfwidths, NaN where they are missing
    bins: Bins | None = None

    @property
    def parts(self) -> list[slice]:
        """Its coordinates without those of the bins, and these."""
        end = self.rows.stop - (len(self.bins.level_names) if self.bins else 0)
        return [slice(self.rows.start, end), *([slice(end, self.rows.stop)] if self.bins else [])]

    def measure(self) -> tuple[Floats, Floats, Floats, NDArray[np.intp]]:
        """The coordinates, of shape (n, a); `mean`, `unit` and `base` of each, of shape (a,)."""
        if not isinstance(self.column, Number):
            return _measure_levels(self.values, len(self.place.levels))
        there = np.isfinite(self.values)
        count, share = max(int(there.sum()), 1), there.mean()
        mean = self.values[there].sum() / count
        apart = np.where(there, self.values - mean, 0.0)
        unit = float(np.sqrt(np.square(apart).sum() / count)) or 1.0
        table, means, units, base = apart[:, None] / unit, [mean], [unit], [self.place.observed]
        if self.place.observed:
            table = np.column_stack([there - share, table])
            means, units, base = [share, mean], [1.0, unit], [0, self.place.observed]
        own = table, np.array(means), np.array(units), np.array(base, np.intp)
        if self.bins is None:
            return own
        half = (self.column.upper - self.column.lower) / 2
        codes = self.bins.find(self.column.lower + (self.values + 1) * half)
        bins = _measure_levels(codes, len(self.bins.level_names))
        return tuple(np.concatenate(pair, axis=-1) for pair in zip(own, bins, strict=True))  # type: ignore[return-value]


def _measure_levels(codes: Values, width: int) -> tuple[Floats, Floats, Floats, NDArray[np.intp]]:
    level = codes[:, None] == np.arange(width)
    shares = level.mean(axis=0)
    return level - shares, shares, np.ones(width), np.zeros(width, np.intp)


def round_quotas(shares: Floats, rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Whole numbers that sum to `rows`, each less than one from its share of them."""
    ends = np.floor(np.cumsum(shares) / max(float(shares.sum()), TINY) * rows + rng.random() * (1 - 1e-9))
    ends[-1] = rows
    return np.diff(np.minimum(ends, rows), prepend=0).astype(np.intp)


def find_shares(noisy: Floats, never: Sequence[int] = ()) -> Floats:
    """The nearest shares that are not negative and sum to one, zero for those that can `never` occur."""
    kept = np.delete(np.arange(noisy.size), list(never))
    found = np.zeros_like(noisy)
    found[kept] = project_simplex(noisy[kept] + (1 - noisy[kept].sum()) / max(kept.size, 1))
    return found


def fill_category(view: MomentView, name: str, size: float, never: Sequence[int]) -> tuple[Floats, list[str]]:
    """Shares of the levels of a category, without those that can `never` occur, and the levels that noise hides."""
    places, levels = view.levels(name), view.place(name).levels
    noisy, std = view.read(0, places) / size, view.law.entry_std(0, places) / size
    if len(set(never)) == len(levels):
        raise ParameterError(
            f"impossible must leave {name!r} some level that can occur: it excludes all.", parameter="impossible"
        )
    for level in never:
        if noisy[level] > LEAST_SIZE * std[level]:
            raise ParameterError(
                f"impossible must leave {levels[level]!r} of {name!r} some level to occur with: the release shows it.",
                parameter="impossible",
            )
    hidden = [f"share of {name}={level}" for level, firm in zip(levels, noisy > 2 * std, strict=True) if not firm]
    return find_shares(noisy, never), hidden


class Spread(NamedTuple):
    """Share observed, mean and variance of a number in halfwidths."""

    share: float
    mean: float
    variance: float
    hidden: list[str]  # which of them noise hides
    measured: float  # the variance before it was moved to what is possible
    noise: tuple[float, float]  # standard deviations of the noise in the mean and in it


def find_spread(view: MomentView, name: str, half: float, size: float) -> Spread:
    """What a release says of a number by itself, moved to what is possible."""
    place, law = view.place(name), view.law
    x, r = place.value, place.observed
    share = 1.0 if not r else min(max(float(view.read(0, r)), float(law.entry_std(0, r))) / size, 1.0)
    weight = 1 / (size * share * half**2)
    mean = float(np.clip(view.read(0, x) * half * weight, -1 + 1e-6, 1 - 1e-6))
    noise = float(law.std([(x, x, np.array(weight)), (0, x, np.array(-2 * mean * half * weight))]))
    variance, most = float(view.read(x, x)) * weight - mean**2, (1 - mean**2) * (1 - 1e-6)
    hidden = [f"spread of {name}"] if variance < 2 * noise else []
    possible = float(np.clip(variance, min(noise / 2, most), most))
    return Spread(share, mean, possible, hidden, variance, (float(law.entry_std(0, x)) * half * weight, noise))


def fill_number(found: Spread, column: Number, shape: Histogram | None, rows: int, rng: np.random.Generator) -> Floats:
    """Values of a number in halfwidths, of shape (rows,), NaN where they are missing."""
    count = min(int(rows * found.share + rng.random()), rows)
    mean, variance = found.mean, found.variance
    step = None if column.step is None else 2 / round(column.steps)
    if shape is not None:
        values = spread_histogram(shape, found, count)
    else:
        if step is not None:  # rounding adds to the variance
            variance = max(variance - step**2 / 6, variance / 4)
        # Quantiles of the beta distribution on [-1, 1] of this mean and variance.
        own, share = max(variance, 1e-12), (np.arange(count) + 0.5) / count
        if (precision := (1 - mean**2) / own - 1) > _NARROW:
            values = mean + np.sqrt(own) * ndtri(share)
        else:
            values = 2 * betaincinv(precision * (1 + mean) / 2, precision * (1 - mean) / 2, share) - 1
        for _ in range(2 * (count > 1)):  # where rows are few
            ratio = min(float(np.sqrt(variance / max(float(values.var()), TINY))), 2.0)
            values = np.clip(mean + (values - values.mean()) * ratio, -1, 1)
    if step is not None:  # at random, so that the mean stays
        parts = (rng.random() + np.arange(count) * _GOLDEN) % 1
        values = np.minimum(np.floor(np.round((values + 1) / step, 9) + parts) * step - 1, 1.0)
    return np.append(values, np.full(rows - count, np.nan))


def spread_histogram(shape: Histogram, found: Spread, count: int) -> Floats:
    """Quantiles of a released histogram in halfwidths, of shape (count,), with about the released mean and variance.

    Shares and moments are combined by least squares in the metric of their noise: shares are known up to that of their
    bins, and the mean of a bin up to the standard deviation of a value in it. Within bins, weights ``exp(a x + b x^2)``
    then lead to the combined moments; or ``exp(a x)`` to the mean, or as near to it as bins allow.
    """
    lower, half = shape.number.lower, (shape.number.upper - shape.number.lower) / 2
    least, most = ((ends[:, None] - lower) / half - 1 for ends in shape.ends)
    low = least + (most - least) * np.arange(_PARTS) / _PARTS
    points = low + (most - least) / (2 * _PARTS)
    powers = np.stack([points - found.mean, np.square(points - found.mean)])  # of shape (2, bins, parts)
    means = powers.mean(axis=2)
    free = np.minimum(shape.std, shape.shares) ** 2
    moved = free * means - np.multiply.outer(means @ free / max(free.sum(), TINY), free)  # covariances with shares
    inner = shape.shares * np.sqrt(np.square(most - least)[:, 0] / 12) * np.stack([np.ones(free.size), 2 * means[0]])
    spread = moved @ means.T + inner @ inner.T
    apart = np.array([0.0, found.measured]) - means @ shape.shares
    pull = np.linalg.lstsq(spread + np.diag(np.square(found.noise)), apart, rcond=None)[0]
    shares = project_simplex(shape.shares + pull @ moved)
    weights, wanted = np.repeat(shares[:, None] / _PARTS, _PARTS, axis=1), means @ shape.shares + spread @ pull
    ends = powers[0, :, [0, -1]] @ shares  # the least and the largest mean
    near = np.clip(wanted[:1], *(ends + _INNER * (ends[::-1] - ends)))
    tilted = _tilt(powers, weights, wanted)
    tilted = _tilt(powers[:1], weights, near) if tilted is None else tilted
    weights = (weights if tilted is None else tilted).ravel()
    kept, high = weights > 0, low + (most - least) / _PARTS
    ends = np.cumsum(weights[kept])
    places = np.column_stack([np.append(0.0, ends[:-1]), ends]).ravel()
    values = np.column_stack([low.ravel()[kept], high.ravel()[kept]]).ravel()
    return np.asarray(np.interp((np.arange(count) + 0.5) / count * ends[-1], places, values))


@np.errstate(all="ignore")
def _tilt(powers: Floats, weights: Floats, wanted: Floats) -> Floats | None:
    """Weights (bins, parts) times ``exp(slope . powers)``, each bin with its own sum, with wanted means; or None."""
    total, slope = weights.sum(axis=1, keepdims=True), np.zeros(wanted.size)
    for _ in range(_STEPS):
        tilt = np.einsum("k,kbp->bp", slope, powers)
        made = weights * np.exp(tilt - tilt.max(axis=1, keepdims=True))
        made *= np.nan_to_num(total / made.sum(axis=1, keepdims=True))
        means = np.einsum("bp,kbp->k", made, powers)
        if np.abs(means - wanted).max() < _CLOSE:
            return np.asarray(made)
        inner = (made * powers).sum(axis=2)
        spread = np.einsum("bp,kbp,mbp->km", made, powers, powers) - (inner / np.maximum(total[:, 0], TINY)) @ inner.T
        try:
            slope = slope + np.clip(np.linalg.solve(spread, wanted - means), -_LONGEST, _LONGEST)
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(slope).all() or np.abs(slope).max() > _STEEPEST:
            return None
    return None


class Rows:
    """Rows of a table, with their coordinates as integers in units of `unit`; `table` is of shape (n, d)."""

    def __init__(self, margins: Sequence[Margin], rng: np.random.Generator) -> None:
        self.margins = [margin._replace(values=margin.values.copy()) for margin in margins]
        self.rng = rng
        parts = [margin.measure() for margin in self.margins]
        table, self.mean, self.scale, self.base = (
            np.concatenate([part[k] for part in parts], axis=-1) for k in range(4)
        )
        self.unit = np.maximum(np.abs(table).max(axis=0), TINY) / 2**_BITS
        self.table = np.rint(table / self.unit)
        self.products = self.table.T @ self.table
        self.columns = np.repeat(np.arange(len(parts)), [part[1].size for part in parts])

    @property
    def covariance(self) -> Floats:
        """Covariances of the coordinates, of shape (d, d)."""
        return np.asarray(self.products * np.multiply.outer(self.unit, self.unit) / len(self.table))

    @property
    def spreads(self) -> Floats:
        """Products of the standard deviations of two coordinates, of shape (d, d)."""
        root = np.sqrt(np.maximum(np.diagonal(self.covariance), TINY))
        return np.multiply.outer(root, root)

    @property
    def apart(self) -> NDArray[np.bool_]:
        """Which pairs of coordinates are of two columns, and neither is constant; of shape (d, d)."""
        moves = np.diagonal(self.products) > 0
        return np.asarray((self.columns[:, None] != self.columns) & moves & moves[:, None])

    def fit(self, wanted: Floats, weight: Floats, zeros: Sequence[tuple[int, int]] = ()) -> list[float]:
        """Swap values until the covariances are the wanted ones; the misfit before each sweep, and at the end.

        The misfit is the root mean square of ``(covariance - wanted) sqrt(weight)`` over pairs with a weight; but for
        `zeros`, pairs of levels that cannot occur together.
        """
        units = np.multiply.outer(self.unit, self.unit) / len(self.table)
        target, weight = wanted / units, np.where(self.apart, weight, 0.0)
        counted, most = weight * units**2, _ZERO_WEIGHT * weight.max()
        for one, other in zeros:
            counted[[one, other], [other, one]] = 0.0
            weight[[one, other], [other, one]] = most
        weight = weight * units**2
        count, found, losses = max(int((counted > 0).sum()), 1), [], []
        for sweep in range(_SWEEPS + 1):
            found.append(float(np.sqrt((counted * np.square(self.products - target)).sum() / count)))
            losses.append(float(np.sqrt((weight * np.square(self.products - target)).sum())))  # with that of zeros
            stuck = sweep >= _PATIENCE and losses[-1] > (1 - _LITTLE) * losses[-1 - _PATIENCE]
            if found[-1] <= _FITTED or stuck or sweep == _SWEEPS:
                break
            for number in self.rng.permutation(len(self.margins)):
                self._swap(self.margins[number], target, weight, near=bool(sweep % 2))
        return found

    def _pair(self, margin: Margin, near: bool) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Two rows for each trial of a swap: any two, or two with `near` numbers."""
        order = self.rng.permutation(len(self.table))
        if near and isinstance(margin.column, Number):
            order = order[np.argsort(margin.values[order], kind="stable")]
            step = int(self.rng.integers(1, max(len(order) // 16, 2)))
            order = order[: len(order) - len(order) % (2 * step)].reshape(-1, 2, step).swapaxes(0, 1).reshape(2, -1)
            return order[0], order[1]
        half = len(order) // 2
        return order[:half], order[half : 2 * half]

    def _swap(self, margin: Margin, target: Floats, weight: Floats, *, near: bool) -> None:
        """Swap values of one column between rows, as many as lower the misfit most."""
        own, table = margin.rows, self.table
        apart = self.products[own] - target[own]
        slope = weight[own] * apart
        largest = float(np.abs(slope).max())
        first, second = self._pair(margin, near)
        if not largest or not first.size:
            return
        pull = table @ np.rint(slope * (2**_SLOPE_BITS / largest)).T
        moved = table[second, own] - table[first, own]
        gain = np.einsum("na,na->n", moved, pull[second] - pull[first])
        good = np.flatnonzero(gain > 0)
        if not good.size:
            return
        gain = gain[good]
        chosen = self.rng.permutation(good[self.rng.random(good.size) * np.quantile(gain, _CERTAIN) < gain])
        first, second, moved = first[chosen], second[chosen], moved[chosen]
        other = table[first] - table[second]
        other[:, own] = 0.0
        ends = [0, *(2 ** np.arange(chosen.size.bit_length())), chosen.size]
        change, best, taken = np.zeros_like(apart), (weight[own] * apart**2).sum(), 0
        kept = change
        for start, end in pairwise(ends):
            change = change + moved[start:end].T @ other[start:end]
            loss = (weight[own] * (apart + change) ** 2).sum()
            if loss < best:
                best, taken, kept = loss, end, change
        first, second = first[:taken], second[:taken]
        for one in (table[:, own], margin.values):
            one[first], one[second] = one[second], one[first]
        self.products[own] += kept
        self.products[:, own] += kept.T

    def remove(self, zeros: Sequence[tuple[int, int]], never: Mapping[str, Sequence[int]]) -> None:
        """Change levels where two occur together that cannot; `never` has the levels that no row may have, by name."""
        margins = [margin for margin in self.margins if margin.place.levels]
        holders = {m.rows.start + k: (m, k) for m in margins for k in range(len(m.place.levels))}
        pairs = [(holders[one], holders[other]) for one, other in zeros]
        for trial in range(_REMOVALS + 1):
            bad = [np.flatnonzero((m.values == k) & (other.values == j)) for (m, k), (other, j) in pairs]
            if trial == _REMOVALS or not any(part.size for part in bad):
                break
            for pair, part in zip(pairs, bad, strict=True):
                margin, level = pair[trial % 2]
                for row in part[margin.values[part] == level].tolist():
                    self._replace(row, margin, pairs, never[margin.column.name])
        left = np.unique(np.concatenate(bad))
        if left.size:  # no other levels were found: these rows become like others
            good = np.setdiff1d(np.arange(len(self.table)), left)
            if not good.size:
                raise ParameterError(
                    "impossible must leave rows that can occur: none was found.", parameter="impossible"
                )
            taken = self.rng.choice(good, left.size)
            for margin in margins:
                margin.values[left] = margin.values[taken]
        for margin in margins:
            level = margin.values[:, None] == np.arange(len(margin.place.levels))
            self.table[:, margin.rows] = np.rint((level - self.mean[margin.rows]) / self.unit[margin.rows])
        self.products = self.table.T @ self.table

    def _replace(self, row: int, margin: Margin, pairs: Any, never: Sequence[int]) -> None:
        """Give a row another level at random by frequency: one that is allowed beside its others, or any."""
        usual = np.bincount(margin.values, minlength=len(margin.place.levels)) + _RARE
        usual[list(never)] = 0.0
        allowed = usual.copy()
        for first, second in pairs:
            for (own, level), (other, beside) in ((first, second), (second, first)):
                if own is margin and other.values[row] == beside:
                    allowed[level] = 0.0
        chosen = allowed if allowed.any() else usual
        margin.values[row] = self.rng.choice(chosen.size, p=chosen / chosen.sum())


def read_covariance(view: MomentView, rows: Rows, size: float) -> tuple[Floats, Floats]:
    """Released covariances of the coordinates of rows, and the standard deviation of their noise, of shape (d, d)."""
    i, base, scale = np.arange(1, view.law.size), rows.base, view.query.largest[1:]
    slope, units = rows.mean * scale, size * np.multiply.outer(rows.scale * scale, rows.scale * scale)
    terms: list[Any] = [
        (i[:, None], i, np.ones(())),
        (i[:, None], base, -slope),
        (base[:, None], i, -slope[:, None]),
        (base[:, None], base, np.multiply.outer(slope, slope)),
    ]
    found = sum(weight * view.read(a, b) for a, b, weight in terms)
    return found / units, np.maximum(view.law.std(terms) / units, TINY)


def shrink_blocks(rows: Rows, found: Floats, std: Floats, towards: Floats | float = 0.0) -> tuple[Floats, Floats]:
    """Covariances shrunk towards others, or zero, block by block of two columns; the share of noise left; (d, d)."""
    weight = rows.spreads
    apart, result, left = found - towards, np.zeros_like(found), np.zeros_like(found)
    for other, one in combinations(rows.margins, 2):
        for block in product(one.parts, other.parts):
            shrunk = shrink(apart[block], weight[block], std[block], together=True)
            result[block], left[block] = shrunk.mean, np.minimum(shrunk.variance / std[block] ** 2, 1.0)
    return result + result.T + towards, left + left.T


def correct_blocks(rows: Rows, wanted: Floats, found: Floats, std: Floats) -> Floats:
    """The wanted covariances, but shrunk ones for two columns where noise does not explain how far both are apart.

    Draws move strong relations of many levels, such as of months and seasons, too far towards few common factors.
    """
    result, apart = wanted.copy(), np.square((wanted - found) / std)
    for other, one in combinations(rows.margins, 2):
        block = one.rows, other.rows
        if apart[block].size > 1 and apart[block].mean() > _FAR**2:  # a single one is far by noise alone
            shrunk = shrink(found[block], rows.spreads[block], std[block], together=True).mean
            result[block], result[block[::-1]] = shrunk, shrunk.T
    return result


def bend(rows: Rows, wanted: Floats, found: Floats, std: Floats) -> Floats:
    """The wanted covariances, and those of bins: shrunk towards what follows from linear relations; (d, d)."""
    own, reach = rows.covariance, np.eye(len(wanted))
    for margin in rows.margins:
        for part in margin.parts[1:]:
            value = part.start - 1
            reach[part, part], reach[part, value] = 0.0, own[part, value] / max(own[value, value], TINY)
    linear = reach @ np.where(rows.apart, wanted, 0.0) @ reach.T
    bins = ~np.diagonal(reach).astype(bool)
    shrunk, _ = shrink_blocks(rows, found, std, linear)
    return np.where(bins | bins[:, None], shrunk, wanted)


def raise_eigenvalues(rows: Rows, wanted: Floats, std: Floats, rng: np.random.Generator) -> Floats:
    """Covariances of two columns, of shape (d, d), moved until the least eigenvalue is above what noise makes of it.

    Coordinates are whitened within columns, so that the matrix is ``I + R``. Its eigenvalues are raised to a quarter of
    the spectral norm of noise of standard deviation `std`, and at most to `_FLOOR`.
    """
    from scipy.linalg import block_diag  # here, since it takes long to import

    own, d, blocks = rows.covariance, len(wanted), []
    for margin in rows.margins:
        values, vectors = np.linalg.eigh(own[margin.rows, margin.rows])
        kept = values > _NONE * values.max()
        blocks.append((vectors[:, kept].T, np.sqrt(values[kept])[:, None]))
    to_white, from_white = (block_diag(*(v * root**power for v, root in blocks)) for power in (-1, 1))
    cross = np.where(rows.apart, wanted, 0.0)
    matrix = np.eye(len(to_white)) + to_white @ cross @ to_white.T
    norms = []
    for _ in range(4):
        drawn = np.where(rows.apart, std, 0.0) * np.tril(rng.standard_normal((d, d)), -1)
        norms.append(np.abs(np.linalg.eigvalsh(to_white @ (drawn + drawn.T) @ to_white.T)).max(initial=0.0))
    values, vectors = np.linalg.eigh(matrix)
    floor = min(_FLOOR, float(np.mean(norms)) / 4)
    if not values.size or values[0] >= floor:
        return cross
    matrix = (vectors * np.maximum(values, floor)) @ vectors.T
    root = np.sqrt(np.diagonal(matrix))
    return np.where(rows.apart, from_white.T @ (matrix / np.multiply.outer(root, root)) @ from_white, 0.0)


class Comparison(NamedTuple):
    """Covariances between columns in a release and in a synthetic table, as correlations; arrays of shape (pairs,)."""

    names: NDArray[np.object_]
    kinds: NDArray[np.str_]  # "table" for two categories, "means" for a number and a category, or "correlation"
    released: Floats
    std: Floats  # of the noise
    found: Floats

    @property
    def errors(self) -> Floats:
        """Synthetic less released, in standard deviations of the noise."""
        return (self.found - self.released) / self.std


@dataclass(frozen=True, eq=False)
class SyntheticTable:
    """A synthetic table, and how far it is from its release."""

    columns: Mapping[str, tuple[Values, NDArray[np.bool_]]]  # by name, values and which are missing, of shape (rows,)
    comparison: Comparison
    misfit: float  # root mean square of actual less wanted covariances, in standard deviations of the noise
    hidden: tuple[str, ...]  # shares and spreads that noise hides
    assumed: tuple[str, ...]  # numbers that have an assumed shape
    shown: tuple[str, ...] = ()  # pairs of levels that cannot occur by the schema, although the release shows them

    def to_frame(self) -> Any:
        """A pandas data frame."""
        pandas = load_pandas()
        found = {}
        for name, (values, gone) in self.columns.items():
            array = pandas.array(values) if gone.any() and values.dtype.kind in "bi" else values.copy()
            if gone.any():
                array[gone] = None if values.dtype.kind in "O" else np.nan if values.dtype.kind == "f" else pandas.NA
            found[name] = array
        return pandas.DataFrame(found)


def _write_column(column: Column, values: Values) -> tuple[Values, NDArray[np.bool_]]:
    """Values of a column, which are those of a `Margin`, as the schema has them, and which are missing."""
    if isinstance(column, Number):
        gone = np.isnan(values)
        share = np.where(gone, 0.0, (values + 1) / 2)
        if column.step is not None:
            found = column.lower + np.rint(share * column.steps) * column.step
            whole = column.step.is_integer() and column.lower.is_integer() and abs(found).max(initial=0) < 2**53
            return np.rint(found).astype(np.int64) if whole else np.minimum(found, column.upper), gone
        width = column.upper - column.lower
        digits = _DIGITS - math.floor(math.log10(width))
        return np.clip(np.round(column.lower + share * width, digits), column.lower, column.upper), gone
    gone = values == len(column.level_names) - 1 if column.missing else np.zeros(values.shape, bool)
    if not isinstance(column, Category):
        return values == 1, gone
    if isinstance(column.levels[0], int) and not column.other:
        return np.array([*column.levels, 0], np.int64)[values], gone
    return np.array(column.level_names, object)[values], gone


class _Maker:
    """Makes the rows of a table, or its groups, from moments; numbers may have `fitted` correlations, known better."""

    def __init__(
        self, matrix: Floats, design: Design, rng: np.random.Generator, *, shrunk: bool, fitted: Estimate | None
    ) -> None:
        self.matrix, self.design, self.rng, self.shrunk = matrix, design, rng, shrunk
        self.query = table_query(design)
        self.fitted = None if self.query.by else fitted
        self.shapes = find_histograms(matrix, design) if self.query.shapes else {}
        self.bins = {one.number.name: one for one in self.query.measured if isinstance(one, Bins)}
        self.pairs: list[Any] = [
            sorted(pair)
            for (first, ones), (second, others) in self.query.columns.impossible
            for pair in product(((first, one) for one in ones), ((second, other) for other in others))
        ]
        self.allowed: dict[tuple[str, str], Floats] = {}  # 0 for pairs of levels that cannot occur, by columns
        for (first, one), (second, other) in self.pairs:
            ones, others = (self.query.columns.category(name).level_names for name in (first, second))
            block = self.allowed.setdefault((first, second), np.ones((len(ones), len(others))))
            block[ones.index(one), others.index(other)] = 0.0

    def _agree(self, shares: dict[str, Floats], never: Mapping[str, Sequence[int]]) -> None:
        """Move shares of levels to those of a table without the pairs that cannot occur."""
        several = [(names, block) for names, block in self.allowed.items() if {*names} <= {*shares}]
        for (first, second), allowed in several * _AGREE:
            one, other = (np.maximum(shares[name], _RARE) for name in (first, second))
            one[list(never[first])], other[list(never[second])] = 0.0, 0.0
            table = rake(np.multiply.outer(one, other) * allowed, one, other)
            if table.any():
                shares[first], shares[second] = table.sum(axis=1), table.sum(axis=0)

    def fill(
        self, view: MomentView, count: int, size: float, never: Mapping[str, Sequence[int]]
    ) -> tuple[Rows, list[str]]:
        """Rows whose columns are filled in random order, without levels that can `never` occur; what noise hides."""
        margins, hidden, start = [], [], 0
        known = {name: fill_category(view, name, size, some) for name, some in never.items()}
        shares = {name: part[0] for name, part in known.items()}
        self._agree(shares, never)
        for column in self.query.used:
            place, bins = self.query.places[column.name], self.bins.get(column.name)
            if isinstance(column, Number):
                found = find_spread(view, column.name, (column.upper - column.lower) / 2, size)
                values: Values = fill_number(found, column, self.shapes.get(column.name), count, self.rng)
                doubtful, width = found.hidden, 1 + (place.observed > 0)
            else:
                own, doubtful = shares[column.name], known[column.name][1]
                values = np.repeat(np.arange(own.size), round_quotas(own, count, self.rng))
                width = own.size
            rows = slice(start, start + width + (len(bins.level_names) if bins else 0))
            margins.append(Margin(column, place, rows, self.rng.permutation(values), bins))
            hidden += doubtful
            start = rows.stop
        return Rows(margins, self.rng), hidden

    def find_never(self, group: Mapping[str, str]) -> dict[str, list[int]]:
        """Levels of each category that cannot occur in a group, or beside any level of another category."""
        found: dict[str, set[int]] = {one.name: set() for one in self.query.used.categories}
        for (first, second), allowed in self.allowed.items():
            for name, other, block in ((first, second, allowed), (second, first, allowed.T)):
                if other in group:
                    block = block[:, [self.query.columns.category(other).level_names.index(group[other])]]
                found.get(name, set()).update(np.flatnonzero(~block.any(axis=1)).tolist())
        return {name: sorted(levels) for name, levels in found.items()}

    def is_impossible(self, group: Mapping[str, str]) -> bool:
        """Whether two levels of a group cannot occur together, or no level of some category can occur in it."""
        never, categories = self.find_never(group), self.query.used.categories
        return any({*pair} <= {*group.items()} for pair in self.pairs) or any(
            len(never[one.name]) == len(one.level_names) for one in categories
        )

    def aim(self, view: MomentView, rows: Rows, size: float, pooled: Floats | None) -> tuple[Floats, Floats, Floats]:
        """Released covariances, their noise, and those that the rows shall have; of shape (d, d)."""
        found, std = read_covariance(view, rows, size)
        if self.fitted is not None:  # of numbers that are never missing, and their coordinates are standardised
            pairs = np.ix_(*[self.query.layout.of_kind(VALUE) - 1] * 2)
            found[pairs], std[pairs] = self.fitted.value, np.maximum(self.fitted.std, TINY)
        drawn = draw_moments(view) if self.shrunk and pooled is None and not self.query.by else None
        if drawn is not None:
            wanted = read_covariance(replace(view, matrix=drawn.matrix.mean(axis=0)), rows, size)[0]
            if self.fitted is not None:
                wanted[pairs] = found[pairs]
            wanted = correct_blocks(rows, wanted, found, std)
            wanted = bend(rows, wanted, found, std) if self.query.bins else wanted
            return found, std, np.where(rows.apart, np.round(wanted, _ROUNDED), 0.0)
        wanted, left = found, np.ones(())
        if self.shrunk:
            wanted, left = shrink_blocks(rows, found, std, 0.0 if pooled is None else pooled * rows.spreads)
        return found, std, np.round(raise_eigenvalues(rows, wanted, np.sqrt(left) * std, self.rng), _ROUNDED)

    def make(
        self, view: MomentView, count: int, size: float, group: Mapping[str, str], pooled: Floats | None = None
    ) -> SyntheticTable:
        """Fitted rows of a group."""
        never = self.find_never(group)
        rows, hidden = self.fill(view, count, size, never)
        found, std, wanted = self.aim(view, rows, size, pooled)
        places = {
            (m.column.name, level): m.rows.start + k for m in rows.margins for k, level in enumerate(m.place.levels)
        }
        zeros = [(places[one], places[other]) for one, other in self.pairs if one in places and other in places]
        own = {m.column.name: m.rows for m in rows.margins}
        for both, allowed in self.allowed.items():
            if {*both} <= {*own}:
                one, other = (own[name] for name in both)
                alone = np.multiply.outer(rows.mean[one], rows.mean[other])
                table = np.maximum(wanted[one, other] + alone, _RARE) * allowed
                wanted[one, other] = np.round(rake(table, rows.mean[one], rows.mean[other]) - alone, _ROUNDED)
                wanted[other, one] = wanted[one, other].T
        together, words = found + np.multiply.outer(rows.mean, rows.mean), self.query.names
        shown = [
            f"{words[1 + one]} × {words[1 + other]}"
            for one, other in zeros
            if together[one, other] > LEAST_SIZE * std[one, other]
        ]
        misfit = rows.fit(wanted, 1 / std**2, zeros)[-1]
        if zeros:
            rows.remove(zeros, never)
        i, j = np.nonzero(np.tril(rows.apart))
        number = np.isin(np.arange(1, self.query.layout.size), self.query.layout.of_kind(VALUE))
        kinds = np.array(["table", "means", "correlation"])[number[i].astype(int) + number[j]]
        prefix = ", ".join(f"{name}={level}" for name, level in group.items()) + ": " * bool(group)
        pairs, labels = zip(i.tolist(), j.tolist(), strict=True), self.query.names[1:]
        names = np.array([f"{prefix}{labels[second]} × {labels[first]}" for first, second in pairs], object)
        correlations = (one[i, j] / rows.spreads[i, j] for one in (found, std, rows.covariance))
        written = {one.column.name: _write_column(one.column, one.values) for one in rows.margins}
        for name, level in group.items():
            column = self.query.columns.category(name)
            written[name] = _write_column(column, np.full(count, column.level_names.index(level)))
        ordered = {name: written[name] for name in self.query.columns.names}
        assumed = tuple(one.name for one in self.query.used.numbers if one.name not in self.shapes)
        comparison = Comparison(names, kinds, *correlations)
        return SyntheticTable(ordered, comparison, misfit, tuple(hidden), assumed, tuple(shown))

    def make_groups(self, count: int) -> Iterator[SyntheticTable]:
        """The rows of each group, by their released sizes; those whose size noise hides have the moments of all."""
        query, view = self.query, view_moments(self.matrix, self.design)
        size = max(float(view.read(0, 0)), float(view.law.entry_std(0, 0)), TINY)
        if not query.by:
            yield self.make(view, count, size, {})
            return
        groups = [dict(zip(query.by, levels, strict=True)) for levels in query.group_levels]
        views = [view_moments(self.matrix, self.design, group) for group in groups]
        shares = np.array([float(one.read(0, 0)) for one in views])
        never = [k for k, group in enumerate(groups) if self.is_impossible(group)]
        for k in never:
            if views[k].stands_out(0, 0):
                name = ", ".join(f"{name}={level}" for name, level in groups[k].items())
                raise ParameterError(
                    f"impossible must leave the group {name} some rows that can occur: the release shows it.",
                    parameter="impossible",
                )
        if len(never) == len(groups):
            raise ParameterError(
                "impossible must leave some group that can occur: it excludes all.", parameter="impossible"
            )
        quotas = round_quotas(find_shares(shares / size, never), count, self.rng)
        rows, _ = self.fill(view, max(count, 2), size, self.find_never({}))
        pooled = self.aim(view, rows, size, None)[2] / rows.spreads
        for group, own, share, quota in zip(groups, views, shares.tolist(), quotas.tolist(), strict=True):
            if quota and own.stands_out(0, 0):
                yield self.make(own, quota, share, group, pooled)
            elif quota:
                yield self.make(view, quota, size, group)


def _join(made: Sequence[SyntheticTable], order: NDArray[np.intp]) -> SyntheticTable:
    """The rows of all groups in another order."""
    columns: Any = {
        name: tuple(np.concatenate(part)[order] for part in zip(*(one.columns[name] for one in made), strict=True))
        for name in made[0].columns
    }
    comparison = Comparison(*map(np.concatenate, zip(*(one.comparison for one in made), strict=True)))
    hidden, shown = (tuple(dict.fromkeys(n for one in made for n in getattr(one, k))) for k in ("hidden", "shown"))
    misfit = math.sqrt(np.mean([one.misfit**2 for one in made]))
    return SyntheticTable(columns, comparison, misfit, hidden, made[0].assumed, shown)


def make_tables(
    matrix: Floats, design: Design, rows: int | None, tables: int | None, seed: int, fitted: Estimate | None = None
) -> list[SyntheticTable]:
    """One synthetic table, or several, each from the moments with noise of the same law once more.

    One has the correlations of `fitted`, if given; of several, the error of a fit has no law to draw from.
    """
    query = table_query(design)
    count = check_integer(query.records if rows is None else rows, "rows", at_least=1)
    largest = max(int(MOST_BYTES // (8 * query.layout.size)), 1)
    if count > largest:
        raise ParameterError(f"rows must be at most {largest:,} for so many columns and levels.", parameter="rows")
    view_moments(matrix, design)  # or an error
    several = 1 if tables is None else check_integer(tables, "tables", at_least=2)
    found = []
    for stream in np.random.SeedSequence(check_integer(seed, "seed", at_least=0)).spawn(several):
        rng, noisy = np.random.default_rng(stream), matrix
        if tables is not None:
            assert isinstance(design.structure, TableNoise)  # as views of it need
            noisy = matrix + design.structure.combine(design.noise, rng.standard_normal(design.structure.count))
        maker = _Maker(noisy, design, rng, shrunk=tables is None, fitted=fitted if tables is None else None)
        found.append(_join([*maker.make_groups(count)], rng.permutation(count)))
    return found
