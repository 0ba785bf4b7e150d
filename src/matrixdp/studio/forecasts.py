"""What a release would cost and look like before it is asked for: errors, the noise ellipse, errors at other epsilons.

Everything follows from the schema and the request; no data are read. An adaptive fit is predicted by simulation, which
takes some tenths of a second, so the errors of a plain release of the same numbers are given at once, and pages ask for
the simulation when the controls rest. It depends on public numbers alone and is repeatable, so results are kept. One
simulation runs at a time: others wait, and leave a core for pages.
"""

import math
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import takewhile
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from matrixdp.answers.estimate import Estimate
from matrixdp.design import Design
from matrixdp.design.explain import describe_numbers, feature_names, outline_ellipse, pair_covariance
from matrixdp.display import Numbers, format_number, make_visible, shorten
from matrixdp.domain import Schema, parse_schema
from matrixdp.errors import LedgerError, ParameterError
from matrixdp.ledger import Ledger
from matrixdp.queries import TableMoments
from matrixdp.release.options import MOST_STORED
from matrixdp.release.plan import Plan, plan, refuse_extremes
from matrixdp.report.answers import answer_groups, make_answers
from matrixdp.report.charts import Chart
from matrixdp.report.forecast import DATA_KINDS, forecast_fit, forecast_table, judged_by, let_fall, predict
from matrixdp.report.page import render_blocks, show_matrix, show_numbers
from matrixdp.report.pictures import Look
from matrixdp.report.svg import Curve, Scale, draw_curves, round_up
from matrixdp.studio.refusals import UnavailableError, word_error
from matrixdp.studio.requests import ReleaseSpec
from matrixdp.types import Floats

MOST_CORRELATED = 40  # numbers of a table with categories whose correlations are predicted within a page's time
STEPS = 30  # of a slider for epsilon in a factor of ten
LEAST_STEP, MOST_STEP = -60, 30
EPSILONS = tuple(float(f"{10 ** (step / STEPS):.3g}") for step in range(LEAST_STEP, MOST_STEP + 1))  # 0.01 to 10
_CURVE = EPSILONS[::6]
_STRIDE = 15  # steps of the slider between the first epsilons of a search
_MOST_FEATURES = 40  # with more, a simulation takes too long for a page
_REMEMBERED = 100
_ONE_AT_A_TIME = threading.Lock()
_PLACES = threading.BoundedSemaphore(8)  # for the simulation that runs and those that wait
TYPICAL, LARGEST = "typical", "largest"  # entries besides single ones: the median, and the largest error
_MOST_ENTRIES = 400  # that a page offers to follow
_LABEL = 24  # characters of a name
_SIZE = (360.0, 220.0)
_EPSILON_TICKS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_DESCRIBED = "For data as the schema expects, or as tables usually are."
_SIMULATED = (
    "By simulation of the fit, for records that fill their bounds as the schema expects, or as tables usually do. No "
    "data were read."
)


def write_error(error: float) -> str:
    """An error as short text."""
    return f"± {format_number(error)}" if math.isfinite(error) else "hidden by noise"


@dataclass(frozen=True, eq=False)
class ErrorTable:
    """Predicted standard deviations of the privacy noise in a table of answers, of shape (rows, columns)."""

    title: str
    std: Floats  # 0 where an answer is public, NaN where noise would hide it
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    comparable: bool  # whether all entries have the same unit, so that their median means something
    note: str = ""  # what the prediction assumes

    @cached_property
    def noisy(self) -> Floats:
        """The errors of all entries that are not public; infinite where noise would hide them."""
        found = self.std[self.std != 0]
        return np.where(np.isfinite(found), found, np.inf)

    @cached_property
    def entries(self) -> dict[str, tuple[str, float]]:
        """Names and errors of what can be followed: the largest error, the median, and ``"row,column"``."""
        found, symmetric = {}, self.rows == self.columns
        if self.comparable:
            found[LARGEST] = "the least precise entry", float(self.noisy.max(initial=0.0))
            found[TYPICAL] = "a typical entry (median)", float(np.median(self.noisy)) if self.noisy.size else 0.0
        places = zip(np.argwhere(self.std != 0).tolist(), self.noisy.tolist(), strict=True)
        single = [(i, j, error) for (i, j), error in places if not symmetric or i <= j]
        for i, j, error in single[:_MOST_ENTRIES] or [(0, 0, 0.0)]:
            pair = f"{self.rows[i]} (variance)" if symmetric and i == j else f"{self.rows[i]} and {self.columns[j]}"
            found[f"{i},{j}"] = self.rows[i] if len(self.columns) == 1 else pair, error
        return found

    def read(self, entry: str) -> float:
        """The error of an entry; infinite where noise would hide it, or if there is none."""
        return self.entries.get(entry, ("", math.inf))[1]

    def choose(self, entry: str = "") -> str:
        """The entry, if the table has it; otherwise the first one that noise does not hide."""
        if entry in self.entries:
            return entry
        return next((one for one in self.entries if self.read(one) < math.inf), next(iter(self.entries)))

    @property
    def hint(self) -> str:
        """The note, and what empty places mean."""
        seen = np.isfinite(self.noisy)
        if seen.all():
            return self.note
        return ("Empty: hidden by noise. " if seen.any() else "Noise hides all of these numbers. ") + self.note

    @cached_property
    def equal(self) -> str | None:
        """The error, if there are several and all are the same; None otherwise."""
        if len(self.columns) > 1 or self.noisy.size < 2 or not self.noisy.max() < (1 + 1e-9) * self.noisy.min():
            return None
        return write_error(float(self.noisy.max()))

    @cached_property
    def html(self) -> Markup:
        """The errors as a table, in colours where they can be compared, as reports have it."""
        errors = np.array([[float(f"{error:.3g}") for error in row] for row in self.std])
        errors = np.where(np.isfinite(errors), errors, np.nan)
        numbers = Numbers(errors, None, self.rows, self.columns, reasons="hidden by noise")
        if self.comparable and len(self.columns) > 1:
            blocks = show_matrix(numbers, self.title, Look("predicted error", counts=True))
        else:  # entries have different units
            blocks = [show_numbers(numbers, self.title)]
        return Markup(render_blocks(blocks))  # noqa: S704 (its template escapes all names)


