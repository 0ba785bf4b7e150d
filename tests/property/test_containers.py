"""In every container, changing one record changes at most that record's code."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.records import read_array
from nightly import examples

BIG = 2**53
CATEGORIES = [1, 2, BIG, BIG + 1, BIG + 2]
TABLE = mdp.ContingencyTable(CATEGORIES, CATEGORIES, 4)
WORDS = mdp.ContingencyTable(["1", "2", "x", "true", "1.0"], ["1", "2", "x", "true", "1.0"], 4)


def arrow(rows):
    return pa.table({name: list(column) for name, column in zip("ab", zip(*rows, strict=True), strict=True)})


def pandas_columns(rows):
    return pd.DataFrame(dict(zip("ab", map(list, zip(*rows, strict=True)), strict=True)))


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "iterator": iter,
    "array": np.array,
    "object array": lambda rows: np.array(rows, object),
    "string array": lambda rows: np.array(rows, str),
    "pandas": pandas_columns,
    "pandas object": lambda rows: pandas_columns(rows).astype(object),
    "pandas categories": lambda rows: pandas_columns(rows).astype("category"),
    "polars": lambda rows: pl.DataFrame(list(rows), schema=["a", "b"], orient="row", strict=False),
    "Arrow": arrow,
}


def counts(query, make, rows):
    """The table, or None for records outside of the domain or that the container itself cannot hold."""
    try:
        data = make(rows)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    try:
        return query.evaluate(data, clip=True, missing="error")
    except mdp.DataError:
        return None


def changed_cells(query, make, first, second):
    before, after = counts(query, make, first), counts(query, make, second)
    return 0.0 if before is None or after is None else float(np.abs(before - after).sum())


INTEGERS = st.sampled_from([*CATEGORIES, 1.0, 2.0, float(BIG), True, np.float64(1.0), np.int64(BIG + 1)])
STRINGS = st.sampled_from(["1", "2", "x", "true", "1.0", 1, 1.0, True, None])


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize(("query", "values"), [(TABLE, INTEGERS), (WORDS, STRINGS)])
@examples(60)
@given(st.data())
def test_a_pair_recodes_no_other(name, query, values, data):
    own = st.sampled_from(query.rows)
    rows = data.draw(st.lists(st.tuples(own, own), min_size=4, max_size=4))
    other = [data.draw(st.tuples(values, values)), *rows[1:]]
    assert changed_cells(query, CONTAINERS[name], rows, other) <= 2


@pytest.mark.parametrize("name", ["pandas", "polars", "Arrow"])
def test_a_column_of_floats_does_not_recode_the_other_column(name):
    rows = [(BIG + 1, 1), (BIG + 1, 2), (BIG + 1, 2), (BIG + 2, 2)]
    floats = [(a, float(b)) for a, b in rows]
    query = mdp.ContingencyTable(CATEGORIES, [1, 2], 4)
    first, second = (counts(query, CONTAINERS[name], table) for table in (rows, floats))
    assert np.array_equal(first, second)
    assert first[CATEGORIES.index(BIG + 1)].sum() == 3


def test_one_array_for_both_columns_is_found():
    """The conversion of a whole frame to one array recodes all records."""
    rows = [(BIG + 1, 1), (BIG + 1, 2), (BIG + 1, 2), (BIG + 1, 2)]
    other = [(BIG + 1, 1.0), *rows[1:]]
    assert changed_cells(TABLE, lambda table: pandas_columns(table).to_numpy().astype(int), rows, other) > 2


def test_integers_in_a_column_of_floats_that_rounds_them_are_refused():
    with pytest.raises(mdp.DataError, match="are rounded"):
        TABLE.evaluate(pd.DataFrame({"a": [1.0, float(BIG)], "b": [1, 1]}), clip=True, missing="error")


def test_categories_of_text_and_integers_need_a_container_that_keeps_both():
    mixed = mdp.ContingencyTable([1, "1"], ["a"], 2)
    assert mixed.evaluate([(1, "a"), ("1", "a")], clip=True, missing="error").tolist() == [[1], [1]]
    for make in (np.array, lambda rows: pl.DataFrame({"x": ["1", "1"], "y": ["a", "a"]})):
        with pytest.raises(mdp.DataError, match="must be given as a list"):
            mixed.evaluate(make([(1, "a"), ("1", "a")]), clip=True, missing="error")


BOUNDS = mdp.Bounds([-10, -10], [10, 10], names=["a", "b"])
NUMBERS = st.sampled_from(
    [0, 1, 0.1, -3.7, 1e300, 10**400, -(10**400), 2**63, 2**64, BIG + 1, True, np.float32(0.1), np.longdouble("0.1")]
)


@pytest.mark.parametrize(
    "name", [name for name in CONTAINERS if name not in ("string array", "iterator", "pandas categories")]
)
@examples(40)
@given(st.data())
def test_a_record_of_numbers_recodes_no_other(name, data):
    rows = data.draw(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=4, max_size=4))
    other = [data.draw(st.tuples(NUMBERS, NUMBERS)), *rows[1:]]
    codes = []
    for table in (rows, other):
        try:
            array = read_array(CONTAINERS[name](table), 2, BOUNDS.names)
            codes.append(BOUNDS.quantise(array, 2**19))
        except (mdp.DataError, pa.ArrowException, TypeError, ValueError, OverflowError):
            return  # the container cannot hold them
    assert np.array_equal(codes[0][1:], codes[1][1:])
