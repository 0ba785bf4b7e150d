"""Moments with their trace: sensitivity and accuracy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.adaptive.queries import TracedMoments
from matrixdp.domain.bounds import square_lengths


def row_lengths(records):
    return np.sqrt(square_lengths(records))


def traced(size, records, ratio=0.25):
    bounds = mdp.Bounds([-2.0] * size, [2.0] * size, radius=2.0)
    return TracedMoments(mdp.Moments(bounds, records, mean_share=ratio / (1 + ratio)), ratio)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=st.integers(1, 5),
    ratio=st.floats(0.01, 1),
    lengths=st.tuples(*[st.floats(0, 1)] * 2),
)
def test_one_record_changes_a_traced_moment_by_its_sensitivity_at_most(seed, size, ratio, lengths):
    rng = np.random.default_rng(seed)
    query, others = traced(size, 4, ratio), rng.normal(size=(3, size))
    pair = rng.normal(size=(2, size))
    pair *= (2 * np.array(lengths) / row_lengths(pair))[:, None]
    first, second = (query.evaluate(np.vstack([record, others]), clip=True, missing="error") for record in pair)
    assert np.linalg.norm(first - second) <= query.sensitivity.frobenius * (1 + 1e-12)
    assert (np.abs(first) <= query.magnitude).all()


def test_sensitivity_is_attained_and_a_heavier_trace_would_exceed_it():
    query = traced(2, 1, ratio=0.25)
    angle = math.acos(-(query.constant**2) / 4)  # between records on the sphere: u'v = -c0^2
    pair = 2 * np.array([[[1.0, 0.0]], [[math.cos(angle), math.sin(angle)]]])
    first, second = (query.evaluate(record, clip=True, missing="error") for record in pair)
    assert np.linalg.norm(first - second) == pytest.approx(query.sensitivity.frobenius, rel=1e-5)
    origin = query.evaluate(np.zeros((1, 2)), clip=True, missing="error")
    change = (first - origin)[0]
    assert np.linalg.norm(change) <= query.sensitivity.frobenius
    change[-1] *= 1.2
    assert np.linalg.norm(change) > query.sensitivity.frobenius


def test_a_traced_moment_has_a_more_exact_trace():
    data = np.random.default_rng(4).normal(size=(50, 8)) / 4
    query = traced(8, 50)
    exact = query.evaluate(data, clip=True, missing="error")[0]
    full = np.column_stack([np.ones(50), data])
    assert np.allclose(query.matrix(exact), full.T @ full / 50, atol=1e-5)
    rng = np.random.default_rng(5)
    draws = np.array([query.matrix(exact + rng.normal(size=exact.size)) for _ in range(2000)])
    assert np.trace(draws, axis1=1, axis2=2).std() == pytest.approx(math.sqrt(8 / (1 + 8 * 1.5)), rel=0.1)
    assert draws[:, 1, 2].std() == pytest.approx(1 / math.sqrt(2), rel=0.1)
