"""The command line: time to show help, and time and memory of a release from a large file."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.sizes import size
from benchmarks.timing import row

RECORDS, FEATURES = size((10**7, 20), (2000, 3))
_PEAK = (
    "import re; print('peak', re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    if sys.platform == "linux"
    else "print('peak 0')"
)
_OURS = f"import sys\nfrom matrixdp.cli.main import run\ncode = run(sys.argv[1:])\n{_PEAK}\nsys.exit(code)"
_WHOLE = f"""
import sys
import numpy as np, pyarrow.parquet as pq
table = pq.read_table(sys.argv[1])
X = np.column_stack([column.to_numpy() for column in table.columns])
X.T @ X
{_PEAK}
"""
_STREAMED = f"""
import sys
import numpy as np, pyarrow.parquet as pq
total = 0
with pq.ParquetFile(sys.argv[1], pre_buffer=False) as file:
    for batch in file.iter_batches(batch_size=1 << 16):
        X = np.column_stack([column.to_numpy() for column in batch.columns])
        total = total + X.T @ X
{_PEAK}
"""


def run() -> list[dict[str, str]]:
    """All rows."""
    return [measure_help(), *measure_releases()]


def measure_help() -> dict[str, str]:
    """``matrixdp --help``, compared with starting the interpreter."""
    ours, nothing = [], []
    for _ in range(size(7, 1)):
        ours.append(time_process(["-m", "matrixdp", "--help"])[0])
        nothing.append(time_process(["-c", "pass"])[0])
    return row(
        "matrixdp --help, against python -c pass",
        statistics.median(ours),
        statistics.median(nothing),
        "under 0.4 s",
        slower=True,
    )


def measure_releases() -> list[dict[str, str]]:
    """Moments of a large Parquet file: the command, compared with reading the file and a plain matrix product."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_table(place / "data.parquet")
        bounds = (f"[columns.x{i}]\nlower = -4\nupper = 4\n" for i in range(FEATURES))
        (place / "schema.toml").write_text("".join(bounds))
        command = ["release", str(place / "data.parquet"), "--schema", str(place / "schema.toml"), "--query", "moments"]
        command += [
            "--epsilon",
            "1",
            "--delta",
            "1e-9",
            "--no-ledger",
            "--out",
            str(place / "out"),
            "--force",
            "--json",
        ]
        rivals = {
            "ours": ["-c", _OURS, *command],
            "whole": ["-c", _WHOLE, str(place / "data.parquet")],
            "streamed": ["-c", _STREAMED, str(place / "data.parquet")],
        }
        for words in rivals.values():
            time_process(words)
        runs = [{name: time_process(words) for name, words in rivals.items()} for _ in range(size(3, 1))]
    times = {name: statistics.median(found[name][0] for found in runs) for name in rivals}
    peaks = {name: max(found[name][1] for found in runs) for name in rivals}
    what = f"{RECORDS:,} x {FEATURES} from Parquet"
    return [
        row(f"release of moments, {what}, against read_table and X.T @ X", times["ours"], times["whole"],
            "at most 1.5", slower=True),
        row(f"release of moments, {what}, against batches and X.T @ X", times["ours"], times["streamed"], slower=True),
        {
            "what": f"release of moments, {what}, peak memory, against read_table",
            "ours": f"{peaks['ours']:,.0f} MiB",
            "peer": f"{peaks['whole']:,.0f} MiB",
            "ratio": f"{peaks['ours'] / max(peaks['whole'], 1):.3g}x",
            "note": "wanted: under 1,024 MiB",
        },
    ]  # fmt: skip


def write_table(path: Path) -> None:
    """Normal values in row groups of a million records."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(FEATURES)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for _ in range(10):
            columns = [rng.standard_normal(RECORDS // 10) for _ in names]
            writer.write_table(pa.table(columns, schema=schema))


def time_process(words: list[str]) -> tuple[float, float]:
    """Seconds that a new Python process takes, and its peak memory in MiB if it prints that."""
    import matrixdp

    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(matrixdp.__file__).parents[1]),
        "OPENBLAS_NUM_THREADS": "1",
    }
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=True)
    took = time.perf_counter() - start
    peak = re.search(r"^peak (\d+)$", done.stdout, re.MULTILINE)
    return took, int(peak[1]) / 1024 if peak else 0.0
