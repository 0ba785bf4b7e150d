"""The law of the noise in moments, which are adjusted by least squares: the same as by brute force."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.noise_law import SidesLaw, TableLaw
from matrixdp.answers.view import view_moments

NUMBERS = [mdp.Number("age", 0, 120), mdp.Number("bmi", 10, 50, missing=True), mdp.Number("score", -4, 4, missing=True)]
CATEGORIES = [mdp.Category("ward", ["a", "b", "c"]), mdp.YesNo("smoker"), mdp.Category("one", ["only"])]
PRIVACY = mdp.Privacy(1.0, 1e-6)
TABLES = {
    "all": [*NUMBERS, *CATEGORIES],
    "numbers": NUMBERS,
    "categories": CATEGORIES,
    "mixed": [CATEGORIES[1], NUMBERS[1], CATEGORIES[0]],
}


def noise_of(name, **options):
    query = mdp.TableMoments(mdp.Columns(TABLES[name]), 1000, **options)
    return mdp.make_design(query, PRIVACY), query


def relations(query):
    """Linear map from the free numbers of ``E z z'`` to its distinct numbers, by random records."""
    rng = np.random.default_rng(0)
    layout = query.layout
    rows, columns = layout.representatives
    found = []
    for _ in range(20 * rows.size):
        z = np.zeros(layout.size)
        z[0] = 1.0
        for place in query.places.values():
            if place.levels:
                z[place.value + rng.integers(len(place.levels))] = 1.0
            else:
                there = rng.random() < 0.5 if place.observed else True
                z[place.observed] = there
                z[place.value] = rng.normal() * there
        found.append(np.multiply.outer(z, z)[rows, columns])
    _, values, basis = np.linalg.svd(np.array(found), full_matrices=False)
    return basis[values > 1e-9 * values[0]].T


def brute_force(query, noise, known):
    """Estimates from noisy distinct numbers, as a matrix, and their covariance."""
    unit = 1 / np.sqrt(noise.precisions)
    covariance = np.eye(unit.size)
    squares = noise.layout.squares
    covariance[np.ix_(squares, squares)] = noise.square_covariance / np.multiply.outer(unit[squares], unit[squares])
    space = np.linalg.qr(relations(query) / unit[:, None])[0]
    if known:  # the first number has no noise
        space = np.linalg.qr(space @ np.linalg.svd(space[:1])[2][1:].T)[0]
    weights = np.linalg.inv(covariance)
    result = space @ np.linalg.solve(space.T @ weights @ space, space.T)
    return (result @ weights) * unit[:, None] / unit, result * unit[:, None] * unit


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_estimates_are_those_of_least_squares(table, neighbours):
    design, query = noise_of(table, neighbours=neighbours)
    noise = design.structure
    known = neighbours == "replace"
    law = TableLaw(noise, design.noise, size_kept=float(not known))
    estimate, covariance = brute_force(query, noise, known)
    rows, columns = noise.layout.representatives
    drawn = noise.combine(design.noise, np.random.default_rng(1).standard_normal(noise.count))
    drawn[0, 0] = 0.0 if known else drawn[0, 0]
    size = 0.0 if known else float(law.sizes(drawn))
    found = law.adjust(drawn, size)
    scale = np.sqrt(covariance.diagonal().max())
    np.testing.assert_allclose(found[rows, columns], estimate @ drawn[rows, columns], atol=1e-5 * scale)
    np.testing.assert_array_equal(found, found.T)
    if not known:
        assert law.size_variance == pytest.approx(covariance[0, 0])
    rng = np.random.default_rng(2)
    for count in (1, 2, 4, rows.size):
        for _ in range(30):
            chosen = rng.choice(rows.size, min(count, rows.size), replace=False)
            derivatives = rng.normal(size=chosen.size) / np.sqrt(1 / noise.precisions[chosen])
            terms = list(zip(rows[chosen].tolist(), columns[chosen].tolist(), derivatives.tolist(), strict=True))
            expected = derivatives @ covariance[np.ix_(chosen, chosen)] @ derivatives
            assert law.std(terms) ** 2 == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_covariances_of_entries_are_those_of_the_draws():
    """Noise is a linear map of independent numbers: their images give the covariance of all entries exactly."""
    bounds = mdp.Bounds([0, -1, 2], [4, 3, 2.5])
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    queries = [
        *(mdp.TableMoments(mdp.Columns(table), 1000, neighbours="add-remove") for table in TABLES.values()),
        mdp.TableMoments(mdp.Columns(TABLES["all"]), 1000, ["ward", "smoker"]),
        mdp.Moments(bounds, 1000),
        mdp.Moments(bounds, 1000, neighbours="add-remove"),
        mdp.SecondMoment(bounds, 1000),
    ]
    for query in queries:
        for directions in (None,) if isinstance(query, mdp.TableMoments) else (None, rotation):
            design = mdp.make_design(query, PRIVACY, directions=directions)
            group = ["a", "no"] if getattr(query, "by", ()) else None
            table = isinstance(query, mdp.TableMoments)
            law = view_moments(np.zeros(query.shape), design, group).law if table else SidesLaw(design)
            images = np.array([law.draw(1, UnitNormals(k))[0] for k in range(count_normals(law))])
            flat = images.reshape(len(images), -1)
            expected = (flat.T @ flat).reshape(law.size, law.size, law.size, law.size)
            i, j, k, m = np.indices(expected.shape)
            scale = np.sqrt(np.einsum("ijij->ij", expected).max())
            found = law.covariance(i, j, k, m)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13 * scale**2)
            np.testing.assert_allclose(law.entry_std(i[..., 0, 0], j[..., 0, 0]) ** 2, np.einsum("ijij->ij", found))


