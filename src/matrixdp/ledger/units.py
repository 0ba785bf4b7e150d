"""Exact sums: amounts of privacy as whole numbers of a fixed small unit.

Floating sums depend on their order and may round down. Here an amount is a whole number of units of
``2^-192``: what is spent is rounded up to it, what is allowed is rounded down, and sums are exact. A double
that is not below ``2^-139`` and the square of a double that is not below ``2^-43`` are whole numbers of
units already, so that in practice nothing is rounded at all.
"""

from __future__ import annotations

import math
from fractions import Fraction

_BITS = 192


def units_above(value: float) -> int:
    """Fewest units that are not less than `value`.

    Examples
    --------
    >>> units_above(0.5) == 2**191, units_above(1e-300)
    (True, 1)
    """
    return -units_below(-value)


def units_below(value: float) -> int:
    """Most units that are not more than `value`."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator << _BITS) // denominator


def square_above(value: float) -> int:
    """Fewest units that are not less than the square of `value`."""
    numerator, denominator = value.as_integer_ratio()
    return -int(-(numerator**2 << _BITS) // denominator**2)


def square_below(value: float) -> int:
    """Most units that are not more than the square of `value`."""
    numerator, denominator = value.as_integer_ratio()
    return int((numerator**2 << _BITS) // denominator**2)


def float_below(units: int) -> float:
    """Largest double that is not more than `units`.

    Examples
    --------
    >>> float_below(units_above(0.1))
    0.1
    """
    return _round_down(Fraction(units, 2**_BITS))


def root_below(units: int) -> float:
    """Largest double, but for the last place, whose square is not more than `units`.

    Examples
    --------
    >>> root_below(square_below(0.1))
    0.1
    """
    shift = 128
    return _round_down(Fraction(math.isqrt(units << shift), 2 ** ((_BITS + shift) // 2)))


def _round_down(value: Fraction) -> float:
    number = float(value)
    return math.nextafter(number, -math.inf) if Fraction(number) > value else number
