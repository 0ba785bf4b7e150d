"""Shrinkage of eigenvalues."""

import math

import numpy as np
import pytest

from matrixdp.adaptive.shrinkage import (
    keep_spikes,
    nearest_of_same_trace,
    project_simplex,
    shrink_eigenvalues,
    shrink_spectrum,
)


def test_projection_keeps_the_trace_and_shrinkage_reduces_the_error():
    rng = np.random.default_rng(3)
    truth = np.diag(np.r_[5.0, 3.0, np.zeros(38)])
    noise = rng.normal(size=(40, 40)) * 0.2
    noisy = truth + (noise + noise.T) / math.sqrt(2)
    plain, shrunk = nearest_of_same_trace(noisy), None
    assert np.trace(plain) == pytest.approx(np.trace(noisy))
    values, vectors = np.linalg.eigh(noisy)
    shrunk = (vectors * project_simplex(shrink_eigenvalues(values, 0.2))) @ vectors.T
    assert np.linalg.norm(shrunk - truth) < 0.6 * np.linalg.norm(noisy - truth)
    assert project_simplex(np.array([-1.0, -2.0])).tolist() == [0.0, 0.0]


def test_shrunk_eigenvalues_are_those_of_the_truth_along_noisy_eigenvectors():
    """On average, to second order: the correction is 0.02 here."""
    noise = np.random.default_rng(0).normal(0, 0.1 / math.sqrt(2), (4000, 2, 2))
    truth = np.diag([0.0, 1.0])
    values, vectors = np.linalg.eigh(truth + noise + noise.swapaxes(1, 2))
    along = np.einsum("nik,ij,njk->nk", vectors, truth, vectors).mean(axis=0)
    assert np.mean([shrink_eigenvalues(one, 0.1) for one in values], axis=0) == pytest.approx(along, abs=0.005)


def test_spikes_are_kept_with_the_trace():
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(40, 40)) * 0.2
    noisy = np.diag(np.r_[5.0, np.full(39, 0.1)]) + (noise + noise.T) / math.sqrt(2)
    values = np.linalg.eigvalsh(noisy)
    kept = keep_spikes(values, 0.2)
    assert kept.sum() == pytest.approx(values.sum())
    assert np.ptp(kept[:-1]) == pytest.approx(0.0, abs=1e-12)
    assert kept[-1] == pytest.approx(5.0 - 0.2**2 * 40 / 5.0, rel=0.2)
    assert keep_spikes(np.array([-2.0, 1.0]), 0.1).tolist() == [0.0, 0.0]
    level = shrink_spectrum(values, 0.2, level=1.0)
    assert level.sum() == pytest.approx(values.sum())
    assert np.unique(level.round(12)).size == 1 + np.count_nonzero(values > 2 * 0.2 * math.sqrt(40))
