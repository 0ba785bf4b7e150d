"""How far the accuracy of the adaptive fits carries over: many data sets, our error over the best peer's.

``python -m benchmarks.generalisation [--group design|"held out"|fresh|outside|newest|last|later] [--tables ...]
[--tasks ...] [--epsilon 0.3 3] [--trials 4] [--jobs 2] [--save FILE] [--against FILE] [--worst 10]``

Data are simulated families, real tables, and versions of both whose bounds are too wide
(`benchmarks.generalisation_data`). Settings are chosen on the group "design"; the others have no part in it. Needs the
extra ``accuracy``. For each task, kind of data and epsilon: geometric means of our error over that of others, with
standard errors over data sets, and the number of cells (a data set at an epsilon) in which ours is worse by 10%; those
in brackets by two standard errors as well, of which four trials show few. "Limit" counts cells above 1.1 times a plain
release's error of second moments, 1.05 times that of a matrix of zeros, or 1.05 times that of the private mean.
The oracle is told the centre, the directions and the best radius, and spends the whole budget on one moment.

``--save FILE`` stores the errors of all methods. ``--against FILE`` takes those of peers from there, which saves time,
and compares ours with the stored ones. So two versions of the code are compared:
``python -m benchmarks.generalisation --group outside --epsilon 0.3 3 --save build/before.json``, then the same with
``--against build/before.json``. Peers are computed anew where the number of trials differs. ``--read FILE`` runs
nothing and reports what a file has.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import warnings
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.accuracy_data import DataSet
from benchmarks.accuracy_methods import OURS, _centred, _gauss_covariance, _joint_regression, _peer
from benchmarks.generalisation_data import LISTS, Member, members, regression_member
from benchmarks.sizes import size
from matrixdp import Moments, Privacy, SecondMoment, Stream, make_design
from matrixdp.adaptive import principal_components, private_moment, solve_regression
from matrixdp.adaptive.shrinkage import nearest_of_same_trace
from matrixdp.answers.moments import correlation_from_covariance
from matrixdp.answers.psd import nearest_psd
from matrixdp.baselines.covariances import SharedBudget
from matrixdp.types import Floats

DELTA = 1e-6
EPSILONS = (0.1, 0.5, 1.0, 3.0)
MEAN, ZERO, ORACLE = "private mean", "zero matrix", "oracle"
PLAIN = "structured"  # this library's own release without learned coordinates
# The aim of our fit for each task.
AIMS = {
    "second moment": "second moment",
    "covariance": "covariance",
    "correlation": "correlation",
    "1 component": "components",
    "5 components": "components",
    "regression": "regression",
}
TASKS = tuple(AIMS)
_QUANTILES = (0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
_DRAWS = 10
LIMITS = {"second moment": (PLAIN, 1.1), "covariance": (ZERO, 1.05), "regression": (MEAN, 1.05)}
KINDS = ("simulated", "real", "widened")
Errors = dict[str, float]  # by task
Cell = dict[str, dict[str, list[float]]]  # of a data set and an epsilon: errors of the trials by method and task


def moment_errors(data: DataSet, second: Floats, covariance: Floats) -> Errors:
    """Relative Frobenius errors of a second moment and a covariance, and the mean square error of correlations."""
    truth = data.scaled.T @ data.scaled / len(data.records)
    about = np.atleast_2d(np.cov(data.scaled.T, bias=True))
    found = {"second moment": _relative(second, truth), "covariance": _relative(covariance, about)}
    if data.bounds.size > 1:
        found["correlation"] = float(np.sqrt(np.mean((_correlation(covariance) - _correlation(about)) ** 2)))
    return found


def component_errors(data: DataSet, rows: Floats) -> Errors:
    """Share of the variance that the best k components explain and the private ones do not, for k = 1 and 5."""
    covariance = np.atleast_2d(np.cov(data.scaled.T, bias=True))
    values, d = np.linalg.eigvalsh(covariance)[::-1], data.bounds.size
    found = {}
    for name, k in (("1 component", 1), ("5 components", min(5, d - 1))):
        if 0 < k < d and (k > 1 or name == "1 component"):
            own = np.linalg.qr(rows[:k].T)[0].T
            kept = float(np.einsum("ij,jk,ik->", own, covariance, own))
            found[name] = max(float(values[:k].sum()) - kept, 0.0) / float(values.sum()) + 1e-9
    return found


def regression_error(data: DataSet, solve: Callable[[DataSet], Floats], seed: int) -> Errors:
    """Root mean square error on a fifth of the records, over the target's standard deviation there."""
    order = np.random.default_rng(seed).permutation(len(data.records))
    cut = len(order) * 4 // 5
    coefficients = solve(DataSet(data.name, data.records[order[:cut]], data.bounds))
    held = data.scaled[order[cut:]]
    guess = np.clip(coefficients[0] + held[:, :-1] @ coefficients[1:], -1, 1)
    return {"regression": float(np.sqrt(np.mean((guess - held[:, -1]) ** 2)) / max(held[:, -1].std(), 1e-9))}