Simulated = dict[str, ErrorTable]  # by the kind of data: friendly, typical, hostile


def predict_tables(plan: Plan, data: str = "typical", *, slowly: bool = False) -> Iterator[ErrorTable]:
    """The tables that describe a plain release best, and that take little time, for a kind of data.

    With `slowly`, those of everything begin with the correlations, of which a part is simulated.
    """
    request, query = plan.request, plan.query
    if isinstance(query, TableMoments):
        note = "" if request.question == "table" else _DESCRIBED
        units = {rule.name: f"{rule.name} ({rule.unit})" for rule in request.schema.rules.dates}
        with np.errstate(all="ignore"):
            for title, found, comparable in _predict_answers(plan, query, data, slowly):
                known = units if title.startswith("Means") else {}  # other errors are in other units
                rows, columns = (tuple(known.get(name, name) for name in part) for part in (found.rows, found.columns))
                yield ErrorTable(title, found.std, rows, columns, comparable, note)
        return
    (answer,), follows = predict(plan)["typical"], request.kind != "matrix"
    found, title = answer.estimate, answer.title if follows else f"Entries of the {query.title}"
    scale_free = request.kind == "correlation" or request.question in ("adjacency", "laplacian", "counts")
    yield ErrorTable(title, found.std, found.rows, found.columns, scale_free, _DESCRIBED if follows else "")


def _predict_answers(plan: Plan, query: TableMoments, data: str, slowly: bool) -> Iterator[tuple[str, Estimate, bool]]:
    """Titles and answers about a table, and whether their entries have the same unit."""
    numbers, question = len(query.used.numbers), plan.request.question
    forecast = forecast_table(plan, data)
    if question in ("table", "regression"):
        first = make_answers(forecast, question, plan.request.target, plan.request.on, groups=False)[0]
        found = first.estimate if question == "table" else first.estimate.column("coefficient")
        yield first.title, found, question == "table"
        return
    correlated = question in ("correlation", "components") or (slowly and question == "everything")
    if question == "covariance" and numbers <= MOST_CORRELATED:
        yield "Covariance", forecast.covariance(), False
    elif correlated and 1 < numbers <= MOST_CORRELATED:
        yield "Correlation", forecast.correlation(), True
    if query.by and numbers and question in ("means", "everything"):
        found = answer_groups(forecast).estimate
        value, std = (np.roll(one, -1, axis=1) for one in (found.value, found.std))  # the share of each group last
        found = Estimate(value, std, found.rows, (*found.columns[1:], found.columns[0]))
        yield f"Means by {' and '.join(query.by)}", found, False
    if numbers:
        yield "Means", forecast.means().column("mean"), False
    if question in ("means", "everything"):
        for column in query.used.categories:
            yield f"Shares of the levels of {column.name}", forecast.shares(column.name), True


def plan_release(spec: ReleaseSpec, schema: Schema) -> Plan:
    """The plan of a request, or a `ParameterError` that says why no release can be made for it."""
    made = plan(replace(spec, schema=schema))
    if made.entries > MOST_STORED:
        raise ParameterError(
            f"«question» must have at most {MOST_STORED:,} entries, got {made.entries:,} instead. Larger ones are "
            "released with the command line: matrixdp release"
        )
    return made


