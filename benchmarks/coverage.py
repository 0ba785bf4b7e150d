"""What is shown of a release, and how far to trust it: coverage and lengths of intervals, by kind of answer.

``python -m benchmarks.coverage [--half trusted|newest|choose|report|fresh|unseen|last|random] [--release plain]
[--bounds tight wide] [--kind "means by level"] [--epsilon 0.1 0.3 1 3] [--trials 2] [--every 3] [--jobs 2]
[--correlation-share 0] [--json FILE] [--against FILE]``

Each table is released by `release_table`: everything about it ('plain'), and its numbers by an adaptive fit. The truth
of each answer is computed from the records with NumPy. By default the tables are those of `trusted_data`, on which
nothing was chosen; the other lists are for development, where plain releases are of the tables of `table_forecast`.

Errors are relative to the range of a number, or in standard deviations of target and predictor for coefficients. A
number is firm if it has an error bar, and otherwise hidden; a hidden one may have a plausible range. Coverage is the
share of intervals that contain the truth, nominally 95%. ``--json`` writes the errors of all firm numbers;
``--against`` such a file compares those of the same numbers in this run.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import matrixdp as mdp
from benchmarks import newest_data, table_forecast, trusted_data
from benchmarks.accuracy_data import DataSet
from benchmarks.coverage_data import coverage_sets
from benchmarks.sizes import few, size
from benchmarks.table_forecast import RealTable
from matrixdp.noise import Stream
from matrixdp.types import Floats

DELTA = 1e-6
NORMAL = 1.96
GROUPS = ("named", "simulated", "tables", "wide")
RELEASES = ("plain", "adaptive")
BOUNDS = ("tight", "wide")
HALVES = ("trusted", "newest", "choose", "report", "fresh", "unseen", "last", "random")
KINDS = (
    "means",
    "standard deviations",
    "shares",
    "means by level",
    "means by level of numbers with missing values",  # of those above
    "cells",
    "covariances",
    "correlations",
    "R^2",
    "coefficients",
    "intercepts",
    "loadings",
    "component variances",
)
STRONG = {"correlations": "correlations beyond 0.8", "R^2": "R^2 above 0.8"}
_STRONG = 0.8
_COMPONENTS = 3
_REAL = {"trusted": tuple(trusted_data.SOURCES), "newest": tuple(newest_data.SOURCES)}
_WIDE = 20  # coordinates of a table that has half as many trials
_FEWEST = 20  # intervals of a table whose coverage counts for the least
_DETERMINED = 1e-6  # least eigenvalue of the correlations of predictors whose coefficients are unique
_TOLERANCE = 1e-9  # of comparisons, in units of the range


class Shown(NamedTuple):
    """What an answer shows: values, ends of intervals, error bars, and which numbers are firm; arrays of one shape."""

    value: Floats
    low: Floats
    high: Floats
    std: Floats
    firm: NDArray[np.bool_]

    def take(self, *index: Any) -> Shown:
        """Some of the numbers."""
        return Shown(*(part[index] for part in self))


def read_estimate(estimate: Any) -> Shown:
    """An `Estimate`."""
    plausible = getattr(estimate, "plausible", np.zeros(estimate.value.shape, bool))
    low, high = estimate.interval()
    return Shown(estimate.value, low, high, estimate.std, np.isfinite(estimate.value) & ~plausible)


def read_regression(found: Any) -> tuple[Shown, Shown]:
    """Coefficients, (m + 1,), and R^2, (1,). A regression without `terms` hides coefficients that have no bar."""
    if hasattr(found, "terms"):
        return read_estimate(found.terms).take(slice(None), 0), read_estimate(found.fit).take([0], 0)
    bars = found.noise_std
    value, none = np.where(np.isfinite(bars), found.coefficients, np.nan), np.full(1, np.nan)
    terms = Shown(value, value - NORMAL * bars, value + NORMAL * bars, bars, np.isfinite(value))
    return terms, Shown(np.array([found.r_squared]), none, none, none, np.ones(1, bool))


class Outcome(NamedTuple):
    """What became of the numbers of one kind: arrays of shape (numbers,). What is not shown is NaN."""

    error: Floats
    length: Floats
    covered: Floats
    ratio: Floats  # of the error to its bar
    firm: Floats
    impossible: Floats  # value
    impossible_end: Floats
    strong: Floats

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Which numbers have a value."""
        return np.isfinite(self.error)

    def take(self, chosen: NDArray[np.bool_]) -> Outcome:
        """Some of the numbers."""
        return Outcome(*(part[chosen] for part in self))


