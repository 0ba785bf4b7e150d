"""Forecasts of private moments: what they depend on, and that they come near to the errors of fits."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive import Description, forecast, private_moment
from matrixdp.noise import Stream

BOUNDS = mdp.Bounds([0, 0, 0], [10, 10, 1])
PRIVACY = mdp.Privacy(1, 1e-6)


def size(matrix):
    return float(np.sqrt(np.mean(matrix**2)))


def test_a_forecast_is_a_range_in_the_units_of_the_data():
    found = forecast(BOUNDS, 2000, PRIVACY)
    assert size(found.friendly.covariance_std) < size(found.typical.covariance_std)
    assert size(found.typical.covariance_std) < size(found.hostile.covariance_std)
    assert found.typical.mean_std.shape == (3,)
    assert found.typical.mean_std[2] == pytest.approx(found.typical.mean_std[0] / 10, rel=0.9)
    assert (np.diagonal(found.typical.correlation_std) < 1e-12).all()


def test_the_same_arguments_give_the_same_forecast():
    one, other = (forecast(BOUNDS, 2000, PRIVACY).typical for _ in range(2))
    assert np.array_equal(one.covariance_std, other.covariance_std)


def test_more_records_and_more_budget_mean_less_error():
    base = size(forecast(BOUNDS, 2000, PRIVACY).typical.covariance_std)
    assert size(forecast(BOUNDS, 20_000, PRIVACY).typical.covariance_std) < base / 2
    assert size(forecast(BOUNDS, 2000, mdp.Privacy(4, 1e-6)).typical.covariance_std) < base


def test_wider_spread_means_more_error():
    narrow, wide = (forecast(BOUNDS, 2000, PRIVACY, description=Description(spread=s)).friendly for s in (0.02, 0.3))
    assert size(narrow.covariance_std) < size(wide.covariance_std) / 5


def test_actual_errors_lie_in_the_range_when_the_guess_is_right():
    rng = np.random.default_rng(1)
    data = rng.gamma(2.0, 1.0, (3000, 4)) @ (np.eye(4) + 0.3)
    bounds = mdp.Bounds([0] * 4, [20] * 4)
    correlation = np.corrcoef(data.T)[np.tril_indices(4, -1)]
    guess = Description(data.std(axis=0) / 20, data.mean(axis=0) / 20, float(np.sqrt(np.mean(correlation**2))))
    predicted = forecast(bounds, 3000, PRIVACY, description=guess)
    truth = np.cov(data.T, bias=True)
    fits = [private_moment(data, bounds, PRIVACY, stream=Stream(i), simulation=True) for i in range(8)]
    actual = size(np.array([fit.covariance - truth for fit in fits]))
    assert size(predicted.friendly.covariance_std) / 1.5 < actual < 1.5 * size(predicted.hostile.covariance_std)
    assert actual < 3 * size(predicted.typical.covariance_std)  # the claim of docs/accuracy.md


def test_a_few_records_at_the_ends_of_wide_bounds_are_within_a_hostile_forecast():
    data, bounds = np.random.default_rng(10).normal(size=(2000, 3)), mdp.Bounds([-60] * 3, [60] * 3)
    data[:3] = 60.0
    predicted = forecast(bounds, 2000, PRIVACY, description=Description(spread=1 / 120, position=0.5, correlation=0.0))
    fit = private_moment(data, bounds, PRIVACY, stream=Stream(1), simulation=True)
    errors = np.abs(np.diagonal(fit.covariance) - data.var(axis=0))
    assert (errors > 3 * np.diagonal(predicted.typical.covariance_std)).all()
    assert (errors < 1.96 * np.diagonal(predicted.hostile.covariance_std)).all()


def test_impossible_spreads_are_reduced():
    mean, covariance = Description(spread=0.5, position=0.9, correlation=0.0).moments(2)
    assert np.allclose(mean, 0.8)
    assert np.allclose(covariance, np.diag([0.36, 0.36]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spread": 0.6}, "spread must be a number from 0 to 0.5"),
        ({"position": -0.1}, "position must be a number from 0 to 1"),
        ({"correlation": 2.0}, "correlation must be a number from 0 to 1"),
        ({"spread": [0.1, 0.2]}, "one for each of 3 features"),
        ({"spread": float("nan")}, "spread must be"),
    ],
)
def test_wrong_guesses_are_errors(options, message):
    with pytest.raises(mdp.ParameterError, match=message):
        forecast(BOUNDS, 100, PRIVACY, description=Description(**options))


def test_a_large_number_of_records_is_simulated_by_fewer():
    bounds = mdp.Bounds([0] * 5, [1] * 5)
    assert size(forecast(bounds, 10**7, PRIVACY).typical.mean_std) < 1e-4
