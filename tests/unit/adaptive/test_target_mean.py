"""A regression that has nothing to say is the private mean of its targets."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive import private_moment, queries, solve_regression
from matrixdp.adaptive.queries import BoxMoments
from matrixdp.adaptive.records import grid_records
from matrixdp.audit import replay

LOW = mdp.Privacy(0.1, 1e-6)


def unit(d):
    return mdp.Bounds(-np.ones(d), np.ones(d))


def records(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(-1, 1, (n, d - 1)), rng.random(n) < 0.1]).astype(float)


def test_target_moments_leave_the_features_out():
    data = records(40, 4)
    found = BoxMoments(unit(2), 40).evaluate(grid_records(unit(4), data, 1 << 19), clip=True, missing="error")
    full = np.column_stack([np.ones(40), data[:, 2:]])
    assert np.allclose(found, full.T @ full / 40, atol=1e-6)


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
    assert [step.query for step in found.steps] == ["BoxMoments"]


def test_a_target_mean_with_too_little_noise_is_noticed(monkeypatch):
    class Broken(BoxMoments):
        def evaluate(self, data, *, clip, missing):
            answer = super().evaluate(data, clip=clip, missing=missing)
            answer[0, 1:] *= 1.5
            answer[1:, 0] *= 1.5
            return answer

    monkeypatch.setattr(queries, "BoxMoments", Broken)
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
