"""Requests of a user's own functions, and what is tried before a charge."""

from dataclasses import dataclass

import numpy as np
import pytest

import matrixdp as mdp

PRIVACY = mdp.Privacy(1, 1e-6)


@pytest.fixture
def ledger(tmp_path):
    ledger = mdp.Ledger.create(tmp_path / "clinic.db")
    ledger.register("clinic", mdp.Privacy(10, 1e-6), neighbours="replace")
    return ledger


def own_query(function, **options):
    return mdp.Query((1, 1), mdp.FrobeniusBall(1.0), bound=100.0, function=function, **options)


def release(query, ledger, **options):
    return mdp.make_design(query, PRIVACY).release(np.ones(3), ledger=ledger, dataset="clinic", **options)


def test_a_function_without_a_name_has_no_request_id(ledger):
    run = {"ledger": ledger, "dataset": "clinic", "request": "r"}
    for options in ({}, {"name": "total"}, {"version": "1"}):
        query = own_query(lambda data: [[data.sum()]], **options)
        with pytest.raises(mdp.ParameterError, match="name and version"):
            release(query, ledger, request="r")
        with pytest.raises(mdp.ParameterError, match="name and version"):
            mdp.release_mechanism("analytic Gaussian", query, PRIVACY, np.ones(3), **run)
    assert ledger.history("clinic") == []
    release(query, ledger)
    assert len(ledger.history("clinic")) == 1


def test_two_functions_do_not_share_a_stored_answer(ledger):
    first = own_query(lambda data: [[data.sum()]], name="total", version="1")
    other = own_query(lambda data: [[-data.sum()]], name="total", version="2")
    stored = release(first, ledger, request="r")
    assert release(first, ledger, request="r").matrix == stored.matrix
    with pytest.raises(mdp.MatrixDPError):
        release(other, ledger, request="r")
    assert len(ledger.history("clinic")) == 1


def test_a_given_answer_needs_no_name(ledger):
    design = mdp.make_design(own_query(None), PRIVACY)
    first, again = (design.release([[3.0]], ledger=ledger, dataset="clinic", request="r") for _ in range(2))
    assert np.array_equal(first.matrix, again.matrix)


def test_names_are_written_only_if_they_are_given():
    plain = mdp.make_design(own_query(None), PRIVACY).release([[3.0]])
    assert '"name"' not in plain.to_json()
    named = mdp.make_design(own_query(None, name="given", version="3"), PRIVACY).release([[3.0]])
    query = mdp.Release.from_json(named.to_json()).design.query
    assert (query.name, query.version) == ("given", "3")
    with pytest.raises(mdp.ParameterError, match="name and version must be strings"):
        own_query(None, name=3, version="1")


@mdp.register
@dataclass(frozen=True)
class Unfinished(mdp.MatrixQuery):
    """A query whose last step fails."""

    problem: float
    neighbours = mdp.Neighbours.REPLACE
    side = "columns"
    shape = (1, 2)
    sensitivity = mdp.FrobeniusBall(1.0)
    magnitude = np.ones((1, 2))

    def evaluate(self, data, *, clip, missing):
        return np.zeros((1, 2))

    def finish(self, matrix):
        if self.problem == 0:
            raise RuntimeError("broken")
        return matrix[:, :1]


@pytest.mark.parametrize("problem", [0.0, 1.0])
def test_an_answer_that_cannot_be_finished_is_not_charged(problem, ledger):
    with pytest.raises(mdp.ParameterError, match=r"Unfinished\.finish must"):
        release(Unfinished(problem), ledger)
    assert ledger.history("clinic") == []


def test_a_query_that_json_cannot_hold_is_not_charged(ledger):
    with pytest.raises(mdp.ParameterError):
        release(Unfinished(float("nan")), ledger)
    assert ledger.history("clinic") == []
