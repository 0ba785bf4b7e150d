"""Releases against what they cannot do without."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from benchmarks.sizes import size
from benchmarks.timing import best, compare, row
from matrixdp import Bounds, Identity, Moments, Privacy, SecondMoment, Stream, make_design
from matrixdp.noise.gaussian import draw_gaussian


def run() -> list[dict[str, str]]:
    """All rows."""
    return [identity(), large_identity(), second_moment(), small_moments(), first_release()]


def identity() -> dict[str, str]:
    rng = np.random.default_rng(0)
    data = rng.uniform(0, 1, (2126, 21))
    design = make_design(Identity(Bounds([0] * 21, [1] * 21), records=2126), Privacy(1, 1 / 2126))
    stream, out = Stream(), np.empty(data.size, np.int64)
    ours, sampler = compare(
        lambda: design.release(data), lambda: draw_gaussian(stream, design.grid.bits, out=out), rounds=51
    )
    return row("release of 2126 x 21 records, against the sampler alone", ours, sampler, "at most 3", slower=True)


def second_moment() -> dict[str, str]:
    rng = np.random.default_rng(0)
    records, features = size((10**5, 1000), (10**3, 5))
    upper = rng.uniform(1, 2, features)
    bounds = Bounds(-upper, upper * 1.5)
    data = rng.uniform(bounds.lower, bounds.upper, (records, features))
    design = make_design(SecondMoment(bounds, records=records), Privacy(1, 1e-6))
    ours, blas = compare(lambda: design.release(data), lambda: data.T @ data, rounds=3)
    what = "release of a second moment, 10^5 records of 1000 features, against the BLAS product"
    return row(what, ours, blas, "at most 1.5", slower=True)


def large_identity() -> dict[str, str]:
    rng = np.random.default_rng(0)
    records = size(10**6, 10**3)
    data = rng.uniform(0, 1, (records, 10))
    design = make_design(Identity(Bounds([0] * 10, [1] * 10), records=records), Privacy(1, 1e-6))
    generator = np.random.Generator(np.random.PCG64(1))
    ours, peer = best(lambda: design.release(data), lambda: data + generator.standard_normal(data.shape), rounds=7)
    return row("release of 10^6 x 10 records on all cores, against adding NumPy's normals", ours, peer)


def small_moments() -> dict[str, str]:
    data = np.random.default_rng(0).uniform(0, 1, (500, 20))
    bounds, privacy = Bounds([0] * 20, [1] * 20), Privacy(1, 1e-6)

    def ours() -> None:
        make_design(Moments(bounds, records=500), privacy).release(data)

    extended = np.hstack([np.ones((500, 1)), data])
    mine, peer = compare(ours, lambda: np.linalg.eigh(extended.T @ extended), rounds=301)
    what = "design and release of the moments of 500 x 20, against the product and its eigenvectors"
    return {**row(what, mine, peer, slower=True), "note": "wanted: at most 1 ms"}


def first_release() -> dict[str, str]:
    """A new process that imports the package and makes a release, against one that imports SciPy's optimisers."""
    code = (
        "import numpy as np; from matrixdp import Bounds, Moments, Privacy, make_design; "
        "make_design(Moments(Bounds([0] * 5, [1] * 5), records=9), Privacy(1, 1e-6)).release(np.zeros((9, 5)))"
    )

    def python(text: str) -> None:
        subprocess.run([sys.executable, "-c", text], check=True)

    ours, peer = best(lambda: python(code), lambda: python("import scipy.optimize"), rounds=7)
    return row(
        "a process that imports and releases once, against one that imports scipy.optimize", ours, peer, slower=True
    )
