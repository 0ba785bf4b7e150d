"""Moments of a table: against pandas, by group, stored and read again, and every mistake."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import matrixdp as mdp
from matrixdp.queries import table_sums
from matrixdp.queries.sums import sum_levels

PRIVACY = mdp.Privacy(1.0, 1e-6)
N = 400
TABLE = mdp.Columns(
    [
        mdp.Number("x", -4, 4, missing=True),
        mdp.Category("ward", ["a", "b", "c"], other=True),
        mdp.Number("y", 0, 16),
        mdp.Number("z", -1, 1, missing=True),
        mdp.YesNo("smoker", missing=True),
    ]
)


def make_frame():
    """Values on the grid of the query, so that they are exact."""
    rng = np.random.default_rng(4)
    steps = sum_levels(N)
    frame = pd.DataFrame(
        {
            "z": rng.integers(-steps, steps, N) / steps,
            "x": rng.integers(-steps, steps, N) * 4 / steps,
            "y": 8 + rng.integers(-steps, steps, N) * 8 / steps,
            "ward": rng.choice(["a", "b", "c", "d"], N),
            "smoker": rng.choice(np.array([True, False, None], object), N),
            "unused": "text",
        }
    )
    frame.loc[rng.random(N) < 0.3, "x"] = np.nan
    frame.loc[rng.random(N) < 0.3, "z"] = np.nan
    return frame


FRAME = make_frame()
MIDDLE = {"x": 0.0, "y": 8.0, "z": 0.0}


def coordinates(frame):
    """The vectors z of a frame by their names, from pandas alone."""
    found = {"1": np.ones(len(frame))}
    for name in ("x", "y", "z"):
        found[name] = (frame[name] - MIDDLE[name]).fillna(0.0).to_numpy()
        found[f"{name} observed"] = frame[name].notna().to_numpy(float)
    for level in "abc":
        found[f"ward={level}"] = (frame["ward"] == level).to_numpy(float)
    found["ward=other"] = (~frame["ward"].isin(list("abc"))).to_numpy(float)
    gone = frame["smoker"].isna()
    found["smoker=missing"] = gone.to_numpy(float)
    found["smoker=yes"], found["smoker=no"] = ((~gone & (frame["smoker"] == v)).to_numpy(float) for v in (True, False))
    return found


@pytest.mark.parametrize("by", [(), ("ward",)])
def test_the_moments_are_those_of_pandas(by):
    query = mdp.TableMoments(TABLE, N, by)
    answer = query.evaluate(FRAME, clip=True, missing="error").reshape(query.groups, *[query.layout.size] * 2)
    for group, matrix in zip(query.group_levels, answer, strict=True):
        ward = FRAME["ward"].where(FRAME["ward"].isin(list("abc")), "other")
        part = FRAME[ward == group[0]] if by else FRAME
        known = coordinates(part)
        z = np.array([known[name] for name in query.names])
        np.testing.assert_allclose(matrix, z @ z.T / N, rtol=1e-12, atol=1e-14)
        i, o = query.places["x"].value, query.places["x"].observed
        both = part[part["x"].notna() & part["z"].notna()]
        j, r = query.places["z"].value, query.places["z"].observed
        assert round(matrix[o, r] * N) == len(both)
        assert matrix[o, i] / matrix[o, o] == pytest.approx(part["x"].mean(), rel=1e-12)
        count, product = matrix[o, r], matrix[i, j]
        covariance = product / count - (matrix[i, r] / count) * (matrix[o, j] / count)
        assert covariance * len(both) / (len(both) - 1) == pytest.approx(part["x"].cov(part["z"]), rel=1e-10)


def test_two_columns_of_groups_are_their_product():
    columns = mdp.Columns([mdp.Number("y", 0, 16), mdp.YesNo("u"), mdp.Category("v", [1, 2, 3])])
    frame = pd.DataFrame({"y": FRAME["y"], "u": np.arange(N) % 2 == 0, "v": np.arange(N) % 3 + 1})
    query = mdp.TableMoments(columns, N, ("u", "v"))
    assert query.group_levels == tuple(itertools.product(("no", "yes"), ("1", "2", "3")))
    answer = query.evaluate(frame, clip=True, missing="error").reshape(6, 2, 2)
    sizes = frame.groupby(["u", "v"]).size().to_numpy()
    np.testing.assert_allclose(answer[:, 0, 0] * N, sizes, rtol=1e-12)
    sums = (frame["y"] - 8).groupby([frame["u"], frame["v"]]).sum().to_numpy()
    np.testing.assert_allclose(answer[:, 0, 1] * N, sums, rtol=1e-12)
    assert query.entry_names[0][:2] == ("u=no, v=1: 1", "u=no, v=1: y")


def test_many_small_groups_in_any_order():
    columns = mdp.Columns([mdp.Number("y", 0, 16), mdp.Category("v", range(200))])
    codes = np.random.default_rng(0).integers(0, 200, N)
    query = mdp.TableMoments(columns, N, ["v"])
    answers = [
        query.evaluate({"y": FRAME["y"].to_numpy()[o], "v": codes[o]}, clip=True, missing="error")
        for o in (np.arange(N), np.random.default_rng(1).permutation(N))
    ]
    np.testing.assert_array_equal(*answers)
    np.testing.assert_allclose(answers[0].reshape(200, 2, 2)[:, 0, 0] * N, np.bincount(codes, minlength=200))


@pytest.mark.parametrize("by", [(), ("ward",)])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_release_is_stored_and_read_bit_by_bit(by, neighbours):
    query = mdp.TableMoments(TABLE, N, by, neighbours=neighbours, importance={"x": 2.0}, mean_share=0.3)
    release = mdp.make_design(query, PRIVACY).release(FRAME)
    again = mdp.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    np.testing.assert_array_equal(again.std, release.std)
    again.design.check()
    low, high = query.possible
    exact = query.finish(query.evaluate(FRAME, clip=True, missing="error"))
    assert ((low <= exact) & (exact <= high)).all()
    assert (np.abs(release.matrix - exact) <= 6 * release.std + 1e-12).all()
    assert (release.matrix == exact)[query.public].all()


def test_importance_and_the_share_of_means():
    plain = mdp.make_design(mdp.TableMoments(TABLE, N), PRIVACY)
    place = plain.query.places["y"].value
    heavy = mdp.make_design(mdp.TableMoments(TABLE, N, importance={"y": 4.0}), PRIVACY)
    assert heavy.std[0, place] < plain.std[0, place]
    assert heavy.std[0, plain.query.places["x"].value] > plain.std[0, plain.query.places["x"].value]
    means = mdp.make_design(mdp.TableMoments(TABLE, N, mean_share=0.5), PRIVACY)
    assert means.std[0, place] < plain.std[0, place]
    assert means.std[place, 1] > plain.std[place, 1]


def test_the_default_share_of_the_constant():
    """What suits covariances, less what sums over levels tell of the constant; with groups, all of it."""
    numbers = [mdp.Number(f"x{i}", 0, 1) for i in range(4)]
    category = mdp.Category("c", ["a", "b", "c", "d"])
    share = {True: 1 / (1 + math.sqrt(8 * 4)), False: 1 / (1 + 5 / (5 / math.sqrt(8 * 5) - 1 / 4))}
    assert mdp.TableMoments(mdp.Columns(numbers), N).mean_share == pytest.approx(share[True])
    assert mdp.TableMoments(mdp.Columns([*numbers, category]), N).mean_share == pytest.approx(share[False])
    assert mdp.TableMoments(mdp.Columns([*numbers, category]), N, ["c"]).mean_share == pytest.approx(share[True])
    many = mdp.Columns([*numbers, *(mdp.YesNo(f"c{i}") for i in range(10))])
    assert mdp.TableMoments(many, N).mean_share == pytest.approx(0.01 / 1.01)


def test_groups_cost_what_one_moment_costs():
    columns = mdp.Columns([mdp.Number("x", -4, 4), mdp.Number("y", 0, 16), mdp.Category("g", range(50))])
    alone = mdp.make_design(mdp.TableMoments(columns.without(["g"]), N), PRIVACY)
    groups = mdp.make_design(mdp.TableMoments(columns, N, ["g"]), PRIVACY)
    assert groups.std[1, 2] == pytest.approx(alone.std[1, 2], rel=1e-6)
    assert groups.std[0, 1] == pytest.approx(alone.std[0, 1], rel=1e-6)
    assert groups.std[0, 0] > 0


@pytest.mark.parametrize("columns", [["y"], ["ward"], ["x"], ["smoker"]])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_one_column_and_one_record_are_enough(columns, neighbours):
    described = mdp.Columns([TABLE[name] for name in columns])
    design = mdp.make_design(mdp.TableMoments(described, 1, neighbours=neighbours), PRIVACY)
    assert np.isfinite(design.release(FRAME[:1]).matrix).all()
    assert design.distance <= design.mu


def test_numbers_that_must_be_there():
    query = mdp.TableMoments(mdp.Columns([mdp.Number("x", -4, 4)]), N)
    with pytest.raises(mdp.DataError, match="column 'x' has an empty"):
        query.evaluate(FRAME, clip=True, missing="error")
    middle = query.evaluate(FRAME, clip=True, missing="midpoint")
    assert middle[0, 1] == pytest.approx(FRAME["x"].fillna(0.0).mean(), rel=1e-12)
    wide = mdp.TableMoments(mdp.Columns([mdp.Number("y", 0, 1)]), N)
    with pytest.raises(mdp.DataError, match="within their bounds"):
        wide.evaluate(FRAME, clip=False, missing="error")


def test_the_number_of_records_is_checked():
    with pytest.raises(mdp.ParameterError, match="number of rows"):
        mdp.TableMoments(TABLE, N + 1).evaluate(FRAME, clip=True, missing="error")
    added = mdp.TableMoments(TABLE, 2 * N, neighbours="add-remove").evaluate(FRAME, clip=True, missing="error")
    assert added[0, 0] == 0.5
    with pytest.raises(mdp.DataError, match="at most 2 x 100 records"):
        mdp.TableMoments(TABLE, 100, neighbours="add-remove").evaluate(FRAME, clip=True, missing="error")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["x"]}, "columns must be Columns"),
        ({"records": 0}, "records"),
        ({"by": ["nobody"]}, "no column 'nobody'"),
        ({"by": ["x"]}, "must be a category"),
        ({"by": ["smoker"]}, "'smoker' may be missing"),
        ({"by": ["ward", "ward"]}, "each column once"),
        ({"by": 3}, "by must be names"),
        ({"by": [3]}, "by must be names"),
        ({"mean_share": 0.0}, "mean_share"),
        ({"mean_share": 0.6}, "mean_share"),
        ({"importance": {"nobody": 1.0}}, "importance must be of columns among"),
        ({"importance": {"x": 0.0}}, "importance of 'x'"),
        ({"importance": {"x": 1e7}}, "importance of 'x'"),
        ({"importance": 3}, "importance must map"),
        ({"neighbours": "both"}, "neighbours"),
        ({"columns": mdp.Columns([mdp.Category("ward", ["a"])]), "by": ["ward"]}, "leave at least one column"),
        ({"columns": mdp.Columns([mdp.Category("c", range(9000))])}, "at most 67,108,864 entries"),
    ],
)
def test_mistakes_are_answered(options, message):
    with pytest.raises(mdp.ParameterError, match=message):
        mdp.TableMoments(**{"columns": TABLE, "records": N, **options})


def test_directions_and_allocations_are_refused():
    query = mdp.TableMoments(TABLE, N)
    with pytest.raises(mdp.ParameterError, match="importance to columns"):
        mdp.make_design(query, PRIVACY, allocation=mdp.allocations.shares(np.arange(1, 14) / 91))
    assert mdp.make_design(query, PRIVACY, allocation="isotropic").distance <= PRIVACY.mu


@pytest.mark.parametrize("by", [(), ("ward",)])
def test_sums_of_products_from_a_device_are_added_like_those_of_the_host(monkeypatch, by):
    task = table_sums.TableTask(TABLE, by, N, True, "error")
    host, total = task(0, [FRAME]), task.start()
    sums = [(group, host.value(group), one.records) for group, one in enumerate(host.sums)]
    monkeypatch.setattr(table_sums, "sums_on_device", lambda *_arguments: sums)
    total.add_on_device(FRAME, task)
    assert total.records == host.records == N
    for group, _ in enumerate(sums):
        np.testing.assert_array_equal(total.value(group), host.value(group))
