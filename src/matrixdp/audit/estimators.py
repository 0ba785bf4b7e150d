"""Replays of an estimator on random neighbouring data sets."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from matrixdp.audit.domains import Rng, draw_box, draw_people
from matrixdp.audit.replay import Tally, replay
from matrixdp.domain import Bounds
from matrixdp.estimators.inputs import parse_bounds
from matrixdp.privacy import Neighbours
from matrixdp.types import Floats

if TYPE_CHECKING:
    from matrixdp.estimators import PrivateEstimator

FitCase = tuple[Callable[[Any], Any], Any, Any]  # a fit, and two neighbouring data sets


def replay_estimator(estimator: PrivateEstimator, *, replays: int, seconds: float) -> Tally:
    """Replay fits of an estimator with its parameters, until `replays` were run or time is up, but at least one."""
    tally, end = Tally(), time.monotonic() + seconds
    for seed in range(max(1, replays)):
        tally.add(replay(*draw_fit(estimator, np.random.default_rng(seed)), seed=seed), seed)
        if time.monotonic() > end:
            break
    return tally


def draw_fit(estimator: PrivateEstimator, rng: Rng) -> FitCase:
    """An estimator with its parameters, on random neighbouring data sets within its bounds."""
    options = estimator.get_params(deep=False)
    features = options["bounds"]
    bounds = [features if isinstance(features, Bounds) else parse_bounds(features, int(rng.integers(1, 5)), "bounds")]
    if "target_bounds" in options:
        target = options["target_bounds"]
        bounds.append(target if isinstance(target, Bounds) else parse_bounds(target, 1, "target_bounds"))
    if "classes" in options:  # records have one number more, which decides on their class
        options["classes"] = [0, 1] if options["classes"] is None else options["classes"]
        bounds.append(Bounds([-1.0], [1.0]))
    lower, upper = (np.concatenate([getattr(one, side) for one in bounds]) for side in ("lower", "upper"))
    box, m = Bounds(lower, upper), bounds[0].size

    def fit(rows: Floats) -> Any:
        if "classes" in options:
            labels = np.sort(options["classes"])[[0, -1]]
            return type(estimator)(**options).fit(rows[:, :m], labels[(rows[:, m] > 0).astype(int)])
        columns = [rows[:, :m], *([rows[:, m] if rows.shape[1] == m + 1 else rows[:, m:]] if len(bounds) > 1 else [])]
        return type(estimator)(**options).fit(*columns)

    pair = draw_pair(rng, box, Neighbours.parse(options["neighbours"]), draw_count(rng, options["records"]))
    return fit, *pair


def draw_count(rng: Rng, public: int | None) -> int:
    """A number of records; `public` is the one that a fit is told."""
    return int(rng.integers(2, 150 if public is None else 2 * public + 1))


def draw_pair(rng: Rng, bounds: Bounds, neighbours: Neighbours, count: int, *, people: bool = False) -> tuple[Any, Any]:
    """Two neighbouring data sets in bounds, and beyond; where rows belong to people, one has any number of them."""
    others: Any = ()
    while not len(others):  # a fit needs a record
        family = draw_box(bounds, count, neighbours, rng)
        others = family.build(None)
    if people:
        family = draw_people(rng, family.records, others, clique=family.clique, twice=0.3)
    first, second = (family.records[int(i)] for i in rng.integers(0, len(family.records), 2))
    return family.build(first), family.build(second if family.clique else None)
