"""Answers from the moments of a table agree with pandas where there is hardly any noise, and say what noise hides."""

import re
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression

import matrixdp as mdp
from matrixdp.answers.estimate import CUT_NOTE, Estimate
from matrixdp.release.result import Release

RECORDS = 4000
COLUMNS = mdp.Columns(
    [
        mdp.Number("age", 0, 120),
        mdp.Number("bmi", 10, 50, missing=True),
        mdp.Number("score", -4, 4, missing=True),
        mdp.Category("ward", ["a", "b", "c"]),
        mdp.YesNo("smoker"),
        mdp.Category("outcome", ["ill", "well"], missing=True),
    ]
)
PRIVACY = mdp.Privacy(1.0, 1e-6)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    ward = rng.choice(list("abc"), RECORDS, p=[0.6, 0.36, 0.04])
    age = rng.normal(50, 10, RECORDS) + 5 * (ward == "b")
    smoker = rng.random(RECORDS) < 0.3
    bmi = 20 + 0.1 * age + 3 * smoker + rng.normal(0, 2, RECORDS)
    outcome = np.where(0.05 * (age - 50) + smoker + rng.normal(0, 1, RECORDS) > 0.5, "ill", "well").astype(object)
    outcome[rng.random(RECORDS) < 0.1] = None
    bmi[rng.random(RECORDS) < 0.2] = np.nan
    score = np.where(rng.random(RECORDS) < 0.3, np.nan, 0.02 * (age - 50) + rng.normal(0, 0.5, RECORDS))
    columns = {"age": age, "bmi": bmi, "score": score, "ward": ward, "smoker": smoker, "outcome": outcome}
    return pd.DataFrame(columns)


def exact_release(query, data):
    """A release without noise: the moments on their grid."""
    design = mdp.make_design(query, PRIVACY)
    return Release(query.finish(query.evaluate(data, clip=True, missing="error")), design, simulation=True)


@pytest.fixture(scope="module", params=[(), ("ward",), ("ward", "smoker")], ids=["all", "ward", "ward and smoker"])
def exact(request, data):
    return exact_release(mdp.TableMoments(COLUMNS, RECORDS, request.param), data)


@pytest.fixture(scope="module")
def noisy(data):
    return mdp.make_design(mdp.TableMoments(COLUMNS, RECORDS), PRIVACY).release(
        data, stream=mdp.Stream(seed=1), simulation=True
    )


NUMBERS = ["age", "bmi", "score"]
GRID = 1e-4  # numbers are rounded to a grid of 2^-19 of their range


def test_means_and_spreads(exact, data):
    found = exact.means()
    assert found.rows == tuple(NUMBERS)
    np.testing.assert_allclose(found.value[:, 0], data[NUMBERS].mean(), atol=GRID)
    np.testing.assert_allclose(found.value[:, 2], data[NUMBERS].notna().mean(), atol=1e-12)
    # The bias of noise in the squared mean is subtracted although there is none here.
    np.testing.assert_allclose(found.value[:, 1], data[NUMBERS].std(ddof=0), rtol=0.02)


@pytest.mark.parametrize("by", ["ward", "outcome"])
def test_means_by_level(exact, data, by):
    found = exact.means(by=by)
    frame = data.assign(outcome=data.outcome.fillna("missing"))
    means = frame.groupby(by)[NUMBERS].mean()
    shares = frame[by].value_counts(normalize=True)
    expected = means.assign(share=shares)[["share", *NUMBERS]].loc[list(found.rows)].to_numpy()
    np.testing.assert_allclose(found.value[:, 0], expected[:, 0], atol=1e-12)
    slack = (
        GRID + np.array([0, 0, 0.3, 0.3]) * found.std
    )  # shares of values that are there are shrunk without need here
    assert (np.abs(found.value - expected) <= slack)[found.reliable].all()
    low, high = found.interval()  # also where records are too few beside the noise that the release claims
    assert ((low <= expected) & (expected <= high)).all()


