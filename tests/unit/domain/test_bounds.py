"""Records are clipped to the domain, each independently, and no rounding leaves it."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from matrixdp import Bounds, DataError, ParameterError

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def domains(draw):
    m = draw(st.integers(1, 4))
    lower = np.array(draw(st.lists(st.floats(-1e6, 1e6), min_size=m, max_size=m)))
    upper = lower + np.array(draw(st.lists(st.floats(1e-3, 1e6), min_size=m, max_size=m)))
    radius = draw(st.none() | st.floats(0.05, 2.0))
    return Bounds(lower, upper, radius=None if radius is None else radius * float(np.linalg.norm(upper - lower)) / 2)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_quantised_records_lie_in_the_box_and_in_the_ball(data):
    bounds = data.draw(domains())
    levels = data.draw(st.sampled_from([8, 2**15, 2**19]))
    records = data.draw(arrays(np.float64, (3, bounds.size), elements=FINITE | st.floats(-1e6, 2e6)))
    q = bounds.quantise(records, levels)
    assert np.array_equal(q, np.rint(q))
    assert np.abs(q).max() <= levels
    if bounds.radius is not None:
        steps = [Fraction(float(h)) / levels for h in bounds.halfwidths]
        for row in q:
            norm2 = sum((Fraction(float(k)) * step) ** 2 for k, step in zip(row, steps, strict=True))
            assert norm2 <= Fraction(bounds.radius) ** 2


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_centred_records_lie_in_the_box_and_in_the_ball(data):
    bounds = data.draw(domains())
    records = data.draw(arrays(np.float64, (3, bounds.size), elements=FINITE | st.floats(-1e6, 2e6)))
    x = bounds.centre(records)
    assert (np.abs(x) <= bounds.halfwidths).all()
    if bounds.radius is not None:
        for row in x:
            assert sum(Fraction(float(v)) ** 2 for v in row) <= Fraction(bounds.radius) ** 2


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_each_record_is_mapped_on_its_own(data):
    bounds = data.draw(domains())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    records = rng.uniform(bounds.lower - 1, bounds.upper + 1, (data.draw(st.integers(2, 1500)), bounds.size))
    q = bounds.quantise(records, 2**15)
    i = data.draw(st.integers(0, len(records) - 1))
    assert np.array_equal(q[i], bounds.quantise(records[i : i + 1], 2**15)[0])
    other = records.copy()
    other[i] = bounds.upper
    assert np.array_equal(np.delete(bounds.quantise(other, 2**15), i, axis=0), np.delete(q, i, axis=0))


def test_bounds_are_whole_numbers_of_the_grid():
    bounds = Bounds([0.1, -3.0], [0.7, 1e5])
    assert bounds.quantise([bounds.lower, bounds.upper, bounds.midpoint], 2**15).tolist() == [
        [-(2**15), -(2**15)],
        [2**15, 2**15],
        [0, 0],
    ]


@settings(max_examples=100, deadline=None)
@given(st.floats(-4e59, 4e59), st.floats(-4e59, 4e59))
def test_halfwidths_are_never_too_small(a, b):
    lower, upper = min(a, b), max(a, b)
    if upper - lower > 1e-59:
        bounds = Bounds([lower], [upper])
        middle, half = Fraction(float(bounds.midpoint[0])), Fraction(float(bounds.halfwidths[0]))
        assert half >= Fraction(upper) - middle
        assert half >= middle - Fraction(lower)


def test_one_wide_number_does_not_make_the_others_more_precise():
    bounds, base = Bounds([2.0**53 - 4], [2.0**53 + 4]), [[2**53 + 1]] * 3
    narrow, wide = (bounds.quantise([*base, [last]], 2**15)[:3] for last in (2**53, np.longdouble(2**53)))
    assert np.array_equal(narrow, wide)


def test_many_kinds_of_numbers_are_taken():
    bounds = Bounds([0, 0], [10, 10])
    expected = bounds.quantise([[1.0, 9.0]], 100)
    for dtype in (np.float32, np.int8, np.uint64, np.float64):
        assert np.array_equal(bounds.quantise(np.array([[1, 9]], dtype), 100), expected)
    wide = np.array([[1, 2, 9]] * 3000, float)[:, ::2]  # not contiguous
    assert np.array_equal(bounds.quantise(wide, 100), np.repeat(expected, 3000, axis=0))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_missing_values_are_an_error_or_the_midpoint(value):
    bounds = Bounds([0, 0], [10, 20], radius=5.0)
    records = np.array([[1.0, 10.0], [value, 10.0]])
    with pytest.raises(DataError, match="must be finite"):
        bounds.quantise(records, 100)
    assert bounds.quantise(records, 100, missing="midpoint")[1].tolist() == [0, 0]
    with pytest.raises(ParameterError, match="missing must be"):
        bounds.quantise(records, 100, missing="zero")


def test_huge_finite_values_are_not_taken_for_infinite():
    assert Bounds([0], [1]).quantise([[1e308], [-1e308]], 10).ravel().tolist() == [10, -10]


def test_records_outside_are_an_error_where_clipping_was_not_asked_for():
    bounds = Bounds([0], [1])
    with pytest.raises(DataError, match="within their bounds") as caught:
        bounds.quantise([[0.5], [1.25]], 10, clip=False)
    assert "1.25" not in str(caught.value)
    assert bounds.quantise([[0.0], [1.0]], 10, clip=False).ravel().tolist() == [-10, 10]


@pytest.mark.parametrize(
    ("lower", "upper", "options", "message"),
    [
        (None, [1], {}, "lower must be given"),
        ([0], None, {}, "upper must be given"),
        ([1, 0], [1, 2], {}, "lower must be below upper, got 1 and 1 for feature 0"),
        ([0, 5], [1, 2], {"names": ["a", "b"]}, "for b instead"),
        ([0], [1, 2], {}, "same length"),
        ([[0]], [[1]], {}, "vector of numbers"),
        ([0, 0], [1, np.inf], {}, "upper must be finite, got inf for feature 1"),
        (["x"], [1], {}, "array of real numbers"),
        ([-1e308], [1e308], {}, "change the units"),
        ([0], [1e-200], {}, "change the units"),
        ([], [], {}, "vector of numbers"),
        (0, 1, {}, "vector of numbers"),
        ([0, 0], [1, 1], {"names": "ab"}, "sequence of strings"),
        ([0, 0], [1, 1], {"names": [1, 2]}, "got 2 of type int"),
        ([0, 0], [1, 1], {"names": ["a"]}, "names must be 2 strings"),
        ([0, 0], [1, 1], {"names": ["a", "a"]}, "unique"),
        ([0], [1], {"radius": 0}, "radius must be"),
        ([0], [1], {"radius": np.nan}, "radius must be"),
    ],
)
def test_unfit_bounds_are_named(lower, upper, options, message):
    with pytest.raises(ParameterError, match=message):
        Bounds(lower, upper, **options)


@pytest.mark.parametrize("records", [np.zeros((2, 3)), np.zeros(2), [["a", "b"]], np.zeros((2, 2), complex)])
def test_unfit_records_are_named(records):
    with pytest.raises(DataError, match="records must"):
        Bounds([0, 0], [1, 1]).quantise(records, 10)


def test_bounds_by_name_and_one_number_for_all():
    named = Bounds.from_dict({"a": (0, 1), "b": (2, 5)}, radius=1.0)
    assert (named.names, named.lower.tolist(), named.upper.tolist(), named.radius) == (("a", "b"), [0, 2], [1, 5], 1.0)
    assert Bounds(0, 1, names=["a", "b", "c"]).upper.tolist() == [1, 1, 1]
    for features in ({"a": 1}, [("a", 0, 1)], {"a": (0, 1, 2)}):
        with pytest.raises(ParameterError, match="features must map"):
            Bounds.from_dict(features)


@pytest.mark.parametrize("size", [3, 4096, 4097, 9000, 20000])
def test_a_row_s_length_does_not_depend_on_its_company(size):
    from matrixdp.domain.bounds import square_lengths

    rows = np.random.default_rng(0).normal(size=(9, size))
    weights = np.random.default_rng(1).random(size)
    together = square_lengths(rows), square_lengths(rows, weights)
    for i in range(9):
        assert square_lengths(rows[i : i + 1])[0] == together[0][i]
        assert square_lengths(rows[i : i + 1], weights)[0] == together[1][i]
    assert np.allclose(together[0], (rows**2).sum(axis=1), rtol=1e-12)
    bounds = Bounds(np.full(size, -3.0), np.full(size, 3.0), radius=np.sqrt(size) * 0.9)
    whole = bounds.quantise(rows, 1000)
    assert np.array_equal(np.vstack([bounds.quantise(row[None], 1000) for row in rows]), whole)
