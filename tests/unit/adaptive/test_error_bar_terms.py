"""Each term of an error bar, on its own: moments are made up, so that what a term must be is known."""

import dataclasses
import importlib
import math

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive import error_bars as public_error_bars
from matrixdp.adaptive import simulation
from matrixdp.adaptive.error_bars import NORMAL, noise_bars, sampling_bars, simulated_errors
from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.simulation import (
    FAMILIES,
    FitOptions,
    RepeatedFit,
    likeliest,
    read_off,
    sampling_errors,
    simulate_records,
)
from matrixdp.privacy import Neighbours

terms = importlib.import_module("matrixdp.adaptive.error_bars")  # the package has a function of that name

MANY = 10**12  # records, of which one contributes nothing
MEAN = np.array([0.1, -0.3, 0.5])
COVARIANCE = 0.04 * np.array([[1.0, 0.3, 0.1], [0.3, 0.8, -0.2], [0.1, -0.2, 0.4]])


def made(
    mean=MEAN, covariance=COVARIANCE, *, records=MANY, epsilon=1.0, mean_std=0.0, std=0.0, evident=1.0, half=1.0, **more
):
    """A private moment whose covariance was `covariance` before it was multiplied by `evident`."""
    mean, covariance = np.asarray(mean, float), np.asarray(covariance, float)
    d = mean.size
    privacy, person = mdp.Privacy(epsilon, 1e-6), more.pop("person", None)
    fitted = Fitted(
        mean=mean,
        covariance=evident * covariance,
        evident=evident,
        second=covariance + np.outer(mean, mean),
        mean_std=np.full(d, float(mean_std)),
        std=np.broadcast_to(np.asarray(std, float), (d, d)).copy(),
        unshrunk=covariance,
        noise_shape=more.pop("noise_shape", np.eye(d)),
        noise_std=more.pop("noise_std", 0.0),
        radius=1.0,
        learned=True,
    )
    half = np.broadcast_to(np.asarray(half, float), (d,))
    spent = {"neighbours": Neighbours.REPLACE, "mu": privacy.mu, "steps": (), "simulation": True}
    asked = {"bounds": mdp.Bounds(-half, half), "privacy": privacy, "records": records, "person": person}
    return PrivateMoment(fitted=fitted, **spent, **asked, **more)


def repeated(moment, *errors, weights=None):
    """The moment with simulated fits whose means and covariances have these errors, by default with equal weights."""
    mean, covariance = moment.fitted.mean, likeliest(moment.fitted)
    fits = [
        ((mean, covariance), [made(mean + of_mean, covariance + of_covariance).fitted])
        for of_mean, of_covariance in errors or [(0.0, 0.0)]
    ]
    shares = np.full(len(fits), 1 / len(fits)) if weights is None else np.asarray(weights)
    object.__setattr__(moment, "simulated", RepeatedFit(fits, shares))
    return moment


def test_the_noise_of_a_second_moment_is_that_of_the_covariance_and_of_both_means():
    mean = np.array([0.2, 0.6])
    moved = noise_bars(made(mean, np.eye(2) / 9, mean_std=0.01))["second_moment"]
    shifted = np.outer(mean + 0.01, mean + 0.01) - np.outer(mean, mean) - 0.01**2
    assert moved == pytest.approx(shifted)
    both = noise_bars(made(mean, np.eye(2) / 9, mean_std=0.01, std=0.03))["second_moment"]
    assert both == pytest.approx(np.hypot(shifted, 0.03))


def test_the_noise_of_a_correlation_is_that_of_its_covariance_and_of_both_variances():
    rng, std = np.random.default_rng(1), 1e-4 * np.array([[3.0, 1.0, 2.0], [1.0, 5.0, 1.5], [2.0, 1.5, 4.0]])
    drawn = COVARIANCE + std * rng.standard_normal((40_000, 3, 3))
    drawn[:, 0, 1], drawn[:, 0, 2], drawn[:, 1, 2] = drawn[:, 1, 0], drawn[:, 2, 0], drawn[:, 2, 1]
    spread = read_off(MEAN, drawn, np.ones(3))["correlation"].std(axis=0)
    below = np.tril_indices(3, -1)
    assert noise_bars(made(std=std))["correlation"][below] == pytest.approx(spread[below], rel=0.03)


def test_the_noise_of_a_correlation_without_variance_is_infinite():
    found = noise_bars(made(covariance=np.diag([0.0, 0.1, 0.1]), std=0.01))["correlation"]
    assert np.isinf(found[0]).all()
    assert np.isfinite(found[1:, 1:]).all()


