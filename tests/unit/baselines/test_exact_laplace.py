"""Exact coins and Laplace integers."""

from __future__ import annotations

import sys

import mpmath
import numpy as np
import pytest

from matrixdp import ParameterError, Stream
from matrixdp.baselines.pure import draw_laplace, flip_exponential

laplace_module = sys.modules["matrixdp.baselines.pure"]


@pytest.mark.parametrize("bits", [-1, 53, 1.5, True])
def test_bits_out_of_range_are_an_error(bits):
    with pytest.raises(ParameterError, match="bits must be an integer from 0 to 52"):
        draw_laplace(Stream(seed=1), bits, 3)


def test_nothing_may_be_drawn():
    assert draw_laplace(Stream(seed=1), 20, 0).shape == (0,)


def test_float_exponential_is_within_its_error_bound():
    x = np.concatenate([np.linspace(0, 1, 513), 1 - 2.0 ** -np.arange(1, 53), 2.0 ** -np.arange(1, 53)])
    values = laplace_module._exponential(x)
    with mpmath.workdps(40):
        errors = [abs(mpmath.mpf(float(v)) - mpmath.exp(-mpmath.mpf(float(p)))) for p, v in zip(x, values, strict=True)]
    assert max(errors) < laplace_module._ERROR / 2


@pytest.mark.parametrize(("exponent", "bits"), [(1, 0), (1, 2), (3, 2), (12345, 20), ((1 << 52) - 1, 52)])
def test_a_coin_turns_over_exactly_at_the_exponential(exponent, bits):
    with mpmath.workdps(60):
        edge = int(mpmath.floor(mpmath.exp(-mpmath.mpf(exponent) / 2**bits) * 2**64))
    assert laplace_module._settle(Stream(seed=1), exponent, bits, edge - 1)
    assert not laplace_module._settle(Stream(seed=1), exponent, bits, edge + 1)


def test_a_height_on_the_edge_gets_further_digits():
    with mpmath.workdps(60):
        scaled = mpmath.exp(-1) * 2**64
        edge, fraction = int(mpmath.floor(scaled)), float(scaled - mpmath.floor(scaled))
    stream = Stream(seed=3)
    outcomes = [laplace_module._settle(stream, 1, 0, edge) for _ in range(4000)]
    assert abs(np.mean(outcomes) - fraction) < 6 * np.sqrt(fraction * (1 - fraction) / 4000)


def test_coins_of_exponent_zero_always_succeed():
    assert flip_exponential(Stream(seed=1), np.zeros(1000, np.int64), 10).all()


def test_the_exact_comparison_agrees_with_the_quick_one(monkeypatch):
    exponents = np.arange(300, dtype=np.int64)
    quick = flip_exponential(Stream(seed=2), exponents, 8)
    monkeypatch.setattr(laplace_module, "_ERROR", 2.0)
    assert np.array_equal(flip_exponential(Stream(seed=2), exponents, 8), quick)
