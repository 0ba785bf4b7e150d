"""Rows of a kernel against public points: no two records are further apart than the kernel's norm allows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.mechanisms.mechanism import prepare
from nightly import examples

SEEDS = st.integers(0, 2**32 - 1)
KERNELS = st.sampled_from(["gaussian", "laplacian"])
PRIVACY = mdp.Privacy(1, 1e-6)


def integers(design, data):
    """What a release adds noise to."""
    return [int(k) for k in prepare(design, data, clip=True, missing="error").ravel()]


def apart(design, first, second):
    """Distance of two data sets' integers, in standard deviations."""
    pairs = zip(integers(design, first), integers(design, second), strict=True)
    return math.sqrt(sum((a - b) ** 2 for a, b in pairs)) * 2.0**-design.grid.bits


def random_query(rng, kernel, log_bandwidth, ball):
    m, p = int(rng.integers(1, 4)), int(rng.integers(1, 13))
    half = 10.0 ** rng.uniform(-3, 3, m)
    radius = float(rng.uniform(0.3, 1) * np.linalg.norm(half)) if ball else None
    bounds = mdp.Bounds(-half, half, radius=radius)
    places = rng.uniform(-1, 1, (p, m)) * rng.choice([0.2, 1.0, 1.5])
    if p > 2 and rng.random() < 0.5:  # the same point twice, and one close to it
        places[1], places[2] = places[0], places[0] + 10.0 ** rng.uniform(-16, -2)
    return mdp.GramMatrix(bounds, 2, points=places * half, kernel=kernel, bandwidth=10.0**log_bandwidth)


def records(rng, query):
    """Records at points, close to them, far from them, in corners and outside of the bounds."""
    bounds, point = query.bounds, query.points[rng.integers(len(query.points))]
    corner = np.where(rng.random(bounds.size) < 0.5, bounds.lower, bounds.upper)
    return [
        point,
        point + bounds.halfwidths * 10.0 ** rng.uniform(-15, 0) * rng.standard_normal(bounds.size),
        np.where(point > 0, bounds.lower, bounds.upper),
        corner,
        rng.uniform(bounds.lower, bounds.upper),
        1e9 * corner,
    ]


def pairs(rng, query, count):
    """Neighbouring data sets: the second record is the same."""
    for _ in range(count):
        pool = records(rng, query)
        x, y = (pool[i] for i in rng.choice(len(pool), 2, replace=False))
        yield np.array([x, pool[4]]), np.array([y, pool[4]])


@pytest.mark.parametrize("allocation", [None, "kernel", "uniform", "directions"])
@examples(60)
@given(SEEDS, KERNELS, st.floats(-3, 3), st.booleans())
def test_integers_of_neighbours(allocation, seed, kernel, log_bandwidth, ball):
    rng = np.random.default_rng(seed)
    query = random_query(rng, kernel, log_bandwidth, ball)
    options = {"allocation": allocation}
    if allocation == "directions":
        p = len(query.points)
        options = {"directions": np.linalg.qr(rng.standard_normal((p, p)))[0]}
    try:
        design = mdp.make_design(query, PRIVACY, **options)
    except mdp.ParameterError:
        assert (allocation, len(query.points)) == ("kernel", 1)
        return
    for first, second in pairs(rng, query, 12):
        assert apart(design, first, second) <= design.distance
    assert design.attained <= design.distance


@examples(40)
@given(SEEDS, KERNELS, st.floats(-1, 1), st.booleans())
def test_the_bound_holds_for_noise_of_any_shape(seed, kernel, log_bandwidth, rotated):
    rng = np.random.default_rng(seed)
    query = random_query(rng, kernel, log_bandwidth, ball=False)
    p = len(query.points)
    variances = 10.0 ** rng.uniform(-4, 2, p)
    directions = np.linalg.qr(rng.standard_normal((p, p)))[0]
    covariance = (
        mdp.noise.Covariance.eigen(directions, variances) if rotated else mdp.noise.Covariance.diagonal(variances)
    )
    claim = query.sensitivity.distance(mdp.noise.Covariance.identity(2), covariance)
    for first, second in pairs(rng, query, 12):
        change = np.diff([query.evaluate(data, clip=True, missing="error")[0] for data in (first, second)], axis=0)[0]
        whitened = covariance.whitening @ change if rotated else covariance.whitening * change
        assert np.linalg.norm(whitened) <= claim.value
    assert claim.attained <= claim.value


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_points_in_opposite_corners_attain_the_bound(kernel):
    bounds = mdp.Bounds([-1, -1], [1, 1])
    points = np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [0.2, 0.1], [0.21, 0.1]])
    design = mdp.make_design(mdp.GramMatrix(bounds, 1, points=points, kernel=kernel, bandwidth=0.5), PRIVACY)
    assert design.allocation.rule == "kernel"
    assert apart(design, points[:1], points[1:2]) > 0.9999 * design.distance
    assert design.attained > 0.9999 * design.distance