def compare(shown: Shown, truth: Any, unit: Any = 1.0, least: Any = -np.inf, most: Any = np.inf) -> Outcome:
    """Numbers beside their truth, in a unit, with the least and largest possible value; unknown truths are left out."""
    truth, unit, least, most = (np.broadcast_to(one, shown.value.shape) for one in (truth, unit, least, most))
    known = np.isfinite(truth)
    value, low, high, std, firm = (part[known] for part in shown)
    truth, unit, least, most = (one[known] for one in (truth, unit, least, most))
    slack, error = _TOLERANCE * unit, (value - truth) / unit
    ended = np.isfinite(low) & np.isfinite(high)
    covered = (low <= truth + slack) & (truth - slack <= high)
    return Outcome(
        error,
        np.where(ended, (high - low) / unit, np.nan),
        np.where(ended, covered, np.nan),
        np.where(std > slack, error * unit / np.where(std > 0, std, 1.0), np.nan),
        firm.astype(float),
        np.where(np.isfinite(value), (value < least - slack) | (value > most + slack), np.nan),
        np.where(ended, (low < least - slack) | (high > most + slack), np.nan),
        (np.abs(truth) > _STRONG).astype(float),
    )


@dataclass(frozen=True, eq=False)
class Exact:
    """Answers on the records: pairs of numbers are over the records in which both are there.

    `values` and `observed` are of shape (records, numbers and levels); levels are named "column=level".
    """

    names: tuple[str, ...]
    numbers: int
    values: Floats
    observed: Floats

    @classmethod
    def of(cls, numbers: dict[str, Floats], levels: dict[str, Floats]) -> Exact:
        """From columns of numbers, in which NaN is missing, and of levels, 0 or 1."""
        values = np.column_stack([*numbers.values(), *levels.values()])
        return cls((*numbers, *levels), len(numbers), np.nan_to_num(values), np.isfinite(values).astype(float))

    @property
    def mean(self) -> Floats:
        """Of each number and level where it is there."""
        return np.asarray(self.values.sum(axis=0) / self.observed.sum(axis=0))

    @property
    def covariance(self) -> Floats:
        """Of all pairs of numbers and levels."""
        centred = (self.values - self.mean) * self.observed
        sizes = np.maximum(self.observed.T @ self.observed, 1.0)
        first = centred.T @ self.observed / sizes
        return np.asarray(centred.T @ centred / sizes - first * first.T)

    def level_means(self, levels: list[int]) -> Floats:
        """Of the numbers, of shape (levels, numbers); NaN where none is there."""
        within, m = self.values[:, levels].T, self.numbers
        sizes = within @ self.observed[:, :m]
        return np.where(sizes > 0, within @ self.values[:, :m] / np.maximum(sizes, 1.0), np.nan)


def correlate(covariance: Floats) -> Floats:
    """Correlations; NaN where a variance is zero."""
    std = np.sqrt(np.diagonal(covariance))
    with np.errstate(all="ignore"):
        return np.asarray(covariance / np.multiply.outer(std, std))


def regress(exact: Exact, covariance: Floats, target: int, on: list[int]) -> tuple[Floats, float, Floats]:
    """Intercept and slopes, NaN where they are not unique; R^2; the units of the slopes."""
    spread = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
    scale = spread[on]
    values, vectors = np.linalg.eigh(covariance[np.ix_(on, on)] / np.multiply.outer(scale, scale))
    kept = values > _DETERMINED
    joint = covariance[on, target] / scale
    slopes = (vectors[:, kept] / values[kept]) @ (vectors[:, kept].T @ joint) / scale
    explained = float(np.clip(slopes @ (joint * scale) / spread[target] ** 2, 0.0, 1.0))
    terms = np.concatenate([[exact.mean[target] - slopes @ exact.mean[on]], slopes])
    return np.where(kept.all(), terms, np.nan), explained, spread[target] / scale


