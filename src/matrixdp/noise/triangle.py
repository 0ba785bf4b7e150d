"""Symmetric matrices as vectors of their lower triangle."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from matrixdp.types import Floats

SQRT2 = math.sqrt(2.0)
_SMALL = 128  # sizes whose indices are kept

Indices = tuple[NDArray[np.intp], NDArray[np.intp]]


def triangle_to_vector(matrix: Floats, weight: float = SQRT2) -> Floats:
    """The lower triangle of a matrix of shape (m, m), row by row, of shape (m (m + 1)/2,).

    Entries off the diagonal are multiplied by `weight`; sqrt(2) preserves the Frobenius norm of a symmetric matrix.

    Examples
    --------
    >>> triangle_to_vector(np.array([[1.0, 2.0], [2.0, 3.0]]), weight=1.5).tolist()
    [1.0, 3.0, 3.0]
    """
    rows, columns = lower_indices(len(matrix))
    return np.asarray(matrix[rows, columns] * np.where(rows == columns, 1.0, weight))


def vector_to_triangle(vector: Floats, size: int, weight: float = SQRT2) -> Floats:
    """The symmetric matrix of shape (size, size) whose lower triangle `triangle_to_vector` wrote.

    Examples
    --------
    >>> vector_to_triangle(np.array([1.0, 3.0, 3.0]), 2, weight=1.5).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    rows, columns = lower_indices(size)
    out = np.empty((size, size))
    out[rows, columns] = vector / np.where(rows == columns, 1.0, weight)
    out[columns, rows] = out[rows, columns]
    return out


def lower_indices(size: int) -> Indices:
    """Rows and columns of the lower triangle, row by row; those of small matrices are computed once."""
    return _kept_indices(size) if size <= _SMALL else np.tril_indices(size)


@lru_cache(maxsize=16)
def _kept_indices(size: int) -> Indices:
    rows, columns = np.tril_indices(size)
    rows.flags.writeable = columns.flags.writeable = False  # they are shared
    return rows, columns
