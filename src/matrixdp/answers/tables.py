"""Answers from the moments of a table: means, covariances and correlations, with error bars.

All of it is post-processing. Error bars are the standard deviation of the noise alone, to first order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from matrixdp.answers.consistent import ConsistentMoments, Gradient
from matrixdp.answers.moments import hide_uncertain
from matrixdp.answers.named import HIDDEN, TOO_FEW, NamedEstimate
from matrixdp.design.design import Design
from matrixdp.errors import ParameterError, show
from matrixdp.noise.table_noise import Place, TableNoise
from matrixdp.types import Floats

LEAST_SIZE = 4.0  # a share of records below so many standard deviations of its noise is too small to divide by
LEAST_VARIANCE = 2.0  # the same for a variance that a covariance is divided by


@dataclass(frozen=True, eq=False)
class TableView:
    """The noisy moment matrix of some groups of a table together, and the law of its noise.

    Attributes
    ----------
    matrix : float64 array of shape (p, p)
    design : Design
    merged : int
        Number of groups that were added up: each has the same noise.
    size_kept : float
        What is left of the variance of the noise in the share of the records, entry (0, 0), where the shares of all
        groups sum to a public number.
    """

    matrix: Floats
    design: Design
    merged: int = 1
    size_kept: float = 1.0

    @property
    def query(self) -> Any:
        """The query, which describes the columns."""
        return self.design.query

    @property
    def places(self) -> Mapping[str, Place]:
        """Where each column is in z."""
        places = self.design.query.places
        assert places is not None
        return places

    def middle(self, column: str) -> float:
        """Middle of the bounds of a number; 0 for a category."""
        bounds = self.query.columns.bounds
        if self._place(column).levels or bounds is None:
            return 0.0
        return float(bounds.midpoint[bounds.index(column)])

    @cached_property
    def structure(self) -> TableNoise:
        """The noise of one group."""
        return replace(_noise_of(self.design), groups=1)

    @cached_property
    def consistent(self) -> ConsistentMoments:
        """How the noise is left after least squares."""
        return ConsistentMoments(self.structure)

    def std(self, gradient: Gradient) -> float:
        """Standard deviation of the noise in a function of the entries, to first order.

        Parameters
        ----------
        gradient : sequence of (row, column, derivative)
            Entries that the function depends on, and its derivatives.
        """
        size_variance = self.consistent.size_variance * self.size_kept
        return float(np.sqrt(self.consistent.variance(gradient, size_variance) * self.merged))

    def draw(self, rng: np.random.Generator) -> Floats:
        """Noise of the same law as that in the matrix, of shape (p, p)."""
        drawn = self.structure.combine(self.design.noise, rng.standard_normal(self.structure.count))
        size = float(self.consistent.sizes(drawn[None])[0]) * np.sqrt(self.size_kept)
        return np.asarray(self.consistent.adjust(drawn, size) * np.sqrt(self.merged))

    def variance(self, i: int, j: int) -> float:
        """Of the noise in one entry."""
        return self.std([(i, j, 1.0)]) ** 2

    def stands_out(self, i: int, j: int) -> bool:
        """Whether a share of records is large enough, beside its noise, to divide by."""
        return bool(self.matrix[i, j] > LEAST_SIZE * self.std([(i, j, 1.0)]))

    def ratio(self, top: tuple[int, int], bottom: tuple[int, int]) -> tuple[float, float]:
        """Value and standard deviation of one entry over another, NaN where the latter is too small."""
        if not self.stands_out(*bottom):
            return np.nan, np.nan
        size = self.matrix[bottom]
        value = self.matrix[top] / size
        return float(value), self.std([(*top, 1 / size), (*bottom, -value / size)])

    def number(self, name: str) -> Place:
        """Place of a number, or a `ParameterError`."""
        place = self._place(name)
        if place.levels:
            raise ParameterError(f"column {name!r} must hold numbers, and it is a category.")
        return place

    def category(self, name: str) -> Place:
        """Place of a category, or a `ParameterError`."""
        place = self._place(name)
        if not place.levels:
            raise ParameterError(f"column {name!r} must be a category, and it holds numbers.")
        return place

    def _place(self, name: str) -> Place:
        if name in self.query.by:
            raise ParameterError(
                f"column {name!r} groups the release, so it cannot be used here: ask for one group at a time, with "
                f"group={{{name!r}: level}} (--group {name}=LEVEL)."
            )
        if name not in self.places:
            known = ", ".join([*self.places, *self.query.by][:20])
            raise ParameterError(f"a column must be one of {known}, got {show(name)} instead.")
        return self.places[name]

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the numbers."""
        return tuple(name for name, place in self.places.items() if not place.levels)