def broken_design(**changes):
    """A design whose sensitivity was altered, and the query."""
    from dataclasses import replace

    class Broken(mdp.GramMatrix):
        @property
        def sensitivity(self):
            return replace(super().sensitivity, **{"halfwidths": np.ones(len(self.points)), **changes})

    points = np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [0.2, 0.1], [0.21, 0.1]])
    query = Broken(mdp.Bounds([-1, -1], [1, 1]), 2, points=points, bandwidth=0.5)
    return mdp.make_design(query, PRIVACY, allocation="kernel"), query


def test_a_bound_of_one_instead_of_two_is_found():
    honest, _ = broken_design()
    design, query = broken_design(ellipsoid=honest.query.sensitivity.ellipsoid / 2)
    rng = np.random.default_rng(0)
    assert max(apart(honest, *pair) for pair in pairs(rng, query, 60)) <= honest.distance
    assert max(apart(design, *pair) for pair in pairs(rng, query, 60)) > 1.3 * design.distance


def test_an_ellipsoid_that_is_too_small_is_found():
    """A broken variant that subtracts l from the ellipsoid instead of adding it."""
    honest, _ = broken_design()
    values, vectors = np.linalg.eigh(honest.query.sensitivity.ellipsoid)
    design, query = broken_design(ellipsoid=(vectors * np.maximum(values - 1, 0)) @ vectors.T)
    rng = np.random.default_rng(0)
    assert max(apart(design, *pair) for pair in pairs(rng, query, 60)) > 1.05 * design.distance


def test_a_range_at_the_midpoint_that_is_too_small_is_found():
    """Wide kernels rely on how little the kernel's value at the midpoint varies."""

    class Broken(mdp.GramMatrix):
        def _spread(self, steps):
            return super()._spread(steps) * (0.2 if steps == 1 else 1)

    rng = np.random.default_rng(1)
    options = {"points": rng.uniform(-1, 1, (6, 2)), "bandwidth": 3.0}
    bounds = mdp.Bounds([-1, -1], [1, 1])
    honest, broken = (
        mdp.make_design(kind(bounds, 2, **options), PRIVACY, allocation="kernel") for kind in (mdp.GramMatrix, Broken)
    )
    found = [tuple(apart(design, *pair) for design in (honest, broken)) for pair in pairs(rng, honest.query, 200)]
    assert max(first for first, _ in found) <= honest.distance
    assert max(second for _, second in found) > broken.distance


def test_rounding_errors_are_bounded():
    """Values of rows and of the points' kernel matrix, against 60 digits."""
    mp = pytest.importorskip("mpmath")
    rng = np.random.default_rng(0)
    worst = 0.0
    for trial in range(150):
        m = int(rng.integers(1, 6))
        places = rng.uniform(-1, 1, (3, m)) * rng.choice([1.0, 1 + 1e-9, 3.0, 30.0])
        kernel = ["gaussian", "laplacian"][trial % 2]
        query = mdp.GramMatrix(
            mdp.Bounds([-1] * m, [1] * m), 1, points=places, kernel=kernel, bandwidth=10.0 ** rng.uniform(-10, 3)
        )
        record = np.clip(places[0] + rng.normal(size=m) * 10.0 ** rng.uniform(-12, 0), -1, 1)
        values = query.finish(query.evaluate(record[None], clip=True, missing="error"))[0]
        errors = query.sensitivity.errors
        with mp.workdps(60):
            for j in range(3):
                steps = [mp.mpf(float(a)) - mp.mpf(float(b)) for a, b in zip(record, places[j], strict=True)]
                h = mp.mpf(query.bandwidth)
                t = sum(s * s for s in steps) / (2 * h * h) if kernel == "gaussian" else sum(map(abs, steps)) / h
                error = abs(mp.mpf(float(values[j])) - mp.exp(-t))
                rounding = mp.mpf(2.0**-53) * 2  # of `finish`, which is not part of the bound
                worst = max(worst, float((error - rounding) / mp.mpf(float(errors[j]))))
    assert worst <= 1
