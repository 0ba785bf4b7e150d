"""Accuracy of the estimators and their peers: one Markdown table per task.

``python -m benchmarks.accuracy [--trials 100] [--task covariance|centred|components|regression] [--first 0]
[--without OpenDP] [--plugin MODULE]``, or with ``--ablation``: what each setting of our own method is worth
(`benchmarks.ablation`).

All methods get the same box, budget and data; each cell is a mean with its 95% interval. Seeds start at `--first`.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks import ablation
from benchmarks.accuracy_data import DataSet, moment_sets, regression_sets
from benchmarks.accuracy_methods import (
    LIBRARIES,
    OURS,
    Method,
    centred_methods,
    component_methods,
    covariance_methods,
    regression_methods,
)
from benchmarks.sizes import few
from matrixdp import Privacy
from matrixdp.release.registered import load_plugins
from matrixdp.types import Floats

DELTA = 1e-6
SECONDS = 45  # time limit for the trials of a cell by another library
EPSILONS = (0.1, 0.5, 1.0, 3.0)
# Errors of the best peers in an earlier comparison of covariances, at the same epsilons. Its peers were less well
# calibrated than those here.
REFERENCE = {
    "breast cancer": (1.92, 0.79, 0.416, 0.165),
    "diabetes": (3.08, 1.19, 0.88, 0.34),
    "CTG": (0.57, 0.149, 0.098, 0.0376),
    "liver": (1.54, 0.459, 0.241, 0.088),
    "movement": (0.075, 0.0167, 0.0087, 0.0032),
}
Score = Callable[[DataSet, Method, Privacy, int], float]


def moment_error(data: DataSet, method: Method, privacy: Privacy, seed: int) -> float:
    """Relative Frobenius error of the second moment about the midpoint."""
    truth = data.scaled.T @ data.scaled / len(data.records)
    return float(np.linalg.norm(method(data, privacy, seed) - truth) / np.linalg.norm(truth))


def centred_error(data: DataSet, method: Method, privacy: Privacy, seed: int) -> float:
    """Relative Frobenius error of the covariance about the mean."""
    truth = np.atleast_2d(np.cov(data.scaled.T, bias=True))
    return float(np.linalg.norm(method(data, privacy, seed) - truth) / np.linalg.norm(truth))


def variance_lost(data: DataSet, method: Method, privacy: Privacy, seed: int) -> float:
    """Share of the total variance that the best five components explain and the private five do not."""
    d = data.records.shape[1]
    k = 5 if d > 5 else d - 1
    covariance = np.cov(data.scaled.T, bias=True)
    rows = np.linalg.qr(method(data, privacy, seed)[:k].T)[0].T
    best = np.linalg.eigvalsh(covariance)[-k:].sum()
    return float((best - np.einsum("ij,jk,ik->", rows, covariance, rows)) / np.trace(covariance))


def test_error(data: DataSet, method: Method, privacy: Privacy, seed: int) -> float:
    """Root mean square error on a fifth of the records, over the target's standard deviation there."""
    order = np.random.default_rng(seed).permutation(len(data.records))
    cut = len(order) * 4 // 5
    train = DataSet(data.name, data.records[order[:cut]], data.bounds)
    held = data.scaled[order[cut:]]
    coefficients = method(train, privacy, seed)
    guess = np.clip(coefficients[0] + held[:, :-1] @ coefficients[1:], -1, 1)
    return float(np.sqrt(np.mean((guess - held[:, -1]) ** 2)) / held[:, -1].std())


TASKS: dict[str, tuple[str, Score, Callable[[], list[DataSet]], Callable[[], dict[str, Method]], tuple[float, ...]]] = {
    "covariance": ("Relative Frobenius error", moment_error, moment_sets, covariance_methods, EPSILONS),
    "centred": ("Relative Frobenius error about the mean", centred_error, moment_sets, centred_methods, EPSILONS),
    "components": ("Variance lost by 5 components", variance_lost, moment_sets, component_methods, (0.5, 1.0, 3.0)),
    "regression": ("Test RMSE / std(y)", test_error, regression_sets, regression_methods, (0.5, 1.0, 3.0)),
}


