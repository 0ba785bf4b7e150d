"""No neighbour exceeds a claimed distance, and claims of exactness are attained."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrixdp import Bounds, Neighbours, ParameterError, SecondMoment
from matrixdp.audit import worst_record_pair as worst_pair
from matrixdp.noise import Covariance
from matrixdp.sensitivity import (
    CellChange,
    EdgeChange,
    FrobeniusBall,
    KernelChange,
    MomentsChange,
    RankOneChange,
    RecordChange,
    Vertices,
    max_quadratic,
)
from matrixdp.sensitivity import quadratic as quadratic_module
from nightly import examples

SLACK = 1 + 1e-9
SEEDS = st.integers(0, 2**32 - 1)


def orthonormal(n, rng):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def dense(factor, size):
    """A whitening factor as a matrix."""
    return factor * np.eye(size) if np.ndim(factor) == 0 else np.diag(factor) if np.ndim(factor) == 1 else factor


def noise(n, rng, rotated):
    variances = np.exp(rng.uniform(-2, 2, n))
    return Covariance.eigen(orthonormal(n, rng), variances) if rotated else Covariance.diagonal(variances)


def domain(m, rng, ball):
    halfwidths = np.exp(rng.uniform(-1, 1, m))
    return halfwidths, float(rng.uniform(0.2, 1.0) * np.linalg.norm(halfwidths)) if ball else None


@examples(40)
@given(SEEDS, st.integers(1, 6), st.booleans(), st.booleans())
def test_quadratic_maximum(seed, m, rotated, ball):
    rng = np.random.default_rng(seed)
    halfwidths, radius = domain(m, rng, ball)
    factor = noise(m, rng, rotated).whitening
    claim = max_quadratic(factor, halfwidths, radius)
    a = dense(factor, m)
    found = worst_pair(lambda x, _: np.square(x @ a.T).sum(axis=1), halfwidths, radius, rng, starts=6)
    assert found <= claim.value * SLACK
    assert claim.attained <= claim.value * SLACK
    if not ball:
        vertices = (np.array(signs) * halfwidths for signs in itertools.product([-1, 1], repeat=m))
        assert claim.value == pytest.approx(max(float(np.square(a @ v).sum()) for v in vertices), rel=1e-9)


@examples(15)
@given(SEEDS, st.integers(2, 9))
def test_certificate_holds_where_all_vertices_can_still_be_tried(seed, m):
    rng = np.random.default_rng(seed)
    halfwidths, _ = domain(m, rng, ball=False)
    factor = noise(m, rng, rotated=True).whitening
    true = max_quadratic(factor, halfwidths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quadratic_module, "ENUMERATE", 0)
        bound = max_quadratic(factor, halfwidths)
    assert true.attained <= bound.value * SLACK
    assert bound.attained <= true.value * SLACK
    assert bound.value <= 1.5708 * true.value  # pi/2, as good as the semidefinite bound is known to be


def test_certificate_in_many_dimensions_is_close_to_a_vertex():
    rng = np.random.default_rng(1)
    claim = max_quadratic(noise(60, rng, rotated=True).whitening, np.ones(60))
    assert 0.8 * claim.value < claim.attained <= claim.value


@examples(25)
@given(SEEDS, st.integers(1, 5), st.booleans(), st.booleans())
def test_one_record_of_a_data_set(seed, m, rotated, ball):
    rng = np.random.default_rng(seed)
    halfwidths, radius = domain(m, rng, ball)
    rows, columns = noise(3, rng, rotated), noise(m, rng, rotated)
    claim = RecordChange(halfwidths, radius).distance(rows, columns)
    a, b = dense(rows.whitening, 3), dense(columns.whitening, m)

    def distance(x, y):
        changes = np.eye(3)[:, None, :, None] * (x - y)[:, None, :]  # of each row, of shape (3, k, 3, m)
        return np.linalg.norm(a @ changes @ b.T, axis=(2, 3)).max(axis=0)

    assert worst_pair(distance, halfwidths, radius, rng) <= claim.value * SLACK


def outer(records):
    """``x x'`` for each record, of shape (k, m, m)."""
    return records[:, :, None] * records[:, None, :]