class UnitNormals:
    """Stands in for a generator: all normals are zero but one, which is one."""

    def __init__(self, place):
        self.place, self.asked = place, 0

    def standard_normal(self, count):
        self.asked = count
        return np.eye(1, count, self.place)[0]


def count_normals(law):
    normals = UnitNormals(0)
    law.draw(1, normals)
    return normals.asked


def test_shares_of_groups_sum_to_one_where_the_number_of_records_is_public():
    rng = np.random.default_rng(0)
    data = {"ward": rng.choice(list("abc"), 1000), "smoker": rng.random(1000) < 0.3, "age": rng.uniform(20, 80, 1000)}
    columns = mdp.Columns([NUMBERS[0], *CATEGORIES[:2]])
    for by in (["ward"], ["ward", "smoker"]):
        query = mdp.TableMoments(columns, 1000, by)
        release = mdp.make_design(query, PRIVACY).release(data, stream=mdp.Stream(seed=1), simulation=True)
        found = release.means(by="ward")
        assert found.value[:, 0].sum() == pytest.approx(1.0, abs=1e-12)
        part = 1 / 3
        one = TableLaw(release.design.structure, release.design.noise).size_variance
        merged = query.groups // 3
        assert found.std[0, 0] ** 2 == pytest.approx(merged * one * (1 - part))
        assert view_moments(release.matrix, release.design).matrix[0, 0] == 1.0


def test_means_by_level_average_to_the_mean():
    rng = np.random.default_rng(0)
    data = {"ward": rng.choice(list("abc"), 5000), "smoker": rng.random(5000) < 0.3, "age": rng.uniform(20, 80, 5000)}
    query = mdp.TableMoments(mdp.Columns([NUMBERS[0], *CATEGORIES[:2]]), 5000)
    release = mdp.make_design(query, PRIVACY).release(data, stream=mdp.Stream(seed=1), simulation=True)
    mean = release.means()["age", "mean"]
    for by in ("ward", "smoker"):
        found = release.means(by=by)
        assert found.value[:, 0].sum() == pytest.approx(1.0)
        assert found.value[:, 0] @ found.value[:, 1] == pytest.approx(mean)
