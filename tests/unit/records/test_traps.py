"""Known pitfalls of exact sums and of readers: each test shows the pitfall and that it is avoided."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.queries.sums import GramSum, MomentTask, sum_levels


def test_products_in_float32_are_wrong_and_ours_are_not():
    rng = np.random.default_rng(0)
    integers = rng.integers(-(2**15), 2**15, (2000, 6))
    truth = integers.T @ integers
    single = integers.astype(np.float32)
    assert not (single.T @ single == truth).any()
    total = GramSum(6, limit=2**15)
    total.add(integers.astype(float))
    assert np.array_equal(total.value(), truth)


def test_sums_of_floats_are_not_exact_beyond_two_to_the_53_and_ours_are():
    """Products of 16 bits: a float64 sum is exact for 8.4 million records at most."""
    da = pytest.importorskip("dask.array")
    records = 9_000_000
    value = (2**15 - 1) / 2**15
    bounds = mdp.Bounds([-1], [1])
    grid = sum_levels(records)
    array = da.full((records, 1), value, chunks=(1_000_000, 1), dtype=np.float32)
    steps = round(value * grid)
    assert grid == 2**18
    assert records * steps**2 > 2**53
    task = MomentTask(bounds, bounds, records, True, "error")
    sums = task.start()
    for partial in mdp.open_records(array).map(task):
        sums.merge(partial)
    assert int(sums.value()[1, 1]) == records * steps**2
    odd = np.full(records, float(steps) ** 2 + 1)
    assert int(np.cumsum(odd)[-1]) != records * (steps**2 + 1)


def test_narrow_floats_are_widened_before_they_are_scaled(tmp_path):
    """A FLOAT column times a decimal literal stays FLOAT in SQL; here the first operation is in float64."""
    values = np.random.default_rng(1).uniform(0, 1, 5000).astype(np.float32)
    pq.write_table(pa.table({"a": values}), tmp_path / "a.parquet")
    bounds = mdp.Bounds([0.1], [0.9], names=["a"])
    query = mdp.SecondMoment(bounds, 5000)
    found = query.evaluate(tmp_path / "a.parquet", clip=True, missing="error")
    exact = query.evaluate(values.astype(float)[:, None], clip=True, missing="error")
    assert np.array_equal(found, exact)
    grid = sum_levels(5000)
    narrow = np.rint(np.clip((values - np.float32(0.5)) * np.float32(grid / 0.4), -grid, grid)).astype(float)
    assert narrow @ narrow * (0.4 / grid) ** 2 / 5000 != exact[0, 0]


PEAK = """
import re, sys
import matrixdp as mdp
bounds = mdp.Bounds([-6] * 40, [6] * 40, names=[f"x{i}" for i in range(40)])
mdp.SecondMoment(bounds, 1000).evaluate(mdp.open_records(sys.argv[1], workers=2), clip=True, missing="error")
mdp.SecondMoment(bounds, 600_000).evaluate(mdp.open_records(sys.argv[2], workers=2), clip=True, missing="error")
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory from /proc")
def test_row_groups_are_not_read_ahead(tmp_path):
    """600,000 x 40 in one row group is 96 MB of float32, and 192 MB of float64."""
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(40)]
    for name, rows in (("small", 1000), ("large", 600_000)):
        table = pa.table({column: rng.standard_normal(rows).astype(np.float32) for column in names})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=rows, use_dictionary=False)
    environment = {**os.environ, "PYTHONPATH": str(Path(mdp.__file__).parents[1])}

    def peak(*files):
        command = [sys.executable, "-c", PEAK, *(str(tmp_path / f"{file}.parquet") for file in files)]
        return int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout) / 1024

    # Single runs take up to 353 MiB; with reading ahead, 375 to 391 MiB.
    assert any(peak("small", "large") < 350 for _ in range(5))
