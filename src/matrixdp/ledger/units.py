"""Amounts of privacy as integer multiples of a fixed small unit, so that their sums are exact.

Floating-point sums depend on their order and may be rounded down. Here an amount is an integer number of units of
``2^-192``: what is spent is rounded up, what is allowed is rounded down, and sums are exact. Doubles of at least
``2^-139``, and squares of doubles of at least ``2^-43``, are integer multiples of the unit, so in practice nothing is
rounded at all.
"""

from __future__ import annotations

import math
from fractions import Fraction

_BITS = 192


def units_above(value: float) -> int:
    """`value` in units, rounded up."""
    return -units_below(-value)


def units_below(value: float) -> int:
    """`value` in units, rounded down."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator << _BITS) // denominator


def square_above(value: float) -> int:
    """The square of `value` in units, rounded up."""
    numerator, denominator = value.as_integer_ratio()
    return -int(-(numerator**2 << _BITS) // denominator**2)


def square_below(value: float) -> int:
    """The square of `value` in units, rounded down."""
    numerator, denominator = value.as_integer_ratio()
    return int((numerator**2 << _BITS) // denominator**2)


def float_below(units: int) -> float:
    """The value of `units` as a float, rounded down."""
    return _round_down(Fraction(units, 2**_BITS))


def float_above(units: int) -> float:
    """The value of `units` as a float, rounded up."""
    return 0.0 - float_below(-units)


def root_below(units: int) -> float:
    """The square root of `units` as a float, rounded down (to within one unit in the last place)."""
    shift = 128
    return _round_down(Fraction(math.isqrt(units << shift), 2 ** ((_BITS + shift) // 2)))


def root_above(units: int) -> float:
    """The square root of `units` as a float, rounded up (to within one unit in the last place)."""
    root = root_below(units)
    while square_below(root) < units:
        root = math.nextafter(root, math.inf)
    return root


def _round_down(value: Fraction) -> float:
    number = float(value)
    return math.nextafter(number, -math.inf) if Fraction(number) > value else number
