"""The law of draws on a GPU, at 10^10 draws. Run by ``make gpu``; level 10^-6 for each test."""

import math

import numpy as np
import pytest
from scipy.stats import chi2, norm

from matrixdp.noise import Stream, draw_gaussian

cupy = pytest.importorskip("cupy")

BITS, CHUNK, CHUNKS = 40, 1 << 29, 19  # 1.02 * 10^10 draws
LEVEL = 1e-6


def test_counts_and_moments_of_ten_thousand_million_draws():
    edges = np.concatenate([[-np.inf], np.arange(-6, 6.01, 0.125), [np.inf]])
    inner = cupy.asarray((edges[1:-1] * 2.0**BITS).astype(np.int64))
    counts, powers, low = np.zeros(len(edges) - 1), np.zeros(4), np.zeros(256)
    stream, out = Stream(), cupy.empty(CHUNK, np.int64)
    for _ in range(CHUNKS):
        draw_gaussian(stream, BITS, out=out)
        for start in range(0, CHUNK, 1 << 26):
            piece = out[start : start + (1 << 26)]
            places = cupy.searchsorted(inner, piece, side="right")
            counts += cupy.bincount(places, minlength=len(counts)).get()
            low += cupy.bincount(piece & 255, minlength=256).get()
            x = (piece.astype(np.float64) + 0.5) * 2.0**-BITS
            powers += [float((x**k).sum()) for k in (1, 2, 3, 4)]
    n = CHUNK * CHUNKS
    expected = np.diff(norm.cdf(edges)) * n
    keep = expected > 25
    statistic = float((np.square(counts - expected)[keep] / expected[keep]).sum())
    assert statistic < chi2.isf(LEVEL, keep.sum() - 1)
    assert float((np.square(low - n / 256) / (n / 256)).sum()) < chi2.isf(LEVEL, 255)
    for total, mean, variance in zip(powers, (0, 1, 0, 3), (1, 2, 15, 96), strict=True):
        assert abs(total / n - mean) < norm.isf(LEVEL / 2) * math.sqrt(variance / n)