def select_groups(matrix: Floats, design: Design, group: Any = None) -> TableView:
    """The moments of one group, or of all groups together.

    They are adjusted by least squares: levels of a category add up, and the shares of all groups sum to one where the
    number of all records is public. The shares have independent noise of the same variance, so each loses the same, and
    m of G groups together keep ``1 - m/G`` of their variance.

    Parameters
    ----------
    group : str, sequence of str, or dict, optional
        The levels of the columns of `by`, or those of some of them as ``{column: level}``. By default all groups.
    """
    query = require_table(design)
    chosen = _chosen(query, group)
    p = query.layout.size
    stacked = matrix.reshape(-1, p, p)
    consistent = ConsistentMoments(_noise_of(design))
    sizes, kept = consistent.sizes(stacked), 1.0
    size = float(sizes[chosen].sum())
    if query.public_number:
        part = len(chosen) / query.groups
        kept = 1 - part
        size = size - part * (float(sizes.sum()) - 1) if kept else 1.0
    return TableView(consistent.adjust(stacked[chosen].sum(axis=0), size), design, len(chosen), kept)


def _noise_of(design: Design) -> TableNoise:
    if not isinstance(design.structure, TableNoise):
        raise ParameterError("error bars of a table need noise that was made for it, not isotropic noise.")
    return design.structure


def summarise(matrix: Floats, design: Design, group: Any = None) -> NamedEstimate:
    """Mean, standard deviation and share observed of each number, of shape (numbers, 3)."""
    view = select_groups(matrix, design, group)
    rows = [_summarise_one(view, view.number(name)) for name in view.numbers]
    middle = np.array([view.middle(name) for name in view.numbers])
    value = np.array([row[0] for row in rows]).reshape(-1, 3)
    value[:, 0] += middle
    std = np.array([row[1] for row in rows]).reshape(-1, 3)
    reasons = np.full(value.shape, TOO_FEW, object)
    reasons[np.isfinite(value[:, 0]), 1] = HIDDEN
    return NamedEstimate(value, std, view.numbers, ("mean", "standard deviation", "share observed"), reasons)


def means_by(matrix: Floats, design: Design, by: str, group: Any = None) -> NamedEstimate:
    """Share of the records and mean of each number for each level of a category, of shape (levels, 1 + numbers).

    `by` is a category of the table, or a column by which the release is grouped.
    """
    query = require_table(design)
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
    return NamedEstimate(value, std, tuple(levels), (f"share of {design.query.count_word}", *names))


def covariance_table(matrix: Floats, design: Design, group: Any = None) -> NamedEstimate:
    """Covariances of the numbers, each over the records in which both are there, of shape (numbers, numbers)."""
    view = select_groups(matrix, design, group)
    pairs = [[pair_covariance(view, view.number(a), view.number(b)) for b in view.numbers] for a in view.numbers]
    value = np.array([[pair.value for pair in row] for row in pairs])
    std = np.array([[view.std(pair.gradients) if pair.known else np.nan for pair in row] for row in pairs])
    return NamedEstimate(value, std, view.numbers, view.numbers)


def correlation_table(matrix: Floats, design: Design, group: Any = None) -> NamedEstimate:
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
    return NamedEstimate(shown, bars, view.numbers, view.numbers, reasons)


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


def require_table(design: Design) -> Any:
    """The query of a design, which must be `TableMoments`."""
    if design.query.places is None:
        raise ParameterError(
            f"tables and means by level follow from TableMoments, got {type(design.query).__name__} instead."
        )
    return design.query


def read_other_groups(group: Any, by: str) -> dict[str, Any]:
    """The levels in `group`, which must be of other columns than `by`, whose levels are told apart."""
    given = {} if group is None else group
    if not isinstance(given, dict) or by in given:
        raise ParameterError(
            f"group must name levels of other columns than {by!r}, as in group={{column: level}} (--group "
            f"COLUMN=LEVEL): the answer has all levels of {by!r}."
        )
    return given


def _chosen(query: Any, group: Any) -> list[int]:
    """Numbers of the groups that `group` means."""
    if group is None:
        return list(range(query.groups))
    if isinstance(group, dict):
        wanted = {name: str(level) for name, level in group.items()}
    else:
        levels = (group,) if isinstance(group, str | int) else tuple(group)
        if len(levels) != len(query.by):
            raise ParameterError(f"group must be {len(query.by)} levels, of {', '.join(query.by) or 'no column'}.")
        wanted = dict(zip(query.by, map(str, levels), strict=True))
    for name, level in wanted.items():
        if name not in query.by:
            raise ParameterError(f"group must be of columns among {', '.join(query.by) or 'none'}, got {show(name)}.")
        known = query.columns.category(name).level_names
        if level not in known:
            raise ParameterError(f"group of {name!r} must be one of {', '.join(known[:20])}, got {show(level)}.")
    return [
        number
        for number, found in enumerate(query.group_levels)
        if all(dict(zip(query.by, found, strict=True))[name] == level for name, level in wanted.items())
    ]
