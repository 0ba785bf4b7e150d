"""Means, tables, covariances and correlations from noisy moments, with error bars; post-processing.

Each statistic is a function of a stack of moments (`MomentView`) and comes with its derivatives by their entries, from
which the law of the noise gives its error bar, to first order; sampling error is not included.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from matrixdp.answers.estimate import HIDDEN, TOO_FEW, Estimate, settle
from matrixdp.answers.noise_law import NoiseLaw, Places
from matrixdp.answers.psd import nearest_psd
from matrixdp.answers.view import LEAST_SIZE, MomentView, table_query, view_moments
from matrixdp.design.design import Design
from matrixdp.domain.bounds import check_centre
from matrixdp.errors import ParameterError
from matrixdp.intervals import LEVEL, Range, limit_products, root_range
from matrixdp.queries import Moments
from matrixdp.types import Floats

ALL = "all"
SUMMARY = ("mean", "standard deviation", "share observed")
LARGEST_BAR = 1 / math.sqrt(3)  # standard deviation of a number between -1 and 1 of which nothing else is known
LEAST_VARIANCE = 2.0  # a variance below so many standard deviations of its noise is too small to divide by
_VARIANCES = np.geomspace(1e-4, 1.0, 17)  # a priori, of what `shrink` shrinks
TINY = 1e-12
_GRID = 401  # of means between their bounds
_FIRM_VARIANCE = 6.0  # from which on the error of its root is that to first order
_ROUNDS = 50  # of proportional fitting
_NONE = 0.9  # probability a priori that all correlations are zero: fewer are then worse than zeros


class NoisyValues(NamedTuple):
    """Values of answers and their error bars, of shape (..., rows, columns); NaN where noise hides them."""

    value: Floats
    std: Floats


class Statistic(NamedTuple):
    """Values of statistics, of shape (..., *statistics), NaN where too few records are known."""

    value: Floats
    terms: list[tuple[Places, Places, Floats]]  # derivatives by entries of the moments, as for `NoiseLaw.std`
    open: Floats = np.zeros(())  # variance of what is left open where a number was shrunk

    def std(self, law: NoiseLaw) -> Floats:
        """Standard deviation of the error, NaN where there is no value."""
        return np.where(np.isfinite(self.value), np.hypot(law.std(self.terms), np.sqrt(self.open)), np.nan)

    def with_bars(self, law: NoiseLaw) -> NoisyValues:
        """With error bars."""
        return NoisyValues(self.value, self.std(law))


def read_entry(view: MomentView, i: Places, j: Places) -> Statistic:
    """Entries of the moments themselves."""
    return Statistic(view.read(i, j), [(i, j, np.ones(()))])


def divide(view: MomentView, top: tuple[Places, Places], bottom: tuple[Places, Places]) -> Statistic:
    """Entries over other entries, which are shares of records."""
    size = view.read(*bottom)
    value = np.where(view.stands_out(*bottom), view.read(*top) / size, np.nan)
    return Statistic(value, [(*top, 1 / size), (*bottom, -value / size)])


def covary(view: MomentView, x: Places, r: Places, y: Places, s: Places) -> Statistic:
    """``E[xy] - E[x] E[y]`` over the records in which x and y are there (r and s), less the bias of noise in means."""
    size = view.read(r, s)
    first, second, product = view.read(x, s) / size, view.read(r, y) / size, view.read(x, y) / size
    value = product - first * second + view.law.covariance(x, s, r, y) / size**2
    by_size = (2 * first * second - product) / size
    terms = [(x, y, 1 / size), (x, s, -second / size), (r, y, -first / size), (r, s, by_size)]
    return Statistic(np.where(view.stands_out(r, s), value, np.nan), terms)


def vary(view: MomentView, x: Places, r: Places) -> Statistic:
    """Variances: `covary` of values with themselves, where two of the entries are the same."""
    found = covary(view, x, r, x, r)
    square, first, _, size = found.terms
    return Statistic(found.value, [square, (x, r, 2 * first[2]), size])


def summarise(view: MomentView) -> NoisyValues:
    """Mean less the middle of the bounds, standard deviation and share observed of each number, (..., n, 3)."""
    x, r = view.variables
    zero = np.zeros_like(x)
    mean, share = divide(view, (zero, x), (zero, r)), divide(view, (zero, r), (zero, zero))
    square = vary(view, x, r)
    noise = square.std(view.law)
    spread = np.sqrt(np.where(square.value >= _FIRM_VARIANCE * noise, square.value, np.nan))
    value = np.stack([mean.value, spread, np.where(r > 0, share.value, 1.0)], axis=-1)
    bars = [mean.std(view.law), noise / (2 * spread), np.where(r > 0, share.std(view.law), 0.0)]
    return NoisyValues(value, np.stack(np.broadcast_arrays(*bars), axis=-1))


def find_level_means(view: MomentView, row: NDArray[np.intp]) -> Statistic:
    """Means of the numbers less the middles of their bounds, in each level (`view_levels`), (..., levels, n)."""
    x, _ = view.variables
    row, x = np.broadcast_arrays(row, x)
    count = count_observed(view, row)
    size = count.value
    value = np.where(size > LEAST_SIZE * count.std(view.law), view.read(row, x) / size, np.nan)
    terms = [(row, x, 1 / size), *((i, j, -value / size * slope) for i, j, slope in count.terms)]
    return Statistic(value, terms, (value / size) ** 2 * count.open)


def count_observed(view: MomentView, row: NDArray[np.intp]) -> Statistic:
    """Share of the records that are in a level and have a number, of shape (..., levels, n).

    The share that was released is shrunk (`shrink`) towards the product of the shares of the level and of the values
    that are there, which have less noise: as far as noise explains the difference. What is left open is what the
    released share does not tell of it, and the square of how far it was moved (`docs/postprocessing.md`).
    """
    row, r = np.broadcast_arrays(row, view.variables[1])
    zero = np.zeros_like(row)
    share, measured = view.read(row, zero), view.read(row, r)
    observed = np.clip(measured.sum(axis=-2, keepdims=True) / share.sum(axis=-2, keepdims=True), 0.0, 1.0)
    excess = measured - share * observed
    noise = np.maximum(view.law.std([(row, r, np.ones(())), (row, zero, -observed)]), TINY)
    unit = np.sqrt(np.maximum(share * (1 - share) * observed * (1 - observed), 0.0))
    found = shrink(excess, unit, noise)
    kept = np.where(r > 0, np.minimum(found.variance / noise**2, 1.0), 1.0)  # derivative of the mean by the excess
    value = np.where(r > 0, share * observed + found.mean, share)
    moved = value - np.clip(measured, share + observed - 1, share)  # from the nearest share that is possible
    left = np.where(r > 0, noise**2 * kept * (1 - kept) + moved**2, 0.0)
    return Statistic(value, [(row, r, kept), (row, zero, (1 - kept) * observed)], left)


class Shrunk(NamedTuple):
    """Mean and variance, given noisy numbers, of the numbers without noise."""

    mean: Floats
    variance: Floats


def shrink(measured: Floats, weight: Floats, noise: Floats, *, together: bool = False, none: float = 0.0) -> Shrunk:
    """What is known of ``weight * theta``, given ``measured = weight * theta + noise``, for arrays of one shape.

    `noise` is its standard deviation. A priori theta is zero with probability `none`, and otherwise Gaussian with mean
    zero and a standard deviation whose logarithm is uniform between those of 0.01 and 1. Each has a standard deviation
    of its own, or `together` all have the same.
    """
    shape, noise = (-1, *[1] * measured.ndim), np.maximum(noise, TINY)
    prior = np.append(none, np.full(_VARIANCES.size, (1 - none) / _VARIANCES.size)).reshape(shape)
    variances = np.append(0.0, _VARIANCES).reshape(shape) * weight**2
    total = variances + noise**2
    likelihood = -(np.log(total) + measured**2 / total) / 2
    if together:
        likelihood = likelihood.sum(axis=tuple(range(1, likelihood.ndim)), keepdims=True)
    posterior = prior * np.exp(likelihood - likelihood.max(axis=0))
    posterior = posterior / posterior.sum(axis=0)
    means = variances / total * measured
    mean = (posterior * means).sum(axis=0)
    return Shrunk(mean, (posterior * (variances * noise**2 / total + (means - mean) ** 2)).sum(axis=0))


def covary_all(view: MomentView) -> NoisyValues:
    """Covariances of all pairs of numbers, each over the records in which both are there, of shape (..., n, n)."""
    x, r = view.variables
    i, j = np.tril_indices(x.size)
    found = covary(view, x[i], r[i], x[j], r[j])
    return NoisyValues(*(_mirror(one, x.size) for one in found.with_bars(view.law)))


def correlate_all(view: MomentView) -> NoisyValues:
    """Correlations of all pairs of numbers, (..., n, n), over the records in which both are there; NaN where hidden."""
    x, r = view.variables
    i, j = np.tril_indices(x.size)
    own, pair = vary(view, x, r), covary(view, x[i], r[i], x[j], r[j])  # variances over all that have the number
    variances = np.where(own.value > LEAST_VARIANCE * view.law.std(own.terms), own.value, np.nan)
    scale = np.sqrt(variances[..., i] * variances[..., j])
    value = pair.value / scale
    terms = [(a, b, slope / scale) for a, b, slope in pair.terms]
    for one in (i, j):
        half = -value / 2 / own.value[..., one]
        terms += [(a[one], b[one], half * slope[..., one]) for a, b, slope in own.terms]
    value, std = np.where(i == j, scale / scale, value), np.where(i == j, 0.0 * scale, view.law.std(terms))
    return NoisyValues(*(_mirror(one, x.size) for one in hide_uncertain(value, std)))


def _mirror(below: Floats, size: int) -> Floats:
    """Symmetric matrices of shape (..., size, size) from their lower triangles, row by row."""
    i, j = np.tril_indices(size)
    below = np.broadcast_to(below, (*below.shape[:-1], i.size))
    full = np.empty((*below.shape[:-1], size, size))
    full[..., i, j] = full[..., j, i] = below
    return full


def hide_uncertain(correlation: Floats, std: Floats) -> tuple[Floats, Floats]:
    """Correlations and error bars; NaN where the bar is `LARGEST_BAR`, or a correlation two bars out of its range."""
    hidden = ~(std < LARGEST_BAR) | ~(np.abs(correlation) <= 1 + 2 * std + 1e-9)
    return np.where(hidden, np.nan, correlation), np.where(hidden, np.nan, std)


def correlation_from_covariance(covariance: Floats, *, undefined: float = np.nan) -> Floats:
    """Correlations from covariances, both of shape (..., m, m); with noise they may lie outside of [-1, 1].

    That of a feature whose variance is not positive is `undefined`; if it is NaN, that with itself is NaN as well.
    """
    variances = np.diagonal(covariance, axis1=-2, axis2=-1)
    defined, rows = variances > 0, np.arange(variances.shape[-1])
    std = np.sqrt(np.where(defined, variances, 1.0))
    both = defined[..., :, None] & defined[..., None, :]
    result = np.where(both, covariance / (std[..., :, None] * std[..., None, :]), undefined)
    result[..., rows, rows] = np.where(defined | ~np.isnan(undefined), 1.0, np.nan)
    return result


# Answers with names


@np.errstate(all="ignore")
def means(matrix: Floats, design: Design, by: str | None = None, group: Any = None) -> Estimate:
    """Mean, standard deviation and share observed of each number; or, by level, its share of the records and the means.

    `by` is a category, or a column by which the release is grouped.
    """
    if by is None:
        view = view_moments(matrix, design, group)
        return name_summary(view, summarise(view), lambda: _summary_range(view))
    view, row, levels = view_levels(matrix, design, by, group)
    shares = read_entry(view, 0, 0) if row.ndim == 1 else divide(view, (0, row[:, 0]), (0, 0))
    found = find_level_means(view, row).with_bars(view.law)

    def find() -> Range:
        x, r = view.variables
        above = np.broadcast_arrays(row, x, r)
        found = _mean_range(view, (above[0], above[1]), (above[0], above[2]))
        own = [np.full(len(levels), np.nan)] * 3
        if row.ndim > 1:  # shares of levels that have a total
            own = [*_ratio_range(view, (0, row[:, 0]), (0, 0), 0.0, 1.0)]
        return Range(*(np.column_stack(pair) for pair in zip(own, found, strict=True)))

    return name_level_means(view, levels, shares.with_bars(view.law), found, find)


def view_levels(
    matrix: Floats, design: Design, by: str, group: Any = None
) -> tuple[MomentView, NDArray[np.intp], tuple[str, ...]]:
    """The moments in which the levels of a column are, the coordinate of each level, and their names.

    Coordinates are of shape (levels, 1); (1,), the constant, for a column of groups, which are the moments' first axis.
    """
    query = table_query(design)
    if by in query.by:
        names = query.columns.category(by).level_names
        return view_moments(matrix, design, group, (by,)), np.zeros(1, np.intp), names
    view = view_moments(matrix, design, group)
    return view, view.levels(by)[:, None], view.places[by].levels


Ranges = Callable[[], Range]


def name_summary(view: MomentView, found: NoisyValues, ranges: Ranges | None = None) -> Estimate:
    """The result of `summarise` with names, in the units of the data."""
    shift = np.column_stack([view.middles, np.zeros((view.middles.size, 2))])
    reasons = np.full(shift.shape, TOO_FEW, object)
    reasons[np.isfinite(found.value[:, 0]), 1] = HIDDEN
    half, zero = view.halfwidths, np.zeros_like(view.halfwidths)
    possible = np.column_stack([-half, zero, zero]) + shift, np.column_stack([half, half, 1 + zero]) + shift
    return settle(found.value + shift, found.std, view.numbers, SUMMARY, possible, ranges, reasons=reasons)


def _summary_range(view: MomentView) -> Range:
    """Intervals of means, standard deviations and shares that noise hides."""
    x, r = view.variables
    zero, square = np.zeros_like(x), vary(view, x, r)
    spread = root_range(square.value, view.law.std(square.terms), view.halfwidths)
    means, shares = _mean_range(view, (zero, x), (zero, r)), _ratio_range(view, (zero, r), (zero, zero), 0.0, 1.0)
    return Range(*(np.column_stack(parts) for parts in zip(means, spread, shares, strict=True)))


def _mean_range(view: MomentView, top: tuple[Places, Places], bottom: tuple[Places, Places]) -> Range:
    """Intervals of means in the units of the data, where noise hides the share of records that they are of."""
    found = _ratio_range(view, top, bottom, -view.halfwidths, view.halfwidths)
    return Range(*(one + view.middles for one in found))


def _ratio_range(
    view: MomentView, top: tuple[Places, Places], bottom: tuple[Places, Places], least: Any, most: Any
) -> Range:
    """Intervals of entries over other entries, between `least` and `most`, where noise hides those.

    By Fieller's theorem: all m on a grid for which ``top - m bottom`` is within its own noise, and their mean, weighted
    by likelihood; NaN if there are none.
    """
    grid, step = np.linspace(least, most, _GRID, retstep=True)
    law, m = view.law, grid.reshape(_GRID, *[1] * (np.ndim(view.read(*top)) - grid.ndim + 1), *grid.shape[1:])
    own, both, size = law.covariance(*top, *top), law.covariance(*top, *bottom), law.covariance(*bottom, *bottom)
    apart = np.square(view.read(*top) - m * view.read(*bottom)) / np.maximum(own - 2 * m * both + m**2 * size, 1e-300)
    inside = apart <= ndtri((1 + LEVEL) / 2) ** 2
    low, high = np.where(inside, m, np.inf).min(axis=0) - step, np.where(inside, m, -np.inf).max(axis=0) + step
    weights = np.exp(-(apart - apart.min(axis=0)) / 2) * inside
    return Range((weights * m).sum(axis=0) / weights.sum(axis=0), low, high)


def name_level_means(
    view: MomentView, levels: tuple[str, ...], shares: NoisyValues, found: NoisyValues, ranges: Ranges | None = None
) -> Estimate:
    """Shares and means of levels with names, in the units of the data, of shape (levels, 1 + numbers)."""
    value = np.column_stack([shares.value, found.value + view.middles])
    std = np.column_stack([np.broadcast_to(shares.std, shares.value.shape), found.std])
    lower, upper = view.middles - view.halfwidths, view.middles + view.halfwidths
    most = 1.0 if view.matrix.ndim == 2 or view.query.public_number else math.inf  # none is known of a nominal number
    names = tuple(levels), (f"share of {view.query.count_word}", *view.numbers)
    return settle(value, std, *names, (np.append(0.0, lower), np.append(most, upper)), ranges)


@np.errstate(all="ignore")
def covariance(matrix: Floats, design: Design, group: Any = None) -> Estimate:
    """Covariances of the numbers about their means, each over the records in which both are there, (n, n).

    Second moments less products of means, without the bias that noise in the means would add.
    """
    view = view_moments(matrix, design, group)
    return settle(*covary_all(view), view.numbers, view.numbers, limit_products(view.halfwidths), lambda: None)


@np.errstate(all="ignore")
def correlation(matrix: Floats, design: Design, group: Any = None) -> Estimate:
    """Correlations of the numbers, of shape (n, n)."""
    view = view_moments(matrix, design, group)
    return name_correlation(view, correlate_all(view), lambda: None)


def name_correlation(view: MomentView, found: NoisyValues, ranges: Callable[[], None] | None = None) -> Estimate:
    """Correlations with names; one is not given where too few records have values, or noise hides a variance or it."""
    own, r = np.eye(len(found.value), dtype=bool), view.variables[1]
    known, firm = view.stands_out(r, r), np.isfinite(np.diagonal(found.value))
    hidden = view.stands_out(r[:, None], r) | (known & known[:, None] & ~(firm & firm[:, None]))
    reasons = np.where(hidden, HIDDEN, TOO_FEW).astype(object)
    if ranges is not None:
        found = NoisyValues(np.where(own, 1.0, found.value), np.where(own, 0.0, found.std))
    return settle(*found, view.numbers, view.numbers, (np.where(own, 1.0, -1.0), 1.0), ranges, reasons=reasons)


def second_moment(matrix: Floats, design: Design, centre: ArrayLike) -> Estimate:
    """Second moment ``(1/N) sum (x - centre)(x - centre)'`` about a public point, of shape (n, n), from `Moments`.

    It follows from the moments about the middle of the bounds without approximation, and nearly always with less noise
    than a release of `SecondMoment` about that point has.
    """
    if not isinstance(design.query, Moments):
        raise ParameterError(f"second moments follow from Moments, got {type(design.query).__name__} instead.")
    view, bounds = view_moments(matrix, design), design.query.bounds
    shift = bounds.midpoint - check_centre(centre, bounds)
    x = view.variables[0]
    (i, j), zero = np.tril_indices(x.size), np.zeros((), np.intp)
    d, e = shift[i], shift[j]
    terms = [(x[i], x[j], np.ones(())), (zero, x[i], e), (zero, x[j], d), (zero, zero, d * e)]
    value = sum((slope * view.read(a, b) for a, b, slope in terms), np.zeros(()))
    found = Statistic(value, terms).with_bars(view.law)
    value, std = _mirror(found.value, x.size), _mirror(found.std, x.size)
    return settle(value, std, view.numbers, view.numbers, limit_products(bounds.halfwidths + np.abs(shift)))


def cross_table(matrix: Floats, design: Design, first: str, second: str, group: Any = None) -> Estimate:
    """Shares of records for two categories of the table or its groups, with totals, (levels + 1, levels + 1)."""
    if first == second:
        raise ParameterError("a table needs two different categories.")
    query = table_query(design)
    whole = view_moments(matrix, design, group)

    def read(columns: tuple[str, ...], i: Places, j: Places) -> NoisyValues:
        """Entries for all levels of those of the columns that group the release, which are the first axes."""
        by = [name for name in columns if name in query.by]
        view = view_moments(matrix, design, group, by) if by else whole
        found = read_entry(view, i, j).with_bars(view.law)
        return NoisyValues(found.value, np.broadcast_to(found.std, found.value.shape))

    rows, columns = (np.zeros((), np.intp) if one in query.by else whole.levels(one) for one in (first, second))
    cells = read((first, second), rows[:, None] if rows.ndim and columns.ndim else rows, columns)
    if rows.ndim and not columns.ndim:  # groups are the first axis
        cells = NoisyValues(cells.value.T, cells.std.T)
    parts = zip(cells, read((first,), 0, rows), read((second,), 0, columns), read((), 0, 0), strict=True)
    value, std = (
        np.block([[one, right[:, None]], [below, np.full((1, 1), every)]]) for one, right, below, every in parts
    )
    names = [(*query.columns.category(one).level_names, ALL) for one in (first, second)]
    most = 1.0 if query.public_number else math.inf
    return settle(value, std, names[0], names[1], (0.0, most))


# Shrunk answers (docs/postprocessing.md): biased, and always given. Error bars are those before shrinkage, and at most
# those of numbers of which nothing is known but their range.


def rake(table: Floats, ones: Floats, others: Floats) -> Floats:
    """A table with the zeros of a table, and the sums of rows and of columns that are given, or near them.

    Rows and columns are brought to their sums in turn. Where zeros do not allow both, it is half way between the two.
    """
    columns = table
    for _ in range(_ROUNDS):
        rows = columns * (ones / np.maximum(columns.sum(axis=1), TINY))[:, None]
        columns = rows * (others / np.maximum(rows.sum(axis=0), TINY))
    return np.asarray((rows + columns) / max(float((rows + columns).sum()), TINY))


def shrink_cells(cells: Floats, rows: Floats, columns: Floats, noise: Floats) -> Floats:
    """Shares of records for two levels, shrunk towards independence, with the given totals; of shape (k, m)."""
    size = max(float(rows.sum()), TINY)
    expected = np.multiply.outer(rows, columns) / size
    unit = np.sqrt(np.multiply.outer(rows * (size - rows), columns * (size - columns))) / size + TINY
    found = shrink(cells - expected, unit, noise, together=True)  # correlations of the indicators of two levels
    return rake(np.maximum(expected + found.mean, TINY), rows, columns) * float(rows.sum())


def shrink_correlations(covariance: Floats, std: Floats) -> tuple[Floats, Floats]:
    """Correlations from a noisy covariance, shrunk towards zero, as a possible matrix; and their error bars.

    They are shrunk by the noise that they would have if they were zero. Noise in variances is not among it: it makes a
    correlation too large or too small by a factor, which is no reason to move it towards zero.
    """
    known = np.isfinite(covariance) & np.isfinite(std)
    own = np.diagonal(known)
    noise = np.where(own, np.diagonal(std), 1.0)
    variances = np.maximum(np.where(own, np.diagonal(covariance), 1.0), np.maximum(noise, TINY))
    scale = np.sqrt(np.multiply.outer(variances, variances))
    known = known & own & own[:, None]
    value, at_zero = (np.where(known, *pair) / scale for pair in ((covariance, 0.0), (std, scale)))
    value, at_zero = ((one + one.T) / 2 for one in (value, np.maximum(at_zero, TINY)))
    relative = np.add.outer((noise / variances) ** 2, (noise / variances) ** 2) / 4
    bars = np.sqrt(at_zero**2 + value**2 * relative)
    pairs = np.tril_indices(len(value), -1)
    shrunk = np.zeros_like(value)
    shrunk[pairs] = shrink(value[pairs], np.ones(()), at_zero[pairs], together=True, none=_NONE).mean
    shrunk += shrunk.T + np.eye(len(value))
    for one in (bars, at_zero):
        np.fill_diagonal(one, 0.0)
    return np.clip(nearest_psd(shrunk, at_zero), -1.0, 1.0), np.minimum(bars, LARGEST_BAR)


@np.errstate(all="ignore")
def shrunk_means(matrix: Floats, design: Design, by: str, group: Any = None) -> Estimate:
    """Share of the records and shrunk mean of each number for each level; like `means`, without gaps."""
    view, row, levels = view_levels(matrix, design, by, group)
    whole = view_moments(matrix, design, group)
    (x, r), half, law = view.variables, view.halfwidths, view.law
    whole_size = 1.0 if row.ndim == 1 else max(float(view.read(0, 0)), TINY)
    share = np.clip(view.read(0, row[..., 0]) / whole_size, 0.0, 1.0)
    overall = np.nan_to_num(divide(whole, (np.zeros_like(x), x), (np.zeros_like(r), r)).value) / half
    size = count_observed(view, row)
    terms = [(row, x, 1 / half), *((i, j, -overall * slope) for i, j, slope in size.terms)]
    excess = Statistic(view.read(row, x) / half - overall * size.value, terms, overall**2 * size.open)
    count, noise = (np.maximum(one, TINY) for one in (np.maximum(size.value, size.std(law)), excess.std(law)))
    found = half * np.clip(overall + shrink(excess.value, count, noise).mean / count, -1.0, 1.0)
    std = half * np.minimum(noise / count, LARGEST_BAR)
    shares = NoisyValues(share, law.entry_std(0, row[..., 0]) / whole_size)
    return name_level_means(view, levels, shares, NoisyValues(found, std))


def shrink_table(table: Estimate) -> Estimate:
    """A table of `cross_table` with its cells shrunk towards independence, and with its error bars."""
    measured = table.measured
    total = max(float(measured[-1, -1]), 0.0)
    positive = [np.maximum(shares, 0.0) for shares in (measured[:-1, -1], measured[-1, :-1])]
    rows, columns = (one * (total / max(float(one.sum()), TINY)) for one in positive)  # of the same sum
    cells = shrink_cells(measured[:-1, :-1], rows, columns, table.std[:-1, :-1])
    value = np.block([[cells, rows[:, None]], [columns, np.full((1, 1), total)]])
    return replace(table, value=value, measured=value)


@np.errstate(all="ignore")
def shrunk_correlation(matrix: Floats, design: Design, group: Any = None) -> Estimate:
    """Correlations of the numbers, shrunk; like `correlation`, without gaps."""
    view = view_moments(matrix, design, group)
    return name_correlation(view, NoisyValues(*shrink_correlations(*covary_all(view))))