@dataclass(frozen=True, eq=False)
class Forecast:
    """What follows from a request without data and without simulation."""

    spec: ReleaseSpec
    plan: Plan  # with the cost and the method
    design: Design  # of a plain release of the same numbers
    tables: tuple[ErrorTable, ...]  # of that release; the curve follows the first

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features between which an ellipse can be drawn; empty where there are none."""
        flat = isinstance(self.design.query, TableMoments) or self.design.flat
        return () if flat else tuple(feature_names(self.design.query))


class Forecaster:
    """Forecasts for one schema; remembers plans, curves and simulations. `plan` is `plan_release` for this schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.plan: Callable[[ReleaseSpec], Plan] = lru_cache(maxsize=64)(lambda spec: plan_release(spec, schema))
        self._curve = lru_cache(maxsize=32)(self._make_curve)
        self._simulated: dict[ReleaseSpec, Simulated] = {}

    def predict(self, spec: ReleaseSpec, *, slowly: bool = False) -> Forecast:
        """The forecast of a request; a `ParameterError` says why no release can be made for it."""
        planned, plain = self.plan(spec), self.plan(self._find_plain(spec))
        assert plain.design is not None  # of a plain release
        with refuse_extremes():
            return Forecast(spec, planned, plain.design, tuple(predict_tables(plain, slowly=slowly)))

    def read(self, forecast: Forecast, entry: str) -> float:
        """The error of an entry of the first table, and at least that of the curve at larger epsilons.

        Where noise is larger than the numbers themselves, a prediction for one epsilon alone can be too small.
        """
        larger = [error for epsilon, error in self.follow(forecast.spec, entry) if epsilon >= forecast.spec.epsilon]
        return max([forecast.tables[0].read(entry), *larger])

    def follow(self, spec: ReleaseSpec, entry: str) -> tuple[tuple[float, float], ...]:
        """Pairs of epsilon and the error of an entry of the first table, for a plain release at other epsilons."""
        return self._curve(replace(self._find_plain(spec), epsilon=1.0, allowance=None), entry)  # not of the slider

    def find_epsilon(self, spec: ReleaseSpec, entry: str, wanted: float) -> tuple[float, float] | None:
        """The least epsilon of the slider from which on an entry has at most the wanted error, and its error there.

        None if there is none. Of an adaptive fit, it is the error for typical data. It falls with epsilon but for the
        noise of its simulation, so the search may stop a step or two early.
        """
        fits = self.plan(spec).adaptive

        @cache
        def read(epsilon: float) -> float:
            other = replace(spec, epsilon=epsilon)
            if fits and self.plan(other).adaptive:  # otherwise a plain release is better at this epsilon
                return self.simulate(other)["typical"].read(entry)
            return self._read_plain(other, entry)

        def suffices(epsilon: float) -> bool:
            return read(epsilon) <= wanted

        steps = list(takewhile(suffices, EPSILONS[::-_STRIDE]))  # from above, where predictions are best
        if not steps:
            return None
        high = EPSILONS.index(steps[-1])
        found = EPSILONS[bisect_left(EPSILONS, True, max(0, high - _STRIDE), high, key=suffices)]
        return found, read(found)

    def simulate(self, spec: ReleaseSpec) -> Simulated:
        """The errors of an adaptive release, with rows and columns of a plain one; kept, and made one at a time."""
        key = replace(spec, allowance=None)
        if (known := self._simulated.get(key)) is not None:
            return known
        if not _PLACES.acquire(blocking=False):  # threads that wait could not serve pages
            raise UnavailableError("too many simulations are waiting. Try again in a minute.")
        try:
            with _ONE_AT_A_TIME:
                if key not in self._simulated:
                    self._simulated[key] = _simulate(self.plan(key))
                    if len(self._simulated) > _REMEMBERED:
                        del self._simulated[next(iter(self._simulated))]
                return self._simulated[key]
        finally:
            _PLACES.release()

    def recall(self, spec: ReleaseSpec) -> Simulated | None:
        """A simulation that was made before; None if it was not."""
        return self._simulated.get(replace(spec, allowance=None))

    def _find_plain(self, spec: ReleaseSpec) -> ReleaseSpec:
        """The plain release with the numbers that an adaptive fit is judged by: components follow from correlations."""
        planned = self.plan(spec)
        if not planned.adaptive:
            return spec
        if spec.question in ("means", "covariance", "correlation"):
            return replace(spec, method="plain")
        columns = spec.columns if spec.on is None else planned.request.choose_columns().names
        return replace(spec, method="plain", question="correlation", columns=columns, target=None, on=None)

    def _make_curve(self, plain: ReleaseSpec, entry: str) -> tuple[tuple[float, float], ...]:
        errors = [self._read_plain(replace(plain, epsilon=epsilon), entry) for epsilon in _CURVE]
        return tuple(zip(_CURVE, map(float, let_fall(errors)), strict=True))

    def _read_plain(self, spec: ReleaseSpec, entry: str) -> float:
        """The error of an entry of a plain release; infinite if none can be made."""
        try:
            plain = self.plan(self._find_plain(spec))
            with refuse_extremes():
                return next(predict_tables(plain)).read(entry)
        except ParameterError:  # an epsilon for which no design can be made
            return float("inf")


