"""Exact products of integers beyond 2^53, at the speed of BLAS.

An integer matrix is stored as layers of digits to the base 2^20, each from -2^19 to 2^19. The entries of a layer are
then no larger than those of a record on its grid, so that its product with the integers of `Coordinates` stays below
2^53: every partial sum is exact, in any order. Carries bring the digits back into their range.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matrixdp.types import Floats

_BITS = 20
_BASE = 1 << _BITS


def to_digits(whole: NDArray[np.int64]) -> Floats:
    """Digits of integers of at most 2^62, of shape (layers, ...), the lowest first.

    Examples
    --------
    >>> to_digits(np.array([5, -(2**20) - 1])).tolist()
    [[5.0, -1.0], [0.0, -1.0]]
    """
    layers: list[Floats] = []
    rest = whole
    while not layers or rest.any():
        low = ((rest + _BASE // 2) & (_BASE - 1)) - _BASE // 2
        layers.append(low.astype(np.float64))
        rest = (rest - low) >> _BITS
    return np.stack(layers)


def limbs_to_digits(limbs: NDArray[np.int64]) -> Floats:
    """Digits of ``low + 2^22 middle + 2^44 high``, with low and middle from 0 to 2^22 and high below 2^58.

    Examples
    --------
    >>> limbs_to_digits(np.array([[0], [1 << 18], [3]])).tolist()  # 2^40 (1 + 3 x 2^4)
    [[0.0], [0.0], [49.0]]
    """
    low, middle, high = limbs
    rest = middle << 22 | low
    layers = []
    for _ in range(2):
        digit = ((rest + _BASE // 2) & (_BASE - 1)) - _BASE // 2
        layers.append(digit.astype(np.float64))
        rest = (rest - digit) >> _BITS
    return np.concatenate([np.stack(layers), to_digits((high << 4) + rest)])


def multiply(numbers: Floats, digits: Floats) -> Floats:
    """Digits of ``numbers @ x`` for x with the given digits; ``sum_j |numbers[i, j]|`` must be at most 2^33.

    Examples
    --------
    >>> to_floats(multiply(np.array([[2.0**32, 1.0]]), to_digits(np.array([[2**40], [-1]])))).tolist() == [[2.0**72]]
    True
    """
    layers: list[Floats] = []
    rest = np.zeros(())
    for product in np.matmul(numbers, digits):  # at most 2^52 each, and carries of 2^33
        rest = _carry(product + rest, layers)
    while rest.any():
        rest = _carry(rest, layers)
    return np.stack(layers)


def _carry(values: Floats, layers: list[Floats]) -> Floats:
    """Append the lowest digits to the layers, and return the carry."""
    high = np.rint(values / _BASE)
    layers.append(values - high * _BASE)
    return np.asarray(high)


def to_floats(digits: Floats) -> Floats:
    """Numbers with these digits as floats, rounded by half an ulp for each layer above the second.

    Nothing cancels: the digits above a digit are zero, or together larger than everything below it.
    """
    value = digits[-1]
    for layer in digits[-2::-1]:
        value = value * _BASE + layer
    return np.asarray(value)
