"""The squares of features as additional coordinates: maps, estimates and error bars."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.noise_law import SidesLaw
from matrixdp.noise import Covariance, MatrixGaussian, Squares
from matrixdp.noise.matrix import triangle_to_vector

PRIVACY = mdp.Privacy(1.0, 1e-6)


def rotation(m, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((m, m)))[0]


def symmetric(m, rng):
    matrix = rng.standard_normal((m, m))
    return matrix + matrix.T


def designs():
    for neighbours in ("replace", "add-remove"):
        for directions in (None, rotation(4)):
            bounds = mdp.Bounds([-1, -2, -3, -0.1], [1, 2, 3, 0.1])
            shares = mdp.allocations.shares([0.4, 0.3, 0.2, 0.1])
            for query in (
                mdp.SecondMoment(bounds, 50, neighbours=neighbours),
                mdp.Moments(bounds, 50, neighbours=neighbours),
            ):
                yield mdp.make_design(query, PRIVACY, allocation=shares, directions=directions)


def describe(design):
    basis = "standard" if design.directions is None else "rotated"
    return f"{type(design.query).__name__}, {design.neighbours}, {basis}"


def coordinate_map(design):
    """The linear map from the lower triangle of the answer to the coordinates, as a matrix."""
    m = design.query.shape[0]
    rows, columns = np.tril_indices(m)
    found = []
    for i, j in zip(rows, columns, strict=True):
        unit = np.zeros((m, m))
        unit[i, j] = unit[j, i] = 1.0
        found.append(design.structure.whiten(design.noise, unit))
    return np.array(found).T


def estimate_covariance(design):
    """Covariance of the estimate of the lower triangle: ``(M'M)^-1`` for unit noise on the coordinates."""
    mapping = coordinate_map(design)
    return np.linalg.inv(mapping.T @ mapping)


@pytest.mark.parametrize("design", list(designs()), ids=describe)
def test_the_estimate_is_generalised_least_squares(design):
    rng = np.random.default_rng(1)
    structure, size = design.structure, design.query.shape[0]
    assert isinstance(structure, Squares)
    answer = symmetric(size, rng)
    exact = structure.combine(design.noise, structure.whiten(design.noise, answer))
    np.testing.assert_allclose(exact, answer, rtol=1e-9, atol=1e-9)
    mapping = coordinate_map(design)
    noisy = rng.standard_normal(len(mapping))
    wanted = np.linalg.lstsq(mapping, noisy, rcond=None)[0]
    found = structure.combine(design.noise, noisy)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(triangle_to_vector(found, 1.0), wanted, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("design", list(designs()), ids=describe)
def test_standard_deviations_and_covariances_follow_from_the_map(design):
    covariance = estimate_covariance(design)
    size, m = design.query.shape[0], design.query.features
    std = design.std.copy()
    if design.query.public is not None:
        std[0, 0] = np.sqrt(covariance[0, 0])  # the estimate has noise there until it is replaced by the public value
    np.testing.assert_allclose(triangle_to_vector(std, 1.0), np.sqrt(np.diagonal(covariance)), rtol=1e-9)
    place = {pair: k for k, pair in enumerate(zip(*np.tril_indices(size), strict=True))}

    def covariance_of(i, j, k):
        first, second = sorted((i + size - m, j + size - m), reverse=True), (k + size - m, k + size - m)
        return covariance[place[tuple(first)], place[second]]

    squares = design.structure.diagonal_covariance(design.colcov)
    law, first = SidesLaw(design), size - m
    for i in range(m):
        for j in range(m):
            assert squares[i, j] == pytest.approx(covariance_of(i, i, j), rel=1e-8, abs=1e-12 * squares.max())
            entries = law.covariance(first + i, first + j, first + j, first + j)
            assert entries == pytest.approx(covariance_of(i, j, j), rel=1e-8, abs=1e-12 * squares.max())


@pytest.mark.parametrize("design", list(designs()), ids=describe)
def test_variances_along_the_directions(design):
    covariance, m = estimate_covariance(design), design.query.features
    basis = np.eye(m) if design.directions is None else design.directions
    found = design.structure.direction_variances(design.colcov)
    for k in range(m):
        w = np.concatenate([np.zeros(design.query.shape[0] - m), basis[:, k]])
        form = triangle_to_vector(np.outer(w, w), 2.0)  # w' Z w as a function of the lower triangle
        assert found[k] == pytest.approx(form @ covariance @ form, rel=1e-8)


@pytest.mark.parametrize("design", list(designs()), ids=describe)
def test_no_coordinate_exceeds_its_bound(design):
    rng = np.random.default_rng(2)
    bound = design.structure.largest(design.noise, design.query.magnitude)
    for _ in range(50):
        signs = np.sign(symmetric(design.query.shape[0], rng))
        found = design.structure.whiten(design.noise, signs * design.query.magnitude)
        assert (np.abs(found) <= bound * (1 + 1e-12)).all()


def test_a_design_with_squares_is_stored_and_read_bit_by_bit():
    for design in designs():
        release = design.release(np.zeros((50, 4)))
        again = mdp.Release.from_json(release.to_json())
        assert again.to_json() == release.to_json()
        np.testing.assert_array_equal(again.std, release.std)


@pytest.mark.parametrize(
    "fields",
    [
        (np.ones(2), np.ones(3), 0.1),
        (np.ones(2), np.array([1.0, np.nan]), 0.1),
        (np.ones(2), np.array([1.0, -1.0]), 0.1),
        (np.ones((2, 2)), np.ones(2), 0.1),
        (np.ones(2), np.ones(2), -0.1),
        (np.ones(2), np.ones(2), np.inf),
        (np.ones(2), np.ones(2), 1),
        (np.ones(0), np.ones(0), 0.1),
        ([1.0], np.ones(1), 0.1),
    ],
)
def test_squares_are_checked(fields):
    with pytest.raises(mdp.ParameterError, match="squares"):
        Squares(*fields)


def test_squares_fit_with_or_without_a_constant():
    squares = Squares(np.ones(3), np.ones(3), 0.1)
    assert [squares.fits((size, size)) for size in (2, 3, 4, 5)] == [False, True, True, False]


def test_scaling_the_noise_scales_the_map():
    design = next(iter(designs()))
    sides = MatrixGaussian(design.rowcov.scaled(4.0), design.colcov.scaled(4.0))
    answer = symmetric(4, np.random.default_rng(3))
    scaled = design.structure.scaled(4.0).whiten(sides, answer)
    np.testing.assert_allclose(scaled, design.structure.whiten(design.noise, answer) / 4, rtol=1e-12)
    assert isinstance(design.colcov, Covariance)