def our_moment(data: DataSet, privacy: Privacy, seed: int, aim: str) -> Errors:
    """Errors of our own fit for one aim."""
    if aim == "regression":
        return regression_error(data, lambda train: _our_regression(train, privacy, seed), seed)
    moment = private_moment(data.scaled, data.unit, privacy, aim=aim, stream=Stream(seed=seed), simulation=True)
    if aim == "components":
        return component_errors(data, principal_components(moment).components)
    errors = moment_errors(data, moment.second_moment, moment.covariance)
    return {aim: errors[aim]}


def _our_regression(data: DataSet, privacy: Privacy, seed: int) -> Floats:
    options: dict[str, Any] = {"aim": "regression", "stream": Stream(seed=seed), "simulation": True}
    coefficients, intercepts = solve_regression(private_moment(data.scaled, data.unit, privacy, **options), 1)
    return np.append(intercepts, coefficients)


def peer_errors(data: DataSet, privacy: Privacy, seed: int, *, regression: bool) -> dict[str, Errors]:
    """Errors of each peer, of the oracle and of constants."""
    if regression:
        return {
            name: regression_error(data, lambda train, solve=solve: solve(train, privacy, seed), seed)
            for name, solve in (
                ("AdaSSP", lambda data, privacy, seed: _peer("AdaSSP", data, privacy, seed)[:, 0]),
                ("joint moment", _joint_regression),
                (MEAN, _private_mean),
            )
        }
    seconds = {
        "Analyze Gauss": nearest_psd(_peer("Analyze Gauss", data, privacy, seed)),
        "structured": _structured_second(data, privacy, seed),
        **{name: _peer(name, data, privacy, seed) for name in ("SeparateCov", "AdaptiveCov", "CoinPress")},
    }
    centred = {
        "Analyze Gauss": _gauss_covariance(data, privacy, seed),
        "structured": _structured_covariance(data, privacy, seed),
        **{name: _centred(name, data, privacy, seed) for name in ("SeparateCov", "AdaptiveCov", "CoinPress")},
    }
    found = {ORACLE: oracle_error(data, privacy, seed), ZERO: {"second moment": 1.0, "covariance": 1.0}}
    for name, second in seconds.items():
        covariance = centred[name] if name == "structured" else nearest_of_same_trace(centred[name])
        found[name] = moment_errors(data, second, covariance)
        found[name].update(component_errors(data, np.linalg.eigh(centred[name])[1][:, ::-1].T))
    return found


def _structured_second(data: DataSet, privacy: Privacy, seed: int) -> Floats:
    design = make_design(SecondMoment(data.unit, len(data.records)), privacy)
    released = design.release(data.scaled, stream=Stream(seed=seed), simulation=True)
    return nearest_psd(released.matrix, released.std)


