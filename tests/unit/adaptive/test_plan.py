"""The plan of the final moment: its centre, and its coordinates for a regression."""

import numpy as np
import pytest

from matrixdp.adaptive import plan
from matrixdp.adaptive.ball_moment import BallMoment
from matrixdp.adaptive.coordinates import LEVELS
from matrixdp.adaptive.settings import SETTINGS

REGRESSION = SETTINGS["regression"]


def test_the_centre_moves_towards_the_midpoint_by_standard_deviations():
    mean, basis = np.array([0.6, 0.8]), np.eye(2)
    assert plan.pull_to_midpoint(mean, basis, np.full(2, 0.25), 0.4) == pytest.approx(0.8 * mean)
    assert plan.pull_to_midpoint(mean, basis, np.array([0.01, 0.0]), 0.4) == pytest.approx((1 - 0.4 * 0.06) * mean)
    assert plan.pull_to_midpoint(mean, basis, np.array([9.0, 9.0]), 0.4) == pytest.approx(np.zeros(2))
    assert plan.pull_to_midpoint(np.zeros(2), basis, np.ones(2), 0.4) == pytest.approx(np.zeros(2))
    assert plan.pull_to_midpoint(mean, basis, np.ones(2), 0.0) == pytest.approx(mean)


@pytest.mark.parametrize("targets", [1, 2])
def test_targets_are_stretched_and_the_shape_of_the_noise_is_kept(targets):
    """But for the stretch, coordinates of a regression are those of a covariance of power 1/2, turned."""
    rng = np.random.default_rng(4)
    half = rng.normal(size=(6, 6))
    second = np.eye(7)
    second[1:, 1:] = half @ half.T / 20
    rough = BallMoment(second, 0.5, 0.01)
    plain, variances, one = plan.new_coordinates(rough, REGRESSION, None, LEVELS, 0)
    turned, same, weight = plan.new_coordinates(rough, REGRESSION, None, LEVELS, targets)
    assert one == 1.0
    assert weight >= 1.5
    np.testing.assert_array_equal(variances, same)
    stretch = np.diag([1.0] * (6 - targets) + [weight**-0.5] * targets)
    unstretched = stretch @ turned.matrix
    np.testing.assert_allclose(unstretched.T @ unstretched, plain.matrix.T @ plain.matrix, rtol=1e-5)
    np.testing.assert_allclose(turned.matrix[: 6 - targets, 6 - targets :], 0.0, atol=1e-12)


def test_weight_of_a_target_grows_with_the_number_of_features():
    weights = [plan.target_weight(m, 1, 1.0, 1.5) for m in (1, 6, 20, 90)]
    assert weights == [1.5, pytest.approx(2.0), pytest.approx(4.0), pytest.approx(9.0)]
    assert plan.target_weight(20, 1, 0.5, 1.5) == pytest.approx(2.0)
    assert plan.target_weight(40, 2, 1.0, 1.5) == pytest.approx(4.0)
