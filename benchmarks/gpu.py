"""Exact draws, sums and releases on a GPU, each beside what the device does without exactness, in the same run.

``python -m benchmarks.gpu [--small]``. Needs an NVIDIA GPU, CuPy and PyTorch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from typing import Any

import cupy
import numpy as np
import torch

import matrixdp as mdp
from matrixdp.noise import Stream, draw_gaussian
from matrixdp.queries.cuda_sums import DeviceGrid, moment_on_device
from matrixdp.queries.sums import sum_levels


def seconds(work: Callable[[], Any], repeats: int = 7) -> float:
    """Median time of some calls, after two for warming up."""
    for _ in range(2):
        work()
    times = []
    for _ in range(repeats):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        cupy.cuda.Device().synchronize()
        torch.cuda.synchronize()
        start.record()
        work()
        torch.cuda.synchronize()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end) / 1000)
    return median(times)


def draws(size: int) -> None:
    """Exact draws beside the normals of PyTorch."""
    out, stream = cupy.empty(size, np.int64), Stream()
    ours = seconds(lambda: draw_gaussian(stream, 40, out=out))
    doubles = torch.empty(size, dtype=torch.float64, device="cuda")
    theirs = seconds(lambda: doubles.normal_())
    print(f"| {size:,} draws | {size / ours / 1e9:.1f} | {size / theirs / 1e9:.1f} | {theirs / ours:.2f} |")


def sums(records: int, features: int) -> None:
    """Exact moments beside the plain product in float32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    data = torch.rand((records, features), dtype=torch.float32, device="cuda")
    bounds = mdp.Bounds(np.zeros(features), np.ones(features))
    grid = DeviceGrid(bounds, bounds, sum_levels(records), clip=True, missing="error")
    array = cupy.from_dlpack(data)
    ours = seconds(lambda: moment_on_device(array, grid))
    theirs = seconds(lambda: data.T @ data)
    print(f"| {records:,} x {features} | {ours * 1e3:.2f} | {theirs * 1e3:.2f} | {ours / theirs:.2f} |")


def rows(records: int, features: int) -> None:
    """A noisy data set beside its draws alone."""
    data = cupy.random.random((records, features), dtype=np.float32)
    bounds = mdp.Bounds(np.zeros(features), np.ones(features))
    design = mdp.make_design(mdp.Identity(bounds, records=records), mdp.Privacy(1, 1e-9))
    design.release(data[:records])
    pool = cupy.get_default_memory_pool()

    def run() -> None:
        design.release(data)

    ours = seconds(run, 5)
    pool.free_all_blocks()
    before = pool.used_bytes()
    released = design.release(data)
    peak = pool.total_bytes() - before
    size = released.matrix.nbytes
    del released
    pool.free_all_blocks()
    out, stream = cupy.empty((records, features), np.int64), Stream()
    alone = seconds(lambda: draw_gaussian(stream, design.grid.bits, out=out), 5)
    print(
        f"| {records:,} x {features} | {ours * 1e3:.1f} | {alone * 1e3:.1f} | {ours / alone:.2f} | {peak / size:.3f} |"
    )


def main() -> None:
    """Print one table for each kind of work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="sizes for a quick look")
    small = parser.parse_args().small
    print("| | thousand million a second, exact | `normal_` of PyTorch, float64 | ratio |\n| --- | --- | --- | --- |")
    for size in (1 << 24, 1 << 26 if small else 1 << 28):
        draws(size)
    print("\n| moment | exact, ms | float32 product, ms | ratio |\n| --- | --- | --- | --- |")
    for records, features in ((100_000, 1000), (400_000, 50)) if small else ((1_000_000, 1000), (4_000_000, 50)):
        sums(records, features)
    print("\n| noisy data set | release, ms | its draws, ms | ratio | memory over the result |\n" + "| --- " * 5 + "|")
    rows(1_000_000 if small else 100_000_000, 20)


if __name__ == "__main__":
    main()
