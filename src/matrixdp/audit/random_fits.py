"""Random fits of every estimator, each with data and a neighbour to replay it on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.adaptive import private_moment, private_scales
from matrixdp.audit.people import give_rows
from matrixdp.audit.random_designs import Rng, random_neighbours
from matrixdp.domain import Bounds
from matrixdp.domain.person import Person
from matrixdp.estimators import (
    PrivateCovariance,
    PrivateEstimator,
    PrivateKernelRidge,
    PrivateLinearDiscriminant,
    PrivateLinearRegression,
    PrivatePCA,
    PrivateRidge,
    PrivateScaler,
)
from matrixdp.estimators.inputs import parse_bounds
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.release.directions import principal_directions
from matrixdp.types import Floats


@dataclass(frozen=True)
class FitCase:
    """A fit, and two neighbouring data sets."""

    fit: Callable[[Floats], Any]
    data: Floats
    neighbour: Floats


ESTIMATORS = {
    estimator.__name__: estimator
    for estimator in (
        PrivateCovariance,
        PrivatePCA,
        PrivateScaler,
        PrivateLinearRegression,
        PrivateRidge,
        PrivateKernelRidge,
        PrivateLinearDiscriminant,
    )
}
FITS = (*ESTIMATORS, "private_moment", "private_scales", "principal_directions")


def estimator_case(estimator: PrivateEstimator, rng: Rng) -> FitCase:
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
    lower, upper = (np.concatenate([getattr(box, side) for box in bounds]) for side in ("lower", "upper"))
    data, neighbour = _random_data(rng, lower.size, Neighbours.parse(options["neighbours"]), options["records"])
    middle, half, m = (lower + upper) / 2, (upper - lower) / 2, bounds[0].size

    def fit(rows: Floats) -> Any:
        if "classes" in options:
            labels = np.sort(options["classes"])[[0, -1]]
            return type(estimator)(**options).fit(rows[:, :m], labels[(rows[:, m] > 0).astype(int)])
        columns = [rows[:, :m], *([rows[:, m] if rows.shape[1] == m + 1 else rows[:, m:]] if len(bounds) > 1 else [])]
        return type(estimator)(**options).fit(*columns)

    return FitCase(fit, middle + half * data, middle + half * neighbour)


def random_fit(name: str, rng: Rng) -> FitCase:
    """A fit of `FITS` with a random budget, on random neighbouring data sets."""
    epsilon, delta = float(10 ** rng.uniform(-1, 1.5)), float(10 ** rng.uniform(-9, -2))
    neighbours = Neighbours.REPLACE if name == "principal_directions" else random_neighbours(rng)
    public = None if neighbours is Neighbours.REPLACE else int(rng.integers(1, 150))
    options: dict[str, Any] = {"neighbours": str(neighbours), "records": public}
    if name in ESTIMATORS:
        options |= {"epsilon": epsilon, "delta": delta, "bounds": (-1, 1)}
        if "target_bounds" in ESTIMATORS[name]().get_params():
            options["target_bounds"] = (-1, 1)
        if name == "PrivateKernelRidge":
            options["n_components"] = 5
        return estimator_case(ESTIMATORS[name](**options), rng)
    size, privacy = int(rng.integers(1, 5)), Privacy(epsilon, delta)
    bounds = Bounds([-1] * size, [1] * size)
    pair = _random_data(rng, size, neighbours, public)
    function: Any = {"private_moment": private_moment, "private_scales": private_scales}.get(name, _directions)
    if name == "principal_directions":
        options = {"records": len(pair[0])}
    if name == "private_moment":
        options["aim"] = str(rng.choice(["covariance", "correlation", "components", "regression"]))
        options["targets"] = min(1, size - 1)
    if rng.random() < 0.5:
        pair, options = _give_people(rng, pair, options, once=name == "private_scales")
    return FitCase(lambda data: _spent(function(data, bounds, privacy, **options)), *pair)


def _directions(*arguments: Any, **options: Any) -> Any:
    return principal_directions(*arguments, **options).release


def _give_people(rng: Rng, pair: tuple[Floats, Floats], options: Any, *, once: bool) -> tuple[Any, dict[str, Any]]:
    """Data of people with several rows, and options for a fit in which each person, or each row, counts once."""
    rows = 0 if once else int(rng.choice([0, 0, 1, 3, 20]))
    if not rows:
        return give_rows(rng, *pair), {**options, "person": "person"}
    most = 2 * len(pair[0]) + rows  # that count
    records = int(rng.integers(most // 2 + 1, 2 * most))
    return give_rows(rng, *pair), {**options, "person": Person("person", rows=rows), "records": records}


def _spent(result: Any) -> Any:
    """What names its guarantee: the result itself, or its budget."""
    return getattr(result, "spending", result)


def _random_data(rng: Rng, size: int, neighbours: Neighbours, public: int | None) -> tuple[Floats, Floats]:
    """Two neighbouring data sets in [-1, 1]^size, and beyond."""
    rows = int(rng.integers(2, 150 if public is None else 2 * public + 1))
    data = rng.normal(0, 10 ** rng.uniform(-2, 0), (rows, size)) + rng.uniform(-0.5, 0.5, size) * (rng.random() < 0.5)
    odd = rng.random(rows) < rng.choice([0.0, 0.1, 1.0])
    for i in {0, *np.flatnonzero(odd).tolist()}:
        data[i] = _random_record(rng, size)
    if neighbours is Neighbours.ADD_REMOVE:
        return data, data[1:]
    return data, np.vstack([_random_record(rng, size), data[1:]])


def _random_record(rng: Rng, size: int) -> Floats:
    """A corner, the midpoint, a point within or one far outside."""
    kind = rng.integers(0, 5)
    corner = rng.choice([-1.0, 1.0], size)
    return np.asarray([corner, corner, np.zeros(size), rng.uniform(-1, 1, size), 1e6 * corner][kind])
