"""The squares of features cost no privacy: no neighbours are farther apart than without them."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.audit import worst_record_pair
from matrixdp.mechanisms.mechanism import prepare
from matrixdp.noise import Covariance, Squares
from matrixdp.privacy import Neighbours
from matrixdp.sensitivity import MomentsChange, RankOneChange, Vertices
from matrixdp.sensitivity.moment_change import squares_distance
from nightly import examples

PRIVACY = mdp.Privacy(1.0, 1e-6)
SEEDS = st.integers(0, 2**32 - 1)
NEIGHBOURS = st.sampled_from(["replace", "add-remove"])


def random_design(seed, m, neighbours, *, constant, rotated, mean_share=0.2):
    rng = np.random.default_rng(seed)
    halfwidths = np.exp(rng.uniform(-3, 3, m)) * 10.0 ** rng.integers(-40, 40)
    bounds = mdp.Bounds(-halfwidths, halfwidths)
    weights = rng.dirichlet(np.ones(m) * rng.choice([0.3, 1.0, 100.0])) + 1e-3
    query = (
        mdp.Moments(bounds, 2, neighbours=neighbours, mean_share=mean_share)
        if constant
        else mdp.SecondMoment(bounds, 2, neighbours=neighbours)
    )
    directions = np.linalg.qr(rng.standard_normal((m, m)))[0] if rotated else None
    allocation = mdp.allocations.shares(weights / weights.sum())
    return mdp.make_design(query, PRIVACY, allocation=allocation, directions=directions), halfwidths, rng


def integer_distance(design, first, second):
    """Distance of the integers of two data sets before noise, in standard deviations."""
    integers = [prepare(design, data, clip=True, missing="error") for data in (first, second)]
    steps = [int(a) - int(b) for a, b in zip(*integers, strict=True)]
    return math.sqrt(sum(k * k for k in steps)) * 2.0**-design.grid.bits


def neighbouring_data(m, halfwidths, rng, *, added):
    """Pairs of corners with zeros, corner and midpoint, two halves; the other record is fixed."""
    other = rng.uniform(-1, 1, m)
    signs = rng.choice([-1.0, 1.0], m)
    half = np.arange(m) < m / 2
    pairs = [(rng.choice([-1.0, 0.0, 1.0], m), rng.choice([-1.0, 0.0, 1.0], m)) for _ in range(6)]
    pairs += [(signs, np.zeros(m)), (signs * half, signs * ~half), (signs, np.where(half, signs, -signs))]
    for x, y in pairs:
        first, second = np.array([other, x]) * halfwidths, np.array([other, y]) * halfwidths
        yield (first, first[:1]) if added else (first, second)


@examples(60)
@given(SEEDS, st.integers(1, 8), NEIGHBOURS, st.booleans(), st.booleans(), st.floats(0.01, 0.5))
def test_integers_before_noise_keep_their_distance(seed, m, neighbours, constant, rotated, mean_share):
    design, halfwidths, rng = random_design(
        seed, m, neighbours, constant=constant, rotated=rotated, mean_share=mean_share
    )
    for first, second in neighbouring_data(m, halfwidths, rng, added=neighbours == "add-remove"):
        assert integer_distance(design, first, second) <= design.distance
    assert design.distance <= design.mu


@examples(40)
@given(SEEDS, st.integers(1, 7), NEIGHBOURS, st.booleans(), st.booleans(), st.floats(0.01, 0.5))
def test_gradient_ascent_finds_no_worse_pair(seed, m, neighbours, constant, rotated, mean_share):
    design, halfwidths, rng = random_design(
        seed, m, neighbours, constant=constant, rotated=rotated, mean_share=mean_share
    )
    if design.structure is None:  # a rotated design for which squares do not pay
        return
    change = design.query.sensitivity

    def squared_distance(x, y):
        z, w = (np.concatenate([[1.0], v]) if constant else v for v in (x, y))
        difference = np.outer(z, z) - (np.outer(w, w) if neighbours == "replace" else 0)
        return float(np.square(design.structure.whiten(design.noise, difference / 2)).sum())

    claim = change.structured_distance(design.colcov, design.structure)
    found = math.sqrt(
        worst_record_pair(np.vectorize(squared_distance, signature="(m),(m)->()"), halfwidths, None, rng, starts=4)
    )
    assert found <= claim.value * (1 + 1e-9)
    assert claim.attained <= claim.value * (1 + 1e-9)


@examples(30)
@given(SEEDS, st.integers(1, 8))
def test_corner_and_midpoint_attain_the_distance_of_a_second_moment(seed, m):
    design, halfwidths, _ = random_design(seed, m, "replace", constant=False, rotated=False)
    corner = np.array([halfwidths, halfwidths])
    midpoint = np.array([halfwidths, np.zeros(m)])
    assert design.exact
    assert integer_distance(design, corner, midpoint) == pytest.approx(design.distance, rel=1e-6)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_total_error_is_that_of_the_best_covariance_of_all(m):
    """The vertex solver, which knows no structure, finds no Gaussian noise with a smaller total error."""
    design = mdp.make_design(mdp.SecondMoment(mdp.Bounds([-1] * m, [1] * m), 1), PRIVACY)
    points = [np.array(x, float) for x in itertools.product([-1, 0, 1], repeat=m)]
    moments = {np.outer(x, x).tobytes(): np.outer(x, x) for x in points}.values()
    rows, columns = np.tril_indices(m)
    weights = np.where(rows == columns, 1.0, math.sqrt(2))
    changes = [(a - b)[rows, columns] * weights for a, b in itertools.combinations(moments, 2)]
    query = mdp.Query((len(rows), 1), Vertices(np.array(changes)[:, :, None]), bound=4.0)
    best = mdp.make_design(query, PRIVACY, allocation=mdp.allocations.optimal())
    ours = float(np.square(design.std).sum())
    assert ours == pytest.approx(float(np.square(best.std).sum()), rel=2e-5)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("rotated", [False, True])
def test_stronger_squares_cost_more(neighbours, rotated):
    """A stored design with altered squares gets the distance that they imply, and is refused."""
    design, halfwidths, rng = random_design(5, 4, neighbours, constant=True, rotated=rotated)
    squares = design.structure
    for altered in (
        replace(squares, strengths=squares.strengths * 4 / 3),
        replace(squares, shift=0.0),
        replace(squares, weights=squares.weights * 1.5),
    ):
        broken = replace(design, structure=altered)
        assert broken.ideal_distance().value > design.distance * 1.01
        with pytest.raises(mdp.ParameterError, match="altered"):
            broken.check()
        broken.mark_checked()  # as if nobody had looked
        data = list(neighbouring_data(4, halfwidths, rng, added=neighbours == "add-remove"))
        worst = max(integer_distance(broken, first, second) for first, second in data)
        assert worst <= broken.ideal_distance().value * (1 + 1e-9)
        assert rotated or worst > design.distance  # rotated, the signs of the worst corner are others


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("weight", [0.3, 0.6, 1.0])
@pytest.mark.parametrize("shift", [0.5, 3.0, 10.0])
def test_the_bound_holds_where_the_sum_gains_precision(neighbours, weight, shift):
    """With a large shift the loss is negative, as in a design that was altered: a corner and the midpoint show it."""
    squares = Squares(np.full(4, weight), np.full(4, 2.0), shift)
    claimed = squares_distance(np.ones(4), 0.0, np.ones(4), neighbours, squares)
    v = np.full(4, weight)
    z = np.sqrt(2.0) * v - shift / np.sqrt(2.0) * v.sum()
    assert math.sqrt(16 + float(z @ z)) <= claimed.value * (1 + 1e-12)


def test_weights_below_the_precision_of_the_sides_are_raised():
    """The bound holds for any squares, also where ``diag(weights) - A'A`` is not semidefinite."""
    rng = np.random.default_rng(0)
    side = Covariance.eigen(np.linalg.qr(rng.standard_normal((3, 3)))[0], [1.0, 2.0, 4.0])
    for change in (RankOneChange(np.ones(3), 1), RankOneChange(np.ones(3), 1, None, "add-remove")):
        squares = change.free_structure(side)
        weak = Squares(squares.weights / 2, squares.strengths, squares.shift)
        claim = change.structured_distance(side, weak)
        assert claim.value >= change.distance(side, side).attained
    with pytest.raises(mdp.ParameterError, match="squares of 3 features"):
        change.structured_distance(side, Squares(np.ones(2), np.ones(2), 0.1))


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_radius_that_cuts_the_box_leaves_no_free_squares(neighbours):
    side = Covariance.identity(3)
    cut = RankOneChange(np.ones(3), 10, 1.7, neighbours)
    whole = RankOneChange(np.ones(3), 10, 1.8, neighbours)
    assert cut.free_structure(side) is None
    assert isinstance(whole.free_structure(side), Squares)
    assert RankOneChange(np.ones(3), 10, one_signed=True).free_structure(side) is None
    assert MomentsChange(np.ones(2), 10, 1.2).free_structure(side) is None
    design = mdp.make_design(mdp.SecondMoment(mdp.Bounds([-1] * 3, [1] * 3, radius=1.5), 10), PRIVACY)
    assert design.structure is None


def test_isotropic_noise_and_the_paper_have_no_squares():
    query = mdp.SecondMoment(mdp.Bounds([-1] * 3, [1] * 3), 10)
    for options in ({"allocation": "isotropic"}, {"calibration": "theorem2"}, {"structured": False}):
        assert mdp.make_design(query, PRIVACY, **options).structure is None
    design = mdp.make_design(query, PRIVACY)
    plain = mdp.make_design(query, PRIVACY, structured=False)
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(design.std[off], plain.std[off], rtol=1e-9)
    assert (np.diagonal(plain.std) > 2 * np.diagonal(design.std)).all()
