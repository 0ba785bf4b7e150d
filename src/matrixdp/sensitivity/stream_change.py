"""How far a record or a person moves a stream of releases: the integer coefficients over time, and their norms.

Step t of a stream publishes ``sum_j C_tj x_j + n_t``, with independent noise n. C is Toeplitz and lower triangular,
with the coefficients of ``(1 - z)^-beta``, rounded to integers in units of 2^-20. They are not negative and do not
increase, which the proofs in `docs/streams-privacy.md` need, and every norm below is that of the integers.
"""

import math
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from matrixdp.types import Floats

BITS = 20  # of the coefficients
WEIGHT_BITS = 16  # of the weights of steps

Integers = NDArray[np.int64]


def stream_coefficients(beta: float, steps: int) -> Integers:
    """The first coefficients of ``(1 - z)^-beta`` in units of 2^-20, rounded, of shape (steps,)."""
    return np.rint(power_series(beta, steps) * 2.0**BITS).astype(np.int64)


def power_series(exponent: float, steps: int) -> Floats:
    """The first coefficients of ``(1 - z)^-exponent``, of shape (steps,); those for `-exponent` are of the inverse."""
    i = np.arange(1, steps)
    return np.cumprod(np.append(1.0, (i - 1 + exponent) / i))


def invert_coefficients(coefficients: Integers) -> Floats:
    """Coefficients of the inverse power series: ``C^-1`` is Toeplitz, too; of the same shape."""
    c = coefficients / 2.0**BITS
    inverse = np.zeros(len(c))
    inverse[0] = 1 / c[0]
    for n in range(1, len(c)):
        inverse[n] = -(c[1 : n + 1] @ inverse[n - 1 :: -1][:n]) / c[0]
    return inverse


def step_weights(coefficients: Integers) -> Integers:
    """Weights of steps in units of 2^-16, rounded down, that give all columns of C nearly the norm of the first."""
    tails = _tail_sums(coefficients)
    return np.array([math.isqrt((tails[0] << 2 * WEIGHT_BITS) // tail) for tail in tails], np.int64)


def stream_norm(coefficients: Integers, *, steps: int = 1, apart: int = 1) -> float:
    """``max |C 1_S|`` over sets S of at most `steps` steps that are at least `apart` steps apart, rounded up.

    The first such set attains it, {0, apart, 2 apart, ..}, since the coefficients do not increase.
    """
    rows = -(-len(coefficients) // apart)
    total = np.pad(coefficients, (0, rows * apart - len(coefficients))).reshape(rows, apart).cumsum(axis=0)
    total[steps:] = total[steps:] - total[:-steps]  # coefficients of at most so many steps
    return _root_above(sum(value * value for value in total.ravel()[: len(coefficients)].tolist()), BITS)


def weighted_norm(coefficients: Integers, weights: Integers) -> float:
    """Largest norm of a column of C, each times the weight of its step, rounded up."""
    tails = _tail_sums(coefficients)
    largest = max(weight * weight * tail for weight, tail in zip(weights.tolist(), tails, strict=True))
    return _root_above(largest, BITS + WEIGHT_BITS)


def _root_above(square: int, bits: int) -> float:
    """Root of an integer over ``2^bits``, rounded up."""
    return math.nextafter((math.isqrt(square << 64) + 1) / 2 ** (bits + 32), math.inf)


def _tail_sums(coefficients: Integers) -> list[int]:
    """Squared norm of each column of C: sums over the first ``steps - j`` coefficients."""
    return list(accumulate(value * value for value in coefficients.tolist()))[::-1]
