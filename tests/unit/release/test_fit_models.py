"""Components and regressions of adaptive releases, and error bars that cover their errors."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import ParameterError
from matrixdp.release import adaptive_release as models

PRIVACY = mdp.Privacy(1, 1e-6)


def nearly_collinear():
    rng = np.random.default_rng(0)
    return rng.normal(size=(1000, 8)) @ rng.normal(size=(8, 8))


def release(data, seed, **options):
    low, high = data.min(axis=0), data.max(axis=0)
    bounds = mdp.Bounds(low - 1, high + 1, names=[f"x{i}" for i in range(data.shape[1])])
    options = {"question": "regression", "stream": mdp.Stream(seed=seed), "simulation": True, **options}
    return mdp.release_table(data, bounds, PRIVACY, **options)


def coverage(data, seeds=12):
    features = np.column_stack([np.ones(len(data)), data[:, :-1]])
    truth = np.linalg.lstsq(features, data[:, -1], rcond=None)[0]
    found = [release(data, seed).regression(f"x{data.shape[1] - 1}") for seed in range(seeds)]
    missed = [np.abs(one.coefficients - truth) > 1.96 * one.noise_std for one in found]  # never where there is no bar
    return 1 - np.mean(missed)


def test_error_bars_of_slopes_cover_what_noise_hides(monkeypatch):
    data = nearly_collinear()
    assert coverage(data) >= 0.88
    monkeypatch.setattr(models, "hidden_std", lambda joint, slopes: np.zeros(len(slopes) + 1))
    monkeypatch.setattr(models, "hide_undetermined", lambda slope_std, *_: slope_std)
    assert coverage(data) < 0.9  # simulated records alone do not show it


def test_slopes_that_noise_hides_have_no_error_bar_and_others_do():
    rng = np.random.default_rng(1)
    first, other = rng.normal(size=(2, 4000))
    data = np.column_stack([first, first + 0.03 * rng.normal(size=4000), other, first + other])
    for method in ("adaptive", "plain"):
        found = release(data, 0, method=method).regression("x3")
        assert np.isnan(found.noise_std).tolist() == [False, True, True, False]
        assert found.terms.plausible[:, 0].tolist() == [False, True, True, False]
        low, high = found.interval()
        assert ((low <= [0, 1, 0, 1]) & (high >= [0, 1, 0, 1])).all()
        assert (high - low)[1:3].min() > 5 * (high - low)[3]
        assert ["~" in line.split()[1] for line in str(found).splitlines()[-4:]] == [False, True, True, False]


def test_components_are_those_of_the_correlations():
    data = nearly_collinear()
    found = release(data, 0).components()
    vectors = found.value[:-1]
    assert np.allclose(vectors.T @ vectors, np.eye(8), atol=1e-9)
    assert np.isclose(found.value[-1].sum(), 8)
    assert (np.diff(found.value[-1]) <= 0).all()
    assert (found.std > 0).all()
    with pytest.raises(ParameterError, match="count"):
        release(data, 0).components(9)


def test_too_few_records_say_nothing_of_a_slope():
    data = nearly_collinear()[:20]
    found = release(data, 0, method="adaptive").regression("x7", ["x0"])
    assert np.isnan(found.coefficients[1])
    assert np.isnan(found.noise_std[1])
    assert [float(end[0, 0]) for end in found.fit.interval()] == [0.0, 1.0]


def test_a_regression_on_some_columns_is_a_marginal_of_the_fit():
    released = release(nearly_collinear(), 0)
    assert released.regression("x0", ["x3", "x1"]).names == ("intercept", "x3", "x1")
    one, other = released.regression("x0", ["x1", "x3"]), released.regression("x0", ["x3", "x1"])
    assert np.allclose(one.coefficients[[0, 2, 1]], other.coefficients)


def test_the_number_of_records_in_words_is_the_public_one():
    data = nearly_collinear()
    released = release(data[:900], 0, neighbours="add-remove", records=1000)
    assert released.records == 1000
    assert "1000 records" in released.reason


@pytest.mark.parametrize("method", ["adaptive", "plain"])
def test_sampling_errors_are_those_of_a_sample(method):
    data = np.random.default_rng(2).normal(size=(4000, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]])
    released = release(data, 0, method=method)
    means, covariance, correlation = (
        released.error_parts(kind).value for kind in ("means", "covariance", "correlation")
    )
    assert means[:, 2] == pytest.approx(data.std(axis=0) / np.sqrt(4000), rel=0.3)
    assert (means[:, 3] >= np.maximum(means[:, 1], means[:, 2])).all()
    assert covariance.shape == (3, 4)
    assert correlation[0, 2] == pytest.approx(0.8 / np.sqrt(4000), rel=1.0)
    with pytest.raises(ParameterError, match="kind"):
        released.error_parts("components")


def test_errors_of_what_noise_hides_are_hidden():
    bounds = mdp.Bounds([-20] * 3, [20] * 3, names=["a", "b", "c"])
    data = np.random.default_rng(0).normal(size=(60, 3))
    design = mdp.make_design(mdp.Moments(bounds, 60), mdp.Privacy(0.1, 1e-6))
    found = design.release(data, stream=mdp.Stream(seed=0), simulation=True).error_parts("correlation")
    hidden = ~found.reliable[:, 0]
    assert hidden.any()
    assert np.isnan(found.value[hidden, 1:]).all()
    low, high = found.interval()
    assert (low[hidden, 0] == -1).all()
    assert (high[hidden, 0] == 1).all()
    assert str(found).count("hidden by noise") == 3 * hidden.sum()
    assert str(found).count("0 [-1, 1]") == hidden.sum()
