"""Draws of possible moments, given noisy ones; post-processing.

Most matrices near a noisy one are impossible: variances are positive, cells of a table are not negative, means lie
within their bounds. `draw_moments` draws possible moments from a posterior distribution. Answers are computed from each
draw as from a release without noise, and the draws of an answer say which values are plausible.

In units in which bounds are -1 and 1, with orthonormal contrasts in place of the levels of a category, a record has d
coordinates w. For coordinates of two different columns

    E w_i w_j = g_i . g_j,        g_i = (mean of w_i, its K loadings).

Loadings are Gaussian a priori, and so is the noise. So the rows g of one column are Gaussian given those of the others,
cut off where they are impossible. A sweep draws one column after the other by elliptical slices (Murray, Adams, MacKay
2010). What is within a column follows from its means: that of the levels of a category from their shares. The second
moment of a number is free; it exceeds that which mean and loadings explain by the number's own variance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matrixdp.answers.noise_law import NoNoise
from matrixdp.answers.view import MomentView
from matrixdp.errors import ParameterError
from matrixdp.intervals import Range, find_range
from matrixdp.types import Floats

# Priors of the loadings: the share that factor h has of their variance is proportional to h^-power; the logarithm of
# that variance, over a column's own variance v, is uniform between two limits; and the density of v, for a number, is
# multiplied by v^-a. No single prior serves tables with a few strong factors and tables where many columns add up to a
# large R^2. Chains are divided equally among these; weights by their fit would favour those that fit the noise.
STRATA = (
    (2.0, 0.1, 3.0, 0.0),  # weak dependence
    (0.0, 0.3, 6.0, 0.0),  # along all directions
    (0.0, 3.0, 30.0, 0.8),  # the same, with little variance of their own
    (3.0, 0.3, 6.0, 0.5),  # few factors
    (6.0, 1.0, 10.0, 0.8),  # nearly one factor
)
_EVEN = 0.15  # share of the loadings' variance that is spread evenly over all factors
_SPREAD = (np.log(0.3), 0.85)  # mean and standard deviation of the logarithm of a standard deviation in halfwidths
_FLAT = 0.01  # precision of means a priori
_LEAST = 1e-9  # of shares and variances, in units of the bounds
_TRIALS = 20  # of an elliptical slice, before a column stays as it is
_STEPS = (0.4, 0.8)  # of the logarithms of scales in Metropolis steps
_GRID = 48
_LOADINGS = 16  # beside those that stand out from noise
_CHAINS, _FEWEST, _WIDE = 60, 20, 20  # number of chains for at most `_WIDE` coordinates, and for many
_MOST_COORDINATES, _MOST_ROWS = 100, 6000  # of the moments that are drawn, and of all chains together
_REMEMBERED = 4  # sets of draws
_BURN, _KEEP, _EVERY = 30, 5, 3  # sweeps before the first draw, draws of each chain, sweeps between two


class Column(NamedTuple):
    """The coordinates of a column among those of w and of z, which are ``from_w w + constant``."""

    rows: slice  # among those of w
    places: NDArray[np.intp]  # among those of z
    from_w: Floats
    constant: float  # 1/k for each of k levels, 0 for numbers
    number: int  # which of the numbers it is; -1 for a category
    events: slice  # the levels of a category; that a number is there, and that it is missing, if it may be
    to_events: Floats  # the rows of events are ``to_events w``, and `certain` for the constant
    certain: Floats
    support: int  # the event to which the bounds of a number apply: that it is there, or the constant

    @property
    def optional(self) -> bool:
        """Whether it is a number that may be missing: its rows are the indicator and the value."""
        return self.support > 0


@dataclass(frozen=True, eq=False)
class Draws:
    """Possible moments of a table, given a release of them (`Release.draws`).

    Attributes
    ----------
    matrices : float64 array of shape (draws, p, p)
        Each a possible ``(1/N) sum z z'``, in the coordinates of the release.
    names : tuple of str
        Of the coordinates.
    """

    matrices: Floats
    names: tuple[str, ...]

    def of(self, function: Callable[[Floats], ArrayLike]) -> Range:
        """The plausible range of any function of the matrix: the median and the ends of the central 99%.

        Parameters
        ----------
        function : callable
            From matrices of shape (draws, p, p) to answers of shape (draws, ...).
        """
        found = np.asarray(function(self.matrices), float)
        if found.shape[:1] != self.matrices.shape[:1]:
            raise ParameterError(f"function must return one answer for each of {len(self.matrices)} matrices.")
        return find_range(found)


@dataclass(frozen=True, eq=False)
class Measured:
    """What a release says of the products of coordinates w, as independent measurements; c chains or one for all."""

    columns: list[Column]
    products: Floats  # (c, 1 + d, 1 + d), with the means in the first row and column
    scales: Floats  # (c, d): the precision of a product of coordinates of two columns is ``2 scales_i scales_j``
    means: Floats  # (c, d), precisions
    squares: Floats  # (c, numbers), precisions of second moments

    @cached_property
    def values(self) -> NDArray[np.intp]:
        """Coordinates of the values of numbers, of shape (numbers,)."""
        return np.array([one.rows.stop - 1 for one in self.columns if one.number >= 0], np.intp)

    def divide(self, size: Floats) -> Measured:
        """The moments of the records alone, where they are a share of all, for shares of shape (c,), one a chain."""
        size, products = size[:, None], np.repeat(self.products, len(size) // len(self.products), axis=0)
        own = self.scales * size, self.means * size**2, self.squares * size**2
        return Measured(self.columns, products / size[..., None], *own)


def measure(view: MomentView) -> Measured:
    """The moments of a view in coordinates w."""
    from scipy.linalg import helmert  # here, since it takes long to import, as does `scipy.stats`

    law, halfwidths = view.law, iter(view.halfwidths.tolist())
    columns: list[Column] = []
    scales: list[Floats] = []
    means: list[Floats] = []
    squares: list[Floats] = []
    size, events = 0, 1
    to_w = np.eye(1, law.size)
    for name, place in view.places.items():
        to_events, certain, which, support = np.zeros((0, 1)), np.zeros(0), -1, 0
        if place.levels:
            places = view.levels(name)
            # Orthonormal contrasts, which are uncorrelated for the mean shares.
            shares, basis = view.read(0, places).reshape(-1, places.size).mean(axis=0), np.zeros((1, 0))
            if places.size > 1:
                basis, shares = helmert(places.size).T, np.maximum(shares, _LEAST)
                spread = np.diag(shares) - np.multiply.outer(shares, shares) / shares.sum()
                basis = basis @ np.linalg.eigh(basis.T @ spread @ basis)[1]
            constant = 1 / places.size
            to_events, certain = basis, np.full(places.size, constant)
            scales.append(np.full(places.size - 1, law.scales[places[0]]))
        else:
            there = [place.observed] * bool(place.observed)
            places, constant, which = np.array([*there, place.value]), 0.0, len(squares)
            basis = np.diag([*np.ones(len(there)), next(halfwidths)])
            if there:
                to_events, certain, support = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([0.0, 1.0]), events
            scales.append(law.scales[places] * np.diagonal(basis) ** 2)
            squares.append(basis[-1, -1] ** 4 / law.covariance(*[places[-1]] * 4))
        rows, own = slice(size, size + basis.shape[1]), slice(events, events + certain.size)
        columns.append(Column(rows, places, basis, constant, which, own, to_events, certain, support))
        size, events = rows.stop, own.stop
        back = np.linalg.pinv(basis, rcond=0.0)  # columns are orthogonal, however different their lengths
        means.append(1 / np.diagonal(back @ law.covariance(0, places[:, None], 0, places) @ back.T))
        to_w = np.vstack([to_w, np.zeros((len(back), law.size))])
        to_w[1 + rows.start :, places] = back
    products = to_w @ view.matrix.reshape(-1, law.size, law.size) @ to_w.T
    precisions = np.array(squares).reshape(1, -1)
    return Measured(columns, products, np.concatenate(scales)[None], np.concatenate(means)[None], precisions)


class Chains:
    """Chains of possible moments, in one stack of c chains.

    `rows` has the mean and the loadings of each coordinate, (c, d, 1 + K), `squares` the second moments of numbers, (c,
    numbers), `log_own` the logarithm of a number's expected own variance, and `log_ratio`, (c, columns), that of the
    variance of loadings over it. `events`, (c, events, 1 + K), begins with the constant.
    """

    def __init__(self, measured: Measured, rng: np.random.Generator) -> None:
        self.measured, self.columns, self.rng = measured, measured.columns, rng
        count: int = measured.scales.shape[0]
        self.count, self.size = count, int(measured.scales.shape[1])
        self.every = np.arange(count)
        self.keep, self.kept = False, cast("Floats | None", None)
        strata = np.array(STRATA)[self.every % len(STRATA)]
        self.power, self.limits, self.near_zero = strata[:, :1], np.log(strata[:, 1:3]), strata[:, 3]
        self.log_ratio = np.repeat(self.limits.mean(axis=1, keepdims=True), len(self.columns), axis=1)
        self._start()

    # The start: the measured moments with noise drawn again, moved towards independence until they are possible

    def _start(self) -> None:
        measured, d = self.measured, self.size
        noisy = measured.products + self._draw_noise()
        means, inner = noisy[:, 0, 1:], np.zeros((self.count, d, d))
        self.squares = noisy[:, 1 + measured.values, 1 + measured.values]
        self.unit = np.ones((self.count, d))  # variance of the loadings of indicators, over exp(log_ratio)
        for one in self.columns:
            rows = one.rows
            if one.number < 0:
                shares = np.maximum(one.constant + means[:, rows] @ one.from_w.T, one.constant / 50)
                shares /= shares.sum(axis=1, keepdims=True)
                means[:, rows] = shares @ one.from_w
                inner[:, rows, rows] = (one.from_w.T * shares[:, None]) @ one.from_w
                variances = np.diagonal(inner[:, rows, rows], axis1=1, axis2=2) - means[:, rows] ** 2
                self.unit[:, rows] = np.minimum(variances, 2 * variances**2)  # means of rare levels differ no more
                continue
            share: Floats = np.ones(self.count)
            last = rows.stop - 1
            if one.optional:
                share = means[:, rows.start] = np.minimum(np.maximum(means[:, rows.start], 0.02), 0.98)
                self.unit[:, rows.start] = share * (1 - share) * np.minimum(1, 2 * share * (1 - share))
                inner[:, rows.start, rows.start] = share
            mean = means[:, last] = np.clip(means[:, last], -0.9 * share, 0.9 * share)
            low = mean**2 / share
            square = self.squares[:, one.number]
            square = np.clip(square, 0.98 * low + 0.02 * share, 0.02 * low + 0.98 * share)
            inner[:, last, last] = self.squares[:, one.number] = square
            if one.optional:
                inner[:, rows.start, last] = inner[:, last, rows.start] = mean
        variances = self.squares - means[:, measured.values] ** 2
        ratio = self.log_ratio[:, [k for k, one in enumerate(self.columns) if one.number >= 0]]
        self.log_own: Floats = np.log(np.maximum(variances, _LEAST)) - np.logaddexp(0.0, ratio)
        loadings, scale = self._find_loadings(noisy, inner), np.ones(self.count)
        shares = np.arange(1, 1 + loadings.shape[2]) ** -self.power
        self.factors = (1 - _EVEN) * shares / shares.sum(axis=1, keepdims=True) + _EVEN / max(shares.shape[1], 1)
        self.rows = np.concatenate([means[..., None], loadings], axis=2)
        for _ in range(100):
            self.rows[:, :, 1:] = loadings * scale[:, None, None]
            self.events = np.zeros((self.count, self.columns[-1].events.stop, self.rows.shape[2]))
            self.events[:, 0, 0] = 1.0
            for one in self.columns:
                self.events[:, one.events] = self._find_events(self.rows[:, one.rows], one)
            self.total = (self.rows * self.measured.scales[..., None]).mT @ self.rows  # sum of squares
            good = np.ones(self.count, bool)
            for one in self.columns:
                good &= np.isfinite(self.log_density(self.every, self.rows[:, one.rows], one))
            if good.all():
                break
            scale = np.where(good, scale, np.maximum(0.9 * scale - 0.001, 0.0))

    def _draw_noise(self) -> Floats:
        measured, values = self.measured, 1 + self.measured.values
        std = np.zeros((len(measured.scales), 1 + self.size, 1 + self.size))
        std[:, 1:, 1:] = 1 / np.sqrt(2 * measured.scales[:, :, None] * measured.scales[:, None])
        std[:, values, values] = 1 / np.sqrt(measured.squares)
        std[:, 0, 1:] = std[:, 1:, 0] = 1 / np.sqrt(measured.means)
        drawn = np.tril(self.rng.standard_normal((self.count, *std.shape[1:])))
        return np.asarray(std * (drawn + np.tril(drawn, -1).mT))

    def _find_loadings(self, noisy: Floats, inner: Floats) -> Floats:
        """Loadings whose products are about the noisy covariances between columns, of shape (c, d, K)."""
        if not self.size:  # each column has one level
            return np.zeros((self.count, 0, 0))
        means = noisy[:, 0, 1:]
        covariance, roots = noisy[:, 1:, 1:] - means[:, :, None] * means[:, None], np.zeros_like(inner)
        for one in self.columns:
            rows = one.rows
            own = inner[:, rows, rows] - means[:, rows, None] * means[:, None, rows]
            values, vectors = np.linalg.eigh(own)
            values = np.sqrt(np.maximum(values, _LEAST))[:, None]
            covariance[:, rows, rows] = own
            roots[:, rows, rows] = (vectors * values) @ vectors.mT
        scaled = np.linalg.solve(roots, np.linalg.solve(roots, covariance).mT)
        values, vectors = np.linalg.eigh((scaled + scaled.mT) / 2)
        unit = np.median(1 / (self.measured.scales * np.diagonal(roots, axis1=1, axis2=2) ** 2))  # noise of a product
        count = min(self.size, _LOADINGS + int(np.median((values > 2 * np.sqrt(self.size) * unit).sum(axis=1))))
        values, vectors = values[:, ::-1], vectors[:, :, ::-1]
        values = np.maximum(values - 0.9 * np.maximum(values[:, -1:], 0.0), 1e-6)
        loadings = vectors * np.sqrt(values)[:, None]
        for one in self.columns:  # no more than the variance of the column
            part = loadings[:, one.rows]
            most = np.square(part).sum(axis=(1, 2))
            loadings[:, one.rows] *= np.sqrt(0.9 / np.maximum(most, 0.9))[:, None, None]
        return np.asarray(roots @ loadings)[:, :, :count]

    def _find_events(self, rows: Floats, one: Column) -> Floats:
        """Rows of the events of a column, of shape (c, events, 1 + K)."""
        found = one.to_events @ rows
        found[..., 0] += one.certain
        return np.asarray(found)

    # What is possible

    def log_density(self, chosen: NDArray[np.intp], rows: Floats, one: Column) -> Floats:
        """Logarithm of the factor of the density of a column's rows beside its Gaussian; -inf where it is impossible.

        Possible rows have no negative cell of two events, no sum of a number over an event beyond what its bounds
        allow, and some variance of their own. `rows` are those of the `chosen` chains, of shape (k, rows, 1 + K).
        """
        own, events = self._find_events(rows, one), self.events[chosen]
        others = np.delete(events, one.events, axis=1).mT
        good = (own[:, :, 0] > _LEAST).all(axis=1)
        if own.shape[1]:
            good &= (own @ others >= 0).all(axis=(1, 2))
            numbers = [other for other in self.columns if other.number >= 0 and other is not one]
            values = self.rows[chosen][:, [other.rows.stop - 1 for other in numbers]].mT
            most = own @ events[:, [other.support for other in numbers]].mT
            good &= (np.abs(own @ values) <= most).all(axis=(1, 2))
        if one.number < 0:
            shares, loadings = own[:, None, :, 0], rows[:, :, 1:]
            means = rows[:, :, 0]
            left = (one.from_w.T * shares) @ one.from_w - means[:, :, None] * means[:, None]
            if means.shape[1]:
                good &= np.linalg.eigvalsh(left - loadings @ loadings.mT)[:, 0] > 0
            return np.where(good, 0.0, -np.inf)
        support, value = own[:, :1] if one.optional else events[:, :1], rows[:, -1:]
        good &= (np.abs(value @ others) <= support @ others).all(axis=(1, 2))
        explained, square = self._find_explained(rows, one), self.squares[chosen, one.number]
        if self.kept is not None:
            square = explained + self.kept[chosen]
            apart = square - self.measured.products[chosen, one.rows.stop, one.rows.stop]
            found = -0.5 * self.measured.squares[chosen, one.number] * apart**2
        else:
            found = self._log_left(chosen, one, np.maximum(square - explained, 1e-300))
        return np.where(good & (explained < square) & (square <= support[:, 0, 0]), found, -np.inf)

    def _find_explained(self, rows: Floats, one: Column) -> Floats:
        """The second moment of a number that has no variance of its own, given its rows; (c,)."""
        value = rows[:, -1]
        explained = np.square(value).sum(axis=1)
        if one.optional:
            there = rows[:, 0]
            left = there[:, 0] - np.square(there).sum(axis=1)
            together = value[:, 0] - (there * value).sum(axis=1)
            explained = np.where(left > 0, explained + together**2 / np.maximum(left, 1e-300), np.inf)
        return np.asarray(explained)

    def _log_left(self, chosen: NDArray[np.intp], one: Column, left: Floats) -> Floats:
        """Logarithm of the density of a number's own variance, up to its scale; (chosen,)."""
        a, log_own = self.near_zero[chosen], self.log_own[chosen, one.number]
        return np.asarray(-a * (np.log(left) - log_own) - (1 - a) * left * np.exp(-log_own))

    # A sweep

    @np.errstate(invalid="ignore", over="ignore")  # where a step is impossible
    def sweep(self) -> None:
        """Draw the rows of all columns, the second moments of numbers, and the scales of both a priori."""
        self.keep = not self.keep
        for number, one in enumerate(self.columns):
            before = self.rows[:, one.rows]
            if self.keep and one.number >= 0:
                self.kept = self.squares[:, one.number] - self._find_explained(before, one)
            self._draw_rows(number, one)
            self._stretch(number, one)
            if self.kept is not None:
                self.squares[:, one.number] = self.kept + self._find_explained(self.rows[:, one.rows], one)
                self.kept = None
            if one.number >= 0:
                self._draw_square(one)
            for _ in range(3):
                self._draw_scales(number, one)

    def _draw_rows(self, number: int, one: Column) -> None:
        """An elliptical slice: the rows are Gaussian given all others, cut off by `log_density`."""
        measured, rng, rows = self.measured, self.rng, one.rows
        current, scales = self.rows[:, rows].copy(), measured.scales[:, rows]
        others = self.total - (current * scales[..., None]).mT @ current
        target = measured.products[:, 1:, 1:][:, rows] * measured.scales[:, None]
        target[:, :, rows] = 0.0
        right = 2 * scales[..., None] * (target @ self.rows)
        right[:, :, 0] += measured.means[:, rows] * measured.products[:, 0, 1:][:, rows]
        precision = 2 * scales[..., None, None] * others[:, None]
        along = np.arange(1, self.rows.shape[2])
        precision[:, :, 0, 0] += _FLAT + measured.means[:, rows]
        precision[:, :, along, along] += np.exp(-self._log_variances(number, one))
        root = np.linalg.inv(np.linalg.cholesky(precision))
        back = root.mT
        mean = (back @ (root @ right[..., None]))[..., 0]
        drawn = (back @ rng.standard_normal((*right.shape, 1)))[..., 0]
        apart, chosen = current - mean, self.every
        level = self.log_density(chosen, current, one) - rng.exponential(size=self.count)
        angle = rng.uniform(0, 2 * np.pi, self.count)
        low, high = angle - 2 * np.pi, angle.copy()
        for _ in range(_TRIALS):
            turn = angle[chosen][:, None, None]
            trial = mean[chosen] + apart[chosen] * np.cos(turn) + drawn[chosen] * np.sin(turn)
            good = self.log_density(chosen, trial, one) > level[chosen]
            self.rows[chosen[good], rows] = trial[good]
            chosen = chosen[~good]
            if not chosen.size:
                break
            now = angle[chosen]
            low[chosen], high[chosen] = np.where(now < 0, now, low[chosen]), np.where(now < 0, high[chosen], now)
            angle[chosen] = rng.uniform(low[chosen], high[chosen])
        self._replace(one, current)

    def _replace(self, one: Column, before: Floats) -> None:
        after, scales = self.rows[:, one.rows], self.measured.scales[:, one.rows, None]
        self.total += (after * scales).mT @ after - (before * scales).mT @ before
        self.events[:, one.events] = self._find_events(after, one)

    def _stretch(self, number: int, one: Column) -> None:
        """A Metropolis step that multiplies the loadings of a column and their expected size by the same."""
        before, step = self.rows[:, one.rows].copy(), self.rng.normal(0, _STEPS[0], self.count)
        trial = before.copy()
        trial[:, :, 1:] *= np.exp(step)[:, None, None]
        ratio = self.log_ratio[:, number] + 2 * step
        change = self._log_products(one, trial) - self._log_products(one, before)
        change += self.log_density(self.every, trial, one) - self.log_density(self.every, before, one)
        change += self._log_scales(one, self.log_own, ratio) - self._log_scales(one, self.log_own, ratio - 2 * step)
        good = np.log(self.rng.uniform(size=self.count)) < change
        self.rows[good, one.rows] = trial[good]
        self.log_ratio[good, number] = ratio[good]
        self._replace(one, before)

    def _log_products(self, one: Column, rows: Floats) -> Floats:
        """Logarithm of the likelihood of the products of a column with the others; (c,)."""
        scales = self.measured.scales
        apart = self.measured.products[:, 1:, 1:][:, one.rows] - rows @ self.rows.mT
        apart[:, :, one.rows] = 0.0
        weighted = apart**2 * scales[:, one.rows, None] * scales[:, None]
        return np.asarray(-weighted.sum(axis=(1, 2)))

    def _log_scales(self, one: Column, log_own: Floats, ratio: Floats) -> Floats:
        """Logarithm of the density of the scales of a column a priori; (c,)."""
        found = np.where((ratio >= self.limits[:, 0]) & (ratio <= self.limits[:, 1]), 0.0, -np.inf)
        if one.number >= 0:
            spread = (log_own[:, one.number] + np.logaddexp(0.0, ratio)) / 2
            found = found - 0.5 * ((spread - _SPREAD[0]) / _SPREAD[1]) ** 2
        return found

    def _log_variances(self, number: int, one: Column) -> Floats:
        """Logarithm of the variance of each loading a priori, of shape (c, rows, K)."""
        found = np.log(self.unit[:, one.rows])
        if one.number >= 0:
            found[:, -1] = self.log_own[:, one.number]
        return np.asarray(found[..., None] + self.log_ratio[:, number, None, None] + np.log(self.factors)[:, None])

    def _draw_square(self, one: Column) -> None:
        """Draw the second moment of a number, given its rows, from a fine grid of its own variance."""
        rows, column = self.rows[:, one.rows], one.rows.stop
        explained = self._find_explained(rows, one)
        most = np.maximum(self.events[:, one.support, 0] - explained, 2 * _LEAST)
        precision = self.measured.squares[:, one.number, None]
        centre = (self.measured.products[:, column, column] - explained)[:, None]
        logs = np.exp(np.linspace(np.log(_LEAST), np.log(most), _GRID, axis=1))
        lines = np.clip(centre + np.linspace(-5, 5, _GRID) / np.sqrt(precision), _LEAST, most[:, None])
        grid = np.sort(np.concatenate([logs, lines], axis=1), axis=1)
        middle, width = (grid[:, 1:] + grid[:, :-1]) / 2, np.diff(grid, axis=1)
        log = self._log_left(self.every, one, middle.T).T - 0.5 * precision * (middle - centre) ** 2
        weights = np.cumsum(np.exp(log - log.max(axis=1, keepdims=True)) * width, axis=1)
        place = (weights < self.rng.uniform(size=(self.count, 1)) * weights[:, -1:]).sum(axis=1)
        left = grid[self.every, place] + self.rng.uniform(size=self.count) * width[self.every, place]
        self.squares[:, one.number] = explained + left

    def _draw_scales(self, number: int, one: Column) -> None:
        """A Metropolis step of the expected own variance of a column and of the ratio of its loadings to it."""
        kept_own, kept_ratio = self.log_own.copy(), self.log_ratio[:, number].copy()
        before = self._log_column(number, one)
        self.log_ratio[:, number] += self.rng.normal(0, _STEPS[1], self.count)
        if one.number >= 0:
            self.log_own[:, one.number] += self.rng.normal(0, _STEPS[1], self.count)
        bad = np.log(self.rng.uniform(size=self.count)) >= self._log_column(number, one) - before
        self.log_own[bad], self.log_ratio[bad, number] = kept_own[bad], kept_ratio[bad]

    def _log_column(self, number: int, one: Column) -> Floats:
        """Logarithm of the density of a column's loadings, own variance and scales; (c,)."""
        log = self._log_variances(number, one)
        rows = self.rows[:, one.rows]
        found = -0.5 * (rows[:, :, 1:] ** 2 * np.exp(-log) + log).sum(axis=(1, 2))
        found += self._log_scales(one, self.log_own, self.log_ratio[:, number])
        if one.number >= 0:
            left = np.maximum(self.squares[:, one.number] - self._find_explained(rows, one), 1e-300)
            found += self._log_left(self.every, one, left) - self.log_own[:, one.number]
        return np.asarray(found)

    def moments(self, size: int) -> Floats:
        """The moments of the vectors z, of shape (c, p, p) for p = `size`."""
        to_z = np.eye(size, 1 + self.size) * np.eye(1, 1 + self.size)
        full = np.concatenate([self.events[:, :1], self.rows], axis=1)
        products = full @ full.mT
        for one in self.columns:
            rows, last = slice(1 + one.rows.start, 1 + one.rows.stop), one.rows.stop
            to_z[one.places, 0], to_z[one.places, rows] = one.constant, one.from_w
            if one.number < 0:
                products[:, rows, rows] = (one.from_w.T * self.events[:, None, one.events, 0]) @ one.from_w
                continue
            products[:, last, last] = self.squares[:, one.number]
            if one.optional:
                products[:, rows.start, rows] = products[:, rows, rows.start] = products[:, 0, rows]
        return np.asarray(to_z @ products @ to_z.T)