def _structured_covariance(data: DataSet, privacy: Privacy, seed: int) -> Floats:
    design = make_design(Moments(data.unit, len(data.records)), privacy)
    return design.release(data.scaled, stream=Stream(seed=seed), simulation=True).covariance().nearest_psd()


def _private_mean(data: DataSet, privacy: Privacy, seed: int) -> Floats:
    """The target's mean with the whole budget, and no features."""
    budget, n = SharedBudget(privacy, Stream(seed=seed), True), len(data.records)
    mean, _ = budget.vector(data.scaled[:, -1:].mean(axis=0), 2 / n, 1 + 1e-9, 1.0)
    return np.append(mean, np.zeros(data.bounds.size - 1))


def oracle_error(data: DataSet, privacy: Privacy, seed: int) -> Errors:
    """Error of a covariance by one moment with the whole budget about the true centre.

    Noise is shaped by the square root of the true covariance, and the radius at which records are clipped is the best
    of some quantiles of their lengths.
    """
    covariance, draw = np.atleast_2d(np.cov(data.scaled.T, bias=True)), np.random.default_rng(seed).standard_normal
    values, directions = np.linalg.eigh(covariance)
    roots = np.maximum(values, values[-1] * 1e-12) ** 0.25
    points = (data.scaled - data.scaled.mean(axis=0)) @ directions / roots
    lengths, (n, d) = np.linalg.norm(points, axis=1), points.shape
    noise = draw((_DRAWS, d, d))
    noise = (noise + noise.swapaxes(1, 2)) / 2  # variance 1 on the diagonal, 1/2 beside it
    found = []
    for radius in np.unique(np.quantile(lengths, _QUANTILES)):
        kept = points * np.minimum(1, radius / np.maximum(lengths, 1e-300))[:, None]
        noisy = kept.T @ kept / n + math.sqrt(2) * radius**2 / (n * privacy.mu) * noise
        shaped = noisy * np.multiply.outer(roots, roots)
        found.append(np.mean([_relative(nearest_of_same_trace(one), np.diag(values)) for one in shaped]))
    return {"covariance": float(min(found))}


def _relative(found: Floats, truth: Floats) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def _correlation(covariance: Floats) -> Floats:
    return np.clip(correlation_from_covariance(covariance, undefined=0.0), -1.0, 1.0)


class Row(NamedTuple):
    """Errors of all methods in one cell and task, one for each trial."""

    kind: str
    label: str
    epsilon: float
    task: str
    errors: dict[str, list[float]]

    def mean(self, name: str = OURS) -> float:
        """Mean error of a method."""
        return float(np.mean(self.errors[name]))

    def best(self, more: tuple[str, ...] = ()) -> str:
        """The published peer, or one of `more`, whose mean error is the smallest."""
        own = {OURS, PLAIN, MEAN, ZERO, ORACLE}.difference(more)
        return min(self.errors.keys() - own, key=self.mean)

    def above(self, name: str, factor: float) -> bool:
        """Whether our error is `factor` times that of a method or more."""
        return self.mean() >= factor * self.mean(name)

    def clearly_above(self, name: str, factor: float) -> bool:
        """Whether it is so by two standard errors, too."""
        ours, other = (float(np.std(self.errors[one], ddof=1)) for one in (OURS, name))
        error = math.hypot(ours, factor * other) / math.sqrt(len(self.errors[OURS]))
        return self.mean() - factor * self.mean(name) > 2 * error


