"""Synthetic tables: valid by the schema, with the moments of the release, by seed; intervals from several of them."""

import math
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.answers import synthetic
from matrixdp.answers.estimate import Estimate
from matrixdp.answers.histograms import Histogram
from matrixdp.answers.synthetic import (
    Margin,
    Rows,
    Spread,
    find_shares,
    make_tables,
    raise_eigenvalues,
    rake,
    round_quotas,
    spread_histogram,
)
from matrixdp.errors import ParameterError
from matrixdp.records import with_ids
from matrixdp.report.page import write_words

COLUMNS = mdp.Columns(
    [
        mdp.Number("age", 0, 100, step=1),
        mdp.Number("bmi", 10, 60, missing=True),
        mdp.Category("ward", ["north", "south", "east"]),
        mdp.YesNo("smoker"),
    ]
)


def no_draws(_view):
    """As for a table with more than 100 columns and levels; quick."""


without_draws = mock.patch.object(synthetic, "draw_moments", no_draws)


def make_data(count, seed=0):
    rng = np.random.default_rng(seed)
    age, ward = np.clip(rng.normal(50, 15, count).round(), 0, 100), rng.choice(["north", "south", "east"], count)
    smoker = rng.random(count) < 0.2 + 0.4 * (ward == "east")
    bmi = np.clip(10 + 0.3 * age + 3 * smoker + rng.normal(0, 3, count), 10, 60)
    bmi[rng.random(count) < 0.1 + 0.2 * smoker] = np.nan
    return pd.DataFrame({"age": age, "bmi": bmi, "ward": ward, "smoker": smoker})


def make_release(count=4000, epsilon=4.0, columns=COLUMNS, data=None, seed=1, **options):
    design = mdp.make_design(mdp.TableMoments(columns, count, **options), mdp.Privacy(epsilon, 1e-6))
    data = make_data(count) if data is None else data
    return design.release(data, stream=mdp.Stream(seed=seed), simulation=True)


def check_valid(frame, columns, rows):
    assert list(frame.columns) == list(columns.names)
    assert len(frame) == rows
    for column in columns:
        values = frame[column.name]
        there = values.dropna()
        assert column.missing or len(there) == len(values)
        if isinstance(column, mdp.Number):
            assert ((there >= column.lower) & (there <= column.upper)).all()
            if column.step is not None:
                steps = (there - column.lower) / column.step
                assert np.allclose(steps, np.rint(steps), atol=1e-6)
        elif isinstance(column, mdp.YesNo):
            assert set(there) <= {True, False}
        else:
            assert set(map(str, there)) <= set(column.level_names) - {"missing"}


KINDS = st.sampled_from(("number", "missing", "step", "category", "integers", "yes/no", "one level"))


@without_draws
@settings(max_examples=30, deadline=None)
@given(
    st.lists(KINDS, min_size=1, max_size=4),
    st.floats(-2, 2),
    st.integers(1, 300),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from(("spread", "constant", "gone")),
)
def test_every_row_is_valid(kinds, power, rows, seed, shapes, values):
    rng, columns, data, count = np.random.default_rng(seed), [], {}, 60
    for k, kind in enumerate(kinds):
        name = f"c{k}"
        number = np.full(count, 3.0) if values == "constant" else rng.integers(0, 9, count).astype(float)
        if kind in ("number", "step"):
            columns.append(mdp.Number(name, -1, 8, step=0.5 if kind == "step" else None))
            data[name] = number.clip(-1, 8)
        elif kind == "missing":
            columns.append(mdp.Number(name, -1e6, 8, missing=True))
            data[name] = np.where(rng.random(count) < (1.1 if values == "gone" else 0.5), np.nan, number)
        elif kind == "yes/no":
            columns.append(mdp.YesNo(name, missing=True))
            data[name] = [None if one > 6 else one > 3 for one in number]
        else:
            levels = {"category": ["a", "b", "c"], "integers": [1, 2, 3], "one level": ["a"]}[kind]
            columns.append(mdp.Category(name, levels, other=kind == "category", missing=kind == "integers"))
            data[name] = [levels[int(one) % len(levels)] for one in number]
    columns = mdp.Columns(columns)
    options = {"shapes": 0.1, "neighbours": "add-remove"} if shapes and columns.numbers else {}
    release = make_release(count, 10**power, columns, pd.DataFrame(data), seed, **options)
    check_valid(release.synthetic(rows, seed=seed), columns, rows)


