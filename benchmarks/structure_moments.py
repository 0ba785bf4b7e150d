"""What structured noise is worth for moments: three Markdown tables.

``python -m benchmarks.structure_moments [--trials 200]``

1. Total squared error of a second moment over the least that Gaussian noise of any covariance can have.
2. Covariances from `Moments`, before and after. "Before" is noise with one covariance on both sides, and the nearest
   positive semidefinite matrix in Frobenius norm. "After" is the default noise, and the nearest matrix in the norm of
   the noise, which the components are of. Regressions use the nearest matrix in Frobenius norm and the same ridge.
3. What the share of the mean of `Moments.for_covariance` changes: errors over those with the default share.

The box is the data's range, widened by a tenth of it on either side (for a benchmark on public data only). Errors are
in units in which the box is ``[-1, 1]^d``. Simulated records have two or three factors.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import datasets

from benchmarks.sizes import size
from matrixdp import Bounds, Design, Moments, Privacy, SecondMoment, Stream, make_design
from matrixdp.answers import nearest_psd
from matrixdp.answers.moments import covariance
from matrixdp.mechanisms.mechanism import add_noise, prepare
from matrixdp.types import Floats

DELTA = 1e-6
SIZES = size((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 21, 30, 31, 40, 49, 50), (1, 2))
EPSILONS = size((1.0, 3.0), (1.0,))
_SHAPES = size(((2000, 2), (5000, 5), (5000, 10), (20000, 20), (100000, 50)), ((200, 2),))
Row = dict[str, Any]


def run() -> list[Row]:
    """Rows for ``python -m benchmarks``: the total squared error over the least possible one."""
    rows: list[Row] = []
    for features in SIZES:
        before, after = excess(features)
        rows.append(
            {
                "what": f"second moment of {features} features, total squared error over the least possible",
                "ours": after,
                "peer": before,
                "ratio": before / after,
                "note": "peer: noise with one covariance on both sides",
            }
        )
    return rows


def excess(features: int) -> tuple[float, float]:
    """Total squared error over the least possible one, without and with structured noise."""
    query = SecondMoment(Bounds([-1] * features, [1] * features), records=1000)
    designs = [make_design(query, Privacy(1, DELTA), structured=structured) for structured in (False, True)]
    before, after = (design.excess or np.nan for design in designs)
    return before, after


@dataclass(frozen=True, eq=False)
class Truth:
    """Records in ``[-1, 1]^d`` and what is computed from them without noise."""

    name: str
    records: Floats

    @property
    def covariance(self) -> Floats:
        """About the mean."""
        return np.atleast_2d(np.cov(self.records.T, bias=True))


def data_sets() -> Iterator[Truth]:
    """Three public data sets, and simulated records."""
    diabetes = datasets.load_diabetes(scaled=False)
    yield _in_box("diabetes", np.column_stack([diabetes.data, diabetes.target]))
    yield _in_box("breast cancer", datasets.load_breast_cancer().data)
    yield _in_box("wine", datasets.load_wine().data)
    for records, features in _SHAPES:
        rng = np.random.default_rng(features)
        factors = 2 if features < 10 else 3
        loadings = rng.standard_normal((factors, features))
        values = rng.standard_normal((records, factors)) @ loadings + 0.5 * rng.standard_normal((records, features))
        yield _in_box("simulated", values)


def _in_box(name: str, records: Floats) -> Truth:
    low, high = records.min(axis=0), records.max(axis=0)
    middle, half = (low + high) / 2, 0.6 * (high - low)
    return Truth(f"{name} {records.shape[0]}x{records.shape[1]}", (records - middle) / half)


class Trials:
    """Releases of one design, and the errors of what follows from them."""

    def __init__(self, truth: Truth, design: Design, *, after: bool) -> None:
        self.truth, self.design, self.after = truth, design, after
        self._prepared = prepare(design, truth.records, clip=True, missing="error")
        size = truth.covariance.shape[0]
        self._ridge = float(design.std[-1, 1]) * np.sqrt(2 * size)

    def errors(self, seed: int) -> list[float]:
        """Of variances, share of negative variances, Frobenius errors, variance lost by components, regression."""
        truth = self.truth.covariance
        noisy = self.design.query.finish(add_noise(self.design, self._prepared, Stream(seed=seed)))
        estimate = covariance(noisy, self.design)
        found = estimate.measured
        assert found is not None
        near = estimate.nearest_psd() if self.after else nearest_psd(found)
        variances, true = np.diagonal(found), np.diagonal(truth)
        return [
            float(np.linalg.norm(variances - true) / np.linalg.norm(true)),
            float(np.mean(variances < 0)),
            *(float(np.linalg.norm(one - truth) / np.linalg.norm(truth)) for one in (found, near)),
            self._lost(near),
            self._regression(noisy[0, 1:], nearest_psd(found)),
        ]

    def _lost(self, found: Floats) -> float:
        """Share of the variance that three components lose (one of two features)."""
        truth = self.truth.covariance
        count = min(3, len(truth) - 1)
        vectors = np.linalg.eigh(found)[1][:, -count:]
        best = np.linalg.eigvalsh(truth)[-count:].sum()
        return float((best - np.trace(vectors.T @ truth @ vectors)) / np.trace(truth))

    def _regression(self, mean: Floats, found: Floats) -> float:
        """Error of a ridge regression of the last feature on the others, over its standard deviation."""
        records = self.truth.records
        slope = np.linalg.solve(found[:-1, :-1] + self._ridge * np.eye(len(found) - 1), found[:-1, -1])
        guess = np.clip(mean[-1] + (records[:, :-1] - mean[:-1]) @ slope, -1, 1)
        return float(np.sqrt(np.mean((guess - records[:, -1]) ** 2)) / records[:, -1].std())


COLUMNS = ("variances", "below zero", "Frobenius", "nearest psd", "PCA-3 deficit", "regression")


def compare(trials: int) -> tuple[list[str], list[str]]:
    """Tables 2 and 3, printed row by row as well."""
    header = [f"| data | epsilon | {' | '.join(COLUMNS)} |", "| --- " * (len(COLUMNS) + 2) + "|"]
    tables = [*header], [*header]
    for truth in data_sets():
        records, features = truth.records.shape
        bounds = Bounds([-1] * features, [1] * features)
        for epsilon in EPSILONS:
            privacy = Privacy(epsilon, DELTA)
            designs = {
                "before": make_design(Moments(bounds, records), privacy, structured=False),
                "after": make_design(Moments(bounds, records), privacy),
                "share": make_design(Moments.for_covariance(bounds, records), privacy),
            }
            means = {
                name: np.mean([trial.errors(seed) for seed in range(trials)], axis=0)
                for name, design in designs.items()
                for trial in [Trials(truth, design, after=name != "before")]
            }
            both = zip(means["before"], means["after"], strict=True)
            label = f"| {truth.name} | {epsilon:g} | "
            tables[0].append(label + " | ".join(f"{old:.3g} -> {new:.3g}" for old, new in both) + " |")
            ratios = means["share"] / np.where(means["after"] > 0, means["after"], np.nan)
            tables[1].append(label + " | ".join(f"{x:.2f}" if np.isfinite(x) else "-" for x in ratios) + " |")
            print(tables[0][-1], flush=True)
    return tables


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=size(200, 2))
    trials = parser.parse_args().trials
    found = [excess(features) for features in SIZES]
    print("\nTotal squared error of a second moment over the least of Gaussian noise of any covariance\n")
    print(f"| features | {' | '.join(map(str, SIZES))} |")
    print("| --- " * (len(SIZES) + 1) + "|")
    print(f"| one covariance on both sides | {' | '.join(f'{before:.3f}' for before, _ in found)} |")
    print(f"| with squares | {' | '.join(f'{after:.4f}' for _, after in found)} |")
    print()
    after, share = compare(trials)
    print(f"\nCovariances from moments, delta {DELTA:g}, means of {trials} trials, before -> after\n")
    print("\n".join(after))
    print("\nErrors with the share of `Moments.for_covariance` over those with the default share\n")
    print("\n".join(share))


if __name__ == "__main__":
    main()
