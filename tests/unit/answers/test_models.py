"""Regressions, discriminants and components: exact where there is no noise, and their error bars term by term."""

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import matrixdp as mdp
from matrixdp.answers import models
from matrixdp.answers.estimate import Estimate
from matrixdp.answers.moments import covary_all
from matrixdp.answers.view import view_moments

SMALL = np.random.default_rng(0).normal([0.0, 0.0, 1.0], 1.0, (12, 3))


def exact_moments(query, data, epsilon=1.0):
    """Moments without noise, and a design for them."""
    return query.finish(query.evaluate(data, clip=True, missing="error")), mdp.make_design(
        query, mdp.Privacy(epsilon, 1e-6)
    )


def test_sampling_errors_are_those_of_least_squares():
    bounds = mdp.Bounds([-6] * 3, [6] * 3, names=["a", "b", "y"])
    view = view_moments(*exact_moments(mdp.Moments(bounds, len(SMALL)), SMALL)).without_noise()
    found = models.RegressionFit(view, "y").describe(view, np.zeros(3))
    features = np.column_stack([np.ones(len(SMALL)), SMALL[:, :2]])
    coefficients, squares, _, _ = np.linalg.lstsq(features, SMALL[:, 2], rcond=None)
    errors = np.sqrt(squares / (len(SMALL) - 3) * np.diagonal(np.linalg.inv(features.T @ features)))
    assert found.coefficients == pytest.approx(coefficients, rel=1e-3)
    assert found.sampling_std == pytest.approx(errors, rel=1e-3)


def test_the_error_of_a_coefficient_is_of_noise_and_sampling_and_a_plausible_range_is_as_much_longer():
    value, std = np.array([[0.5, 0.4], [2.0, 0.1]]), np.array([[0.3, np.nan], [np.nan, np.nan]])
    hidden = np.array([[False, True], [True, True]])
    low, high = np.where(hidden, value - 0.1, np.nan), np.where(hidden, value + 0.1, np.nan)
    terms = Estimate(value, std, ("a", "b"), ("coefficient", "sampling std"), low=low, high=high, plausible=hidden)
    found = models.Regression("y", terms, terms)
    assert found.std[0] == pytest.approx(0.5)
    assert np.transpose(found.interval()) == pytest.approx(
        np.array([[0.5 - 0.98, 0.5 + 0.98], [1.9 - 1.96 * 0.2, 2.1 + 1.96 * 0.2]]), abs=1e-3
    )


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_models_use_the_unbiased_variances_of_other_answers(neighbours):
    bounds = mdp.Bounds([-6] * 3, [6] * 3, names=["a", "b", "y"])
    view = view_moments(*exact_moments(mdp.Moments(bounds, len(SMALL), neighbours=neighbours), SMALL, epsilon=50.0))
    found = models.pair_moments(view, models.list_variables(view, bounds.names)).covariance
    assert np.diagonal(found) == pytest.approx(np.diagonal(covary_all(view).value))


@pytest.mark.parametrize(("error", "hidden"), [(0.99, False), (1.01, True)])
def test_a_slope_is_hidden_if_its_interval_reaches_what_explains_the_target_alone(error, hidden):
    found = models.hide_undetermined(np.array([error / 1.96 * 3 / 2]), np.array([2.0]), 3.0)
    assert np.isnan(found).tolist() == [hidden]


@pytest.mark.parametrize(("noise", "rank"), [(0.06, 2), (0.08, 1)])
def test_a_direction_stands_out_from_the_largest_eigenvalue_of_noise_or_counts_as_hidden(noise, rank):
    covariance = np.array([[1.0, 0.9], [0.9, 1.0]])  # eigenvalues 1.9 and 0.1; that of noise is sqrt(2) times it
    shown, hidden = models.split_inverse(covariance, np.full((2, 2), noise))
    assert np.linalg.matrix_rank(shown) == rank
    apart = np.array([1.0, -1.0]) / np.sqrt(2)
    assert apart @ shown @ apart == pytest.approx(10 if rank == 2 else 0, abs=1e-9)
    assert apart @ hidden @ apart == pytest.approx(0 if rank == 2 else 1 / (1.5 * noise), abs=1e-9)


@pytest.fixture(scope="module")
def labelled():
    """Moments of two numbers far from the middles of their bounds, and a class of unequal sizes."""
    rng = np.random.default_rng(1)
    label = rng.random(3000) < 0.2
    data = np.column_stack([rng.normal(2, 1, 3000), rng.normal(-1, 0.5, 3000)]) + label[:, None] * [1.5, 0.6]
    columns = mdp.Columns([mdp.Number("a", -4, 12), mdp.Number("b", -9, 3), mdp.YesNo("ill")])
    frame = {"a": data[:, 0], "b": data[:, 1], "ill": label}
    query = mdp.TableMoments(columns, len(data))
    return data, label, exact_moments(query, pd.DataFrame(frame), epsilon=1000.0)


def test_without_noise_scores_are_those_of_the_usual_discriminant_analysis(labelled):
    data, label, moments = labelled
    found = models.discriminant(*moments, "ill")
    usual = LinearDiscriminantAnalysis(solver="lsqr").fit(data, label)
    apart = np.diff(found.terms.value, axis=1)[:, 0]
    assert apart == pytest.approx([*usual.intercept_, *usual.coef_[0]], rel=2e-3)


def test_errors_of_scores_are_those_of_differences_between_classes(labelled):
    found = models.discriminant(*labelled[2], "ill")
    assert found.terms.std[:, 0] == pytest.approx(found.terms.std[:, 1])


def test_variances_of_components_are_moved_together_since_noise_moves_them_apart():
    rng = np.random.default_rng(2)
    data = rng.normal(size=(4000, 1)) * [1.0, 0.8, 0.0] + rng.normal(size=(4000, 3)) * [0.5, 0.6, 1.0]
    bounds = mdp.Bounds([-5] * 3, [5] * 3, names=["a", "b", "c"])
    matrix, design = exact_moments(mdp.Moments(bounds, 4000), data, epsilon=30.0)
    variances = models.components(matrix, design, plausible=False).value[-1]
    usual = np.linalg.eigvalsh(np.corrcoef(data.T))[::-1]
    assert variances[0] < usual[0]
    assert variances[2] > usual[2]
    assert variances == pytest.approx(usual, abs=0.01)
