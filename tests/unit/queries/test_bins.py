"""Numbers as categories of bins beside the moments of a table: what is counted, what it costs, what uses it."""

import json

import numpy as np
import pandas as pd
import pytest

import matrixdp as mdp
from matrixdp.domain.columns import Bins
from matrixdp.errors import ParameterError
from matrixdp.records import with_ids

PRIVACY = mdp.Privacy(1, 1e-6)
COLUMNS = mdp.Columns(
    [
        mdp.Number("x", 0, 8, missing=True),
        mdp.Category("c", ["a", "b"]),
        mdp.Number("n", 0, 2, step=1),
        mdp.YesNo("g"),
    ]
)
DATA = pd.DataFrame({"x": [0.0, 9.0, None, 5.0], "c": list("abab"), "n": [0, 1, 2, 2], "g": [True, False, True, True]})


def moments(query, data=DATA, **options):
    return query.evaluate(data, **{"clip": True, "missing": "error"} | options)


def with_categories(data, bins):
    """The table with one more category for each number, as any category, after it."""
    found, columns = {}, []
    for column in COLUMNS:
        found[column.name] = data[column.name]
        columns.append(column)
        if isinstance(column, mdp.Number):
            one = Bins.of(column, bins)
            values = data[column.name].astype(float).clip(column.lower, column.upper)
            codes = one.find(values.to_numpy())
            found[one.name] = [one.levels[k] if k < len(one.levels) else None for k in codes]
            columns.append(mdp.Category(one.name, one.levels, missing=one.missing))
    return pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in found.items()}), mdp.Columns(columns)


@pytest.mark.parametrize("by", [(), ("g",)])
@pytest.mark.parametrize("bins", [2, 3, 8])
def test_bins_are_categories_that_are_computed_from_a_number(by, bins):
    """The same matrix and the same distance as those of a table that has the bins as columns, of a quarter weight."""
    query = mdp.TableMoments(COLUMNS, 4, by, bins=bins)
    data, columns = with_categories(DATA, bins)
    weights = {name: 0.25 for name in columns.names if name.endswith(" in bins")}
    same = mdp.TableMoments(columns, 4, by, importance=weights)
    np.testing.assert_array_equal(moments(query), moments(same, data))
    assert query.names == same.names
    assert mdp.make_design(query, PRIVACY).distance == mdp.make_design(same, PRIVACY).distance
    np.testing.assert_array_equal(mdp.make_design(query, PRIVACY).std, mdp.make_design(same, PRIVACY).std)


def test_bins_of_people_have_the_weights_of_their_rows():
    ids = ["p", "p", "q", "r"]
    query = mdp.TableMoments(COLUMNS, 3, bins=2, person="id")
    data, columns = with_categories(DATA, 2)
    weights = {name: 0.25 for name in columns.names if name.endswith(" in bins")}
    same = mdp.TableMoments(columns, 3, person="id", importance=weights)
    np.testing.assert_array_equal(moments(query, with_ids(DATA, ids)), moments(same, with_ids(data, ids)))


def test_each_number_has_its_own_missing_values():
    numbers = [mdp.Number(name, 0, 4, missing=True) for name in "xy"]
    query = mdp.TableMoments(mdp.Columns(numbers), 2, bins=2)
    levels = moments(query, {"x": [1.0, np.nan], "y": [np.nan, 3.0]})[0]
    for name, gone in (("x in bins", [0.5, 0, 0.5]), ("y in bins", [0, 0.5, 0.5])):
        assert [levels[query.names.index(f"{name}={level}")] for level in ("1", "2", "missing")] == gone


def test_what_rounding_takes_from_people_is_in_one_bin():
    """In sums, whose last bits an answer does not show: levels of a number in bins have the weight of all people."""
    query = mdp.TableMoments(mdp.Columns([mdp.Number("x", 0, 4)]), 1, bins=2, person="id")
    total = query._add_up(
        with_ids(pd.DataFrame({"x": [1.0, 3.0, 3.0]}), ["p"] * 3), query._task(clip=True, missing="error")
    )
    low, middle, high = (limb.astype(object) for limb in total.sums[0].limbs())
    exact = low + (middle << 22) + (high << 44)
    assert exact[0, 2] + exact[0, 3] == exact[0, 0]
    assert exact[2, 3] == 0


@pytest.mark.parametrize("records", [2, 1000, 10**6, 2**40])
def test_weights_of_people_in_bins_are_exact_in_floats(records):
    """At most twice as many people are in a bin."""
    query = mdp.TableMoments(mdp.Columns([mdp.Number("x", 0, 4)]), records, shapes=0.1, person="id")
    assert 2 * records * query._task(clip=True, missing="error").bin_unit <= 2**53


def test_a_missing_value_that_is_replaced_is_in_the_bin_of_the_middle():
    query = mdp.TableMoments(mdp.Columns([mdp.Number("n", 0, 2, step=1)]), 3, bins=3)
    found = moments(query, {"n": [np.nan, 0, 2]}, missing="midpoint")[0, -3:]
    np.testing.assert_allclose(found, 1 / 3)


def test_bins_of_numbers_with_steps_have_as_many_values():
    grades = Bins.of(mdp.Number("grade", 1, 5, step=1), 2)
    assert grades.find(np.array([1.0, 2, 3, 4, 5])).tolist() == [0, 0, 1, 1, 1]
    assert len(Bins.of(mdp.Number("grade", 1, 5, step=1), 8).levels) == 5


def test_answers_do_not_show_bins():
    release = mdp.make_design(mdp.TableMoments(COLUMNS, 4, bins=4), mdp.Privacy(1e4, 1e-6)).release(DATA)
    assert release.means().rows == ("x", "n")
    assert set(release.query.places) == {"x", "c", "n", "g"}
    with pytest.raises(ParameterError, match="a column must be one of"):
        release.means("x in bins")
    again = mdp.Release.from_json(release.to_json())
    assert again.query.bins == 4
    assert again.query.shape == release.query.shape


def test_a_release_without_bins_is_stored_as_before():
    release = mdp.make_design(mdp.TableMoments(COLUMNS, 4), PRIVACY).release(DATA)
    assert "bins" not in json.loads(release.to_json())["design"]["query"]


@pytest.mark.parametrize("bins", [1, 65, -1, 2.5, True])
def test_bins_must_be_few(bins):
    with pytest.raises(ParameterError, match="bins"):
        mdp.TableMoments(COLUMNS, 4, bins=bins)


def test_bins_need_numbers():
    with pytest.raises(ParameterError, match="no numbers"):
        mdp.TableMoments(mdp.Columns([mdp.YesNo("g")]), 4, bins=4)