def measure(member: Member, epsilon: float, known: Cell, *, trials: int, tasks: tuple[str, ...]) -> Cell:
    """Errors of all methods in one cell; those of the others are taken from `known` if it has as many trials."""
    cell: Cell = {}
    for regression in (False, True):
        own = regression_member(member) if regression else member
        aims = dict.fromkeys(aim for task, aim in AIMS.items() if task in tasks and (aim == "regression") == regression)
        if own is None or not aims:
            continue
        first = zlib.crc32(f"{own.data.label} {epsilon:g}".encode())  # other seeds for each cell: luck averages out
        seeds, privacy = range(first, first + trials), Privacy(epsilon, DELTA)
        for aim in aims:
            if aim not in ("components", "correlation") or own.data.bounds.size > 1:
                _add(cell, [{OURS: our_moment(own.data, privacy, seed, aim)} for seed in seeds])
        peers = _stored_peers(known, trials, regression=regression)
        if not peers:
            _add(peers, [peer_errors(own.data, privacy, seed, regression=regression) for seed in seeds])
        for name, errors in peers.items():
            cell.setdefault(name, {}).update(errors)
    return cell


def _add(cell: Cell, trials: list[dict[str, Errors]]) -> None:
    for trial in trials:
        for name, errors in trial.items():
            for task, error in errors.items():
                cell.setdefault(name, {}).setdefault(task, []).append(error)


def _stored_peers(known: Cell, trials: int, *, regression: bool) -> Cell:
    """Errors of the other methods for regressions, or for all other tasks, if there are as many trials."""
    found: Cell = {}
    for name, errors in known.items():
        for task, values in errors.items():
            if name != OURS and (task == "regression") == regression and len(values) == trials:
                found.setdefault(name, {})[task] = values
    return found


def rows_of(found: dict[str, Cell]) -> list[Row]:
    """A row for each cell and task of ours."""
    rows = []
    for key, cell in found.items():
        kind, label, epsilon = key.split("|")
        for task in cell.get(OURS, {}):
            errors = {name: by_task[task] for name, by_task in cell.items() if task in by_task}
            rows.append(Row(kind, label, float(epsilon), task, errors))
    return rows


def report(rows: list[Row], worst: int) -> str:
    """Geometric means of ratios, cells that are worse, and the worst cells."""
    lines = [
        "| task | kind | epsilon | cells | ours/best published peer | worse | ours/best peer or plain release | worse "
        "| above the limit | ours/oracle |",
        "| --- " * 10 + "|",
    ]
    for task, kind, epsilon in itertools.product(TASKS, KINDS, sorted({row.epsilon for row in rows})):
        part = [row for row in rows if (row.task, row.kind, row.epsilon) == (task, kind, epsilon)]
        if part:
            lines.append(f"| {task} | {kind} | {epsilon:g} | {len(part)} | {' | '.join(_summary(part, task))} |")
    for task in TASKS:
        part = sorted((row for row in rows if row.task == task), key=lambda row: -_over(row, row.best((PLAIN,))))
        if part and worst:
            lines += ["", f"Worst cells, {task}:", *map(_line, part[:worst])]
    return "\n".join(lines)


def _summary(rows: list[Row], task: str) -> list[str]:
    shown = []
    for more in ((), (PLAIN,)):
        best = [(row, row.best(more)) for row in rows]
        shown += [_geometric_mean([_over(row, name) for row, name in best]), _count([(*one, 1.1) for one in best])]
    shown.append(_count([(row, *LIMITS[task]) for row in rows]) if task in LIMITS else "")
    return [*shown, _geometric_mean([_over(row, ORACLE) for row in rows if ORACLE in row.errors])]


def _count(cases: list[tuple[Row, str, float]]) -> str:
    """How many errors are above a multiple of a method's, and how many of them by two standard errors."""
    above = sum(row.above(name, factor) for row, name, factor in cases)
    return f"{above} ({sum(row.clearly_above(name, factor) for row, name, factor in cases)})"


def _over(row: Row, name: str) -> float:
    return (row.mean() + 1e-9) / (row.mean(name) + 1e-9)


def _geometric_mean(ratios: list[float]) -> str:
    """With its standard error over data sets."""
    if not ratios:
        return ""
    logs = np.log(ratios)
    mean, error = math.exp(logs.mean()), float(logs.std(ddof=1)) / math.sqrt(logs.size) if logs.size > 1 else math.nan
    return f"{mean:.3f} ± {mean * error:.3f}"


