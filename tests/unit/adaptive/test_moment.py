"""The private moment: its budget, its steps, its errors."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.measure import NoisyMoment
from matrixdp.adaptive.moment import private_moment
from matrixdp.adaptive.postprocess import FinalBall, _fitted
from matrixdp.adaptive.settings import SETTINGS
from matrixdp.gdp import compose_mu

RNG = np.random.default_rng(0)
SHAPE = RNG.normal(size=(4, 4)) @ np.diag([1.0, 0.5, 0.2, 0.1])
DATA = np.clip(RNG.normal(size=(3000, 4)) @ SHAPE.T + [1.0, 0, 0, -2.0], -6, 6)
BOUNDS = mdp.Bounds([-6] * 4, [6] * 4)
PRIVACY = mdp.Privacy(1, 1e-6)


def simulate(data=DATA, bounds=BOUNDS, privacy=PRIVACY, seed=0, **options):
    return private_moment(data, bounds, privacy, stream=mdp.Stream(seed=seed), simulation=True, **options)


@pytest.mark.parametrize("aim", ["covariance", "correlation", "components", "regression"])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 8.0])
def test_the_steps_spend_the_budget_and_no_more(aim, epsilon):
    privacy = mdp.Privacy(epsilon, 1e-6)
    moment = simulate(privacy=privacy, aim=aim)
    assert 0.999 * privacy.mu <= moment.mu <= privacy.mu
    assert compose_mu(step.mu for step in moment.steps) <= privacy.mu * (1 + 1e-12)
    assert sum(step.share for step in moment.steps) == pytest.approx(1, rel=1e-6)


def test_the_estimate_comes_close():
    moment = simulate(privacy=mdp.Privacy(3, 1e-6))
    truth = np.cov(DATA.T, bias=True)
    assert np.linalg.norm(moment.covariance - truth) < 0.1 * np.linalg.norm(truth)
    assert np.abs(moment.mean - DATA.mean(axis=0)).max() < 0.1
    assert np.linalg.eigvalsh(moment.covariance)[0] >= -1e-12
    about = DATA - BOUNDS.midpoint
    assert np.linalg.norm(moment.second_moment - about.T @ about / len(DATA)) < 0.1 * np.linalg.norm(truth)


def test_the_noise_of_a_variance_counts_each_pair_of_coordinates_twice():
    coordinates = Coordinates.of(RNG.normal(size=(4, 4)), np.zeros(4))
    isotropic = np.ones((5, 5)) + np.eye(5)  # symmetric noise with variance 1 off the diagonal
    moment = NoisyMoment(np.eye(5), 1.0, 1.0, 0.0)
    fitted = _fitted(np.eye(5), isotropic, moment, coordinates, FinalBall(1.0, 0.0), SETTINGS["covariance"])
    assert np.diagonal(fitted.std) == pytest.approx(np.sqrt(2) * np.diagonal(fitted.noise_shape))


def test_the_noise_is_of_the_size_that_is_claimed():
    draws = [simulate(privacy=mdp.Privacy(20, 1e-6), seed=seed) for seed in range(60)]
    spread = np.std([draw.mean for draw in draws], axis=0)
    claimed = np.mean([BOUNDS.halfwidths * draw.fitted.mean_std for draw in draws], axis=0)
    assert ((spread / claimed > 0.4) & (spread / claimed < 2.0)).all()
    spread = np.std([draw.covariance for draw in draws], axis=0)
    claimed = np.mean([np.outer(BOUNDS.halfwidths, BOUNDS.halfwidths) * draw.fitted.std for draw in draws], axis=0)
    assert 0.4 < np.linalg.norm(spread) / np.linalg.norm(claimed) < 2.0


def test_learned_directions_beat_standard_ones_on_a_thin_ellipsoid():
    rng = np.random.default_rng(1)
    data = rng.normal(size=(2000, 1)) @ np.ones((1, 20)) + 0.05 * rng.normal(size=(2000, 20))
    bounds, truth = mdp.Bounds([-6] * 20, [6] * 20), np.cov(data.T, bias=True)

    def error(directions):
        runs = [simulate(data, bounds, seed=seed, directions=directions) for seed in range(5)]
        return np.mean([np.linalg.norm(run.covariance - truth) for run in runs])

    assert error("learned") < error("standard")


def test_too_few_records_take_one_step():
    names = [step.name for step in simulate(DATA[:20]).steps]
    assert names == ["moment"]
    assert [step.name for step in simulate(DATA[:200], privacy=mdp.Privacy(0.5, 1e-6)).steps][-1] == "final moment"


@pytest.mark.parametrize("directions", ["standard", np.linalg.qr(np.arange(16.0).reshape(4, 4) ** 0.5 + np.eye(4))[0]])
def test_public_directions(directions):
    moment = simulate(directions=directions, privacy=mdp.Privacy(5, 1e-6))
    assert np.linalg.norm(moment.covariance - np.cov(DATA.T)) < 0.15 * np.linalg.norm(np.cov(DATA.T))


def test_added_or_removed_records():
    moment = simulate(neighbours="add-remove", records=3100, privacy=mdp.Privacy(5, 1e-6))
    assert moment.neighbours == "add-remove"
    assert np.linalg.norm(moment.covariance - np.cov(DATA.T)) < 0.15 * np.linalg.norm(np.cov(DATA.T))
    assert moment.mu <= moment.privacy.mu
    with pytest.raises(mdp.ParameterError, match="records must be given"):
        simulate(neighbours="add-remove")
    with pytest.raises(mdp.DataError, match="at most 2 x 100"):
        simulate(neighbours="add-remove", records=100)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (500, 1), (5, 40)])
def test_odd_shapes(shape):
    moment = simulate(np.zeros(shape), mdp.Bounds([-1] * shape[1], [1] * shape[1]))
    assert moment.covariance.shape == (shape[1], shape[1])
    assert np.isfinite(moment.covariance).all()
    assert np.isfinite(moment.mean).all()


def test_constant_columns():
    data = DATA.copy()
    data[:, 1] = 0.25
    moment = simulate(data, privacy=mdp.Privacy(8, 1e-6))
    assert moment.covariance[1, 1] < 0.05
    assert moment.mean[1] == pytest.approx(0.25, abs=0.1)


def test_the_order_of_records_does_not_matter():
    first, second = simulate(), simulate(DATA[::-1])
    assert np.array_equal(first.covariance, second.covariance)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aim": "mean"}, "aim must be"),
        ({"directions": "random"}, "directions must be"),
        ({"directions": np.ones((4, 4))}, "orthonormal"),
        ({"records": 7}, "records must be .*, as the data have, or be left out"),
        ({"neighbours": "friends"}, "neighbours must be"),
        ({"bounds": None}, "bounds must be"),
        ({"privacy": 1.0}, "privacy must be"),
    ],
)
def test_unfit_arguments_are_named(options, message):
    with pytest.raises(mdp.ParameterError, match=message):
        simulate(**options)


def test_a_seeded_stream_needs_the_word_simulation():
    with pytest.raises(mdp.StreamError):
        private_moment(DATA, BOUNDS, PRIVACY, stream=mdp.Stream(seed=1))
