"""Shrunk answers are possible and complete, unbiased without noise, and closer to the truth with much noise."""

import numpy as np
import pandas as pd
import pytest

import matrixdp as mdp
from matrixdp.answers import moments
from matrixdp.answers.moments import shrink, shrink_cells, shrink_correlations, shrunk_means
from matrixdp.release.result import Release

RECORDS = 3000
WARDS = ["north", "south", "west", "east"]
COLUMNS = mdp.Columns(
    [
        *(mdp.Number(name, -1, 1) for name in "abcde"),
        mdp.Number("f", -1, 1, missing=True),
        mdp.Category("ward", WARDS),
        mdp.Category("colour", ["red", "blue", "green"]),
    ]
)
QUERIES = {"all": mdp.TableMoments(COLUMNS, RECORDS), "ward": mdp.TableMoments(COLUMNS, RECORDS, by=["ward"])}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    ward = rng.choice(4, RECORDS, p=[0.6, 0.3, 0.07, 0.03])
    colour = np.where(rng.random(RECORDS) < 0.2, ward % 3, rng.integers(0, 3, RECORDS))
    common = 0.1 * ward + rng.normal(0, 0.3, RECORDS)
    numbers = {name: np.clip(common + rng.normal(0, 0.2 + 0.1 * i, RECORDS), -1, 1) for i, name in enumerate("abcdef")}
    numbers["f"][rng.random(RECORDS) < 0.2] = np.nan
    return {**numbers, "ward": np.array(WARDS)[ward], "colour": np.array(["red", "blue", "green"])[colour]}


@pytest.fixture(scope="module")
def exact(data):
    frame = pd.DataFrame(data)
    return {name: query.evaluate(frame, clip=True, missing="error") for name, query in QUERIES.items()}


def released(name, exact, epsilon, rng):
    """A release with noise drawn in floating point, or without noise."""
    query = QUERIES[name]
    design = mdp.make_design(query, mdp.Privacy(epsilon, 1e-6))
    noise = 0.0 if rng is None else design.structure.combine(design.noise, rng.standard_normal(design.structure.count))
    return Release(query.finish(exact[name] + noise), design, simulation=True)


def answers(release, **options):
    return {
        "means": release.means("ward", **options),
        "tables": release.table("colour", "ward", **options) if not release.design.query.by else None,
        "correlations": release.correlation(**options),
    }


@pytest.mark.parametrize("weight", [0.02, 1.0])
@pytest.mark.parametrize("measured", [0.0, 0.004, -0.3])
def test_shrunk_differences_are_posterior_means_and_have_posterior_variances(measured, weight):
    noise, theta = 0.01, np.linspace(-20, 20, 80_001)
    deviations = np.geomspace(0.01, 1, 17)[:, None]
    prior = (np.exp(-(theta**2) / deviations**2 / 2) / deviations).mean(axis=0)
    posterior = prior * np.exp(-((measured - weight * theta) ** 2) / noise**2 / 2)
    found = shrink(*map(np.asarray, (measured, weight, noise)))
    mean = posterior @ theta / posterior.sum()
    assert found.mean == pytest.approx(weight * mean, abs=1e-9)
    assert found.variance == pytest.approx(weight**2 * (posterior @ (theta - mean) ** 2) / posterior.sum(), rel=1e-6)


def test_differences_that_noise_does_not_explain_are_hardly_shrunk():
    measured = np.array([0.2, -0.5, 1.0])
    assert shrink(measured, np.ones(3), np.full(3, 0.01)).mean == pytest.approx(measured, rel=0.01)


@pytest.mark.parametrize("name", QUERIES)
def test_without_noise_shrunk_answers_are_the_unbiased_ones(exact, name):
    release = released(name, exact, 1000.0, None)
    for plain, shrunk in zip(answers(release).values(), answers(release, shrunk=True).values(), strict=True):
        if plain is not None:
            assert shrunk.rows == plain.rows
            assert shrunk.columns == plain.columns
            assert shrunk.value == pytest.approx(plain.value, abs=2e-4)


@pytest.mark.parametrize("name", QUERIES)
def test_much_noise_does_less_harm_to_shrunk_answers_and_error_bars_hold(exact, name):
    rng, truth = np.random.default_rng(1), answers(released(name, exact, 1000.0, None))
    errors = {kind: [] for kind, one in truth.items() if one is not None}
    covered = {kind: [] for kind in errors}
    for _ in range(12):
        release = released(name, exact, 0.5, rng)
        plain, shrunk = answers(release), answers(release, shrunk=True)
        for kind, found in errors.items():
            assert shrunk[kind].reliable.all()
            distance = np.abs(shrunk[kind].value - truth[kind].value)
            unbiased = np.abs(np.nan_to_num(plain[kind].value) - truth[kind].value)
            private = shrunk[kind].std > 0
            found.append((distance[private].mean(), unbiased[private].mean()))
            covered[kind].append((distance <= 1.96 * shrunk[kind].std)[private].mean())
    for kind, found in errors.items():
        ours, unbiased = np.mean(found, axis=0)
        assert ours < unbiased, kind
        assert np.mean(covered[kind]) > 0.93, kind


