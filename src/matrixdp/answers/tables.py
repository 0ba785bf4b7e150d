"""Answers from the moments of a table: means, covariances and correlations, with error bars.

All of it is post-processing. Error bars are the standard deviation of the noise alone, to first order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.answers.estimate import HIDDEN, TOO_FEW, Estimate
from matrixdp.answers.moments import hide_uncertain
from matrixdp.answers.table_view import TableView, read_other_groups, select_groups, table_query
from matrixdp.design.design import Design
from matrixdp.noise.table_noise import Place
from matrixdp.types import Floats

LEAST_VARIANCE = 2.0  # a variance below so many standard deviations of its noise is too small to divide by


def summarise(matrix: Floats, design: Design, group: Any = None) -> Estimate:
    """Mean, standard deviation and share observed of each number, of shape (numbers, 3)."""
    view = select_groups(matrix, design, group)
    rows = [_summarise_one(view, view.number(name)) for name in view.numbers]
    middle = np.array([view.middle(name) for name in view.numbers])
    value = np.array([row[0] for row in rows]).reshape(-1, 3)
    value[:, 0] += middle
    std = np.array([row[1] for row in rows]).reshape(-1, 3)
    reasons = np.full(value.shape, TOO_FEW, object)
    reasons[np.isfinite(value[:, 0]), 1] = HIDDEN
    return Estimate(value, std, view.numbers, ("mean", "standard deviation", "share observed"), reasons)


def means_by(matrix: Floats, design: Design, by: str, group: Any = None) -> Estimate:
    """Share of the records and mean of each number for each level of a category, of shape (levels, 1 + numbers).

    `by` is a category of the table, or a column by which the release is grouped.
    """
    query = table_query(design)
    names = tuple(name for name, place in query.places.items() if not place.levels)
    if by in query.by:
        levels = query.columns.category(by).level_names
        given = read_other_groups(group, by)
        rows = []
        for level in levels:
            view = select_groups(matrix, design, {**given, by: level})
            rows.append(_mean_row(view, 0, names))
    else:
        whole = select_groups(matrix, design, group)
        place = whole.category(by)
        levels = place.levels
        rows = [_mean_row(whole, place.value + k, names) for k in range(len(levels))]
    value, std = (np.array([row[k] for row in rows]).reshape(len(levels), -1) for k in (0, 1))
    return Estimate(value, std, tuple(levels), (f"share of {design.query.count_word}", *names))


def covariance_table(matrix: Floats, design: Design, group: Any = None) -> Estimate:
    """Covariances of the numbers, each over the records in which both are there, of shape (numbers, numbers)."""
    view = select_groups(matrix, design, group)
    pairs = [[pair_covariance(view, view.number(a), view.number(b)) for b in view.numbers] for a in view.numbers]
    value = np.array([[pair.value for pair in row] for row in pairs])
    std = np.array([[view.std(pair.gradients) if pair.known else np.nan for pair in row] for row in pairs])
    return Estimate(value, std, view.numbers, view.numbers)


def correlation_table(matrix: Floats, design: Design, group: Any = None) -> Estimate:
    """Correlations of the numbers, of shape (numbers, numbers).

    The covariance is over the records in which both are there, the variance of each number over those in which it is.
    NaN where noise hides a variance, the correlation itself (`hide_uncertain`) or the number of records; `reasons` says
    which.
    """
    view = select_groups(matrix, design, group)
    size = len(view.numbers)
    value, std = np.full((size, size), np.nan), np.full((size, size), np.nan)
    places = [view.number(name) for name in view.numbers]
    own = [pair_covariance(view, place, place) for place in places]
    reasons = np.full((size, size), TOO_FEW, object)
    for i in range(size):
        for j in range(i + 1):
            if not all(_stands_out(view, one) for one in (own[i], own[j])):
                if own[i].known and own[j].known:
                    reasons[i, j] = reasons[j, i] = HIDDEN
                continue
            if i == j:
                value[i, i], std[i, i] = 1.0, 0.0
                continue
            pair = pair_covariance(view, places[i], places[j])
            scale = np.sqrt(own[i].value * own[j].value)
            r = pair.value / scale
            gradients = [(a, b, g / scale) for a, b, g in pair.gradients]
            for one in (own[i], own[j]):
                gradients += [(a, b, -r / 2 / one.value * g) for a, b, g in one.gradients]
            if pair.known:
                value[i, j] = value[j, i] = r
                std[i, j] = std[j, i] = view.std(gradients)
    shown, bars = hide_uncertain(value, std)
    reasons[np.isfinite(value) & np.isnan(shown)] = HIDDEN
    return Estimate(shown, bars, view.numbers, view.numbers, reasons)


@dataclass(frozen=True)
class PairCovariance:
    """Covariance of two coordinates over the records in which both are there, with its derivatives."""

    value: float
    gradients: tuple[tuple[int, int, float], ...] = ()

    @property
    def known(self) -> bool:
        """Whether enough records have both."""
        return bool(np.isfinite(self.value))


def pair_covariance(view: TableView, one: Place, other: Place) -> PairCovariance:
    """``E[xy] - E[x] E[y]`` over the records in which x and y are there, less the bias of noise in a squared mean."""
    x, y, r, s = one.value, other.value, one.observed, other.observed
    if not view.stands_out(r, s):
        return PairCovariance(np.nan)
    m, size = view.matrix, view.matrix[r, s]
    first, second = m[x, s] / size, m[r, y] / size
    value = m[x, y] / size - first * second
    gradients = (
        (x, y, 1 / size),
        (x, s, -second / size),
        (r, y, -first / size),
        (r, s, (2 * first * second - m[x, y] / size) / size),
    )
    if x == y:
        value += view.variance(x, s) / size**2
    return PairCovariance(float(value), gradients)


def _stands_out(view: TableView, variance: PairCovariance) -> bool:
    """Whether a variance is large enough, beside its noise, to divide by."""
    return variance.known and bool(variance.value > LEAST_VARIANCE * view.std(variance.gradients))


def _summarise_one(view: TableView, place: Place) -> tuple[list[float], list[float]]:
    """Mean less the midpoint, standard deviation and share observed, each with its standard deviation."""
    mean, mean_std = view.ratio((0, place.value), (0, place.observed))
    square = pair_covariance(view, place, place)
    spread = np.sqrt(max(square.value, 0.0)) if square.known else np.nan
    spread_std = view.std(square.gradients) / (2 * spread) if square.known and spread > 0 else np.nan
    share, share_std = view.ratio((0, place.observed), (0, 0)) if place.observed else (1.0, 0.0)
    return [mean, spread if spread > 0 else np.nan, share], [mean_std, spread_std, share_std]


def _mean_row(view: TableView, row: int, names: Sequence[str]) -> tuple[list[float], list[float]]:
    """Share of the records and the means of one level or group."""
    share, share_std = view.ratio((0, row), (0, 0)) if row else (view.matrix[0, 0], view.std([(0, 0, 1.0)]))
    values, stds = [float(share)], [share_std]
    for name in names:
        place = view.number(name)
        mean, std = view.ratio((row, place.value), (row, place.observed))
        values.append(mean + view.middle(name))
        stds.append(std)
    return values, stds
