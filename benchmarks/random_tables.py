"""Simulated tables of random kinds, sizes and bounds, so that nobody chooses what is tested.

Features follow a Gaussian copula with random factors. Each has a law of its own, from normal to rare flags; a few
tables have rows that are all zero, or groups. Bounds are the rounded range or up to twenty times as wide.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import gamma, nbinom

from benchmarks.accuracy_data import DataSet, move_out, rounded
from matrixdp.types import Floats

Law = Callable[[Floats, np.random.Generator], Floats]


def random_tables(seed: int, count: int) -> list[DataSet]:
    """`count` tables with 100 to 5,000 records of 1 to 40 features."""
    return [_table(np.random.default_rng((seed, index)), f"random {seed}.{index}") for index in range(count)]


def _table(rng: np.random.Generator, name: str) -> DataSet:
    n, d = _log_uniform(rng, 100, 5000), _log_uniform(rng, 1, 40)
    normal = _copula(rng, n, d)
    laws = rng.choice(len(_LAWS), min(d, int(rng.integers(1, 5))), replace=False)  # few tables have all of them
    chosen = rng.choice(laws, d)
    columns = [_LAWS[k](normal[:, j], rng) for j, k in enumerate(chosen)]
    records = np.column_stack(columns) * np.exp(rng.normal(0, 1, d))
    if rng.random() < 0.15:
        records = records * (rng.random((n, 1)) < rng.uniform(0.02, 0.5))
    records[0] += 1e-6 * (np.ptp(records, axis=0) == 0)  # no feature is constant
    return _bounded(name, records, rng)


def _copula(rng: np.random.Generator, n: int, d: int) -> Floats:
    """Standard normal numbers of shape (n, d), correlated by a few factors, in groups in a fifth of the tables."""
    rank, strength = int(rng.integers(1, 5)), rng.beta(0.6, 0.8)
    factors = rng.standard_normal((n, rank))
    if rng.random() < 0.2:
        groups = rng.choice(4, n, p=[0.6, 0.25, 0.12, 0.03])
        factors = 2 * rng.standard_normal((4, rank))[groups] + 0.3 * factors
    common = factors @ rng.standard_normal((rank, d))
    common = (common - common.mean(axis=0)) / np.maximum(common.std(axis=0), 1e-9)
    return np.asarray(math.sqrt(strength) * common + math.sqrt(1 - strength) * rng.standard_normal((n, d)))


def _bounded(name: str, records: Floats, rng: np.random.Generator) -> DataSet:
    data = rounded(name, records)
    if rng.random() < 0.5:
        return data
    factor = math.exp(rng.uniform(0, math.log(20)))
    return DataSet(f"{name} / {factor:.0f}", records, move_out(data.bounds, factor, rng))


def _log_uniform(rng: np.random.Generator, least: int, most: int) -> int:
    return round(math.exp(rng.uniform(math.log(least), math.log(most))))


def _normal(z: Floats, rng: np.random.Generator) -> Floats:
    return z + rng.uniform(-3, 3)


def _lognormal(z: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(rng.choice([-1.0, 1.0]) * np.exp(rng.uniform(0.3, 1.6) * z))


def _heavy(z: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(z / np.sqrt(rng.chisquare(rng.uniform(1.5, 6), z.size)))


def _flag(z: Floats, rng: np.random.Generator) -> Floats:
    share = math.exp(rng.uniform(math.log(0.004), math.log(0.5)))
    return (z < ndtri(share)).astype(float)


def _ordinal(z: Floats, rng: np.random.Generator) -> Floats:
    return np.clip(np.round(rng.uniform(2, 4) + rng.uniform(0.5, 1.5) * z), 1, 5)


def _counts(z: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(nbinom.ppf(_open(ndtr(z)), rng.uniform(0.2, 3), rng.uniform(0.05, 0.6)), np.float64)


def _mostly_zero(z: Floats, rng: np.random.Generator) -> Floats:
    share = rng.uniform(0.02, 0.5)
    return np.where(z > ndtri(1 - share), gamma.ppf(_open((ndtr(z) - 1 + share) / share), rng.uniform(0.5, 3)), 0.0)


def _two_sided(z: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(np.sin(np.pi * (_open(ndtr(z)) - 0.5)) ** rng.choice([1, 3]))


def _nearly_constant(z: Floats, rng: np.random.Generator) -> Floats:
    return np.where(rng.random(z.size) < rng.uniform(0.002, 0.05), z * 10, 0.05 * z)


def _open(share: Floats) -> Floats:
    return np.clip(share, 1e-9, 1 - 1e-9)


_LAWS: tuple[Law, ...] = (
    _normal,
    _lognormal,
    _heavy,
    _flag,
    _ordinal,
    _counts,
    _mostly_zero,
    _two_sided,
    _nearly_constant,
)
