"""A private number of records, estimated once from all moments of a fit."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive import private_moment
from matrixdp.adaptive.ball_moment import BallMoment
from matrixdp.adaptive.noisy_count import share_count


def moment(count, std, constant=0.5):
    second = np.array([[1.0, 0.2], [0.2, 0.3]]) / count
    second[0, 0] = 1.0
    return BallMoment(second, constant, std / count, 2 * std / count, count, np.array([std**2 / count**2]))


def test_moments_over_one_number_agree_where_their_sums_do():
    one, other = share_count(moment(0.9, 0.01), moment(1.2, 0.1))
    assert one.count == other.count == pytest.approx(0.903, abs=1e-3)  # precisions of 100 to 1
    assert np.allclose(one.second, other.second)
    assert one.std == pytest.approx(0.01 / one.count)
    assert other.trace_std == pytest.approx(0.2 / one.count)
    assert other.diagonal == pytest.approx((0.1 / one.count) ** 2)


def test_a_larger_constant_measures_the_number_better():
    one, _ = share_count(moment(0.9, 0.1, constant=1.0), moment(1.2, 0.1))
    assert one.count == pytest.approx((16 * 0.9 + 1.2) / 17)


def test_a_public_number_leaves_moments_as_they_are():
    given = moment(1.0, 0.1), moment(1.0, 0.2)
    assert all(one is two for one, two in zip(share_count(*given), given, strict=True))


def test_a_private_number_costs_little_where_records_fill_their_bounds():
    """With the ratio of a public number, errors are 1.4 times those of replaced records."""
    rng = np.random.default_rng(0)
    data = np.where(rng.random((3000, 4)) < [0.5, 0.4, 0.3, 0.5], 1.0, -1.0)
    truth, box, errors = np.cov(data.T, bias=True), mdp.Bounds([-1] * 4, [1] * 4), {}
    for neighbours in ("replace", "add-remove"):
        options = {"neighbours": neighbours, "records": len(data), "simulation": True}
        fits = [private_moment(data, box, mdp.Privacy(1, 1e-6), stream=mdp.Stream(seed=s), **options) for s in range(8)]
        errors[neighbours] = np.mean([np.square(fit.covariance - truth).mean() for fit in fits]) ** 0.5
    assert errors["add-remove"] < 1.2 * errors["replace"]