def test_means_of_one_group(data):
    release = exact_release(mdp.TableMoments(COLUMNS, RECORDS, ["ward", "smoker"]), data)
    chosen = data[(data.ward == "a") & ~data.smoker]
    expected = chosen[NUMBERS].mean()
    np.testing.assert_allclose(release.means(group=("a", "no")).value[:, 0], expected, atol=GRID)
    np.testing.assert_allclose(release.means(group={"ward": "a", "smoker": "no"}).value[:, 0], expected, atol=GRID)
    by_smoker = release.means(by="smoker", group={"ward": "a"})
    assert (np.abs(by_smoker.value[0, 1:] - expected) <= GRID + 0.3 * by_smoker.std[0, 1:]).all()
    merged = release.means(group={"ward": "a"}).value[:, 0]
    np.testing.assert_allclose(merged, data[data.ward == "a"][NUMBERS].mean(), atol=GRID)


@pytest.mark.parametrize(("first", "second"), [("smoker", "outcome"), ("outcome", "ward"), ("ward", "smoker")])
def test_tables_of_categories_and_groups_are_those_of_pandas(exact, data, first, second):
    found = exact.table(first, second)
    frame = data.assign(outcome=data.outcome.fillna("missing"), smoker=data.smoker.map({True: "yes", False: "no"}))
    expected = pd.crosstab(frame[first], frame[second], normalize=True, margins=True, margins_name="all")
    np.testing.assert_allclose(found.value, expected.loc[list(found.rows), list(found.columns)], atol=1e-12)


def test_a_table_of_one_group(data):
    release = exact_release(mdp.TableMoments(COLUMNS, RECORDS, ["ward", "smoker"]), data)
    chosen = data[data.smoker]
    expected = pd.crosstab(chosen.ward, chosen.outcome.fillna("missing"), margins=True).to_numpy() / RECORDS
    found = release.table("ward", "outcome", group={"smoker": "yes"})
    np.testing.assert_allclose(found.value, expected[:, [0, 2, 1, 3]], atol=1e-12)  # ill, well, missing


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("by", [(), ("ward",), ("smoker", "ward")], ids=["all", "ward", "smoker and ward"])
def test_tables_add_up_and_agree_with_means(data, by, neighbours):
    design = mdp.make_design(mdp.TableMoments(COLUMNS, RECORDS, by, neighbours=neighbours), PRIVACY)
    release = design.release(data, stream=mdp.Stream(seed=1), simulation=True)
    for first, second in permutations(("ward", "smoker", "outcome"), 2):
        found = release.table(first, second)
        np.testing.assert_allclose(found.measured[:-1].sum(axis=0), found.measured[-1], atol=1e-12)
        np.testing.assert_allclose(found.measured[:, :-1].sum(axis=1), found.measured[:, -1], atol=1e-12)
        np.testing.assert_array_equal(found.value, np.clip(found.measured, 0, 1 if neighbours == "replace" else None))
        if neighbours == "replace":
            assert found.value[-1, -1] == pytest.approx(1.0)
            assert found.std[-1, -1] == 0
        else:
            assert found.std[-1, -1] > 0
        if neighbours == "replace" or first in by:  # otherwise a share of the noisy number of all records
            shares = release.means(by=first)
            np.testing.assert_allclose(shares.value[:, 0], found.value[:-1, -1], atol=1e-12)
            np.testing.assert_allclose(shares.std[:, 0], found.std[:-1, -1], rtol=1e-9)


def test_error_bars_of_tables_are_those_of_noise(data):
    """The noise of 100 releases has the claimed standard deviations, in every cell and total."""
    query = mdp.TableMoments(COLUMNS, RECORDS, ["ward", "smoker"])
    exact, rng = exact_release(query, data), np.random.default_rng(0)
    structure = exact.design.structure
    for first, second in (("ward", "outcome"), ("smoker", "ward")):
        std, noise = exact.table(first, second).std, []
        for _ in range(100):
            drawn = structure.combine(exact.design.noise, rng.standard_normal(structure.count))
            noise.append(Release(drawn, exact.design, simulation=True).table(first, second).measured)
        np.testing.assert_allclose(np.std(noise, axis=0), std, rtol=0.35, atol=1e-12)


