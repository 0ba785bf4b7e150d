"""Error bars of the coefficients of regressions."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import matrixdp as mdp
from matrixdp.adaptive.regression import posterior_coefficients
from matrixdp.estimators import PrivateLinearRegression, PrivateRidge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 3)) * [2.0, 1.0, 0.5]
Y = X @ [1.0, -2.0, 0.5] + 3 + RNG.normal(size=4000)
SEEDED = {"bounds": (-10, 10), "target_bounds": (-20, 20), "random_state": 0, "simulation": True}


def test_coefficients_have_standard_deviations_and_intervals():
    model = PrivateLinearRegression(epsilon=3.0, **SEEDED).fit(X, Y)
    assert model.coef_std_.shape == model.coef_.shape == (3,)
    assert isinstance(model.intercept_std_, float)
    low, high = model.coef_interval(1 - 1e-6)
    exact = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), Y)[0][:3]
    assert (low < exact).all()
    assert (high > exact).all()
    low, high = model.coef_interval()
    assert high - low == pytest.approx(2 * 1.96 * model.coef_std_, rel=1e-3)
    assert (np.diff(model.coef_interval(0.5), axis=0) < high - low).all()
    for level in (0, 1, 1.5, "x"):
        with pytest.raises(mdp.ParameterError, match="level must be"):
            model.coef_interval(level)


def test_several_targets():
    model = PrivateRidge(epsilon=3.0, **SEEDED).fit(X, np.column_stack([Y, -Y]))
    assert model.coef_std_.shape == (2, 3)
    assert model.intercept_std_.shape == (2,)
    assert [bound.shape for bound in model.coef_interval()] == [(2, 3), (2, 3)]


def test_they_are_computed_from_what_is_public_alone():
    model = PrivateRidge(epsilon=3.0, **SEEDED).fit(X, Y)
    first = model.coef_std_
    again = PrivateRidge(epsilon=3.0, **SEEDED).fit(X, Y)
    again.predict(X)
    assert np.array_equal(again.coef_std_, first)
    again.fit(X[:1000], Y[:1000])
    assert not np.array_equal(again.coef_std_, first)


def test_they_fall_with_epsilon_and_rise_with_shrinkage():
    stds = [PrivateLinearRegression(epsilon=epsilon, **SEEDED).fit(X, Y).coef_std_ for epsilon in (0.3, 1.0, 10.0)]
    assert (stds[0] > stds[1]).all()
    assert (stds[1] > stds[2]).all()
    options = {"target": (np.zeros(2), 1.0), "variance": 1.0, "records": np.inf}
    lost = [
        np.diagonal(posterior_coefficients(np.eye(2), np.ones(2) / 2, np.eye(2), std=std, **options)[1])
        for std in (1e-6, 0.1, 10.0)
    ]
    assert lost[0] == pytest.approx([0, 0], abs=1e-9)
    assert (lost[1] < lost[2]).all()
    assert lost[2] == pytest.approx([0.5, 0.5], rel=0.05)  # nearly all of the prior's variance


def test_without_a_regression_they_are_unknown():
    model = PrivateRidge(epsilon=0.1, **SEEDED).fit(X[:20], Y[:20])
    assert not model.coef_.any()
    assert np.isnan(model.coef_std_).all()
    assert np.isnan(model.intercept_std_)
    assert np.isnan(model.coef_interval()).all()
    with pytest.raises(NotFittedError):
        _ = PrivateRidge(**SEEDED).coef_std_
    assert not hasattr(PrivateRidge(**SEEDED), "coef_std_")
