"""Public coordinates of private records, computed exactly.

Records, the matrix of the map and its centre are all rounded to integers, so that the product is a sum of integers
below 2^53, the same in any order: the coordinates of a record are a function of that record alone, to the last bit.
Sums over records exceed 2^53. An integer matrix is stored as layers of digits to the base 2^20, each from -2^19 to
2^19, so that a layer's product with the integers of `Coordinates` is exact as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.bounds import Bounds, square_lengths
from matrixdp.records import to_array
from matrixdp.types import Floats

LEVELS = 1 << 19  # half the number of grid steps of the records
_EXACT = 53  # bits of a float's significand
_BLOCK = 1 << 17  # numbers per block, so that a block stays in the cache
_BITS = 20
_BASE = 1 << _BITS  # of digits
_ONE_THREAD = 1 << 18  # multiplications below which BLAS uses one thread, and does not wait for busy ones


@dataclass(frozen=True, eq=False)
class Coordinates:
    """``u = A (x - m)`` for records x in [-1, 1]^d, given as integer multiples of 1/levels, a power of two.

    Privacy
    -------
    Public. Each record is mapped independently of the others.
    """

    numbers: Floats  # integers, of shape (k, d): row i of A is ``numbers[i] * 2^exponents[i]``
    exponents: NDArray[np.int64]
    origin: NDArray[np.int64]  # m in steps of the grid
    levels: int = LEVELS

    @classmethod
    def of(cls, matrix: Floats, centre: Floats, levels: int = LEVELS) -> Coordinates:
        """Coordinates with a matrix of shape (k, d), rounded to some 27 bits a row, and a centre in [-1, 1]^d."""
        d = matrix.shape[1]
        bits = _EXACT - 1 - (LEVELS.bit_length() - 1) - math.ceil(math.log2(d + 1))
        exponents = np.frexp(np.abs(matrix).max(axis=1))[1].astype(np.int64) - bits
        numbers = np.rint(np.ldexp(matrix, -exponents[:, None]))
        return cls(numbers, exponents, np.rint(centre * levels).astype(np.int64), levels)

    @property
    def matrix(self) -> Floats:
        """A, exactly, of shape (k, d)."""
        return np.asarray(np.ldexp(self.numbers, self.exponents[:, None]))

    @property
    def inverse(self) -> Floats:
        """Inverse of a square A, of shape (d, d)."""
        return np.asarray(np.linalg.inv(self.matrix))

    @property
    def centre(self) -> Floats:
        """m, exactly, of shape (d,)."""
        return self.origin / self.levels

    @cached_property
    def unit(self) -> Floats:
        """Grid step of each coordinate, of shape (k,): powers of two."""
        return np.asarray(np.ldexp(1.0, self.exponents - (self.levels.bit_length() - 1)))

    def __call__(self, steps: NDArray[np.floating]) -> Floats:
        """Coordinates u of shape (n, k) of records on the grid, of shape (n, d)."""
        out = np.empty((len(steps), len(self.numbers)))
        for rows, block in self._blocks(steps):
            out[rows] = block
        return out

    def lengths(self, steps: NDArray[np.floating]) -> Floats:
        """``|u|`` of each record, of shape (n,); does not store the coordinates."""
        out = np.empty(len(steps))
        for rows, block in self._blocks(steps):
            square_lengths(block, out=out[rows])
        return np.sqrt(out, out=out)

    def _blocks(self, steps: NDArray[np.floating]) -> Iterator[tuple[slice, Floats]]:
        """Coordinates block by block, in a buffer that the next block overwrites."""
        k, d = self.numbers.shape
        # Everything is an integer multiple of `unit`: products and sums of at most 2^52, and their differences.
        turn = np.ascontiguousarray((self.numbers * self.unit[:, None]).T)
        shift = self.numbers @ self.origin.astype(np.float64) * self.unit
        most = max(1, _BLOCK // max(k, d))
        few = min(_ONE_THREAD // (k * d), most) if 64 * k * d <= _ONE_THREAD else most
        shifts, rows = np.tile(shift, few), few * (most // few)
        own, out = np.zeros((rows, d)), np.empty((rows, k))
        for start in range(0, len(steps), rows):
            block = steps[start : start + rows]
            whole = -(-len(block) // few) * few  # the last rows of the buffer may be left from the block before
            own[: len(block)] = block
            np.matmul(own[:whole].reshape(-1, few, d), turn, out=out[:whole].reshape(-1, few, k))
            wide = out[:whole].reshape(-1, few * k)
            wide -= shifts
            yield slice(start, start + len(block)), out[: len(block)]


class FourierFeatures:
    """``sqrt(2/k) cos(w'x + b)``, whose inner products are close to ``exp(-gamma |x - y|^2)`` (Rahimi & Recht 2007).

    Parameters
    ----------
    bounds : Bounds
        Bounds of the m input features, which are scaled to [-1, 1].
    gamma : float
    count : int
        Number k of random features.
    seed : int
        Seed of the public random frequencies.

    Privacy
    -------
    Frequencies are public. Each record is mapped independently of the others, into the box of halfwidth ``sqrt(2/k)``.

    Examples
    --------
    >>> FourierFeatures(Bounds([-1], [1]), gamma=1.0, count=4, seed=0)([[0.5]]).shape
    (1, 4)
    """

    def __init__(self, bounds: Bounds, *, gamma: float, count: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.bounds, self.size = bounds, math.sqrt(2 / count)
        frequencies = rng.normal(scale=math.sqrt(2 * gamma), size=(count, bounds.size))
        self._phase = Coordinates.of(frequencies, np.zeros(bounds.size))
        self._shift = rng.uniform(0, 2 * math.pi, count)
        self.box = Bounds(np.full(count, -self.size), np.full(count, self.size))

    def __call__(self, records: Any) -> Floats:
        """Features of shape (n, k) of records of shape (n, m)."""
        phase = self._phase(self.bounds.quantise(records, LEVELS))
        return np.asarray(self.size * np.cos(phase + self._shift))

    def with_target(self, columns: tuple[str, ...], block: Any) -> Floats:
        """Features of a block of records and the target, which is the last of `columns`, of shape (n, k + 1)."""
        records = to_array(block, len(columns), columns)
        return np.column_stack([self(records[:, :-1]), records[:, -1]])


def to_digits(whole: NDArray[np.int64]) -> Floats:
    """Digits of integers of at most 2^62, of shape (layers, ...), the lowest first."""
    layers: list[Floats] = []
    rest = whole
    while not layers or rest.any():
        low, rest = _last_digit(rest)
        layers.append(low)
    return np.stack(layers)


def _last_digit(whole: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    """The lowest digit of integers, and what is above it."""
    low = ((whole + _BASE // 2) & (_BASE - 1)) - _BASE // 2
    return low.astype(np.float64), (whole - low) >> _BITS


def limbs_to_digits(limbs: NDArray[np.int64]) -> Floats:
    """Digits of ``low + 2^22 middle + 2^44 high``, with low and middle from 0 to 2^22 and high below 2^58."""
    low, middle, high = limbs
    first, rest = _last_digit(middle << 22 | low)
    second, rest = _last_digit(rest)
    return np.concatenate([np.stack([first, second]), to_digits((high << 4) + rest)])


def multiply(numbers: Floats, digits: Floats) -> Floats:
    """Digits of ``numbers @ x`` for x with the given digits; ``sum_j |numbers[i, j]|`` must be at most 2^33."""
    layers: list[Floats] = []
    products, rest = [*np.matmul(numbers, digits)], np.zeros(())  # at most 2^52 each, and carries of 2^33
    while products or rest.any():
        values = products.pop(0) + rest if products else rest
        rest = np.rint(values / _BASE)
        layers.append(values - rest * _BASE)
    return np.stack(layers)


def to_floats(digits: Floats) -> Floats:
    """Numbers with these digits as floats, rounded by half an ulp for each layer above the second."""
    value = digits[-1]  # nothing cancels: the digits above one are zero, or together larger than all below it
    for layer in digits[-2::-1]:
        value = value * _BASE + layer
    return np.asarray(value)
