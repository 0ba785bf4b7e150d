"""Synthetic tables: rows whose shares, means, spreads and products of two columns are those of a release.

Post-processing. Each column is filled by itself, in random order, with values that have its released share, mean and
variance. Then values are swapped between rows, within a column, until the covariances between columns are the released
ones in the metric of the noise. Swaps keep what each column holds; so a table exists for any release, and the misfit
never grows (`docs/synthetic.md` has the method).

Sums over rows are of integers below 2^53, so that they are exact: a seed gives the same table on any number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from matrixdp.answers.moments import TINY, shrink
from matrixdp.answers.view import MomentView
from matrixdp.domain.columns import Column, Number
from matrixdp.noise.table_noise import Place
from matrixdp.types import Floats

Values = NDArray[Any]
_BITS = 14  # of a coordinate: a product has 28, and the sum over 2^24 rows 52
_SLOPE_BITS = 20  # of a slope of the misfit
_SWEEPS, _FITTED = 80, 0.05
_LITTLE, _PATIENCE = 0.005, 5  # progress in so many sweeps that is not worth another
_CERTAIN = 0.9  # quantile of the gains from which on a swap is always made
_FLOOR = 0.1  # of the least eigenvalue
_ZERO_WEIGHT = 4.0  # of a pair of levels that cannot occur, over the largest weight
_NARROW = 1e5  # precision from which on a beta distribution is as good as Gaussian


class Margin(NamedTuple):
    """The values of one column of n rows: numbers of levels, or numbers in halfwidths, NaN where they are missing.

    `rows` are its coordinates: an indicator of each level; or the number, after an indicator of whether it is there if
    it may be missing. A coordinate is ``(z - mean z_base)/unit``: its mean over the rows is zero. `hidden` says what
    noise hides.
    """

    column: Column
    place: Place
    rows: slice
    values: Values
    hidden: tuple[str, ...] = ()

    def measure(self) -> tuple[Floats, Floats, Floats, NDArray[np.intp]]:
        """The coordinates, of shape (n, a); `mean`, `unit` and `base` of each, of shape (a,)."""
        if not isinstance(self.column, Number):
            level = self.values[:, None] == np.arange(len(self.place.levels))
            shares = level.mean(axis=0)
            return level - shares, shares, np.ones(shares.size), np.zeros(shares.size, np.intp)
        there = np.isfinite(self.values)
        count = max(int(there.sum()), 1)
        mean = self.values[there].sum() / count
        apart = np.where(there, self.values - mean, 0.0)
        unit = float(np.sqrt(np.square(apart).sum() / count)) or 1.0
        if not self.place.observed:
            return apart[:, None] / unit, np.array([mean]), np.array([unit]), np.zeros(1, np.intp)
        share = there.mean()
        both = np.stack([there - share, apart / unit], axis=1)
        return both, np.array([share, mean]), np.array([1.0, unit]), np.array([0, self.place.observed])


def round_quotas(shares: Floats, rows: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Whole numbers that sum to `rows`, each less than one from its share of them."""
    ends = np.floor(np.cumsum(shares) / max(float(shares.sum()), TINY) * rows + rng.random() * (1 - 1e-9))
    ends[-1] = rows
    return np.diff(np.minimum(ends, rows), prepend=0).astype(np.intp)


def project_shares(noisy: Floats) -> Floats:
    """The nearest shares that are not negative and sum to one."""
    ordered = np.sort(noisy)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, noisy.size + 1)
    return np.maximum(noisy - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)


def spread_beta(mean: float, variance: float, count: int) -> Floats:
    """Quantiles of the beta distribution on [-1, 1] of this mean and variance, of shape (count,)."""
    share = (np.arange(count) + 0.5) / count
    precision = (1 - mean**2) / variance - 1
    if precision > _NARROW:
        return mean + np.sqrt(variance) * ndtri(share)
    return 2 * betaincinv(precision * (1 + mean) / 2, precision * (1 - mean) / 2, share) - 1


