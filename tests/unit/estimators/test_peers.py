"""The peers: called alike, marked alike, and right when the budget is large."""

import inspect

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.baselines.covariances import SharedBudget, adaptive_cov, adassp, clip_rows, coinpress, separate_cov

RNG = np.random.default_rng(0)
DATA = np.clip(RNG.normal(size=(3000, 3)) @ np.diag([1.5, 1.0, 0.5]) + [5.0, 0, 0], [0, -5, -5], [10, 5, 5])
BOUNDS = mdp.Bounds([0, -5, -5], [10, 5, 5])
QUERY = mdp.SecondMoment(BOUNDS, 3000)
PRIVACY = mdp.Privacy(1, 1e-6)
PEERS = [separate_cov, adaptive_cov, coinpress, adassp]


@pytest.mark.parametrize("peer", PEERS)
def test_signature_and_marks(peer):
    names = list(inspect.signature(peer).parameters)
    assert names[:5] == ["query", "privacy", "data", "stream", "simulation"]
    result = peer(QUERY, PRIVACY, DATA)
    assert np.isfinite(result.matrix).all()
    assert (result.epsilon, result.delta, result.comparison_only) == (1.0, 1e-6, True)
    with pytest.raises(mdp.StreamError):
        peer(QUERY, PRIVACY, DATA, stream=mdp.Stream(seed=0))
    with pytest.raises(mdp.ParameterError, match="query must be"):
        peer(mdp.Identity(BOUNDS, 3000), PRIVACY, DATA)
    with pytest.raises(mdp.DataError):
        peer(QUERY, PRIVACY, DATA * np.nan)


@pytest.mark.parametrize("peer", PEERS[:3])
def test_a_large_budget_gives_the_moment(peer):
    about = DATA - BOUNDS.midpoint
    truth = about.T @ about / len(DATA)
    result = peer(QUERY, mdp.Privacy(200, 1e-6), DATA, stream=mdp.Stream(seed=0), simulation=True)
    assert np.linalg.norm(result.matrix - truth) < 0.15 * np.linalg.norm(truth)


def test_a_large_budget_gives_the_regression():
    z = (DATA - BOUNDS.midpoint) / BOUNDS.halfwidths
    z[:, 2] = 0.2 + 0.5 * z[:, 0] - 0.3 * z[:, 1]
    query = mdp.SecondMoment(mdp.Bounds([-1] * 3, [1] * 3), 3000)
    result = adassp(query, mdp.Privacy(1e3, 1e-6), z, stream=mdp.Stream(seed=0), simulation=True)
    assert result.matrix[:, 0] == pytest.approx([0.2, 0.5, -0.3], abs=0.02)


@pytest.mark.parametrize("peer", PEERS)
def test_shares_of_the_budget_sum_to_one_at_most(peer, monkeypatch):
    spent, release = [], SharedBudget.release

    def watch(self, query, data, share):
        spent.append(share)
        return release(self, query, data, share)

    monkeypatch.setattr(SharedBudget, "release", watch)
    peer(QUERY, PRIVACY, DATA)
    assert 0.99 < sum(spent) <= 1.0


def test_unfit_options():
    with pytest.raises(mdp.ParameterError, match="at least two"):
        adassp(mdp.SecondMoment(mdp.Bounds([0], [1]), 2), PRIVACY, [[0.1], [0.2]])
    assert np.linalg.norm(clip_rows(np.ones((2, 4)), 0.5), axis=1) == pytest.approx([0.5, 0.5])
