"""The sampler, the matrix-variate Gaussian and the exact sums."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.stats import matrix_normal

from benchmarks.sizes import size
from benchmarks.timing import best, compare, row, seconds
from matrixdp import Bounds, Stream
from matrixdp.noise import Covariance, MatrixGaussian, gaussian
from matrixdp.noise.gaussian import draw_gaussian
from matrixdp.queries.sums import MomentTask


def run() -> list[dict[str, str]]:
    """Return all rows of the table."""
    return [*sampler(), *law(), *sums(), memory()]


def sampler() -> list[dict[str, str]]:
    """The sampler beside NumPy's, on one thread and on all."""
    count, stream = size(10**7, 10**4), Stream()
    out, floats = np.empty(count, np.int64), np.empty(count)
    generator = np.random.Generator(np.random.PCG64(1))
    what, found, alone = "exact sampler, 10^7 draws, {}, against Generator(PCG64).standard_normal", [], 0.0
    cores = gaussian.read_threads(None)
    for name, threads, wanted in (
        ("one thread", 1, "at least 1.3"),
        (f"{cores} threads", cores, "at least 3.3 on two cores"),
    ):
        with sampling(threads):
            ours, numpy_time = best(
                lambda: draw_gaussian(stream, 40, out=out), lambda: generator.standard_normal(out=floats), rounds=25
            )
        alone = alone or ours
        found.append(row(what.format(name), ours, numpy_time, wanted))
    return [*found, opendp_row(alone / count)]


@contextmanager
def sampling(threads: int) -> Iterator[None]:
    """Draw on this many threads."""
    kept, gaussian.THREADS = gaussian.THREADS, threads
    try:
        yield
    finally:
        gaussian.THREADS = kept


def empty(what: str, note: str) -> dict[str, str]:
    """A row without figures."""
    return {"what": what, "ours": "", "peer": "", "ratio": "", "note": note}


def opendp_row(ours: float) -> dict[str, str]:
    what = "exact sampler, one draw, against OpenDP's exact Gaussian"
    try:
        import opendp.prelude as dp
    except ImportError:
        return empty(what, "opendp is not installed")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    measurement = dp.m.make_gaussian(*space, scale=2.0**40)
    zeros, count = [0] * 2000, 2000
    measurement(zeros)
    theirs = min(seconds(lambda: measurement(zeros)) for _ in range(3)) / count
    return row(what, ours, theirs, "at least 1,000")


def covariance(size: int, rng: np.random.Generator) -> Covariance:
    """Return a covariance with random directions."""
    directions = np.linalg.qr(rng.standard_normal((size, size)))[0]
    return Covariance.eigen(directions, rng.uniform(0.5, 2.0, size))


def law() -> list[dict[str, str]]:
    rng, stream = np.random.default_rng(0), Stream()
    generator = np.random.Generator(np.random.PCG64(1))
    rows = []
    shapes = (
        (6, 248, False),
        (21, 2126, False),
        (100, 100, True),
        (1000, 1000, True),
        (100, 10**6, False),
    )
    for m, n, dense_columns in size(shapes, shapes[:1]):
        rows_side = covariance(m, rng)
        columns_side = covariance(n, rng) if dense_columns else Covariance.identity(n)
        model = MatrixGaussian(rows_side, columns_side)
        left, right = model.rowcov.factor, model.colcov.factor

        def limit(left: Any = left, right: Any = right, m: int = m, n: int = n, dense: bool = dense_columns) -> Any:
            product = left @ generator.standard_normal((m, n))
            return product @ right.T if dense else product

        rounds = 3 if n > 10**5 else 301 if n < 1000 else 15
        ours, least = compare(lambda model=model: model.sample(stream), limit, rounds=rounds)
        kind = "dense columns" if dense_columns else "identity columns"
        wanted = {(6, 248): "at most 3", (21, 2126): "at most 1.3"}.get((m, n), "")
        rows.append(
            row(f"law {m} x {n}, {kind}, against NumPy's normals and the product", ours, least, wanted, slower=True)
        )
        if n <= 2126:
            dense = {"rowcov": rows_side.matrix(), "colcov": columns_side.matrix()}
            scipy_time = min(
                seconds(lambda dense=dense: matrix_normal.rvs(**dense, random_state=generator)) for _ in range(2)
            )
            wanted = "at least 50" if (m, n) == (21, 2126) else ""
            rows.append(row(f"law {m} x {n}, {kind}, against scipy.stats.matrix_normal", ours, scipy_time, wanted))
    return rows


def sums() -> list[dict[str, str]]:
    rows = []
    for records, features in size(((10**6, 50), (10**5, 500)), ((10**3, 5), (10**2, 10))):
        rng = np.random.default_rng(0)
        upper = rng.uniform(1, 2, features)
        bounds = Bounds(-upper * rng.uniform(0.5, 1, features), upper)
        data = rng.uniform(bounds.lower, bounds.upper, (records, features))
        ours, plain = compare(
            lambda b=bounds, d=data, n=records: MomentTask(b, b, n, True, "error")(0, [d]),
            lambda d=data: d.T @ d,
        )
        wanted = "at most 1.35" if features == 50 else ""
        what = f"exact second moment {records:,} x {features}, clipped and quantised, against float64 BLAS"
        rows.append(row(what, ours, plain, wanted, slower=True))
    return rows


def memory() -> dict[str, str]:
    """Measure the peak memory of a draw beyond its output, in a separate process."""
    script = (
        "import numpy as np\n"
        "from matrixdp.noise import Stream, draw_gaussian\n"
        "peak = lambda: next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        f"out = np.ones({size(5 * 10**7, 10**3)}, np.int64)\n"
        "stream = Stream(); draw_gaussian(stream, 40, shape=10)\n"
        "before = peak()\n"
        "draw_gaussian(stream, 40, out=out)\n"
        "print(peak() - before)\n"
    )
    if sys.platform != "linux":
        return empty("memory beyond the buffer", "measured on Linux only")
    extra = int(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
    return {
        "what": "memory of 5 x 10^7 draws beyond the buffer of 381 MiB",
        "ours": f"{extra / 2**10:.1f} MiB",
        "peer": "",
        "ratio": "",
        "note": "wanted: at most 32 MiB",
    }