def test_the_error_bars_of_a_table_are_less_than_those_of_its_cells(noisy):
    found = noisy.table("smoker", "outcome")
    raw = noisy.design.std[noisy.design.query.places["smoker"].value, noisy.design.query.places["outcome"].value]
    assert (found.std[:-1, :-1] < raw).all()


def test_covariances_are_pairwise_complete(data):
    release = exact_release(mdp.TableMoments(COLUMNS, RECORDS), data)
    found, frame = release.covariance(), data[NUMBERS]
    for i, a in enumerate(NUMBERS):
        for j, b in enumerate(NUMBERS):
            both = frame[[a, b]].dropna()
            expected = np.cov(both[a], both[b], ddof=0)[0, 1] if a != b else both[a].var(ddof=0).iloc[0]
            assert found.value[i, j] == pytest.approx(expected, rel=0.05 if i == j else 1e-3, abs=GRID)
    complete = exact_release(
        mdp.TableMoments(mdp.Columns([mdp.Number("age", 0, 120), mdp.Number("bmi", 10, 50)]), RECORDS),
        data[["age", "bmi"]].fillna(30.0),
    )
    expected = data[["age", "bmi"]].fillna(30.0).corr().to_numpy()
    np.testing.assert_allclose(complete.correlation().value, expected, atol=0.02)


def test_a_regression_on_numbers_and_levels(data):
    complete = data.dropna().reset_index(drop=True)
    columns = mdp.Columns([column for column in COLUMNS if column.name in ("age", "bmi", "ward", "smoker")])
    query = mdp.TableMoments(columns, len(complete))
    release = exact_release(query, complete)
    found = release.regression("bmi", ["age", "smoker"])
    features = np.column_stack([complete.age, complete.smoker])
    expected = LinearRegression().fit(features, complete.bmi)
    assert found.names == ("intercept", "age", "smoker=yes")
    np.testing.assert_allclose(found.coefficients, [expected.intercept_, *expected.coef_], rtol=0.02)
    residual = complete.bmi - expected.predict(features)
    design = np.column_stack([np.ones(len(complete)), features])
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * residual.var())
    low, high = found.interval()
    assert (low < found.coefficients).all()
    assert (found.coefficients < high).all()
    terms = np.column_stack([[expected.intercept_, *expected.coef_], errors])
    fit = np.array([[expected.score(features, complete.bmi)], [residual.std(ddof=0)]])
    for estimate, numbers in ((found.terms, terms), (found.fit, fit)):
        low, high = estimate.interval()
        assert ((low <= numbers) & (numbers <= high)).all()
    assert found.fit.plausible.all()
    assert re.search(r"share explained +~0\.\d+ \[0", str(found))
    sharp = mdp.make_design(query, mdp.Privacy(100.0, 1e-6)).release(
        complete, stream=mdp.Stream(seed=0), simulation=True
    )
    close = sharp.regression("bmi", ["age", "smoker"])
    np.testing.assert_allclose(close.fit.value, fit, rtol=0.05)
    assert close.r_squared == close.fit.value[0, 0]
    np.testing.assert_allclose(close.sampling_std, errors, rtol=0.05)
    everything = release.regression("bmi")
    assert everything.names == ("intercept", "age", "ward=b", "ward=c", "smoker=yes")


def test_discriminant_analysis_classifies(data):
    complete = data.dropna().reset_index(drop=True)
    columns = mdp.Columns([mdp.Number("age", 0, 120), mdp.YesNo("smoker"), mdp.Category("outcome", ["ill", "well"])])
    release = exact_release(mdp.TableMoments(columns, len(complete)), complete)
    found = release.discriminant("outcome")
    features = np.column_stack([complete.age, complete.smoker]).astype(float)
    expected = LinearDiscriminantAnalysis().fit(features, complete.outcome)
    assert found.classes == ("ill", "well")
    agree = (found.predict(features) == expected.predict(features)).mean()
    assert agree > 0.97


