"""Coordinates: exact, and a function of each record alone."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.adaptive.coordinates import LEVELS, Coordinates
from matrixdp.domain.bounds import square_lengths


def row_lengths(records):
    return np.sqrt(square_lengths(records))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 60))
def test_coordinates_of_a_record_depend_on_it_alone(seed, size):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(size, size)) * 10.0 ** rng.uniform(-6, 6, (size, 1))
    coordinates = Coordinates.of(matrix, rng.uniform(-1, 1, size))
    steps = rng.integers(-LEVELS, LEVELS, (37, size), endpoint=True).astype(float)
    together = coordinates(steps)
    assert np.array_equal(coordinates.lengths(steps), row_lengths(together))
    apart = np.concatenate([coordinates(row[None]) for row in steps])
    assert np.array_equal(together, apart)
    assert np.array_equal(coordinates(np.asfortranarray(steps[::-1]))[::-1], together)
    for i, row in enumerate(coordinates.numbers):
        whole = sum(int(b) * (int(a) - int(m)) for a, b, m in zip(steps[0], row, coordinates.origin, strict=True))
        assert together[0, i] == whole * coordinates.unit[i]
    assert np.allclose(
        together, (steps / LEVELS - coordinates.centre) @ matrix.T, rtol=1e-5, atol=1e-5 * np.abs(matrix).max()
    )
