"""A person with several rows of a released table, or of a Gram matrix: no pair exceeds the claimed distance."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp import Person
from matrixdp.errors import DataError, ParameterError
from matrixdp.mechanisms.mechanism import prepare, round_answer
from matrixdp.noise.matrix import Covariance
from matrixdp.records import with_ids
from matrixdp.sensitivity import KernelChange, OwnRowsChange, RecordChange
from nightly import examples

SEEDS = st.integers(0, 2**32 - 1)
PRIVACY = mdp.Privacy(1, 1e-6)


def apart(design, ids, first, second):
    """Distance of two tables' integers, in standard deviations."""
    data = (with_ids(table, ids) for table in (first, second))
    steps = [round_answer(design, prepare(design, one, clip=True, missing="error")) for one in data]
    change = (steps[0] - steps[1]).astype(object)
    return math.sqrt(int((change * change).sum())) * 2.0**-design.grid.bits


def random_people(rng, records, rows):
    """Ids in which the first person has `rows` rows at random places, and all others have fewer."""
    ids = np.array([f"p{i // max(1, rows - 1)}" for i in range(records)], object)
    mine = rng.choice(records, rows, replace=False)
    ids[mine] = "me"
    return ids, mine


QUERIES = {
    "identity": lambda b, n, p: mdp.Identity(b, n, person=p),
    "ball": lambda b, n, p: mdp.Identity(mdp.Bounds(b.lower, b.upper, radius=0.7), n, person=p),
    "points": lambda b, n, p: mdp.GramMatrix(b, n, points=[[0.2, 0.3], [0.9, 0.5], [0.4, 0.1]], person=p),
    "box": lambda b, n, p: mdp.GramMatrix(b, n, points=[[0.2, 0.3], [0.9, 0.5]], row_change="box", person=p),
    "gram": lambda b, n, p: mdp.GramMatrix(b, n, bandwidth=0.2, person=p),
}


@examples(12)
@pytest.mark.parametrize("name", QUERIES)
@given(seed=SEEDS)
def test_no_person_moves_the_integers_further_than_claimed(name, seed):
    rng = np.random.default_rng(seed)
    records = int(rng.integers(3, 9))
    rows = int(rng.integers(1, records))
    ids, mine = random_people(rng, records, rows)
    bounds = mdp.Bounds([0, 0], [1, 1])
    query = QUERIES[name](bounds, records, Person("id", rows=rows))
    turned = name == "identity" and rng.random() < 0.3
    options = {"directions": np.linalg.qr(rng.normal(size=(2, 2)))[0]} if turned else {}
    design = mdp.make_design(query, PRIVACY, **options)
    for _ in range(6):
        base = rng.uniform(0, 1, (records, 2)) if rng.random() < 0.5 else np.zeros((records, 2))
        first, second = base.copy(), base.copy()
        first[mine] = rng.choice([0.0, 1.0], 2) if rng.random() < 0.7 else rng.choice([0.0, 1.0], (rows, 2))
        second[mine] = 1 - first[mine] if rng.random() < 0.7 else rng.uniform(-1, 2, (rows, 2))
        assert apart(design, ids, first, second) <= design.distance


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_the_claim_of_a_table_is_attained_and_that_of_one_row_is_not_enough(rows):
    bounds = mdp.Bounds([0, -1], [4, 3])
    design = mdp.make_design(mdp.Identity(bounds, 5, person=Person("id", rows=rows)), PRIVACY)
    ids = [0] * rows + list(range(1, 6 - rows))
    first, second = np.tile(bounds.lower, (5, 1)), np.tile(bounds.lower, (5, 1))
    second[:rows] = bounds.upper
    found = apart(design, ids, first, second)
    assert math.isclose(found, design.distance, rel_tol=1e-12)
    alone = mdp.make_design(mdp.Identity(bounds, 5), PRIVACY)
    assert np.allclose(design.std, alone.std * math.sqrt(rows), rtol=1e-6)
    if rows > 1:  # a design for one row, as it would be charged
        assert found * design.std[0, 0] / alone.std[0, 0] > 1.4 * alone.distance


