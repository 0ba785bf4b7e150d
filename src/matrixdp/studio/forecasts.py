"""What a release would cost and look like before it is asked for: errors, the noise ellipse, errors at other epsilons.

Everything follows from the schema and the request; no data are read. An adaptive fit is predicted by simulation, which
takes some tenths of a second, so the errors of a plain release of the same numbers are given at once, and pages ask for
the simulation when the controls rest. It depends on public numbers alone and is repeatable, so results are kept. One
simulation runs at a time: others wait, and leave a core for pages.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from matrixdp.design import Design
from matrixdp.design.noise_ellipse import describe_numbers, feature_names, outline_ellipse, pair_covariance
from matrixdp.domain.schema import Schema
from matrixdp.domain.schema_file import parse_schema
from matrixdp.errors import BudgetExceededError, ParameterError
from matrixdp.ledger import Ledger
from matrixdp.queries import TableMoments
from matrixdp.release.plan import Plan, plan, refuse_extremes
from matrixdp.report.forecast import KINDS, forecast_fit, judged_by, read_forecast
from matrixdp.studio.error_tables import ErrorTable, predict_tables
from matrixdp.studio.refusals import UnavailableError
from matrixdp.studio.spec import ReleaseSpec
from matrixdp.types import Floats

_MOST_ENTRIES = 10**6  # of a release that the ledger stores, from which it is read again after a fault


def plan_release(spec: ReleaseSpec, schema: Schema) -> Plan:
    """The plan of a request, or a `ParameterError` that says why no release can be made for it."""
    made = plan(spec.to_request(schema))
    if made.entries > _MOST_ENTRIES:
        raise ParameterError(
            f"query must have at most {_MOST_ENTRIES:,} entries, got {made.entries:,} instead. Larger ones are "
            "released with the command line: matrixdp release"
        )
    return made


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
    plan : Plan
        Its cost, its method and why.
    design : Design
        Of a plain release of the same numbers.
    tables : tuple of ErrorTable
        The first one is followed by the curve.
    """

    spec: ReleaseSpec
    plan: Plan
    design: Design
    tables: tuple[ErrorTable, ...]

    @property
    def adaptive(self) -> bool:
        """Whether the release would be an adaptive fit, for which `tables` are only a comparison."""
        return self.plan.adaptive

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features between which an ellipse can be drawn; empty where there are none."""
        flat = isinstance(self.design.query, TableMoments) or self.design.flat
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

    def _make_plan(self, spec: ReleaseSpec) -> Plan:
        return plan_release(spec, self.schema)

    def predict(self, spec: ReleaseSpec) -> Forecast:
        """The forecast of a request; a `ParameterError` says why no release can be made for it."""
        plan = self.plan(spec)
        plain = self._find_plain(spec, plan)
        design = plan.design or self._design(plain)
        with refuse_extremes():
            tables = tuple(predict_tables(self.plan(plain)))
        return Forecast(spec, plan, design, tables)

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
            with refuse_extremes():
                return next(predict_tables(self.plan(plain))).read(entry)
        except ParameterError:  # an epsilon for which no design can be made
            return float("inf")

    def _find_plain(self, spec: ReleaseSpec, plan: Plan) -> ReleaseSpec:
        """The plain release with the numbers that an adaptive fit is judged by: components follow from correlations."""
        if plan.design is not None:
            return spec
        if spec.query in ("means", "covariance", "correlation"):
            return replace(spec, method="plain")
        columns = spec.columns
        if spec.on is not None:
            columns = ",".join(plan.request.choose_columns().names)
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


def preview_ledger(ledger: Ledger, dataset: str, plan: Plan, allowance: str | None) -> Left:
    """What a release would leave of a data set's budget, or of an allowance's."""
    before = ledger.remaining(dataset, allowance=allowance).epsilon
    try:
        after = ledger.whatif(dataset, plan.event, allowance=allowance).epsilon
    except BudgetExceededError as error:
        return Left(before, None, str(error))
    return Left(before, after, "")


MOST_FEATURES = 40  # with more, a simulation takes too long for a page
_CURVE = EPSILONS[15::15]  # 0.0316 to 10
_NOTE = (
    "By simulation of the fit, for records that fill their bounds as the schema expects (expected_mean, expected_std, "
    "expected_correlation), or as tables usually do. No data were read."
)
_REMEMBERED = 100
_ONE_AT_A_TIME = threading.Lock()
_PLACES = threading.BoundedSemaphore(8)  # for the simulation that runs and those that wait


@dataclass(frozen=True, eq=False)
class SimulatedRange:
    """Errors for friendly, typical and hostile data, each a table with the rows and columns of a plain release's."""

    friendly: ErrorTable
    typical: ErrorTable
    hostile: ErrorTable

    def read(self, entry: str) -> tuple[float, float, float]:
        """The errors of one entry: friendly, typical, hostile."""
        return self.friendly.read(entry), self.typical.read(entry), self.hostile.read(entry)


