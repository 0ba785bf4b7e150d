"""Public data sets for the accuracy benchmarks, each with public bounds."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from sklearn import datasets

from matrixdp import Bounds
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class DataSet:
    """Records of shape (n, m) and their public box; for regressions the last feature is the target."""

    name: str
    records: Floats
    bounds: Bounds

    @cached_property
    def scaled(self) -> Floats:
        """Records in [-1, 1]."""
        return np.asarray(np.clip(self.bounds.centre(self.records) / self.bounds.halfwidths, -1, 1))

    @property
    def unit(self) -> Bounds:
        """Bounds of the scaled records."""
        return Bounds(-np.ones(self.bounds.size), np.ones(self.bounds.size))

    @property
    def label(self) -> str:
        """Name and size."""
        return f"{self.name} {self.records.shape[0]}x{self.records.shape[1]}"


def moment_sets() -> list[DataSet]:
    """Data for covariances and principal components."""
    diabetes = datasets.load_diabetes(scaled=False)
    return [
        rounded("breast cancer", datasets.load_breast_cancer().data),
        rounded("diabetes", np.column_stack([diabetes.data, diabetes.target])),
        *_paper([("CTG", "ctg", slice(0, 21)), ("liver", "liver", slice(0, 6)), ("movement", "movement", slice(2, 6))]),
        rounded("wine", datasets.load_wine().data),
        DataSet("digits", datasets.load_digits().data, Bounds(np.zeros(64), np.full(64, 16.0))),
        _simulated(),
    ]


def regression_sets() -> list[DataSet]:
    """Data for regressions, the target last."""
    diabetes = datasets.load_diabetes(scaled=False)
    cancer = datasets.load_breast_cancer()
    rng = np.random.default_rng(3)
    features = rng.standard_normal((3000, 15))
    target = features @ rng.standard_normal(15) * 0.5 + rng.standard_normal(3000)
    return [
        rounded("diabetes", np.column_stack([diabetes.data, diabetes.target])),
        rounded("breast cancer", np.column_stack([cancer.data, cancer.target])),
        *_paper([("CTG", "ctg", slice(0, 22)), ("liver", "liver", slice(0, 6))]),
        rounded("linear", np.column_stack([features, target])),
    ]


def ablation_moment_sets() -> list[DataSet]:
    """Data for covariances and components of the ablation: the sets of the comparison, and simulated ones."""
    return [*moment_sets(), *(in_box(*family) for family in _families())]


def ablation_regression_sets() -> list[DataSet]:
    """Data for regressions of the ablation: the sets of the comparison, and simulated ones, the target last."""
    rng = np.random.default_rng(5)
    simulated = []
    for name, records, width in _families():
        size = records.shape[1]
        spread = records.std(axis=0)
        signal = (records / spread) @ (rng.standard_normal(size) * (np.arange(size) % 2 == 0))
        target = signal / signal.std() + rng.standard_t(4, len(records))
        simulated.append(in_box(name, np.column_stack([records, target * spread.mean()]), width))
    return [*regression_sets(), *simulated]


def _families() -> list[tuple[str, Floats, float]]:
    """Simulated records that had no part in choosing settings, and half the width of their box in deviations."""
    rng = np.random.default_rng(4)
    normal = rng.standard_normal
    factors = rng.standard_t(3, (3000, 3)) @ normal((3, 25)) + 0.5 * rng.standard_t(3, (3000, 25))
    centres = 4 * normal((3, 10))
    mixture = centres[rng.choice(3, 2000, p=[0.6, 0.3, 0.1])] + normal((2000, 10)) * rng.uniform(0.3, 1.5, 10)
    steps = normal((8000, 30))
    for j in range(1, 30):
        steps[:, j] += 0.8 * steps[:, j - 1]
    return [
        ("lognormal", rng.lognormal(0.0, rng.uniform(0.3, 1.2, 8), (1500, 8)), 6.0),
        ("Student t factors", factors, 8.0),
        ("mixture", mixture, 4.0),
        ("few records", normal((250, 4)) @ normal((4, 40)) + 0.3 * normal((250, 40)), 5.0),
        ("autoregressive", steps + 2.0, 5.0),
        ("two features", rng.exponential(size=(800, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]]), 4.0),
        ("three features", normal((3000, 3)) * [1.0, 0.5, 0.1], 4.0),
        ("counts", rng.poisson(rng.gamma(2.0, 1.0, (1000, 1)) * rng.uniform(0.2, 3.0, 12)).astype(float), 6.0),
    ]


def in_box(name: str, records: Floats, width: float, *, off: float = 0.1) -> DataSet:
    """Simulated records in a box of `width` deviations about a point near their mean, which clips some of them."""
    half = width * records.std(axis=0)
    middle = records.mean(axis=0) + off * half
    return DataSet(name, records, Bounds(middle - half, middle + half))


def widen(data: DataSet, factor: float, mark: str = " / ") -> DataSet:
    """The same records in a box `factor` times as wide, off centre."""
    half = factor * data.bounds.halfwidths
    middle = data.bounds.midpoint + 0.3 * (half - data.bounds.halfwidths)
    return DataSet(f"{data.name}{mark}{factor:g}", data.records, Bounds(middle - half, middle + half))


def move_out(bounds: Bounds, factor: float | Floats, rng: np.random.Generator) -> Bounds:
    """Bounds `factor` times as wide, at random off centre."""
    half = factor * bounds.halfwidths
    middle = bounds.midpoint + rng.uniform(-0.4, 0.4, half.size) * (half - bounds.halfwidths)
    return Bounds(middle - half, middle + half)


def rounded(name: str, records: Floats) -> DataSet:
    """A data set with its range rounded outwards to one digit as bounds; for public data only. NaNs are left out."""
    low, high = np.nanmin(records, axis=0), np.nanmax(records, axis=0)
    unit = 10.0 ** np.floor(np.log10(np.where(high > low, high - low, 1.0)))
    lower, upper = np.floor(low / unit) * unit, np.ceil(high / unit) * unit
    return DataSet(name, records, Bounds(lower, np.where(upper > lower, upper, lower + unit)))


def _simulated() -> DataSet:
    """Gaussian records whose standard deviations fall like 1/i along random directions, in a cube."""
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    records = rng.standard_normal((5000, 20)) @ (turn / np.arange(1, 21)[:, None]) + 0.3
    return DataSet("simulated", records, Bounds(np.full(20, -4.0), np.full(20, 4.0)))


def _paper(wanted: list[tuple[str, str, slice]]) -> list[DataSet]:
    """The paper's data sets, as far as the folder MATRIXDP_DATA has them."""
    folder = os.environ.get("MATRIXDP_DATA")
    found = []
    for name, file, columns in wanted:
        path = Path(folder or ".") / f"{file}.csv"
        if folder and path.exists():
            found.append(rounded(name, np.genfromtxt(path, delimiter=",", skip_header=1)[:, columns]))
    return found
