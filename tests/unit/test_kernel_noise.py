"""Gram matrices against public points: noise with the kernel's own covariance, where it is less."""

import json

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.release.charging import describe_design
from matrixdp.sensitivity import KernelRowChange, RecordChange

PRIVACY = mdp.Privacy(1, 1e-6)
BOUNDS = mdp.Bounds([0, 0], [1, 1])
RNG = np.random.default_rng(0)
POINTS = RNG.uniform(0, 1, (10, 2))
DATA = RNG.uniform(0, 1, (20, 2))


def gram(points=POINTS, **options):
    return mdp.GramMatrix(BOUNDS, 20, points=points, **{"bandwidth": 0.5} | options)


def total(design):
    return float(np.square(design.std).sum())


def test_the_default_has_the_least_noise():
    design = mdp.make_design(gram(), PRIVACY)
    box = mdp.make_design(gram(row_change="box"), PRIVACY)
    assert design.allocation.rule == "kernel"
    assert box.rmse / design.rmse == pytest.approx(np.sqrt(10 / 2), rel=0.01)
    for rule in ("uniform", "isotropic", "optimal"):
        assert total(design) < total(mdp.make_design(gram(), PRIVACY, allocation=rule))
    few = mdp.make_design(gram(POINTS[:2]), PRIVACY)
    assert few.allocation.rule == "uniform"
    far = mdp.make_design(gram(POINTS + 3), PRIVACY)  # the kernel is nearly zero at all points
    assert far.allocation.rule == "uniform"
    assert far.rmse < design.rmse / 100


def test_the_covariance_is_that_of_a_narrow_kernel():
    design = mdp.make_design(gram(), PRIVACY)
    halfwidths = (POINTS - 0.5) / 0.5
    squares = np.square(halfwidths[:, None] - halfwidths).sum(axis=2)
    kernel = np.exp(-squares / 0.5) + 1e-6 * np.eye(10)
    shape = design.colcov.matrix()
    assert np.allclose(shape / shape[0, 0], kernel / kernel[0, 0], rtol=1e-9)
    assert np.allclose(design.std, design.std[0, 0])
    assert design.std[0, 0] == pytest.approx(np.sqrt(2) / design.distance, rel=1e-4)


@pytest.mark.parametrize(("bandwidth", "times"), [(1.5, 3.0), (5.0, 4.0), (100.0, 4.0)])
def test_a_wide_kernel_has_little_noise_at_many_points(bandwidth, times):
    points = np.random.default_rng(1).uniform(0, 1, (50, 2))
    design, box = (
        mdp.make_design(gram(points, bandwidth=bandwidth, row_change=bound), PRIVACY) for bound in ("kernel", "box")
    )
    assert design.allocation.rule == "kernel"
    assert box.rmse > times * design.rmse


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_the_spread_is_rounded_up_and_small_for_wide_kernels(kernel):
    for bandwidth, rel in ((0.01, 1e-10), (1.0, 1e-10), (1e8, 1e-6)):
        reach = 8 / (2 * bandwidth**2) if kernel == "gaussian" else 4 / bandwidth
        exact = -2 * np.expm1(-reach)
        spread = gram(kernel=kernel, bandwidth=bandwidth)._spread(2.0)
        assert exact <= spread
        assert spread == pytest.approx(exact, rel=rel)
    ball = mdp.Bounds([0, 0], [1, 1], radius=0.5)
    inner = mdp.GramMatrix(ball, 20, points=POINTS, kernel=kernel, bandwidth=2.0)
    assert inner._spread(2.0) < gram(kernel=kernel, bandwidth=2.0)._spread(2.0)


def test_points_that_coincide_are_allowed():
    points = np.repeat(POINTS[:3], 5, axis=0)
    design = mdp.make_design(gram(points), PRIVACY)
    assert design.allocation.rule == "kernel"
    released = design.release(DATA)
    assert np.ptp(released.matrix.reshape(20, 3, 5), axis=2).max() < 0.2 * design.rmse  # one number five times


def test_explained_stored_and_recognised():
    design = mdp.make_design(gram(), PRIVACY)
    assert "the kernel's own, allocation kernel" in design.explain()
    assert "10.0% of the privacy loss" in str(design)
    released = design.release(DATA)
    again = mdp.Release.from_json(released.to_json())
    assert np.array_equal(again.std, released.std)
    assert again.design.allocation.rule == "kernel"
    described = describe_design(design)
    assert described == describe_design(mdp.make_design(gram(), PRIVACY, allocation="kernel"))
    turned = mdp.Design(
        **{**design.__getstate__(), "colcov": mdp.noise.Covariance(design.colcov.variances, -design.directions)}
    )
    assert described == describe_design(turned)  # eigenvectors of another machine


def test_texts_of_earlier_versions_mean_the_box():
    released = mdp.make_design(gram(row_change="box"), PRIVACY).release(DATA)
    assert "row_change" not in released.to_json()
    query = mdp.Release.from_json(released.to_json()).design.query
    assert isinstance(query.sensitivity, RecordChange)
    assert "row_change" not in mdp.make_design(mdp.GramMatrix(BOUNDS, 20), PRIVACY).release(DATA).to_json()
    content = json.loads(mdp.make_design(gram(), PRIVACY).release(DATA).to_json())
    assert content["design"]["query"]["row_change"] == "kernel"


def test_other_calibrations_have_the_same_shape():
    exact, printed = (
        mdp.make_design(gram(), PRIVACY, allocation="kernel", calibration=name) for name in ("exact", "theorem2")
    )
    assert np.allclose(printed.colcov.variances / exact.colcov.variances, (printed.rmse / exact.rmse) ** 2)
    assert mdp.make_design(gram(), PRIVACY, calibration="theorem2").allocation.rule == "uniform"


def test_what_is_not_offered_is_named():
    for query in (gram(POINTS[:1]), gram(row_change="box"), mdp.GramMatrix(BOUNDS, 20), mdp.Identity(BOUNDS, 20)):
        with pytest.raises(mdp.ParameterError, match="must not be 'kernel'"):
            mdp.make_design(query, PRIVACY, allocation="kernel")
    with pytest.raises(mdp.ParameterError, match="directions must be left out"):
        mdp.make_design(gram(), PRIVACY, allocation="kernel", directions=np.eye(10))
    with pytest.raises(mdp.ParameterError, match="row_change must be"):
        gram(row_change="both")
    with pytest.raises(mdp.ParameterError, match="for 2 points"):
        KernelRowChange(np.ones(2), np.eye(3), np.zeros(2), 0.0, np.eye(2))


def test_many_points_use_the_box(monkeypatch):
    monkeypatch.setattr("matrixdp.queries.gram._MOST_POINTS", 9)
    assert isinstance(gram().sensitivity, RecordChange)
    assert mdp.make_design(gram(), PRIVACY).allocation.rule == "uniform"


def test_uniform_shares_along_the_eigenvectors_are_the_kernels_own():
    query = gram()
    own = mdp.make_design(query, PRIVACY)
    given = mdp.make_design(query, PRIVACY, directions=query.own_covariance.directions)
    assert np.allclose(given.colcov.variances, own.colcov.variances, rtol=1e-6)
