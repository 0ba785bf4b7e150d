"""Error bars of answers from a stream cover what they claim, in periods, windows, totals and differences.

Level: `levels.LEVEL` each, for exact binomial bounds, with one number per stream, so that trials are independent.
"""

from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import binom

import matrixdp as mdp
from levels import LEVEL
from matrixdp.mechanisms.mechanism import prepare
from matrixdp.noise import draw_gaussian
from matrixdp.release.stream import PublishedStep, PublishedStream, add_steps, round_step
from matrixdp.release.stream_plan import GRID_BITS
from matrixdp.sensitivity.stream_change import BITS
from nightly import times

TRIALS, STEPS = times(300, 1500), 6
COLUMNS = mdp.Columns([mdp.Number("x", -4, 4), mdp.Category("ward", ["a", "b"])])
QUERY = mdp.TableMoments(COLUMNS, records=400, neighbours="add-remove")
PLAN = mdp.make_stream(QUERY, mdp.Privacy(2, 1e-6), every="step", last=STEPS, aim="total")


@lru_cache
def make_data():
    rng = np.random.default_rng(3)
    values, wards = rng.normal(size=(STEPS, 400)).clip(-4, 4), rng.choice(["a", "b"], (STEPS, 400))
    tables = [{"x": x, "ward": w} for x, w in zip(values, wards, strict=True)]
    sums = [round_step(PLAN, prepare(PLAN.design, one, clip=True, missing="error"), t) for t, one in enumerate(tables)]
    return values, [add_steps(PLAN, sums[: t + 1]) for t in range(STEPS)]


def publish(seed):
    noise = draw_gaussian(mdp.Stream(seed=seed), BITS + GRID_BITS, shape=(STEPS, PLAN.dimension)).tolist()
    steps = [
        PublishedStep(f"s{t}", 0, tuple(a + b for a, b in zip(exact, noise[t], strict=True)))
        for t, exact in enumerate(make_data()[1])
    ]
    return PublishedStream("ward", PLAN, tuple(steps), simulation=True)


def answers(stream):
    """The column x of each kind: an estimate of one number, and its truth."""
    values = make_data()[0]
    means = values.mean(axis=1)
    series = stream.series("x")
    yield "period", series.value[3, 0], series.std[3, 0], means[3]
    found = series.difference("s4", "s3")
    yield "difference", found.value[0, 0], found.std[0, 0], means[4] - means[3]
    for kind, first in (("window", 3), ("total", 0)):
        one = stream.between(f"s{first}", "s5").means()
        yield kind, one.value[0, 0], one.std[0, 0], values[first:].mean()


@lru_cache
def missed():
    found = {}
    for seed in range(TRIALS):
        for kind, value, std, truth in answers(publish(seed)):
            found.setdefault(kind, []).append((value - truth) / std)
    return found


@pytest.mark.parametrize("kind", ["period", "window", "total", "difference"])
def test_bars_cover_what_they_claim(kind):
    scores = np.abs(missed()[kind])
    low, high = binom.ppf([LEVEL / 2, 1 - LEVEL / 2], TRIALS, 0.05)
    assert low <= (scores > 1.96).sum() <= high


def test_shows_that_bars_of_independent_periods_are_wrong_for_differences():
    """Two bars added in quadrature, as if the noise of two periods were independent, are too short."""
    short = []
    for seed in range(60):
        series = publish(seed).series("x")
        short.append(float(np.hypot(series.std[4, 0], series.std[3, 0]) / series.difference("s4", "s3").std[0, 0]))
    assert max(short) < 0.95