def run(task: str, trials: int, without: tuple[str, ...] = (), first: int = 0) -> str:
    """Table of one task, and the geometric mean of our error over the best peer's."""
    title, score, data_sets, methods, epsilons = TASKS[task]
    named = {name: method for name, method in methods().items() if name not in without}
    lines = [f"### {title}", "", f"| data | epsilon | {' | '.join(named)} | ratio |", "| --- " * (len(named) + 3) + "|"]
    ratios: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
    named_ratios: list[float] = []
    reference_ratios: list[float] = []
    for data in few(data_sets()):
        for epsilon in epsilons:
            cells = {}
            for name, method in named.items():
                once = partial(_once, score, data, method, epsilon)
                seeds = range(first, first + trials)
                cells[name] = _in_time(once, seeds) if name in LIBRARIES else [once(seed) for seed in seeds]
            means = {name: float(np.mean(values)) for name, values in cells.items()}
            best = min((mean for name, mean in means.items() if name != OURS and math.isfinite(mean)), default=math.nan)
            ratios[epsilon].append(means[OURS] / best)
            if data.name in REFERENCE:
                named_ratios.append(means[OURS] / best)
                if task == "covariance":
                    reference_ratios.append(means[OURS] / REFERENCE[data.name][epsilons.index(epsilon)])
            shown = " | ".join(_cell(np.array(values)) for values in cells.values())
            lines.append(f"| {data.label} | {epsilon:g} | {shown} | {means[OURS] / best:.2f} |")
            print(lines[-1], flush=True)
    by_epsilon = ", ".join(f"{epsilon:g}: {_geometric(values):.3f}" for epsilon, values in ratios.items())
    every = [value for values in ratios.values() for value in values]
    lines += ["", f"Geometric mean of our error over the best peer's: {_geometric(every):.3f} ({by_epsilon})."]
    lines += [f"Over {', '.join(REFERENCE)}: {_geometric(named_ratios):.3f}."]
    if reference_ratios:
        lines += [f"There, over the best peers of the earlier comparison: {_geometric(reference_ratios):.3f}."]
    return "\n".join(lines)


def _in_time(once: Callable[[int], float], seeds: range) -> list[float]:
    """At most thirty trials of another library, or NaN if they exceed the time limit."""
    context = multiprocessing.get_context("fork")  # a process can be killed even if it ignores signals
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send([once(seed) for seed in seeds[:30]]))
    child.start()
    found = receiver.recv() if receiver.poll(SECONDS) else [math.nan]
    child.kill()
    child.join()
    return list(found)


def _once(score: Score, data: DataSet, method: Method, epsilon: float, seed: int) -> float:
    try:
        return score(data, method, Privacy(epsilon, DELTA), seed)
    except (ValueError, np.linalg.LinAlgError, ArithmeticError):
        return math.nan  # a library that refuses these data


def _cell(values: Floats) -> str:
    half = 1.96 * values.std(ddof=1) / math.sqrt(values.size)
    return f"{values.mean():.3g} ± {half:.1g}" if np.isfinite(values).all() else "-"


def _geometric(values: list[float]) -> float:
    return math.exp(float(np.mean(np.log(np.maximum(values, 1e-9)))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ablation", action="store_true", help="what each setting of our own method is worth")
    parser.add_argument("--trials", type=int, help="default 100, or 20 with --ablation")
    parser.add_argument("--task", choices=TASKS, action="append")
    parser.add_argument("--without", action="append", default=[], help="a method to leave out, such as OpenDP")
    parser.add_argument("--first", type=int, help="the first seed; default 0, or 500000 with --ablation")
    parser.add_argument("--plugin", action="append", default=[], help="a module that registers mechanisms")
    asked = parser.parse_args()
    load_plugins(asked.plugin)
    warnings.simplefilter("ignore")  # peers warn about their own bounds
    if asked.ablation:
        print("\n" + ablation.run(500_000 if asked.first is None else asked.first, asked.trials or 20))
        return
    options = asked.trials or 100, tuple(asked.without), asked.first or 0
    tables = [run(task, *options) for task in asked.task or TASKS]
    print("\n\n".join(["", *tables]))


if __name__ == "__main__":
    main()
