"""Replays of whole fits: distances add up, and everything beyond noisy answers is noticed."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive import private_moment
from matrixdp.audit import replay
from matrixdp.mechanisms.mechanism import current_answer, intercept_releases

PRIVACY = mdp.Privacy(1, 1e-6)
BOX = mdp.Bounds([-1, -1], [1, 1])
DATA = np.random.default_rng(0).normal(0, 0.2, (60, 2))
NEIGHBOUR = np.vstack([[[1.0, 1.0]], DATA[1:]])


def fit(data):
    return private_moment(data, BOX, PRIVACY)


def test_the_steps_of_a_fit_add_up():
    found = replay(fit, DATA, NEIGHBOUR)
    assert not found.broken
    assert len(found.steps) > 1
    assert found.claim == PRIVACY.mu
    assert found.distance == pytest.approx(sum(step.distance**2 for step in found.steps) ** 0.5)
    assert 0.1 < found.ratio <= 1
    assert found.distance <= found.spent <= found.claim
    assert "within its claim" in str(found)


def test_the_same_data_are_no_distance_apart():
    assert replay(fit, DATA, DATA).distance == 0.0


def test_one_release_is_measured_exactly():
    design = mdp.make_design(mdp.SecondMoment(BOX, 1), PRIVACY)
    found = replay(lambda data: design.release(data).matrix, [[1, 1]], [[1, -1]], claim=design.distance)
    assert found.ratio == pytest.approx(1, abs=1e-6)
    assert replay(lambda data: design.release(data).matrix, [[1, 1]], [[1, -1]], claim=design.distance / 2).broken


def test_the_loss_of_transcripts_has_the_law_of_a_gaussian_shift():
    for query, first, second in (
        (mdp.SecondMoment(BOX, 1), [[1, 1]], [[1, -1]]),
        (mdp.Identity(BOX, 1), [[1, 1]], [[-1, -1]]),
        (mdp.Query((2, 2), mdp.sensitivity.Vertices([[[1.0, 2], [0, 0]]]), 5.0), [[1.0, 2], [0, 0]], np.zeros((2, 2))),
    ):
        design = mdp.make_design(query, mdp.Privacy(20, 1e-3), allocation="optimal")
        found = [replay(design.release, first, second, seed=s) for s in range(300)]
        losses = [one.loss for one in found]
        mu = found[0].distance
        assert abs(np.mean(losses) - mu**2 / 2) < 6 * mu / np.sqrt(300)
        assert 0.6 < np.std(losses) / mu < 1.4


def test_a_plan_that_depends_on_the_data_is_noticed():
    def peek(data):
        return mdp.make_design(mdp.Moments(mdp.Bounds([-1, -1], data.max(axis=0)), 60), PRIVACY).release(data)

    assert "another design" in replay(peek, DATA, NEIGHBOUR).difference
    design = mdp.make_design(mdp.Moments(BOX, 60), PRIVACY)

    def repeat(data):
        return [design.release(data) for _ in range(1 + (data[0, 0] > 0.9))]

    assert "more than 1 releases" in replay(repeat, DATA, NEIGHBOUR, claim=9.0).difference
    assert "1 releases instead of 2" in str(replay(repeat, NEIGHBOUR, DATA, claim=9.0))


def test_a_result_that_depends_on_the_data_is_noticed():
    found = replay(lambda data: (fit(data).mean, data[0, 0]), DATA, NEIGHBOUR, claim=PRIVACY)
    assert found.broken
    assert "the result" in found.difference


def test_error_bars_are_post_processing_of_the_noisy_answers():
    """The fits of simulated records behind them are no part of the transcript."""

    def with_bars(data):
        moment = private_moment(data, BOX, PRIVACY)
        return moment, moment.errors

    def with_true_bars(data):
        moment = private_moment(data, BOX, PRIVACY)
        return replace(moment, fitted=replace(moment.fitted, mean=data.mean(axis=0))).errors

    data, neighbour = DATA[:20], NEIGHBOUR[:20]
    found = replay(with_bars, data, neighbour, claim=PRIVACY)
    assert not found.broken, str(found)
    assert len(found.steps) == len(replay(fit, data, neighbour).steps)
    assert "the result" in replay(with_true_bars, data, neighbour, claim=PRIVACY).difference


def test_a_claim_must_be_known():
    with pytest.raises(mdp.ParameterError, match="claim must be given"):
        replay(lambda data: fit(data).mean, DATA, NEIGHBOUR)


def test_interception_ends_with_its_block_and_stays_in_its_thread(tmp_path):
    design = mdp.make_design(mdp.Moments(BOX, 60), PRIVACY)
    ledger = mdp.Ledger.create(tmp_path / "l.db")
    ledger.register("d", PRIVACY, neighbours="replace")
    seen = []

    def answer(design, prepared):
        return np.zeros(design.query.shape)

    with intercept_releases(answer):
        assert design.release(DATA).simulation
        with pytest.raises(mdp.ParameterError, match="left out for a simulation or an audit"):
            design.release(DATA, ledger=ledger, dataset="d")
        with pytest.raises(mdp.ParameterError, match="cannot be replayed"):
            mdp.release_dataset(mdp.make_design(mdp.Identity(BOX, 60), PRIVACY), DATA, tmp_path / "out")
        with pytest.raises(mdp.ParameterError, match="intercepted already"), intercept_releases(answer):
            pass
        thread = threading.Thread(target=lambda: seen.append(current_answer()))
        thread.start()
        thread.join()
    assert seen == [None]
    with pytest.raises(ZeroDivisionError), intercept_releases(answer):
        raise ZeroDivisionError
    assert current_answer() is None
    assert not design.release(DATA).simulation
    assert not ledger.history("d")
    ledger.close()
