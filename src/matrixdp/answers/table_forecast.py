"""Errors of the answers from the moments of a table, before any data are read, by simulation of releases.

Noise is drawn many times, and each answer is computed as from a release, with the same rules for what noise hides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from matrixdp.answers import moments as answers
from matrixdp.answers.described_table import SHAPES, TableShape, describe_moments
from matrixdp.answers.estimate import Estimate, settle
from matrixdp.answers.models import Regression, RegressionFit, components, simulate
from matrixdp.answers.noise_law import robust_spread
from matrixdp.answers.view import MomentView, table_query, view_moments
from matrixdp.design import make_design
from matrixdp.design.design import Design
from matrixdp.domain.columns import Columns
from matrixdp.domain.schema import TableDescription
from matrixdp.errors import ParameterError, show
from matrixdp.intervals import limit_products
from matrixdp.queries import ContingencyTable, TableMoments
from matrixdp.types import Floats

_DRAWS = 200  # of the noise: the error of a predicted error is about 5%
_LEAST_DRAWS = 30
_MOST_NUMBERS = 2_000_000  # that are drawn
EVEN = TableShape(spread=12**-0.5, position=0.5, correlation=0.0, level=1.0, missing=0.0)  # numbers fill their bounds
NOTHING = TableDescription()
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
    fitted : callable, optional
        Errors of correlations, of shape (numbers, numbers), for a kind of data, where an adaptive fit has them.

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
    fitted: Callable[[str], Floats] | None = None

    def __post_init__(self) -> None:
        if self.data not in SHAPES:
            raise ParameterError(f"data must be one of {', '.join(SHAPES)}, got {show(self.data)} instead.")
        table_query(self.design)

    _query = property(attrgetter("design.query"))

    @cached_property
    def moments(self) -> Floats:
        """Moments of the described data, without noise."""
        return describe_moments(self.design.query, self.description, SHAPES[self.data])

    @np.errstate(all="ignore")
    def means(self, by: str | None = None, group: Any = None) -> Estimate:
        """As `Release.means`."""
        if by is None:
            view = self._view(group)
            return answers.name_summary(view, _judge(view, lambda noisy: answers.summarise(noisy).value))
        if by in self._query.by:
            view, row, levels = answers.view_levels(self.moments, self.design, by, group)
            view = replace(view, matrix=view.matrix * self._find_size(*(group or {}), by))
            shares = answers.read_entry(view, 0, 0).with_bars(view.law)
        else:
            view, shares = self._find_shares(by, group)
            row, levels = view.levels(by)[:, None], view.places[by].levels
        found = _judge(view, lambda noisy: answers.find_level_means(noisy, row).value)
        return answers.name_level_means(view, levels, shares, found)

    def shares(self, by: str) -> Estimate:
        """The first column of ``means(by)`` for a category of the table: the share of the records in each level."""
        view, found = self._find_shares(by, None)
        names = view.places[by].levels, (f"share of {self.design.query.count_word}",)
        return Estimate(found.value[:, None], found.std[:, None], *names)

    def table(self, first: str, second: str, group: Any = None) -> Estimate:
        """As `Release.table`; the noise in a share of the records does not depend on the data."""
        return answers.cross_table(self.moments, self.design, first, second, group)

    @np.errstate(all="ignore")
    def covariance(self, group: Any = None) -> Estimate:
        """As `Release.covariance`."""
        names, possible = self._whole.numbers, limit_products(self._whole.halfwidths)
        found = _judge(self._view(group), lambda noisy: answers.covary_all(noisy).value)
        return settle(*found, names, names, possible)

    @np.errstate(all="ignore")
    def correlation(self, group: Any = None) -> Estimate:
        """As `Release.correlation`."""
        if self.fitted is not None and group is None:
            value, error = _correlate(self._whole.without_noise()), self.fitted(self.data)
            return answers.name_correlation(self._whole, answers.NoisyValues(*answers.hide_uncertain(value, error)))
        view = self._view(group)
        value, error = _judge(view, _correlate)
        error[np.eye(len(error), dtype=bool) & np.isfinite(error)] = 0.0
        return answers.name_correlation(view, answers.NoisyValues(value, error))

    @np.errstate(all="ignore")
    def regression(self, target: str, on: Sequence[str] | None = None, group: Any = None) -> Regression:
        """As `Release.regression`."""
        rare = describe_moments(self.design.query, self.description, SHAPES[self.data], rare=True)
        view = self._view(group, rare)
        fit, count = RegressionFit(view, target, on), _count_draws(view)
        found = simulate(view, lambda noisy: fit.solve(noisy).coefficients, count)
        spread = robust_spread(found)
        bars = simulate(view, lambda noisy: fit.solve(noisy).find_bars(spread), count)
        exact = view.without_noise()
        _, error = judge_errors(np.where(np.isfinite(bars), found, np.nan), fit.solve(exact).coefficients)
        return fit.describe(exact, error)

    def components(self, count: int | None = None, group: Any = None) -> Estimate:
        """As `Release.components`."""
        return components(self.moments, self.design, count, group, plausible=False)

    def _view(self, group: Any, moments: Floats | None = None) -> MomentView:
        """The described moments of a group, which has the size that is judged, or of all groups together."""
        if group is None and moments is None:
            return self._whole
        view = view_moments(self.moments if moments is None else moments, self.design, group)
        named = () if group is None else group if isinstance(group, dict) else self._query.by
        return replace(view, matrix=view.matrix * self._find_size(*named))

    @cached_property
    def _whole(self) -> MomentView:
        return view_moments(self.moments, self.design)

    def _find_shares(self, by: str, group: Any) -> tuple[MomentView, answers.NoisyValues]:
        """Moments in which each level has the size that is judged, but for missing values, and the shares of levels."""
        view, size = self._view(group), self._find_size(by)
        rows, matrix = view.levels(by)[: -1 if self._query.columns.category(by).missing else None], view.matrix.copy()
        matrix[rows] *= size
        matrix[:, rows] *= size
        view = replace(view, matrix=matrix)
        return view, answers.divide(view, (0, view.levels(by)), (0, 0)).with_bars(view.law)

    def _find_size(self, *columns: str) -> float:
        """Size of the levels that are judged, relative to those of the described table."""
        return float(np.prod([SHAPES[self.data].level for name in columns if name not in self.description.shares]))


def _judge(view: MomentView, statistic: Callable[[MomentView], Floats]) -> answers.NoisyValues:
    """Values of a statistic without noise, and the errors to expect of a release."""
    return judge_errors(simulate(view, statistic, _count_draws(view)), statistic(view.without_noise()))


def _correlate(view: MomentView) -> Floats:
    """Correlations as a release shows them."""
    return np.clip(answers.correlate_all(view).value, -1.0, 1.0)


def judge_errors(released: Floats, truth: Floats) -> answers.NoisyValues:
    """Value and root mean square error of answers, (count, ...); NaN where noise hides an answer in most releases."""
    shown = np.isfinite(released)
    squares = np.where(shown, (released - truth) ** 2, 0.0).sum(axis=0)
    error = np.sqrt(squares / np.maximum(shown.sum(axis=0), 1))
    hidden = (shown.mean(axis=0) < 1 - _MOST_HIDDEN) | ~np.isfinite(error)
    return answers.NoisyValues(np.where(hidden, np.nan, truth), np.where(hidden, np.nan, error))


def _count_draws(view: MomentView) -> int:
    """How many releases are simulated."""
    return int(np.clip(_MOST_NUMBERS // view.law.size**2, _LEAST_DRAWS, _DRAWS))


class SingleQuestion(NamedTuple):
    """A question, and the noise of its answer in a release of all answers over that in a release for it alone."""

    title: str
    ratio: float

    @property
    def words(self) -> str:
        """The ratio in words."""
        if not 0 < self.ratio < np.inf:
            return "noise hides the answer either way"
        return f"{self.ratio:.2g} times less noise" if self.ratio > 1.05 else "as much noise"


@np.errstate(all="ignore")
def compare_questions(design: Design) -> tuple[SingleQuestion, ...]:
    """How much less noise an answer about a table would have in a release of its own: one question of each kind.

    Each is asked of the first columns that it can be asked of, for numbers that fill their bounds evenly, and levels
    and groups of equal size. Everything follows from designs; no data are read.
    """
    query: Any = design.query
    even, numbers, categories = describe_moments(query, NOTHING, EVEN), query.used.numbers, query.used.categories
    groups = [query.columns.category(name) for name in query.by] or list(categories)
    who = {"neighbours": query.neighbours, "person": query.person}  # the same in all releases that are compared

    def release_alone(columns: Sequence[Any], **options: Any) -> tuple[Floats, Design]:
        alone = TableMoments(Columns(tuple(columns)), query.records, **who, **options)
        return describe_moments(alone, NOTHING, EVEN), make_design(alone, design.privacy)

    found = []
    if numbers and groups:
        number, by = numbers[0], groups[0]
        best = release_alone([number, by], **({} if by.missing else {"by": [by.name], "mean_share": 0.5}))
        joint = answers.means(even, design, by.name)
        ratio = joint.std[0, joint.columns.index(number.name)] / answers.means(*best, by.name).std[0, 1]
        found.append(SingleQuestion(f"means of {number.name} by {by.name}", float(ratio)))
    if len(categories) > 1:
        one, other = categories[:2]
        table = ContingencyTable(one.level_names, other.level_names, query.records, **who)
        cells = answers.cross_table(even, design, one.name, other.name).std[0, 0] * query.records
        ratio = cells / make_design(table, design.privacy).std[0, 0]
        found.append(SingleQuestion(f"the table {one.name} x {other.name}", float(ratio)))
    if len(numbers) > 1:
        ratio = answers.correlation(even, design).std[0, 1] / answers.correlation(*release_alone(numbers[:2])).std[0, 1]
        found.append(SingleQuestion(f"the correlation of {numbers[0].name} and {numbers[1].name}", float(ratio)))
    return tuple(found)
