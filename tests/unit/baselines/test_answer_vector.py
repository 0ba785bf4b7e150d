"""Laying an answer out as a vector."""

from __future__ import annotations

import numpy as np

from matrixdp import Bounds, Identity, SecondMoment
from matrixdp.baselines.pure import answer_to_vector, vector_to_answer

MOMENT = SecondMoment(Bounds([-1] * 4, [1] * 4), 10)


def test_a_symmetric_answer_keeps_its_norm_as_a_vector():
    matrix = np.random.default_rng(1).normal(size=(4, 4))
    matrix += matrix.T
    vector = answer_to_vector(MOMENT, matrix)
    assert vector.size == 10
    assert np.isclose(np.linalg.norm(vector), np.linalg.norm(matrix))


def test_vectors_go_back_to_matrices():
    matrix = np.arange(16.0).reshape(4, 4)
    matrix += matrix.T
    assert np.allclose(vector_to_answer(MOMENT, answer_to_vector(MOMENT, matrix, weight=1.3), weight=1.3), matrix)
    table = np.arange(8.0).reshape(2, 4)
    query = Identity(Bounds([-1] * 4, [1] * 4), 2)
    assert np.array_equal(vector_to_answer(query, answer_to_vector(query, table)), table)
