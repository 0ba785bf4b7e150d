"""Noisy moments in other coordinates, and their mean and covariance."""

import math
from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from matrixdp.adaptive.ball_moment import BallMoment, denoise
from matrixdp.adaptive.shrinkage import clean_spectrum, keep_spikes, shrink_spectrum


def test_transformed_moments_are_those_of_transformed_records():
    rng = np.random.default_rng(2)
    data, matrix, centre = rng.normal(size=(50, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)

    def moment(records):
        full = np.column_stack([np.ones(len(records)), records])
        return full.T @ full / len(records)

    moved, variances = BallMoment(moment(data), 0.5, 0.1).transform(matrix, centre)
    assert np.allclose(moved, moment((data - centre) @ matrix.T))
    draws = []
    for _ in range(4000):
        noise = rng.normal(size=(4, 4)) * 0.1
        noise = (noise + noise.T) / math.sqrt(2)
        noise[0] /= 0.5
        noise[:, 0] /= 0.5
        turned = BallMoment(moment(data) + noise, 0.5, 0.1).transform(matrix, centre)[0]
        draws.append(turned - moved)
    assert np.allclose(np.std(draws, axis=0), np.sqrt(variances), rtol=0.1)


@given(st.integers(0, 10**6), st.floats(0.01, 3), st.floats(0.05, 5))
def test_a_denoised_covariance_is_positive_semidefinite(seed, std, constant):
    noise = np.random.default_rng(seed).normal(size=(5, 5)) * std
    second = np.eye(5) + (noise + noise.T) / 2
    for spectrum in (clean_spectrum, partial(shrink_spectrum, level=0.5), keep_spikes):
        mean, covariance = denoise(second, constant, std, spectrum)
        assert np.linalg.eigvalsh(covariance)[0] >= -1e-9 * (1 + np.abs(covariance).max())
        assert np.isfinite(mean).all()
