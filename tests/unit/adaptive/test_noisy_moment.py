"""Noisy moments: the law of their noise, other coordinates, a common number of records, mean and covariance."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.adaptive import private_moment
from matrixdp.adaptive.measure import NoisyMoment, ball_noise, box_noise, positive_count, share_count
from matrixdp.adaptive.queries import ball_query, box_query
from matrixdp.adaptive.shrinkage import clean_spectrum, denoise, keep_spikes, shrink_spectrum
from matrixdp.design import isotropic
from matrixdp.domain.person import Person
from matrixdp.privacy import Neighbours

PRIVACY = mdp.Privacy(1, 1e-6)
PEOPLE = [None, Person("id"), Person("id", rows=3)]


def test_transformed_moments_are_those_of_transformed_records():
    rng = np.random.default_rng(2)
    data, matrix, centre = rng.normal(size=(50, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)

    def moment(records):
        full = np.column_stack([np.ones(len(records)), records])
        return full.T @ full / len(records)

    moved, variances = NoisyMoment(moment(data), 0.5, 0.1).transform(matrix, centre)
    assert np.allclose(moved, moment((data - centre) @ matrix.T))
    draws = []
    for _ in range(4000):
        noise = rng.normal(size=(4, 4)) * 0.1
        noise = (noise + noise.T) / math.sqrt(2)
        noise[0] /= 0.5
        noise[:, 0] /= 0.5
        turned = NoisyMoment(moment(data) + noise, 0.5, 0.1).transform(matrix, centre)[0]
        draws.append(turned - moved)
    assert np.allclose(np.std(draws, axis=0), np.sqrt(variances), rtol=0.1)


@given(st.integers(0, 10**6), st.floats(0.01, 3), st.floats(0.05, 5))
def test_a_denoised_covariance_is_positive_semidefinite(seed, std, constant):
    noise = np.random.default_rng(seed).normal(size=(5, 5)) * std
    second = np.eye(5) + (noise + noise.T) / 2
    for spectrum in (clean_spectrum, partial(shrink_spectrum, level=0.5), keep_spikes):
        mean, covariance = denoise(second, constant, std, spectrum)
        assert np.linalg.eigvalsh(covariance)[0] >= -1e-9 * (1 + np.abs(covariance).max())
        assert np.isfinite(mean).all()


@pytest.mark.parametrize("kind", list(Neighbours))
@pytest.mark.parametrize("person", PEOPLE, ids=["records", "once", "rows"])
@pytest.mark.parametrize(("d", "ratio"), [(1, 0.2), (3, 1 / 12), (7, 0.5)])
def test_the_law_of_simulated_noise_is_that_of_the_designs(kind, person, d, ratio):
    rows = 1 if person is None or person.rows is None else person.rows
    reach, exact = 300 * PRIVACY.mu / rows * math.sqrt(0.3), np.eye(d + 1)
    query = ball_query(d, 0.7, 300, kind, person, ratio=ratio)
    design = mdp.make_design(query, PRIVACY, allocation=isotropic(), share=0.3)
    traced = design.std.shape[0] == 1
    law = ball_noise(exact, 0.7, ratio, reach, kind, traced=traced)
    if traced:
        assert design.std[0, 0] / math.sqrt(2) == pytest.approx(law.std)
    else:
        assert design.std[0, 1] == pytest.approx(law.std / law.constant)
        assert design.std[1, 1] == pytest.approx(math.sqrt(2) * law.std)
        assert design.std[0, 0] == pytest.approx(math.sqrt(2) * law.std / law.constant**2)
    design = mdp.make_design(box_query(d, 300, kind, person, ratio=ratio), PRIVACY, allocation="uniform", share=0.3)
    law = box_noise(exact, ratio, reach, kind)
    assert np.diagonal(design.std)[1:] == pytest.approx(np.sqrt(law.diagonal))
    assert design.std[0, 1] * law.constant == pytest.approx(law.std)
    if d > 1:
        assert design.std[1, 2] == pytest.approx(law.std)


@pytest.mark.parametrize("box", [False, True])
def test_simulated_noise_has_its_law(box):
    rng, exact = np.random.default_rng(0), np.eye(5)
    laws = ball_noise(exact, 0.7, 0.2, 1000.0, Neighbours.REPLACE, traced=True), box_noise(exact, 0.2, 1000.0)
    law = laws[box]
    draws = np.array([law.add_noise(rng, 100, public_number=True).second for _ in range(4000)])
    assert np.array_equal(draws, draws.transpose(0, 2, 1))
    spread = draws.std(axis=0)
    assert spread[1, 2] == pytest.approx(law.std, rel=0.1)
    assert spread[0, 1] == pytest.approx(law.std / law.constant, rel=0.1)
    assert spread[0, 0] == 0
    diagonal = 2 * law.std**2 if law.diagonal is None else law.diagonal[0]
    if box:
        assert spread[2, 2] == pytest.approx(math.sqrt(diagonal), rel=0.1)
    assert np.trace(draws[:, 1:, 1:], axis1=1, axis2=2).std() == pytest.approx(law.trace_std, rel=0.1)


def counted(count, std, constant=0.5):
    second = np.array([[1.0, 0.2], [0.2, 0.3]]) / count
    second[0, 0] = 1.0
    return NoisyMoment(second, constant, std / count, 2 * std / count, count, np.array([std**2 / count**2]))


def test_moments_over_one_number_agree_where_their_sums_do():
    one, other = share_count(counted(0.9, 0.01), counted(1.2, 0.1))
    assert one.count == other.count == pytest.approx(0.903, abs=1e-3)  # precisions of 100 to 1
    assert np.allclose(one.second, other.second)
    assert one.std == pytest.approx(0.01 / one.count)
    assert other.trace_std == pytest.approx(0.2 / one.count)
    assert other.diagonal == pytest.approx((0.1 / one.count) ** 2)


def test_a_larger_constant_measures_the_number_better():
    one, _ = share_count(counted(0.9, 0.1, constant=1.0), counted(1.2, 0.1))
    assert one.count == pytest.approx((16 * 0.9 + 1.2) / 17)


def test_variances_in_other_coordinates_are_those_of_the_noise_and_of_its_diagonal():
    """``K G K'`` entry by entry, G with independent entries."""
    moment = NoisyMoment(np.eye(3), 0.7, 0.1, diagonal=np.array([0.004, 0.01]))
    turn, centre = np.array([[1.0, 0.5], [-0.3, 2.0]]), np.array([0.2, -0.4])
    k = np.eye(3)
    k[1:, 1:], k[1:, 0] = turn, -turn @ centre
    k[:, 0] /= 0.7
    own = np.diag([2 * 0.1**2, 0.004, 0.01])
    expected = sum(own[a, a] * np.multiply.outer(k[:, a], k[:, a]) ** 2 for a in range(3))
    for a, b in ((1, 0), (2, 0), (2, 1)):
        pair = np.multiply.outer(k[:, a], k[:, b])
        expected = expected + 0.1**2 * (pair + pair.T) ** 2
    np.testing.assert_allclose(moment.transform(turn, centre)[1], expected)


