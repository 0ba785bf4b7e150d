"""Checks of public arguments: each returns a plain Python value, or raises a `ParameterError` that names the rule.

NumPy scalars are accepted wherever the Python type is. `bool` is never accepted as a number.
"""

import math
from typing import Any, NoReturn, SupportsFloat

import numpy as np

from matrixdp.errors import ParameterError, show
from matrixdp.types import Floats

LARGEST = 1e60  # of public magnitudes; products of four of them neither overflow nor underflow


def check_number(
    value: Any,
    name: str,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
    at_most: float = math.inf,
    rule: str | None = None,
) -> float:
    """`value` as a float, if it is a finite number within the limits.

    Anything that converts to a float counts, except booleans, strings and arrays with dimensions. `above` and `below`
    are excluded, `at_least` and `at_most` included. The message says "NAME must be RULE"; by default the rule is made
    from the limits, as in "share must be greater than 0 and at most 1, got 2 instead."
    """
    scalar = _scalar(value)
    number = _float_or_nan(scalar)
    if not (math.isfinite(number) and above < number < below and at_least <= number <= at_most):
        _reject(name, rule or _number_rule(above, at_least, below, at_most), scalar)
    return number + 0.0  # -0.0 becomes 0.0, which JSON writes differently


def check_integer(
    value: Any, name: str, *, at_least: int | None = None, at_most: int | None = None, rule: str | None = None
) -> int:
    """`value` as an int, if it is an integer within the limits. Floats are not integers, even if whole."""
    scalar = _scalar(value)
    if (
        isinstance(scalar, bool)
        or not isinstance(scalar, int)
        or (at_least is not None and scalar < at_least)
        or (at_most is not None and scalar > at_most)
    ):
        _reject(name, rule or _integer_rule(at_least, at_most), scalar)
    return scalar


def check_magnitude(value: Any, name: str) -> float:
    """`value` as a float, if it is positive and neither too large nor too small for its squares to be floats."""
    number = check_number(value, name, above=0)
    if not 1 / LARGEST <= number <= LARGEST:
        rule = f"must be from {1 / LARGEST:g} to {LARGEST:g}, got {show(_scalar(value))} instead; change the units."
        raise ParameterError(f"{name} {rule}", parameter=name)
    return number


def check_magnitudes(
    values: Floats, name: str, *, largest: float = LARGEST, signed: bool = False, remedy: str = "change the units"
) -> None:
    """Raise a `ParameterError` unless all entries pass `check_magnitude`; `remedy` ends its message.

    With `signed`, entries may be zero, negative or small, and only absolute values above `largest` are errors.
    """
    low, high = float(values.min()), float(values.max())  # NaN if there is one
    if signed:
        worst, rule = high if high > -low else low, f"finite, with absolute values of at most {largest:g}"
        holds = abs(worst) <= largest
    else:
        worst = low if not low >= 1 / largest else high
        rule = f"finite, positive and from {1 / largest:g} to {largest:g}"
        holds = 1 / largest <= low and high <= largest
    if not holds:
        raise ParameterError(f"{name} must be {rule}, got {worst:g} instead; {remedy}.")


def to_floats(values: Any, name: str) -> Floats:
    """`values` as a new float64 array; a `ParameterError` for text, ragged sequences and integers beyond all floats."""
    try:
        return np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{name} must be an array of real numbers.") from None


def power_of_two(value: float) -> float:
    """The largest power of two that is at most `value`, by which floats are divided without rounding."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


def root_mean_square(values: Floats) -> float:
    """``sqrt(mean(values^2))`` of non-negative values, for which no square overflows or underflows."""
    largest = float(values.max())
    unit = power_of_two(largest) if 0 < largest < math.inf else 1.0
    return unit * math.sqrt(float(np.square(values / unit).mean()))


def sum_of_others(values: Floats) -> Floats:
    """For each entry of a vector, the sum of all others; subtraction would lose those small beside the largest."""
    others = values.sum() - values
    largest = int(values.argmax())
    if 2 * values[largest] > values.sum():
        others[largest] = np.delete(values, largest).sum()
    return np.asarray(others)


def check_flag(value: Any, name: str) -> bool:
    """`value` as a bool, if it is one; 0 and 1 are not."""
    scalar = _scalar(value)
    if not isinstance(scalar, bool):
        _reject(name, "True or False", scalar)
    return scalar


def _reject(name: str, rule: str, value: Any) -> NoReturn:
    raise ParameterError(f"{name} must be {rule}, got {show(value)} instead.", parameter=name)


def _scalar(value: Any) -> Any:
    """The Python scalar in a NumPy scalar or an array without dimensions; any other value as it is."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and value.ndim == 0 else value


def _float_or_nan(value: Any) -> float:
    if type(value) is float:
        return value
    if isinstance(value, bool | np.ndarray) or not isinstance(value, SupportsFloat):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _number_rule(above: float, at_least: float, below: float, at_most: float) -> str:
    if max(above, at_least) == -math.inf and min(below, at_most) == math.inf:
        return "a finite number"
    if math.isfinite(above) and math.isfinite(below):
        return f"strictly between {above:.12g} and {below:.12g}"
    limits = {"greater than": above, "at least": at_least, "less than": below, "at most": at_most}
    words = [f"{word} {limit:.12g}" for word, limit in limits.items() if math.isfinite(limit)]
    bounded = max(above, at_least) > -math.inf and min(below, at_most) < math.inf
    return " and ".join(words if bounded else ["finite", *words])


def _integer_rule(at_least: int | None, at_most: int | None) -> str:
    if at_least is not None and at_most is not None:
        return f"an integer from {at_least} to {at_most}"
    if at_most is not None:
        return f"an integer of at most {at_most}"
    if at_least is None:
        return "an integer"
    return {0: "a non-negative integer", 1: "a positive integer"}.get(at_least, f"an integer of at least {at_least}")
