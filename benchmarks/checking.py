"""Time of `matrixdp check` beside a plain reading of the same CSV file with Arrow, and the memory of both.

``python -m benchmarks.checking``. The table has 10^7 rows of 20 columns: numbers, categories, dates and ids. One value
in a hundred of each column does not fit. Each reading is a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from benchmarks.timing import seconds
from matrixdp.domain.schema_file import parse_schema
from matrixdp.records.checking import check_table

BLOCK = 1 << 16
SCHEMA = """
[person]
column = "id"
[columns]
born = { type = "date", lower = 1920-01-01, upper = 2020-12-31 }
admitted = { type = "date", lower = 2000-01-01, upper = 2030-12-31, format = ["%d.%m.%Y", "%Y-%m-%d"] }
smoker = { type = "yes/no" }
""" + "\n".join(
    [f'x{i} = {{ type = "number", lower = 0, upper = 100 }}' for i in range(11)]
    + [f'c{i} = {{ type = "category", levels = ["north", "south", "west"] }}' for i in range(5)]
)


def make_table(path: Path, rows: int) -> None:
    """Write the table, block by block."""
    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, rows, BLOCK):
        size = min(BLOCK, rows - start)
        odd = lambda values, other, size=size: np.where(rng.random(size) < 0.01, other, values)  # noqa: E731
        days = (np.datetime64("2000-01-01") + rng.integers(0, 9000, size)).astype(str)
        german = np.array([f"{day[8:]}.{day[5:7]}.{day[:4]}" for day in days.tolist()])
        columns = {
            "id": rng.integers(0, max(rows // 2, 1), size),
            "born": odd((np.datetime64("1930-01-01") + rng.integers(0, 27000, size)).astype(str), "unknown"),
            "admitted": odd(german, days),
            "smoker": odd(rng.choice(["yes", "no"], size), "ja"),
        }
        columns |= {f"x{i}": odd(rng.normal(50, 10, size).round(2).astype(str), "n.a.") for i in range(11)}
        columns |= {f"c{i}": odd(rng.choice(["north", "south", "west"], size), "nrth") for i in range(5)}
        batch = pa.table(columns)
        writer = writer or pyarrow.csv.CSVWriter(path, batch.schema)
        writer.write_table(batch)
    if writer is not None:
        writer.close()


def read_plainly(path: Path) -> None:
    """Read all values as texts or numbers with Arrow, where numbers that do not fit are missing."""
    kinds = {f"x{i}": pa.float64() for i in range(11)} | {"id": pa.int64()}
    kinds |= dict.fromkeys(["born", "admitted", "smoker", *(f"c{i}" for i in range(5))], pa.string())
    convert = pyarrow.csv.ConvertOptions(column_types=kinds, null_values=["", "n.a."])
    with pyarrow.csv.open_csv(path, convert_options=convert) as reader:
        for _ in reader:
            pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--read", choices=("plain", "check"), help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.read:
        schema = parse_schema(SCHEMA)
        read = {"plain": lambda: read_plainly(chosen.path), "check": lambda: check_table(chosen.path, schema)}
        started = time.process_time()
        taken = seconds(read[chosen.read])
        print(taken, time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        make_table(path, chosen.rows)
        print(f"{chosen.rows:,} rows, {path.stat().st_size / 1e6:,.1f} MB")
        found = {}
        for name in ("plain", "check"):
            command = [sys.executable, "-m", "benchmarks.checking", "--read", name, "--path", str(path)]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found[name] = [float(word) for word in output.split()]
            wall, work, memory = found[name]
            print(f"{name}: {wall:.2f} s, {work:.2f} s of processor time, {memory:,.0f} MiB")
        wall, work = (found["check"][i] / found["plain"][i] for i in range(2))
        print(f"check takes {wall:.2f} times as long as a plain reading, and {work:.2f} times its processor time")


if __name__ == "__main__":
    main()