def test_shrunk_tables_add_up_and_are_not_negative(exact):
    table = released("all", exact, 0.1, np.random.default_rng(2)).table("colour", "ward", shrunk=True)
    assert (table.value >= 0).all()
    assert table.value[:-1].sum(axis=0) == pytest.approx(table.value[-1], abs=1e-6)
    assert table.value[:, :-1].sum(axis=1) == pytest.approx(table.value[:, -1], abs=1e-6)
    assert table["all", "all"] == 1.0


def test_tables_by_a_column_of_groups_are_shrunk_too(exact):
    table = released("ward", exact, 0.1, np.random.default_rng(2)).table("colour", "ward", shrunk=True)
    assert (table.value >= 0).all()
    assert table.value[:-1].sum(axis=0) == pytest.approx(table.value[-1], abs=1e-6)


def test_cells_of_an_empty_level_are_zero():
    cells = shrink_cells(
        np.array([[0.1, -0.1], [0.6, 0.4]]), np.array([0.0, 1.0]), np.array([0.6, 0.4]), np.full((2, 2), 0.1)
    )
    assert cells == pytest.approx(np.array([[0, 0], [0.6, 0.4]]), abs=1e-6)


def test_shrunk_correlations_are_a_possible_matrix(exact):
    release = released("all", exact, 0.1, np.random.default_rng(3))
    assert not release.correlation().reliable.all()
    found = release.correlation(shrunk=True).value
    assert np.linalg.eigvalsh(found).min() > -1e-9
    assert np.diagonal(found) == pytest.approx(np.ones(6))


def test_correlations_without_a_known_variance_are_zero():
    covariance = np.array([[np.nan, np.nan, np.nan], [np.nan, 2.0, 1.0], [np.nan, 1.0, 2.0]])
    value, std = shrink_correlations(covariance, np.where(np.isnan(covariance), np.nan, 1e-9))
    assert value == pytest.approx(np.array([[1, 0, 0], [0, 1, 0.5], [0, 0.5, 1]]), abs=1e-6)
    assert std[0, 1] == pytest.approx(1 / np.sqrt(3))


def test_bars_of_shrunk_correlations_are_of_the_covariance_and_of_both_variances():
    covariance, std = np.array([[4.0, 1.0], [1.0, 1.0]]), np.array([[0.4, 0.2], [0.2, 0.3]])
    bars = shrink_correlations(covariance, std)[1]
    assert bars[0, 1] == pytest.approx(np.sqrt(0.1**2 + 0.25**2 * (0.1**2 + 0.3**2)))


def test_bars_of_shrunk_means_are_those_of_means_where_levels_do_not_differ():
    """Far from the middle of the bounds, where the noise of the number of records matters."""
    columns = mdp.Columns([mdp.Number("x", 0, 10), mdp.YesNo("old")])
    query = mdp.TableMoments(columns, 800, neighbours="add-remove")
    data = pd.DataFrame({"x": np.tile([7.0, 9.0], 400), "old": np.repeat([True, False], 400)})
    design = mdp.make_design(query, mdp.Privacy(2.0, 1e-6))
    matrix = query.finish(query.evaluate(data, clip=True, missing="error"))
    plain, shrunk = (means(matrix, design, "old").std[:, 1] for means in (moments.means, shrunk_means))
    assert shrunk == pytest.approx(plain, rel=1e-3)


def test_moments_of_numbers_alone_have_shrunk_correlations_too():
    bounds = mdp.Bounds([-1] * 4, [1] * 4)
    design = mdp.make_design(mdp.Moments(bounds, 100), mdp.Privacy(0.5, 1e-6))
    data = np.random.default_rng(4).uniform(-1, 1, (100, 4))
    release = design.release(data, stream=mdp.Stream(seed=4), simulation=True)
    assert not release.correlation().reliable.all()
    found = release.correlation(shrunk=True)
    assert found.reliable.all()
    assert np.linalg.eigvalsh(found.value).min() > -1e-9


def test_means_of_all_records_are_not_shrunk(exact):
    with pytest.raises(mdp.errors.ParameterError, match="need by"):
        released("all", exact, 1.0, None).means(shrunk=True)


def test_a_group_beside_by_names_its_column(exact):
    with pytest.raises(mdp.errors.ParameterError, match="group must name levels of other columns than 'ward'"):
        released("ward", exact, 1.0, None).means("ward", group="north", shrunk=True)


@pytest.mark.parametrize("size", [2, 5, 10])
def test_shrunk_correlations_are_hardly_worse_than_zeros_and_nearly_unshrunk_without_noise(size):
    """Where there are none, whatever the noise, which differs between pairs; and where all are 0.6."""
    rng = np.random.default_rng(3)
    pairs = np.tril_indices(size, -1)
    strong = np.full((size, size), 0.6) + 0.4 * np.eye(size)
    for noise in (0.03, 0.3, 3.0):
        spread = rng.uniform(0.5, 2, size)
        std = noise * np.sqrt(np.multiply.outer(spread, spread))
        errors = []
        for _ in range(40):
            drawn = np.tril(rng.standard_normal((size, size)) * std, -1)
            found, _ = shrink_correlations(np.eye(size) + drawn + drawn.T, np.where(np.eye(size) > 0, 1e-3, std))
            errors.append(np.abs(found[pairs]).mean())
        assert np.mean(errors) < 0.06
    exact, _ = shrink_correlations(strong, np.full((size, size), 1e-3))
    assert exact[pairs] == pytest.approx(0.6, abs=0.01)
