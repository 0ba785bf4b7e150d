"""Draws of possible moments are draws from the posterior: ranks of the truth among them are uniform.

Truths come from the prior, by chains without measurements, and each is measured with noise. If draws have the
distribution of the truth given what was measured, its rank among them is uniform (Talts et al. 2018).
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare, ks_2samp

import matrixdp as mdp
from levels import LEVEL
from matrixdp.answers import draws
from matrixdp.answers.draws import Chains, draw_moments, measure
from matrixdp.answers.view import view_moments

TRUTHS, DRAWS, BETWEEN, NOISE = 300, 9, 30, 0.1
ANSWERS = 8


def read_answers(chains):
    """Means, second moments, products of columns and a correlation, of shape (chains, answers)."""
    rows, squares = chains.rows, chains.squares
    products = [(rows[:, i] * rows[:, j]).sum(axis=1) for i, j in ((0, 1), (0, 2), (1, 3))]
    variances = squares - rows[:, :2, 0] ** 2
    correlation = (rows[:, 0, 1:] * rows[:, 1, 1:]).sum(axis=1) / np.sqrt(variances.prod(axis=1))
    return np.column_stack([rows[:, 0, 0], rows[:, 2, 0], squares[:, 0], *products, correlation, variances[:, 1]])


def rank_truths(stratum, monkeypatch, *, claimed=NOISE):
    """Ranks of truths among draws, if their noise is taken to be `claimed`, of shape (truths, answers)."""
    monkeypatch.setattr(draws, "STRATA", (draws.STRATA[stratum],))
    columns = mdp.Columns([mdp.Number("x", -1, 1), mdp.Number("y", -1, 1), mdp.Category("w", ["a", "b", "c"])])
    design = mdp.make_design(mdp.TableMoments(columns, 1000), mdp.Privacy(1.0, 1e-6))
    shape = measure(view_moments(np.diag([1.0, 0.1, 0.1, 0.3, 0.3, 0.4]), design))
    rng = np.random.default_rng(stratum)
    d = shape.scales.shape[1]

    def measured(products, noise):
        every = np.ones((TRUTHS, d))
        return replace(
            shape,
            products=products,
            scales=every / noise / np.sqrt(2),
            means=every / noise**2,
            squares=every[:, :2] / noise**2,
        )

    prior = Chains(measured(np.repeat(shape.products, TRUTHS, 0), 1e3), rng)
    for _ in range(200):
        prior.sweep()
    exact = np.zeros((TRUTHS, 1 + d, 1 + d))
    exact[:, 1:, 1:] = prior.rows @ prior.rows.swapaxes(1, 2)
    exact[:, 0, 1:] = exact[:, 1:, 0] = prior.rows[:, :, 0]
    values = 1 + shape.values
    exact[:, values, values] = prior.squares
    noise = np.tril(rng.normal(0, NOISE, exact.shape))
    noisy = exact + noise + np.tril(noise, -1).swapaxes(1, 2)
    chains, truth = Chains(measured(noisy, claimed), rng), read_answers(prior)
    ranks = np.zeros_like(truth)
    for _ in range(DRAWS):
        for _ in range(BETWEEN):
            chains.sweep()
        ranks += read_answers(chains) < truth
    return ranks


def least_p_value(ranks):
    found = [np.bincount(column.astype(int), minlength=DRAWS + 1) for column in ranks.T]
    values = [chisquare(counts.reshape(5, -1).sum(axis=1)).pvalue for counts in found]
    return min(values)


@pytest.mark.parametrize("stratum", [0, 2])
def test_ranks_are_uniform(stratum, monkeypatch):
    """For weak dependence, and for little variance of a column's own."""
    assert least_p_value(rank_truths(stratum, monkeypatch)) > LEVEL / ANSWERS


def test_wrong_noise_is_noticed(monkeypatch):
    """Draws for half the noise are too narrow, and the ranks show it."""
    assert least_p_value(rank_truths(0, monkeypatch, claimed=NOISE / 2)) < LEVEL / ANSWERS


# Several groups at once


@pytest.fixture(scope="module")
def groups():
    """Draws of two groups in one stack, and of each of them alone, of shape (2, chains, answers)."""
    columns = mdp.Columns([mdp.Number("x", -1, 1), mdp.Category("w", ["a", "b", "c"]), mdp.Category("by", ["s", "t"])])
    design = mdp.make_design(mdp.TableMoments(columns, 1000, ["by"]), mdp.Privacy(0.5, 1e-6))
    rng = np.random.default_rng(4)
    by, ward = np.repeat(["s", "t"], 500), rng.choice(["a", "b", "c"], 1000, p=[0.6, 0.3, 0.1])
    x = np.where(by == "s", rng.uniform(-1, 0.2, 1000), rng.uniform(0.5, 0.8, 1000))
    release = design.release({"x": x, "w": ward, "by": by}, stream=mdp.Stream(seed=4), simulation=True)
    view = view_moments(release.matrix, design, None, ("by",))

    def read(drawn, chains):
        """One draw of each chain: mean, second moment, the share and sum of a level."""
        number, level = view.places["x"].value, view.levels("w")[1]
        last = drawn.matrix.swapaxes(0, 1)[:, -chains:]
        entries = [(0, number), (number, number), (0, level), (level, number)]
        return np.stack([last[..., i, j] for i, j in entries], axis=-1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draws, "_CHAINS", 600)
        together = read(draw_moments(view), 300)
        alone = [read(draw_moments(replace(view, matrix=one[None])), 600)[0] for one in view.matrix]
    return together, alone


def least_group_p_value(together, alone):
    return min(
        ks_2samp(*pair).pvalue
        for one, other in zip(together, alone, strict=True)
        for pair in zip(one.T, other.T, strict=True)
    )


def test_groups_in_one_stack_are_drawn_like_single_ones(groups):
    assert least_group_p_value(*groups) > LEVEL / 8


def test_groups_that_are_mixed_up_are_noticed(groups):
    together, alone = groups
    assert least_group_p_value(together, alone[::-1]) < LEVEL / 8
