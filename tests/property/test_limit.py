"""No noise of any covariance has less error than the bound, as long as it hides all changes of records."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from matrixdp.noise.matrix import triangle_to_vector
from matrixdp.sensitivity.limit import least_moment_error


@given(
    seed=st.integers(0, 2**32 - 1),
    features=st.integers(1, 3),
    replace=st.booleans(),
    constant=st.booleans(),
    spread=st.sampled_from([0.0, 0.1, 1.0, 3.0]),
)
def test_no_covariance_has_less_error_than_the_bound(seed, features, replace, constant, spread):
    rng = np.random.default_rng(seed)
    records = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=features)))
    if constant:
        records = np.column_stack([np.ones(len(records)), records])
    moments = np.array([triangle_to_vector(np.multiply.outer(x, x)) for x in records])
    changes = moments
    if replace:
        first, second = np.triu_indices(len(moments), 1)
        changes = moments[first] - moments[second]
    size = changes.shape[1]
    basis = np.linalg.qr(rng.standard_normal((size, size)) + 5 * (spread < 1) * np.eye(size))[0]
    covariance = (basis * np.exp(spread * rng.standard_normal(size))) @ basis.T
    if replace and constant:  # the number of records does not change, and needs no noise
        changes, covariance = changes[:, 1:], covariance[1:, 1:]
    worst = np.einsum("ki,ki->k", changes @ np.linalg.inv(covariance), changes).max()
    error = worst * np.trace(covariance)
    assert error >= least_moment_error(features, replace=replace, constant=constant) * (1 - 1e-9)
