"""Distances are upper bounds in exact arithmetic: for the floats of the noise, and to the last digit.

The searches of `tests/property/test_sensitivity.py` allow for rounding. Here distances are computed with fractions, so
that a bound which is too small by one unit in the last place is found.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.audit import worst_record_pair
from matrixdp.privacy import Neighbours
from matrixdp.sensitivity import (
    CellChange,
    EdgeChange,
    FrobeniusBall,
    KernelChange,
    KernelRowChange,
    MomentsChange,
    RankOneChange,
    RecordChange,
    Vertices,
    max_quadratic,
)

CASES = range(200)
ADD = Neighbours.ADD_REMOVE


def stacked(distance):
    """A distance of two records as one of k pairs of them."""
    return np.vectorize(distance, signature="(m),(m)->()")


def exact(values):
    """Array of fractions."""
    return np.vectorize(lambda value: Fraction(float(value)), otypes=[object])(values)


def dense(factor, size):
    factor = np.asarray(factor, float)
    return exact(factor * np.eye(size) if factor.ndim == 0 else np.diag(factor) if factor.ndim == 1 else factor)


def square_norm(left, change, right):
    """Squared Frobenius norm of ``left change right'``, exactly."""
    return sum(value**2 for value in (left @ change @ right.T).ravel())


def covers(claim, square, records=1):
    """Whether a claimed distance is at least the root of a square."""
    return (Fraction(claim.value) * records) ** 2 >= square


def diagonal(rng, size):
    return mdp.noise.Covariance.diagonal(10.0 ** rng.uniform(-3, 3, size))


def rotated(rng, size):
    return mdp.noise.Covariance.eigen(
        np.linalg.qr(rng.standard_normal((size, size)))[0], 10.0 ** rng.uniform(-1, 1, size)
    )


def corners(half):
    return [exact(np.array(signs) * half) for signs in itertools.product([-1.0, 1.0], repeat=len(half))]


@pytest.mark.parametrize("noise", [diagonal, rotated])
def test_the_longest_record_is_not_longer_than_claimed(noise):
    for seed in CASES[: 60 if noise is rotated else None]:
        rng = np.random.default_rng(seed)
        size = int(rng.integers(1, 5))
        half, factor = 10.0 ** rng.uniform(-3, 3, size), noise(rng, size).whitening
        longest = max(square_norm(dense(factor, size), x[:, None], exact(np.eye(1))) for x in corners(half))
        assert Fraction(max_quadratic(factor, half).value) * (1 + Fraction(1, 2**46)) >= longest
        if noise is rotated:  # a diagonal one is rounded up by the sets that use it
            assert Fraction(max_quadratic(factor, half).value) >= longest


def test_the_longest_record_of_a_ball_in_a_box_is_not_longer_than_claimed():
    """The largest gains are filled first; what is left of the radius goes to the next."""
    for seed in CASES:
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 6))
        half, factor = 10.0 ** rng.uniform(-1, 1, size), 10.0 ** rng.uniform(-1, 1, size)
        radius = float(rng.uniform(0.3, 1) * np.linalg.norm(half))
        left, total = Fraction(radius) ** 2, Fraction(0)
        for i in np.argsort(-factor):
            part = min(Fraction(half[i]) ** 2, left)
            total, left = total + Fraction(factor[i]) ** 2 * part, left - part
        assert Fraction(max_quadratic(factor, half, radius).value) >= total


def test_a_certificate_of_many_features_holds_to_the_last_digit():
    """For a factor of rank one the longest record is known: all signs agree with the factor's."""
    for seed in CASES[:40]:
        rng = np.random.default_rng(seed)
        row, half = rng.standard_normal((1, 20)), 10.0 ** rng.uniform(-1, 1, 20)
        longest = sum(abs(a) * b for a, b in zip(exact(row)[0], exact(half), strict=True)) ** 2
        assert Fraction(max_quadratic(row, half).value) >= longest


def test_a_replaced_record_of_a_data_set():
    for seed in CASES:
        rng = np.random.default_rng(seed)
        size = int(rng.integers(1, 6))
        half, columns = 10.0 ** rng.uniform(-3, 3, size), diagonal(rng, size)
        rows = mdp.noise.Covariance.identity(3, float(rng.uniform(0.5, 2)))
        claim = RecordChange(half).distance(rows, columns)
        change = 2 * exact(half)[None]
        assert covers(claim, square_norm(dense(rows.whitening, 1), change, dense(columns.whitening, size)))


def test_an_added_record_of_a_second_moment_and_of_moments():
    for seed in CASES:
        rng = np.random.default_rng(seed)
        size, records = int(rng.integers(1, 5)), int(rng.integers(1, 9))
        half = 10.0 ** rng.uniform(-2, 2, size)
        for kind, record in ((RankOneChange, half), (MomentsChange, np.concatenate([[1.0], half]))):
            covariance = diagonal(rng, len(record))
            claim = kind(half, records, None, ADD).distance(covariance, covariance)
            factor, x = dense(covariance.whitening, len(record)), exact(record)
            assert covers(claim, square_norm(factor, np.outer(x, x), factor), records)