def test_principal_components(data):
    query = mdp.TableMoments(COLUMNS, RECORDS)
    release = mdp.make_design(query, mdp.Privacy(200.0, 1e-6)).release(data, stream=mdp.Stream(seed=0), simulation=True)
    found = release.components(2)
    assert found.rows == (*NUMBERS, "variance")
    assert found.columns == ("PC1", "PC2")
    np.testing.assert_allclose(np.linalg.norm(found.value[:-1], axis=0), 1.0, atol=1e-9)
    assert found.value[-1, 0] > found.value[-1, 1]
    with pytest.raises(mdp.ParameterError, match="count must be"):
        release.components(4)


def test_components_that_noise_mixes_have_plausible_ranges(noisy, data):
    found = noisy.components()
    assert not found.reliable.any()
    assert found.plausible.all()
    assert str(found).count("~") == found.value.size
    low, high = found.interval()
    assert ((low >= -1) & (low <= found.value) & (found.value <= high))[:-1].all()
    assert (high <= 1)[:-1].all()
    variances = np.linalg.eigvalsh(data[NUMBERS].corr())[::-1]  # pairwise complete
    assert ((low[-1] <= variances) & (variances <= high[-1])).all()
    assert (low[-1] >= 0).all()
    assert (high[-1] <= len(NUMBERS)).all()
    facts = found.to_dict()
    assert facts["plausible"] == [[True] * 3] * 4
    assert facts["std"][0] == [None] * 3
    assert "reasons" not in facts


def test_a_correlation_says_what_noise_hides(data):
    """Too few records, or a variance that is not larger than its noise."""
    query = mdp.TableMoments(mdp.Columns([mdp.Number("age", 0, 1e5), COLUMNS["bmi"], COLUMNS["score"]]), RECORDS)
    design = mdp.make_design(query, PRIVACY)
    release = design.release(data.assign(score=np.nan), stream=mdp.Stream(seed=0), simulation=True)
    found = release.correlation()
    assert not found.reliable[[0, 1, 0], [1, 2, 2]].any()
    low, high = found.interval()
    assert (low[[0, 1, 0], [1, 2, 2]] == -1).all()
    assert (high[[0, 1, 0], [1, 2, 2]] == 1).all()
    assert np.diagonal(found.value).tolist() == np.diagonal(low).tolist() == [1, 1, 1]
    assert str(found).count("0 [-1, 1]") == 6
    assert found.list_notes() == [CUT_NOTE]


def test_means_of_small_groups_have_intervals_within_their_bounds(data):
    """A mean whose number of records does not stand out from its noise has no error bar."""
    design = mdp.make_design(mdp.TableMoments(COLUMNS, RECORDS), mdp.Privacy(0.05, 1e-6))
    release = design.release(data, stream=mdp.Stream(seed=0), simulation=True)
    found, row = release.means(by="ward"), 2
    assert found.rows[row] == "c"
    assert not found.reliable[row, 1:].any()
    assert not found.plausible.any()
    low, high = (end[row, 1:] for end in found.interval())
    truth = data[data.ward == "c"][NUMBERS].mean().to_numpy()
    assert ((low <= truth) & (truth <= high)).all()
    assert ((low <= found.value[row, 1:]) & (found.value[row, 1:] <= high)).all()
    assert (low >= [0, 10, -4]).all()
    assert (high <= [120, 50, 4]).all()
    assert found.to_dict()["std"][row][1] is None
    assert re.search(r"^c .* \d\S* \[\d", str(found), re.MULTILINE)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_intervals_of_means_cover_the_noise_of_the_number_of_records(neighbours):
    """The mean is far from the middle of its bounds, where that noise counts; at least 95% of 400, within 3 errors."""
    columns = mdp.Columns([mdp.Number("x", -1, 1), mdp.Category("ward", ["a", "b"])])
    data = pd.DataFrame({"x": [0.8] * 40 + [0.0] * 960, "ward": ["a"] * 40 + ["b"] * 960})
    query = mdp.TableMoments(columns, 1000, neighbours=neighbours)
    design, rng, inside = mdp.make_design(query, mdp.Privacy(0.5, 1e-6)), np.random.default_rng(0), []
    exact = query.evaluate(data, clip=True, missing="error")
    for _ in range(400):
        noise = design.structure.combine(design.noise, rng.standard_normal(design.structure.count))
        found = Release(query.finish(exact + noise), design, simulation=True).means(by="ward")
        if not found.reliable[0, 1]:
            low, high = found.interval()
            inside.append(low[0, 1] <= 0.8 <= high[0, 1])
    assert len(inside) > 350
    assert np.mean(inside) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / len(inside))


