"""Parts that every experiment has: a query on public records, an error, a budget, and rows of mechanisms.

Every release says which guarantee it claims and which epsilon its noise gives; `check_guarantee` compares both with the
column of the table that its row is in.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from inspect import getfile
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from matrixdp.baselines import Mechanism, find_mechanism, registered_mechanisms, release_mechanism
from matrixdp.design import Design, binary, equimodal, isotropic, make_design, optimal
from matrixdp.errors import MatrixDPError
from matrixdp.gdp import compose_mu, gdp_epsilon
from matrixdp.ledger import Pure
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import Identity, MatrixQuery, Moments, SecondMoment
from matrixdp.types import Floats

_ROUNDING = 1e-9
CALIBRATIONS = {
    "theorem2": "Theorem 2 as printed",
    "theorem2-corrected": "Theorem 2, corrected",
    "theorem2-psd": "Theorem 2, psd form",
    "exact": "exact",
}
TAUS = (0.55, 0.65, 0.75, 0.85, 0.95)
PCA_SHARE = 0.2


class GuaranteeMismatchError(MatrixDPError, RuntimeError):
    """A mechanism's guarantee is not the one that its row of a table states."""


class Guarantee(NamedTuple):
    """What a column states: (epsilon, delta)-DP, delta 0 for a pure guarantee."""

    epsilon: float
    delta: float


class Trial(NamedTuple):
    """A noisy matrix or errors, and the guarantee that the mechanism claims, if any."""

    result: Any  # the noisy matrix, or an error for each way of evaluating it
    claimed: Guarantee | None = None
    epsilon: float = math.nan  # the smallest at the claimed delta that its noise gives


def check_guarantee(row: str, column: Guarantee | None, trial: Trial) -> None:
    """Raise unless a mechanism was calibrated for the guarantee in its column and does not exceed it."""
    claimed = trial.claimed
    if column is None and claimed is None:
        return
    stated, claims = ("no privacy" if one is None else f"({one.epsilon:g}, {one.delta:g})" for one in (column, claimed))
    words = f"the row {row!r} states {stated}; its mechanism"
    if column is None or claimed is None or not all(map(math.isclose, column, claimed)):
        raise GuaranteeMismatchError(f"{words} claims {claims}.")
    if not trial.epsilon <= column.epsilon * (1 + _ROUNDING):
        raise GuaranteeMismatchError(f"{words} costs epsilon {trial.epsilon:g}.")


Simulation = Callable[[Floats, Stream], Trial]  # from records to a noisy matrix
Method = Callable[..., Simulation]  # from a query, a privacy and settings by keyword


def state_guarantee(method: Method | Mechanism, privacy: Privacy) -> Guarantee:
    """What a table states for a mechanism at a budget; `release_mechanism` checks that it holds of a registered one."""
    pure = isinstance(method, Mechanism) and isinstance(method.cost(privacy), Pure)
    return Guarantee(privacy.epsilon, 0.0 if pure else privacy.delta)


def simulate(method: Method | Mechanism, query: MatrixQuery, privacy: Privacy, **options: Any) -> Simulation:
    """Releases of a registered mechanism, or of a function in this package."""
    if not isinstance(method, Mechanism):
        return method(query, privacy, **options)

    def release(data: Floats, stream: Stream) -> Trial:
        found = release_mechanism(method, query, privacy, data, stream=stream, simulation=True, **options)
        return Trial(found.matrix, state_guarantee(method, privacy), found.epsilon)

    return release


def design_noise(query: MatrixQuery, privacy: Privacy, **options: Any) -> Simulation:
    """Releases of the design that `make_design` makes with these options."""
    return _simulate_design(make_design(query, privacy, **options))


def _simulate_design(design: Design) -> Simulation:
    privacy = design.privacy
    spent = Guarantee(privacy.epsilon, privacy.delta), min(design.epsilon, privacy.epsilon)
    return lambda data, stream: Trial(design.release(data, stream=stream, simulation=True).matrix, *spent)


