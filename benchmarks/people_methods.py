"""Tables with several rows a person: an adaptive fit beside a plain release at equal privacy for people.

For covariances (in halves of the width of their bounds) and correlations, each released with its own aim: the root mean
square error of all entries against what the release estimates, and how many of the nominal 95% intervals of the
adaptive fit cover it. Numbers that are not shown, since noise hides them, are taken for zero, and have no interval.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd

import matrixdp as mdp
from benchmarks.people import PRIVACY, answers, tables
from benchmarks.sizes import few, size

TRIALS = size(10, 1)
AIMS = ("covariance", "correlation")


def truth(frame: pd.DataFrame, bounds: mdp.Bounds, person: mdp.Person) -> dict[str, Any]:
    """The covariance and correlation without noise."""
    query = mdp.Moments(bounds, len(frame), person=person, neighbours=mdp.Neighbours.ADD_REMOVE)
    moment = query.evaluate(frame, clip=True, missing="error")
    moment /= moment[0, 0]
    covariance = moment[1:, 1:] - np.multiply.outer(moment[0, 1:], moment[0, 1:])
    size = np.sqrt(np.diagonal(covariance))
    return {"covariance": covariance, "correlation": covariance / np.multiply.outer(size, size)}


def measure(
    frame: pd.DataFrame, bounds: mdp.Bounds, person: mdp.Person, aim: str, trials: int, seen: int
) -> dict[str, float]:
    """Root mean square errors of both methods, and the coverage of the first `seen` adaptive fits."""
    counted = int(np.minimum(frame.groupby(person.column).size(), person.most).sum())
    exact = truth(frame, bounds, person)[aim]
    lower = np.tril_indices(bounds.size, -1 if aim == "correlation" else 0)
    unit = np.multiply.outer(bounds.halfwidths, bounds.halfwidths) if aim == "covariance" else 1.0
    squares: dict[str, list[float]] = {"plain": [], "adaptive": []}
    covered: list[Any] = []
    for method, found in squares.items():
        for seed in range(trials):
            options: dict[str, Any] = {
                "question": aim,
                "method": method,
                "person": person,
                "neighbours": "add-remove",
                "records": counted,
            }
            release: Any = mdp.release_table(
                frame, bounds, PRIVACY, **options, stream=mdp.Stream(seed=seed), simulation=True
            )
            adaptive = method == "adaptive"  # whose error bars take long
            matrix = release.moment.covariance if adaptive else np.nan_to_num(release.covariance().measured)
            if aim == "correlation":
                matrix = correlate(matrix, bounds)
            found.append(float(np.mean(np.square((matrix - exact) / unit)[lower])))
            if adaptive and seed < seen:
                shown = getattr(release, aim)()
                with np.errstate(invalid="ignore"):
                    inside = np.abs(shown.value - exact) <= 1.96 * shown.std
                covered.extend(inside[lower][shown.reliable[lower]])
    errors = {name: float(np.sqrt(np.mean(values))) for name, values in squares.items()}
    return {**errors, "covered": float(np.mean(covered)) if covered else float("nan")}


def correlate(covariance: Any, bounds: mdp.Bounds) -> Any:
    """Correlations by the same post-processing for both methods."""
    moment = np.zeros((bounds.size + 1, bounds.size + 1))
    moment[0, 0], moment[1:, 1:] = 1.0, covariance
    found = np.eye(bounds.size)
    found[np.triu_indices(bounds.size, 1)] = answers(moment, bounds.halfwidths)[1]
    return found + np.triu(found, 1).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--covered", type=int, default=5, help="fits of each kind whose error bars are computed")
    parser.add_argument("--only", default="", help="a part of the name of a table")
    asked = parser.parse_args()
    print(f"epsilon {PRIVACY.epsilon:g}, delta {PRIVACY.delta:g}, one person added or removed; {asked.trials} releases")
    print(f"{'table':<36}{'counts':<10}{'of':<13}{'plain':>9}{'adaptive':>10}{'ratio':>7}{'covered':>9}")
    for name, (frame, bounds, most) in few([*tables().items()]):
        if asked.only not in name:
            continue
        for person in (mdp.Person("id"), mdp.Person("id", rows=most)):
            for aim in AIMS:
                found = measure(frame, bounds, person, aim, asked.trials, asked.covered)
                counts = "people" if person.rows is None else f"rows={most}"
                cells = f"{found['plain']:>9.3g}{found['adaptive']:>10.3g}{found['adaptive'] / found['plain']:>7.2f}"
                print(f"{name:<36}{counts:<10}{aim:<13}{cells}{found['covered']:>9.0%}", flush=True)


if __name__ == "__main__":
    main()
