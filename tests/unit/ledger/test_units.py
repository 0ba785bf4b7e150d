from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.ledger.accounting import (
    float_below,
    root_below,
    square_above,
    square_below,
    units_above,
    units_below,
)

UNIT = Fraction(1, 2**192)
positive = st.floats(min_value=1e-300, max_value=1e6)


@settings(derandomize=True)
@given(positive)
def test_rounding_goes_to_the_safe_side(value):
    assert units_below(value) * UNIT <= Fraction(value) <= units_above(value) * UNIT
    assert square_below(value) * UNIT <= Fraction(value) ** 2 <= square_above(value) * UNIT


@settings(derandomize=True)
@given(st.floats(min_value=1e-12, max_value=1e6))
def test_what_is_used_in_practice_is_not_rounded_at_all(value):
    assert square_below(value) == square_above(value)
    assert units_below(value) == units_above(value)
    assert root_below(square_below(value)) == value
    assert float_below(units_below(value)) == value


@settings(derandomize=True)
@given(st.integers(min_value=0, max_value=2**200))
def test_what_is_shown_can_be_spent(units):
    assert square_above(root_below(units)) <= units or units < 2**60
    assert units_above(float_below(units)) <= units
    assert Fraction(root_below(units)) ** 2 <= units * UNIT
