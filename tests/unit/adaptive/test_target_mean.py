"""A regression that has nothing to say is the private mean of its targets."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive import private_moment, queries, solve_regression
from matrixdp.adaptive.queries import BallMoments
from matrixdp.audit import replay

LOW = mdp.Privacy(0.1, 1e-6)


def unit(d):
    return mdp.Bounds(-np.ones(d), np.ones(d))


def records(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(-1, 1, (n, d - 1)), rng.random(n) < 0.1]).astype(float)


@pytest.mark.parametrize(("n", "d"), [(60, 12), (1000, 8)])
def test_without_a_signal_the_prediction_is_about_as_good_as_the_private_mean(n, d):
    data = records(n, d)
    ours, alone = [], []
    for seed in range(10):
        options = {"stream": mdp.Stream(seed=seed), "simulation": True}
        moment = private_moment(data, unit(d), LOW, aim="regression", **options)
        coefficients, intercepts = solve_regression(moment, 1)
        guess = np.clip(data[:, :-1] @ coefficients[0] + intercepts[0], -1, 1)
        ours.append(np.mean((data[:, -1] - guess) ** 2))
        noise = 2 / (n * LOW.mu) * np.random.default_rng(seed).standard_normal()
        alone.append(np.mean((data[:, -1] - np.clip(data[:, -1].mean() + noise, -1, 1)) ** 2))
    assert np.sqrt(np.mean(ours)) < 1.25 * np.sqrt(np.mean(alone))


@pytest.mark.parametrize("kind", ["replace", "add-remove"])
@pytest.mark.parametrize("targets", [1, 2])
def test_a_fit_that_measures_targets_alone_is_within_its_claim(kind, targets):
    data = records(60, 12)
    other = data.copy()
    other[0, -targets:] = -1.0
    if kind == "add-remove":
        other = data[1:]

    def fit(x):
        public = 60 if kind == "add-remove" else None
        return private_moment(x, unit(12), LOW, aim="regression", targets=targets, neighbours=kind, records=public)

    found = replay(fit, data, other)
    assert not found.broken, str(found)
    assert {step.query for step in found.steps} == {"Query", "TracedMoments" if kind == "replace" else "BallMoments"}


def test_a_target_mean_in_bounds_that_are_ten_times_too_wide_has_less_noise_than_one_of_the_whole_range():
    data = 0.1 * records(4000, 24) + 0.5
    means = [
        private_moment(data, unit(24), LOW, aim="regression", stream=mdp.Stream(seed=seed), simulation=True).mean[-1]
        for seed in range(10)
    ]
    assert np.sqrt(np.mean((np.array(means) - data[:, -1].mean()) ** 2)) < 0.7 * 2 / (4000 * LOW.mu)


def test_a_target_mean_with_too_little_noise_is_noticed(monkeypatch):
    class Broken(BallMoments):
        def evaluate(self, data, *, clip, missing):
            answer = super().evaluate(data, clip=clip, missing=missing)
            answer[0, 1:] *= 1.5
            answer[1:, 0] *= 1.5
            return answer

    monkeypatch.setattr(queries, "BallMoments", Broken)
    data = records(60, 12)
    data[0, -1], other = 1.0, data.copy()
    other[0, -1] = -1.0
    assert replay(lambda x: private_moment(x, unit(12), LOW, aim="regression"), data, other).broken


def test_the_number_of_targets_is_checked():
    with pytest.raises(mdp.ParameterError, match="targets"):
        private_moment(records(60, 3), unit(3), LOW, aim="regression", targets=4)


def test_a_regression_without_features_is_refused_before_the_charge():
    records = np.random.default_rng(0).uniform(-0.5, 0.5, (20, 2))
    for count in (2, 3, -1):
        with pytest.raises(mdp.ParameterError, match="targets must be"):
            private_moment(
                records, mdp.Bounds([-1] * 2, [1] * 2), mdp.Privacy(1, 1e-6), aim="regression", targets=count
            )
