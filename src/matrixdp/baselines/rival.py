"""What every rival returns, and how an answer is laid out as a vector."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from matrixdp.errors import ParameterError
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class RivalRelease:
    """What a rival mechanism gave, and the guarantee that it really has.

    Attributes
    ----------
    matrix : float64 array
        A noisy answer of the query's shape, directions as columns of shape (m, k), or, for a projected data set,
        pseudo-records of shape (draws, m).
    mechanism : str
    epsilon, delta : float
        The guarantee; `delta` is 0 for a pure one. Never weaker than what was asked for, and stronger where the
        mechanism adds more noise than it needs.
    neighbours : Neighbours
    comparison_only : bool
        Whether the noise is floating-point. The low bits of floats show the answer (Mironov 2012), so the guarantee
        holds for ideal real numbers only, and the release is for comparison, not for publication.
    simulation : bool
        Whether the noise can be repeated by whoever knows the seed.
    parameters : mapping from str to float
        Public numbers of the mechanism, such as the scale of its noise.
    """

    matrix: Floats
    mechanism: str
    epsilon: float
    delta: float
    neighbours: Neighbours
    comparison_only: bool
    simulation: bool = False
    parameters: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        guarantee = f"epsilon {self.epsilon:g}" + (f", delta {self.delta:g}" if self.delta else "")
        marks = [", for comparison only"] * self.comparison_only + [", a simulation"] * self.simulation
        return f"{self.mechanism}: {guarantee}, {self.neighbours} neighbours{''.join(marks)}"


def check_arguments(query: Any, privacy: Any) -> None:
    """An error unless `query` is a query and `privacy` a guarantee."""
    if not isinstance(query, MatrixQuery):
        raise ParameterError(
            f"query must be a query such as Identity(bounds, records=...), got {type(query).__name__} instead."
        )
    if not isinstance(privacy, Privacy):
        raise ParameterError(f"privacy must be Privacy(epsilon, delta), got {type(privacy).__name__} instead.")


def to_vector(query: MatrixQuery, matrix: Floats, *, weight: float = math.sqrt(2)) -> Floats:
    """Entries that a mechanism draws noise for: all, or of a symmetric answer the lower triangle.

    Entries below the diagonal are multiplied by `weight`; sqrt(2) keeps Frobenius' norm.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import SecondMoment
    >>> query = SecondMoment(Bounds([-1, -1], [1, 1]), records=10)
    >>> to_vector(query, np.array([[1.0, 2.0], [2.0, 3.0]]), weight=1.5).tolist()
    [1.0, 3.0, 3.0]
    """
    if not query.symmetric:
        return matrix.reshape(-1)
    rows, columns = np.tril_indices(query.shape[0])
    return np.asarray(matrix[rows, columns] * np.where(rows == columns, 1.0, weight))


def from_vector(query: MatrixQuery, vector: Floats, *, weight: float = math.sqrt(2)) -> Floats:
    """The matrix whose entries `to_vector` laid out."""
    if not query.symmetric:
        return vector.reshape(query.shape)
    rows, columns = np.tril_indices(query.shape[0])
    out = np.empty(query.shape)
    out[rows, columns] = vector / np.where(rows == columns, 1.0, weight)
    out[columns, rows] = out[rows, columns]
    return out