def test_a_replaced_record_of_a_second_moment_with_two_covariances():
    """Different noise on both sides: opposite signs of a product attain twice the norm of one."""
    for seed in CASES[:10]:
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 4))
        half, rows, columns = 10.0 ** rng.uniform(-1, 1, size), diagonal(rng, size), diagonal(rng, size)
        left, right = np.diag(rows.variances**-0.5), np.diag(columns.variances**-0.5)
        for neighbours in Neighbours:
            claim = RankOneChange(half, 3, None, neighbours).distance(rows, columns).value

            def apart(x, y, add=neighbours is ADD, left=left, right=right):
                change = np.outer(x, x) - (0 if add else np.outer(y, y))
                return float(np.linalg.norm(left @ change @ right.T)) / 3

            assert worst_record_pair(stacked(apart), half, None, rng, starts=6) <= claim * (1 + 1e-12)


@pytest.mark.parametrize("noise", [diagonal, rotated])
def test_a_replaced_record_of_a_second_moment(noise):
    """All pairs of corners; of two features with equal noise, one pair attains sqrt(2) times the norm of one."""
    for seed in CASES[:40]:
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 4))
        half, side = 10.0 ** rng.uniform(-1, 1, size), noise(rng, size)
        white = dense(side.whitening, size)
        claim = RankOneChange(half, 3).distance(side, side)
        for signs in itertools.combinations(itertools.product([1, -1], repeat=size), 2):
            x, y = exact(half * signs[0]), exact(half * signs[1])
            assert covers(claim, square_norm(white, np.outer(x, x) - np.outer(y, y), white), 3)
    claim = RankOneChange(np.ones(2), 1).distance(mdp.noise.Covariance.identity(2), mdp.noise.Covariance.identity(2))
    assert claim.value**2 == pytest.approx(8)
    assert covers(claim, 8)


def test_the_factor_for_two_covariances_is_needed():
    """One side sees the first feature only, the other the second: the product x1 x2 changes its sign."""
    rows, columns = mdp.noise.Covariance.diagonal([1.0, 1e12]), mdp.noise.Covariance.diagonal([1e12, 1.0])
    claim = RankOneChange(np.ones(2), 1).distance(rows, columns).value
    whiten = [np.diag(c.variances**-0.5) for c in (rows, columns)]
    change = np.outer([1, 1], [1, 1]) - np.outer([1, -1], [1, -1])
    found = float(np.linalg.norm(whiten[0] @ change @ whiten[1].T))
    assert found <= claim
    assert found > claim / 2 * (1 + 1e-3)


@pytest.mark.parametrize("noise", [diagonal, rotated])
@pytest.mark.parametrize("matrix", ["adjacency", "laplacian"])
def test_one_edge(noise, matrix):
    for seed in CASES[:60]:
        rng = np.random.default_rng(seed)
        size, weight = int(rng.integers(2, 4)), float(10.0 ** rng.uniform(-2, 2))
        covariance = noise(rng, size)
        claim = EdgeChange(matrix, weight).distance(covariance, covariance)
        factor = dense(covariance.whitening, size)
        for i, j in itertools.combinations(range(size), 2):
            change = exact(np.zeros((size, size)))
            change[i, j] = change[j, i] = Fraction(weight)
            if matrix == "laplacian":
                change[i, i] = change[j, j] = -Fraction(weight)
            assert covers(claim, square_norm(factor, change, factor))


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_one_cell(neighbours):
    for seed in CASES:
        rng = np.random.default_rng(seed)
        rows, columns = diagonal(rng, 2), diagonal(rng, 3)
        claim = CellChange(neighbours).distance(rows, columns)
        left, right = dense(rows.whitening, 2), dense(columns.whitening, 3)
        cells = list(itertools.product(range(2), range(3)))
        for first, second in itertools.combinations(cells, 2):
            change = exact(np.zeros((2, 3)))
            change[first] = Fraction(1)
            if neighbours is not ADD:
                change[second] = Fraction(-1)
            assert covers(claim, square_norm(left, change, right))


def test_one_cell_with_rotated_noise():
    """Two cells whose noise is correlated can be further apart than two that are independent."""
    for seed in CASES[:60]:
        rng = np.random.default_rng(seed)
        rows, columns = rotated(rng, 2), rotated(rng, 2)
        claim = CellChange().distance(rows, columns).value
        left, right = rows.whitening, columns.whitening
        cells = [np.outer(e, f) for e in np.eye(2) for f in np.eye(2)]
        found = max(float(np.linalg.norm(left @ (a - b) @ right.T)) for a, b in itertools.combinations(cells, 2))
        assert found <= claim


def test_one_cell_of_two_that_are_nearly_one_direction():
    """With strongly correlated noise the difference of two cells has nearly twice the norm of either."""
    directions = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    columns = mdp.noise.Covariance.eigen(directions, [1e6, 1e-6])
    claim = CellChange().distance(mdp.noise.Covariance.identity(1), columns).value
    found = float(np.linalg.norm(np.array([[1.0, -1.0]]) @ columns.whitening.T))
    assert found <= claim
    assert found > 1.9 * claim / 2


