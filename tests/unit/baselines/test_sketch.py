"""The exact privacy of a Gaussian sketch, against quadrature and random neighbours."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp import ParameterError, Privacy
from matrixdp.baselines.johnson_lindenstrauss import (
    CALIBRATIONS,
    largest_leverage,
    sketch_delta,
    sketch_epsilon,
)


def pair_delta(first, second, epsilon, angles=4000):
    """Exact delta of one draw of N(0, first) against N(0, second), 2 x 2: closed in the radius, a sum over angles."""
    theta = np.arange(angles) * 2 * math.pi / angles
    u = np.stack([np.cos(theta), np.sin(theta)])
    root = np.linalg.cholesky(first)
    middle = root.T @ (np.linalg.inv(second) - np.linalg.inv(first)) @ root
    h = np.einsum("ik,ij,jk->k", u, middle, u)  # the loss is constant + e h, e exponential
    constant = math.log(np.linalg.det(second) / np.linalg.det(first)) / 2
    gap = epsilon - constant
    with np.errstate(divide="ignore", over="ignore"):
        cross = np.where(h == 0, np.inf, gap / np.where(h == 0, 1, h))
    start = np.maximum(cross, 0)
    rising = np.exp(-start) - np.exp(gap - (1 + h) * start) / (1 + h)
    falling = 1 - np.exp(-start) - math.exp(gap) * (1 - np.exp(-(1 + h) * start)) / (1 + h)
    return float(np.where(h > 0, rising, falling).mean())


def random_pair(rng, w2, q):
    """Covariances of two neighbouring data sets, records in a ball of squared radius q."""
    others = rng.normal(size=(2, 2)) * rng.choice([0, 0.3, 3])
    base = others.T @ others + w2 * np.eye(2)
    records = rng.normal(size=(2, 2))
    if rng.random() < 0.3:
        records[1] = [-records[0][1], records[0][0]]
    radii = math.sqrt(q) * rng.choice([1, 1, rng.random()], 2)
    records *= (radii / np.linalg.norm(records, axis=1))[:, None]
    return [base + np.outer(x, x) for x in records]


def mp_delta(leverage, draws, epsilon):
    with mpmath.workdps(25):
        k, t, e = mpmath.mpf(draws) / 2, mpmath.mpf(leverage), mpmath.mpf(epsilon)

        def tail(x):
            return mpmath.gammainc(k, x, mpmath.inf, regularized=True)

        def integrand(v):
            start = e / t + v / (1 + t)
            density = v ** (k - 1) * mpmath.exp(-v) / mpmath.gamma(k)
            return density * (tail(start) - mpmath.exp(e + t / (1 + t) * v) * (1 + t) ** -k * tail((1 + t) * start))

        points = [0, k / 4, k / 2, k, 2 * k, 4 * k + 10, 10 * k + 60]
        return float(mpmath.quad(integrand, points))


@pytest.mark.parametrize(
    ("leverage", "draws", "epsilon"), [(0.5, 1, 1.0), (0.1, 4, 0.5), (0.05, 20, 1.0), (3.0, 2, 2.0), (0.2, 3, 0.0)]
)
def test_delta_agrees_with_mpmath(leverage, draws, epsilon):
    exact = mp_delta(leverage, draws, epsilon)
    assert exact <= sketch_delta(leverage, draws, epsilon) <= exact * (1 + 1e-8)


@pytest.mark.parametrize("leverage", [0.05, 0.5, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_no_neighbours_exceed_the_exact_delta(leverage, epsilon):
    rng = np.random.default_rng(int(100 * leverage))
    claimed = sketch_delta(leverage, 1, epsilon)
    found = [pair_delta(*random_pair(rng, 1.0, leverage), epsilon) for _ in range(200)]
    assert max(found) <= claimed * (1 + 2e-6)  # the error of the sum over angles


@pytest.mark.parametrize("leverage", [0.05, 0.5, 4.0])
def test_two_orthogonal_records_attain_the_exact_delta(leverage):
    first, second = np.diag([1 + leverage, 1.0]), np.diag([1.0, 1 + leverage])
    assert pair_delta(first, second, 0.3) == pytest.approx(sketch_delta(leverage, 1, 0.3), rel=1e-5)


@settings(deadline=None)
@given(st.floats(0.01, 50), st.floats(0.0, math.pi))
def test_one_channel_makes_every_pair_of_equal_length_from_the_orthogonal_one(leverage, angle):
    """The construction in the proof: a linear map and independent noise of covariance K, the same for both."""
    a, b = (math.sqrt(leverage) * np.array([math.cos(x), math.sin(x)]) for x in (angle / 2, -angle / 2))
    c, s = math.cos(angle), math.sin(angle)
    plus, minus = 1 + leverage / 2 * (1 + c), 1 + leverage / 2 * (1 - c)
    ratio = math.sqrt(plus / minus)
    lengths = np.sqrt(np.array([s * ratio, s / ratio]) / 2)
    first, second = lengths, lengths * [1, -1]
    kernel = np.eye(2) + np.outer(a, a) - (1 + leverage) * np.outer(first, first) - np.outer(second, second)
    again = np.eye(2) + np.outer(b, b) - np.outer(first, first) - (1 + leverage) * np.outer(second, second)
    assert np.allclose(kernel, again, atol=1e-9 * (1 + leverage))
    assert np.linalg.eigvalsh(kernel)[0] >= -1e-9 * (1 + leverage)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.05, 8), st.floats(-10, -1), st.integers(1, 400))
def test_calibration_meets_its_budget_and_no_more(epsilon, exponent, draws):
    privacy = Privacy(epsilon, 10**exponent)
    leverage = largest_leverage(privacy, draws)
    assert sketch_delta(leverage, draws, epsilon) <= privacy.delta
    assert sketch_delta(leverage * (1 + 1e-6), draws, epsilon) > privacy.delta


@settings(max_examples=20, deadline=None)
@given(st.floats(0.05, 8), st.floats(-10, -1), st.integers(1, 400))
def test_calibrations_are_ordered(epsilon, exponent, draws):
    privacy = Privacy(epsilon, 10**exponent)
    exact, published = (largest_leverage(privacy, draws, name) for name in CALIBRATIONS)
    assert published < exact


def test_many_draws_come_to_the_gaussian_mechanism():
    privacy = Privacy(1, 1e-3)
    assert largest_leverage(privacy, 10**6) * 1e3 == pytest.approx(privacy.mu, rel=1e-3)


def test_epsilon_is_the_inverse_of_delta():
    assert sketch_epsilon(0.1, 10, sketch_delta(0.1, 10, 0.7)) == pytest.approx(0.7, rel=1e-6)
    assert sketch_epsilon(1e-9, 10, 1e-3) == 0.0


@pytest.mark.parametrize("draws", [0, -1, 2.0, True])
def test_draws_out_of_range_are_an_error(draws):
    with pytest.raises(ParameterError, match="draws must be"):
        largest_leverage(Privacy(1, 0.1), draws)


def test_unknown_calibration_is_an_error():
    with pytest.raises(ParameterError, match="calibration must be"):
        largest_leverage(Privacy(1, 0.1), 3, "best")
