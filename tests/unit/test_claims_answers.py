"""Error bars and bias of means, covariances and correlations, computed exactly from the law of the noise.

The noise is independent with unit variance in the coordinates of the design, a linear map of the answer, and the answer
is estimated by least squares. To first order the variance of an estimate is its gradient times the covariance of that
noise times its gradient, the gradient taken by central differences of the estimate itself. What is quadratic in the
noise has an expectation that symmetric points give exactly.
"""

import itertools

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.moments import correlation, covariance, divide, find_level_means, means, view_levels
from matrixdp.answers.view import view_moments

BOX = mdp.Bounds([0, -1, 2], [4, 3, 2.5])
ROTATION = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
RECORDS = 5000
MIXED = np.random.default_rng(1).beta(4, 2, (RECORDS, 3)) @ [[0.6, 0.4, 0.0], [0.0, 0.5, 0.4], [0.3, 0.0, 0.6]]
DATA = BOX.lower + (BOX.upper - BOX.lower) * MIXED  # correlated by about one half


def make(neighbours, directions=None):
    query = mdp.Moments(BOX, RECORDS, neighbours=neighbours)
    return mdp.make_design(query, mdp.Privacy(1, 1e-6), directions=directions)


CASES = {
    "replace": make("replace"),
    "replace, rotated": make("replace", ROTATION),
    "add-remove": make("add-remove"),
    "add-remove, rotated": make("add-remove", ROTATION),
}
ENTRIES = [(i, j) for i in range(4) for j in range(i + 1)]


def noise_covariance(design):
    """Covariance of the noise in the entries of the lower triangle: ``(M'M)^-1`` for unit noise on ``M answer``."""
    mapping = []
    for i, j in ENTRIES:
        unit = np.zeros((4, 4))
        unit[i, j] = unit[j, i] = 1.0
        mapping.append(design.structure.whiten(design.noise, unit))
    found = np.linalg.inv(np.array(mapping) @ np.array(mapping).T)
    if design.neighbours == "replace":  # the constant's own moment is public
        found[0] = found[:, 0] = 0.0
    return found


def shifted(matrix, place, step):
    moved = matrix.copy()
    i, j = ENTRIES[place]
    moved[i, j] += step
    moved[j, i] = moved[i, j]
    return moved


def answer(design, data=DATA):
    return design.query.finish(design.query.evaluate(data, clip=True, missing="error"))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("estimate", [means, covariance, correlation])
def test_error_bars_follow_from_the_law_of_the_noise(case, estimate):
    design = CASES[case]
    matrix, law = answer(design), noise_covariance(design)
    found = estimate(matrix, design)
    step = 1e-6
    moved = [[estimate(shifted(matrix, k, h), design).value for h in (step, -step)] for k in range(len(ENTRIES))]
    gradient = np.array([(above - below) / (2 * step) for above, below in moved])
    variance = np.einsum("a...,ab,b...->...", gradient, law, gradient)
    variance = np.maximum(variance, 0.0)  # of a correlation with itself, up to rounding
    np.testing.assert_allclose(found.std, np.sqrt(variance), rtol=1e-3, atol=1e-9 * float(np.sqrt(variance).max()))


@pytest.mark.parametrize("case", ["replace", "replace, rotated"])
def test_a_covariance_is_unbiased(case):
    """A covariance is quadratic in the noise, so that its mean over symmetric points is its expectation."""
    design = CASES[case]
    for data in (DATA, DATA[:1].repeat(RECORDS, axis=0)):
        matrix, law = answer(design, data), noise_covariance(design)
        values, vectors = np.linalg.eigh(law)
        root = vectors * np.sqrt(np.maximum(values, 0.0) * len(ENTRIES))
        total = np.zeros((3, 3))
        for column, sign in itertools.product(root.T, (1, -1)):
            moved = matrix.copy()
            for place, amount in enumerate(sign * column):
                moved = shifted(moved, place, amount)
            total += covariance(moved, design).measured / (2 * len(ENTRIES))
        exact = answer(design, data)[1:, 1:] - np.multiply.outer(matrix[0, 1:], matrix[0, 1:])
        scale = float(np.abs(np.diag(design.colcov.matrix())).max())
        bias = law[1, 1]  # what a wrong sign, or no allowance, would leave
        assert np.abs(total - exact).max() < 1e-6 * bias + 1e-13 * scale


