"""Actual over predicted errors of private moments: one Markdown table.

``python -m benchmarks.forecast [--half report|choose|fresh|unseen] [--trials 3] [--epsilon 0.1 0.3 1 3] [--default]``,
or ``--scaling``: how much it matters that fewer records are simulated than there are; or ``--releases``: the answers
about tables with categories and missing values (`table_forecast`).

The guesses are right: the spread and the position of each feature, and the root mean square of the correlations; with
``--default`` they are the defaults, and the ratios tell how typical those are. Errors are root mean squares over all
entries and trials. A cell is the median over epsilons of actual over typical, with the range.
"""

from __future__ import annotations

import argparse
import warnings
from unittest import mock

import numpy as np

from benchmarks import table_forecast
from benchmarks.accuracy_data import DataSet
from benchmarks.coverage_data import coverage_sets
from benchmarks.sizes import size
from matrixdp import Bounds, Privacy
from matrixdp.adaptive import Description, MomentErrors, forecast, private_moment, simulation
from matrixdp.adaptive.simulation import Statistics, moments_of, read_off
from matrixdp.noise import Stream
from matrixdp.types import Floats

DELTA = 1e-6
SHOWN = ("covariance", "variance", "correlation", "mean")


def entries(statistics: Statistics) -> dict[str, Floats]:
    """What is counted: each pair of features once, variances by themselves."""
    covariance, pairs = statistics["covariance"], np.tril_indices(len(statistics["covariance"]), -1)
    return {
        "covariance": covariance[pairs],
        "variance": np.diagonal(covariance),
        "correlation": statistics["correlation"][pairs],
        "mean": statistics["mean"],
    }


def right_guess(data: DataSet) -> Description:
    """The description that a curator would give who knows spreads, positions and the typical correlation."""
    mean, covariance = moments_of(data.scaled)
    correlation = read_off(mean, covariance, np.ones(mean.size))["correlation"]
    pairs = np.tril_indices(mean.size, -1)
    return Description(
        spread=np.sqrt(np.diagonal(covariance)) / 2,
        position=(1 + mean) / 2,
        correlation=float(np.sqrt(np.mean(correlation[pairs] ** 2))) if mean.size > 1 else 0.0,
    )


def sizes(errors: MomentErrors) -> dict[str, float]:
    """Root mean square of each kind of error."""
    bars = {name: getattr(errors, f"{name}_std") for name in ("mean", "covariance", "correlation", "eigenvalue")}
    found = entries(bars)
    return {name: float(np.sqrt(np.mean(found[name] ** 2))) if found[name].size else np.nan for name in SHOWN}


def actual(data: DataSet, privacy: Privacy, seeds: range) -> dict[str, float]:
    """Root mean square errors of fits."""
    units = np.ones(data.bounds.size)
    truth = entries(read_off(*moments_of(data.scaled), units))
    squares: dict[str, list[Floats]] = {name: [] for name in SHOWN}
    for seed in seeds:
        moment = private_moment(data.scaled, data.unit, privacy, stream=Stream(seed), simulation=True)
        found = entries(read_off(moment.mean, moment.covariance, units))
        for name in SHOWN:
            squares[name].append((found[name] - truth[name]) ** 2)
    return {name: float(np.sqrt(np.mean(values))) if np.size(values) else np.nan for name, values in squares.items()}


def run(data_sets: list[DataSet], epsilons: list[float], trials: int, *, default: bool) -> str:
    """Table of all sets."""
    lines = [f"| data | {' | '.join(SHOWN)} |", "| --- " * (len(SHOWN) + 1) + "|"]
    every: dict[str, list[float]] = {name: [] for name in SHOWN}
    within: dict[str, list[bool]] = {name: [] for name in SHOWN}
    for data in data_sets:
        ratios: dict[str, list[float]] = {name: [] for name in SHOWN}
        for epsilon in epsilons:
            privacy = Privacy(epsilon, DELTA)
            guess = Description() if default else right_guess(data)
            predicted = forecast(data.unit, len(data.records), privacy, description=guess)
            friendly, typical, hostile = map(sizes, (predicted.friendly, predicted.typical, predicted.hostile))
            errors = actual(data, privacy, range(trials))
            for name in SHOWN:
                ratios[name].append(errors[name] / max(typical[name], 1e-300))
                if np.isfinite(errors[name]):
                    within[name].append(friendly[name] / 1.25 <= errors[name] <= 1.25 * hostile[name])
        for name in SHOWN:
            every[name] += [ratio for ratio in ratios[name] if np.isfinite(ratio)]  # one feature has no pairs
        cells = [f"{np.median(r):.2f} ({min(r):.2f} to {max(r):.2f})" for r in ratios.values()]
        lines.append(f"| {data.label} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    rows = {
        "median": [f"{np.median(every[name]):.2f}" for name in SHOWN],
        "middle 80%": ["{:.2f} to {:.2f}".format(*np.quantile(every[name], [0.1, 0.9])) for name in SHOWN],
        "least and largest": [f"{min(every[name]):.2f}, {max(every[name]):.2f}" for name in SHOWN],
        "within the range, times 1.25": [f"{np.mean(within[name]):.0%}" for name in SHOWN],
    }
    lines += [f"| {label} | {' | '.join(cells)} |" for label, cells in rows.items()]
    return "\n".join(lines)


def scaling(features: int, numbers: list[int]) -> str:
    """How much fewer simulated records change a forecast, against as many as there are."""
    lines = [f"| {features} features, records | kind | {' | '.join(SHOWN)} |", "| --- " * (len(SHOWN) + 2) + "|"]
    bounds = Bounds(np.zeros(features), np.ones(features))
    for number in numbers:
        few = forecast(bounds, number, Privacy(1.0, DELTA))
        with mock.patch.object(simulation, "simulated_number", lambda public, _: public):
            all_of_them = forecast(bounds, number, Privacy(1.0, DELTA))
        for kind in ("friendly", "typical", "hostile"):
            one, other = sizes(getattr(few, kind)), sizes(getattr(all_of_them, kind))
            lines.append(f"| {number} | {kind} | {' | '.join(f'{one[name] / other[name]:.2f}' for name in SHOWN)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("choose", "report", "fresh", "unseen"), action="append")
    parser.add_argument("--group", choices=("named", "simulated", "tables", "wide"), action="append")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.3, 1.0, 3.0])
    parser.add_argument("--trials", type=int, default=size(3, 1))
    parser.add_argument("--default", action="store_true", help="describe all data by the defaults")
    parser.add_argument("--scaling", action="store_true", help="fewer simulated records against all")
    parser.add_argument("--releases", action="store_true", help="answers from the moments of tables")
    asked = parser.parse_args()
    if asked.releases:
        halves = asked.half or ["choose", "report"]
        if not {*halves} <= {"choose", "report"}:
            parser.error("--releases has the halves choose and report")
        for half in halves:
            for line in table_forecast.run(half, asked.epsilon, asked.trials, default=asked.default):
                print(line, flush=True)
        print(table_forecast.time_forecast())
        return
    if asked.scaling:
        print(scaling(10, [100_000, 1_000_000]))
        return
    warnings.simplefilter("ignore")
    groups = tuple(asked.group or ["named"])
    data_sets = [data for half in asked.half or ["choose", "report"] for data in coverage_sets(half, groups)]
    print("\n" + run(data_sets, asked.epsilon, asked.trials, default=asked.default))


if __name__ == "__main__":
    main()