def moment_distance(covariance, records, augment):
    size = covariance.size
    a = dense(covariance.whitening, size)

    def distance(x, y):
        u, v = (np.insert(z, 0, 1.0, axis=1) if augment else z for z in (x, y))
        return np.linalg.norm(a @ (outer(u) - outer(v)) @ a.T, axis=(1, 2)) / records

    return distance


@examples(25)
@given(SEEDS, st.integers(1, 5), st.booleans(), st.booleans())
def test_one_record_of_a_second_moment(seed, m, rotated, ball):
    rng = np.random.default_rng(seed)
    halfwidths, radius = domain(m, rng, ball)
    covariance = noise(m, rng, rotated)
    claim = RankOneChange(halfwidths, 7, radius).distance(covariance, covariance)
    found = worst_pair(moment_distance(covariance, 7, augment=False), halfwidths, radius, rng)
    assert found <= claim.value * SLACK
    assert claim.attained <= claim.value * SLACK


def test_one_record_of_a_second_moment_is_attained_when_the_parts_split_in_halves():
    covariance = Covariance.diagonal([1.0, 4.0, 2.0, 3.0, 6.0])
    halfwidths = np.sqrt(np.array([3.0, 4.0, 2.0, 3.0, 12.0]))  # parts 3, 1, 1, 1, 2
    claim = RankOneChange(halfwidths, 10).distance(covariance, covariance)
    assert claim.exact
    assert claim.value == pytest.approx(np.sqrt(2) * 8 / 10)


def test_one_feature_alone_is_bounded_but_not_attained():
    covariance = Covariance.diagonal([1.0])
    claim = RankOneChange(np.ones(1), 1).distance(covariance, covariance)
    assert not claim.exact
    assert claim.attained == pytest.approx(1.0)


@examples(25)
@given(SEEDS, st.integers(2, 5))
def test_box_about_the_origin(seed, m):
    """Records in [0, c]: the supremum is q/N, and no pair exceeds it."""
    rng = np.random.default_rng(seed)
    width = np.exp(rng.uniform(-1, 1, m))
    query = SecondMoment(Bounds(np.zeros(m), width), records=5, centre=np.zeros(m))
    covariance = noise(m, rng, rotated=False)
    claim = query.sensitivity.distance(covariance, covariance)
    assert claim.exact
    found = worst_pair(moment_distance(covariance, 5, augment=False), width, None, rng, low=np.zeros(m))
    assert 0.999 * claim.value <= found * SLACK <= claim.value * SLACK**2


def test_nothing_is_claimed_to_be_attained_off_the_midpoint():
    unit = Covariance.identity(2)
    for lower, upper in ((-0.1, 1.0), (5.0, 6.0)):
        change = SecondMoment(Bounds([lower] * 2, [upper] * 2), 100, centre=[0, 0]).sensitivity
        assert not change.distance(unit, unit).exact
    rotated = noise(2, np.random.default_rng(0), rotated=True)
    origin = SecondMoment(Bounds([0] * 2, [1] * 2), 100, centre=[0, 0]).sensitivity
    assert not origin.distance(rotated, rotated).exact


def test_sums_of_many_small_parts_are_rounded_up():
    from fractions import Fraction

    sizes = np.full(100_001, 1.09e-16)
    sizes[0] = 1.0
    halfwidths = np.sqrt(sizes)
    exact = sum(Fraction(float(h)) ** 2 for h in halfwidths)
    assert Fraction(max_quadratic(1.0, halfwidths, 2.0).value) >= exact


def test_vertices_under_cancellation():
    from fractions import Fraction

    rng = np.random.default_rng(0)
    for _ in range(20):
        directions = orthonormal(4, rng)
        covariance = Covariance.eigen(directions, [1e-30, 1.0, 1.0, 1.0])
        change = np.outer(directions[:, 1], [1.0])
        claim = Vertices(change[None]).distance(covariance, Covariance.identity(1))
        a = covariance.whitening
        rows = [sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(r, change[:, 0], strict=True)) for r in a]
        assert float(sum(v * v for v in rows)) ** 0.5 <= claim.value * SLACK