def _line(row: Row) -> str:
    best = row.best((PLAIN,))
    limits = [name for name in (LIMITS.get(row.task, ("",))[0], ORACLE) if name in row.errors]
    return (
        f"  {row.label} epsilon {row.epsilon:g}: ours {row.mean():.3g}, {best} {row.mean(best):.3g}, ratio "
        f"{_over(row, best):.2f}" + "".join(f", over {name} {_over(row, name):.2f}" for name in limits)
    )


def compare(rows: list[Row], stored: list[Row]) -> str:
    """Our errors over stored ones, with standard errors over data sets."""
    before = {row[:4]: row.mean() for row in stored}
    lines = ["| kind | epsilon | " + " | ".join((*TASKS, "all")) + " |", "| --- " * (len(TASKS) + 3) + "|"]
    kinds, epsilons = dict.fromkeys(row.kind for row in rows), sorted({row.epsilon for row in rows})
    for kind, epsilon in [*itertools.product(kinds, epsilons), ("all", math.nan)]:
        part = [row for row in rows if (kind == "all" or (row.kind, row.epsilon) == (kind, epsilon))]
        shown = [
            _change([row for row in part if row.task in tasks], before)
            for tasks in (*((task,) for task in TASKS), TASKS)
        ]
        lines.append(f"| {kind} | {'all' if kind == 'all' else f'{epsilon:g}'} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _change(rows: list[Row], before: dict[tuple[Any, ...], float]) -> str:
    """The geometric mean of new over old errors; cells of a data set count as one."""
    logs: dict[str, list[float]] = {}
    for row in rows:
        if row[:4] in before:
            logs.setdefault(row.label, []).append(math.log((row.mean() + 1e-9) / (before[row[:4]] + 1e-9)))
    return _geometric_mean([math.exp(np.mean(values)) for values in logs.values()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", choices=("design", "held out", "fresh", *LISTS), default="held out")
    parser.add_argument("--tables", nargs="+", help="names of data sets; by default all of the group")
    parser.add_argument("--tasks", choices=TASKS, nargs="+", default=TASKS)
    parser.add_argument("--epsilon", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--trials", type=int, default=size(4, 2))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--save", type=Path, help="store the errors of all methods")
    parser.add_argument("--against", type=Path, help="take peers from a stored file, and compare ours with it")
    parser.add_argument("--read", type=Path, help="run nothing, report what a stored file has")
    parser.add_argument("--worst", type=int, default=10)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = json.loads(asked.against.read_text()) if asked.against else {}
    found = json.loads(asked.read.read_text()) if asked.read else _run(asked, stored)
    rows = rows_of(found)
    print(report(rows, asked.worst))
    if asked.against:
        print("\nNew over stored errors\n\n" + compare(rows, rows_of(stored)))


def _run(asked: argparse.Namespace, stored: dict[str, Cell]) -> dict[str, Cell]:
    """All cells, stored after each."""
    chosen = [
        one for one in members(asked.group) if not asked.tables or one.data.name.removesuffix(" wide") in asked.tables
    ]
    cells = {f"{one.kind}|{one.data.label}|{e:g}": (one, e) for one in chosen for e in asked.epsilon}
    work = partial(measure, trials=asked.trials, tasks=tuple(asked.tasks))
    found: dict[str, Cell] = {}
    with ProcessPoolExecutor(asked.jobs, initializer=threadpool_limits, initargs=(1,)) as workers:  # a thread each
        known = [stored.get(key, {}) for key in cells]
        apply = workers.map if asked.jobs > 1 else map
        for key, cell in zip(cells, apply(work, *zip(*cells.values(), strict=True), known), strict=True):
            found[key] = cell
            if asked.save:
                asked.save.parent.mkdir(exist_ok=True)
                asked.save.write_text(json.dumps(found))
    return found


if __name__ == "__main__":
    main()
