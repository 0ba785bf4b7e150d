"""Errors of the answers from the moments of a table, before any data are read, by simulation of releases.

The data are taken to be as a public description says. For each answer, noise is drawn many times and the answer is
computed as from a release, with the same rules for what noise hides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from matrixdp.answers.components import components
from matrixdp.answers.cross_tables import cross_table
from matrixdp.answers.described_table import SHAPES, TableShape, describe_moments
from matrixdp.answers.estimate import HIDDEN, TOO_FEW, Estimate
from matrixdp.answers.models import Regression, RegressionFit
from matrixdp.answers.noise_draws import draw_again, robust_spread
from matrixdp.answers.number_block import NumberBlock
from matrixdp.answers.simulated_noise import SimulatedNoise
from matrixdp.answers.table_view import LEAST_SIZE, TableView, read_other_groups, select_groups
from matrixdp.design.design import Design
from matrixdp.domain.description import TableDescription
from matrixdp.errors import ParameterError, show
from matrixdp.queries import TableMoments
from matrixdp.types import Floats

_DRAWS = 200  # of the noise: the error of a predicted error is about 5%
_LEAST_DRAWS = 30
_MOST_NUMBERS = 600_000  # that are drawn for one answer
_MOST_HIDDEN = 0.5  # share of the releases in which noise hides an answer, above which it is predicted to be hidden


@dataclass(frozen=True, eq=False)
class TableForecast:
    """What to expect of a release of `TableMoments` for data that are described in public.

    Its methods are those of a `Release` of the same design. Their values are those of the described data without
    noise, and their standard deviations are the root mean square errors to expect of a release. Both are NaN for an
    answer that noise would hide in most releases; `reasons` says why.

    Parameters
    ----------
    design : Design
        Of `TableMoments`.
    description : TableDescription
    data : 'friendly', 'typical' or 'hostile'
        What is assumed where the description has no guess (`described_table.SHAPES`).

    Privacy
    -------
    Reads no data.

    Examples
    --------
    >>> from matrixdp import Columns, Number, Privacy, TableMoments, make_design
    >>> columns = Columns([Number("age", 0, 120), Number("bmi", 10, 60)])
    >>> design = make_design(TableMoments(columns, records=2000), Privacy(1, 1e-6))
    >>> guess = TableDescription(means={"age": 50}, stds={"age": 20, "bmi": 0.5})
    >>> forecast = TableForecast(design, guess)
    >>> round(float(forecast.means().std[0, 0]), 1)
    0.4
    >>> forecast.correlation().reason(0, 1)
    'hidden by noise'
    """

    design: Design
    description: TableDescription = field(default_factory=TableDescription)
    data: str = "typical"

    def __post_init__(self) -> None:
        if self.data not in SHAPES:
            raise ParameterError(f"data must be one of {', '.join(SHAPES)}, got {show(self.data)} instead.")
        if not isinstance(self.design.query, TableMoments):
            raise ParameterError(
                f"design must be of TableMoments, got one of {type(self.design.query).__name__} instead."
            )

    @property
    def shape(self) -> TableShape:
        """What is assumed where the description has no guess."""
        return SHAPES[self.data]

    @property
    def _query(self) -> Any:
        return self.design.query

    @cached_property
    def moments(self) -> Floats:
        """Moments of the described data, without noise."""
        return describe_moments(self._query, self.description, self.shape)

    @np.errstate(all="ignore")
    def means(self, by: str | None = None, group: Any = None) -> Estimate:
        """As `Release.means`."""
        if by is None:
            return self._summarise(group)
        levels = self._query.columns.category(by).level_names
        numbers = [column.name for column in self._query.used.numbers]
        middles = [(column.lower + column.upper) / 2 for column in self._query.used.numbers]
        judge = self._judge_groups if by in self._query.by else self._judge_levels
        value, error = judge(by, group)
        names = (f"share of {self._query.count_word}", *numbers)
        return Estimate(value + np.append(0.0, middles), error, levels, names)

    def shares(self, by: str) -> Estimate:
        """The first column of ``means(by)`` for a category of the table: the share of the records in each level."""
        view = self._view(None)
        place = view.category(by)
        value, error = self._judge_shares(view, by, view.matrix[0, place.value : place.value + len(place.levels)])
        names = (f"share of {self._query.count_word}",)
        return Estimate(value[:, None], error[:, None], place.levels, names)

    def table(self, first: str, second: str, group: Any = None) -> Estimate:
        """As `Release.table`; the noise in a share of the records does not depend on the data."""
        return cross_table(self.moments, self.design, first, second, group)

    @np.errstate(all="ignore")
    def covariance(self, group: Any = None) -> Estimate:
        """As `Release.covariance`."""
        numbers = self._simulate(group)
        found = numbers.block.find_covariances(numbers.released)
        value, error = judge_errors(found, numbers.exact.find_covariances(numbers.truth)[..., 0])
        return Estimate(value, error, numbers.view.numbers, numbers.view.numbers)

    @np.errstate(all="ignore")
    def correlation(self, group: Any = None) -> Estimate:
        """As `Release.correlation`."""
        numbers = self._simulate(group)
        found, _ = numbers.block.find_correlations(numbers.released)
        value, error = judge_errors(found, numbers.exact.find_correlations(numbers.truth)[0][..., 0])
        error[np.eye(len(error), dtype=bool) & np.isfinite(error)] = 0.0
        reasons = np.where(numbers.block.find_known(numbers.truth)[..., 0], HIDDEN, TOO_FEW).astype(object)
        return Estimate(value, error, numbers.view.numbers, numbers.view.numbers, reasons)

    @np.errstate(all="ignore")
    def regression(self, target: str, features: Sequence[str] | None = None, group: Any = None) -> Regression:
        """As `Release.regression`."""
        rare = describe_moments(self._query, self.description, self.shape, rare=True)
        view = self._resize(select_groups(rare, self.design, group), group)
        fit = RegressionFit(view, target, features)
        released = list(draw_again(view, _count_draws(view.matrix.size)))
        found = np.array([fit.solve(noisy) for noisy in released])
        spread = robust_spread(found)
        bars = np.array([fit.find_bars(noisy, spread) for noisy in released])
        shown = np.where(np.isfinite(bars), found, np.nan).T
        _, error = judge_errors(shown, fit.solve(view.matrix, noisy=False))
        return fit.describe(view.matrix, error, noisy=False)

    def components(self, count: int | None = None, group: Any = None) -> Estimate:
        """As `Release.components`."""
        return components(self.moments, self.design, count, group)

    def _view(self, group: Any) -> TableView:
        """The described moments of a group, which has the size that is judged, or of all groups together."""
        if group is None:
            return self._whole_view
        return self._resize(select_groups(self.moments, self.design, group), group)

    def _resize(self, view: TableView, group: Any) -> TableView:
        """The view of a group with the size that is judged."""
        named = () if group is None else group if isinstance(group, dict) else self._query.by
        return replace(view, matrix=view.matrix * self._find_size(*named))

    @cached_property
    def _whole_view(self) -> TableView:
        return select_groups(self.moments, self.design)

    @cached_property
    def _whole(self) -> _Numbers:
        return _Numbers(self._view(None))

    def _simulate(self, group: Any) -> _Numbers:
        return self._whole if group is None else _Numbers(self._view(group))

    def _summarise(self, group: Any) -> Estimate:
        numbers = self._simulate(group)
        found = numbers.block.summarise(numbers.released)
        value, error = judge_errors(found, numbers.exact.summarise(numbers.truth)[..., 0])
        middle = [numbers.view.middle(name) for name in numbers.view.numbers]
        reasons = np.full(value.shape, TOO_FEW, object)
        reasons[np.isfinite(value[:, 0]), 1] = HIDDEN
        value[:, 0] += middle
        columns = ("mean", "standard deviation", "share observed")
        return Estimate(value, error, numbers.view.numbers, columns, reasons)

    def _judge_levels(self, by: str, group: Any) -> tuple[Floats, Floats]:
        """Share of the records and means of each level of a category, and their errors, of shape (levels, 1 + n)."""
        view = self._view(group)
        place, chosen = view.category(by), NumberBlock(view).chosen
        levels = slice(place.value, place.value + len(place.levels))
        truth = view.matrix[levels][:, chosen] * self._find_size(by)
        noise = SimulatedNoise(view, _count_draws(truth.size))
        released = truth[:, :, None] + noise.draw_levels(levels, chosen)
        shares = self._judge_shares(view, by, view.matrix[0, levels])
        return _join(*shares, *_judge_means(view, place.value, truth, released))

    def _judge_shares(self, view: TableView, by: str, sizes: Floats) -> tuple[Floats, Floats]:
        """Share of the records in each level of a category, and its error to first order, from the described sizes.

        All levels have the same noise: a part of their own, and the same part of the noise in the number of records.
        """
        place, whole = view.category(by), view.matrix[0, 0] if view.stands_out(0, 0) else np.nan
        shares = sizes * self._find_size(by) / whole
        of_all, part = view.variance(0, 0), 1 / len(place.levels)
        own = view.variance(0, place.value) - of_all * part**2
        return shares, np.sqrt(np.maximum(own + of_all * (part - shares) ** 2, 0.0)) / whole

    def _find_size(self, *columns: str) -> float:
        """Size of the levels that are judged, relative to those of the described table."""
        return float(np.prod([self.shape.level for name in columns if name not in self.description.shares]))

    def _judge_groups(self, by: str, group: Any) -> tuple[Floats, Floats]:
        """The same for each level of a column by which the release is grouped; all have the same noise."""
        given = read_other_groups(group, by)
        views = [self._view({**given, by: level}) for level in self._query.columns.category(by).level_names]
        chosen = NumberBlock(views[0]).chosen
        truth = np.array([view.matrix[0, chosen] for view in views])
        noise = SimulatedNoise(views[0], _count_draws(truth.size))
        first = noise.first[:, chosen]
        first[:, 0] = noise.size
        errors = np.full(len(views), views[0].std([(0, 0, 1.0)]))
        return _join(truth[:, 0], errors, *_judge_means(views[0], 0, truth, truth[:, :, None] + first.T))


class _Numbers:
    """Simulated releases of the numbers of a described table.

    Attributes
    ----------
    view : TableView
        Of the described moments.
    block, exact : NumberBlock
        With the law of the noise, and without noise.
    truth, released : float64 arrays of shape (m, m, 1) and (m, m, count)
    """

    def __init__(self, view: TableView) -> None:
        self.view, self.block = view, NumberBlock(view)
        self.exact = self.block.without_noise()
        chosen = self.block.chosen
        self.truth = view.matrix[np.ix_(chosen, chosen)][:, :, None]
        self.released = self.truth + SimulatedNoise(view, _count_draws(self.truth.size)).draw_block(chosen)


def judge_errors(released: Floats, truth: Floats) -> tuple[Floats, Floats]:
    """Value and root mean square error of answers; both are NaN where noise hides an answer in most releases.

    Parameters
    ----------
    released : float64 array of shape (..., count)
        Answers of simulated releases, NaN where noise hides one.
    truth : float64 array of shape (...)
    """
    shown = np.isfinite(released)
    squares = np.where(shown, (released - truth[..., None]) ** 2, 0.0).sum(axis=-1)
    error = np.sqrt(squares / np.maximum(shown.sum(axis=-1), 1))
    hidden = (shown.mean(axis=-1) < 1 - _MOST_HIDDEN) | ~np.isfinite(error)
    return np.where(hidden, np.nan, truth), np.where(hidden, np.nan, error)


def _judge_means(view: TableView, row: int, truth: Floats, released: Floats) -> tuple[Floats, Floats]:
    """Value and error of the means of levels or groups, of shape (levels, n).

    Parameters
    ----------
    row : int
        Coordinate of a level, or of the constant.
    truth, released : float64 arrays of shape (levels, m) and (levels, m, count)
        Entries of the moments in the rows of the levels, without and with noise.
    """
    chosen = NumberBlock(view).chosen.tolist()
    places = [view.number(name) for name in view.numbers]
    x, r = ([chosen.index(getattr(place, name)) for place in places] for name in ("value", "observed"))
    least = LEAST_SIZE * np.array([view.std([(row, place.observed, 1.0)]) for place in places])
    size = released[:, r]
    means = np.where(size > least[:, None], released[:, x] / size, np.nan)
    return judge_errors(means, truth[:, x] / truth[:, r])


def _join(shares: Floats, share_errors: Floats, means: Floats, errors: Floats) -> tuple[Floats, Floats]:
    return np.column_stack([shares, means]), np.column_stack([share_errors, errors])


def _count_draws(numbers: int) -> int:
    """How many releases are simulated if each needs so many numbers."""
    return int(np.clip(_MOST_NUMBERS // numbers, _LEAST_DRAWS, _DRAWS))
