"""Sums of products are exact, whatever the order, the blocks and the threads."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from matrixdp import DataError, ParameterError
from matrixdp.queries.sums import GramSum


def python_gram(q):
    columns = [[int(x) for x in column] for column in q.T]
    return [[sum(a * b for a, b in zip(u, v, strict=True)) for v in columns] for u in columns]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_order_and_partition_gives_the_same_integers(data):
    limit = data.draw(st.sampled_from([1, 2**15, 2**19, 2**26]))
    rows, columns = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 6))
    q = np.random.default_rng(data.draw(st.integers(0, 2**32))).integers(-limit, limit, (rows, columns), endpoint=True)
    cuts = sorted(data.draw(st.lists(st.integers(0, rows), max_size=4)))
    total = GramSum(columns, limit=limit)
    for block in np.split(q[data.draw(st.permutations(range(rows)))].astype(float), cuts):
        total.add(np.ascontiguousarray(block))
    assert total.value().tolist() == python_gram(q)
    assert total.records == rows


def test_threads_and_block_sizes_do_not_change_a_bit():
    q = np.random.default_rng(1).integers(-(2**19), 2**19, (50_000, 23)).astype(float)
    values = []
    for threads in (1, 2):
        for step in (17, 4096, 50_000):
            total = GramSum(23, limit=2**19)
            with threadpool_limits(threads):
                for start in range(0, len(q), step):
                    total.add(q[start : start + step])
            values.append(total.value())
    assert all(np.array_equal(values[0], value) for value in values[1:])
    assert np.array_equal(values[0], q.astype(np.int64).T @ q.astype(np.int64))


def test_float32_would_be_wrong():
    q = np.random.default_rng(1).integers(-(2**15), 2**15, (1000, 3))
    single = q.astype(np.float32)
    assert (single.T @ single != q.T @ q).all()


def test_merged_sums_are_the_sum_of_all():
    q = np.random.default_rng(2).integers(-100, 100, (30, 4)).astype(float)
    whole, left, right = (GramSum(4, limit=100) for _ in range(3))
    whole.add(q)
    left.add(q[:11])
    right.add(q[11:])
    left.merge(right)
    assert np.array_equal(left.value(), whole.value())
    assert left.records == 30
    with pytest.raises(ParameterError, match="same columns and limit"):
        left.merge(GramSum(4, limit=99))


def test_what_leaves_the_exact_range_is_an_error():
    total = GramSum(1, limit=1)
    with pytest.raises(DataError, match="integers within the limit"):
        total.add(np.array([[2.0**27]]))
    with pytest.raises(DataError, match="NaN"):
        GramSum(1, limit=1).add(np.array([[np.nan]]))


def test_sums_that_would_overflow_are_an_error():
    total = GramSum(1, limit=2**26)
    total.records = 2**11
    with pytest.raises(DataError, match="do not fit into 64 bits"):
        total.add(np.ones((1, 1)))


def test_unfit_arguments_are_named():
    with pytest.raises(ParameterError, match="limit must be"):
        GramSum(1, limit=2**27)
    with pytest.raises(ParameterError, match="block must have shape"):
        GramSum(2, limit=1).add(np.ones((2, 3)))


def test_a_sum_can_be_sent_to_another_process_and_continued():
    rows = np.random.default_rng(0).integers(-9, 10, (40, 3)).astype(float)
    total = GramSum(3, limit=9)
    total.add(rows[:20])
    again = pickle.loads(pickle.dumps(total))
    again.add(rows[20:])
    assert again.records == 40
    np.testing.assert_array_equal(again.value(), (rows.T @ rows).astype(int))