def test_the_midpoint_needs_root_eight_times_less_noise_than_the_origin():
    bounds, unit = Bounds([0, 0], [1, 1]), Covariance.identity(2)
    middle = SecondMoment(bounds, records=1).sensitivity.distance(unit, unit).value
    origin = SecondMoment(bounds, records=1, centre=[0, 0]).sensitivity.distance(unit, unit).value
    assert origin / middle == pytest.approx(np.sqrt(8))


@examples(30)
@given(SEEDS, st.integers(1, 4), st.booleans(), st.booleans(), st.floats(-3, 3))
def test_one_record_of_moments(seed, m, rotated, ball, log_constant):
    rng = np.random.default_rng(seed)
    halfwidths, radius = domain(m, rng, ball)
    inner = noise(m, rng, rotated)
    variances = np.concatenate([[np.exp(log_constant)], inner.variances])
    directions = None
    if rotated:
        directions = np.eye(m + 1)
        directions[1:, 1:] = inner.directions
    covariance = Covariance(variances, directions)
    claim = MomentsChange(halfwidths, 3, radius).distance(covariance, covariance)
    found = worst_pair(moment_distance(covariance, 3, augment=True), halfwidths, radius, rng)
    assert found <= claim.value * SLACK
    assert claim.attained <= claim.value * SLACK


def test_moments_are_tight_on_both_sides_of_the_case_distinction():
    for constant in (0.1, 10.0):  # a > T, a < T
        covariance = Covariance.diagonal([constant, 1.0, 1.0])
        claim = MomentsChange(np.ones(2), 1).distance(covariance, covariance)
        found = worst_pair(
            moment_distance(covariance, 1, augment=True), np.ones(2), None, np.random.default_rng(0), starts=30
        )
        assert 0.99 * claim.value <= found <= claim.value * SLACK


def test_moments_with_a_constant_that_is_not_apart_are_refused():
    covariance = Covariance.eigen(orthonormal(3, np.random.default_rng(0)), np.ones(3) + np.arange(3))
    with pytest.raises(ParameterError, match="leave the constant alone"):
        MomentsChange(np.ones(2), 1).distance(covariance, covariance)


@examples(20)
@given(SEEDS, st.integers(1, 4), st.booleans(), st.booleans())
def test_an_added_record(seed, m, rotated, ball):
    rng = np.random.default_rng(seed)
    halfwidths, radius = domain(m, rng, ball)
    covariance = noise(m, rng, rotated)
    claim = RankOneChange(halfwidths, 4, radius, Neighbours.ADD_REMOVE).distance(covariance, covariance)
    a = dense(covariance.whitening, m)
    found = worst_pair(
        lambda x, _: np.linalg.norm(a @ outer(x) @ a.T, axis=(1, 2)) / 4, halfwidths, radius, rng, starts=6
    )
    assert found <= claim.value * SLACK
    if not ball:
        assert claim.exact


