"""Sums by level are those of products of indicators, however categories are combined and groups are spread."""

import numpy as np
import pytest

from matrixdp.queries import table_sums
from matrixdp.queries.sums import sorted_runs
from matrixdp.queries.table_sums import LevelSums, combine_categories


def make_records(widths, groups, rows, seed=0):
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, width, rows).astype(np.int8) for width in widths]
    of_group = rng.integers(0, groups, rows)
    return codes, of_group, rng.integers(-(2**19), 2**19, (rows, 3)).astype(float)


def multiply(widths, codes, of_group, vectors, groups):
    one_hot = np.concatenate(
        [np.eye(width, dtype=np.int64)[code] for width, code in zip(widths, codes, strict=True)], 1
    )
    counts = np.array([one_hot[of_group == g].T @ one_hot[of_group == g] for g in range(groups)])
    sums = np.array([one_hot[of_group == g].T @ vectors[of_group == g].astype(np.int64) for g in range(groups)])
    return counts, sums


@pytest.mark.parametrize("most", [1, 8, 64, 1 << 8])
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("widths", [[2], [2, 3], [2, 3, 4, 2, 5], [1, 7, 1], [2] * 9])
def test_sums_are_those_of_products(monkeypatch, widths, groups, most):
    monkeypatch.setattr(table_sums, "_MOST_COMBINED", most)
    codes, of_group, vectors = make_records(widths, groups, 300)
    total, other = LevelSums(widths, groups, 3), LevelSums(widths, groups, 3)
    for part, rows in ((total, slice(0, 90)), (total, slice(90, 200)), (other, slice(200, 300))):
        part.add([code[rows] for code in codes], of_group[rows] if groups > 1 else None, vectors[rows].T)
    total.merge(other)
    counts, sums = multiply(widths, codes, of_group, vectors, groups)
    np.testing.assert_array_equal(total.counts, counts)
    np.testing.assert_array_equal(total.sums, sums)


def test_categories_are_combined_while_there_are_few_levels():
    assert combine_categories([8, 8, 8, 8], 8) == [slice(0, 2), slice(2, 4)]
    assert combine_categories([2] * 10, 1) == [slice(0, 8), slice(8, 10)]
    assert combine_categories([1000, 2, 1000], 1) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    assert combine_categories([2, 2], 10**6) == [slice(0, 1), slice(1, 2)]
    assert combine_categories([], 1) == []


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.intp])
def test_runs_are_the_rows_of_each_group(kind):
    groups = np.array([5, 2, 5, 0, 5], kind)
    order, runs = sorted_runs(groups)
    assert runs == [(0, 0, 1), (2, 1, 2), (5, 2, 5)]
    assert groups[order].tolist() == [0, 2, 5, 5, 5]


@pytest.mark.parametrize("most", [10, 70_000])
def test_rows_of_a_group_keep_their_order(most):
    keys = np.random.default_rng(0).integers(0, most, 1000)
    np.testing.assert_array_equal(sorted_runs(keys)[0], np.argsort(keys, kind="stable"))


def test_small_codes_do_not_overflow():
    total = LevelSums([127, 126], 128, 0)
    total.add([np.array([126], np.int8), np.array([125], np.int8)], np.array([127], np.int8), np.zeros((0, 1)))
    total.collect()
    assert np.argwhere(total.counts).tolist() == [[127, 126, 126], [127, 126, 252], [127, 252, 126], [127, 252, 252]]
