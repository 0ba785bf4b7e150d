"""What each setting of the adaptive fits is worth: its error with a neutral value, over that with its own.

``python -m benchmarks.accuracy --ablation [--trials 20] [--first 500000]``

Each setting is replaced by itself, for the aims that it affects, with the same seeds. A cell is a data set with an
epsilon; the ratio is the geometric mean over all cells. Seeds and half of the data sets had no part in choosing the
settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.accuracy_data import DataSet, ablation_moment_sets, ablation_regression_sets
from matrixdp import Privacy, Stream
from matrixdp.adaptive import PrivateMoment, principal_components, private_moment, solve_regression
from matrixdp.adaptive.settings import SETTINGS
from matrixdp.types import Floats

DELTA = 1e-6
EPSILONS = {"covariance": (0.1, 0.5, 1.0, 3.0), "components": (0.5, 1.0, 3.0), "regression": (0.5, 1.0, 3.0)}
TASKS = {"covariance": ("covariance", "centred"), "components": ("components",), "regression": ("regression",)}
Errors = dict[str, Floats]  # a task's errors, of shape (data sets, epsilons, trials)


@dataclass(frozen=True)
class Ablation:
    """One setting, or a few that only matter together, with neutral values for some aims."""

    name: str
    neutral: str
    changes: dict[str, dict[str, Any]]


@contextmanager
def substituted(aim: str, changes: dict[str, Any]) -> Iterator[None]:
    """Fits with other settings than the library's; for measurements only."""
    own = SETTINGS[aim]
    SETTINGS[aim] = replace(own, **changes)
    try:
        yield
    finally:
        SETTINGS[aim] = own


def errors(aim: str, first: int, trials: int, changes: dict[str, Any] | None = None) -> Errors:
    """Errors of each task that an aim serves, in every cell, for each seed."""
    sets = ablation_regression_sets() if aim == "regression" else ablation_moment_sets()
    seeds = range(first, first + trials)
    with substituted(aim, changes or {}):
        found = np.array(
            [[[_fit_error(aim, data, epsilon, seed) for seed in seeds] for epsilon in EPSILONS[aim]] for data in sets]
        )
    return {task: found[..., i] for i, task in enumerate(TASKS[aim])}


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