@given(st.lists(st.floats(-0.2, 1), min_size=1, max_size=8), st.integers(1, 10_000), st.integers(0, 99))
def test_levels_have_their_quotas(noisy, rows, seed):
    shares = find_shares(np.array(noisy))
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)
    counts = round_quotas(shares, rows, np.random.default_rng(seed))
    assert counts.sum() == rows
    assert np.abs(counts - shares * rows).max() < 1 + 1e-6


@without_draws
def test_columns_have_the_released_means_and_spreads():
    release = make_release(columns=COLUMNS, shapes=0.1)
    frame, said = release.synthetic(5000, seed=0), release.means()
    for name in ("age", "bmi"):
        width = 50.0 if name == "age" else 25.0
        assert abs(frame[name].mean() - said[name, "mean"]) < 2e-3 * width
        assert abs(frame[name].std() - said[name, "standard deviation"]) < 0.02 * width
    assert frame["bmi"].notna().mean() == pytest.approx(said["bmi", "share observed"], abs=1e-3)


def own_rows(frame, columns, rng):
    """Rows that have the columns of a table in random order, and their covariances in the table."""
    query = mdp.TableMoments(columns, len(frame))
    margins, start = [], 0
    for column in columns:
        place = query.places[column.name]
        if isinstance(column, mdp.Number):
            half = (column.upper - column.lower) / 2
            values = (frame[column.name].to_numpy(float) - column.lower) / half - 1
            stop = start + 1 + bool(place.observed)
        else:
            names = (
                frame[column.name].map({True: "yes", False: "no"}.get)
                if column.type == "yes/no"
                else frame[column.name]
            )
            values = pd.Categorical(names, categories=column.level_names).codes.astype(int)
            stop = start + len(place.levels)
        margins.append(Margin(column, place, slice(start, stop), values))
        start = stop
    truth = Rows(margins, rng)
    return Rows([one._replace(values=rng.permutation(one.values)) for one in margins], rng), truth.covariance


def test_pairs_can_be_met_and_the_misfit_never_grows():
    rows, wanted = own_rows(make_data(5000), COLUMNS, np.random.default_rng(3))
    losses = rows.fit(wanted, np.full(wanted.shape, 1e6))
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(losses))
    apart = np.abs((rows.covariance - wanted) / rows.spreads)[rows.apart]
    assert (apart < 0.01).mean() >= 0.98
    assert apart.mean() < 0.002


def test_the_table_fits_the_release():
    release = make_release(epsilon=1.0, shapes=0.1)
    made = make_tables(release.matrix, release.design, None, None, 0)[0]
    assert made.misfit < 0.5
    assert (np.abs(made.comparison.errors) < 2).mean() >= 0.95


@without_draws
def test_impossible_moments_give_a_table():
    release = make_release(count=500)
    matrix = release.matrix.copy()
    matrix[1:, 1:] = -matrix[1:, 1:]  # negative variances, negative counts
    matrix[0, 4] = matrix[4, 0] = -0.01
    frame = replace(release, matrix=matrix).synthetic(300)
    check_valid(frame, COLUMNS, 300)


@without_draws
def test_a_number_of_which_all_values_are_missing():
    """Noise can make its share observed negative: it is then one standard deviation of the noise, and the mean any."""
    data = make_data(500).assign(bmi=np.nan)
    for epsilon, most in ((0.1, 1.0), (1.0, 0.2), (1e3, 0.002)):
        frame = make_release(500, epsilon, data=data).synthetic(1000, seed=0)
        check_valid(frame, COLUMNS, 1000)
        assert frame["bmi"].notna().mean() <= most


@without_draws
def test_what_noise_hides_is_named():
    columns = mdp.Columns([mdp.Number("age", 0, 100), mdp.Category("ward", ["north", "south", "rare"])])
    data = pd.DataFrame({"age": np.full(500, 50.0), "ward": np.where(np.arange(500) % 2, "north", "south")})
    release = make_release(500, 0.5, columns, data)
    *_, words = write_words("synthetic_assumptions", make_tables(release.matrix, release.design, 300, None, 0)[0])
    assert words == "Hidden by noise, and so a guess: spread of age, share of ward=rare."


PROGRAM = """
import hashlib, sys
sys.path.insert(0, "tests/unit/answers")
from test_synthetic import make_release
table = make_release(500, shapes=0.1).synthetic(400, seed=5)
print(hashlib.sha256(table.to_csv().encode()).hexdigest())
"""


