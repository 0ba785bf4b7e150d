"""Errors of adaptive fits by simulation: a range over the shapes that data may have. Reads no data.

A simulation takes some tenths of a second, so pages ask for it when the controls rest. It depends on public numbers
alone and is repeatable, so results are kept. One simulation runs at a time: others wait, and leave a core for pages.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import lru_cache

from matrixdp.cli.actions.adaptive_design import AdaptiveDesign
from matrixdp.cli.actions.describe_data import describe_data
from matrixdp.cli.actions.method import find_bounds
from matrixdp.cli.actions.person_options import find_person
from matrixdp.cli.actions.table_query import choose_numbers
from matrixdp.errors import ParameterError
from matrixdp.studio.error_tables import ErrorTable
from matrixdp.studio.forecasts import EPSILONS, Forecaster, Needed, search_epsilon
from matrixdp.studio.refusals import UnavailableError
from matrixdp.studio.spec import ReleaseSpec

KINDS = {
    "friendly": "Gaussian numbers",
    "typical": "the mean over six shapes of data",
    "hostile": "the shape with the largest error",
}
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
        schema, options = self._forecaster.schema, self._forecaster.find_options(spec)
        plan = self._forecaster.plan(spec)
        if plan.choice is None or plan.records is None or plan.choice.method != "adaptive":
            raise ParameterError("query must be one that is answered by an adaptive fit; others need no simulation.")
        bounds = find_bounds(options, schema)
        if bounds.size > MOST_FEATURES:
            raise ParameterError(
                f"columns must be at most {MOST_FEATURES} for a simulation on this page, got {bounds.size} instead. "
                "The command line below simulates more."
            )
        expected, person = describe_data(schema, bounds), find_person(options, schema)
        fit = AdaptiveDesign(options, bounds, plan.records, plan.choice, expected, person)
        found = fit.predict()
        names = choose_numbers(options, schema).names
        order = [(bounds.names or ()).index(name) for name in names]  # the target of a regression is last in `bounds`
        tables = []
        for kind, look in KINDS.items():
            std = fit.read(found, kind)[:, order]
            std = std.T if fit.shown == "means" else std[order]
            columns = ("mean",) if fit.shown == "means" else names
            tables.append(ErrorTable(f"{fit.shown}: {look}", std, names, columns, fit.shown == "correlation", _NOTE))
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
