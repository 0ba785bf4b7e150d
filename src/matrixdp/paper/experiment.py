"""What the experiments share: records, a score, a budget, and the rows of their tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from inspect import getfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from matrixdp.baselines import Mechanism, find_mechanism, registered_mechanisms
from matrixdp.design import make_design, optimal
from matrixdp.noise import Stream
from matrixdp.paper.mechanisms import (
    CALIBRATIONS,
    TAUS,
    Guarantee,
    Simulation,
    Spent,
    design_simulation,
    mechanism_simulation,
    stated_guarantee,
)
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.types import Floats

Setting = Mapping[str, Any]
NO_SETTING: tuple[Setting, ...] = ({},)


class Trial(NamedTuple):
    """One trial: an error for each way of evaluating the release, and what the release cost."""

    values: list[float]
    spent: Spent | None


Runner = Callable[[int, Stream], Trial]


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes
    ----------
    key : str
        Unique in its part.
    label : str
    group : str
        'reference', 'paper', 'calibration', 'beyond', 'registered', 'adaptive' or 'weights'.
    column : Guarantee or None
        What the table states for it; None where nothing is private.
    build : callable
        From a setting to a function of (trial, stream).
    settings : tuple of mappings
        Free parameters of the mechanism, swept; JSON values only.
    variants : tuple of str
        Names of a trial's errors: free parameters of how a release is evaluated, swept as well.
    source : str
        A hash of the code of a mechanism that is not part of matrixdp; stored trials are reused only if it is the same.
    """

    key: str
    label: str
    group: str
    column: Guarantee | None
    build: Callable[[Setting], Runner]
    settings: tuple[Setting, ...] = NO_SETTING
    variants: tuple[str, ...] = ("",)
    source: str = ""


class Summary(NamedTuple):
    """Mean and half the width of its 95% confidence interval."""

    mean: float
    half: float


def summarise(values: np.ndarray[Any, Any]) -> Summary:
    """Mean of the trials and half the width of Student's 95% interval; NaN for one trial.

    Examples
    --------
    >>> summary = summarise(np.array([1.0, 2.0, 3.0]))
    >>> summary.mean, round(summary.half, 3)
    (2.0, 2.484)
    """
    n = values.size
    if n < 2:
        return Summary(float(values.mean()), math.nan)
    quantile = float(stdtrit(n - 1, 0.975))
    return Summary(float(values.mean()), quantile * float(values.std(ddof=1)) / math.sqrt(n))


