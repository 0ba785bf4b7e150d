"""MST and AIM, written from their papers on the graphical models of the package ``mbi`` (version 2).

MST: McKenna, Miklau, Sheldon, "Winning the NIST contest" (2021). A third of the budget for all columns, a third to
choose a tree of pairs by the exponential mechanism, a third for the pairs of the tree.

AIM: McKenna, Mullins, Sheldon, Miklau, "AIM: an adaptive and iterative mechanism" (2022). Rounds that choose the worst
pair or column, measure it, and double their budget when a measurement told little.

Both protect against adding or removing a record, with the budget as zero-concentrated differential privacy. Numbers are
in equal bins, or one for each value of a number with few steps; a value is drawn uniformly from its bin. A missing
value is one more bin.
"""

from __future__ import annotations

import math
import time
import warnings
from itertools import combinations
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize_scalar
from scipy.special import softmax

import matrixdp as mdp
from matrixdp.types import Floats

MST_BINS, AIM_BINS = 32, 16
MODEL_SIZE = 80.0  # MB of AIM's graphical model
_MST_ITERATIONS, _AIM_ITERATIONS = 2500, 1000
_SELECTING = 0.1  # share of AIM's budget that chooses what to measure
_RARE = 3.0  # MST merges levels whose count is below so many standard deviations


def find_rho(epsilon: float, delta: float) -> float:
    """The rho of zero-concentrated differential privacy for (epsilon, delta) (Canonne, Kamath, Steinke 2020)."""

    def log_delta(rho: float) -> float:
        def bound(order: float) -> float:
            return (order - 1) * (order * rho - epsilon) + order * math.log1p(-1 / order) - math.log(order - 1)

        return float(minimize_scalar(bound, bounds=(1 + 1e-6, 1e4), method="bounded").fun)

    return float(brentq(lambda rho: log_delta(rho) - math.log(delta), 1e-9, epsilon + 1))


