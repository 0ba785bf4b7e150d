"""Rounding to integers, and what it adds to the distance between neighbours (`docs/mathematics.md`, "Rounding").

In the noise's own coordinates the answer is rounded to a grid of ``2^-bits`` standard deviations. For an integer k,
``floor(k + G) = k + floor(G)``, so a release is a post-processing of the ideal continuous mechanism applied to the
rounded answer, whose neighbours lie at most `Grid.distance` apart.
"""

import math
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from matrixdp.errors import ParameterError
from matrixdp.noise.matrix import MatrixGaussian, apply_factors
from matrixdp.noise.structure import NoiseStructure
from matrixdp.queries import Identity, MatrixQuery
from matrixdp.serialise import builtin_kind
from matrixdp.types import Factor, Floats, is_diagonal

DEFAULT_BITS = 48
_HEADROOM = 61  # an answer of 2^61 grid steps, plus noise, fits into int64
_EPS = float(np.finfo(float).eps)


@builtin_kind
@dataclass(frozen=True)
class Grid:
    """Resolution of a release, in steps of ``2^-bits`` standard deviations, and what it guarantees."""

    bits: int
    limit: int  # public bound on the rounded answer, in steps
    distance: float  # never below that of two neighbours' rounded answers, in standard deviations


def fit_grid(
    query: MatrixQuery,
    noise: MatrixGaussian,
    ideal: float,
    *,
    flat: bool = False,
    structure: NoiseStructure | None = None,
) -> Grid:
    """The finest grid that int64 holds, up to 48 bits.

    `ideal` is the distance between neighbours before rounding. The noise may treat the answer's entries as one column
    (`flat`), and a `structure` has the coordinates that are rounded.
    """
    left, right = noise.rowcov.whitening, noise.colcov.whitening
    m, n = noise.shape
    if structure is None:
        largest, norm = _whitened_magnitude(query, left, right, (m, n))
        entries = m * (m + 1) // 2 if query.symmetric and not flat else m * n
    else:
        bounds = structure.largest(noise, query.magnitude)
        largest, norm, entries = float(bounds.max()), float(np.linalg.norm(bounds)) * (1 + 1e-9), bounds.size
    if not largest <= 2.0**_HEADROOM:  # or NaN
        raise ParameterError(
            "the answer's public bound must be at most 2^61 standard deviations of its noise; "
            "ask for less accuracy or give narrower bounds."
        )
    bits = min(DEFAULT_BITS, _HEADROOM - math.ceil(math.log2(max(largest, 1.0))))
    limit = math.ceil(largest * (1 + 1e-12) * 2.0**bits) + 1
    if rounds_entrywise(query, noise):
        steps = [2 * int(k) for k in query.row_limits(column_factors(noise, bits))]
        squares = query.rows_of_person * sum(k * k for k in steps)
        distance = math.nextafter(math.sqrt(squares) * (1 + _EPS), math.inf)
        return Grid(bits, limit, max(distance, 1.0) * 2.0**-bits)  # a step even where all records round to zero
    product = _gamma(0 if is_diagonal(left) else m) + _gamma(0 if is_diagonal(right) else n)
    if structure is not None:
        product += _gamma(structure.terms)
    float_error = 2 * (query.relative_error + product * (1 + product)) * norm
    distance = ideal + math.sqrt(entries) * 2.0**-bits + float_error
    return Grid(bits, limit, distance * (1 + 8 * _EPS))


def rounds_entrywise(query: MatrixQuery, noise: MatrixGaussian) -> TypeGuard[Identity]:
    """True if each rounded entry is a monotone function of one value of one record, which cannot widen its range."""
    left, right = noise.rowcov.whitening, noise.colcov.whitening
    entrywise = isinstance(query, Identity) and query.entrywise
    return entrywise and not isinstance(left, np.ndarray) and is_diagonal(right)


def column_factors(noise: MatrixGaussian, bits: int) -> Floats:
    """Grid steps for one unit of each column of a query that rounds entrywise, of shape (n,)."""
    right = noise.colcov.whitening
    values = np.full(noise.shape[1], right) if not isinstance(right, np.ndarray) else right
    return values * (noise.rowcov.whitening * 2.0**bits)


def _whitened_magnitude(query: MatrixQuery, left: Factor, right: Factor, shape: tuple[int, int]) -> tuple[float, float]:
    """Largest entry and norm of ``|A| F |B|'``, F the query's magnitude; rows that are alike are taken once."""
    bound = query.magnitude
    if shape != query.shape:  # entries in one column
        bound = np.broadcast_to(bound, query.shape).reshape(shape)
    rows_alike = bound.shape[0] == 1 and not isinstance(left, np.ndarray)
    bound = np.broadcast_to(bound, (1 if rows_alike else shape[0], shape[1]))
    values = apply_factors(np.abs(left), bound, np.abs(right))
    norm = math.sqrt(float(np.square(values).sum()) * (shape[0] if rows_alike else 1))
    return float(values.max()) * math.sqrt(2), norm * (1 + 1e-9)


def _gamma(k: int) -> float:
    """Relative error of an inner product of length k and two more operations, ``k u/(1 - k u)``."""
    u = (k + 3) * _EPS / 2
    return u / (1 - u)
