"""Records with their sums: exact, whatever the order, the blocks and the number of records that are clipped."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.adaptive.coordinates import LEVELS, Coordinates, multiply, to_digits, to_floats
from matrixdp.adaptive.moment import prepare_fit, private_moment
from matrixdp.adaptive.records import grid_levels, grid_records

EPS = np.finfo(float).eps


def box(size):
    return mdp.Bounds([-1] * size, [1] * size)


def made(seed, records, size):
    """Private records, and the same in some coordinates."""
    rng = np.random.default_rng(seed)
    data = rng.uniform(-1, 1, (records, size)) * rng.uniform(0, 1, (records, 1)) ** 2
    matrix = rng.normal(size=(size, size)) * 10.0 ** rng.uniform(-3, 3, (size, 1))
    plain = grid_records(box(size), data, LEVELS)
    return plain, plain.transform(Coordinates.of(matrix, rng.uniform(-0.3, 0.3, size)))


def ball(size, radius):
    return mdp.Bounds(np.full(size, -radius), np.full(size, radius), radius=radius)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 8))
def test_products_of_digits_are_exact(seed, rows, columns):
    rng = np.random.default_rng(seed)
    bits = 33 - int(np.ceil(np.log2(columns)))
    numbers = rng.integers(-(2**bits), 2**bits, (rows, columns), endpoint=True)
    whole = rng.integers(-(2**62), 2**62, (columns, columns), endpoint=True)
    whole[0, 0] = rng.choice([2**62, -(2**62), 2**19, -(2**19), 0])
    digits = multiply(numbers.astype(float), to_digits(whole))
    assert np.abs(digits).max() <= 2**19
    exact = numbers.astype(object) @ whole.astype(object)
    found = sum(2 ** (20 * i) * layer.astype(int).astype(object) for i, layer in enumerate(digits))
    assert (found == exact).all()
    again = multiply(numbers.astype(float), digits.transpose(0, 2, 1)) if rows == columns else digits
    expected = numbers.astype(object) @ exact.T if rows == columns else exact
    close = to_floats(again)
    assert all(
        abs(Fraction(a) - int(b)) <= abs(int(b)) * 3 * EPS for a, b in zip(close.flat, expected.flat, strict=True)
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 5), st.floats(0.01, 1.2))
def test_moments_are_those_of_the_records_one_by_one(seed, records, size, share):
    for found in made(seed, records, size):
        lengths, placed = found.source.lengths, found.grid.place(found.source.steps)
        bounds = ball(size, float(np.quantile(lengths, min(share, 1.0)) * max(share, 1.0)) or 1.0)
        outside = lengths > bounds.radius * (1 - 2 * (size + 16) * EPS)
        grid = LEVELS
        moved = bounds.quantise(placed, grid) * bounds.steps(grid)
        rows = np.where(outside[:, None], moved, placed)
        full = [[Fraction(1), *map(Fraction, row)] for row in rows]
        exact = [[sum(row[i] * row[j] for row in full) / records for j in range(size + 1)] for i in range(size + 1)]
        largest = np.multiply.outer(*[np.r_[1.0, np.full(size, bounds.radius)]] * 2)
        answer = found.moment(bounds, records)
        for i in range(size + 1):
            for j in range(size + 1):
                assert abs(Fraction(answer[i, j]) - exact[i][j]) <= 8 * EPS * largest[i, j]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 1.0])
def test_order_and_blocks_change_no_bit(share):
    rng = np.random.default_rng(5)
    data, order = rng.normal(size=(5000, 23)) * 0.2, rng.permutation(5000)
    coordinates = Coordinates.of(rng.normal(size=(23, 23)), np.zeros(23))
    first, second = (grid_records(box(23), rows, LEVELS) for rows in (data, data[order]))
    for one, other in ((first, second), [x.transform(coordinates) for x in (first, second)]):
        assert np.array_equal(one.source.lengths[order], other.source.lengths)
        bounds = ball(23, float(np.quantile(one.source.lengths, share)))
        assert np.array_equal(one.moment(bounds, 5000), other.moment(bounds, 5000))


def test_sums_are_the_same_whichever_records_are_added_up():
    plain, _ = made(6, 500, 4)
    rows = np.arange(500) < 300
    many, few, whole = (plain.grid.sums(plain.source, part) for part in (rows, ~rows, rows | ~rows))
    assert few[0, 0] + many[0, 0] == whole[0, 0] == 500
    assert np.array_equal(few + many, whole)


def test_the_grid_is_coarser_for_very_many_records():
    assert grid_levels(2_000_000) == LEVELS
    assert grid_levels(5_000_000) == LEVELS // 2
    for records in (1, 10**6, 3 * 10**6, 10**8, 10**12):
        assert 2 * records * (2 * grid_levels(records)) ** 2 <= 2**62
    data = np.random.default_rng(0).normal(size=(300, 3)) * 0.2
    fine, coarse = (grid_records(box(3), data, n) for n in (LEVELS, 1 << 15))
    turn = np.linalg.qr(np.arange(9.0).reshape(3, 3) ** 0.5)[0]
    moved = [x.transform(Coordinates.of(turn, np.full(3, 0.1), x.levels)) for x in (fine, coarse)]
    for one, other in ((fine, coarse), moved):
        assert np.allclose(one.moment(ball(3, 0.4), 300), other.moment(ball(3, 0.4), 300), atol=1e-4)


def test_too_many_features_are_refused():
    with pytest.raises(mdp.ParameterError, match="at most 32768 features"):
        private_moment(np.zeros((1, 2**15 + 1)), box(2**15 + 1), mdp.Privacy(1, 1e-6))


def test_a_design_that_cannot_be_made_is_refused_before_a_fit_can_be_charged():
    options = {"aim": "covariance", "neighbours": "add-remove"}
    with pytest.raises(mdp.ParameterError, match="standard deviations of its noise"):
        prepare_fit(np.zeros((10, 2)), box(2), mdp.Privacy(1e11, 1e-6), records=2**50, **options)
    with pytest.raises(mdp.ParameterError, match="at most 2\\^50"):
        prepare_fit(np.zeros((10, 2)), box(2), mdp.Privacy(1, 1e-6), records=2**62, **options)
