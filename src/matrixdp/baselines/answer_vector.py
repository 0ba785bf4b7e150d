"""The entries of an answer that get noise of their own, as a vector."""

from __future__ import annotations

from matrixdp.noise.triangle import SQRT2, triangle_to_vector, vector_to_triangle
from matrixdp.queries import MatrixQuery
from matrixdp.types import Floats


def answer_to_vector(query: MatrixQuery, matrix: Floats, *, weight: float = SQRT2) -> Floats:
    """All entries, or the lower triangle of a symmetric answer with its off-diagonal entries times `weight`."""
    return triangle_to_vector(matrix, weight) if query.symmetric else matrix.reshape(-1)


def vector_to_answer(query: MatrixQuery, vector: Floats, *, weight: float = SQRT2) -> Floats:
    """The matrix of the query's shape whose entries `answer_to_vector` gave."""
    return vector_to_triangle(vector, query.shape[0], weight) if query.symmetric else vector.reshape(query.shape)
