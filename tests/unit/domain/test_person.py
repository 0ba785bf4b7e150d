"""Whose rows they are, and what each weighs."""

import numpy as np
import pytest

from matrixdp.domain import Bounds, Person
from matrixdp.errors import ParameterError
from matrixdp.queries import Moments
from matrixdp.serialise import from_json_content, to_json_content

UNIT = 1 << 40


def test_the_rows_of_a_person_weigh_at_most_one_record():
    counts = np.array([1, 2, 3, 7, 1000, 1 << 30])
    weights = Person("id").weights(counts, UNIT)
    assert weights[0] == UNIT
    assert (counts * weights <= UNIT).all()
    assert (counts * weights > UNIT - counts).all()


def test_rows_up_to_the_bound_weigh_one_and_more_share_it():
    counts = np.array([1, 4, 5, 20])
    assert Person("id", rows=4).weights(counts, UNIT).tolist() == [UNIT, UNIT, 4 * UNIT // 5, UNIT // 5]


@pytest.mark.parametrize("value", ["", 3, ["id"], b"id"])
def test_a_person_is_the_name_of_a_column(value):
    with pytest.raises(ParameterError, match="person must be the name of the column"):
        Person.parse(value)


@pytest.mark.parametrize("rows", [0, -1, 2.5, True, 1 << 23])
def test_the_rows_of_a_person_are_a_positive_integer(rows):
    with pytest.raises(ParameterError, match="rows"):
        Person("id", rows)


def test_a_query_takes_a_name_and_keeps_it_in_json():
    bounds = Bounds([0], [1], names=["x"])
    query = Moments(bounds, 10, person="id")
    assert query.person == Person("id")
    assert query.unit == "person"
    assert from_json_content(to_json_content(query)).person == Person("id")
    several = Moments(bounds, 10, person=Person("id", rows=3))
    assert from_json_content(to_json_content(several)).person == Person("id", rows=3)
    plain = Moments(bounds, 10)
    assert plain.unit == "record"
    assert "person" not in to_json_content(plain)


def test_the_ids_are_not_among_the_columns_that_are_released():
    with pytest.raises(ParameterError, match="Leave it out"):
        Moments(Bounds([0], [1], names=["x"]), 10, person="x")