@pytest.mark.parametrize("noise", [diagonal, rotated])
def test_a_change_of_bounded_norm(noise):
    for seed in CASES:
        rng = np.random.default_rng(seed)
        rows, columns, radius = noise(rng, 3), noise(rng, 2), float(10.0 ** rng.uniform(-2, 2))
        claim = FrobeniusBall(radius).distance(rows, columns)
        left, right = dense(rows.whitening, 3), dense(columns.whitening, 2)
        u, v = (np.linalg.svd(np.atleast_2d(np.asarray(f, float)))[2][0] for f in (left, right))
        u, v = exact(u), exact(v)
        square = square_norm(left, np.outer(u, v), right) / (sum(u**2) * sum(v**2))
        assert covers(claim, square * Fraction(radius) ** 2)


def test_one_record_of_a_kernel_matrix():
    for seed in CASES:
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 6))
        covariance = diagonal(rng, size)
        claim = KernelChange(size, 1.0).distance(covariance, covariance)
        p = exact(np.asarray(dense(covariance.whitening, size).diagonal(), float)) ** 2
        for r in range(size):
            assert covers(claim, 2 * p[r] * (sum(p) - p[r]))


def test_vertices():
    for seed in CASES[:60]:
        rng = np.random.default_rng(seed)
        changes = rng.standard_normal((3, 3, 2)) * 10.0 ** rng.uniform(-2, 2, (3, 1, 1))
        rows, columns = rotated(rng, 3), rotated(rng, 2)
        claim = Vertices(changes).distance(rows, columns)
        left, right = dense(rows.whitening, 3), dense(columns.whitening, 2)
        assert all(covers(claim, square_norm(left, exact(change), right)) for change in changes)


def test_vertices_whose_products_cancel():
    """Noise with nearly all variance in one direction: products are large and their sums are small."""
    for seed in CASES[:60]:
        rng = np.random.default_rng(seed)
        directions = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        covariance = mdp.noise.Covariance.eigen(directions, [1e-16, 1e20, 1e20])
        changes = (directions[:, 1:] @ rng.standard_normal((2, 1)))[None]  # no part along the precise direction
        claim = Vertices(changes).distance(covariance, mdp.noise.Covariance.identity(1))
        assert covers(claim, square_norm(dense(covariance.whitening, 3), exact(changes[0]), exact(np.eye(1))))


def test_units_of_the_noise_do_not_matter():
    """A distance is a ratio: other units of noise on either side change it by their factors."""
    rows, columns = mdp.noise.Covariance.diagonal([1.0, 2.0]), mdp.noise.Covariance.diagonal([3.0, 0.5, 1.0])
    for a, b in ((2.0**-40, 1.0), (1.0, 2.0**60), (2.0**30, 2.0**-20)):
        for change in (RecordChange(np.ones(3)), FrobeniusBall(1.0), CellChange()):
            plain = change.distance(rows, columns)
            scaled = change.distance(rows.scaled(a**2), columns.scaled(b**2))
            assert scaled.value == pytest.approx(plain.value / a / b, rel=1e-12)


def test_records_of_one_sign_with_rotated_noise():
    """Whitened records of one sign can point away from each other: noise that is larger along (1, 1)."""
    directions = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    for ratio in (2.0, 3.0, 5.0):
        covariance = mdp.noise.Covariance.eigen(directions, [ratio, 1.0])
        claim = RankOneChange(np.ones(2), 1, None, Neighbours.REPLACE, one_signed=True)
        a = covariance.whitening

        def apart(x, y, a=a):
            return float(np.linalg.norm(a @ (np.outer(x, x) - np.outer(y, y)) @ a.T))

        found = worst_record_pair(stacked(apart), np.ones(2), None, np.random.default_rng(0), low=np.zeros(2), starts=6)
        assert found <= claim.distance(covariance, covariance).value


def test_an_edge_whose_products_cancel():
    """Noise that is precise along (1, 1) alone: what an edge changes is small beside the precisions of its nodes."""
    for seed in CASES:
        rng = np.random.default_rng(seed)
        turn = np.pi / 4 + 1e-9 * rng.standard_normal()
        directions = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        covariance = mdp.noise.Covariance.eigen(directions, [1e-12, float(rng.uniform(0.5, 2))])
        factor = dense(covariance.whitening, 2)
        claim = EdgeChange("laplacian", 1.0).distance(covariance, covariance)
        assert covers(claim, square_norm(factor, exact(np.array([[1.0, -1.0], [-1.0, 1.0]])), factor))


@pytest.mark.parametrize("error", [1e-3, 0.1])
def test_an_ellipsoid_that_is_known_up_to_an_error(error):
    """The largest change is that of the true ellipsoid, each entry of which may be larger by the error."""
    p, unit = 4, mdp.noise.Covariance.identity(4)
    change = KernelRowChange(np.full(p, 10.0), np.eye(p), np.zeros(p), error, np.zeros((2, p)))
    largest = 1 + p * Fraction(error)  # eigenvalue of the identity plus a matrix of errors
    assert covers(change.distance(mdp.noise.Covariance.identity(1), unit), largest)
