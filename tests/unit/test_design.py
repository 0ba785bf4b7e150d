"""Designs meet their budget, explain themselves, and refuse what is unfit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.sensitivity.limit import best_covariance

PRIVACY = mdp.Privacy(1, 1e-6)
BOX = mdp.Bounds([0, 0, 0], [1, 4, 2], names=["a", "b", "c"])
IDENTITY = mdp.Identity(BOX, 100)


def orthonormal(n, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]


def queries(bounds, records):
    m = bounds.size
    return [
        mdp.Identity(bounds, records),
        mdp.SecondMoment(bounds, records),
        mdp.SecondMoment(bounds, records, neighbours="add-remove"),
        mdp.Moments(bounds, records),
        mdp.Moments(bounds, records, neighbours="add-remove", mean_share=0.5),
        mdp.GramMatrix(bounds, records + 1, points=np.tile(bounds.midpoint, (2, 1))),
        mdp.GramMatrix(bounds, 5),
        mdp.Adjacency(4),
        mdp.Laplacian(4, weight=3.0),
        mdp.ContingencyTable(range(m + 1), range(m + 1), records=records),
        mdp.Query((2, 3), mdp.sensitivity.FrobeniusBall(0.3), bound=2.0),
        mdp.Query((3, 3), mdp.sensitivity.FrobeniusBall(0.3), bound=2.0, side="both"),
        mdp.Query((2, 3), mdp.sensitivity.Vertices(np.ones((1, 2, 3))), bound=2.0, side="rows"),
    ]


@st.composite
def privacies(draw):
    return mdp.Privacy(draw(st.floats(0.01, 10)), 10 ** draw(st.floats(-12, -2)))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_every_design_spends_its_budget_and_no_more(data):
    m = data.draw(st.integers(1, 5))
    widths = np.array(data.draw(st.lists(st.floats(1e-3, 1e3), min_size=m, max_size=m)))
    bounds = mdp.Bounds(np.zeros(m), widths)
    privacy = data.draw(privacies())
    rule = data.draw(
        st.sampled_from([mdp.allocations.uniform(), mdp.allocations.isotropic(), mdp.allocations.optimal()])
    )
    rotate = data.draw(st.booleans())
    for query in queries(bounds, 50):
        directions = orthonormal(query.features) if rotate and rule.rule != "optimal" else None
        design = mdp.make_design(query, privacy, allocation=rule, directions=directions)
        assert privacy.mu * (1 - 1e-9) <= design.distance <= privacy.mu
        assert design.attained <= design.distance * (1 + 1e-9)
        assert design.epsilon <= privacy.epsilon * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 1.0), privacies())
def test_a_share_of_the_budget_is_a_share_of_mu_squared(share, privacy):
    design = mdp.make_design(IDENTITY, privacy, share=share)
    assert design.distance**2 == pytest.approx(share * privacy.mu**2, rel=1e-8)
    assert design.distance**2 <= share * privacy.mu**2


def test_shares_are_shares_of_the_privacy_loss():
    theta = np.array([0.7, 0.2, 0.1])
    design = mdp.make_design(IDENTITY, PRIVACY, allocation=mdp.allocations.shares(theta))
    loss = np.array([1.0, 4.0, 2.0]) ** 2 / design.std[0] ** 2
    np.testing.assert_allclose(loss / loss.sum(), theta)
    np.testing.assert_allclose(design.std[0] ** 2, np.array([1, 16, 4]) / (theta * PRIVACY.mu**2), rtol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_no_other_shares_beat_the_optimal_ones(seed, moment, ball):
    rng = np.random.default_rng(seed)
    widths, weights = np.exp(rng.uniform(-1, 1, 4)), np.exp(rng.uniform(-1, 1, 4))
    radius = 0.4 * float(np.linalg.norm(widths / 2)) if ball else None
    bounds = mdp.Bounds(-widths / 2, widths / 2, radius=radius)
    query = mdp.SecondMoment(bounds, 100) if moment else mdp.Identity(bounds, 100)

    def cost(design):
        variances = design.colcov.variances
        return float((weights * variances).sum())

    best = cost(mdp.make_design(query, PRIVACY, allocation=mdp.allocations.optimal(weights)))
    for _ in range(20):
        other = mdp.make_design(query, PRIVACY, allocation=mdp.allocations.shares(rng.dirichlet(np.ones(4) * 2)))
        assert best <= cost(other) * (1 + 1e-8)
    if not ball:
        c = widths / 2 if moment else widths
        value = (c * np.sqrt(weights)).sum() ** 2 * (np.sqrt(2) / (PRIVACY.mu * 100) if moment else PRIVACY.mu**-2)
        assert best == pytest.approx(value, rel=1e-8)


def test_weights_are_relative_to_the_range_by_default():
    design = mdp.make_design(IDENTITY, PRIVACY, allocation="optimal")
    np.testing.assert_allclose(design.std, mdp.make_design(IDENTITY, PRIVACY, allocation="uniform").std, rtol=1e-9)


@pytest.mark.parametrize("query", [mdp.Identity, mdp.SecondMoment, mdp.Moments])
def test_an_optimal_allocation_is_never_worse_than_isotropic_noise(query):
    bounds = mdp.Bounds([-1] * 5, [1] * 5)
    for seed in range(3):
        best, iso = (
            mdp.make_design(query(bounds, 5000), PRIVACY, directions=orthonormal(5, seed), allocation=rule)
            for rule in ("optimal", "isotropic")
        )
        assert best.rmse <= iso.rmse * (1 + 1e-9)


def test_learned_directions_can_be_given_as_they_are():
    bounds = mdp.Bounds([-1, -1], [1, 1])
    learned = mdp.principal_directions(np.zeros((10, 2)), bounds, PRIVACY, records=10)
    design = mdp.make_design(mdp.Identity(bounds, 10), PRIVACY, directions=learned, share=0.8)
    assert np.array_equal(design.directions, learned.directions)


def test_in_a_ball_alone_the_optimum_is_isotropic():
    bounds = mdp.Bounds([-1] * 3, [1] * 3, radius=0.9)
    query = mdp.Identity(bounds, 10)
    design = mdp.make_design(query, PRIVACY, allocation=mdp.allocations.optimal([1.0, 4.0, 9.0]))
    np.testing.assert_allclose(design.std[0], design.std[0, 0])
    assert "no other has less" in design.explain()


def test_the_optimum_over_vertices_is_certified():
    rng = np.random.default_rng(1)
    changes, weights = rng.standard_normal((7, 6)), np.exp(rng.uniform(-1, 1, 6))
    solution = best_covariance(changes, weights)
    assert 0 <= solution.value / solution.bound - 1 < 1e-5
    loads = np.einsum("ki,ij,kj->k", changes, np.linalg.inv(solution.covariance), changes)
    assert loads.max() == pytest.approx(1.0, rel=1e-6)
    assert (weights * np.diag(solution.covariance)).sum() == pytest.approx(solution.value, rel=1e-6)


def test_the_optimum_over_box_vertices_is_the_closed_form():
    widths, weights = np.array([1.0, 2.0, 5.0]), np.array([1.0, 3.0, 0.5])
    corners = np.array(np.meshgrid(*[[-w, w] for w in widths])).reshape(3, -1).T
    solution = best_covariance(corners, weights)
    assert solution.value == pytest.approx((widths * np.sqrt(weights)).sum() ** 2, rel=1e-5)


def test_a_design_over_vertices_beats_isotropic_noise():
    changes = np.zeros((2, 2, 2))
    changes[0, 0], changes[1, 1] = [3.0, 0.0], [0.0, 1.0]
    query = mdp.Query((2, 2), mdp.sensitivity.Vertices(changes), bound=4.0)
    design = mdp.make_design(query, PRIVACY, allocation=mdp.allocations.optimal())
    assert design.flat
    assert design.exact
    assert design.gain > 1.5
    np.testing.assert_allclose(design.std[0, 0] / design.std[1, 1], 3.0, rtol=1e-3)


def test_alternatives_name_every_calibration():
    design = mdp.make_design(IDENTITY, PRIVACY)
    noise = design.alternatives()
    assert list(noise) == ["exact", "theorem2", "theorem2-corrected", "theorem2-psd"]
    assert noise["exact"] == design.rmse
    assert noise["theorem2"] > noise["theorem2-corrected"] > noise["theorem2-psd"] > 10 * noise["exact"]
    again = mdp.make_design(IDENTITY, PRIVACY, calibration="theorem2")
    assert again.alternatives()["exact"] == pytest.approx(design.rmse)
    assert again.distance < design.distance / 100


def test_a_share_that_delta_alone_covers_has_no_theorem_2():
    design = mdp.make_design(IDENTITY, mdp.Privacy(0.01, 0.1), share=0.1)
    assert list(design.alternatives()) == ["exact"]
    assert "exact" in design.explain()


def test_a_wide_kernel_needs_little_noise():
    bounds = mdp.Bounds([0, 0], [1, 1])
    for points in (None, [[0.5, 0.5]]):
        narrow, wide = (
            mdp.make_design(mdp.GramMatrix(bounds, 5, points=points, bandwidth=width), PRIVACY) for width in (1, 100)
        )
        assert wide.rmse < narrow.rmse / 100
        assert wide.exact  # against one point, the nearest and the farthest record attain the distance


def test_extreme_units_have_finite_standard_deviations():
    for size in (1e-59, 1e59):
        for query in (mdp.SecondMoment, mdp.Moments):
            design = mdp.make_design(query(mdp.Bounds([-size] * 2, [size] * 2), 10), PRIVACY)
            assert np.isfinite(design.std).all()
            assert (design.std[1:, 1:] > 0).all()


@pytest.mark.parametrize("radius", [None, 1.0])
@pytest.mark.parametrize("rotate", [False, True])
def test_the_mean_uses_its_share_of_the_privacy_loss(radius, rotate):
    bounds = mdp.Bounds([-1] * 6, [1] * 6, radius=radius)
    design = mdp.make_design(
        mdp.Moments(bounds, 100, mean_share=0.2),
        PRIVACY,
        directions=orthonormal(6) if rotate else None,
        structured=not rotate,  # their bound for rotated directions is not exact
    )
    loss = np.sqrt(2) / (100 * design.colcov.variances[0])  # of the constant alone, of sqrt(2) (a + T)/N
    assert loss / design.ideal_distance().value == pytest.approx(0.2, rel=1e-6)


def test_theorem_2_meets_its_own_condition():
    for query in (IDENTITY, mdp.SecondMoment(BOX, 100)):
        design = mdp.make_design(query, PRIVACY, allocation=mdp.allocations.binary(["b"], 0.9), calibration="theorem2")
        norms = [np.linalg.norm(1 / cov.variances) for cov in (design.rowcov, design.colcov)]
        from matrixdp.design.theorem2 import precision_budget

        budget = precision_budget(PRIVACY, query.shape, sensitivity=query.sensitivity.frobenius, gamma=query.gamma)
        assert norms[0] * norms[1] == pytest.approx(budget, rel=1e-9)


def test_a_design_explains_itself():
    text = str(mdp.make_design(IDENTITY, PRIVACY, allocation=mdp.allocations.binary(["b"], 0.9)))
    for part in ("Data set, 100 x 3", "(1, 1e-06)-DP", "replace neighbours", "one record", "exact", "binary"):
        assert part in text
    assert "b                         90.0% of the privacy loss" in text
    assert len(text.splitlines()) <= 20
    bound = str(mdp.make_design(mdp.Moments(mdp.Bounds([0], [1]), 10), PRIVACY))
    assert "an upper bound" in bound
    ball = mdp.Query((2, 2), mdp.sensitivity.FrobeniusBall(1.0), bound=1.0)
    assert "no other has less" in mdp.make_design(ball, PRIVACY).explain()
    directional = mdp.make_design(ball, PRIVACY, allocation=mdp.allocations.binary(1, 0.9)).explain()
    assert "no directional noise beats isotropic noise" in directional
    many = mdp.Identity(mdp.Bounds(0, 1, names=[f"c{i}" for i in range(12)]), 10)
    text = str(mdp.make_design(many, PRIVACY, allocation=mdp.allocations.binary(["c10", "c11"], 0.9)))
    assert "c10" in text
    assert "c11" in text
    assert "and 4 between them" in text


def test_the_text_of_a_design_makes_no_other_designs(monkeypatch):
    designs = [
        mdp.make_design(IDENTITY, PRIVACY, allocation=mdp.allocations.binary(["b"], 0.9)),
        mdp.make_design(IDENTITY, PRIVACY, calibration="theorem2"),
    ]
    monkeypatch.setattr("matrixdp.design.builder.make_design", None)
    assert all("times isotropic" not in str(design) for design in designs)
    with pytest.raises(TypeError):
        designs[0].explain()


def test_directional_noise_cannot_help_in_a_ball():
    query = mdp.Query((2, 3), mdp.sensitivity.FrobeniusBall(1.0), bound=1.0)
    iso = mdp.make_design(query, PRIVACY, allocation=mdp.allocations.isotropic())
    for theta in ([0.5, 0.3, 0.2], [0.9, 0.05, 0.05]):
        design = mdp.make_design(query, PRIVACY, allocation=mdp.allocations.shares(theta))
        assert (design.std >= iso.std * (1 - 1e-9)).all()


def test_an_identity_stays_an_identity():
    design = mdp.make_design(mdp.Identity(mdp.Bounds([0] * 3, [1, 2, 3]), 10**9), PRIVACY)
    assert design.rowcov.variances.strides == (0,)
    assert design.std.shape == (10**9, 3)
    assert design.rmse > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"allocation": "best"}, "allocation must be"),
        ({"allocation": mdp.allocations.binary("a", 0.9), "directions": np.eye(3)}, "names mean features"),
        ({"calibration": "loose"}, "calibration must be one of"),
        ({"directions": np.ones((3, 3))}, "orthonormal"),
        ({"directions": np.eye(2)}, "directions must have shape"),
        ({"share": 0.0}, "share must be"),
        ({"share": 1.5}, "share must be"),
        ({"allocation": mdp.allocations.shares([0.5, 0.5])}, "shares must be 3 numbers"),
        ({"allocation": mdp.allocations.optimal([1.0])}, "weights must be 3 numbers"),
        ({"allocation": mdp.allocations.binary(["z"], 0.9)}, "important must be among the features' names"),
        ({"allocation": mdp.allocations.binary([7], 0.9)}, "important must be among 3 directions"),
        ({"allocation": mdp.allocations.binary(["a", "b", "c"], 0.9)}, "at most 2 of 3"),
        ({"allocation": mdp.allocations.binary([], 0.9)}, "at least 1"),
    ],
)
def test_unfit_designs_are_named(options, message):
    with pytest.raises(mdp.ParameterError, match=message):
        mdp.make_design(IDENTITY, PRIVACY, **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mdp.allocations.shares([0.5, 0.4]), "sum to 1"),
        (lambda: mdp.allocations.shares([1.5, -0.5]), "positive"),
        (lambda: mdp.allocations.shares([1.0, 0.0]), "positive"),
        (lambda: mdp.allocations.shares([]), "vector"),
        (lambda: mdp.allocations.binary(["a"], 1.0), "share must be"),
        (lambda: mdp.allocations.binary(["a"], True), "share must be"),
        (lambda: mdp.allocations.optimal([1.0, np.nan]), "weights must be"),
        (lambda: mdp.make_design("identity", PRIVACY), "query must be"),
        (lambda: mdp.make_design(IDENTITY, 1.0), "privacy must be"),
        (
            lambda: mdp.design.unimodal(epsilon=1, delta=0.1, sensitivity=0, gamma=1, theta=[1.0], columns=2),
            "sensitivity",
        ),
        (lambda: mdp.design.unimodal(epsilon=1, delta=0.1, sensitivity=1, gamma=-1, theta=[1.0], columns=2), "gamma"),
        (lambda: mdp.design.unimodal(epsilon=1, delta=0.1, sensitivity=1, gamma=1, theta=[0.7], columns=2), "sum to 1"),
        (lambda: mdp.design.unimodal(epsilon=1, delta=0.1, sensitivity=1, gamma=1, theta=[1.0], columns=0), "columns"),
    ],
)
def test_unfit_parts_are_named(make, message):
    with pytest.raises(mdp.ParameterError, match=message):
        make()


def test_vertices_take_no_directions_with_an_optimal_allocation():
    query = mdp.Query((1, 2), mdp.sensitivity.Vertices([[[1.0, 0.0]], [[0.0, 1.0]]]), bound=1.0)
    with pytest.raises(mdp.ParameterError, match="must be left out"):
        mdp.make_design(query, PRIVACY, allocation=mdp.allocations.optimal(), directions=np.eye(2))
    big = mdp.Query((1, 500), mdp.sensitivity.Vertices(np.ones((1, 1, 500))), bound=1.0)
    with pytest.raises(mdp.ParameterError, match="up to 400 entries"):
        mdp.make_design(big, PRIVACY, allocation=mdp.allocations.optimal())


def test_a_design_is_sent_as_what_it_is_and_not_as_large_as_its_answer():
    import pickle

    design = mdp.make_design(mdp.Identity(mdp.Bounds([0] * 3, [1] * 3), 10**9), mdp.Privacy(1, 1e-6))
    assert design.std.shape == (10**9, 3)  # follows from the design, and is kept
    sent = pickle.dumps(design)
    assert len(sent) < 5000
    found = pickle.loads(sent)
    assert found.distance == design.distance
    assert found.rowcov.variances.strides == (0,)
    found.check()