def mvg(
    query: MatrixQuery,
    privacy: Privacy,
    *,
    important: Sequence[str] | None,
    tau: float = 0.95,
    calibration: str = "exact",
) -> Simulation:
    """MVG with `tau` of the budget on the important features; i.i.d. noise where there are none.

    A second moment in the paper's calibrations is released by Algorithm 2 with the paper's own inputs: the sensitivity
    that it prints is 2 gamma/N (8/2021 in Exp. II).
    """
    allocation = isotropic() if important is None else binary(list(important), tau)
    if calibration == "exact" or not isinstance(query, SecondMoment):
        return design_noise(query, privacy, allocation=allocation, calibration=calibration, structured=False)
    options: dict[str, Any] = {"sensitivity": 2 * query.gamma / query.records, "gamma": query.gamma}
    theta = allocation.precisions(query)
    design = equimodal(epsilon=privacy.epsilon, delta=privacy.delta, theta=theta, calibration=calibration, **options)
    release = _simulate_design(design)
    return lambda data, stream: release(query.evaluate(data, clip=True, missing="error"), stream)


def mvg_pca(query: MatrixQuery, privacy: Privacy, *, tau: float, calibration: str) -> Simulation:
    """MVG-2: the two first directions of a private PCA are the important ones.

    As in the paper for its own calibrations: 0.2 epsilon and 0.2 delta for the directions, the rest for the noise. With
    the exact calibration a fifth of ``mu^2``, and the rest.
    """
    exact, shares = calibration == "exact", (PCA_SHARE, 1 - PCA_SHARE)
    first, rest = (privacy if exact else Privacy(share * privacy.epsilon, share * privacy.delta) for share in shares)
    shares = shares if exact else (1.0, 1.0)
    total = (privacy.epsilon, privacy.delta) if exact else (first.epsilon + rest.epsilon, first.delta + rest.delta)
    options: dict[str, Any] = {"allocation": binary(2, tau), "calibration": calibration, "share": shares[1]}

    def release(data: Floats, stream: Stream) -> Trial:
        noise: dict[str, Any] = {"stream": stream.child(0), "simulation": True}
        found = release_mechanism("SuLQ", query, first, data, share=shares[0], **noise)
        design = make_design(query, rest, directions=found.matrix, **options)
        released = design.release(data, stream=stream.child(1), simulation=True)
        assert found.mu is not None
        spent = gdp_epsilon(mu=compose_mu([found.mu, design.distance]), delta=privacy.delta)
        return Trial(released.matrix, Guarantee(*total), spent)

    return release


class Figure(NamedTuple):
    """A mean and half its 95% interval; the latter is 0 where the paper prints none."""

    mean: float
    half: float = 0.0


@cache
def read_published() -> dict[str, Any]:
    """What the paper prints, from ``published.toml``."""
    return tomllib.loads((Path(__file__).parent / "published.toml").read_text("utf-8"))


Setting = Mapping[str, Any]
Runner = Callable[[int, Stream], Trial]


@dataclass(frozen=True)
class Row:
    """One row of a table."""

    key: str  # unique in its part
    label: str
    group: str  # 'reference', 'paper', 'calibration', 'beyond', 'registered', 'adaptive' or 'weights'
    column: Guarantee | None  # None where nothing is private
    build: Callable[[Setting], Runner]
    settings: tuple[Setting, ...] = ({},)  # free parameters of the mechanism, swept; JSON values only
    variants: tuple[str, ...] = ("",)  # names of a trial's errors: free parameters of the evaluation, swept as well
    source: str = ""  # a hash of the code of a user's mechanism: stored trials are reused only if it is the same


