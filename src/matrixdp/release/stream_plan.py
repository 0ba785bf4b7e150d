"""`make_stream`: the plan of a stream of releases that is charged once, made without data."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from matrixdp.design import Design, make_design
from matrixdp.design.builder import scale_design
from matrixdp.display import format_number, format_table
from matrixdp.errors import ParameterError
from matrixdp.gdp import gdp_epsilon
from matrixdp.ledger import Gaussian
from matrixdp.noise import Stream
from matrixdp.noise.table_noise import TableNoise
from matrixdp.privacy import Neighbours, Privacy, describe_guarantee
from matrixdp.queries import ContingencyTable, MatrixQuery, Moments, SecondMoment, TableMoments
from matrixdp.records.periods import PER_YEAR, parse_delay
from matrixdp.release.options import MOST_STEPS, OPTION, STREAM_OPTIONS
from matrixdp.release.request import check_option
from matrixdp.sensitivity import stream_change
from matrixdp.sensitivity.stream_change import WEIGHT_BITS, Integers, stream_coefficients, stream_norm
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats

if TYPE_CHECKING:
    from matrixdp.release.stream import MatrixStream

GRID_BITS = 28  # of the answer of a step, in its noise; the noise itself has BITS more
_BETAS = np.round(np.linspace(0.0, 0.5, 51), 2)
_QUERIES = (Moments, SecondMoment, TableMoments, ContingencyTable)
_COMPARED = (1, 2, 4, 7, 13, 30, 52, 365)


class WindowNoise(NamedTuple):
    """Noise of the sum of a window beside other ways, in units of one release with the whole budget."""

    window: str
    stream: float
    periods_apart: float
    total_anew: float  # the total published in each period
    tree: float | None  # a binary tree; None for people in several steps


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class StreamPlan:
    """A stream of releases, one for each period, that is charged once. Made by `make_stream`; looks at no data.

    Attributes
    ----------
    design : Design
        The noise of one step, for its query with add-remove neighbours: the number of records of a step is private.
    neighbours : Neighbours
        Those of the guarantee.
    every, when, delay, last, steps, apart, aim, missing
        As given to `make_stream`.
    beta : float
        The exponent of the coefficients over time.

    Privacy
    -------
    All steps together are `mu`-GDP, also if records and the steps that they are in depend on what was published before.
    """

    design: Design
    neighbours: Neighbours
    every: str
    when: str | None
    delay: str | None
    last: int | None
    steps: int
    apart: int
    aim: str
    beta: float
    missing: str = "error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))

    query = property(attrgetter("design.query"), doc="What a step answers.")
    privacy = property(attrgetter("design.privacy"), doc="The guarantee.")
    unit = property(attrgetter("query.protected_unit"), doc="What is protected: a record or a person.")

    @property
    def event(self) -> Gaussian:
        """The charge, which pays for all steps."""
        return Gaussian(self.mu)

    @property
    def most(self) -> int:
        """The largest number of steps."""
        return MOST_STEPS if self.last is None else self.last

    @property
    def horizon(self) -> int:
        """The number of steps that noise is compared over: all of them or, without an end, those of a year."""
        return self.last or PER_YEAR[self.every]

    def name_window(self, window: int) -> str:
        """A number of periods in words, as in '4 weeks'."""
        return f"{window} {self.every}{'s' * (window > 1)}" + " (total)" * (window == self.horizon)

    @cached_property
    def coefficients(self) -> Integers:
        """Of the steps so far in what a step publishes, the present one first, in units of 2^-20; of shape (most,)."""
        return stream_coefficients(self.beta, self.most)

    @cached_property
    def weights(self) -> Integers | None:
        """Weights of the steps in units of 2^-16, of shape (last,); None if all have the same."""
        return stream_change.step_weights(self.coefficients) if self.last is not None and self.steps == 1 else None

    @cached_property
    def kappa(self) -> float:
        """How much further one record or person moves the whole stream than one release with the noise of a step."""
        if self.weights is not None:
            return stream_change.weighted_norm(self.coefficients, self.weights)
        return stream_norm(self.coefficients, steps=self.steps, apart=self.apart)

    def inverse_coefficients(self, steps: int) -> Floats:
        """The first coefficients of the inverse of `coefficients`, of shape (steps,)."""
        known: Floats = self.__dict__.get("_inverse", np.zeros(0))
        if len(known) < steps:
            self.__dict__["_inverse"] = known = stream_change.invert_coefficients(self.coefficients[:steps])
        return known[:steps]

    @cached_property
    def factor(self) -> float:
        """How much further a changed record moves a step's answer than one that is added, rounded up.

        A replaced record may move to another step, so that the number of records of a step changes as well.
        """
        if self.neighbours is Neighbours.ADD_REMOVE:
            return 1.0
        if self.steps > 1:
            return 2.0
        design, query, structure = self.design, self.query, self.design.structure
        if isinstance(query, ContingencyTable):
            return math.sqrt(2) * (1 + 1e-15)
        replaced: float
        alone = design.ideal_distance().value
        change = replace(query, neighbours=self.neighbours).sensitivity
        if structure is None:
            replaced = change.distance(design.rowcov, design.colcov).value
        else:
            if isinstance(structure, TableNoise):
                structure = replace(structure, counted=getattr(change, "counted", True))
            replaced = change.structured_distance(design.colcov, structure).value
        return max(replaced / alone, math.sqrt(2)) * (1 + 1e-14)

    @cached_property
    def mu(self) -> float:
        """What is charged: the largest distance of neighbours, in standard deviations, with all rounding."""
        ideal = self.design.ideal_distance().value
        rounding = self.design.distance - ideal + math.sqrt(self.dimension) * 2.0**-GRID_BITS
        changed = 1 if self.neighbours is Neighbours.ADD_REMOVE else 2  # answers of a step in which a record changed
        longest = stream_norm(self.coefficients, steps=self.steps, apart=self.apart)
        return (self.kappa * self.factor * ideal + max(self.kappa, longest) * changed * rounding) * (1 + 1e-12)

    @cached_property
    def dimension(self) -> int:
        """How many numbers a step publishes."""
        design = self.design
        if design.structure is not None:
            return int(design.structure.largest(design.noise, self.query.magnitude).size)
        height, width = design.query.shape
        return height * (height + 1) // 2 if design.query.symmetric else height * width

    def check(self) -> None:
        """Raise a `ParameterError` unless the plan is one that `make_stream` makes."""
        query = self.query
        _check_options(query, vars(self))
        self.design.check_once()
        private = query.neighbours is Neighbours.ADD_REMOVE and not getattr(query, "public_total", False)
        fits = private and not self.design.flat and self.design.grid.bits >= GRID_BITS
        if self.steps is None or not fits or not 0 <= self.beta <= 0.5 or self.mu > self.privacy.mu:
            raise ParameterError("the guarantee of the stream does not follow from its parts; it was altered.")

    def answer_weights(self, chosen: Floats, start: int = 0) -> Floats:
        """Weights of what a block of steps published in a weighted sum of their answers.

        `chosen`, of shape (steps,), has the weights of the answers; the block begins with step number `start`.
        """
        steps = len(chosen)
        scaled = chosen if self.weights is None else chosen / (self.weights[start : start + steps] / 2.0**WEIGHT_BITS)
        return np.convolve(scaled[::-1], self.inverse_coefficients(steps))[:steps][::-1]

    def noise(self, window: int, after: int | None = None) -> float:
        """Noise of the sum of the last `window` periods after `after` steps, in units of the noise of a step.

        By default after the last step, or after as many as the window has.
        """
        after = max(window, self.last or 0) if after is None else after
        chosen = np.zeros(after)
        chosen[after - window :] = 1.0
        return float(np.linalg.norm(self.answer_weights(chosen)))

    def relative_noise(self, window: int, after: int | None = None) -> float:
        """The same in units of the noise of one release with the whole budget."""
        return self.noise(window, after) * self.kappa * self.factor

    def largest_noise(self, window: int) -> float:
        """The largest `relative_noise` of a window after any step up to the last, or up to those of a year."""
        ends = np.unique(np.linspace(window, self.horizon, 24 if self.horizon <= 1000 else 4).astype(int))
        return max(self.relative_noise(window, int(end)) for end in ends)

    def scaled_design(self, window: int, noise: float) -> Design:
        """The design of an answer over `window` periods, whose noise is `noise` times that of a step."""
        query: Any = self.query
        scale = noise if isinstance(query, ContingencyTable) else noise / window
        return scale_design(self.design, scale, query=replace(query, records=query.records * window), share=1.0)

    def compare(self) -> list[WindowNoise]:
        """Noise of windows beside other ways."""
        horizon = self.horizon
        alone, people = self.factor, math.sqrt(self.steps) * self.factor
        levels = int(math.log2(horizon)) + 1
        found = []
        for window in [*(w for w in _COMPARED if w < horizon), horizon]:
            anew = self.steps * alone * math.sqrt(horizon) * (1.0 if window == horizon else math.sqrt(2))
            tree = None if self.steps > 1 else alone * math.sqrt(levels * _tree_nodes(horizon - window, horizon))
            own = self.largest_noise(window)
            found.append(WindowNoise(self.name_window(window), own, people * math.sqrt(window), anew, tree))
        return found

    @property
    def promises(self) -> list[str]:
        """What the guarantee rests on, and how records are counted, in sentences."""
        if self.when is None:
            lines = ["Each file that is published must have new records only: a record in two steps is protected less."]
        else:
            late = "when it ends" if self.delay is None else f"{self.delay} after its end"
            lines = [
                f"A step takes the rows whose {self.when!r} is in its period, and can be published {late}. Rows that "
                "come after it was published are left out; rows without a date are in no step."
            ]
        if self.unit.kind == "person" and self.steps == 1:
            lines.append("A person counts in their first step only.")
        elif self.unit.kind == "person":
            gap = f", at least {self.apart} steps apart" if self.apart > 1 else ""
            lines.append(f"A person counts in at most {self.steps} steps{gap}; their rows in others are left out.")
        records: int = self.query.records
        most = records if isinstance(self.query, ContingencyTable) else 2 * records
        lines.append(f"A step may have at most {most:,} {self.query.count_word}; more are an error.")
        if self.neighbours is Neighbours.REPLACE:
            lines.append(f"For add-remove neighbours the noise would be {self.factor:.3g} times smaller.")
        lines.append("Records that were counted cannot be corrected. Nothing is returned if the stream ends early.")
        return lines

    def __str__(self) -> str:
        guarantee = describe_guarantee(self.privacy.epsilon, self.privacy.delta, self.neighbours, self.unit)
        head = ("noise of the sum of", "stream", "periods apart", "total anew", "tree")
        rows = [[name, *("" if one is None else format_number(one, 3) for one in row)] for name, *row in self.compare()]
        end = f"no last step (but at most {self.most:,})" if self.last is None else f"{self.last:,} steps"
        epsilon = gdp_epsilon(mu=self.mu, delta=self.privacy.delta)
        lines = [
            f"Stream of {self.query.summary}, one step a {self.every}, {end}",
            f"{guarantee}, all steps together; charged once: mu {self.mu:.6g}, epsilon {epsilon:.4g}",
            f"aim {self.aim!r}: beta {self.beta:g}, kappa {self.kappa:.4g}\n\n{format_table(head, rows)}",
            "In units of the noise of one release with the whole budget.\n",
        ]
        return "\n".join([*lines, *self.promises])

    def __repr__(self) -> str:
        return f"<StreamPlan of {self.query.summary}, every {self.every}, {self.privacy}, beta {self.beta:g}>"

    def open(
        self,
        name: str | os.PathLike[str],
        *,
        ledger: Any = None,
        dataset: str | None = None,
        allowance: str | None = None,
        stream: Stream | None = None,
        simulation: bool = False,
    ) -> MatrixStream:
        """Charge the stream, once, and create its files ``NAME.state`` (private) and ``NAME.json`` (public).

        Parameters
        ----------
        name : str or path
            Name of the stream, perhaps with a folder. A stream that was opened before is opened again.
        ledger, dataset, allowance
            What the stream is charged to, as for `Design.release`.
        stream, simulation
            For simulations only, as for `Design.release`.
        """
        from matrixdp.release.stream import create_stream

        return create_stream(self, name, ledger, dataset, allowance, stream, simulation)


def make_stream(
    query: MatrixQuery,
    privacy: Privacy,
    *,
    every: str = "week",
    when: str | None = None,
    delay: str | None = None,
    aim: str = "both",
    last: int | None = None,
    steps: int | None = None,
    apart: int = 1,
    missing: str = "error",
) -> StreamPlan:
    """The plan of a stream: a release for each period, of which every sum of periods can be read, for one charge.

    Parameters
    ----------
    query : Moments, SecondMoment, TableMoments or ContingencyTable
        What one step answers; its `records` is a public guess of the number in a step.
    privacy : Privacy
        The guarantee of all steps together.
    every : 'hour', 'day', 'night', 'week', 'month', 'year' or 'step'
        The length of a step, by which steps are named (2031-w05); 'step' takes any names.
    when : str, optional
        The column of dates. A step takes the rows dated within its period, so that a growing file can be published
        again and again. Without it, each file must have new records only.
    delay : str, optional
        How long after its end a period waits for late records, such as '1 week'.
    aim : 'both', 'total' or 'period'
        What has the least noise: totals and periods, each relative to the best possible; totals, which needs `last`; or
        single periods.
    last : int, optional
        The number of steps. Without one the stream has no end (but for 36,500 steps).
    steps : int, optional
        For a query with a `person`: in how many steps a person counts at most; with 1, in their first step only.
    apart : int
        How many steps apart those of a person are at least.
    missing : 'error' or 'midpoint'
        As for `Design.release`.

    Privacy
    -------
    Looks at no data. `StreamPlan.mu` holds for the query's neighbours and unit; the proofs are in
    ``docs/streams-privacy.md``.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> columns = mdp.Columns([mdp.Number("age", 0, 120), mdp.Category("ward", ["a", "b"])])
    >>> query = mdp.TableMoments(columns, records=600, neighbours="add-remove")
    >>> plan = make_stream(query, mdp.Privacy(1, 1e-6), last=52, aim="total")
    >>> plan.beta > 0.4, plan.relative_noise(52) < 2.3 < 7.2  # independent weeks have sqrt(52)
    (True, True)
    """
    times = {"every": every, "when": when, "delay": delay, "aim": aim, "last": last}
    _check_options(query, {**times, "steps": steps, "apart": apart, "missing": missing})
    if query.person is None and (steps is not None or apart != 1):
        raise ParameterError("«steps» and «apart» must be left out for a query without «person»: people's steps count.")
    if query.person is not None and steps is None:
        raise ParameterError(
            "«steps» must be given for a query with «person»: in how many steps a person counts at most; with 1, in "
            "their first step only."
        )
    number, neighbours = steps or 1, query.neighbours
    private: dict[str, Any] = {"public_total": False} if isinstance(query, ContingencyTable) else {}
    query = replace(query, neighbours=Neighbours.ADD_REMOVE, **private)  # type: ignore[type-var]
    beta = find_beta(aim, last or PER_YEAR[every], last, steps=number, apart=apart)
    design = make_design(query, privacy)
    plan = StreamPlan(design, neighbours, every, when, delay, last, number, apart, aim, beta, missing)
    share = (1 / (plan.kappa * plan.factor)) ** 2
    for _ in range(40):
        plan = replace(plan, design=make_design(query, privacy, share=min(share, 1.0)))
        if plan.design.grid.bits < GRID_BITS:
            raise ParameterError("the answer's public bound must be at most 2^33 standard deviations of its noise.")
        if plan.mu <= privacy.mu:
            return plan
        share *= (privacy.mu / plan.mu) ** 2 * (1 - 1e-13)
    raise ParameterError("the bounds are too wide for this guarantee: rounding alone would use the budget.")


def find_beta(aim: str, horizon: int, last: int | None, *, steps: int = 1, apart: int = 1) -> float:
    """The best of 51 exponents for totals up to the horizon, for single periods, or for both."""
    if aim == "period":
        return 0.0
    periods, totals = np.empty((2, len(_BETAS)))
    for i, beta in enumerate(_BETAS):
        if last is None and beta == 0.5:  # its columns grow without end
            periods[i] = totals[i] = np.inf
            continue
        coefficients = stream_coefficients(beta, MOST_STEPS if last is None else last)
        kappa = stream_norm(coefficients, steps=steps, apart=apart)
        inverse = stream_change.power_series(-beta, horizon)  # but for the rounding of the coefficients
        periods[i] = kappa * np.linalg.norm(inverse)
        totals[i] = kappa * math.sqrt(float(np.cumsum(np.cumsum(inverse) ** 2).mean()))
    if aim == "total":
        return float(_BETAS[totals.argmin()])
    return float(_BETAS[np.maximum(periods / periods.min(), totals / totals.min()).argmin()])


def _check_options(query: Any, given: Mapping[str, Any]) -> None:
    if not isinstance(query, _QUERIES):
        raise ParameterError(
            f"query must be one of {', '.join(one.__name__ for one in _QUERIES)} to be streamed: sums over records in "
            f"the directions of their columns. Got {type(query).__name__} instead."
        )
    for option in (*STREAM_OPTIONS, OPTION["missing"]):
        check_option(option, given.get(option.name))
    last, when, delay = given["last"], given["when"], given["delay"]
    if given["steps"] is not None and last is not None and given["steps"] > last:
        raise ParameterError(f"«steps» must be at most {last}, the number of steps, got {given['steps']} instead.")
    if last is None and given["aim"] == "total":
        raise ParameterError(
            "«aim» total needs «last», the number of steps: totals for ever grow. Give «last», or «aim» both."
        )
    if when is not None and (not isinstance(when, str) or not when or given["every"] == "step"):
        raise ParameterError(
            "«when» must be the name of a column of dates, for steps that are hours, days, weeks or months."
        )
    if delay is not None:
        parse_delay(delay)
        if when is None:
            raise ParameterError("«delay» must be left out without «when»: which records are late is not known.")


def _tree_nodes(first: int, last: int) -> int:
    """Number of nodes of a binary tree over steps that a window from `first` to before `last` is the sum of."""
    nodes = 0
    while first < last:
        size = first & -first if first else 1 << last.bit_length()
        while size > last - first:
            size >>= 1
        first, nodes = first + size, nodes + 1
    return nodes
