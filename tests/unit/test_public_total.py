"""Tables of counts with a public total: adjusted to it, with the smallest noise that Gaussian noise can have."""

import itertools
import json

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.design.explain import pair_covariance
from matrixdp.noise.matrix import adjust_total, adjusted_covariance, adjusted_std
from matrixdp.report.content import make_content
from matrixdp.report.release_page import render_release
from matrixdp.sensitivity.limit import best_covariance

PRIVACY = mdp.Privacy(1, 1e-6)
PAIRS = [("a", 1), ("b", 3), ("a", 2), ("b", 3), ("a", 1)]


def table(**options):
    return mdp.ContingencyTable(("a", "b"), (1, 2, 3), len(PAIRS), **options)


def covariance_after(noise):
    """Covariance of all entries after the adjustment, from the linear map applied to each of them."""
    m, n = noise.shape
    images = []
    for unit in np.eye(m * n):
        image = unit.reshape(m, n).copy()
        adjust_total(image, noise, 0.0)
        images.append(image.ravel())
    jacobian = np.array(images).T
    return jacobian @ np.kron(noise.rowcov.matrix(), noise.colcov.matrix()) @ jacobian.T


def some_noise(kind):
    rng = np.random.default_rng(0)
    if kind == "equal":
        return mdp.noise.MatrixGaussian(mdp.noise.Covariance.identity(3, 2.0), mdp.noise.Covariance.identity(4))
    if kind == "diagonal":
        return mdp.noise.MatrixGaussian(
            mdp.noise.Covariance.identity(3), mdp.noise.Covariance.diagonal(np.exp(rng.normal(size=4)))
        )
    rows, columns = (x @ x.T + 0.1 * np.eye(len(x)) for x in (rng.normal(size=(3, 3)), rng.normal(size=(4, 4))))
    return mdp.noise.MatrixGaussian(rows, columns)


@pytest.mark.parametrize("kind", ["equal", "diagonal", "dense"])
def test_error_bars_follow_from_the_adjustment(kind):
    noise = some_noise(kind)
    expected = covariance_after(noise)
    assert np.allclose(adjusted_std(noise).ravel() ** 2, np.diagonal(expected), rtol=1e-10, atol=1e-12)
    assert np.allclose(
        adjusted_covariance(noise, 1, [0, 3]), expected.reshape(3, 4, 3, 4)[1][:, 1][np.ix_([0, 3], [0, 3])]
    )
    assert np.allclose(expected.sum(axis=1), 0, atol=1e-12)  # the sum is known
    assert np.linalg.eigvalsh(np.kron(noise.rowcov.matrix(), noise.colcov.matrix()) - expected)[0] > -1e-12


@pytest.mark.parametrize("allocation", [None, mdp.allocations.shares([0.7, 0.2, 0.1])])
def test_released_counts_sum_to_the_number_of_records(allocation):
    design = mdp.make_design(table(), PRIVACY, allocation=allocation)
    released = design.release(PAIRS)
    assert released.matrix.sum() == pytest.approx(5, abs=1e-9)
    again = mdp.Release.from_json(released.to_json())
    assert np.array_equal(again.std, released.std)
    assert "adjusted to sum to 5" in design.explain()
    assert "adjusted to sum" in render_release(make_content(released))


def test_the_variance_is_smaller_by_one_over_the_number_of_cells():
    design, independent = (mdp.make_design(table(public_total=public), PRIVACY) for public in (True, False))
    assert design.distance == independent.distance
    assert np.allclose(design.std**2, independent.std**2 * (1 - 1 / 6))
    assert design.std.strides[0] == 0  # equal rows are shown once
    assert np.allclose(np.diagonal(pair_covariance(design, 0, 2)), design.std[0, [0, 2]] ** 2)
    assert pair_covariance(design, 0, 2)[0, 1] < 0


def test_a_cell_with_most_of_the_noise_keeps_its_error_bar():
    noise = mdp.noise.MatrixGaussian([1.0], [1.0, 1e40, 1.0])
    assert adjusted_std(noise)[0] == pytest.approx([1, np.sqrt(2), 1])


@pytest.mark.parametrize("k", [2, 4, 6, 9])
def test_no_gaussian_noise_has_a_smaller_total_error(k):
    changes = np.array([a - b for a, b in itertools.permutations(np.eye(k), 2)])
    moment = changes.T @ changes / len(changes)
    assert np.allclose(moment, 2 / (k - 1) * (np.eye(k) - 1 / k))
    bound = np.sqrt(np.maximum(np.linalg.eigvalsh(moment), 0)).sum() ** 2  # for any covariance, at distance one
    assert bound == pytest.approx(2 * (k - 1))
    assert best_covariance(changes, np.ones(k)).value == pytest.approx(bound, rel=1e-3)  # a floor keeps it regular
    design = mdp.make_design(mdp.ContingencyTable(range(k), ["x"], 9), PRIVACY)
    assert np.square(design.std).sum() * design.distance**2 == pytest.approx(bound, rel=1e-6)
    assert design.exact


def test_what_is_not_public_is_not_adjusted():
    assert table(neighbours="add-remove").total is None
    assert mdp.ContingencyTable(["a"], ["b"], 3).total is None
    assert mdp.ContingencyTable([0, 1], [0, 1], 3).total == 3
    for options in ({"neighbours": "add-remove"}, {}):
        with pytest.raises(mdp.ParameterError, match="public_total must be"):
            mdp.ContingencyTable(["a"], ["b"], 3, public_total=True, **options)
    with pytest.raises(mdp.ParameterError, match="public_total must be"):
        table(public_total=1)


def test_texts_of_earlier_versions_mean_independent_noise():
    released = mdp.make_design(table(public_total=False), PRIVACY).release(PAIRS)
    assert "public_total" not in released.to_json()
    assert not mdp.Release.from_json(released.to_json()).design.query.public_total
    content = json.loads(mdp.make_design(table(), PRIVACY).release(PAIRS).to_json())
    assert content["design"]["query"]["public_total"] is True