def ask(
    release: Any, exact: Exact, unit: Floats, bounds: mdp.Bounds, categories: dict[str, int], kinds: tuple[str, ...]
) -> Iterator[Any]:
    """Kinds of answers, and what became of the numbers of each; `unit` is the range of each number.

    Slow answers that are of none of the `kinds` are left out.
    """
    m, covariance, mean = exact.numbers, exact.covariance, exact.mean
    lower, upper, half, names = bounds.lower, bounds.upper, bounds.halfwidths, exact.names
    summary, own = read_estimate(release.means()), np.diagonal(covariance)[:m]
    every = slice(None)
    yield "means", compare(summary.take(every, 0), mean[:m], unit, lower, upper)
    yield "standard deviations", compare(summary.take(every, 1), np.sqrt(own), unit, 0.0, half)
    share = exact.observed[:, :m].mean(axis=0)
    if summary.value.shape[1] > 2:
        yield "shares", compare(summary.take(share < 1, 2), share[share < 1], 1.0, 0.0, 1.0)
    places, start = {}, m
    for name, count in categories.items():
        places[name], start = list(range(start, start + count)), start + count
        found = read_estimate(release.means(name))
        yield "shares", compare(found.take(every, 0), mean[places[name]], 1.0, 0.0, 1.0)
        by_level, truth = found.take(every, slice(1, None)), exact.level_means(places[name])
        yield "means by level", compare(by_level, truth, unit, lower, upper)
        some = share < 1
        partly = compare(by_level.take(every, some), truth[:, some], unit[some], lower[some], upper[some])
        yield "means by level of numbers with missing values", partly
    for one, other in combinations(categories, 2):
        cells = exact.values[:, places[one]].T @ exact.values[:, places[other]] / len(exact.values)
        inner = read_estimate(release.table(one, other)).take(slice(-1), slice(-1))
        yield "cells", compare(inner, cells, 1.0, 0.0, 1.0)
    i, j = np.tril_indices(m)
    most = half[i] * half[j]
    found = read_estimate(release.covariance()).take(i, j)
    yield "covariances", compare(found, covariance[i, j], unit[i] * unit[j], np.where(i == j, 0.0, -most), most)
    if m < 2 and not categories:
        return
    slow = not {"R^2", "coefficients", "intercepts"}.isdisjoint(kinds)
    for target in sorted({0, m // 2, m - 1}) if slow else ():
        regression = release.regression(names[target])
        terms, explained = read_regression(regression)
        on = [names.index(name) for name in regression.names[1:]]
        truth, r_squared, units = regress(exact, covariance, target, on)
        yield "R^2", compare(explained, r_squared, 1.0, 0.0, 1.0)
        yield "coefficients", compare(terms.take(slice(1, None)), truth[1:], units)
        yield "intercepts", compare(terms.take([0]), truth[:1], unit[target])
    if m < 2:
        return
    i, j = np.tril_indices(m, -1)
    correlation = correlate(covariance[:m, :m])
    yield "correlations", compare(read_estimate(release.correlation()).take(i, j), correlation[i, j], 1.0, -1.0, 1.0)
    if {"loadings", "component variances"}.isdisjoint(kinds):
        return
    variances, directions = np.linalg.eigh(np.nan_to_num(correlation))
    found = read_estimate(release.components(min(m, _COMPONENTS)))
    count = found.value.shape[1]
    directions = directions[:, ::-1][:, :count]
    signs = np.where((np.nan_to_num(found.value[:-1]) * directions).sum(axis=0) < 0, -1.0, 1.0)
    yield "loadings", compare(found.take(slice(-1)), directions * signs, 1.0, -1.0, 1.0)
    yield "component variances", compare(found.take(-1), variances[::-1][:count], 1.0, 0.0, m)


class Case(NamedTuple):
    """One table in one kind of release, and the range of each of its numbers."""

    release: str
    bounds: str
    table: RealTable | DataSet
    unit: Floats


Measured = tuple[str, str, str, float, int, str, Outcome]  # release, bounds, table, epsilon, trial, kind


def measure(
    case: Case,
    epsilons: list[float],
    trials: int,
    first: int,
    kinds: tuple[str, ...] = KINDS,
    share: float | None = None,
) -> list[Measured]:
    """All answers of some kinds, of some releases of one table; `share` is `correlation_share`."""
    warnings.simplefilter("ignore")
    table, question = case.table, {"plain": "everything", "adaptive": "covariance"}[case.release]
    if isinstance(table, DataSet):
        names = tuple(f"x{k}" for k in range(table.bounds.size))
        bounds = replace(table.bounds, names=names)
        data: Any = np.clip(table.records, bounds.lower, bounds.upper)
        schema: Any = bounds
        exact, categories = Exact.of(dict(zip(names, data.T, strict=True)), {}), {}
    else:
        data, schema, columns = table.frame, table.columns, table.columns
        assert columns.bounds is not None
        bounds = columns.bounds
        numbers = {one.name: data[one.name].to_numpy(float) for one in columns.numbers}
        categories = {one.name: len(one.level_names) for one in columns.categories}
        levels = {
            f"{one.name}={level}": (data[one.name] == level).to_numpy(float)
            for one in columns.categories
            for level in one.level_names
        }
        exact = Exact.of(numbers, levels)
    if len(exact.names) > _WIDE:
        trials = (trials + 1) // 2
    found = []
    for epsilon, trial in product(epsilons, range(first, first + trials)):
        seed = zlib.crc32(f"{table.name} {case.bounds} {epsilon:g} {trial}".encode())
        privacy, stream = mdp.Privacy(epsilon, DELTA), Stream(seed)
        method: dict[str, Any] = {"correlation_share": share} if case.release == "plain" else {"method": "adaptive"}
        release = mdp.release_table(data, schema, privacy, question=question, stream=stream, simulation=True, **method)
        with np.errstate(all="ignore"):
            for kind, outcome in ask(release, exact, case.unit, bounds, categories, kinds):
                if kind in kinds:
                    found.append((case.release, case.bounds, table.name, epsilon, trial, kind, outcome))
    return found


def list_cases(half: str, groups: tuple[str, ...], releases: list[str], bounds: list[str]) -> Iterator[Case]:
    """The releases of a list of tables: for development with the boxes of the lists, otherwise with both bounds."""
    tables: Iterable[RealTable] = ()
    if half in _REAL:
        tables = trusted_data.load_tables(_REAL[half])
    elif half in ("choose", "report") and "plain" in releases:
        tables = few([*table_forecast.load_tables(half)])
    for table, box in product(tables, bounds):
        bounded = table if box == "tight" else trusted_data.widen_bounds(table)
        if "plain" in releases:
            yield Case("plain", box, bounded, _find_unit(table.columns.bounds))
        tight, numbers = trusted_data.keep_numbers(table), trusted_data.keep_numbers(bounded)
        if half in _REAL and "adaptive" in releases and tight is not None and numbers is not None:
            yield Case("adaptive", box, numbers, _find_unit(tight.bounds))
    if half not in _REAL and "adaptive" in releases:
        for data in coverage_sets(half, groups):
            yield Case("adaptive", "tight", data, _find_unit(data.bounds))


def _find_unit(bounds: Any) -> Floats:
    return np.asarray(2 * bounds.halfwidths)


def _join(outcomes: Iterable[Outcome]) -> Outcome:
    return Outcome(*(np.concatenate(parts) for parts in zip(*outcomes, strict=True)))


def describe(every: list[Measured]) -> Iterator[str]:
    """A table with one row for each kind of answer."""
    yield (
        "| release | answers | number | firm | with a bar | shown | have an interval | coverage, firm "
        "| coverage, hidden | length / error | RMS error / bar | least by table | RMSE, firm | RMSE, hidden "
        "| impossible values | impossible ends |"
    )
    yield "| --- " * 16 + "|"
    for release, label, chosen in _list_rows(every):
        outcome = _join(one[-1] for one in chosen)
        by_table: dict[str, list[Outcome]] = {}
        for one in chosen:
            by_table.setdefault(one[2], []).append(one[-1])
        covered = {name: _join(parts).covered for name, parts in by_table.items()}
        shares = {name: _mean(one) for name, one in covered.items() if np.isfinite(one).sum() >= _FEWEST}
        least = min(shares, key=lambda name: shares[name], default="")
        firm = outcome.firm == 1
        with np.errstate(all="ignore"):
            relative = outcome.length / np.abs(outcome.error)
        cells = [
            f"{firm.size}",
            f"{firm.mean():.1%}",
            f"{np.isfinite(outcome.ratio).mean():.1%}",
            f"{outcome.shown.mean():.1%}",
            f"{np.isfinite(outcome.length).mean():.1%}",
            _show(_mean(outcome.covered[firm])),
            _show(_mean(outcome.covered[~firm])),
            _show(float(np.nanmedian(relative)) if np.isfinite(relative).any() else np.nan),
            _show(_root_mean_square(outcome.ratio)),
            f"{shares[least]:.3f} ({least})" if least else "-",
            _show(_root_mean_square(outcome.error[firm]), ".3g"),
            _show(_root_mean_square(outcome.error[~firm]), ".3g"),
            _show(_mean(outcome.impossible), ".2%"),
            _show(_mean(outcome.impossible_end), ".2%"),
        ]
        yield f"| {release} | {label} | {' | '.join(cells)} |"


def describe_parts(every: list[Measured]) -> Iterator[str]:
    """Share of firm numbers, and coverage of all intervals, by bounds and epsilon."""
    parts = sorted({(one[1], one[3]) for one in every})
    yield f"| release | answers | {' | '.join(f'{bounds}, {epsilon:g}' for bounds, epsilon in parts)} |"
    yield "| --- " * (2 + len(parts)) + "|"
    for release, label, chosen in _list_rows(every):
        cells = []
        for part in parts:
            outcomes = [one[-1] for one in chosen if (one[1], one[3]) == part]
            outcome = _join(outcomes) if outcomes else None
            cells.append("-" if outcome is None else f"{_mean(outcome.firm):.0%}, {_show(_mean(outcome.covered))}")
        yield f"| {release} | {label} | {' | '.join(cells)} |"


def _list_rows(every: list[Measured]) -> Iterator[tuple[str, str, list[Measured]]]:
    """Release and label of each row, and what is counted in it; strong ones also by themselves."""
    for release, kind in product(RELEASES, KINDS):
        chosen = [one for one in every if (one[0], one[5]) == (release, kind) and one[-1].error.size]
        if chosen:
            yield release, kind, chosen
        if kind in STRONG:
            strong = [(*one[:-1], one[-1].take(one[-1].strong == 1)) for one in chosen]
            if any(one[-1].error.size for one in strong):
                yield release, STRONG[kind], strong


def _mean(values: Floats) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else np.nan


def _root_mean_square(values: Floats) -> float:
    return float(np.sqrt(np.nanmean(values**2))) if np.isfinite(values).any() else np.nan


def _show(value: float, form: str = ".3f") -> str:
    return f"{value:{form}}" if np.isfinite(value) else "-"


def list_errors(every: list[Measured]) -> dict[str, list[float | None]]:
    """Errors of all numbers by release, bounds, table, epsilon, trial and kind; None where a number is not firm."""
    found: dict[str, list[float | None]] = {}
    for *where, outcome in every:
        firm = outcome.firm == 1
        errors = [float(f"{x:.6g}") if ok else None for x, ok in zip(outcome.error, firm, strict=True)]
        found.setdefault(" | ".join(map(str, where)), []).extend(errors)
    return found


def describe_ratios(every: list[Measured], before: dict[str, list[float | None]]) -> Iterator[str]:
    """RMSE of this run over that of a file, for the numbers that are firm there and shown here."""
    now: dict[str, list[Floats]] = {}
    for *where, outcome in every:
        now.setdefault(" | ".join(map(str, where)), []).append(outcome.error)
    squares: dict[tuple[str, str], dict[tuple[str, float], Floats]] = {}
    for key, errors in now.items():
        release, _, table, epsilon, _, kind = key.split(" | ")
        if key not in before:
            continue
        old, new = np.array(before[key], float), np.concatenate(errors)
        firm = np.isfinite(old)
        both = firm & np.isfinite(new)
        sums = np.array([np.square(new[both]).sum(), np.square(old[both]).sum(), firm.sum(), both.sum()])
        cases = squares.setdefault((release, kind), {})
        cases[table, float(epsilon)] = cases.get((table, float(epsilon)), np.zeros(4)) + sums
    epsilons = sorted({epsilon for cases in squares.values() for _, epsilon in cases})
    at_each = " | ".join(f"{one:g}" for one in epsilons)
    yield f"| release | answers | all | {at_each} | tables above 1.05 | largest | no longer shown |"
    yield "| --- " * (6 + len(epsilons)) + "|"
    for release, kind in product(RELEASES, KINDS):
        cases = squares.get((release, kind), {})
        if not cases:
            continue
        groups = [cases.values(), *([sums for (_, at), sums in cases.items() if at == one] for one in epsilons)]
        tables = sorted({name for name, _ in cases})
        ratios = {name: _ratio([sums for (own, _), sums in cases.items() if own == name]) for name in tables}
        worst = max(ratios, key=lambda name: np.nan_to_num(ratios[name]))
        above = np.mean([ratio > 1.05 for ratio in ratios.values()])
        _, _, firm_then, both_then = np.sum([*cases.values()], axis=0)
        lost = 1 - both_then / firm_then if firm_then else np.nan
        cells = [*(_show(_ratio(group)) for group in groups), f"{above:.0%}", f"{_show(ratios[worst])} ({worst})"]
        cells.append(_show(lost, ".1%"))
        yield f"| {release} | {kind} | {' | '.join(cells)} |"


def _ratio(sums: Iterable[Floats]) -> float:
    new, old = np.sum([*sums], axis=0)[:2]
    return float(np.sqrt(new / old)) if old > 0 else np.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=HALVES, default="trusted")
    parser.add_argument("--group", choices=GROUPS, action="append", help="of the lists of numbers for development")
    parser.add_argument("--release", choices=RELEASES, nargs="+", default=list(RELEASES))
    parser.add_argument("--bounds", choices=BOUNDS, nargs="+", default=list(BOUNDS))
    parser.add_argument("--kind", choices=KINDS, action="append", help="of answers; all by default")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.3, 1.0, 3.0])
    parser.add_argument("--trials", type=int, default=size(2, 1), help=f"half as many for more than {_WIDE} columns")
    parser.add_argument("--first", type=int, default=0, help="number of the first trial, which decides its noise")
    parser.add_argument("--every", type=int, default=1, help="only every so many tables")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--correlation-share", type=float, help="of plain releases; by default as they choose it")
    parser.add_argument("--json", type=Path, help="file to write the errors to")
    parser.add_argument("--against", type=Path, help="such a file of another version, to compare with")
    asked = parser.parse_args()
    cases = [*list_cases(asked.half, tuple(asked.group or GROUPS), asked.release, asked.bounds)]
    names = [*dict.fromkeys(case.table.name for case in cases)][:: asked.every]
    chosen = [case for case in cases if case.table.name in names]
    kinds = tuple(asked.kind or KINDS)
    options = {"epsilons": asked.epsilon, "trials": asked.trials, "first": asked.first, "kinds": kinds}
    task = partial(measure, **options, share=asked.correlation_share)
    every: list[Measured] = []
    workers = ProcessPoolExecutor(asked.jobs, initializer=threadpool_limits, initargs=(1,))  # a thread each
    with workers if asked.jobs > 1 else nullcontext() as pool:
        for number, found in enumerate(pool.map(task, chosen) if pool else map(task, chosen), 1):
            print(f"{number} of {len(chosen)}", file=sys.stderr, flush=True)
            every += found
    for lines in (describe(every), describe_parts(every)):
        print("\n" + "\n".join(lines))
    if asked.against is not None:
        print("\n" + "\n".join(describe_ratios(every, json.loads(asked.against.read_text("utf-8")))))
    if asked.json is not None:
        asked.json.write_text(json.dumps(list_errors(every)), "utf-8")


if __name__ == "__main__":
    main()
