"""Attacks find what is attainable, never exceed true claims, and catch functions whose sensitivity is too small."""

import dataclasses
from functools import partial

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.audit import attack
from matrixdp.audit.domains import draw_generated
from matrixdp.privacy import Neighbours

PRIVACY = mdp.Privacy(1, 1e-6)
BOX = mdp.Bounds([0, -3, 5], [1, 4, 9])
BALL = mdp.Bounds([0, -3, 5], [1, 4, 9], radius=2.0)
QUERIES = {
    "moments": mdp.Moments(BOX, 3),
    "moments in a ball": mdp.Moments(BALL, 3),
    "moments, add-remove": mdp.Moments(BOX, 3, neighbours="add-remove"),
    "second moment": mdp.SecondMoment(BOX, 3),
    "identity": mdp.Identity(BOX, 3),
    "identity in a ball": mdp.Identity(BALL, 3),
    "gram": mdp.GramMatrix(BOX, 3),
    "gram of points": mdp.GramMatrix(BOX, 3, [[0, 0, 6.0]]),
    "adjacency": mdp.Adjacency(4),
    "laplacian": mdp.Laplacian(4, 2.0),
    "counts": mdp.ContingencyTable(("a", "b"), (1, 2, 3), 4),
    "counts, add-remove": mdp.ContingencyTable(("a", "b"), (1, 2, 3), 4, neighbours="add-remove"),
}


def mean_query(radius, function=np.mean):
    return mdp.Query((1, 1), mdp.sensitivity.FrobeniusBall(radius), 10.0, lambda data: function(data).reshape(1, 1))


@pytest.mark.parametrize("name", QUERIES)
def test_no_pair_exceeds_the_claim_and_the_worst_one_comes_close(name):
    found = attack(mdp.make_design(QUERIES[name], PRIVACY), starts=4)
    assert not found.broken
    assert found.ratio > 0.9
    assert found.pairs >= 24
    assert not found.refused


def test_the_worst_pair_is_returned_and_has_that_distance():
    found = attack(mdp.make_design(mdp.Identity(BOX, 3), PRIVACY), starts=2)
    data, neighbour = (np.clip(x, BOX.lower, BOX.upper) for x in (found.data, found.neighbour))
    assert (data != neighbour).any(axis=1).sum() == 1
    assert np.linalg.norm(found.design.noise.whiten(data - neighbour)) == pytest.approx(found.distance, rel=1e-9)
    assert found.epsilon == pytest.approx(1.0, rel=1e-6)
    assert "no pair exceeds the claim" in str(found)


def test_a_function_with_bounds():
    bounds = mdp.Bounds([0], [1])
    honest = mean_query(0.25, lambda data: np.clip(data, 0, 1).mean())
    assert attack(mdp.make_design(honest, PRIVACY), bounds=bounds).ratio == pytest.approx(1, abs=1e-6)
    found = attack(mdp.make_design(mean_query(0.2), PRIVACY), bounds=bounds)
    assert found.broken
    assert found.refused  # records far outside exceed the public bound of the answer
    assert "within its public bound" in str(found)


def test_a_function_with_a_generator_of_records():
    def count(words):
        return np.array([[float(sum(len(word) > 3 for word in words))]])

    def generate(rng):
        return "x" * int(rng.integers(0, 8))

    for radius, broken in ((1.0, False), (0.9, True)):
        query = mdp.Query((1, 1), mdp.sensitivity.FrobeniusBall(radius), 100.0, count, neighbours="add-remove")
        found = attack(mdp.make_design(query, PRIVACY), generate=generate, records=5)
        assert found.broken == broken
        assert isinstance(found.data, list)
    domain = partial(draw_generated, generate, 3, Neighbours.ADD_REMOVE)
    assert attack(mdp.make_design(query, PRIVACY), domain=domain).broken


def test_an_unknown_domain_is_an_error():
    with pytest.raises(mdp.ParameterError, match="bounds or generate must be given"):
        attack(mdp.make_design(mean_query(1.0), PRIVACY))
    with pytest.raises(mdp.ParameterError, match="must be a Design"):
        attack(mean_query(1.0))
    with pytest.raises(mdp.ParameterError, match="no pair of data sets could be evaluated"):
        attack(mdp.make_design(mean_query(1.0), PRIVACY), generate=lambda _: "text")


def test_an_attack_stops_in_time():
    design = mdp.make_design(mdp.Moments(BOX, 3), PRIVACY)
    assert attack(design, starts=10**6, seconds=0.0).pairs < 10_000


class Narrow(mdp.TableMoments):
    """Moments of a table that claim the sensitivity of more records than there are."""

    @property
    def sensitivity(self):
        return dataclasses.replace(super().sensitivity, records=self.records + 1)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("by", [(), ("ward",)])
def test_moments_of_a_table_hold_and_too_small_a_sensitivity_is_found(by, neighbours):
    columns = mdp.Columns(
        [
            mdp.Number("age", 0, 120, missing=True),
            mdp.Number("bmi", 10, 50),
            mdp.Category("ward", ("a", "b"), other=True),
            mdp.YesNo("smoker", missing=True),
        ]
    )
    for kind, broken in ((mdp.TableMoments, False), (Narrow, True)):
        design = mdp.make_design(kind(columns, 8, by=by, neighbours=neighbours), mdp.Privacy(1, 1e-6))
        found = attack(design, starts=3, seconds=60)
        assert found.broken == broken
        assert found.ratio > 0.99