@pytest.mark.parametrize("epsilon", [0.02, 0.2, 2.0])
def test_intervals_hold_the_truth_in_95_of_100_releases(data, epsilon):
    """Of means by level, spreads, correlations and counts, with and without error bars; at least 93% of 60 releases."""
    query = mdp.TableMoments(COLUMNS, RECORDS)
    exact = exact_release(query, data)
    design, rng = mdp.make_design(query, mdp.Privacy(epsilon, 1e-6)), np.random.default_rng(0)
    questions = {
        "means": lambda release: release.means(),
        "means by level": lambda release: release.means(by="ward"),
        "correlation": lambda release: release.correlation(),
        "table": lambda release: release.table("ward", "outcome"),
    }
    frame = data.assign(outcome=data.outcome.fillna("missing"))
    truth = {
        "means": np.column_stack([data[NUMBERS].mean(), data[NUMBERS].std(ddof=0), data[NUMBERS].notna().mean()]),
        "means by level": np.column_stack(
            [frame.ward.value_counts(normalize=True).sort_index(), frame.groupby("ward")[NUMBERS].mean()]
        ),
        "correlation": data[NUMBERS].corr().to_numpy(),
        "table": exact.table("ward", "outcome").value,
    }
    inside = {name: [] for name in truth}
    for _ in range(60):
        noise = design.structure.combine(design.noise, rng.standard_normal(design.structure.count))
        release = Release(query.finish(exact.matrix + noise), design, simulation=True)
        for name, ask in questions.items():
            found = ask(release)
            low, high = found.interval()
            assert (low <= high).all()
            inside[name].append((low - GRID <= truth[name]) & (truth[name] <= high + GRID))
    for name, found in inside.items():
        assert np.mean(found) >= 0.93, name


def test_error_bars_use_the_noise_of_the_release(noisy):
    found = noisy.means()
    assert (found.std[:, 0] > 0).all()
    assert found["age", "mean"] == found.value[0, 0]
    assert set(found["bmi"]) == {"mean", "standard deviation", "share observed"}
    low, high = found.interval(0.9)
    np.testing.assert_allclose(high[:, 0] - low[:, 0], 2 * 1.6448536 * found.std[:, 0], rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.means(by="age"), "'age' must be a category"),
        (lambda r: r.means(by="nothing"), "a column must be one of"),
        (lambda r: r.table("smoker", "smoker"), "two different categories"),
        (lambda r: r.table("smoker", "age"), "'age' must be a category"),
        (lambda r: r.regression("ward"), "'ward' must hold numbers"),
        (lambda r: r.regression("age", []), "at least one column"),
        (lambda r: r.regression("age", ["age"]), "not the target"),
        (lambda r: r.regression("age", ["nothing"]), "a column must be one of"),
        (lambda r: r.discriminant("age"), "'age' must be a category"),
        (lambda r: r.means(group="a"), "group must be 0 levels"),
        (lambda r: r.means(group={"ward": "a"}), "group must be of columns"),
        (lambda r: r.means().interval(1.5), "level must be"),
    ],
)
def test_mistakes_are_named(noisy, call, message):
    with pytest.raises(mdp.ParameterError, match=message):
        call(noisy)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.means(by="ward", group="a"), "levels of other columns than 'ward'"),
        (lambda r: r.means(by="ward", group={"ward": "a"}), "all levels of 'ward'"),
        (lambda r: r.table("outcome", "ward", {"ward": "a"}), "all levels of 'ward'"),
        (lambda r: r.table("ward", "smoker", {"smoker": "yes"}), "all levels of 'smoker'"),
        (lambda r: r.table("ward", "age"), "'age' must be a category"),
        (lambda r: r.table("ward", "ward"), "two different categories"),
        (lambda r: r.regression("age", ["ward"]), "'ward' groups the release"),
        (lambda r: r.discriminant("ward"), r"--group ward=LEVEL"),
    ],
)
def test_mistakes_about_groups_are_named(data, call, message):
    release = exact_release(mdp.TableMoments(COLUMNS, RECORDS, ["ward", "smoker"]), data)
    with pytest.raises(mdp.ParameterError, match=message):
        call(release)


