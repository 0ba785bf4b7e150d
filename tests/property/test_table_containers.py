"""In every container, changing one record of a table changes at most that record's values and codes."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.records.tables import TableBlock
from nightly import examples

BIG = 2**53
INTEGERS = mdp.Category("a", [0, 1, 2, BIG + 1], other=True, missing=True)
SMALL = mdp.Category("a", [0, 1, 2], other=True, missing=True)
TEXTS = mdp.Category("a", ["1", "x", "true", "1.0"], other=True, missing=True)
ANSWER = mdp.YesNo("a", missing=True)
NUMBER = mdp.Number("a", -10, 10, missing=True)
BOUNDS = mdp.Bounds([-10], [10])

CONTAINERS = {
    "rows": lambda values: [(value,) for value in values],
    "mapping": lambda values: {"a": values},
    "array": lambda values: np.array([(value,) for value in values]),
    "object array": lambda values: np.array([(value,) for value in values], object),
    "pandas": lambda values: pd.DataFrame({"a": values}),
    "pandas object": lambda values: pd.DataFrame({"a": pd.Series(values, dtype=object)}),
    "pandas categories": lambda values: pd.DataFrame({"a": pd.Series(values).astype("category")}),
    "polars": lambda values: pl.DataFrame({"a": pl.Series(values, strict=False)}),
    "Arrow": lambda values: pa.table({"a": values}),
}
VALUES = {
    "number": [0, 1, 0.1, -3.7, 1e300, 10**400, 2**63, 2**64, BIG + 1, True, None, float("nan"), np.float32(0.1)],
    "integers": [0, 1, 2, 3, BIG, BIG + 1, 1.0, 0.5, True, None, float("nan"), np.float64(2.0), np.int64(BIG + 1)],
    "texts": ["1", "x", "true", "1.0", "", " ", "y", None],
    "yes": [True, False, 1, 0, 1.0, 0.0, None, float("nan")],
    "words": ["yes", "no", " YES", "0", "", None],
}
OWN = {"number": [0, 0.1, -3.7, 5], "integers": [0, 1, 2, BIG + 1], "texts": ["1", "x"], "yes": [True, False]}
OWN["words"] = ["yes", "no"]
CASES = [(NUMBER, "number"), (INTEGERS, "integers"), (SMALL, "integers"), (TEXTS, "texts"), (ANSWER, "yes")]
CASES.append((ANSWER, "words"))


def read(make, column, values):
    """The column as numbers or codes; None for what the container cannot hold, or what is refused."""
    try:
        data = make(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    try:
        block = TableBlock(data, mdp.Columns([column]))
        found = block.numbers("a") if isinstance(column, mdp.Number) else block.codes(column)
    except mdp.DataError:
        return None
    if not isinstance(column, mdp.Number):
        return found
    there = np.isfinite(found)
    steps = BOUNDS.quantise(np.where(there, found, 0.0)[:, None], 2**19)[:, 0]  # as the query rounds them
    return np.where(there, steps, np.nan)


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize(("column", "kind"), CASES)
@examples(25)
@given(st.data())
def test_a_value_changes_no_other(name, column, kind, data):
    rows = data.draw(st.lists(st.sampled_from(OWN[kind]), min_size=4, max_size=4))
    other = [data.draw(st.sampled_from(VALUES[kind])), *rows[1:]]
    first, second = (read(CONTAINERS[name], column, values) for values in (rows, other))
    if first is not None and second is not None:
        assert np.array_equal(first[1:], second[1:], equal_nan=True)


@pytest.mark.parametrize(("column", "kind"), CASES)
@examples(40)
@given(st.data())
def test_all_containers_agree_with_values_read_one_by_one(column, kind, data):
    values = data.draw(st.lists(st.sampled_from(VALUES[kind]), min_size=1, max_size=6))
    alone = [read(CONTAINERS["rows"], column, [value]) for value in values]
    if any(one is None for one in alone):
        return
    expected = np.concatenate(alone)
    for name in ("rows", "mapping", "object array", "pandas object"):
        found = read(CONTAINERS[name], column, values)
        assert np.array_equal(found, expected, equal_nan=True), name


def test_one_array_for_all_values_is_found(monkeypatch):
    """Reading through one array of a common type recodes the other values."""
    monkeypatch.setattr(
        TableBlock, "codes", lambda self, column: (np.array(self.values["a"]).astype(float) == BIG + 1).astype(int)
    )
    rows = [0, BIG, 1, 2]
    first = read(CONTAINERS["mapping"], INTEGERS, rows)
    assert first[1] == 1  # 2^53 is taken for 2^53 + 1