@dataclass(frozen=True, eq=False)
class Experiment:
    """Public records, the query that mechanisms answer on them, and the error of what they release."""

    query: Identity | SecondMoment | Moments
    records: Callable[[int], Floats]  # of a trial
    score: Callable[[Floats, int], list[float]]  # from a released matrix and a trial to an error for each variant
    important: tuple[str, ...] = ()  # features on which the paper's noise is small
    variants: tuple[str, ...] = ("",)  # names of the ways to evaluate a release
    draws: tuple[int, ...] = ()  # dimensions that the Johnson-Lindenstrauss transform projects on
    suffix: str = ""  # of the label of every row

    def budget(self, epsilon: float = 1.0) -> Privacy:
        """The paper's budget: delta is one over the number of records."""
        return Privacy(epsilon, 1 / self.query.records)

    def runner(self, simulation: Simulation) -> Runner:
        """Trials of a mechanism."""

        def run(trial: int, stream: Stream) -> Trial:
            released = simulation(self.records(trial), stream)
            return released._replace(result=self.score(released.result, trial))

        return run

    def reference(self, key: str, label: str, error: Callable[[int, Stream], float]) -> Row:
        """A row without a mechanism, from the error of a trial."""
        return Row(key, label, "reference", None, lambda _: lambda trial, stream: Trial([error(trial, stream)]))

    def exact_row(self) -> Row:
        """A row of the exact answer."""

        def answer(records: Floats, _stream: Stream) -> Trial:
            return Trial(self.query.finish(self.query.evaluate(records, clip=True, missing="error")))

        label = f"Non-private{self.suffix}"
        return Row("non-private", label, "reference", None, lambda _: self.runner(answer), variants=self.variants)

    def row(
        self,
        key: str,
        label: str,
        method: str | Mechanism | Method,
        sweep: Mapping[str, Iterable[Any]] | None = None,
        *,
        group: str = "beyond",
        vary: Callable[..., Experiment] | None = None,
        epsilon: float = 1.0,
        **options: Any,
    ) -> Row:
        """A row of a registered mechanism or its name, or of a function; all combinations of `sweep` are tried.

        They are settings of the method, or of `vary`, which gives the experiment to run; `options` are the method's.
        """
        privacy, sweep = self.budget(epsilon), sweep or {}
        chosen = find_mechanism(method) if isinstance(method, str) else method

        def build(setting: Setting) -> Runner:
            if vary is None:
                return self.runner(simulate(chosen, self.query, privacy, **setting, **options))
            varied = vary(**setting)
            return varied.runner(simulate(chosen, varied.query, privacy, **options))

        column = state_guarantee(chosen, privacy)
        settings = tuple(dict(zip(sweep, values, strict=True)) for values in product(*sweep.values()))
        return Row(key, label + self.suffix, group, column, build, settings, self.variants, _hash_source(chosen))

    def mvg_rows(self, kinds: Mapping[str, Method] | None = None) -> list[Row]:
        """MVG in each calibration, over the share `tau` of the important features."""
        return [
            self.row(
                kind if calibration == "theorem2" else f"{kind}/{calibration}",
                f"{kind.upper()}, {words}",
                method,
                {"tau": TAUS},
                group="paper" if calibration == "theorem2" else "calibration",
                calibration=calibration,
            )
            for calibration, words in CALIBRATIONS.items()
            for kind, method in (kinds or {"mvg": partial(mvg, important=self.important)}).items()
        ]

    def common_rows(self, *keys: str) -> list[Row]:
        """Rows of `COMMON`; the Johnson-Lindenstrauss transform is swept over its dimension."""
        found = []
        for key in keys:
            label, group, method, options = COMMON[key]
            sweep = {"draws": self.draws} if key.startswith("jl") else None
            found.append(self.row(key, label, method, sweep, group=group, **options))
        return found


# Rows that several experiments have: label, group, method and its options.
COMMON: dict[str, tuple[str, str, str | Method, dict[str, Any]]] = {
    "gaussian": ("Gaussian (classical)", "paper", "classical Gaussian", {}),
    "jl": ("JL transform (published threshold)", "paper", "Johnson-Lindenstrauss", {"calibration": "published"}),
    "laplace": ("Laplace", "paper", "Laplace", {}),
    "exponential": ("Exponential (textbook)", "paper", "exponential", {"halved": True}),
    "identity/optimal": ("Identity query, optimal allocation", "beyond", design_noise, {"allocation": optimal()}),
    "gaussian/exact": ("Gaussian (exact)", "beyond", "analytic Gaussian", {}),
    "jl/exact": ("JL transform (exact threshold)", "beyond", "Johnson-Lindenstrauss", {"calibration": "exact"}),
}
RIVALS = {"gaussian": "Gaussian", "jl": "JL transform", "laplace": "Laplace", "exponential": "Exponential"}


def registered_rows(**experiments: Experiment) -> list[Row]:
    """A row for every mechanism that a user has registered, for each task (with "_" for "-") of an experiment."""
    tasks = {name.replace("_", "-"): experiment for name, experiment in experiments.items()}
    return [
        experiment.row(f"registered/{task}/{one.name}", f"{one.name} ({task})", one, group="registered")
        for task, experiment in tasks.items()
        for one in registered_mechanisms(task)
        if not one.builtin
    ]


def _hash_source(method: Method | Mechanism) -> str:
    """A hash of the module that defines a user's mechanism, so that stored trials of an edited one are not reused."""
    if not isinstance(method, Mechanism) or method.builtin:
        return ""
    try:
        return sha256(Path(getfile(method.function)).read_bytes()).hexdigest()
    except OSError:  # defined at a prompt
        return ""