def draw_range(view: MomentView, answer: Callable[[MomentView], Floats]) -> Range | None:
    """The plausible range of an answer of shape (draws, ...) from possible moments; None if there are no draws."""
    drawn = draw_moments(view)
    return None if drawn is None else find_range(answer(drawn))


@dataclass(frozen=True)
class _Moments:
    """The moments of a view and the law of their noise, known by a hash."""

    digest: bytes
    view: MomentView = field(compare=False)


def draw_moments(view: MomentView) -> MomentView | None:
    """Possible moments without noise, of shape (draws, ..., p, p), seeded by a hash; None if there are too many."""
    content = b"".join(np.ascontiguousarray(part).tobytes() for part in (view.matrix, view.law.scales))
    matrix = _draw(_Moments(hashlib.sha256(content).digest(), view))
    return None if matrix is None else replace(view, matrix=matrix, law=NoNoise(view.law.size))


@lru_cache(maxsize=_REMEMBERED)
def _draw(moments: _Moments) -> Floats | None:
    view, size = moments.view, moments.view.law.size
    groups = view.matrix.size // size**2
    rng, measured = np.random.default_rng(list(moments.digest)), measure(view)
    d = measured.scales.shape[1]
    count = max(_FEWEST, _CHAINS * _WIDE // (max(d, _WIDE) * groups))
    count -= count % len(STRATA)
    if d > _MOST_COORDINATES or count * groups * d > _MOST_ROWS:
        return None
    shares, std = np.repeat(view.read(0, 0).ravel(), count), float(view.law.entry_std(0, 0))
    if std > 0:
        from scipy.stats import truncnorm

        shares = truncnorm.rvs((_LEAST - shares) / std, np.inf, shares, std, random_state=rng)
    try:
        chains, found = Chains(measured.divide(shares), rng), []
        for sweep in range(1, _BURN + _KEEP * _EVERY + 1):
            chains.sweep()
            if sweep > _BURN and not (sweep - _BURN) % _EVERY:
                found.append((chains.moments(size) * shares[:, None, None]).reshape(groups, count, size, size))
    except np.linalg.LinAlgError:  # noise so far beyond all that is possible that no number is finite
        return None
    return np.concatenate(found, axis=1).swapaxes(0, 1).reshape(-1, *view.matrix.shape)
