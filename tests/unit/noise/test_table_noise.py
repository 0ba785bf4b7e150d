"""The noise of a table: distinct numbers, zeros, least squares and error bars."""

import itertools

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise.table_noise import TableLayout, TableNoise

PRIVACY = mdp.Privacy(1.0, 1e-6)
TABLE = mdp.Columns(
    [
        mdp.Number("x", -1, 3, missing=True),
        mdp.Category("c", ["a", "b", "c"]),
        mdp.Number("y", 0, 10),
        mdp.YesNo("g"),
    ]
)


def designs():
    for by, neighbours in itertools.product([(), ("g",)], ["replace", "add-remove"]):
        query = mdp.TableMoments(TABLE, 50, by, neighbours=neighbours, importance={"y": 3.0})
        yield mdp.make_design(query, PRIVACY)
    yield mdp.make_design(mdp.TableMoments(TABLE.without(["x", "y"]), 50), PRIVACY)


def describe(design):
    return f"{design.neighbours}, {design.query.groups}, {len(design.query.columns.names)}"


DESIGNS = pytest.mark.parametrize("design", list(designs()), ids=describe)


def numbers_of(query):
    """Each distinct number of the answer as a matrix of its copies; brute force on random records."""
    p = query.layout.size
    rng = np.random.default_rng(0)
    rows = [
        (
            None if rng.random() < 0.3 else 3 * rng.random(),
            "abc"[rng.integers(3)],
            10 * rng.random(),
            rng.random() < 0.5,
        )
        for _ in range(60)
    ]
    columns = list(zip(*rows, strict=True))
    used = {name: columns[TABLE.names.index(name)] for name in query.columns.names}
    answers = []
    for i in range(60):
        one = mdp.TableMoments(query.columns, 1, query.by)
        answers.append(one.evaluate({k: [v[i]] for k, v in used.items()}, clip=True, missing="error"))
    stacked = np.array(answers).reshape(60, query.groups, p, p).sum(axis=1)
    return stacked.reshape(60, -1).T.reshape(p, p, 60)


@DESIGNS
def test_equal_entries_are_one_number_and_zeros_are_public(design):
    layout = design.query.layout
    entries = numbers_of(design.query)
    where = layout.number_of
    for i, j in np.ndindex(where.shape):
        assert (where[i, j] < 0) == (not entries[i, j].any())
    for first, second in itertools.combinations(np.ndindex(where.shape), 2):
        if where[first] >= 0 and where[second] >= 0:
            assert (where[first] == where[second]) == np.array_equal(entries[first], entries[second])
    rows, columns = layout.representatives
    assert where[rows, columns].tolist() == list(range(where.max() + 1))


def coordinate_map(design):
    """From the distinct numbers of one group to the coordinates of that group."""
    query, noise = design.query, design.structure
    p = query.layout.size
    found = []
    for number in range(query.layout.number_of.max() + 1):
        unit = np.zeros((query.groups, p, p))
        unit[0] = query.layout.number_of == number
        found.append(noise.whiten(design.noise, unit.reshape(-1, p)).reshape(query.groups, -1)[0])
    return np.array(found).T


@DESIGNS
def test_whitening_gives_the_weighted_norm_and_the_squares(design):
    query, noise = design.query, design.structure
    p, rng = query.layout.size, np.random.default_rng(1)
    numbers = rng.standard_normal((query.groups, query.layout.number_of.max() + 1))
    if not noise.counted:
        numbers[:, 0] = 0.0  # does not change
    where = query.layout.number_of
    change = np.where(where >= 0, numbers[:, np.maximum(where, 0)], 0.0)
    v = noise.weights * numbers[:, query.layout.squares]
    wanted = (np.multiply.outer(noise.scales, noise.scales) * change**2).sum()
    wanted += (noise.strengths * v**2).sum() - noise.loss * (v.sum(axis=1) ** 2).sum()
    found = np.square(noise.whiten(design.noise, change.reshape(-1, p))).sum()
    assert found == pytest.approx(wanted, rel=1e-12)


@DESIGNS
def test_the_estimate_is_generalised_least_squares(design):
    query, noise = design.query, design.structure
    mapping, drawn = coordinate_map(design), slice(0 if noise.counted else 1, None)
    rng = np.random.default_rng(2)
    noisy = rng.standard_normal((query.groups, len(mapping)))
    found = noise.combine(design.noise, noisy.ravel()).reshape(query.groups, *query.layout.number_of.shape)
    wanted = np.linalg.lstsq(mapping[:, drawn], noisy.T, rcond=None)[0].T
    rows, columns = query.layout.representatives
    np.testing.assert_allclose(found[:, rows, columns][:, drawn], wanted, rtol=1e-7, atol=1e-10)
    np.testing.assert_array_equal(found, found.transpose(0, 2, 1))
    assert not found[:, query.layout.number_of < 0].any()
    covariance = np.linalg.inv(mapping[:, drawn].T @ mapping[:, drawn])
    std = design.std.reshape(found.shape)[0][rows, columns][drawn]
    np.testing.assert_allclose(std, np.sqrt(np.diagonal(covariance)), rtol=1e-9)
    squares = query.layout.squares - drawn.start
    np.testing.assert_allclose(noise.square_covariance, covariance[np.ix_(squares, squares)], rtol=1e-7, atol=1e-14)


@DESIGNS
def test_public_entries_have_no_noise_and_bounds_hold(design):
    query, noise = design.query, design.structure
    assert (design.std[query.public] == 0).all()
    assert (design.std[~query.public] > 0).all()
    bound = noise.largest(design.noise, query.magnitude)
    rng = np.random.default_rng(3)
    for _ in range(20):
        signs = rng.choice([-1.0, 1.0], query.shape)
        assert (np.abs(noise.whiten(design.noise, signs * query.magnitude)) <= bound * (1 + 1e-12)).all()
    scaled = noise.scaled(4.0).whiten(design.noise, query.magnitude)
    np.testing.assert_allclose(scaled, noise.whiten(design.noise, query.magnitude) / 4, rtol=1e-12)
    assert noise.fits(query.shape)
    assert not noise.fits((query.shape[0] + 1, query.shape[1]))


def test_fields_are_checked():
    layout = TableLayout(("constant", "value"), (0, 1))
    ones = np.ones
    for kinds, columns in ((("value",), (0,)), (("constant", "other"), (0, 1)), (("constant",), (0, 1)), ((), ())):
        with pytest.raises(mdp.ParameterError, match="layout of a table"):
            TableLayout(kinds, columns)
    for fields in (
        (ones(3), ones(1), 0.0),
        (ones(2), ones(2), 0.0),
        (np.array([1.0, np.inf]), ones(1), 0.0),
        (np.array([1.0, 0.0]), ones(1), 0.0),
        ([1.0, 1.0], ones(1), 0.0),
        (ones(2), ones(1), -1.0),
        (ones(2), ones(1), 1),
    ):
        with pytest.raises(mdp.ParameterError, match="table's noise"):
            TableNoise(layout, 1, False, *fields)
