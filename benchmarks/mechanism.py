"""Releases against what they cannot do without."""

from __future__ import annotations

import numpy as np

from benchmarks.timing import compare, row
from matrixdp import Bounds, Identity, Privacy, SecondMoment, Stream, make_design
from matrixdp.noise.gaussian import draw_gaussian


def run() -> list[dict[str, str]]:
    """All rows."""
    return [identity(), second_moment()]


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
    upper = rng.uniform(1, 2, 1000)
    bounds = Bounds(-upper, upper * 1.5)
    data = rng.uniform(bounds.lower, bounds.upper, (10**5, 1000))
    design = make_design(SecondMoment(bounds, records=10**5), Privacy(1, 1e-6))
    ours, blas = compare(lambda: design.release(data), lambda: data.T @ data, rounds=3)
    what = "release of a second moment, 10^5 records of 1000 features, against the BLAS product"
    return row(what, ours, blas, "at most 1.5", slower=True)