def fill_category(view: MomentView, column: Column, rows: int, size: float, rng: np.random.Generator) -> Any:
    """Levels of a category in order, of shape (rows,), and what noise hides."""
    places = view.levels(column.name)
    noisy, std = view.read(0, places) / size, view.law.entry_std(0, places) / size
    counts = round_quotas(project_shares(noisy), rows, rng)
    names = view.place(column.name).levels
    hidden = [f"{column.name}={level}" for level, firm in zip(names, noisy > 2 * std, strict=True) if not firm]
    return np.repeat(np.arange(counts.size), counts), tuple(hidden)


def fill_number(
    view: MomentView, column: Number, half: float, rows: int, size: float, rng: np.random.Generator, shape: Any = None
) -> Any:
    """Numbers of a column in order, in halfwidths, of shape (rows,), NaN where missing, and what noise hides."""
    place, law = view.place(column.name), view.law
    x, r = place.value, place.observed
    share, hidden = 1.0, []
    if r:
        std = float(law.entry_std(0, r)) / size
        share = float(np.clip(view.read(0, r) / size, min(std, 1.0), 1.0))
    count = int(rows * share + rng.random()) if share < 1 else rows
    mean = float(np.clip(view.read(0, x) / (size * share * half), -1 + 1e-6, 1 - 1e-6))
    weight = 1 / (size * share * half**2)
    noise = float(law.std([(x, x, np.array(weight)), (0, x, np.array(-2 * mean * half * weight))]))
    most = (1 - mean**2) * (1 - 1e-6)
    variance = float(view.read(x, x)) * weight - mean**2
    if variance < 2 * noise:
        hidden.append(f"the spread of {column.name}")
    variance = float(np.clip(variance, min(noise / 2, most), most))
    step = None if getattr(column, "step", None) is None else column.step / half
    inner = variance if step is None else max(variance - step**2 / 6, variance / 4)
    values = spread_beta(mean, max(inner, 1e-12), count) if shape is None else shape(mean, variance, count)
    if count > 1:
        for _ in range(2):  # few rows, and bounds
            ratio = np.sqrt(inner / max(float(values.var()), TINY))
            values = np.clip(mean + (values - values.mean()) * min(ratio, 2.0), -1, 1)
    if step is not None:
        fine = (values + 1) / step
        values = np.clip(np.floor(fine + (rng.random() + np.arange(count) * _GOLDEN) % 1) * step - 1, -1, 1)
    return np.append(values, np.full(rows - count, np.nan)), tuple(hidden)


_GOLDEN = (np.sqrt(5) - 1) / 2


class Rows:
    """Rows of a table, with their coordinates as integers in units of `unit`; `table` is of shape (n, d)."""

    def __init__(self, margins: Sequence[Margin], rng: np.random.Generator) -> None:
        self.margins = [margin._replace(values=rng.permutation(margin.values)) for margin in margins]
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
    def apart(self) -> NDArray[np.bool_]:
        """Which pairs of coordinates are of two columns, and neither is constant; of shape (d, d)."""
        moves = np.diagonal(self.products) > 0
        return np.asarray((self.columns[:, None] != self.columns) & moves & moves[:, None])

    def fit(self, wanted: Floats, weight: Floats, sweeps: int = _SWEEPS) -> list[float]:
        """Swap values until the covariances are the wanted ones; the misfit before each sweep, and at the end.

        The misfit is the root mean square of ``(covariance - wanted) sqrt(weight)`` over pairs with a weight.
        """
        units = np.multiply.outer(self.unit, self.unit) / len(self.table)
        target, weight = wanted / units, np.where(self.apart, weight, 0.0) * units**2
        count, found = max(int((weight > 0).sum()), 1), []
        for sweep in range(sweeps + 1):
            found.append(float(np.sqrt((weight * np.square(self.products - target)).sum() / count)))
            stuck = sweep >= _PATIENCE and found[-1] > (1 - _LITTLE) * found[-1 - _PATIENCE]
            if found[-1] <= _FITTED or stuck or sweep == sweeps:
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
        chosen = good[self.rng.random(good.size) * np.quantile(gain, _CERTAIN) < gain]
        chosen = self.rng.permutation(chosen)
        first, second, moved = first[chosen], second[chosen], moved[chosen]
        other = table[first] - table[second]
        other[:, own] = 0.0
        ends = [0, *(2 ** np.arange(chosen.size.bit_length())), chosen.size]
        change, best, taken = np.zeros_like(apart), (weight[own] * apart**2).sum(), 0
        kept = change
        for start, end in zip(ends[:-1], ends[1:], strict=True):
            change = change + moved[start:end].T @ other[start:end]
            loss = (weight[own] * (apart + change) ** 2).sum()
            if loss < best:
                best, taken, kept = loss, end, change
        first, second = first[:taken], second[:taken]
        for one in (table[:, own], margin.values):
            one[first], one[second] = one[second], one[first]
        self.products[own] += kept
        self.products[:, own] += kept.T