def test_a_seed_gives_the_same_bytes_on_any_number_of_threads(pytestconfig):
    found = set()
    for threads in ("1", "2"):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        command = [sys.executable, "-c", PROGRAM]
        options = {"cwd": pytestconfig.rootpath, "env": environment, "check": True}
        found.add(subprocess.run(command, capture_output=True, text=True, **options).stdout)
    assert len(found) == 1


@without_draws
def test_a_seed_gives_the_same_table_and_the_release_stays():
    release = make_release(1000)
    before = release.to_json()
    one, same, other = (release.synthetic(500, seed=seed) for seed in (5, 5, 6))
    pd.testing.assert_frame_equal(one, same)
    assert not one.equals(other)
    assert release.to_json() == before


def test_several_tables_vary_as_the_noise():
    columns = mdp.Columns([mdp.Number("x", -1, 1)])
    data = pd.DataFrame({"x": np.linspace(-0.5, 0.5, 400)})
    release = make_release(400, 1.0, columns, data)
    means = [frame["x"].mean() for frame in release.synthetic(500, tables=200, seed=1)]
    ratio = np.var(means) / release.means().std[0, 0] ** 2
    assert 0.7 < ratio < 1.35  # 99.9% of a chi-square variable with 199 degrees of freedom


def test_combine_follows_the_rule():
    values, own = np.array([[1.0, 5.0], [1.4, 5.0], [0.9, 5.0]]), np.array([[0.04, 0.2], [0.05, 0.2], [0.03, 0.2]])
    found = mdp.combine(values, own, rows=500, records=1000)
    between = np.var(values[:, 0], ddof=1) * 4 / 3
    assert found.value.tolist() == pytest.approx([1.1, 5.0])
    assert found.std.tolist() == pytest.approx([math.sqrt(0.02 + between), math.sqrt(0.1)])
    freedom = 2 * (1 + 0.02 / between) ** 2
    from scipy.stats import t

    assert found.high[0] - found.value[0] == pytest.approx(t.ppf(0.975, freedom) * found.std[0])
    assert found.high[1] - 5.0 == pytest.approx(1.959964 * found.std[1], rel=1e-5)
    for wrong in ({"rows": 0, "records": 5}, {"rows": 5, "records": 0}):
        with pytest.raises(ParameterError):
            mdp.combine(values, own, **wrong)
    with pytest.raises(ParameterError, match=r"same shape.*got the shapes"):
        mdp.combine(values, own[:2], rows=1, records=1)
    with pytest.raises(ParameterError, match="not negative"):
        mdp.combine(values, -own, rows=1, records=1)


def test_intervals_of_a_slope_hold_it():
    rng, hits, slope = np.random.default_rng(0), [], 0.5
    columns = mdp.Columns([mdp.Number("x", -1, 1), mdp.Number("y", -2, 2)])
    for seed in range(30):
        x = rng.uniform(-1, 1, 1000)
        data = pd.DataFrame({"x": x, "y": slope * x + rng.uniform(-1, 1, 1000)})
        release = make_release(1000, 2.0, columns, data, seed)
        found = []
        for frame in release.synthetic(300, tables=8, seed=seed):
            (value, _), covariance = np.polyfit(frame["x"], frame["y"], 1, cov=True)
            found.append((value, covariance[0, 0]))
        answer = mdp.combine(*zip(*found, strict=True), rows=300, records=1000)
        hits.append(bool(answer.low <= slope <= answer.high))
    assert np.mean(hits) >= 0.83  # fewer with a probability of 0.3% for a coverage of 0.95


@without_draws
def test_pairs_that_cannot_occur_do_not():
    columns = mdp.Columns(COLUMNS.columns, impossible=[{"ward": ["north", "south"], "smoker": "yes"}])
    data = make_data(1000)
    data["smoker"] &= data["ward"] == "east"
    for by in ((), ("ward",)):
        release = make_release(1000, 1.0, columns, data, by=by)
        frame = release.synthetic(seed=1)
        assert not (frame["smoker"] & (frame["ward"] != "east")).any()
        check_valid(frame, columns, 1000)


@without_draws
def test_a_level_that_the_release_shows_must_be_possible():
    columns = mdp.Columns(COLUMNS.columns, impossible=[{"ward": ["north", "south", "east"], "smoker": "yes"}])
    with pytest.raises(ParameterError, match="the release shows it"):
        make_release(columns=columns).synthetic(100)


