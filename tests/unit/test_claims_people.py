"""Claims about people with several rows, each with an attack that a mistake would not survive."""

import numpy as np
import pandas as pd

import matrixdp as mdp
from matrixdp.adaptive.records import validate_records
from matrixdp.noise import Covariance
from property.test_rounding import apart

BOUNDS = mdp.Bounds([-1], [1], names=["x"])


def frame(*people):
    """A table of people, each given by the values of their rows."""
    ids = np.repeat(np.arange(len(people)), [len(rows) for rows in people])
    return pd.DataFrame({"x": np.concatenate([np.empty(0), *people]), "id": ids})


def test_the_constant_of_every_person_is_one():
    query = mdp.Moments(BOUNDS, 3, person="id", neighbours="add-remove")
    for rows in (1, 3, 7, 999):
        answer = query.evaluate(frame([0.5], [1.0] * rows, [0.0] * 6), clip=True, missing="error")
        assert answer[0, 0] == 1.0


def test_rows_that_come_move_the_constant_of_replaced_people():
    """With a large constant, a person with rows is further from one without than from one with other rows."""
    query = mdp.Moments(BOUNDS, 5, person=mdp.Person("id", rows=3))
    side = Covariance.diagonal([1e-4, 1.0])
    first, second = (query.evaluate(frame([0.0], rows), clip=True, missing="error") for rows in ([0.0] * 3, [0.0]))
    change = first - second
    moved = np.linalg.norm(side.whitening[:, None] * change * side.whitening)
    assert moved <= query.sensitivity.distance(side, side).value
    assert moved > query.sensitivity.one.distance(side, side).value * 3


def test_a_person_counts_at_most_once_above_a_cut():
    person = mdp.Person("id")
    for rows in (3, 5, 6, 7, 11):
        records = validate_records(frame([1.0] * rows, [0.0]), BOUNDS, person)[1](2)
        assert records.counter([0.5])(0.5) <= 1


def test_rounding_of_weights_does_not_leave_the_distance():
    query = mdp.Moments(BOUNDS, 2, person="id")
    design = mdp.make_design(query, mdp.Privacy(1, 1e-6))
    for rows in (1, 3, 7, 1000):
        assert apart(design, frame([0.0], [1.0] * rows), frame([0.0], [-1.0])) <= design.distance


def test_the_counts_of_every_person_sum_to_one():
    """A third is no binary number: the first cell, which is public, has what rounding takes from a person's rows."""
    query = mdp.ContingencyTable(["a", "b"], ["x", "y"], 5, person="id")
    for rows in (1, 3, 7, 999):
        ids = np.repeat(np.arange(5), rows)
        pairs = pd.DataFrame({"row": ["a", "b"] * (5 * rows // 2) + ["b"] * (5 * rows % 2), "column": "y", "id": ids})
        counts = query.evaluate(pairs, clip=True, missing="error")
        assert counts.sum() == 5.0
        assert 0 <= counts[0, 0] < 1e-6
        assert (counts[0, 0] > 0) == (rows in (3, 7, 999))