def test_the_noise_of_an_eigenvalue_is_that_along_its_direction():
    rng, half = np.random.default_rng(2), np.array([1.0, 2.0, 3.0])
    root = np.array([[1.0, 0.0, 0.0], [0.4, 1.5, 0.0], [0.0, 0.3, 0.5]])
    normal = rng.standard_normal((40_000, 3, 3))
    noise = 1e-5 * (normal + normal.swapaxes(1, 2)) / math.sqrt(2)  # twice the variance on the diagonal
    spread = read_off(MEAN, COVARIANCE + root @ noise @ root.T, half)["eigenvalue"].std(axis=0)
    found = noise_bars(made(noise_shape=root @ root.T, noise_std=1e-5, half=half))["eigenvalue"]
    assert found == pytest.approx(spread, rel=0.03)


@pytest.mark.parametrize(("simulated", "noise"), [(0.03, 0.04), (0.04, 0.03), (0.0, 0.02), (0.02, 0.0)])
def test_a_bar_is_the_larger_of_simulated_errors_and_noise(simulated, noise):
    found = public_error_bars(repeated(made(mean_std=noise), (simulated, 0.0)))
    assert found.mean_std == pytest.approx(np.full(3, max(simulated, noise)))


def test_a_bar_is_the_root_mean_square_of_simulated_errors_by_their_weights():
    moment = repeated(made(half=[1.0, 2.0, 3.0]), (0.01, 0.0), (-0.03, 0.0), weights=[0.75, 0.25])
    expected = math.sqrt(0.75 * 0.01**2 + 0.25 * 0.03**2) * np.array([1.0, 2.0, 3.0])
    assert public_error_bars(moment).mean_std == pytest.approx(expected)
    errors = simulated_errors(moment, lambda fit, mean, covariance: fit.mean - mean)
    assert errors == pytest.approx(expected)  # any other answer has its bars from the same fits


def test_other_answers_are_compared_with_the_simulated_records_in_the_units_of_the_data():
    half = np.array([1.0, 2.0, 3.0])
    moment = repeated(made(half=half), (0.0, 0.001 * np.eye(3)))
    assert simulated_errors(moment, lambda fit, mean, covariance: mean) == pytest.approx(half * np.abs(MEAN))
    errors = simulated_errors(moment, lambda fit, mean, covariance: np.diagonal(fit.covariance - covariance))
    assert errors == pytest.approx(0.001 * half**2)


def test_no_interval_is_longer_than_what_is_possible():
    half = np.array([1.0, 2.0, 3.0])
    found = public_error_bars(repeated(made(half=half), (1e6, 1e6 * np.ones((3, 3)) + 1e7 * np.eye(3))))
    assert NORMAL * found.mean_std == pytest.approx(half * (1 + np.abs(MEAN)))
    assert NORMAL * found.covariance_std == pytest.approx(np.outer(half, half) * (1 + np.abs(COVARIANCE)))
    largest = np.linalg.eigvalsh(COVARIANCE * np.outer(half, half))[::-1]
    assert NORMAL * found.eigenvalue_std == pytest.approx(half @ half + largest)


