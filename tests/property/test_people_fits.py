"""Whole fits of people with several rows: every step, replayed on a neighbour, stays within its claim.

Neighbours differ in all rows of one person: one with a single row against one with 1,000, in corners and at the middle,
in one block or in all of them. Every broken variant must be found by the same replays.
"""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive import private_moment, queries
from matrixdp.adaptive.queries import TracedMoments
from matrixdp.audit import replay
from matrixdp.privacy import Neighbours
from matrixdp.records import Blocks
from matrixdp.records.people import People
from matrixdp.records.records import OwnedBlock

D = 4
BOUNDS = mdp.Bounds(-np.ones(D), np.ones(D))
PEOPLE = 120
ONCE, ROWS = mdp.Person("id"), mdp.Person("id", rows=3)
CORNER, OTHER = np.ones(D), np.array([1.0, -1.0, 1.0, -1.0])


def crowd():
    """Rows and ids of everybody else: one to five short rows each, a few of them long."""
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(PEOPLE), rng.integers(1, 6, PEOPLE))
    long = np.where(rng.random((len(ids), 1)) < 0.06, 0.9, 0.1)
    return long * rng.uniform(-1, 1, (len(ids), D)), ids


def table(*rows, parts=1):
    """A data set in which one person has these rows, spread over all parts."""
    values, ids = crowd()
    mine = np.reshape(rows, (-1, D))
    values, ids = np.vstack([values, mine]), np.append(ids, np.full(len(mine), PEOPLE))
    order = np.random.default_rng(6).permutation(len(ids))
    pieces = [OwnedBlock(values[some], ids[some]) for some in np.array_split(order, parts)]
    return Blocks(lambda: tuple(pieces))


def neighbours_of(kind):
    """Pairs of data sets; without any row, the person is not there."""
    rng = np.random.default_rng(7)
    if kind == "add-remove":
        return [(table(), table(CORNER)), (table(), table(*[CORNER] * 1000, parts=3))]
    return [
        (table(np.zeros(D)), table(*[CORNER] * 1000)),
        (table(*[OTHER] * 3), table(*[CORNER] * 7, parts=4)),
        (table(OTHER), table(*rng.choice([-1.0, 1.0], (1000, D)))),
    ]


def run(person, kind, aim, pairs=None, epsilon=8.0):
    """Replays of a fit on neighbours."""
    privacy = mdp.Privacy(epsilon, 1e-6)
    records = PEOPLE + (kind == "replace") if person is ONCE else 3 * PEOPLE
    options = {"aim": aim, "person": person, "neighbours": kind, "records": records}
    return [
        replay(lambda data: private_moment(data, BOUNDS, privacy, **options), *pair)
        for pair in (pairs or neighbours_of(kind))
    ]


@pytest.mark.parametrize(
    ("aim", "epsilon", "kinds"),
    [
        ("covariance", 8, {"Query"}),
        ("covariance", 30_000, {"Query", "BoxMoments"}),
        ("components", 8, {"Query"}),
        ("regression", 0.05, {"Query"}),
    ],
)
@pytest.mark.parametrize("kind", ["replace", "add-remove"])
@pytest.mark.parametrize("person", [ONCE, ROWS], ids=["once", "rows"])
def test_no_step_of_a_fit_exceeds_its_claim(person, kind, aim, epsilon, kinds):
    found = run(person, kind, aim, epsilon=epsilon)
    assert not any(one.broken for one in found), "\n".join(map(str, found))
    reached = {}
    for step in (step for one in found for step in one.steps):
        reached[step.query] = max(reached.get(step.query, 0.0), step.distance / step.claim)
    ball = "TracedMoments" if kind == "replace" and person is ONCE else "BallMoments"
    assert reached.keys() == (kinds | {ball} if "Query" in kinds else kinds)
    assert min(reached.values()) > 0.9


def every_row(self, counts, unit):
    """Weights of one for every row."""
    return np.full(len(counts), unit)


def two_at_most(self, counts, unit):
    """Weights of a person that sum to two."""
    return np.minimum(unit, 2 * unit // counts)


def in_each_block(self, hashes):
    """How many rows a person has in this block alone."""
    _, where, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    return counts[where]


def counts_of_records(records, neighbours, person=None):
    """Counts with the noise of one record."""
    query = COUNT_QUERY(records, neighbours, person)
    object.__setattr__(query, "sensitivity", type(query.sensitivity)(1.0))
    return query


def with_a_public_number(size, radius, public, neighbours, person=None, *, ratio=0.25):
    """Moments with the trace, as if the number of rows were public and one row changed."""
    query = BALL_QUERY(size, radius, public, neighbours, person, ratio=ratio)
    return TracedMoments(query, ratio) if neighbours is Neighbours.REPLACE else query


COUNT_QUERY, BALL_QUERY = queries.count_query, queries.ball_query
BROKEN = {
    "a person counts twice": (mdp.Person, "weights", two_at_most, ONCE),
    "rows are not limited": (mdp.Person, "weights", every_row, ROWS),
    "a person counts in every block": (People, "find", in_each_block, ONCE),
    "counts have the noise of one row": (queries, "count_query", counts_of_records, ROWS),
    "moments have the noise of one row": (queries, "ball_query", with_a_public_number, ROWS),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_fits_are_found(name, monkeypatch):
    place, attribute, broken, person = BROKEN[name]
    monkeypatch.setattr(place, attribute, broken)
    pair = table(np.zeros(D)), table(*[CORNER] * 40, parts=2)
    (found,) = run(person, "replace", "covariance", [pair])
    assert any(step.distance > 1.01 * step.claim for step in found.steps), str(found)
