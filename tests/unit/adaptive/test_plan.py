"""The plan of the final moment: its centre, and its coordinates for a regression."""

import numpy as np
import pytest

from matrixdp.adaptive import fit as plan
from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.settings import Settings


def test_the_centre_moves_towards_the_midpoint_by_standard_deviations():
    mean, basis = np.array([0.6, 0.8]), np.eye(2)
    assert plan.pull_to_midpoint(mean, basis, np.full(2, 0.25), 0.4) == pytest.approx(0.8 * mean)
    assert plan.pull_to_midpoint(mean, basis, np.array([0.01, 0.0]), 0.4) == pytest.approx((1 - 0.4 * 0.06) * mean)
    assert plan.pull_to_midpoint(mean, basis, np.array([9.0, 9.0]), 0.4) == pytest.approx(np.zeros(2))
    assert plan.pull_to_midpoint(np.zeros(2), basis, np.ones(2), 0.4) == pytest.approx(np.zeros(2))
    assert plan.pull_to_midpoint(mean, basis, np.ones(2), 0.0) == pytest.approx(mean)


def test_the_constant_before_records_without_variance_is_no_longer_than_the_radius():
    """Differences of nearly equal numbers made the ratio exceed one, which a moment refuses."""
    for tiny in (1e-8, 1e-14, 1e-30):
        coordinates = Coordinates.of(np.eye(3), np.full(3, 0.9))
        found = plan._expect_errors(coordinates, np.full(3, tiny), Settings())
        assert found.ratio <= 1
    middle = plan._expect_errors(Coordinates.of(np.eye(3), np.zeros(3)), np.ones(3), Settings())
    assert middle.ratio == Settings().ratio
