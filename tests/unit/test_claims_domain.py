"""No rounding leaves the domain: records at the edge of a ball, on coarse grids, in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

import matrixdp as mdp


@pytest.mark.parametrize("levels", [3, 8, 100, 2**19])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_records_inside_of_a_ball_are_not_rounded_out_of_it(levels, size):
    """Rounding to nearest would move records that lie less than a step inside of the sphere beyond it."""
    rng = np.random.default_rng(levels + size)
    half = rng.uniform(0.5, 2, size)
    radius = float(0.8 * np.linalg.norm(half))
    bounds = mdp.Bounds(-half, half, radius=radius)
    turns = rng.standard_normal((400, size))
    lengths = radius * (1 - np.concatenate([np.zeros(100), rng.uniform(0, 2 / levels, 200), np.full(100, 1e-15)]))
    records = np.clip(turns / np.linalg.norm(turns, axis=1, keepdims=True) * lengths[:, None], -half, half)
    steps = [Fraction(float(h)) / levels for h in bounds.halfwidths]
    for row in bounds.quantise(records, levels):
        square = sum((int(k) * step) ** 2 for k, step in zip(row, steps, strict=True))
        assert square <= Fraction(radius) ** 2


def test_a_record_on_the_sphere_stays_where_it_is():
    """A record outside moves towards the midpoint, and not further inside than the grid requires."""
    bounds = mdp.Bounds([-1, -1], [1, 1], radius=1.0)
    levels = 2**19
    found = bounds.quantise([[3.0, 4.0], [0.6, 0.8]], levels) / levels
    assert np.allclose(found, [[0.5 * 2**0.5] * 2, [0.6, 0.8]], atol=3 / levels)
