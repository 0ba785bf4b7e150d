"""Posterior coefficients of a regression."""

import numpy as np

from matrixdp.adaptive.regression import posterior_coefficients


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