def make_seasons(count, rng):
    """Months and their seasons, a number that depends on them, and the pairs that cannot occur."""
    seasons = {"winter": (12, 1, 2), "spring": (3, 4, 5), "summer": (6, 7, 8), "autumn": (9, 10, 11)}
    month = rng.integers(1, 13, count)
    data = {
        "month": month,
        "season": np.array([*seasons])[month % 12 // 3],
        "warm": np.clip(15 - 12 * np.cos((month - 1) / 6 * np.pi) + rng.normal(0, 3, count), -10, 40),
    }
    others = [
        {"season": name, "month": [one for one in range(1, 13) if one not in own]} for name, own in seasons.items()
    ]
    columns = [mdp.Category("month", range(1, 13)), mdp.Category("season", seasons), mdp.Number("warm", -10, 40)]
    return data, mdp.Columns(columns, impossible=others), seasons


@without_draws
@pytest.mark.parametrize("rows", [1, 2, 30, 4000])
def test_many_pairs_that_cannot_occur_leave_the_others_as_they_were(rows):
    """They have one weight each, however many there are: the number keeps its means by season."""
    data, columns, seasons = make_seasons(4000, np.random.default_rng(0))
    release = make_release(4000, 1.0, columns, data)
    frame = release.synthetic(rows, seed=1)
    assert all(month in seasons[season] for month, season in zip(frame["month"], frame["season"], strict=True))
    if rows == 4000:
        real, made = (one.groupby("season")["warm"].mean() for one in (pd.DataFrame(data), frame))
        assert np.abs(real - made).mean() < 1.5  # of a range of 50; 2.5 with weights that grow from pair to pair


@pytest.mark.parametrize("known", [False, True])
def test_a_column_that_determines_another_keeps_their_table(known):
    """Draws alone, which move such a relation towards few common factors, had a distance of 0.2 and more."""
    data, columns, _ = make_seasons(3000, np.random.default_rng(0))
    release = make_release(3000, 1.0, columns if known else mdp.Columns(columns.columns), data)
    made = make_tables(release.matrix, release.design, None, None, 0)[0]
    real, found = (one.groupby(["month", "season"]).size() / 3000 for one in (pd.DataFrame(data), made.to_frame()))
    assert real.sub(found, fill_value=0).abs().sum() / 2 < 0.08
    assert (np.abs(made.comparison.errors) < 2).mean() > 0.8


def test_shares_agree_with_what_can_occur():
    """Sums of months and shares of seasons, which noise made different, are the same; and each moves half the way."""
    allowed = np.repeat(np.eye(2), 2, axis=0)
    months, seasons = np.array([0.2, 0.2, 0.3, 0.3]), np.array([0.5, 0.5])
    table = rake(np.multiply.outer(months, seasons) * allowed, months, seasons)
    assert table == pytest.approx(np.array([[0.225, 0.0], [0.225, 0.0], [0.0, 0.275], [0.0, 0.275]]))
    assert not rake(np.zeros((2, 2)), seasons, seasons).any()


@without_draws
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("by", [(), ("a",)])
def test_no_pair_is_left_where_few_levels_are_possible(seed, by):
    """Noise hides the levels that are possible, and a row has no other one at first."""
    rng = np.random.default_rng(seed)
    levels = [str(k) for k in range(6)]
    names = ["a", "b", "c"]
    pairs = [{"a": levels[1:], "b": levels[1:]}, {"b": levels[:1], "c": levels[:4]}, {"a": levels[:1], "c": levels[5:]}]
    columns = mdp.Columns([mdp.Category(name, levels) for name in names], impossible=pairs)
    data = pd.DataFrame({name: rng.choice(levels, 20) for name in names})
    release = make_release(20, 0.05, columns, data, seed, by=by)
    for rows in (1, 3, 200):
        frame = release.synthetic(rows, seed=seed)
        for pair in pairs:
            assert not np.logical_and.reduce([frame[name].isin(some) for name, some in pair.items()]).any()


@without_draws
@pytest.mark.parametrize("by", [(), ("a",)])
def test_something_must_be_possible(by):
    pairs = [{"a": "x", "b": "p"}, {"a": "x", "b": "q"}, {"a": ["y"], "b": ["p", "q"]}]
    columns = [mdp.Category("a", ["x", "y"]), mdp.Category("b", ["p", "q"])]
    data = pd.DataFrame({"a": ["x", "y"] * 5, "b": ["p", "q"] * 5})
    release = make_release(10, 0.01, mdp.Columns(columns, impossible=pairs), data, by=by)
    with pytest.raises(ParameterError, match="impossible must leave"):
        release.synthetic(100)


@without_draws
def test_a_group_that_the_release_shows_must_be_possible():
    columns = mdp.Columns(COLUMNS.columns, impossible=[{"ward": "east", "smoker": ["yes", "no"]}])
    with pytest.raises(ParameterError, match="group ward=east"):
        make_release(columns=columns, by=("ward",)).synthetic(100)


@pytest.mark.parametrize("half", [1e-58, 1e-18, 1e18, 1e58])
def test_numbers_may_have_any_scale(half):
    """Also those that may be missing, as times in nanoseconds."""
    columns = mdp.Columns([mdp.Number("x", -half, half, missing=True), mdp.YesNo("yes")])
    rng = np.random.default_rng(0)
    yes = rng.random(1000) < 0.5
    x = half * np.where(rng.random(1000) < 0.1, np.nan, 0.5 * yes - 0.2 * rng.random(1000))
    frame = make_release(1000, 3.0, columns, pd.DataFrame({"x": x, "yes": yes})).synthetic(seed=0)
    means = frame.groupby("yes")["x"].mean() / half
    assert means[True] - means[False] == pytest.approx(0.5, abs=0.1)


def test_groups_have_their_shares_and_their_own_moments():
    data = make_data(4000)
    frame = make_release(4000, 4.0, by=("ward",), data=data).synthetic(3000)
    real, made = (one.groupby("ward")["smoker"].mean() for one in (data, frame))
    assert np.abs(real - made).max() < 0.05
    shares = data["ward"].value_counts(normalize=True) - frame["ward"].value_counts(normalize=True)
    assert np.abs(shares).max() < 0.03


@without_draws
def test_a_table_of_people_has_a_row_for_each():
    data = make_data(900).assign(id=np.arange(900) // 3)
    frame = make_release(300, 4.0, data=data, person="id").synthetic()
    assert len(frame) == 300


def test_what_is_refused_names_the_argument():
    release = make_release(200)
    for options, word in (
        ({"rows": 0}, "rows"),
        ({"rows": 2.5}, "rows"),
        ({"rows": 10**9}, "rows"),
        ({"tables": 1}, "tables"),
        ({"seed": -1}, "seed"),
    ):
        with pytest.raises(ParameterError, match=word):
            release.synthetic(**options)
    with pytest.raises(ParameterError, match=r"impossible: levels of 'ward' must be among north"):
        mdp.Columns(COLUMNS.columns, impossible=[{"ward": "west", "smoker": "yes"}])
    plain = mdp.Moments(mdp.Bounds([0], [1]), 50)
    moments = mdp.make_design(plain, mdp.Privacy(1, 1e-6)).release(np.zeros((50, 1)))
    with pytest.raises(ParameterError, match="TableMoments"):
        moments.synthetic()


def test_eigenvalues_that_noise_leaves_alone_stay():
    for seed in range(30):  # rounding makes the sum over levels vary a little, or not; shrunk blocks do not sum to zero
        rng = np.random.default_rng(seed)
        rows, wanted = own_rows(make_data(200 + seed, seed), COLUMNS, rng)
        more = rng.normal(0, 1e-3, wanted.shape)
        wanted = np.where(rows.apart, wanted / 2 + more + more.T, 0.0)
        found = raise_eigenvalues(rows, wanted, np.full(wanted.shape, 1e-9), np.random.default_rng(0))
        assert found == pytest.approx(wanted, abs=1e-12)


def test_sums_over_rows_are_exact():
    rows, _ = own_rows(make_data(300), COLUMNS, np.random.default_rng(0))
    assert (rows.table == np.rint(rows.table)).all()
    assert np.abs(rows.table).max() <= 2**synthetic._BITS
    exact = rows.table.astype(int).T @ rows.table.astype(int)
    assert (rows.products == exact).all()
    rows.fit(np.zeros_like(rows.products), np.ones_like(rows.products))
    assert (rows.products == rows.table.T @ rows.table).all()


def test_bins_show_curved_relations_and_move_with_their_number():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 4000)
    data = {"x": x, "y": x**2 + rng.normal(0, 0.1, 4000), "far": np.abs(x) > 0.5}
    columns = mdp.Columns([mdp.Number("x", -1, 1), mdp.Number("y", -1, 2), mdp.YesNo("far")])
    found = {}
    for bins in (0, 8):
        query = mdp.TableMoments(columns, records=4000, shapes=0.1, bins=bins)
        release = mdp.make_design(query, mdp.Privacy(3, 1e-6)).release(data, stream=mdp.Stream(0), simulation=True)
        made = release.synthetic(seed=0)
        assert list(made.columns) == ["x", "y", "far"]
        found[bins] = np.corrcoef(made["x"] ** 2, made["y"])[0, 1], np.abs(made["x"])[made["far"]].mean()
    assert abs(found[0][0]) < 0.3
    assert found[8][0] > 0.7  # 0.95 in the data
    assert found[8][1] == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize("options", [{"by": ["ward"]}, {"person": "id"}, {"tables": 2}])
def test_bins_with_groups_people_and_several_tables(options):
    tables = options.pop("tables", None)
    data = make_data(400)
    query = mdp.TableMoments(COLUMNS, records=400, bins=4, **options)
    given = with_ids(data, range(400)) if "person" in options else data
    release = mdp.make_design(query, mdp.Privacy(3, 1e-6)).release(given, stream=mdp.Stream(0), simulation=True)
    made = release.synthetic(rows=300, tables=tables)
    for one in made if tables else [made]:
        assert list(one.columns) == list(COLUMNS.names)
        assert one["age"].between(0, 100).all()


def test_values_crowded_in_one_bin_have_the_released_mean():
    """The mean says where in its bin the values are, and the variance, which noise hides, does not spread them."""
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(0.012, 0.002, 20_000)}
    query = mdp.TableMoments(mdp.Columns([mdp.Number("x", -1, 1)]), records=20_000, shapes=0.1)
    release = mdp.make_design(query, mdp.Privacy(1, 1e-6)).release(data, stream=mdp.Stream(0), simulation=True)
    made = release.synthetic(seed=0)["x"]
    assert made.mean() == pytest.approx(0.012, abs=0.006)
    assert made.between(-0.0626, 0.0626).mean() > 0.95


