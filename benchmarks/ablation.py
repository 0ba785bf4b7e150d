"""What each setting of the adaptive fits is worth: the error with a neutral value, relative to the error with its own.

``python -m benchmarks.accuracy --ablation [--trials 20] [--first 500000]``

Settings are replaced one at a time, for the aims whose value differs from the neutral one (off, or the value of another
aim or setting), with the same seeds. The ratio is the geometric mean over cells; a cell is a data set with an epsilon.
The simulated families among the data sets, and seeds from 500000 on, had no part in choosing the settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np

from benchmarks.accuracy_data import DataSet, ablation_moment_sets, ablation_regression_sets
from benchmarks.sizes import few
from matrixdp import Privacy, Stream
from matrixdp.adaptive import PrivateMoment, principal_components, private_moment, solve_regression
from matrixdp.adaptive.settings import SETTINGS, Settings
from matrixdp.types import Floats

DELTA = 1e-6
EPSILONS = {"covariance": (0.1, 0.5, 1.0, 3.0), "components": (0.5, 1.0, 3.0), "regression": (0.5, 1.0, 3.0)}
TASKS = {"covariance": ("covariance", "centred"), "components": ("components",), "regression": ("regression",)}
Errors = dict[str, Floats]  # a task's errors, of shape (data sets, epsilons, trials)


@dataclass(frozen=True)
class Ablation:
    """One setting, its neutral value, and the aims whose own value differs from it."""

    setting: str
    neutral: float
    aims: tuple[str, ...] = ("covariance", "components", "regression")

    @property
    def label(self) -> str:
        """Setting and neutral value."""
        return f"`{self.setting}` = {self.neutral:g}"


_DIRECTIONS = ("components", "regression")
ABLATIONS = [
    Ablation("clip_factor", 4.0, ("covariance",)),
    Ablation("clip_factor", 1.5, _DIRECTIONS),
    Ablation("radius_share", 0.01),
    Ablation("bisections", 3),
    Ablation("lost_counts", math.inf),
    Ablation("public_radius", 1.0),
    Ablation("scarce", math.inf),
    Ablation("rough_share", 0.06),
    Ablation("locate_share", 0.0),
    Ablation("prior", 1.0),
    Ablation("rough_moments", 1),
    Ablation("ratio", 1 / 16),
    Ablation("about_mean", False),
    Ablation("scaled", True, ("covariance",)),
    Ablation("floor", 0.0),
    Ablation("pull", 0.0, ("covariance",)),
    Ablation("tail_share", 0.0, ("covariance",)),
    Ablation("tail_noise", 1.0, ("covariance",)),
    Ablation("clipping", 0.0, ("covariance",)),
    Ablation("shrink", False, ("covariance", "regression")),
    Ablation("shrink", True, ("components",)),
    Ablation("level", 0.0),
]


@contextmanager
def substituted(aim: str, changes: dict[str, Any]) -> Iterator[None]:
    """Replace settings of an aim within the block; for measurements only."""
    own = SETTINGS[aim]
    SETTINGS[aim] = replace(own, **changes)
    try:
        yield
    finally:
        SETTINGS[aim] = own


def errors(aim: str, first: int, trials: int, changes: dict[str, Any] | None = None) -> Errors:
    """Errors of the tasks of an aim, in each cell, for each seed."""
    sets = _data_sets(aim)
    seeds = range(first, first + trials)
    with substituted(aim, changes or {}):
        found = np.array(
            [[[_fit_error(aim, data, epsilon, seed) for seed in seeds] for epsilon in EPSILONS[aim]] for data in sets]
        )
    return {task: found[..., i] for i, task in enumerate(TASKS[aim])}


@cache
def _data_sets(aim: str) -> list[DataSet]:
    return ablation_regression_sets() if aim == "regression" else ablation_moment_sets()


def _fit_error(aim: str, data: DataSet, epsilon: float, seed: int) -> tuple[float, ...]:
    def fit(records: Floats) -> PrivateMoment:
        options: dict[str, Any] = {"aim": aim, "stream": Stream(seed=seed), "simulation": True}
        return private_moment(records, data.unit, Privacy(epsilon, DELTA), **options)

    return _SCORES[aim](data.scaled, fit, seed)


def _covariance_errors(records: Floats, fit: Callable[[Floats], PrivateMoment], seed: int) -> tuple[float, ...]:  # noqa: ARG001
    moment = fit(records)
    second, centred = records.T @ records / len(records), np.cov(records.T, bias=True)
    pairs = [(moment.second_moment, second), (moment.covariance, centred)]
    return tuple(float(np.linalg.norm(found - truth) / np.linalg.norm(truth)) for found, truth in pairs)


def _variance_lost(records: Floats, fit: Callable[[Floats], PrivateMoment], seed: int) -> tuple[float, ...]:  # noqa: ARG001
    d = records.shape[1]
    k = 5 if d > 5 else d - 1
    rows = principal_components(fit(records), k).components
    covariance = np.cov(records.T, bias=True)
    best = np.linalg.eigvalsh(covariance)[-k:].sum()
    return (float((best - np.einsum("ij,jk,ik->", rows, covariance, rows)) / np.trace(covariance)),)


def _test_error(records: Floats, fit: Callable[[Floats], PrivateMoment], seed: int) -> tuple[float, ...]:
    order = np.random.default_rng(seed).permutation(len(records))
    cut = len(order) * 4 // 5
    held = records[order[cut:]]
    coefficients, intercepts = solve_regression(fit(records[order[:cut]]), 1)
    guess = np.clip(held[:, :-1] @ coefficients[0] + intercepts[0], -1, 1)
    return (float(np.sqrt(np.mean((guess - held[:, -1]) ** 2)) / held[:, -1].std()),)


_SCORES = {"covariance": _covariance_errors, "components": _variance_lost, "regression": _test_error}


def ratio(ablated: Floats, full: Floats) -> tuple[float, float]:
    """Geometric mean over cells of mean errors' ratios, and half its 95% interval over the seeds.

    The bar is first-order: seeds are independent, cells with the same seed are not.
    """
    means, others = ablated.mean(axis=-1), full.mean(axis=-1)
    value = math.exp(float(np.log(means / others).mean()))
    influence = (ablated / means[..., None] - full / others[..., None]).mean(axis=(0, 1))
    return value, 1.96 * value * float(influence.std(ddof=1)) / math.sqrt(influence.size)


def run(first: int, trials: int) -> str:
    """Table of all ablations, as Markdown."""
    if missing := {field.name for field in fields(Settings)} - {ablation.setting for ablation in ABLATIONS}:
        raise AssertionError(f"no neutral value for {missing}")
    full = {aim: errors(aim, first, trials) for aim in TASKS}
    tasks = [task for served in TASKS.values() for task in served]
    lines = [f"| setting | {' | '.join(tasks)} |", "| --- " * (len(tasks) + 1) + "|"]
    for ablation in few([*ABLATIONS]):
        cells = dict.fromkeys(tasks, "")
        for aim in ablation.aims:
            ablated = errors(aim, first, trials, {ablation.setting: ablation.neutral})
            for task, values in ablated.items():
                value, bar = ratio(values, full[aim][task])
                cells[task] = f"{value:.3f} ± {bar:.3f}"
        lines.append(f"| {ablation.label} | {' | '.join(cells.values())} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)
