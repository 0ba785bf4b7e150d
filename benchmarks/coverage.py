"""Coverage of the error bars of private moments: one Markdown table.

``python -m benchmarks.coverage [--half report|choose|fresh|unseen|last|random] [--trials 3] [--epsilon 0.1 0.3 1 3]
[--group named ...] [--every 3]``

For each data set, the share of all entries that lie within 1.96 error bars of the value without privacy (nominally
95%), over all epsilons and trials; below, the mean over data sets, the least, and the median over fits of the root mean
square of the bars over that of the errors. Compared with bars for the noise alone.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from benchmarks.accuracy_data import DataSet
from benchmarks.coverage_data import coverage_sets
from benchmarks.sizes import size
from matrixdp import Privacy
from matrixdp.adaptive import PrivateMoment, private_moment
from matrixdp.adaptive.error_bars import noise_bars
from matrixdp.adaptive.simulation import Statistics, moments_of, read_off
from matrixdp.noise import Stream
from matrixdp.types import Floats

DELTA = 1e-6
NORMAL = 1.96
SHOWN = ("covariance", "variance", "correlation", "mean", "eigenvalue")
GROUPS = ("named", "simulated", "tables", "wide")


def entries(statistics: Statistics) -> dict[str, Floats]:
    """What is counted: each pair of features once, variances by themselves."""
    covariance, correlation = statistics["covariance"], statistics["correlation"]
    pairs = np.tril_indices(len(covariance), -1)
    return {
        "covariance": covariance[pairs],
        "variance": np.diagonal(covariance),
        "correlation": correlation[pairs],
        "mean": statistics["mean"],
        "eigenvalue": statistics["eigenvalue"],
    }


def bars_of(moment: PrivateMoment) -> Statistics:
    """Error bars by the names of the statistics."""
    names = ("mean", "second_moment", "covariance", "correlation", "eigenvalue")
    return {name: getattr(moment.errors, f"{name}_std") for name in names}


def run(sets: list[DataSet], epsilons: list[float], trials: int, first: int) -> str:
    """Table of some data sets."""
    lines = [f"| data | {' | '.join(SHOWN)} |", "| --- " * (len(SHOWN) + 1) + "|"]
    coverage: dict[str, list[list[float]]] = {"ours": [], "noise": []}
    widths: dict[str, list[list[float]]] = {"ours": [], "noise": []}
    for data in sets:
        units = np.ones(data.bounds.size)
        truth = entries(read_off(*moments_of(data.scaled), units))
        cells: dict[str, list[list[float]]] = {"ours": [], "noise": []}
        for epsilon in epsilons:
            for seed in range(first, first + trials):
                privacy = Privacy(epsilon, DELTA)
                moment = private_moment(data.scaled, data.unit, privacy, stream=Stream(seed), simulation=True)
                found = entries(read_off(moment.mean, moment.covariance, units))
                for kind, bars in (("ours", bars_of(moment)), ("noise", noise_bars(moment))):
                    sizes = entries(bars)
                    errors = {name: np.abs(found[name] - truth[name]) for name in SHOWN}
                    cells[kind].append([_share(errors[name], sizes[name]) for name in SHOWN])
                    widths[kind].append([_width(errors[name], sizes[name]) for name in SHOWN])
        for kind, values in cells.items():
            coverage[kind].append([float(np.mean(column)) for column in zip(*values, strict=True)])
        lines.append(f"| {data.label} | {' | '.join(f'{value:.2f}' for value in coverage['ours'][-1])} |")
        print(lines[-1], flush=True)
    for kind, label in (("ours", "error bars"), ("noise", "noise alone")):
        table = np.array(coverage[kind])
        for name, row in (
            ("mean", table.mean(axis=0)),
            ("least", table.min(axis=0)),
            ("sets below 0.88", (table < 0.88).mean(axis=0)),
            ("median bar/error", np.nanmedian(widths[kind], axis=0)),
        ):
            lines.append(f"| {label}: {name} | {' | '.join(f'{value:.3f}' for value in row)} |")
    return "\n".join(lines)


def _share(errors: Floats, bars: Floats) -> float:
    return float(np.mean(errors <= NORMAL * bars)) if errors.size else 1.0


def _width(errors: Floats, bars: Floats) -> float:
    square = float(np.mean(errors**2)) if errors.size else 0.0
    return float(np.sqrt(np.mean(bars**2) / square)) if square else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("choose", "report", "fresh", "unseen", "last", "random"), default="report")
    parser.add_argument("--group", choices=GROUPS, action="append")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.3, 1.0, 3.0])
    parser.add_argument("--trials", type=int, default=size(3, 1))
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--every", type=int, default=1, help="only every so many data sets")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    groups = tuple(asked.group or GROUPS)
    sets = coverage_sets(asked.half, groups)[:: asked.every]
    print("\n" + run(sets, asked.epsilon, asked.trials, asked.first))


if __name__ == "__main__":
    main()