class Codes:
    """A table in codes from 0 on, and back."""

    def __init__(self, columns: mdp.Columns, bins: int) -> None:
        self.columns, self.edges = columns, {}
        for one in columns.numbers:
            if one.step is not None and one.steps < bins:
                self.edges[one.name] = one.lower + one.step * (np.arange(round(one.steps) + 2) - 0.5)
            else:
                self.edges[one.name] = np.linspace(one.lower, one.upper, bins + 1)

    def encode(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Codes of each column."""
        found = {}
        for column in cast("Any", self.columns):
            values = frame[column.name]
            if column.name in self.edges:
                edges = self.edges[column.name]
                codes = np.clip(np.searchsorted(edges, values.to_numpy(float), "right") - 1, 0, len(edges) - 2)
                found[column.name] = np.where(values.isna(), len(edges) - 1, codes)
            else:
                found[column.name] = pd.Categorical(values, categories=column.levels).codes.astype(int)
        return found

    @property
    def sizes(self) -> dict[str, int]:
        """Number of codes of each column."""
        return {
            one.name: len(self.edges[one.name]) - 1 + one.missing if one.name in self.edges else len(one.levels)
            for one in cast("Any", self.columns)
        }

    def decode(self, codes: dict[str, Any], rng: np.random.Generator) -> pd.DataFrame:
        """Values drawn uniformly from their bins."""
        found: dict[str, Any] = {}
        for column in cast("Any", self.columns):
            code = np.asarray(codes[column.name])
            if column.name not in self.edges:
                found[column.name] = np.array(column.levels, object)[code]
                continue
            edges = np.append(self.edges[column.name], np.nan)
            values = edges[code] + (edges[code + 1] - edges[code]) * rng.random(code.size)
            if column.step is not None:
                values = column.lower + np.rint((values - column.lower) / column.step) * column.step
            found[column.name] = np.clip(values, column.lower, column.upper)
        return pd.DataFrame(found)


class _Mechanism:
    """The counts of a table, noisy measurements of them, and models of these."""

    def __init__(self, frame: pd.DataFrame, columns: mdp.Columns, bins: int, seed: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import mbi  # type: ignore[import-not-found,import-untyped,unused-ignore]
        self.mbi, self.rng, self.codes = mbi, np.random.default_rng(seed), Codes(columns, bins)
        self.data, self.sizes = self.codes.encode(frame), self.codes.sizes
        self.measured: list[Any] = []
        self.model: Any = None

    @property
    def domain(self) -> Any:
        return self.mbi.Domain(tuple(self.sizes), tuple(self.sizes.values()))

    def count(self, names: tuple[str, ...]) -> Floats:
        shape = [self.sizes[name] for name in names]
        flat = np.ravel_multi_index([self.data[name] for name in names], shape)
        return np.bincount(flat, minlength=math.prod(shape)).astype(float)

    def expect(self, names: tuple[str, ...]) -> Floats:
        return np.asarray(self.model.project(names).datavector(), float)

    def measure(self, names: tuple[str, ...], sigma: float) -> Floats:
        noisy = self.count(names) + self.rng.normal(0, sigma, math.prod(self.sizes[name] for name in names))
        self.measured.append(self.mbi.LinearMeasurement(noisy, names, stddev=sigma))
        return np.asarray(noisy)

    def estimate(self, iterations: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.mbi.estimation.MirrorDescent()
            self.model = found.estimate(self.domain, self.measured, iters=iterations, warm_start=self.model, tol=1e-6)

    def choose(self, scores: dict[Any, float], epsilon: float, sensitivity: float = 1.0) -> Any:
        chances = softmax(epsilon / (2 * sensitivity) * np.array(list(scores.values())))
        return list(scores)[self.rng.choice(len(scores), p=chances)]

    def draw(self, rows: int, undo: dict[str, Any] | None = None) -> pd.DataFrame:
        found = self.model.synthetic_data(rows)
        codes = {name: np.asarray(found.to_dict()[name]) for name in self.sizes}
        for name, groups in (undo or {}).items():
            codes[name] = np.array([self.rng.choice(groups[code]) for code in codes[name]])
        return self.codes.decode(codes, self.rng)


def run_mst(frame: pd.DataFrame, columns: mdp.Columns, epsilon: float, delta: float, seed: int) -> pd.DataFrame:
    """A synthetic table of MST with as many rows."""
    made = _Mechanism(frame, columns, MST_BINS, seed)
    rho, names = find_rho(epsilon, delta), [*made.sizes]
    undo = _merge_rare(made, math.sqrt(3 * len(names) / (2 * rho)))
    made.estimate(1000)
    gaps = {pair: float(np.abs(made.count(pair) - made.expect(pair)).sum()) for pair in combinations(names, 2)}
    tree: list[tuple[str, str]] = []
    part = {name: {name} for name in names}
    step = math.sqrt(8 * rho / 3 / max(len(names) - 1, 1))
    while len(tree) < len(names) - 1:
        one, other = pair = made.choose({p: gap for p, gap in gaps.items() if part[p[0]] is not part[p[1]]}, step)
        tree.append(pair)
        joined = part[one] | part[other]
        part |= dict.fromkeys(joined, joined)
    for pair in tree:
        made.measure(pair, math.sqrt(3 * len(tree) / (2 * rho)))
    made.estimate(_MST_ITERATIONS)
    return made.draw(len(frame), undo)


def _merge_rare(made: _Mechanism, sigma: float) -> dict[str, Any]:
    """Measure all columns, and merge codes whose counts are small; the codes that each new one stands for."""
    undo = {}
    for name, size in list(made.sizes.items()):
        noisy = made.measure((name,), sigma)
        large = noisy >= _RARE * sigma
        if large.all() or not large.any():
            continue
        new = np.where(large, np.cumsum(large) - 1, large.sum())
        merged = np.append(noisy[large], noisy[~large].sum())
        std = np.append(np.ones(large.sum()), math.sqrt(size - large.sum()))
        made.data[name], made.sizes[name] = new[made.data[name]], merged.size
        query = made.mbi.WeightedQuery(1 / std)
        made.measured[-1] = made.mbi.LinearMeasurement(merged / std, (name,), stddev=sigma, query=query)
        undo[name] = [*np.flatnonzero(large)[:, None], np.flatnonzero(~large)]
    return undo


def run_aim(
    frame: pd.DataFrame,
    columns: mdp.Columns,
    epsilon: float,
    delta: float,
    seed: int,
    *,
    iterations: int = _AIM_ITERATIONS,
    seconds: float = math.inf,
) -> pd.DataFrame:
    """A synthetic table of AIM for all pairs of columns; the last round begins after so many `seconds`."""
    made = _Mechanism(frame, columns, AIM_BINS, seed)
    size_of, start = made.mbi.junction_tree.hypothetical_model_size, time.process_time()
    rho, names = find_rho(epsilon, delta), [*made.sizes]
    rounds = 16 * len(names)
    sigma, step = math.sqrt(rounds / (2 * (1 - _SELECTING) * rho)), math.sqrt(8 * _SELECTING * rho / rounds)
    weights: dict[tuple[str, ...], float] = {(name,): float(len(names) - 1) for name in names}
    weights |= {pair: 2.0 * (len(names) - 1) for pair in combinations(names, 2)}  # columns shared with all pairs
    answers = {one: made.count(one) for one in weights}
    for name in names:
        made.measure((name,), sigma)
    used, last = len(names) / (2 * sigma**2), False
    made.estimate(iterations)
    while not last:
        if rho - used < 2 * (1 / (2 * sigma**2) + step**2 / 8) or time.process_time() - start > seconds:
            last, left = True, rho - used
            sigma, step = math.sqrt(1 / (2 * (1 - _SELECTING) * left)), math.sqrt(8 * _SELECTING * left)
        used += 1 / (2 * sigma**2) + step**2 / 8
        cliques = [one.clique for one in made.measured]
        fits = [
            one for one in weights if one in cliques or size_of(made.domain, [*cliques, one]) <= MODEL_SIZE * used / rho
        ]
        bias = math.sqrt(2 / math.pi) * sigma
        scores = {
            one: weights[one] * float(np.abs(answers[one] - made.expect(one)).sum() - bias * answers[one].size)
            for one in fits
        }
        chosen = made.choose(scores, step, max(weights[one] for one in fits))
        before = made.expect(chosen)
        made.measure(chosen, sigma)
        made.estimate(iterations)
        if np.abs(made.expect(chosen) - before).sum() <= bias * before.size:
            sigma, step = sigma / 2, 2 * step
    return made.draw(len(frame))
