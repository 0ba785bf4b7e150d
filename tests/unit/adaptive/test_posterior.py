"""Posterior coefficients of a regression."""

from types import SimpleNamespace

import numpy as np
import pytest

from matrixdp.adaptive.regression import JointMoment, _draw_moments, posterior_coefficients


def test_posterior_coefficients_are_exact_without_noise_and_small_where_all_is_noise():
    rng = np.random.default_rng(5)
    half = rng.normal(size=(4, 4))
    gram, truth = half @ half.T + np.eye(4), np.array([0.1, -0.2, 0.0, 0.3])
    options = {
        "target": (np.zeros(4), 1.0),
        "variance": 2 * float(truth @ gram @ truth),
        "records": 10**8,
    }
    np.testing.assert_allclose(
        posterior_coefficients(gram, gram @ truth, np.eye(4), std=1e-6, **options)[0], truth, atol=1e-4
    )
    noise = [
        np.linalg.norm(posterior_coefficients(np.eye(4), rng.normal(size=4), np.eye(4), std=1.0, **options)[0])
        for _ in range(50)
    ]
    assert np.mean(noise) < 0.5  # without shrinkage, 1.9
    assert np.isfinite(
        posterior_coefficients(np.zeros((4, 4)), np.zeros(4), np.zeros((4, 4)), std=0.0, **options)[0]
    ).all()


def test_coefficients_of_a_population_are_shrunk_by_the_error_of_a_sample():
    options = {"target": (np.zeros(3), 1.0), "variance": 1.0, "std": 1e-9}
    of_these, of_population = (
        posterior_coefficients(np.eye(3), np.array([0.1, 0.0, -0.1]), np.eye(3), records=records, **options)[0]
        for records in (np.inf, 20)
    )
    np.testing.assert_allclose(of_these, [0.1, 0.0, -0.1])
    assert (np.abs(of_population[[0, 2]]) < 0.06).all()  # the error of a sample is 0.22


def test_errors_of_coefficients_are_of_noise_and_of_what_shrinkage_takes():
    """Draws without noise leave that alone: its mean square is the prior's where everything is shrunk away."""
    covariance = np.diag([1.0, 1.0])
    joint = JointMoment(
        np.zeros(2), covariance, np.zeros(2), np.eye(2), 10.0, np.zeros(2), np.array([2.0, 3.0]), 100, np.inf,
        draws=lambda: [(np.zeros(2), covariance)] * 5,
    )  # fmt: skip
    ((slope,), shrinkage), (found, _) = joint.regress(1)[0], joint.coefficient_std(1)
    assert slope == 0
    assert found[0, 0] == pytest.approx(np.sqrt(shrinkage[0, 0]) * 3 / 2)
    assert found[0, 0] > 0.5


def test_noise_is_drawn_again_with_its_size():
    parts = {"mean": np.zeros(2), "unshrunk": np.eye(2), "mean_std": np.full(2, 0.05)}
    drawn = [*_draw_moments(SimpleNamespace(**parts, noise_shape=np.eye(2), noise_std=0.1))]
    assert np.std([mean for mean, _ in drawn], axis=0) == pytest.approx(np.full(2, 0.05), rel=0.2)
    spread = np.std([covariance for _, covariance in drawn], axis=0)
    assert spread == pytest.approx(0.1 * np.array([[2**0.5, 1], [1, 2**0.5]]), rel=0.2)
