"""Moments of a table with categories of text from Parquet, by group, compared with plain moments of coded columns."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

import matrixdp as mdp
from benchmarks.sizes import size
from benchmarks.timing import compare, peak_memory, row, seconds, show

RECORDS = size(10**7, 2000)
FILES = 10
NUMBERS = [f"x{i}" for i in range(10)]
CATEGORIES = [f"c{i}" for i in range(5)]
LEVELS = [f"level {i}" for i in range(8)]
TABLE = mdp.Columns(
    [*(mdp.Number(name, -6, 6) for name in NUMBERS), *(mdp.Category(name, LEVELS) for name in CATEGORIES)]
)
INDICATORS = [f"{name}={level}" for name in CATEGORIES for level in LEVELS]
ONE_HOT = mdp.Bounds([-6] * 10 + [0] * 40, [6] * 10 + [1] * 40, names=NUMBERS + INDICATORS)
CODED = mdp.Bounds([-6] * 10 + [0] * 5, [6] * 10 + [7] * 5, names=NUMBERS + CATEGORIES)
_PEAK = """
import re, sys
from pathlib import Path
from benchmarks.tables import by_group
by_group(Path(sys.argv[1]), int(sys.argv[2]))
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


def run(records: int = RECORDS, clock: Callable[[], float] = time.perf_counter) -> Iterator[dict[str, Any]]:
    """The rows of the table, each as soon as it is measured."""
    settings: dict[str, Any] = {"rounds": 3, "clock": clock}
    what = f"{records:,} x (10 numbers, 5 categories of 8 levels) from Parquet"
    with tempfile.TemporaryDirectory() as folder:
        texts, codes, indicators = write_tables(Path(folder), records)
        ours, peer = compare(lambda: by_group(texts, records), lambda: plain(codes, records), **settings)
        what = f"moments by group of {what}, against moments of 15 coded columns"
        yield row(what, ours, peer, "at most 1.5", slower=True)
        memory = f"{peak_memory(_PEAK, texts, records):,.0f} MiB"
        yield {"what": "  peak memory", "ours": memory, "peer": "", "ratio": "", "note": "wanted: under 1 GiB"}
        ours, peer = compare(lambda: together(texts, records), lambda: plain(codes, records), **settings)
        yield row("  without groups, against 15 coded columns", ours, peer, slower=True)
        ours, peer = compare(lambda: by_group(texts, records), lambda: plain(indicators, records, ONE_HOT), **settings)
        yield row("  by group, against moments of 50 columns, one for each level", ours, peer, slower=True)
    yield from in_memory(min(records, 10**6))


def write_tables(place: Path, records: int) -> tuple[Path, Path, Path]:
    """Write the same records three times, with categories as texts, as codes and as indicators."""
    rng = np.random.default_rng(0)
    folders = place / "texts", place / "codes", place / "indicators"
    for folder in folders:
        folder.mkdir()
    for number in range(FILES):
        rows = records // FILES
        numbers = {name: rng.standard_normal(rows) for name in NUMBERS}
        codes = {name: rng.integers(0, 8, rows, np.int8) for name in CATEGORIES}
        words = {name: pa.DictionaryArray.from_arrays(code, LEVELS).cast(pa.string()) for name, code in codes.items()}
        levels = enumerate(LEVELS)
        indicators = {f"{name}={level}": (codes[name] == i).astype(np.int8) for i, level in levels for name in codes}
        for folder, columns in zip(folders, (words, codes, indicators), strict=True):
            pq.write_table(pa.table({**numbers, **columns}), folder / f"{number}.parquet", row_group_size=250_000)
    return folders


def by_group(folder: Path, records: int) -> Any:
    query = mdp.TableMoments(TABLE, records, by=["c0"])
    return query.evaluate(mdp.open_records(folder), clip=True, missing="error")


def together(folder: Path, records: int) -> Any:
    return mdp.TableMoments(TABLE, records).evaluate(mdp.open_records(folder), clip=True, missing="error")


def plain(folder: Path, records: int, bounds: mdp.Bounds = CODED) -> Any:
    return mdp.Moments(bounds, records).evaluate(mdp.open_records(folder), clip=True, missing="error")


def in_memory(records: int) -> list[dict[str, Any]]:
    """The same query on data frames, against Arrow."""
    import polars as pl

    with tempfile.TemporaryDirectory() as folder:
        table = pq.read_table(write_tables(Path(folder), records)[0])
    query = mdp.TableMoments(TABLE, records, by=["c0"])
    frames = {
        "pandas": table.to_pandas(),
        "pandas, object": table.to_pandas().astype(dict.fromkeys(CATEGORIES, object)),
        "pandas, category": table.to_pandas().astype(dict.fromkeys(CATEGORIES, "category")),
        "polars": pl.from_arrow(table),
        "list of rows": list(zip(*(column.to_pylist() for column in table.columns), strict=True)),
    }
    evaluate = lambda data: query.evaluate(data, clip=True, missing="error")  # noqa: E731
    base = min(seconds(lambda: evaluate(table)) for _ in range(3))
    return [
        row(f"  {records:,} in memory, {name}, against Arrow", took, base, slower=True)
        for name, frame in frames.items()
        for took in [min(seconds(lambda frame=frame: evaluate(frame)) for _ in range(2))]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--processor-time", action="store_true", help="of all threads, for a machine that is busy")
    asked = parser.parse_args()
    clock = time.process_time if asked.processor_time else time.perf_counter
    with threadpool_limits(1):
        show(run(asked.records, clock), 110)


if __name__ == "__main__":
    main()
