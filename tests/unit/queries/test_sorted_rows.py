"""Rows are sorted by group and code, whatever the number of both, and found again group by group."""

import numpy as np
import pytest

from matrixdp.queries.level_sums import SortedRows, join_codes


@pytest.mark.parametrize(
    ("count", "size"), [(1, 1), (3, 5), (255, 257), (256, 256), (300, 70_000)], ids=lambda number: str(number)
)
def test_rows_are_in_the_order_of_groups_and_codes(count, size):
    rng = np.random.default_rng(0)
    groups, codes = rng.integers(0, count, 1000), rng.integers(0, size, 1000)
    rows = SortedRows(groups, codes, count, size)
    np.testing.assert_array_equal(rows.order, np.lexsort((codes, groups)))
    expected = np.zeros((count, size), int)
    np.add.at(expected, (groups, codes), 1)
    np.testing.assert_array_equal(rows.sizes, expected.ravel())


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.intp])
def test_runs_are_the_rows_of_each_group(kind):
    groups = np.array([5, 2, 5, 0, 5], kind)
    rows = SortedRows(groups, None, 7, 1)
    assert list(rows.runs(5)) == [(0, 0, 1), (2, 1, 2), (5, 2, 5)]
    assert groups[rows.order].tolist() == [0, 2, 5, 5, 5]


def test_rows_without_groups_and_codes_stay_as_they_are():
    rows = SortedRows(None, None, 1, 1)
    assert rows.order is None
    assert list(rows.runs(3)) == [(0, 0, 3)]


def test_small_codes_do_not_overflow():
    joined = join_codes(np.array([127], np.int8), np.array([126], np.int8), 128, 500)
    assert joined.tolist() == [127 * 500 + 126]
