"""The matrix-variate Gaussian law against SciPy's, and covariances that stay what they are."""

import numpy as np
import pytest
from scipy.stats import matrix_normal

from matrixdp import ParameterError, Stream
from matrixdp.noise import Covariance, MatrixGaussian

RNG = np.random.default_rng(0)


def spd(n, seed=0):
    a = np.random.default_rng(seed).standard_normal((n, n))
    return a @ a.T + 0.1 * np.eye(n)


def orthonormal(n, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]


FORMS = {
    "dense": (spd(3), spd(4, 1)),
    "diagonal": ([1.0, 4.0, 0.25], [2.0, 1.0, 3.0, 0.5]),
    "eigen": ((orthonormal(3), [1.0, 2.0, 3.0]), (orthonormal(4, 1), [0.5, 1.0, 2.0, 4.0])),
    "mixed": (spd(3), Covariance.identity(4, 2.0)),
}


@pytest.mark.parametrize("form", FORMS)
def test_density_agrees_with_scipy(form):
    law = MatrixGaussian(*FORMS[form])
    x = RNG.standard_normal(law.shape)
    expected = matrix_normal.logpdf(x, rowcov=law.rowcov.matrix(), colcov=law.colcov.matrix())
    assert law.logpdf(x) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_factors_square_to_the_covariance(form):
    law = MatrixGaussian(*FORMS[form])
    for factor, covariance in zip((law.rowcov.factor, law.colcov.factor), (law.rowcov, law.colcov), strict=True):
        n = covariance.size
        dense = factor * np.eye(n) if np.ndim(factor) == 0 else np.diag(factor) if np.ndim(factor) == 1 else factor
        np.testing.assert_allclose(dense @ dense.T, covariance.matrix(), atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_whitening_undoes_the_covariance(form):
    law = MatrixGaussian(*FORMS[form])
    for covariance in (law.rowcov, law.colcov):
        a, n = covariance.whitening, covariance.size
        dense = a * np.eye(n) if np.ndim(a) == 0 else np.diag(a) if np.ndim(a) == 1 else a
        np.testing.assert_allclose(dense @ covariance.matrix() @ dense.T, np.eye(n), atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_samples_are_transformed_normals(form):
    law = MatrixGaussian(*FORMS[form])
    normals = MatrixGaussian(Covariance.identity(3), Covariance.identity(4)).sample(Stream(seed=1))
    left, right = (
        f * np.eye(n) if np.ndim(f) == 0 else np.diag(f) if np.ndim(f) == 1 else f
        for f, n in zip((law.rowcov.factor, law.colcov.factor), law.shape, strict=True)
    )
    np.testing.assert_allclose(law.sample(Stream(seed=1)), left @ normals @ right.T, atol=1e-12)


def test_identity_takes_no_memory_and_stays_a_number():
    covariance = Covariance.identity(10**12, 4.0)
    assert covariance.whitening == 0.5
    assert covariance.factor == 2.0
    assert covariance.scaled(4.0).whitening == 0.25
    assert covariance.scaled(4.0).variances.strides == (0,)
    assert covariance.log_determinant() == pytest.approx(10**12 * np.log(4))
    assert Covariance.diagonal([1.0, 4.0]).factor.ndim == 1


def test_standard_deviations():
    law = MatrixGaussian(spd(3), spd(4, 1))
    expected = np.sqrt(np.outer(np.diag(law.rowcov.matrix()), np.diag(law.colcov.matrix())))
    np.testing.assert_allclose(law.std, expected)
    assert MatrixGaussian(Covariance.identity(10**9), [1.0, 4.0]).std.shape == (10**9, 2)


def test_asymmetry_within_rounding_is_forgiven():
    matrix = spd(3)
    matrix[0, 1] *= 1 + 1e-15
    assert Covariance.dense(matrix).size == 3


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        ([[1.0, np.nan], [np.nan, 1.0]], "finite"),
        ([[1.0, 0.5], [0.4, 1.0]], "symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "positive definite"),
        ([[1.0, 0.0], [0.0, 0.0]], "positive definite"),
        ([[1.0, 0.0]], "square"),
        ([1.0, -1.0], "finite, positive"),
        ([1.0, np.inf], "finite, positive"),
        ([], "at least one"),
        (3.0, "a covariance must be a vector"),
        ((np.eye(3), [1.0, 1.0]), "directions must have shape"),
        ((np.ones((2, 2)), [1.0, 1.0]), "orthonormal"),
        ((np.full((2, 2), np.nan), [1.0, 1.0]), "finite"),
    ],
)
def test_unfit_covariances_are_named(covariance, message):
    with pytest.raises(ParameterError, match=message):
        MatrixGaussian(covariance, [1.0])


def test_unfit_calls_are_named():
    law = MatrixGaussian([1.0, 2.0], [1.0])
    with pytest.raises(ParameterError, match="values must have shape"):
        law.logpdf(np.zeros((1, 2)))
    with pytest.raises(ParameterError, match="same covariance"):
        law.sample(Stream(seed=1), symmetric=True)
    with pytest.raises(ParameterError, match="size must be"):
        Covariance.identity(0)


def test_symmetric_samples_come_from_one_triangle():
    covariance = Covariance.dense(spd(6))
    law = MatrixGaussian(covariance, covariance)
    z = law.sample(Stream(seed=2), symmetric=True)
    np.testing.assert_allclose(z, z.T, atol=1e-12)
