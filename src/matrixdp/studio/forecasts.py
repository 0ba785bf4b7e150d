"""What a release would look like before it is asked for: errors, the noise ellipse, errors at other epsilons, its cost.

Everything follows from the schema and the request; no data are read. An adaptive fit is predicted by simulation, which
takes longer (`simulations`), so the errors of a plain release of the same numbers are given at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from matrixdp.cli.actions.design_options import DesignOptions, refuse_extremes
from matrixdp.cli.actions.table_query import choose_columns
from matrixdp.design import Design
from matrixdp.design.noise_ellipse import describe_numbers, feature_names, outline_ellipse, pair_covariance
from matrixdp.domain.schema import Schema
from matrixdp.domain.schema_file import parse_schema
from matrixdp.errors import BudgetExceededError, ParameterError
from matrixdp.ledger import Ledger
from matrixdp.studio.error_tables import ErrorTable, predict_tables
from matrixdp.studio.planning import ReleasePlan, plan_release
from matrixdp.studio.spec import ReleaseSpec
from matrixdp.types import Floats

STEPS = 30  # of a slider for epsilon in a factor of ten
LEAST_STEP, MOST_STEP = -60, 30
EPSILONS = tuple(float(f"{10 ** (step / STEPS):.3g}") for step in range(LEAST_STEP, MOST_STEP + 1))  # 0.01 to 10
CURVE_EPSILONS = EPSILONS[::6]
_STRIDE = 15  # steps of the slider between the first epsilons of a search


@dataclass(frozen=True, eq=False)
class Ellipse:
    """The curve that contains the noise of two numbers with 95 % probability.

    Attributes
    ----------
    names : tuple of str
        Of the two features.
    subject : str
        What the numbers are, to go before the names.
    points : float64 array of shape (2, k)
    """

    names: tuple[str, str]
    subject: str
    points: Floats


@dataclass(frozen=True, eq=False)
class Forecast:
    """What follows from a request without data and without simulation.

    Attributes
    ----------
    spec : ReleaseSpec
    plan : ReleasePlan
        Its cost, its method and why.
    design : Design
        Of a plain release of the same numbers.
    tables : tuple of ErrorTable
        The first one is followed by the curve.
    """

    spec: ReleaseSpec
    plan: ReleasePlan
    design: Design
    tables: tuple[ErrorTable, ...]

    @property
    def adaptive(self) -> bool:
        """Whether the release would be an adaptive fit, for which `tables` are only a comparison."""
        return self.plan.design is None

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features between which an ellipse can be drawn; empty where there are none."""
        flat = self.design.query.places is not None or self.design.flat
        return () if flat else tuple(feature_names(self.design.query))

    def draw_ellipse(self, first: int = 0, second: int = 1) -> Ellipse | None:
        """The noise ellipse of two features, given by their numbers; None if the design has none."""
        names = self.features
        if first == second or not max(first, second) < len(names):
            return None
        points = outline_ellipse(pair_covariance(self.design, first, second))
        return Ellipse((names[first], names[second]), describe_numbers(self.design), points)


@dataclass(frozen=True)
class Needed:
    """The least epsilon of the slider that reaches a wanted error, and the error that it has."""

    epsilon: float
    error: float


@dataclass(frozen=True)
class Left:
    """What a release would leave in the ledger.

    Attributes
    ----------
    before : float
        Epsilon left now.
    after : float or None
        Epsilon left after it; None if it is refused.
    refusal : str
        Why the ledger would refuse it; empty otherwise.
    """

    before: float
    after: float | None
    refusal: str


