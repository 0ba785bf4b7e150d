"""A covariance that noise hides is zero rather than noise."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive import private_moment


@pytest.mark.parametrize(("records", "features"), [(300, 5), (300, 40), (2000, 10)])
def test_a_covariance_in_a_box_that_is_far_too_wide_is_not_worse_than_zero(records, features):
    rng = np.random.default_rng(features)
    data = 0.3 + 0.01 * rng.standard_normal((records, features))
    box = mdp.Bounds(-np.ones(features), np.ones(features))
    truth = np.cov(data.T, bias=True)
    errors = []
    for seed in range(8):
        moment = private_moment(data, box, mdp.Privacy(0.1, 1e-6), stream=mdp.Stream(seed=seed), simulation=True)
        errors.append(np.linalg.norm(moment.covariance - truth) / np.linalg.norm(truth))
    assert np.mean(errors) < 1.05


def test_a_covariance_that_is_measured_well_is_hardly_changed():
    data = np.random.default_rng(0).uniform(-1, 1, (4000, 4))
    moment = private_moment(data, mdp.Bounds([-1] * 4, [1] * 4), mdp.Privacy(3, 1e-6))
    assert moment.fitted.evident > 0.999