@dataclass(frozen=True, eq=False)
class Experiment:
    """Public records, the query that mechanisms answer on them, and the error of what they release.

    Attributes
    ----------
    query : MatrixQuery
    count : int
        Number of records; delta is one over it, as in the paper.
    records : callable
        From a trial to the records that a mechanism is given.
    score : callable
        From a released matrix and a trial to its errors, one for each of `variants`.
    variants : tuple of str
        Names of the ways to evaluate a release.
    draws : tuple of int
        Dimensions that the Johnson-Lindenstrauss transform projects on.
    suffix : str
        Added to the label of every row.
    """

    query: MatrixQuery
    count: int
    records: Callable[[int], Floats]
    score: Callable[[Floats, int], list[float]]
    variants: tuple[str, ...] = ("",)
    draws: tuple[int, ...] = ()
    suffix: str = ""

    def budget(self, epsilon: float = 1.0) -> Privacy:
        """The paper's budget: delta is one over the number of records."""
        return Privacy(epsilon, 1 / self.count)

    def runner(self, simulation: Simulation) -> Runner:
        """Trials of a mechanism."""

        def run(trial: int, stream: Stream) -> Trial:
            released = simulation(self.records(trial), stream)
            return Trial(self.score(released.matrix, trial), released.spent)

        return run

    def reference(
        self,
        key: str,
        label: str,
        errors: Callable[[int, Stream], list[float]],
        variants: tuple[str, ...] = ("",),
    ) -> Row:
        """A row without privacy, from the errors of a trial."""

        def run(trial: int, stream: Stream) -> Trial:
            return Trial(errors(trial, stream), None)

        return Row(key, label + self.suffix, "reference", None, lambda _setting: run, variants=variants)

    def row(
        self,
        key: str,
        label: str,
        group: str,
        build: Callable[[Setting], Simulation],
        settings: tuple[Setting, ...] = NO_SETTING,
        *,
        column: Guarantee | None = None,
        source: str = "",
    ) -> Row:
        """A row of a mechanism, built for each of its settings; its column is the budget unless stated otherwise."""
        budget = self.budget()
        return Row(
            key,
            label + self.suffix,
            group,
            Guarantee(budget.epsilon, budget.delta) if column is None else column,
            lambda setting: self.runner(build(setting)),
            settings,
            self.variants,
            source,
        )

    def mechanism_row(self, key: str, label: str, group: str, name: str, **options: Any) -> Row:
        """A row of a registered mechanism."""
        mechanism = find_mechanism(name)
        simulation = mechanism_simulation(mechanism, self.query, self.budget(), **options)
        column = stated_guarantee(mechanism, self.budget())
        return self.row(key, label, group, lambda _setting: simulation, column=column)

    def paper_rows(self, jl: Experiment) -> list[Row]:
        """The mechanisms that the paper compares with on records; `jl` is the experiment that JL is run on."""
        return [
            self.mechanism_row("gaussian", "Gaussian (classical)", "paper", "classical Gaussian"),
            jl.jl_row("published"),
            self.mechanism_row("laplace", "Laplace", "paper", "Laplace"),
            self.mechanism_row("exponential", "Exponential (textbook)", "paper", "exponential", halved=True),
        ]

    def exact_rows(self) -> list[Row]:
        """Isotropic noise with the exact calibration, as an optimal design and as the Gaussian mechanism."""
        best = design_simulation(make_design(self.query, self.budget(), allocation=optimal()))
        return [
            self.row("identity/optimal", "Identity query, optimal allocation", "beyond", lambda _setting: best),
            self.mechanism_row("gaussian/exact", "Gaussian (exact)", "beyond", "analytic Gaussian"),
        ]

    def jl_row(self, calibration: str) -> Row:
        """The Johnson-Lindenstrauss transform with the published or the exact threshold, over its dimension."""
        published = calibration == "published"
        jl = find_mechanism("Johnson-Lindenstrauss")

        def build(setting: Setting) -> Simulation:
            options = {"draws": setting["draws"], "calibration": calibration}
            return mechanism_simulation(jl, self.query, self.budget(), **options)

        return self.row(
            "jl" if published else "jl/exact",
            f"JL transform ({calibration} threshold)",
            "paper" if published else "beyond",
            build,
            tuple({"draws": draws} for draws in self.draws),
        )

    def design_row(
        self,
        key: str,
        label: str,
        vary: Callable[[Setting], Experiment],
        settings: tuple[Setting, ...],
        variants: tuple[str, ...] = ("",),
        **options: Any,
    ) -> Row:
        """A row beyond the paper: designs, made with `options`, for experiments that depend on a setting."""

        def build(setting: Setting) -> Runner:
            varied = vary(setting)
            return varied.runner(design_simulation(make_design(varied.query, varied.budget(), **options)))

        budget = self.budget()
        column = Guarantee(budget.epsilon, budget.delta)
        return Row(key, label, "beyond", column, build, settings, variants)

    def mvg_row(self, kind: str, calibration: str, build: Callable[..., Simulation]) -> Row:
        """MVG in one calibration, over the share `tau` of the important features; `build` takes both by keyword."""
        printed = calibration == "theorem2"
        return self.row(
            kind if printed else f"{kind}/{calibration}",
            f"{kind.upper()}, {CALIBRATIONS[calibration]}",
            "paper" if printed else "calibration",
            lambda setting: build(tau=setting["tau"], calibration=calibration),
            tuple({"tau": tau} for tau in TAUS),
        )


def registered_rows(experiments: Mapping[str, Experiment]) -> list[Row]:
    """A row for every mechanism that a user has registered, for each task that an experiment of a table serves."""
    return [
        experiment.row(
            f"registered/{task}/{mechanism.name}",
            f"{mechanism.name} ({task})",
            "registered",
            partial(_registered_simulation, mechanism, experiment),
            column=stated_guarantee(mechanism, experiment.budget()),
            source=_source(mechanism),
        )
        for task, experiment in experiments.items()
        for mechanism in registered_mechanisms(task)
        if not mechanism.builtin
    ]


def _registered_simulation(mechanism: Mechanism, experiment: Experiment, _setting: Setting) -> Simulation:
    return mechanism_simulation(mechanism, experiment.query, experiment.budget())


def _source(mechanism: Mechanism) -> str:
    """A hash of the module that defines a mechanism, so that stored trials of an edited one are not reused."""
    try:
        return sha256(Path(getfile(mechanism.function)).read_bytes()).hexdigest()
    except OSError:  # defined at a prompt
        return ""
