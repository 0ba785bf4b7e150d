"""The integers that noise is added to: neighbours are never further apart than the design says."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.design.grid import column_factors, rounds_entrywise
from matrixdp.mechanisms.mechanism import prepare
from nightly import examples

SEEDS = st.integers(0, 2**32 - 1)


def integers(design, data):
    """What a release adds noise to."""
    prepared = prepare(design, data, clip=True, missing="error")
    if not rounds_entrywise(design.query, design.noise):
        return [int(k) for k in prepared.ravel()]
    factors = column_factors(design.noise, design.grid.bits)
    limits = design.query.row_limits(column_factors(design.noise, design.grid.bits))
    steps = np.rint((np.asarray(prepared, float) - design.query.bounds.midpoint) * factors)
    return [int(k) for k in np.clip(steps, -limits, limits).ravel()]


def apart(design, first, second):
    """Distance of two data sets' integers, in standard deviations, exactly rounded."""
    squares = sum((a - b) ** 2 for a, b in zip(integers(design, first), integers(design, second), strict=True))
    return math.sqrt(squares) * 2.0**-design.grid.bits


@st.composite
def designs(draw):
    seed = draw(SEEDS)
    rng = np.random.default_rng(seed)
    m, records = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    widths = 10.0 ** rng.uniform(-6, 6, m)
    lower = rng.uniform(-1, 1, m) * 10.0 ** rng.uniform(-6, 6, m)
    bounds = mdp.Bounds(lower, lower + widths)
    radius = draw(st.none() | st.floats(0.1, 1.5))
    if radius is not None:
        bounds = mdp.Bounds(lower, lower + widths, radius=radius * float(np.linalg.norm(widths / 2)))
    query = draw(st.sampled_from([mdp.Identity, mdp.SecondMoment, mdp.Moments]))(bounds, records)
    rule = draw(st.sampled_from([mdp.allocations.uniform(), mdp.allocations.isotropic(), mdp.allocations.optimal()]))
    rotate = draw(st.booleans())
    directions = np.linalg.qr(rng.standard_normal((m, m)))[0] if rotate else None
    privacy = mdp.Privacy(draw(st.floats(0.01, 20)), 10 ** draw(st.floats(-12, -2)))
    return mdp.make_design(query, privacy, allocation=rule, directions=directions), bounds, records, rng


@examples(120)
@given(designs())
def test_neighbours_integers(case):
    design, bounds, records, rng = case
    base = rng.uniform(bounds.lower - 1, bounds.upper + 1, (records, bounds.size))
    for _ in range(12):
        pair = np.where(rng.random((2, bounds.size)) < 0.5, bounds.lower, bounds.upper)
        if rng.random() < 0.3:
            pair = rng.uniform(bounds.lower, bounds.upper, (2, bounds.size))
        first, second = base.copy(), base.copy()
        row = rng.integers(records)
        first[row], second[row] = pair
        assert apart(design, first, second) <= design.distance


def test_an_identity_design_is_attained_by_opposite_corners():
    bounds = mdp.Bounds([0, -1, 2], [4, 3, 2.5])
    design = mdp.make_design(mdp.Identity(bounds, 2), mdp.Privacy(1, 1e-6))
    distance = apart(design, [bounds.lower, bounds.lower], [bounds.upper, bounds.lower])
    assert distance == design.distance or math.isclose(distance, design.distance, rel_tol=1e-12)


def test_a_second_moment_is_attained_by_orthogonal_corners():
    bounds = mdp.Bounds([-1, -1], [1, 1])
    design = mdp.make_design(mdp.SecondMoment(bounds, 3), mdp.Privacy(1, 1e-6))
    distance = apart(design, [[1, 1], [0, 0], [0, 0]], [[1, -1], [0, 0], [0, 0]])
    assert math.isclose(distance, design.distance, rel_tol=1e-6)


@examples(30)
@given(SEEDS, st.booleans())
def test_neighbouring_graphs(seed, laplacian):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    query = (mdp.Laplacian if laplacian else mdp.Adjacency)(n, weight=float(10.0 ** rng.uniform(-3, 3)))
    directions = np.linalg.qr(rng.standard_normal((n, n)))[0]
    rule = mdp.allocations.shares(rng.dirichlet(np.ones(n) * 3))
    options = {} if rng.random() < 0.5 else {"allocation": rule, "directions": directions}
    design = mdp.make_design(query, mdp.Privacy(1, 1e-6), **options)
    graph = np.triu(rng.random((n, n)), 1) * query.weight
    graph += graph.T
    for _ in range(10):
        i, j = rng.choice(n, 2, replace=False)
        other = graph.copy()
        graph[i, j] = graph[j, i] = 0.0
        other[i, j] = other[j, i] = query.weight
        assert apart(design, graph, other) <= design.distance


@examples(30)
@given(SEEDS)
def test_neighbouring_kernel_matrices(seed):
    rng = np.random.default_rng(seed)
    bounds = mdp.Bounds([0, 0], [1, 1])
    n = int(rng.integers(2, 6))
    points = rng.uniform(0, 1, (3, 2))
    for query in (mdp.GramMatrix(bounds, n), mdp.GramMatrix(bounds, n, points=points, bandwidth=0.1)):
        design = mdp.make_design(query, mdp.Privacy(1, 1e-6))
        first = np.full((n, 2), rng.uniform(0, 1))
        second = first.copy()
        second[0] = rng.uniform(0, 1, 2)
        assert apart(design, first, second) <= design.distance


@examples(20)
@given(SEEDS)
def test_a_record_more_or_less(seed):
    rng = np.random.default_rng(seed)
    bounds = mdp.Bounds([0, -1], [4, 3])
    for query in (mdp.Moments, mdp.SecondMoment):
        design = mdp.make_design(query(bounds, 5, neighbours="add-remove"), mdp.Privacy(1, 1e-6))
        data = rng.uniform(bounds.lower, bounds.upper, (6, 2))
        data[-1] = np.where(rng.random(2) < 0.5, bounds.lower, bounds.upper)
        assert apart(design, data, data[:-1]) <= design.distance


def test_a_design_that_forgets_rounding_is_found():
    """With a grid of four steps a standard deviation, the distance without rounding is exceeded."""
    from dataclasses import replace

    bounds = mdp.Bounds([-1, -1], [1, 1])
    fine = mdp.make_design(mdp.SecondMoment(bounds, 1), mdp.Privacy(0.5, 1e-2), directions=[[0.8, -0.6], [0.6, 0.8]])
    coarse = replace(fine, grid=replace(fine.grid, bits=2))
    rng = np.random.default_rng(0)
    pairs = np.where(rng.random((300, 2, 1, 2)) < 0.5, -1.0, 1.0) * rng.uniform(0.8, 1, (300, 2, 1, 2))
    assert max(apart(coarse, *pair) for pair in pairs) > fine.distance