class Forecaster:
    """Forecasts for one schema; remembers the errors at other epsilons, which do not change with the slider.

    `plan` is `plan_release` for this schema, which remembers the latest plans.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.plan = lru_cache(maxsize=16)(self._make_plan)
        self._curve = lru_cache(maxsize=32)(self._make_curve)

    def _make_plan(self, spec: ReleaseSpec) -> ReleasePlan:
        return plan_release(spec, self.schema)

    def predict(self, spec: ReleaseSpec) -> Forecast:
        """The forecast of a request; a `ParameterError` says why no release can be made for it."""
        plan = self.plan(spec)
        plain = self._find_plain(spec, plan)
        design = plan.design or self._design(plain)
        with refuse_extremes():
            tables = tuple(predict_tables(self.find_options(plain), design, self.schema))
        return Forecast(spec, plan, design, tables)

    def find_options(self, spec: ReleaseSpec) -> DesignOptions:
        """The options of ``matrixdp design`` that ask for the same."""
        return spec.to_design_options(Path(self.schema.path.name))

    def follow(self, spec: ReleaseSpec, entry: str) -> tuple[tuple[float, float], ...]:
        """Pairs of epsilon and the error of an entry of the first table, for a plain release at other epsilons."""
        plan = self.plan(spec)
        plain = replace(self._find_plain(spec, plan), epsilon=1.0, allowance=None)  # not of the slider
        return self._curve(plain, entry)

    def read(self, forecast: Forecast, entry: str) -> float:
        """The error of an entry of the first table, and at least that of the curve at larger epsilons.

        Where noise is larger than the numbers themselves, a prediction for one epsilon alone can be too small.
        """
        larger = [error for epsilon, error in self.follow(forecast.spec, entry) if epsilon >= forecast.spec.epsilon]
        return max([forecast.tables[0].read(entry), *larger])

    def find_epsilon(self, spec: ReleaseSpec, entry: str, wanted: float) -> Needed | None:
        """The least epsilon at which a plain release has at most the wanted error; None if the slider has none."""
        return search_epsilon(lambda epsilon: self.read_plain(replace(spec, epsilon=epsilon), entry), wanted)

    def read_plain(self, spec: ReleaseSpec, entry: str) -> float:
        """The error of an entry of a plain release; infinite if none can be made."""
        return self._read(self._find_plain(spec, self.plan(spec)), entry)

    def _make_curve(self, plain: ReleaseSpec, entry: str) -> tuple[tuple[float, float], ...]:
        errors = [self._read(replace(plain, epsilon=epsilon), entry) for epsilon in CURVE_EPSILONS]
        falling = np.maximum.accumulate(errors[::-1])[::-1].tolist()  # errors do not grow with epsilon
        return tuple(zip(CURVE_EPSILONS, falling, strict=True))

    def _read(self, plain: ReleaseSpec, entry: str) -> float:
        try:
            design = self._design(plain)
            with refuse_extremes():
                return next(predict_tables(self.find_options(plain), design, self.schema)).read(entry)
        except ParameterError:  # an epsilon for which no design can be made
            return float("inf")

    def _find_plain(self, spec: ReleaseSpec, plan: ReleasePlan) -> ReleaseSpec:
        """The plain release with the numbers that an adaptive fit is judged by: components follow from correlations."""
        if plan.design is not None:
            return spec
        if spec.query in ("means", "covariance", "correlation"):
            return replace(spec, method="plain")
        columns = spec.columns
        if spec.on is not None:
            columns = ",".join(choose_columns(self.find_options(spec), self.schema).names)
        return replace(spec, method="plain", query="correlation", columns=columns, target=None, on=None)

    def _design(self, plain: ReleaseSpec) -> Design:
        design = self.plan(plain).design
        assert design is not None  # of a plain release
        return design


@lru_cache(maxsize=16)
def open_forecaster(text: str, name: str) -> Forecaster:
    """The forecaster for the text of a schema; errors name it `name`."""
    return Forecaster(parse_schema(text, name))


def search_epsilon(read_error: Callable[[float], float], wanted: float) -> Needed | None:
    """The least epsilon of the slider from which on errors are at most `wanted`; None if there is none.

    Examples
    --------
    >>> search_epsilon(lambda epsilon: 0.1 / epsilon, 0.05)
    Needed(epsilon=2.0, error=0.05)
    """
    if not wanted > 0 or not np.isfinite(wanted):
        raise ParameterError(f"wanted must be a number above 0, got {wanted!r} instead.")
    high, error = len(EPSILONS) - 1, read_error(EPSILONS[-1])
    if not error <= wanted:
        return None
    low = high - _STRIDE
    while low >= 0 and (found := read_error(EPSILONS[low])) <= wanted:  # from above, where predictions are best
        high, error, low = low, found, low - _STRIDE
    low = max(low, -1)
    while high - low > 1:
        middle = (low + high) // 2
        found = read_error(EPSILONS[middle])
        if found <= wanted:
            high, error = middle, found
        else:
            low = middle
    return Needed(EPSILONS[high], error)


def preview_ledger(ledger: Ledger, dataset: str, plan: ReleasePlan, allowance: str | None) -> Left:
    """What a release would leave of a data set's budget, or of an allowance's."""
    before = ledger.remaining(dataset, allowance=allowance).epsilon
    try:
        after = ledger.whatif(dataset, plan.event, allowance=allowance).epsilon
    except BudgetExceededError as error:
        return Left(before, None, str(error))
    return Left(before, after, "")