def test_several_rows_and_columns_of_a_gram_matrix():
    """All pairs with a row of the person count, each once; the broken claim counts one row."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(2, 9))
        k = int(rng.integers(1, n + 1))
        variances = 10 ** rng.uniform(-2, 2, n)
        covariance = Covariance.diagonal(variances)
        claim = KernelChange(n, 0.7, k).distance(covariance, covariance)
        worst = 0.0
        for _ in range(20):
            mask = np.zeros(n, bool)
            mask[rng.choice(n, k, replace=False)] = True
            change = np.where(mask[:, None] | mask[None, :], 0.7, 0.0)
            np.fill_diagonal(change, 0.0)
            worst = max(worst, float(np.linalg.norm(change / np.sqrt(np.multiply.outer(variances, variances)))))
        assert worst <= claim.value
        assert claim.attained <= claim.value
    unit = Covariance.identity(10)
    one, three = (KernelChange(10, 1.0, k).distance(unit, unit) for k in (1, 3))
    assert math.isclose(three.value**2, 3 * 16, rel_tol=1e-9)
    assert math.isclose(KernelChange(10, 1.0, 3).frobenius ** 2, 48, rel_tol=1e-9)
    assert one.value**2 < 20 < three.attained**2


def test_correlated_noise_between_rows_needs_more():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(4, 4))
    rowcov = Covariance.dense(root @ root.T + np.eye(4))
    change = OwnRowsChange(RecordChange(np.array([0.5])), 3)
    claim = change.distance(rowcov, Covariance.identity(1))
    for _ in range(200):
        d = np.zeros((4, 1))
        d[rng.choice(4, 3, replace=False), 0] = rng.choice([-1.0, 1.0], 3)
        assert np.linalg.norm(rowcov.whitening @ d) <= claim.value


def test_a_person_with_more_rows_is_an_error_before_the_charge(tmp_path):
    ledger = mdp.Ledger.create(tmp_path / "l.db")
    ledger.register("visits", PRIVACY, neighbours="replace", unit="values:id")
    bounds = mdp.Bounds([0, 0], [1, 1])
    data = with_ids(np.zeros((4, 2)), ["a", "a", "a", "secret"])
    for query in (
        mdp.Identity(bounds, 4, person=Person("id", rows=2)),
        mdp.GramMatrix(bounds, 4, person=Person("id", rows=2)),
        mdp.GramMatrix(bounds, 4, points=[[0, 0]], person=Person("id", rows=2)),
    ):
        design = mdp.make_design(query, PRIVACY)
        with pytest.raises(DataError, match="has more than 2 rows") as error:
            design.release(data, ledger=ledger, dataset="visits")
        assert "secret" not in str(error.value)
    assert ledger.history() == []
    query = mdp.Identity(bounds, 4, person=Person("id", rows=3))
    released = mdp.make_design(query, PRIVACY).release(data, ledger=ledger, dataset="visits")
    assert str(ledger.history()[0].unit) == "values:id"
    assert mdp.Release.from_json(released.to_json()).unit == released.unit


@pytest.mark.parametrize("make", [mdp.Identity, mdp.GramMatrix])
def test_each_person_once_makes_no_sense_for_a_table(make):
    bounds = mdp.Bounds([0, 0], [1, 1], names=["x", "y"])
    with pytest.raises(ParameterError, match=r"person must say how many rows .*rows=3.*release moments"):
        make(bounds, 4, person="id")
    with pytest.raises(ParameterError, match="'x' is among the columns"):
        make(bounds, 4, person=Person("x", rows=2))


@pytest.mark.parametrize("name", QUERIES)
def test_one_row_each_is_the_plain_query_to_the_last_bit(name):
    bounds, data = mdp.Bounds([0, 0], [1, 1]), np.random.default_rng(2).random((5, 2))
    plain, people = (QUERIES[name](bounds, 5, person) for person in (None, Person("id", rows=1)))
    plain, people = (mdp.make_design(query, PRIVACY) for query in (plain, people))
    assert plain.distance == people.distance
    assert np.array_equal(plain.std, people.std)
    first = round_answer(plain, prepare(plain, data, clip=True, missing="error"))
    second = round_answer(people, prepare(people, with_ids(data, list("abcde")), clip=True, missing="error"))
    assert np.array_equal(first, second)