def find_target(view: MomentView, rows: Rows, size: float, scale: Floats) -> tuple[Floats, Floats]:
    """Released covariances of the coordinates of rows, and the standard deviation of their noise, of shape (d, d)."""
    i, base = np.arange(1, view.law.size), rows.base
    slope, unit = rows.mean * scale[i], rows.scale * scale[i]
    terms: list[Any] = [
        (i[:, None], i, np.ones(())),
        (i[:, None], base, -slope),
        (base[:, None], i, -slope[:, None]),
        (base[:, None], base, np.multiply.outer(slope, slope)),
    ]
    units = size * np.multiply.outer(unit, unit)
    found = sum(slope * view.read(a, b) for a, b, slope in terms)
    return found / units, np.maximum(view.law.std(terms) / units, TINY)


def shrink_blocks(rows: Rows, found: Floats, std: Floats, towards: Floats | float = 0.0) -> tuple[Floats, Floats]:
    """Covariances shrunk block by block of two columns, and the share of the noise that is left in each; (d, d).

    They are shrunk towards independence, or towards other covariances.
    """
    spread = np.sqrt(np.diagonal(rows.covariance))
    weight = np.maximum(np.multiply.outer(spread, spread), TINY)
    apart, result, left = found - towards, np.zeros_like(found), np.zeros_like(found)
    for number, one in enumerate(rows.margins):
        for other in rows.margins[:number]:
            block = one.rows, other.rows
            shrunk = shrink(apart[block], weight[block], std[block], together=True)
            result[block], left[block] = shrunk.mean, np.minimum(shrunk.variance / std[block] ** 2, 1.0)
    return result + result.T + towards, left + left.T


def raise_eigenvalues(rows: Rows, wanted: Floats, std: Floats, rng: np.random.Generator) -> Floats:
    """Covariances of two columns, of shape (d, d), moved until the least eigenvalue is above what noise makes of it.

    Coordinates are whitened within columns, so that the matrix is ``I + R``. Its eigenvalues are raised to a quarter of
    the spectral norm of noise of standard deviation `std`, and at most to `_FLOOR`.
    """
    own, d = rows.covariance, len(wanted)
    whiten, back = [], []
    for margin in rows.margins:
        values, vectors = np.linalg.eigh(own[margin.rows, margin.rows])
        kept = values > 1e-9
        root = np.sqrt(values[kept])
        whiten.append(_place(vectors[:, kept].T / root[:, None], margin.rows, d))
        back.append(_place(vectors[:, kept].T * root[:, None], margin.rows, d))
    to_white, from_white = np.concatenate(whiten), np.concatenate(back)
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


def _place(part: Floats, rows: slice, size: int) -> Floats:
    found = np.zeros((len(part), size))
    found[:, rows] = part
    return found