def test_means_and_covariances_without_noise_are_those_of_the_data():
    for design in CASES.values():
        matrix = answer(design)
        assert means(matrix, design).value[:, 0] == pytest.approx(DATA.mean(axis=0), abs=1e-4)
        assert covariance(matrix, design).value == pytest.approx(np.cov(DATA.T, bias=True), abs=1e-3)
        assert correlation(matrix, design).value == pytest.approx(np.corrcoef(DATA.T), abs=1e-2)


TABLE = mdp.Columns(
    [
        mdp.Number("x", -1, 3, missing=True),
        mdp.Number("y", 0, 10),
        mdp.Category("c", ["a", "b"]),
        mdp.YesNo("g"),
    ]
)
TABLE_CASES = list(itertools.product([(), ("g",)], ["replace", "add-remove"]))


def table_answer(by, neighbours):
    """A design for a table, and its answer without noise."""
    rng = np.random.default_rng(2)
    y = 10 * rng.beta(2, 3, RECORDS)
    x = np.where(rng.random(RECORDS) < 0.3, np.nan, -1 + 0.2 * y + 2 * rng.beta(2, 2, RECORDS))
    level = np.where(rng.random(RECORDS) < 0.4, "a", "b")
    data = {"x": x, "y": y, "c": level, "g": rng.random(RECORDS) < 0.5}
    design = mdp.make_design(mdp.TableMoments(TABLE, RECORDS, by, neighbours=neighbours), mdp.Privacy(1, 1e-6))
    return design, answer(design, data)


def table_noise_covariance(design, moves):
    """Covariance of the noise in the distinct numbers of all groups, each moved by one of `moves`."""
    mapping = np.array([design.structure.whiten(design.noise, move) for move in moves])
    drawn = [k for k, row in enumerate(mapping) if row.any()]  # others are public
    found = np.zeros((len(moves), len(moves)))
    found[np.ix_(drawn, drawn)] = np.linalg.inv(mapping[drawn] @ mapping[drawn].T)
    return found


def level_means(matrix, design, by):
    """Means by level, and the standard deviation of their noise alone."""
    view, row, _ = view_levels(matrix, design, by)
    found = find_level_means(view, row)
    return found.value, view.law.std(found.terms)


@pytest.mark.parametrize(("by", "neighbours"), TABLE_CASES)
@pytest.mark.parametrize(
    "estimate",
    [
        means,
        covariance,
        correlation,
        lambda matrix, design: level_means(matrix, design, "c"),
        lambda matrix, design: level_means(matrix, design, "g"),
        lambda matrix, design: divide(view := view_moments(matrix, design), (1, 2), (1, 1)).with_bars(view.law),
    ],
    ids=["means", "covariances", "correlations", "means by level", "means by group", "ratio"],
)
def test_error_bars_of_tables_follow_from_the_law_of_the_noise(by, neighbours, estimate):
    design, matrix = table_answer(by, neighbours)
    layout, groups = design.query.layout, design.query.groups
    moves = []
    for group, number in itertools.product(range(groups), range(layout.number_of.max() + 1)):
        move = np.zeros((groups, layout.size, layout.size))
        move[group] = layout.number_of == number
        moves.append(move.reshape(matrix.shape))

    def value_and_std(at):
        found = estimate(at, design)
        return found if isinstance(found, tuple) else (found.value, found.std)

    step = 1e-6
    values = [[np.asarray(value_and_std(matrix + h * move)[0]) for h in (step, -step)] for move in moves]
    gradient = np.array([(above - below) / (2 * step) for above, below in values])
    variance = np.einsum("a...,ab,b...->...", gradient, table_noise_covariance(design, moves), gradient)
    std = np.sqrt(np.maximum(variance, 0.0))
    np.testing.assert_allclose(value_and_std(matrix)[1], std, rtol=1e-2, atol=1e-6 * float(std.max()))
