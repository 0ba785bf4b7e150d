"""The budget of a fit."""

import pytest

import matrixdp as mdp
from matrixdp.adaptive import budget as fit_budget
from matrixdp.privacy import Neighbours

PRIVACY = mdp.Privacy(1, 1e-6)


def spend(seed=0, privacy=PRIVACY):
    return fit_budget.FitBudget(privacy, Neighbours.REPLACE, mdp.Stream(seed=seed), simulation=True)


def test_a_share_beyond_the_total_raises():
    account = spend()
    query = mdp.SecondMoment(mdp.Bounds([-1], [1]), records=1)
    account.release("first", query, [[0.5]], share=0.75)
    with pytest.raises(mdp.ParameterError, match=r"at most 0\.25"):
        account.release("second", query, [[0.5]], share=0.3)
    assert len(account.steps) == 1
    with pytest.raises(mdp.ParameterError, match="same neighbours"):
        account.release("x", mdp.SecondMoment(mdp.Bounds([-1], [1]), 1, neighbours="add-remove"), [[0.5]], share=0.1)
