"""Positive semidefinite matrices near noisy ones."""

from __future__ import annotations

import numpy as np
import pytest

from matrixdp import Bounds, Moments, ParameterError, Privacy, Stream, make_design
from matrixdp.answers import Estimate, nearest_psd


def _noisy(seed, size, *, noise, diagonal):
    """A covariance of rank three and a bit, with noise; the noise on the diagonal is `diagonal` times as large."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((size, 3))
    units = 10.0 ** rng.uniform(-2, 2, size)
    truth = factors @ factors.T / 3 + 0.2 * np.eye(size)
    error = rng.standard_normal((size, size))
    error = np.tril(error, -1) + np.tril(error, -1).T + np.diag(diagonal * rng.standard_normal(size))
    std = noise * (np.ones((size, size)) + (diagonal - 1) * np.eye(size))
    both = np.multiply.outer(units, units)
    return truth * both, (truth + noise * error) * both, std * both, units


def _error(estimate, truth, units):
    return float(np.linalg.norm((estimate - truth) / np.multiply.outer(units, units)))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 12, 30])
@pytest.mark.parametrize("diagonal", [0.0, 0.2, 1.4142, 3.0])
def test_results_are_positive_semidefinite_and_symmetric(size, diagonal):
    for seed in range(3):
        _, matrix, std, units = _noisy(seed, size, noise=1.0, diagonal=diagonal)
        result = nearest_psd(matrix, std)
        scaled = result / np.multiply.outer(units, units)
        assert np.array_equal(result, result.T)
        assert np.linalg.eigvalsh(scaled)[0] >= -1e-9 * max(1.0, np.abs(scaled).max())


def test_a_positive_semidefinite_matrix_stays_as_it_is():
    truth, _, std, _ = _noisy(0, 8, noise=0.1, diagonal=0.2)
    assert np.allclose(nearest_psd(truth, std), truth, rtol=1e-9, atol=0)


def test_noise_as_large_on_the_diagonal_gives_the_frobenius_norm():
    _, matrix, _, _ = _noisy(1, 9, noise=1.0, diagonal=1.0)
    std = np.ones((9, 9)) + (np.sqrt(2) - 1) * np.eye(9)
    assert np.allclose(nearest_psd(matrix, std), nearest_psd(matrix), atol=1e-9 * np.abs(matrix).max())


def test_a_diagonal_without_noise_is_kept():
    truth, matrix, std, units = _noisy(2, 10, noise=1.0, diagonal=0.0)
    result = nearest_psd(matrix, std)
    assert np.allclose(np.diagonal(result) / units**2, np.diagonal(truth) / units**2, atol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_an_accurate_diagonal_moves_less_than_in_the_frobenius_norm(seed):
    _, matrix, std, units = _noisy(seed, 12, noise=1.0, diagonal=0.3)
    scaled = matrix / np.multiply.outer(units, units)
    by_noise = np.abs(np.diagonal(nearest_psd(matrix, std)) / units**2 - np.diagonal(scaled))
    by_norm = np.abs(np.diagonal(nearest_psd(scaled) - scaled))
    assert by_noise.sum() < by_norm.sum() / 2


@pytest.mark.parametrize("diagonal", [0.0, 0.2, 1.0])
def test_no_positive_semidefinite_matrix_is_closer_and_none_gets_further_away(diagonal):
    """The weighted norm of the error never grows, whatever the truth is: a projection on a convex set."""
    rng = np.random.default_rng(3)
    for seed in range(5):
        truth, matrix, std, units = _noisy(seed, 7, noise=1.0, diagonal=diagonal)
        both = np.multiply.outer(units, units)
        result = nearest_psd(matrix, std)
        precision = 1 / max(diagonal, 1e-3) ** 2
        weights = np.ones((7, 7)) + (np.clip((2 * precision) ** 2, 1, 1e6) - 1) * np.eye(7)

        def norm(x, y, weights=weights, both=both):
            return float(np.sqrt((weights * ((x - y) / both) ** 2).sum()))

        assert norm(result, truth) <= norm(matrix, truth) * (1 + 1e-6)
        for _ in range(20):
            factors = rng.standard_normal((7, 4)) * units[:, None]
            other = result + 0.3 * (factors @ factors.T - result)
            assert norm(result, matrix) <= norm(other, matrix) * (1 + 1e-6)


def test_units_do_not_matter():
    for size in (2, 3, 9):
        _, matrix, std, units = _noisy(4, size, noise=1.0, diagonal=0.3)
        both = np.multiply.outer(units, units)
        plain = nearest_psd(matrix / both, std / both)
        assert np.allclose(nearest_psd(matrix, std) / both, plain, atol=1e-5 * np.abs(plain).max())


@pytest.mark.parametrize("noise", [0.05, 0.3, 1.0, 5.0])
def test_with_an_accurate_diagonal_the_norm_of_the_noise_beats_the_frobenius_norm(noise):
    errors = {"norm": 0.0, "nearest": 0.0}
    for seed in range(20):
        truth, matrix, std, units = _noisy(seed, 15, noise=noise, diagonal=0.2)
        both = np.multiply.outer(units, units)
        errors["norm"] += _error(nearest_psd(matrix / both) * both, truth, units)
        errors["nearest"] += _error(nearest_psd(matrix, std), truth, units)
    assert errors["nearest"] < errors["norm"]


def test_negative_variances_become_zero_or_more():
    matrix = np.array([[-1.0, 0.5, 0.0], [0.5, 2.0, 0.3], [0.0, 0.3, 1.0]])
    result = nearest_psd(matrix, np.full((3, 3), 0.5))
    assert (np.diagonal(result) >= 0).all()


def test_correlations_keep_their_ones():
    value = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    std = np.full((3, 3), 0.2)
    np.fill_diagonal(std, 0.0)
    estimate = Estimate(value, std, ("a", "b", "c"), ("a", "b", "c"))
    assert np.allclose(np.diagonal(estimate.nearest_psd()), 1, atol=1e-4)


def test_releases_of_moments_keep_their_public_entry():
    data = np.random.default_rng(0).uniform(-1, 1, (200, 6))
    design = make_design(Moments(Bounds([-1] * 6, [1] * 6), 200), Privacy(0.5, 1e-6))
    released = design.release(data, stream=Stream(1), simulation=True)
    result = released.nearest_psd()
    assert np.linalg.eigvalsh(released.matrix)[0] < 0
    assert np.linalg.eigvalsh(result)[0] >= -1e-9
    assert abs(result[0, 0] - 1) < 1e-3
    found = released.covariance()
    assert np.linalg.eigvalsh(found.nearest_psd())[0] >= -1e-9
    np.testing.assert_array_equal(found.nearest_psd(), nearest_psd(found.measured, found.std))


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_covariances_with_rotated_noise_are_symmetric(neighbours):
    rng = np.random.default_rng(7)
    basis = np.linalg.qr(rng.standard_normal((9, 9)))[0]
    query = Moments(Bounds([-1] * 9, [1] * 9), 200, neighbours=neighbours)
    design = make_design(query, Privacy(1, 1e-6), directions=basis)
    estimate = design.release(rng.uniform(-1, 1, (200, 9)), stream=Stream(2), simulation=True).covariance()
    assert np.array_equal(estimate.value, estimate.value.T)
    assert np.linalg.eigvalsh(estimate.nearest_psd())[0] >= -1e-9


def test_bad_arguments_are_named():
    with pytest.raises(ParameterError, match="symmetric"):
        nearest_psd(np.arange(4.0).reshape(2, 2))
    for std in (np.ones((3, 3)), np.full((2, 2), np.nan), -np.ones((2, 2))):
        with pytest.raises(ParameterError, match="std"):
            nearest_psd(np.eye(2), std)
