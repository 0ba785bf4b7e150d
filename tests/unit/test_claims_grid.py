"""What rounding to a grid claims: neighbours' integers stay within the distance, and no answer is altered by it."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.audit import attack, distance_between
from matrixdp.design.grid import column_factors, fit_grid

release = mdp.Design.release

PRIVACY = mdp.Privacy(1, 1e-6)


def rotation(size, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]


def test_products_of_large_answers_are_rounded_within_the_distance():
    """The answer is 2^40 times the change; turning it into the noise's coordinates rounds more than the grid does."""
    large, size = 2.0**40, 6
    directions = rotation(size)
    query = mdp.Query((1, size), mdp.sensitivity.FrobeniusBall(1.0), bound=2 * large)
    design = mdp.make_design(
        query, PRIVACY, allocation=mdp.allocations.shares(np.ones(size) / size), directions=directions
    )
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(400):
        answer = np.rint(rng.uniform(-large, large, (1, size)) * 1024) / 1024
        turn = rng.standard_normal(size)
        change = np.trunc(turn / np.linalg.norm(turn) * 1024) / 1024  # sums are exact: 40 + 10 bits
        assert np.linalg.norm(change) <= 1
        worst = max(worst, distance_between(design, answer, answer + change))
        assert worst <= design.distance
    ideal = design.ideal_distance().value
    assert worst > ideal * (1 - 1e-2)  # the attack comes close
    assert design.distance > ideal * (1 + 1e-5)  # and rounding is what it is about


def test_a_function_that_rounds_is_covered_by_its_relative_error():
    """Values of 1e5 in single precision, whose rounding errors are as large as what one record changes."""

    def rounded(data):
        third = np.clip(data, -1, 1).mean(axis=0)[None] / 3
        return (np.float32(1e5) + third.astype(np.float32)).astype(np.float64)

    bounds = mdp.Bounds([-1, -1], [1, 1])
    radius = 2 * math.sqrt(2) / 4 / 3
    query = mdp.Query((1, 2), mdp.sensitivity.FrobeniusBall(radius), 1e5 + 1, rounded, relative_error=2.0**-23)
    assert not attack(mdp.make_design(query, PRIVACY), bounds=bounds, starts=6).broken


@pytest.mark.parametrize("seed", range(10))
def test_rounding_to_steps_is_within_the_distance(seed):
    """For a small budget the change is small, too, and rounding the entries to whole steps shows in the distance."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 10))
    query = mdp.Query((1, size), mdp.sensitivity.FrobeniusBall(1.0), bound=4.0)
    design = mdp.make_design(query, mdp.Privacy(1e-6, 1e-9))
    for _ in range(300):
        turn = rng.standard_normal(size)
        change = turn / np.linalg.norm(turn) * (1 - 2.0**-50)
        first = rng.uniform(-1, 1, (1, size))
        assert distance_between(design, first, first + change) <= design.distance


def test_each_entry_of_a_data_set_moves_by_all_its_steps():
    """Both ends of a feature are attained, and the square root of the sum is rounded up."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        half = 10.0 ** rng.uniform(-6, 6, int(rng.integers(1, 6)))
        bounds = mdp.Bounds(-half, half)
        design = mdp.make_design(mdp.Identity(bounds, 1), mdp.Privacy(10 ** rng.uniform(-2, 1), 1e-6))
        limits = design.query.row_limits(column_factors(design.noise, design.grid.bits))
        squares = sum((2 * int(k)) ** 2 for k in limits)
        assert Fraction(design.distance) ** 2 >= Fraction(squares, 4**design.grid.bits)
        assert distance_between(design, [bounds.lower], [bounds.upper]) <= design.distance


def test_a_distance_is_never_zero():
    """Where the noise is so large that all records round to zero, a release still costs something."""
    query = mdp.Identity(mdp.Bounds([0], [1]), 10**6)
    design = mdp.make_design(query, mdp.Privacy(1e-7, 1e-9), calibration="theorem2")
    assert not query.row_limits(column_factors(design.noise, design.grid.bits)).any()
    assert design.distance >= 2.0**-design.grid.bits


def symmetric_design(bound):
    query = mdp.Query((2, 2), mdp.sensitivity.FrobeniusBall(1.0), bound=bound, side="both")
    return mdp.make_design(query, PRIVACY)


def largest_entry(design):
    """Largest answer, in standard deviations, as the noise sees it."""
    return float(design.query.bound) * design.colcov.whitening**2 * math.sqrt(2)


@pytest.mark.parametrize("bound", [1.0, 1e3, 1e9, 2.0**45])
def test_answers_at_their_bound_are_released_as_they_are(bound):
    """No entry is cut off by the limit of the grid, off the diagonal neither."""
    design = symmetric_design(bound)
    answer = np.full((2, 2), bound)
    for sign in (1, -1):
        found = release(design, sign * answer, stream=mdp.Stream(seed=1), simulation=True).matrix
        assert (np.abs(found - sign * answer) <= 12 * design.std + 1e-12 * bound).all()


@pytest.mark.parametrize("power", [20, 30, 40])
def test_answers_and_noise_fit_into_their_integers(power):
    """A bound just below a power of two standard deviations uses the grid's range as far as possible."""
    bound = 2.0**power
    for _ in range(4):
        bound *= 2.0**power / largest_entry(symmetric_design(bound)) * (1 - 2.0 ** -(power + 4))
    for shift in (1.0, 1 - 2.0**-power, 1 + 2.0**-power, 0.5, 2.0):
        design = symmetric_design(bound * shift)
        answer = np.full((2, 2), bound * shift)
        for seed in range(10):
            for sign in (1, -1):
                found = release(design, sign * answer, stream=mdp.Stream(seed=seed), simulation=True).matrix
                assert (np.abs(found - sign * answer) <= 12 * design.std + 1e-12 * bound).all()


def test_a_share_of_theorem_2_is_that_theorem_for_a_smaller_budget():
    """The noise for half of mu^2 is the noise for the epsilon that it implies."""
    query = mdp.SecondMoment(mdp.Bounds([-1, -1], [1, 1]), 100)
    half = mdp.make_design(query, PRIVACY, calibration="theorem2", share=0.5)
    smaller = mdp.Privacy(mdp.gdp.gdp_epsilon(mu=half.mu, delta=PRIVACY.delta), PRIVACY.delta)
    alone = mdp.make_design(query, smaller, calibration="theorem2")
    assert half.rmse == pytest.approx(alone.rmse, rel=1e-9)
    assert half.rmse > 1.1 * mdp.make_design(query, PRIVACY, calibration="theorem2").rmse


@pytest.mark.parametrize("factor", [0.5, 0.99, 1 - 1e-6])
@pytest.mark.parametrize("kind", [mdp.Moments, mdp.Identity])
def test_less_noise_at_the_old_price_is_refused(factor, kind):
    """The grid of the smaller noise, with the distance of the larger one."""
    design = mdp.make_design(kind(mdp.Bounds([0, 0], [1, 1]), 20), PRIVACY)
    side = design.colcov.scaled(factor)
    altered = replace(design, colcov=side, rowcov=side if kind is mdp.Moments else design.rowcov)
    honest = fit_grid(design.query, altered.noise, altered.ideal_distance().value)
    assert honest.distance > design.distance
    with pytest.raises(mdp.ParameterError, match="altered"):
        replace(altered, grid=replace(honest, distance=design.distance)).release(np.zeros((20, 2)))
    with pytest.raises(mdp.ParameterError, match="altered"):
        replace(altered, grid=honest).release(np.zeros((20, 2)))  # more than the guarantee