def test_noise_of_the_variance_does_not_move_a_histogram_that_is_known_better():
    """A variance that is off by two standard deviations of its noise leaves the shares of bins within their noise."""
    number = mdp.Number("x", -1, 1)
    edges = np.linspace(-1, 1, 33)
    shares = np.concatenate([[0.0], np.exp(-((edges[1:] + edges[:-1]) ** 2) / 0.08), [0.0]])
    shares /= shares.sum()
    histogram = Histogram(number, edges, shares, shares, 0.001)
    found = Spread(1.0, 0.0, 0.01, [], 0.01, (0.002, 0.015))
    made = spread_histogram(histogram, found, 10_000)
    counts = np.histogram(made, edges)[0] / 10_000
    assert np.abs(counts - shares[1:-1]).max() < 0.002
    assert abs(made.mean()) < 0.005


def test_a_fit_decides_the_correlations_of_one_table():
    """Several tables, which are for intervals, have noise of the moments alone."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 0.05, 4000)
    data = {"x": x, "y": np.clip(0.9 * x + rng.normal(0, 0.02, 4000), -1, 1)}
    columns = mdp.Columns([mdp.Number("x", -1, 1), mdp.Number("y", -1, 1)])
    design = mdp.make_design(mdp.TableMoments(columns, records=4000), mdp.Privacy(1, 1e-6))
    release = design.release(data, stream=mdp.Stream(0), simulation=True)
    std = np.full((2, 2), 0.01)
    fitted = Estimate(np.array([[1.0, 0.8], [0.8, 1.0]]), std, ("x", "y"), ("x", "y"))
    made = make_tables(release.matrix, design, 2000, None, 0, fitted)[0]
    assert made.to_frame().corr().iloc[0, 1] == pytest.approx(0.8, abs=0.03)
    assert made.comparison.released[0] == pytest.approx(0.8, abs=1e-4)
    several = [make_tables(release.matrix, design, 500, 2, 0, given) for given in (fitted, None)]
    for one, other in zip(*several, strict=True):
        pd.testing.assert_frame_equal(one.to_frame(), other.to_frame())