def _simulate(planned: Plan) -> Simulated:
    bounds, shown = planned.bounds, judged_by(planned.request.question)
    if bounds.size > _MOST_FEATURES:
        raise ParameterError(
            f"«columns» must be at most {_MOST_FEATURES} for a simulation on this page, got {bounds.size} instead. The "
            "command line below simulates more."
        )
    names = planned.request.choose_numbers().names
    order = [(bounds.names or ()).index(name) for name in names]  # the target of a regression is last in `bounds`
    tables = {}
    for kind, std in forecast_fit(planned).items():
        std, columns = (std[:, order].T, ("mean",)) if shown == "means" else (std[np.ix_(order, order)], names)
        tables[kind] = ErrorTable(
            f"{shown}: {DATA_KINDS[kind]}", std, names, columns, shown == "correlation", _SIMULATED
        )
    return tables


@lru_cache(maxsize=16)
def open_forecaster(text: str, name: str) -> Forecaster:
    """The forecaster for the text of a schema; errors name it `name`."""
    return Forecaster(parse_schema(text, name))


class Left(NamedTuple):
    """Epsilon that is left before and after a release; None and the reason if the ledger would refuse it."""

    before: float
    after: float | None
    refusal: str


def preview_ledger(ledger: Ledger, dataset: str, planned: Plan, allowance: str | None) -> Left:
    """What a release would leave of a data set's budget, or of an allowance's."""
    before = ledger.remaining(dataset, allowance=allowance).epsilon
    try:
        after = ledger.whatif(dataset, planned, allowance=allowance).epsilon
    except LedgerError as error:
        return Left(before, None, word_error(error))
    return Left(before, after, "")


def draw_curve(
    plain: Sequence[tuple[float, float]], epsilon: float, here: float | None, wanted: float | None, *, adaptive: bool
) -> Chart:
    """Error against epsilon, both on logarithmic scales, for a plain release; dashed if it is in place of a fit.

    A rule marks `epsilon`, and a point the error `here`, if it is known; another rule marks the error that is wanted.
    """
    line = np.array([pair for pair in plain if 0 < pair[1] < math.inf]).reshape(-1, 2).T
    here = here if here is not None and 0 < here < math.inf else None
    seen = [*line[1], *([here] if here else [])]
    x = Scale(_EPSILON_TICKS[0], _EPSILON_TICKS[-1], log=True)
    y = Scale(min(seen) / 1.2, max(seen) * 1.2, log=True) if seen else Scale(0.1, 1.0, log=True)
    curves = [Curve(line, dashed=adaptive)] if line.size else []
    if x.low <= epsilon <= x.high:
        curves.append(Curve(np.array([[epsilon, epsilon], [y.low, y.high]]), kind="p-other", dashed=True))
        if here:
            words = f"epsilon {format_number(epsilon)}: error {format_number(here)}"
            dot = np.array([[epsilon], [here]])
            curves.append(Curve(dot, kind="p-other", halves=np.zeros(1), scattered=True, words=words))
    if wanted is not None and y.low < wanted < y.high:
        curves.append(Curve(np.array([[x.low, x.high], [wanted, wanted]]), kind="p-other", dashed=True))
    drawing = draw_curves(curves, x, y, ("epsilon", "error"), size=_SIZE, ticks=(_EPSILON_TICKS, y.ticks()))
    caption = "Dashed: a plain release of the same numbers. " if adaptive else "The vertical line is your epsilon."
    caption += "Point: the adaptive fit, typical data." if adaptive and here else ""
    summary = "Predicted error against epsilon, both on logarithmic scales; errors fall as epsilon grows"
    return Chart(drawing, summary, caption)


def draw_ellipse(design: Design, names: Sequence[str], pair: tuple[int, int]) -> Chart | None:
    """The noise of two features, of which the curve holds 95 %; None if there are no two `names`. Axes are alike."""
    if len(names) < 2:
        return None
    points = outline_ellipse(pair_covariance(design, *pair))
    reach = round_up(float(np.abs(points).max()))  # so that a smaller ellipse looks smaller
    scale, subject = Scale(-reach, reach), describe_numbers(design)
    first, second = (f"noise in {subject}{make_visible(shorten(names[i], _LABEL))}" for i in pair)
    drawing = draw_curves([Curve(points, fill=0.15)], scale, scale, (first, second), size=_SIZE)
    return Chart(drawing, "An ellipse that contains the noise of two numbers with 95 percent probability")
