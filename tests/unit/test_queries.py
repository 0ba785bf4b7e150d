"""Answers of the queries on small data, from every kind of table, and their errors."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp import (
    Adjacency,
    Bounds,
    ContingencyTable,
    DataError,
    GramMatrix,
    Identity,
    Laplacian,
    Moments,
    ParameterError,
    Query,
    SecondMoment,
)
from matrixdp.sensitivity import FrobeniusBall, Vertices

RNG = np.random.default_rng(0)
BOUNDS = Bounds([0, -1], [4, 3], names=["a", "b"])
DATA = RNG.uniform([0, -1], [4, 3], (50, 2))


def answer(query, data, **options):
    return query.finish(query.evaluate(data, clip=options.get("clip", True), missing=options.get("missing", "error")))


def test_identity_gives_the_records_back():
    np.testing.assert_allclose(answer(Identity(BOUNDS, 50), DATA), DATA)
    outside = DATA + 100
    np.testing.assert_allclose(answer(Identity(BOUNDS, 50), outside), np.broadcast_to(BOUNDS.upper, (50, 2)))


def test_second_moment_about_the_midpoint_and_elsewhere():
    x = DATA - BOUNDS.midpoint
    np.testing.assert_allclose(answer(SecondMoment(BOUNDS, 50), DATA), x.T @ x / 50, atol=1e-5)
    np.testing.assert_allclose(
        answer(SecondMoment(BOUNDS, 50, centre=[1, 1]), DATA), (DATA - 1).T @ (DATA - 1) / 50, atol=1e-5
    )


def test_moments_hold_mean_and_second_moment():
    x = np.column_stack([np.ones(50), DATA - BOUNDS.midpoint])
    np.testing.assert_allclose(answer(Moments(BOUNDS, 50), DATA), x.T @ x / 50, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_moments_do_not_depend_on_the_order_of_records(seed):
    rng = np.random.default_rng(seed)
    data = rng.uniform(-1, 5, (200, 2))
    query = Moments(BOUNDS, 200)
    first = query.evaluate(data, clip=True, missing="error")
    assert np.array_equal(first, query.evaluate(rng.permutation(data), clip=True, missing="error"))


def test_a_radius_moves_records_into_the_ball():
    bounds = Bounds([-1, -1], [1, 1], radius=0.5)
    moment = answer(SecondMoment(bounds, 1), [[1.0, 1.0]])
    np.testing.assert_allclose(moment, np.full((2, 2), 0.125), rtol=1e-5)


def test_add_remove_neighbours_leave_the_number_of_records_private():
    query = Moments(BOUNDS, 40, neighbours="add-remove")
    assert answer(query, DATA)[0, 0] == pytest.approx(50 / 40)
    with pytest.raises(DataError, match="at most 2 x 20 records"):
        answer(Moments(BOUNDS, 20, neighbours="add-remove"), DATA)


@pytest.mark.parametrize(
    "table",
    [
        DATA,
        DATA.tolist(),
        pd.DataFrame({"x": "text", "b": DATA[:, 1], "a": DATA[:, 0]}),
        pd.DataFrame({"a": DATA[:, 0], "b": pd.array(DATA[:, 1], dtype="Float64")}),
        pl.DataFrame({"b": DATA[:, 1], "a": DATA[:, 0], "x": ["text"] * 50}),
        pa.table({"b": DATA[:, 1], "x": ["text"] * 50, "a": DATA[:, 0]}),
        scipy.sparse.csr_matrix(DATA),
    ],
    ids=["numpy", "list", "pandas", "pandas-nullable", "polars", "arrow", "sparse"],
)
def test_every_kind_of_table(table):
    np.testing.assert_allclose(answer(Identity(BOUNDS, 50), table), DATA)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [1.0, None], "b": [1.0, 2.0]}),
        pl.DataFrame({"a": [1.0, None], "b": [1.0, 2.0]}),
        pl.DataFrame({"a": [1, None], "b": [1, 2]}),
        pa.table({"a": [1.0, None], "b": [1.0, 2.0]}),
        pa.table({"a": [1, None], "b": [1, 2]}),
    ],
)
def test_nulls_are_missing_values(table):
    with pytest.raises(DataError, match="must be finite"):
        answer(Identity(BOUNDS, 2), table)
    assert answer(Identity(BOUNDS, 2), table, missing="midpoint")[1, 0] == BOUNDS.midpoint[0]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"a": [1.0], "c": [1.0]}), "must have a column 'b'"),
        (pd.DataFrame({"a": ["x"], "b": [1.0]}), "column 'a' must hold numbers"),
        (pd.DataFrame({"a": ["1"], "b": [1.0]}), "column 'a' must hold numbers"),
        (pd.DataFrame({"a": pd.to_datetime(["2020-01-01"]), "b": [1.0]}), "column 'a' must hold numbers"),
        (pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "a", "b"]), "'a' occurs twice"),
        (pl.DataFrame({"a": ["x"], "b": [1.0]}), "must be real numbers|must (be|hold) numbers"),
        (pa.table({"a": ["x"], "b": [1.0]}), "must be real numbers|must (be|hold) numbers"),
        (np.zeros((3, 5)), "table of 2 columns.*got 5"),
        (np.zeros(3), "table of 2 columns"),
        ([[1, 2], [3]], "rectangular"),
        ([["a", "b"]], "real numbers"),
    ],
)
def test_unfit_tables_are_named_and_show_no_value(table, message):
    with pytest.raises(DataError, match=message):
        answer(Identity(BOUNDS, 1), table)


def test_an_empty_table_is_a_wrong_number_of_records_or_a_data_set_like_any_other():
    with pytest.raises(ParameterError, match="number of rows of the data, 0"):
        answer(Identity(BOUNDS, 1), np.zeros((0, 2)))
    assert not answer(SecondMoment(BOUNDS, 1, neighbours="add-remove"), np.zeros((0, 2))).any()


def test_messages_do_not_show_a_private_number_of_records():
    with pytest.raises(DataError) as caught:
        answer(SecondMoment(BOUNDS, 1, neighbours="add-remove"), np.zeros((37, 3)))
    assert "37" not in str(caught.value)


def test_integers_beyond_all_words_are_numbers_too():
    assert answer(Identity(BOUNDS, 1), [[2**70, -(10**400)]]).tolist() == [[4.0, -1.0]]


def test_records_on_the_bounds_are_inside_them_whatever_the_centre():
    rng = np.random.default_rng(0)
    for _ in range(200):
        lower, upper = np.sort(rng.uniform(-2, 2, 2))
        query = SecondMoment(Bounds([lower], [upper]), 2, centre=[rng.uniform(-2, 2)])
        assert np.isfinite(answer(query, [[lower], [upper]], clip=False)).all()


def test_unnamed_bounds_take_columns_in_order():
    bounds = Bounds(BOUNDS.lower, BOUNDS.upper)
    np.testing.assert_allclose(answer(Identity(bounds, 50), pd.DataFrame(DATA, columns=["p", "q"])), DATA)
    with pytest.raises(DataError, match="must have 2 columns"):
        answer(Identity(bounds, 50), pd.DataFrame(np.zeros((50, 3))))


def test_gram_matrices():
    points = np.array([[2.0, 1.0], [0.0, 0.0]])
    scaled, anchors = (DATA - BOUNDS.midpoint) / BOUNDS.halfwidths, (points - BOUNDS.midpoint) / BOUNDS.halfwidths
    squares = ((scaled[:, None] - anchors) ** 2).sum(axis=2)
    np.testing.assert_allclose(
        answer(GramMatrix(BOUNDS, 50, points=points, bandwidth=0.7), DATA), np.exp(-squares / (2 * 0.49))
    )
    among = answer(GramMatrix(BOUNDS, 50, kernel="laplacian"), DATA)
    absolute = np.abs(scaled[:, None] - scaled).sum(axis=2)
    np.testing.assert_allclose(among, np.exp(-absolute))
    assert np.array_equal(among, among.T)


def test_graph_matrices():
    graph = np.array([[0, 1, 0], [1, 0, 0.25], [0, 0.25, 0]])
    np.testing.assert_allclose(answer(Adjacency(3), graph), graph)
    np.testing.assert_allclose(answer(Laplacian(3), graph), np.diag(graph.sum(axis=0)) - graph)
    assert answer(Adjacency(3, weight=1e-5), graph * 1e307).max() == 1e-5
    np.testing.assert_allclose(answer(Adjacency(3, weight=2.0), scipy.sparse.csr_matrix(graph * 8)).max(), 2.0)


def test_missing_must_be_one_of_two_words_everywhere():
    for query, data in ((Adjacency(3), np.zeros((3, 3))), (Identity(BOUNDS, 50), DATA), (Moments(BOUNDS, 50), DATA)):
        with pytest.raises(ParameterError, match="missing must be"):
            answer(query, data, missing="oops")


def test_nodes_of_a_frame_are_found_by_name():
    names = list("wxyz")
    frame = pd.DataFrame(np.zeros((4, 4)), names, names)
    frame.loc["w", "x"] = frame.loc["x", "w"] = 1.0
    expected = answer(Laplacian(4, node_names=names), frame)
    shuffled = frame.loc[names[::-1], names[::-1]]
    assert np.array_equal(answer(Laplacian(4, node_names=names), shuffled), expected)
    with pytest.raises(DataError, match="names of the nodes"):
        answer(Laplacian(4, node_names=list("abcd")), frame)


def test_public_points_of_a_frame_are_taken_by_name():
    frame = pd.DataFrame({"b": [1.0], "a": [2.0]})
    assert GramMatrix(BOUNDS, 5, points=frame).points.tolist() == [[2.0, 1.0]]


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.ones((3, 3)), "zero diagonal"),
        (np.triu(np.ones((3, 3)), 1), "symmetric"),
        (np.zeros((2, 3)), "adjacency matrix, of shape"),
        (np.where(np.eye(3), 0, np.nan), "finite"),
    ],
)
def test_unfit_graphs_are_named(graph, message):
    with pytest.raises(DataError, match=message):
        answer(Adjacency(3), graph)


def test_tables_of_counts():
    pairs = [["yes", "a"], ["no", "b"], ["yes", "b"], ["yes", "a"]]
    table = ContingencyTable(["yes", "no"], ["a", "b"], records=4)
    assert answer(table, pairs).tolist() == [[2, 1], [0, 1]]
    moves = ContingencyTable([1, 2, 3], [1, 2, 3], records=2)
    assert answer(moves, np.array([[1, 2], [3, 3]])).tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1]]
    mixed = ContingencyTable([1, "1"], ["a"], records=2)
    assert answer(mixed, [[1, "a"], ["1", "a"]]).tolist() == [[1], [1]]  # one record does not recode another
    for frame in (
        pd.DataFrame(pairs),
        pl.DataFrame(pairs, orient="row"),
        pa.table(dict(zip("xy", zip(*pairs, strict=True), strict=True))),
    ):
        assert answer(table, frame).tolist() == [[2, 1], [0, 1]]
    with pytest.raises(DataError, match="must have 2 columns"):
        answer(table, [["yes"]] * 4)
    with pytest.raises(DataError, match="not among its levels") as caught:
        answer(table, [*pairs[:3], ["secret", "a"]])
    assert "secret" not in str(caught.value)
    with pytest.raises(ParameterError, match="number of pairs"):
        answer(table, pairs[:3])
    assert answer(ContingencyTable(["yes", "no"], ["a"], 9, neighbours="add-remove"), [["yes", "a"]]).tolist() == [
        [1],
        [0],
    ]


def test_a_function_of_ones_own():
    query = Query((1, 2), FrobeniusBall(0.1), bound=1.0, function=lambda data: data.mean(axis=0)[None])
    assert answer(query, np.array([[0.5, 0.25]])).tolist() == [[0.5, 0.25]]
    for value, message in (
        (np.zeros((2, 2)), "of shape"),
        (np.full((1, 2), np.nan), "finite"),
        ([["x", "y"]], "real"),
        ([[0.5, 3.0]], "within its public bound"),
    ):
        for missing in ("error", "midpoint"):
            with pytest.raises(DataError, match=message):
                answer(Query((1, 2), FrobeniusBall(0.1), bound=1.0), value, missing=missing)
    with pytest.raises(DataError, match="symmetric"):
        answer(Query((2, 2), FrobeniusBall(0.1), bound=9.0, side="both"), [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Identity([0, 1], 5), "bounds must be Bounds"),
        (lambda: Identity(BOUNDS, 0), "records"),
        (lambda: Identity(BOUNDS, 2.5), "records"),
        (lambda: Identity(BOUNDS, 5, neighbours="add-remove"), "neighbours must be 'replace'"),
        (lambda: Moments(BOUNDS, 5, neighbours="x"), "neighbours must be"),
        (lambda: Moments(BOUNDS, 5, mean_share=0.7), "mean_share"),
        (lambda: SecondMoment(BOUNDS, 5, centre=[1]), "centre must be"),
        (lambda: SecondMoment(Bounds([0], [1], radius=1), 5, centre=[1]), "centre must be left out"),
        (lambda: GramMatrix(BOUNDS, 5, kernel="linear"), "kernel must be"),
        (lambda: GramMatrix(BOUNDS, 5, bandwidth=0), "bandwidth must be"),
        (lambda: GramMatrix(BOUNDS, 5, points=[[np.nan, 1.0]]), "points must be"),
        (lambda: GramMatrix(BOUNDS, 1), "at least 2"),
        (lambda: GramMatrix(BOUNDS, 5, neighbours="add-remove"), "neighbours must be 'replace'"),
        (lambda: Adjacency(1), "nodes must be"),
        (lambda: Adjacency(3, weight=0), "weight"),
        (lambda: Adjacency(3, neighbours="replace"), "neighbours must be 'add-remove'"),
        (lambda: Adjacency(3, node_names=["a"]), "node_names must be 3"),
        (lambda: ContingencyTable(["a", "a"], ["b"], 1), "rows must be"),
        (lambda: ContingencyTable(["a"], [1.5], 1), "strings or integers"),
        (lambda: Query((0, 1), FrobeniusBall(1), bound=1), "shape must be"),
        (lambda: Query((1, 2), FrobeniusBall(1), bound=1, side="left"), "side must be"),
        (lambda: Query((1, 2), FrobeniusBall(1), bound=1, side="both"), "symmetric"),
        (lambda: Query((1, 2), 0.1, bound=1), "sensitivity must be"),
        (lambda: Query((1, 2), Vertices([[[1.0]]]), bound=1), "changes must have shape"),
        (lambda: Query((1, 2), FrobeniusBall(1), bound=-1), "bound must be"),
    ],
)
def test_unfit_queries_are_named(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


@pytest.mark.parametrize(
    "change",
    [
        mdp.sensitivity.KernelChange(3, 1.0),
        mdp.sensitivity.RankOneChange(np.ones(3), 10),
        mdp.sensitivity.MomentsChange(np.ones(3), 10),
        mdp.sensitivity.RecordChange(np.ones(3)),
        mdp.sensitivity.Vertices(np.ones((1, 3, 3))),
    ],
    ids=lambda change: type(change).__name__,
)
def test_a_sensitivity_set_of_another_shape_is_refused(change):
    with pytest.raises(ParameterError, match="shape"):
        mdp.Query((5, 5), change, bound=1.0, side="both")