@pytest.mark.parametrize("correlation", [-0.9, 0.5, 0.0])
def test_what_is_missing_of_two_variances_is_missing_of_their_covariance_as_far_as_they_are_correlated(correlation):
    covariance = 0.04 * np.array([[1.0, correlation, 0.0], [correlation, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = public_error_bars(repeated(made(covariance=covariance), (0.0, np.diag([0.01, 0.04, 0.0]))))
    assert np.diagonal(found.covariance_std) == pytest.approx([0.01, 0.04, 0.0])
    assert found.covariance_std[0, 1] == pytest.approx(abs(correlation) * 0.02)


def test_samples_add_in_squares():
    moment = repeated(made(records=400), (0.01, 0.0))
    without, samples, both = public_error_bars(moment), sampling_bars(moment), public_error_bars(moment, sampling=True)
    for name in ("mean_std", "second_moment_std", "covariance_std", "eigenvalue_std", "correlation_std"):
        one, other = getattr(without, name), getattr(samples, name)
        assert getattr(both, name) == pytest.approx(np.hypot(one, other)), name
    assert samples.mean_std == pytest.approx(np.sqrt(np.diagonal(COVARIANCE) / 400), rel=0.1)


def test_errors_of_samples_are_root_mean_squares_over_the_families():
    moment = made(records=400)
    seed = simulation.public_seed(moment.fitted)
    found = [
        sampling_errors(
            simulate_records(family, MEAN, COVARIANCE, 400, np.random.default_rng(seed + index)), 400, np.ones(3)
        )["covariance"]
        for index, family in enumerate(FAMILIES)
    ]
    assert sampling_bars(moment).covariance_std == pytest.approx(np.sqrt(np.mean(np.square(found), axis=0)))


def test_samples_of_people_are_as_small_as_their_number_may_be():
    one, five = (sampling_bars(made(records=5000, person=who)) for who in (None, mdp.Person("id", rows=5)))
    assert five.mean_std == pytest.approx(math.sqrt(5) * one.mean_std, rel=1e-6)


@pytest.mark.parametrize(("found", "factor"), [(0.8, 1.25), (1.25, 0.8), (0.1, 4.0), (-0.5, 4.0), (9.0, 0.25)])
def test_a_mean_is_corrected_by_what_a_fit_makes_of_it_within_limits(found, factor):
    wanted = np.array([0.1, -0.2])
    assert simulation._correct_mean(wanted, wanted, found * wanted) == pytest.approx(factor * wanted)
    assert np.abs(simulation._correct_mean(np.array([0.9, 0.0]), wanted, found * wanted)).max() <= 1.0


@pytest.mark.parametrize(("found", "factor"), [(0.5, 2.0), (2.0, 0.5), (0.01, 16.0), (0.0, 16.0), (99.0, 1 / 16)])
def test_variances_are_corrected_by_what_a_fit_makes_of_them_within_limits(found, factor):
    wanted = np.diagonal(COVARIANCE)
    assert simulation._correct(COVARIANCE, wanted, found * wanted) == pytest.approx(factor * COVARIANCE)


def record_rounds(monkeypatch, mean_factor, factor):
    """What is asked of simulations whose fits find these parts of a mean and a covariance; a list that is filled."""
    asked = []

    def record(family, mean, covariance, options, seed, times):
        asked.append((family, mean, covariance, options.targets, seed, times))
        return (mean, covariance), [made(mean_factor * mean, factor * covariance).fitted] * times

    monkeypatch.setattr(simulation, "simulate_fits", record)
    return asked


def test_each_family_is_simulated_as_it_was_found_and_then_so_that_a_fit_would_find_it(monkeypatch):
    asked = record_rounds(monkeypatch, 2 / 3, 1 / 3)
    found = made().simulated
    assert [family for family, *_ in asked] == [family for family in FAMILIES for _ in range(4)]
    assert len({seed for *_, seed, _ in asked}) == len(asked) == len(found.fits)
    for first in range(0, len(asked), 4):
        for index, (_, mean, covariance, *_) in enumerate(asked[first : first + 4]):
            assert mean == pytest.approx(MEAN if index == 0 else 1.5 * MEAN)
            assert covariance == pytest.approx(COVARIANCE if index == 0 else 3 * COVARIANCE)


def test_simulations_whose_fits_are_further_from_the_given_one_count_less(monkeypatch):
    """``1/(3 + D)``, D a mean over features, in units of their noise and spread."""
    record_rounds(monkeypatch, 0.5, 0.25)
    weights = made(mean_std=0.1, std=0.02).simulated.weights.reshape(len(FAMILIES), 4)
    variances = np.diagonal(COVARIANCE)
    apart = (0.5 * MEAN) ** 2 / (0.1**2 + variances) + (0.75 * variances) ** 2 / (0.02**2 + variances**2)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[:, 0] / weights[:, 1] == pytest.approx(3 / (3 + apart.mean()))  # later rounds find what is wanted
    assert weights[:, 1:] == pytest.approx(weights[0, 1])


def test_the_fit_is_repeated_with_its_number_of_targets():
    aim = {"aim": "regression", "targets": 1}
    few = made(records=30, epsilon=0.1, **aim).simulated.fits[0][1][0]
    assert not few.learned
    assert (few.mean_std[:2] == 1.0).all()  # nothing was measured but the target


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 500.0])
def test_a_hostile_forecast_has_as_many_records_at_the_ends_of_their_bounds_as_a_private_count_does_not_show(epsilon):
    box, privacy = mdp.Bounds([-1, -1], [1, 1]), mdp.Privacy(epsilon, 1e-6)
    options = FitOptions(bounds=box, privacy=privacy, neighbours=Neighbours.REPLACE, records=10_000)
    mean, covariance = np.array([0.5, -0.2]), np.diag([0.01, 0.02])
    found = terms._overlooked_errors(mean, covariance, options)
    share = max(1.5 / privacy.mu, 1.0) / 10_000
    weights, ends = np.array([1 - share, share]), np.array([-1.0, 1.0])
    moved = weights[0] * mean + weights[1] * ends
    second = weights[0] * (covariance + np.outer(mean, mean)) + weights[1] * np.outer(ends, ends)
    assert found["mean"] == pytest.approx(np.abs(moved - mean))
    assert found["second_moment"] == pytest.approx(np.abs(second - covariance - np.outer(mean, mean)))
    assert found["covariance"] == pytest.approx(np.abs(second - np.outer(moved, moved) - covariance))
    five = dataclasses.replace(options, person=mdp.Person("id", rows=5))
    assert terms._overlooked_errors(mean, covariance, five)["mean"] == pytest.approx(
        np.abs(ends - mean) * max(7.5 / privacy.mu, 1.0) / 10_000
    )
