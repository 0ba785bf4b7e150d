"""Accuracy of private classifiers on real data: discriminant analysis, and diffprivlib's where it can be imported.

``python -m benchmarks.classification [--trials 20] [--data iris ...]`` prints a Markdown table: test accuracy, a fifth
of the records held out, mean and half a 95% interval over the splits. Bounds are ranges rounded outwards to powers of
ten, the same for all. diffprivlib's classifiers are epsilon-private (delta 0), ours (epsilon, 1e-6)-private. Its
logistic regression gets features scaled to [-1, 1], and its naive Bayes the bounds. CTG is read from the folder that
MATRIXDP_DATA names.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split

from benchmarks.accuracy_data import DataSet, rounded
from benchmarks.sizes import few, size
from matrixdp import Bounds
from matrixdp.estimators import PrivateLinearDiscriminant
from matrixdp.types import Floats

EPSILONS = (0.1, 0.3, 1.0, 3.0)
DELTA = 1e-6
OURS = "PrivateLinearDiscriminant"
Fit = Callable[[DataSet, Floats, Floats, float, int], Any]


def classification_sets() -> dict[str, tuple[DataSet, Floats]]:
    """Features and labels."""
    found = {}
    for name, load in {"iris": datasets.load_iris, "wine": datasets.load_wine}.items():
        found[name] = rounded(name, load().data), load().target
    cancer, digits = datasets.load_breast_cancer(), datasets.load_digits()
    found["breast cancer"] = rounded("breast cancer", cancer.data), cancer.target
    found["digits"] = DataSet("digits", digits.data, Bounds(np.zeros(64), np.full(64, 16.0))), digits.target
    path = Path(os.environ.get("MATRIXDP_DATA") or ".") / "ctg.csv"
    if path.exists():
        table = np.genfromtxt(path, delimiter=",", skip_header=1)
        found["CTG"] = rounded("CTG", table[:, :21]), table[:, 21].astype(int)
    return found


def classifiers() -> dict[str, Fit]:
    """Functions of data, training features and labels, epsilon and seed that return a fitted classifier."""
    found: dict[str, Fit] = {OURS: _ours}
    try:
        from diffprivlib import models
    except ImportError:
        return found
    found["diffprivlib GaussianNB"] = lambda data, X, y, epsilon, seed: models.GaussianNB(
        epsilon=epsilon, bounds=(data.bounds.lower, data.bounds.upper), random_state=seed
    ).fit(X, y)
    found["diffprivlib LogisticRegression"] = lambda data, X, y, epsilon, seed: _Scaled(
        data.bounds,
        models.LogisticRegression(epsilon=epsilon, data_norm=np.sqrt(X.shape[1]), random_state=seed),
    ).fit(X, y)
    return found


def _ours(data: DataSet, X: Floats, y: Floats, epsilon: float, seed: int) -> Any:
    options: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": DELTA,
        "bounds": data.bounds,
        "random_state": seed,
        "simulation": True,
    }
    return PrivateLinearDiscriminant(**options).fit(X, y)


class _Scaled:
    """A classifier of features scaled to [-1, 1]."""

    def __init__(self, bounds: Bounds, model: Any) -> None:
        self._bounds, self._model = bounds, model

    def _scale(self, X: Floats) -> Floats:
        return np.asarray(np.clip(self._bounds.centre(X) / self._bounds.halfwidths, -1, 1))

    def fit(self, X: Floats, y: Floats) -> _Scaled:
        self._model.fit(self._scale(X), y)
        return self

    def score(self, X: Floats, y: Floats) -> float:
        return float(self._model.score(self._scale(X), y))


def compare(data: DataSet, labels: Floats, trials: int) -> list[list[str]]:
    """Rows of the table: classifier, and its accuracy at each epsilon."""
    splits = [
        train_test_split(data.records, labels, test_size=0.2, random_state=seed, stratify=labels)
        for seed in range(trials)
    ]
    rows = []
    for name, fit in classifiers().items():
        cells = []
        for epsilon in EPSILONS:
            scores = [fit(data, X, y, epsilon, seed).score(T, t) for seed, (X, T, y, t) in enumerate(splits)]
            cells.append(f"{np.mean(scores):.3f} ± {1.96 * np.std(scores) / np.sqrt(trials):.3f}")
        rows.append([name, *cells])
    exact = np.mean([LinearDiscriminantAnalysis().fit(X, y).score(T, t) for X, T, y, t in splits])
    largest = np.mean([np.mean(t == np.bincount(y).argmax()) for _, _, y, t in splits])
    rows.append(["without privacy", *[f"{exact:.3f}"] * len(EPSILONS)])
    rows.append(["largest class", *[f"{largest:.3f}"] * len(EPSILONS)])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=size(20, 1))
    parser.add_argument("--data", nargs="*", help="names of data sets; by default all")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"| data | classifier | {' | '.join(f'epsilon {epsilon:g}' for epsilon in EPSILONS)} |")
    print(f"| --- | --- | {' | '.join('---' for _ in EPSILONS)} |")
    for name, (data, labels) in few([*classification_sets().items()]):
        if not asked.data or name in asked.data:
            for row in compare(data, labels, asked.trials):
                print(f"| {data.label} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
