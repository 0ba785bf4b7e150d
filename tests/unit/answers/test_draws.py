"""Draws of possible moments: every one is possible, and with little noise they have the law of the noise."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.answers import draws
from matrixdp.answers.draws import draw_moments
from matrixdp.answers.moments import correlate_all
from matrixdp.answers.view import view_moments

KINDS = ("number", "optional", "category", "flag", "single")


def make_columns(kinds):
    make = {
        "number": lambda name: mdp.Number(name, -2, 6),
        "optional": lambda name: mdp.Number(name, 0, 10, missing=True),
        "category": lambda name: mdp.Category(name, ["a", "b", "c"]),
        "flag": lambda name: mdp.YesNo(name),
        "single": lambda name: mdp.Category(name, ["only"]),
    }
    return mdp.Columns([make[kind](f"{kind}{i}") for i, kind in enumerate(kinds)])


def exact_moments(query, rng, *, plain=False, count=400):
    """Moments of random records; unless `plain`, some columns are constant, and some levels are empty."""
    factor = rng.standard_normal(count)
    z = np.zeros((count, query.layout.size))
    z[:, 0] = 1.0
    for place in query.places.values():
        score = rng.normal() * factor + rng.standard_normal(count)
        if place.levels:
            chosen = np.digitize(score, np.linspace(-1, 1, len(place.levels) + 1)[1:-1])
            last = len(place.levels) - 1 if plain else rng.integers(len(place.levels))
            z[np.arange(count), place.value + np.minimum(chosen, last)] = 1.0
            continue
        there = rng.random(count) < (0.7 if plain else rng.choice([0.2, 0.9])) if place.observed else np.ones(count)
        z[:, place.observed] = np.where(place.observed, there, z[:, 0])
        half = query.largest[place.value]
        z[:, place.value] = there * np.clip(score * (0.3 if plain else rng.choice([0.0, 0.3, 3.0])), -1, 1) * half
    z[:, 0] = 1.0
    return z.T @ z / count


def make_view(kinds, epsilon, seed=0, *, plain=False, **options):
    query = mdp.TableMoments(make_columns(kinds), 1000, **options)
    design = mdp.make_design(query, mdp.Privacy(epsilon, 1e-6))
    rng = np.random.default_rng(seed)
    exact = view_moments(np.tile(exact_moments(query, rng, plain=plain), (query.groups, 1)), design)
    return replace(exact, matrix=exact.matrix + exact.law.draw(1, rng)[0]), exact


def assert_possible(view):
    """Shares and cells are not negative, means lie within their bounds, and the matrix is positive semidefinite."""
    matrix = view.matrix / view.matrix[:, :1, :1]
    assert np.isfinite(matrix).all()
    assert np.linalg.eigvalsh(matrix)[:, 0].min() > -1e-9
    events = [0, *(place.observed for place in view.places.values() if place.observed)]
    for name, place in view.places.items():
        if place.levels:
            levels = view.levels(name)
            np.testing.assert_allclose(matrix[:, 0, levels].sum(axis=1), 1.0)
            np.testing.assert_allclose(matrix[:, levels, levels], matrix[:, 0, levels], atol=1e-12)
            events += levels.tolist()
    cells = matrix[:, events][:, :, events]
    assert cells.min() > -1e-9
    shares = matrix[:, 0, events]
    assert (cells <= np.minimum(shares[:, :, None], shares[:, None]) + 1e-9).all()
    for name, place in view.places.items():
        if not place.levels:
            half = view.halfwidths[view.numbers.index(name)]
            there = matrix[:, place.observed]
            assert (np.abs(matrix[:, place.value][:, events]) <= half * there[:, events] + 1e-9 * half).all()
            assert (matrix[:, place.value, place.value] <= half**2 * there[:, 0] + 1e-9 * half**2).all()


def few_sweeps(patch):
    for name, value in {"_BURN": 2, "_KEEP": 2, "_CHAINS": 20}.items():
        patch.setattr(draws, name, value)


@pytest.fixture
def short(monkeypatch):
    """Few sweeps, for what must hold after any number of them."""
    few_sweeps(monkeypatch)
    yield
    draws._draw.cache_clear()


@settings(max_examples=25, deadline=None)
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=5),
    noise=st.floats(-2, 4),
    seed=st.integers(0, 1000),
    neighbours=st.sampled_from(["replace", "add-remove"]),
)
def test_draws_are_possible(kinds, noise, seed, neighbours):
    """For noise from 10^-4 to 100 times the signal, constant columns, empty levels and one level."""
    with pytest.MonkeyPatch.context() as patch:
        few_sweeps(patch)
        view, _ = make_view(kinds, 10.0**noise, seed, neighbours=neighbours)
        assert_possible(draw_moments(view))


def test_moments_of_numbers(short):
    query = mdp.Moments(mdp.Bounds([-1, 0, -5], [1, 1, 5]), records=1000)
    design = mdp.make_design(query, mdp.Privacy(0.5, 1e-6))
    view = view_moments(design.release(np.zeros((1000, 3)), simulation=True).matrix, design)
    assert_possible(draw_moments(view))


def test_groups(short):
    columns = mdp.Columns([mdp.Number("x", -1, 1), mdp.Category("by", ["a", "b"]), mdp.YesNo("y")])
    query = mdp.TableMoments(columns, 500, by=["by"])
    design = mdp.make_design(query, mdp.Privacy(1.0, 1e-6))
    noisy = np.tile(np.array([[0.5, 0.1, 0.2, 0.3], [0.1, 0.2, 0, 0.1], [0.2, 0, 0.2, 0], [0.3, 0.1, 0, 0.3]]), (2, 1))
    assert_possible(draw_moments(view_moments(noisy, design, {"by": "a"})))


def test_same_release_same_draws(short):
    view, _ = make_view(["number", "category"], 1.0)
    other, _ = make_view(["number", "category"], 1.0, seed=1)
    np.testing.assert_array_equal(draw_moments(view).matrix, draw_moments(view).matrix)
    assert not np.array_equal(draw_moments(view).matrix, draw_moments(other).matrix)


def test_the_noise_decides_the_draws_of_the_same_moments():
    """Moments that were drawn before, with more noise, are drawn again."""
    wide, exact = make_view(["number", "number"], 1.0, plain=True)
    sharp, _ = make_view(["number", "number"], 100.0, plain=True)
    spreads = [np.std(draw_moments(replace(exact, law=one.law)).matrix[:, 1, 2]) for one in (wide, sharp)]
    assert spreads[1] < 0.2 * spreads[0]


def test_groups_are_drawn_together(short):
    view, _ = make_view(["number", "flag"], 1.0)
    stack = replace(view, matrix=np.stack([view.matrix, 0.5 * view.matrix]))
    assert_possible(replace(view, matrix=draw_moments(stack).matrix[:, 0]))
    sizes = draw_moments(stack).matrix[:, :, 0, 0].mean(axis=0)
    np.testing.assert_allclose(sizes, [1.0, 0.5], atol=0.02)


def test_many_coordinates_are_not_drawn():
    design = mdp.make_design(mdp.Moments(mdp.Bounds([-1] * 101, [1] * 101), 1000), mdp.Privacy(1.0, 1e-6))
    release = mdp.Release(np.eye(102), design)
    assert draw_moments(view_moments(release.matrix, design)) is None
    with pytest.raises(mdp.ParameterError, match="draws are for at most 100 columns and levels"):
        release.draws()


def test_moments_of_a_share_of_the_records_are_as_much_less_exact():
    """Errors are divided by the share, so all precisions are multiplied by its square."""
    view, _ = make_view(["number", "optional", "category"], 1.0)
    whole = draws.measure(view)
    half = whole.divide(np.array([0.5]))
    assert np.array_equal(half.products, 2 * whole.products)
    pairs = [
        (half.means, whole.means),
        (half.squares, whole.squares),
        (half.scales[:, :1] * half.scales, whole.scales[:, :1] * whole.scales),
    ]
    for one, other in pairs:
        np.testing.assert_allclose(one, other / 4)


def test_little_noise():
    """With noise a thousandth of the signal, draws are the release with noise of the same law once more."""
    view, _ = make_view(["number", "number", "optional", "category"], 300.0, seed=4, plain=True)
    found = draw_moments(view)
    rows, columns = view.query.layout.representatives
    std = view.law.entry_std(rows, columns)
    apart = (found.matrix - view.matrix)[:, rows, columns][:, std > 0] / std[std > 0]
    assert np.abs(apart.mean(axis=0)).max() < 0.5
    assert 0.85 < np.sqrt(np.mean(apart**2)) < 1.15


def test_answers_of_draws():
    """The draws of a correlation cover it, and are narrower where there is less noise."""
    widths = []
    for epsilon in (0.5, 50.0):
        view, exact = make_view(["number", "number", "category"], epsilon, seed=3, plain=True)
        low, high = np.quantile(correlate_all(draw_moments(view)).value[:, 1, 0], [0.01, 0.99])
        assert -1 <= low <= correlate_all(exact.without_noise()).value[1, 0] <= high <= 1
        widths.append(high - low)
    assert widths[1] < 0.5 * widths[0]


def test_range_of_a_function(short):
    view, _ = make_view(["number", "flag"], 1.0)
    design = mdp.make_design(view.query, mdp.Privacy(1.0, 1e-6))
    found = mdp.Release(view.matrix, design).draws()
    assert found.names == view.query.names
    low, high = np.quantile(found.matrices[:, 0, 1], [0.005, 0.995])
    answer = found.of(lambda matrices: matrices[:, 0, 1:])
    assert (answer.low[0], answer.high[0]) == pytest.approx((low, high))
    assert low < answer.median[0] < high
    with pytest.raises(mdp.ParameterError, match="function must return one answer for each of 40 matrices"):
        found.of(lambda matrices: matrices.mean())