@pytest.mark.parametrize(("noisy", "std", "count"), [(0.9, 0.1, 0.9), (-0.3, 0.1, 0.1), (-0.3, 1e-5, 1e-3)])
def test_a_noisy_number_is_at_least_its_noise_and_one_record(noisy, std, count):
    assert positive_count(noisy, std, 1000) == count


def test_a_public_number_leaves_moments_as_they_are():
    given = counted(1.0, 0.1), counted(1.0, 0.2)
    assert all(one is two for one, two in zip(share_count(*given), given, strict=True))


def test_a_private_number_costs_little_where_records_fill_their_bounds():
    """With the ratio of a public number, errors are 1.4 times those of replaced records."""
    rng = np.random.default_rng(0)
    data = np.where(rng.random((3000, 4)) < [0.5, 0.4, 0.3, 0.5], 1.0, -1.0)
    truth, box, errors = np.cov(data.T, bias=True), mdp.Bounds([-1] * 4, [1] * 4), {}
    for neighbours in ("replace", "add-remove"):
        options = {"neighbours": neighbours, "records": len(data), "simulation": True}
        fits = [private_moment(data, box, mdp.Privacy(1, 1e-6), stream=mdp.Stream(seed=s), **options) for s in range(8)]
        errors[neighbours] = np.mean([np.square(fit.covariance - truth).mean() for fit in fits]) ** 0.5
    assert errors["add-remove"] < 1.2 * errors["replace"]
