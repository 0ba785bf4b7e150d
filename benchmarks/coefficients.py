"""How often intervals of regression coefficients cover those without privacy, and what missing values cost.

``python -m benchmarks.coefficients [--trials 20]`` prints three Markdown tables: the share of all 95% intervals that
cover the coefficient of least squares on the same records, clipped to their bounds, for `PrivateLinearRegression`; the
same for nearly collinear features, and for both methods of `release_table` as well, with their noise alone; and
the share of variance that a regression on a table explains, with numbers that are never missing and with the same
numbers described as possibly missing. Where there is no interval, none is counted.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LinearRegression

import matrixdp as mdp
from benchmarks.accuracy_data import DataSet, regression_sets, rounded
from benchmarks.sizes import few, size
from matrixdp.estimators import PrivateLinearRegression
from matrixdp.types import Floats

EPSILONS = size((0.5, 1.0, 3.0, 10.0), (1.0,))
NORMAL = 1.96


def collinear_sets() -> list[DataSet]:
    """Data with nearly collinear features, the target last."""
    rng = np.random.default_rng(7)
    normal = rng.standard_normal
    a, b, c = normal((3, 5000))
    pairs = np.column_stack([a, a + 0.05 * normal(5000), b, b + 0.2 * normal(5000), c, a - b + c + normal(5000)])
    x = rng.uniform(0, 1, 10_000)
    powers = np.column_stack([x, x**2, x**3, 1 - 3 * x + 2 * x**3 + 0.2 * normal(10_000)])
    cancer = load_breast_cancer()
    return [
        rounded("nearly equal pairs", pairs),
        rounded("powers", powers),
        rounded("breast cancer, means", np.column_stack([cancer.data[:, :10], cancer.target])),
    ]


def by_estimator(data: DataSet, epsilon: float, seed: int) -> tuple[Floats, Floats]:
    """Coefficients and standard deviations of `PrivateLinearRegression`."""
    records, bounds = data.records, data.bounds
    model = PrivateLinearRegression(
        epsilon=epsilon,
        random_state=seed,
        simulation=True,
        bounds=(bounds.lower[:-1], bounds.upper[:-1]),
        target_bounds=(bounds.lower[-1], bounds.upper[-1]),
    ).fit(records[:, :-1], records[:, -1])
    return model.coef_, model.coef_std_


def by_release(method: str) -> Callable[[DataSet, float, int], tuple[Floats, Floats]]:
    """Coefficients and standard deviations of the noise of a release with this method."""

    def fit(data: DataSet, epsilon: float, seed: int) -> tuple[Floats, Floats]:
        names = [f"x{k}" for k in range(data.bounds.size)]
        bounds = mdp.Bounds(data.bounds.lower, data.bounds.upper, names=names)
        frame, privacy = pd.DataFrame(data.records, columns=names), mdp.Privacy(epsilon, 1e-6)
        noise: dict[str, Any] = {"stream": mdp.Stream(seed=seed), "simulation": True}
        released = mdp.release_table(frame, bounds, privacy, question="regression", method=method, **noise)
        found = released.regression(names[-1])
        return found.coefficients[1:], found.noise_std[1:]

    return fit


def coverage(data_sets: list[DataSet], fits: dict[str, Callable[..., tuple[Floats, Floats]]], trials: int) -> None:
    """Print the share of covered coefficients for each data set, method and epsilon."""
    head("data")
    for data in data_sets:
        records = np.clip(data.records, data.bounds.lower, data.bounds.upper)
        exact = LinearRegression().fit(records[:, :-1], records[:, -1]).coef_
        for name, fit in fits.items():
            cells = []
            for epsilon in EPSILONS:
                found = [fit(data, epsilon, seed) for seed in range(trials)]
                covered = [np.abs(value - exact)[std >= 0] <= NORMAL * std[std >= 0] for value, std in found]
                given = np.concatenate(covered)
                cells.append(f"{np.mean(given):.3f}" if given.size else "none")
            print(f"| {data.label}{name} | {' | '.join(cells)} |", flush=True)


def explained(trials: int) -> None:
    """Print the share of variance that a regression on a table explains."""
    rng = np.random.default_rng(0)
    n = size(6000, 200)
    age, ward, smoker = rng.normal(50, 12, n), rng.choice(list("abcdefgh"), n), rng.random(n) < 0.3
    bmi = 20 + 0.1 * age + 2 * smoker + rng.normal(0, 3, n)
    y = 3 + 0.5 * age - bmi + 4 * (ward == "b") - 2 * smoker + rng.normal(0, 5, n)
    table = pd.DataFrame({"age": age, "bmi": bmi, "ward": ward, "smoker": smoker})
    head("table of 6,000 records")
    for what, missing in (("never missing", False), ("may be missing", True)):
        numbers = [mdp.Number("age", 0, 120), mdp.Number("bmi", 10, 60, missing=missing)]
        columns = mdp.Columns([*numbers, mdp.Category("ward", list("abcdefgh")), mdp.YesNo("smoker")])
        options: dict[str, Any] = {"bounds": columns, "target_bounds": (-40, 80), "simulation": True}
        cells = []
        for epsilon in EPSILONS:
            models = (PrivateLinearRegression(epsilon=epsilon, random_state=k, **options) for k in range(trials))
            cells.append(f"{np.mean([model.fit(table, y).score(table, y) for model in models]):.3f}")
        print(f"| {what} | {' | '.join(cells)} |", flush=True)
    wide = pd.get_dummies(table)
    print(
        f"| without privacy | {' | '.join([f'{LinearRegression().fit(wide, y).score(wide, y):.3f}'] * len(EPSILONS))} |"
    )


def head(what: str) -> None:
    print(f"| {what} | {' | '.join(f'epsilon {epsilon:g}' for epsilon in EPSILONS)} |")
    print(f"| --- | {' | '.join('---' for _ in EPSILONS)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=size(20, 1))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    coverage(few(regression_sets()), {"": by_estimator}, asked.trials)
    print()
    methods = {", estimator": by_estimator, ", adaptive": by_release("adaptive"), ", plain": by_release("plain")}
    coverage(few(collinear_sets()), methods, asked.trials)
    print()
    explained(asked.trials)


if __name__ == "__main__":
    main()