class Simulator:
    """Simulations for one schema, which are remembered."""

    def __init__(self, forecaster: Forecaster) -> None:
        self._forecaster = forecaster
        self._known: OrderedDict[ReleaseSpec, SimulatedRange] = OrderedDict()

    def simulate(self, spec: ReleaseSpec) -> SimulatedRange:
        """The range of errors of an adaptive release; a `ParameterError` if the fit cannot be simulated.

        An `UnavailableError` if too many simulations wait.
        """
        key = replace(spec, allowance=None)
        if (known := self._known.get(key)) is not None:
            return known
        if not _PLACES.acquire(blocking=False):  # threads that wait could not serve pages
            raise UnavailableError("too many simulations are waiting. Try again in a minute.")
        try:
            with _ONE_AT_A_TIME:
                found = self._known.get(key)
                if found is None:
                    found = self._known[key] = self._simulate(key)
                    while len(self._known) > _REMEMBERED:
                        self._known.popitem(last=False)
                return found
        finally:
            _PLACES.release()

    def recall(self, spec: ReleaseSpec) -> SimulatedRange | None:
        """A simulation that was made before; None if it was not."""
        return self._known.get(replace(spec, allowance=None))

    def recall_curve(self, spec: ReleaseSpec, entry: str) -> tuple[tuple[float, float, float, float], ...]:
        """What `follow` gives, if it was simulated before; otherwise nothing."""
        others = self._list_others(spec)
        known = [(other.epsilon, self.recall(other)) for other in others]
        if any(found is None for _, found in known):
            return ()
        return tuple((epsilon, *found.read(entry)) for epsilon, found in known if found is not None)

    def _simulate(self, spec: ReleaseSpec) -> SimulatedRange:
        plan = self._forecaster.plan(spec)
        if not plan.adaptive:
            raise ParameterError("query must be one that is answered by an adaptive fit; others need no simulation.")
        bounds = plan.bounds
        if bounds.size > MOST_FEATURES:
            raise ParameterError(
                f"columns must be at most {MOST_FEATURES} for a simulation on this page, got {bounds.size} instead. "
                "The command line below simulates more."
            )
        found, shown = forecast_fit(plan), judged_by(plan.request.question)
        names = plan.request.choose_numbers().names
        order = [(bounds.names or ()).index(name) for name in names]  # the target of a regression is last in `bounds`
        tables = []
        for kind, look in KINDS.items():
            std = read_forecast(plan, found, kind)[:, order]
            std = std.T if shown == "means" else std[order]
            columns = ("mean",) if shown == "means" else names
            tables.append(ErrorTable(f"{shown}: {look}", std, names, columns, shown == "correlation", _NOTE))
        return SimulatedRange(*tables)

    def follow(self, spec: ReleaseSpec, entry: str) -> tuple[tuple[float, float, float, float], ...]:
        """Epsilon and the friendly, typical and hostile error of an entry, at other epsilons where a fit is best."""
        return tuple((other.epsilon, *self.simulate(other).read(entry)) for other in self._list_others(spec))

    def _list_others(self, spec: ReleaseSpec) -> list[ReleaseSpec]:
        others = [replace(spec, epsilon=epsilon) for epsilon in _CURVE]
        return [other for other in others if self._is_adaptive(other)]

    def _is_adaptive(self, spec: ReleaseSpec) -> bool:
        return self._forecaster.plan(spec).design is None

    def find_epsilon(self, spec: ReleaseSpec, entry: str, wanted: float) -> Needed | None:
        """The least epsilon at which the error for typical data is at most the wanted one; None if none is.

        Errors of a simulation fall with epsilon but for its own noise, so the search may stop a step or two early.
        """
        return search_epsilon(lambda epsilon: self._read_typical(replace(spec, epsilon=epsilon), entry), wanted)

    def _read_typical(self, spec: ReleaseSpec, entry: str) -> float:
        if not self._is_adaptive(spec):  # at this epsilon a plain release is better
            return self._forecaster.read_plain(spec, entry)
        return self.simulate(spec).typical.read(entry)


@lru_cache(maxsize=16)
def open_simulator(forecaster: Forecaster) -> Simulator:
    """The simulator beside a forecaster."""
    return Simulator(forecaster)
