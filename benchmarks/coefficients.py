"""How often intervals of regression coefficients cover those without privacy, and what missing values cost.

``python -m benchmarks.coefficients [--trials 20]`` prints two Markdown tables: the share of all 95% intervals that
cover the coefficient of least squares on the same records, clipped to their bounds; and the share of variance that a
regression on a table explains, with numbers that are never missing and with the same numbers described as possibly
missing.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

import matrixdp as mdp
from benchmarks.accuracy_data import regression_sets
from matrixdp.estimators import PrivateLinearRegression

EPSILONS = (0.5, 1.0, 3.0, 10.0)


def coverage(trials: int) -> None:
    """Print the share of covered coefficients for each data set and epsilon."""
    head("data")
    for data in regression_sets():
        records = np.clip(data.records, data.bounds.lower, data.bounds.upper)
        X, y, bounds = records[:, :-1], records[:, -1], data.bounds
        exact = LinearRegression().fit(X, y).coef_
        options = {
            "bounds": (bounds.lower[:-1], bounds.upper[:-1]),
            "target_bounds": (bounds.lower[-1], bounds.upper[-1]),
        }
        cells = []
        for epsilon in EPSILONS:
            covered = []
            for seed in range(trials):
                model = PrivateLinearRegression(epsilon=epsilon, random_state=seed, simulation=True, **options)
                low, high = model.fit(X, y).coef_interval()
                covered.append((low <= exact) & (exact <= high))
            cells.append(f"{np.mean(covered):.3f}")
        print(f"| {data.label} | {' | '.join(cells)} |", flush=True)


def explained(trials: int) -> None:
    """Print the share of variance that a regression on a table explains."""
    rng = np.random.default_rng(0)
    n = 6000
    age, ward, smoker = rng.normal(50, 12, n), rng.choice(list("abcdefgh"), n), rng.random(n) < 0.3
    bmi = 20 + 0.1 * age + 2 * smoker + rng.normal(0, 3, n)
    y = 3 + 0.5 * age - bmi + 4 * (ward == "b") - 2 * smoker + rng.normal(0, 5, n)
    table = pd.DataFrame({"age": age, "bmi": bmi, "ward": ward, "smoker": smoker})
    head("table of 6,000 records")
    for what, missing in (("never missing", False), ("may be missing", True)):
        numbers = [mdp.Number("age", 0, 120), mdp.Number("bmi", 10, 60, missing=missing)]
        columns = mdp.Columns([*numbers, mdp.Category("ward", list("abcdefgh")), mdp.YesNo("smoker")])
        options = {"bounds": columns, "target_bounds": (-40, 80), "simulation": True}
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
    parser.add_argument("--trials", type=int, default=20)
    asked = parser.parse_args()
    coverage(asked.trials)
    print()
    explained(asked.trials)


if __name__ == "__main__":
    main()