def test_other_releases_have_no_tables():
    bounds = mdp.Bounds([0, 0], [1, 1])
    release = mdp.make_design(mdp.Moments(bounds, 10), PRIVACY).release(np.full((10, 2), 0.5))
    for call in (lambda: release.means("a"), lambda: release.table("a", "b"), lambda: release.means("a", shrunk=True)):
        with pytest.raises(mdp.ParameterError, match="TableMoments"):
            call()
    with pytest.raises(mdp.ParameterError, match="group must be left out"):
        release.covariance("north")
    second = mdp.make_design(mdp.SecondMoment(bounds, 10), PRIVACY).release(np.full((10, 2), 0.5))
    with pytest.raises(mdp.ParameterError, match="follow from Moments or TableMoments, got SecondMoment"):
        second.means()


@pytest.mark.parametrize("directions", [None, [[0.8, 0.6, 0], [-0.6, 0.8, 0], [0, 0, 1]]])
def test_moments_of_numbers_answer_what_a_table_of_them_answers(directions):
    rng = np.random.default_rng(0)
    data = rng.uniform(-1, 1, (20_000, 3))
    data[:, 2] = 0.5 * data[:, 0] + 0.3 * data[:, 2]
    names, privacy = ["a", "b", "c"], mdp.Privacy(2, 1e-6)
    bounds = mdp.Bounds([-1] * 3, [1] * 3, names=names)
    table = mdp.TableMoments(mdp.Columns([mdp.Number(name, -1, 1) for name in names]), len(data))
    released = [
        mdp.make_design(mdp.Moments(bounds, len(data)), privacy, directions=directions).release(data),
        mdp.make_design(table, privacy).release(dict(zip(names, data.T, strict=True))),
    ]
    one, other = ([each.means(), each.covariance(), each.correlation()] for each in released)
    for found, expected in zip(one, other, strict=True):
        assert (found.rows, found.columns) == (expected.rows, expected.columns)
        both = 6 * np.hypot(found.std, expected.std) + 1e-9
        assert ((np.abs(found.value - expected.value) < both) | np.isnan(both)).all()
    variances = [each.components().value[-1] for each in released]
    assert variances[0] == pytest.approx(variances[1], abs=0.05)
    slopes, exact = released[0].regression("c", on=["a", "b"]), np.array([0.0, 0.5, 0.0])
    assert (np.abs(slopes.coefficients - exact) < 5 * slopes.std).all()
    assert slopes.names == ("intercept", "a", "b")


def test_an_estimate_prints_as_a_table():
    found = Estimate(np.array([[1.0, np.nan]]), np.array([[0.5, np.nan]]), ("row",), ("a", "b"))
    assert str(found) == "               a        b\nrow  1.00 ± 0.50  too few"


def test_a_name_that_is_not_there_is_an_error_that_lists_the_others():
    estimate = Estimate(np.eye(2), np.zeros((2, 2)), ("a", "b"), ("a", "b"))
    assert estimate["a", "a"] == 1.0
    with pytest.raises(mdp.ParameterError, match="there is no column 'c'; the columns are a, b"):
        estimate["a", "c"]
    with pytest.raises(mdp.ParameterError, match="there is no row 'c'; the rows are a, b"):
        estimate["c"]
