"""Samples of the matrix law have its covariance; a transposed or unsymmetrised variant does not.

Level: `levels.LEVEL` each.
"""

import numpy as np
import pytest
from scipy.stats import chi2

from levels import LEVEL
from matrixdp import Stream
from matrixdp.noise import Covariance, MatrixGaussian

A = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
B = np.array([[1.0, 0.5], [0.5, 3.0]])


def covariance_p(samples, expected):
    """p-value of the samples' scatter, whitened by the expected covariance; its entries become independent normals."""
    flat = samples.reshape(len(samples), -1)
    white = np.linalg.solve(np.linalg.cholesky(expected), flat.T)
    n, d = flat.shape[0], flat.shape[1]
    scatter = white @ white.T / n - np.eye(d)
    scale = np.where(np.eye(d, dtype=bool), np.sqrt(n / 2), np.sqrt(n))
    z = (scatter * scale)[np.tril_indices(d)]
    return chi2.sf((z**2).sum(), z.size)


@pytest.fixture(scope="module")
def samples():
    law, stream = MatrixGaussian(A, B), Stream(seed=5)
    return np.array([law.sample(stream) for _ in range(20_000)])


def test_covariance_is_the_kronecker_product(samples):
    assert covariance_p(samples, np.kron(A, B)) > LEVEL


def test_the_two_sides_exchanged_are_found(samples):
    assert covariance_p(samples, np.kron(A * B[1, 1], B / B[1, 1] * 1.1)) < LEVEL


def test_symmetric_noise_has_half_the_variance_off_the_diagonal():
    side = Covariance.dense(A)
    law, stream = MatrixGaussian(side, side), Stream(seed=6)
    draws = np.array([law.sample(stream, symmetric=True) for _ in range(20_000)])
    lower = np.tril_indices(3)
    index = list(zip(*lower, strict=True))
    expected = np.array([[(A[i, k] * A[j, m] + A[i, m] * A[j, k]) / 2 for k, m in index] for i, j in index])
    triangle = draws[:, lower[0], lower[1]]
    assert covariance_p(triangle, expected) > LEVEL
    np.testing.assert_allclose(law.symmetric_std[lower], np.sqrt(np.diag(expected)))
    assert covariance_p(triangle * np.where(lower[0] == lower[1], 1, 1.05), expected) < LEVEL