@examples(20)
@given(SEEDS, st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_frobenius_ball_is_exact(seed, m, n, rotated):
    rng = np.random.default_rng(seed)
    rows, columns = noise(m, rng, rotated), noise(n, rng, rotated)
    claim = FrobeniusBall(2.5).distance(rows, columns)
    a, b = dense(rows.whitening, m), dense(columns.whitening, n)
    u, v = np.linalg.svd(a)[2][0], np.linalg.svd(b)[2][0]
    assert np.linalg.norm(a @ (2.5 * np.outer(u, v)) @ b.T) == pytest.approx(claim.value, rel=1e-9)


@examples(20)
@given(SEEDS, st.integers(2, 6), st.booleans(), st.sampled_from(["adjacency", "laplacian"]))
def test_one_edge(seed, n, rotated, matrix):
    rng = np.random.default_rng(seed)
    covariance = noise(n, rng, rotated)
    claim = EdgeChange(matrix, 0.7).distance(covariance, covariance)
    a = dense(covariance.whitening, n)
    eye = np.eye(n)
    found = 0.0
    for i, j in itertools.combinations(range(n), 2):
        change = np.outer(eye[i], eye[j]) + np.outer(eye[j], eye[i])
        if matrix == "laplacian":
            change = np.outer(eye[i] - eye[j], eye[i] - eye[j])
        found = max(found, float(np.linalg.norm(a @ (0.7 * change) @ a.T)))
    assert found == pytest.approx(claim.value, rel=1e-9)
    assert found <= claim.value * SLACK


@examples(20)
@given(SEEDS, st.integers(1, 3), st.integers(2, 4), st.booleans(), st.sampled_from(list(Neighbours)))
def test_one_cell_of_a_table(seed, m, n, rotated, neighbours):
    rng = np.random.default_rng(seed)
    rows, columns = noise(m, rng, rotated), noise(n, rng, rotated)
    claim = CellChange(neighbours).distance(rows, columns)
    a, b = dense(rows.whitening, m), dense(columns.whitening, n)
    cells = [a @ np.outer(e, f) @ b.T for e in np.eye(m) for f in np.eye(n)]
    if neighbours is Neighbours.REPLACE:
        found = max(float(np.linalg.norm(x - y)) for x, y in itertools.combinations(cells, 2))
    else:
        found = max(float(np.linalg.norm(x)) for x in cells)
    assert found <= claim.value * SLACK
    if not rotated:
        assert found == pytest.approx(claim.value, rel=1e-9)


@examples(20)
@given(SEEDS, st.integers(2, 5), st.booleans())
def test_one_record_of_a_kernel_matrix(seed, n, rotated):
    rng = np.random.default_rng(seed)
    covariance = noise(n, rng, rotated)
    claim = KernelChange(n, 1.0).distance(covariance, covariance)
    a = dense(covariance.whitening, n)
    found = 0.0
    for r in range(n):
        for signs in itertools.product([-1.0, 1.0], repeat=n - 1):
            change = np.zeros((n, n))
            change[r, np.arange(n) != r] = signs
            found = max(found, float(np.linalg.norm(a @ (change + change.T) @ a.T)))
    assert found <= claim.value * SLACK
    if not rotated:
        assert found == pytest.approx(claim.value, rel=1e-9)


@examples(20)
@given(SEEDS, st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_vertices_and_their_mixtures(seed, m, n, rotated):
    rng = np.random.default_rng(seed)
    changes = rng.standard_normal((4, m, n))
    rows, columns = noise(m, rng, rotated), noise(n, rng, rotated)
    claim = Vertices(changes).distance(rows, columns)
    a, b = dense(rows.whitening, m), dense(columns.whitening, n)
    mixtures = [*changes, *np.einsum("kl,lmn->kmn", rng.dirichlet(np.ones(4), 50), changes)]
    found = max(float(np.linalg.norm(a @ d @ b.T)) for d in mixtures)
    assert found == pytest.approx(claim.value, rel=1e-9)
    assert found <= claim.value * SLACK


def test_a_claim_that_is_too_small_is_found():
    """A broken variant that tries corners only misses part of the supremum, and the search finds it."""
    rng = np.random.default_rng(3)
    halfwidths = np.array([1.0, 1.0, 1.0])
    covariance = Covariance.identity(3)
    naive = 2 * 3.0 / 3 / 1.01  # what corners of two signs in all coordinates give
    found = worst_pair(moment_distance(covariance, 1, augment=False), halfwidths, None, rng)
    assert found > naive


@pytest.mark.parametrize("changes", [np.zeros((1, 2, 2)), np.ones((2, 2)), [[[np.nan]]], []])
def test_unfit_vertices_are_named(changes):
    with pytest.raises(ParameterError, match="changes must"):
        Vertices(changes)


@pytest.mark.parametrize("radius", [0, -1, np.inf, np.nan])
def test_unfit_sensitivities_are_named(radius):
    with pytest.raises(ParameterError, match="radius"):
        FrobeniusBall(radius)
