"""No array of a query, a design or a plan can be written to: what was checked is what is released."""

import copy
import functools
import pickle
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp import serialise
from matrixdp.design import equimodal, unimodal
from matrixdp.domain.schema import Graph, Schema
from matrixdp.noise import NoiseStructure
from matrixdp.release import options
from matrixdp.release.options import GRAPHS
from matrixdp.release.plan import plan
from matrixdp.release.request import Request
from matrixdp.sensitivity import FrobeniusBall, Vertices

PRIVACY = mdp.Privacy(1, 1e-6)
BOUNDS = mdp.Bounds([0, -1, 2], [4, 3, 9], names=["a", "b", "c"])
BALL = mdp.Bounds([0, -1], [4, 3], radius=2.0)
TABLE = mdp.Columns(
    [
        mdp.Number("age", 0, 120, missing=True),
        mdp.Number("bmi", 10, 60),
        mdp.Category("ward", ["a", "b"]),
        mdp.YesNo("ill"),
    ]
)
TURNED = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
POINTS = np.array([[1.0, 0.0, 3.0], [2.0, 2.0, 8.0], [3.0, -1.0, 5.0]])
SHARES = {"sensitivity": 0.1, "gamma": 2.0, "theta": [0.5, 0.25, 0.25]}
VISITS = mdp.Person("id", rows=2)

QUERIES = {
    "identity": mdp.Identity(BOUNDS, 50),
    "identity in a ball": mdp.Identity(BALL, 50),
    "identity of people": mdp.Identity(BOUNDS, 50, person=VISITS),
    "moments": mdp.Moments(BOUNDS, 50),
    "moments of people": mdp.Moments(BOUNDS, 50, person=VISITS),
    "second moment": mdp.SecondMoment(BOUNDS, 50, centre=[0, 0, 0]),
    "second moment, add-remove": mdp.SecondMoment(BOUNDS, 50, neighbours="add-remove"),
    "table": mdp.TableMoments(TABLE, 50),
    "table by group": mdp.TableMoments(TABLE, 50, by=["ward"], person="id"),
    "counts": mdp.ContingencyTable(["x", "y"], ["u", "v", "w"], 50),
    "kernel": mdp.GramMatrix(BOUNDS, 10, points=POINTS),
    "kernel of records": mdp.GramMatrix(BOUNDS, 10, person=VISITS),
    "kernel in a box": mdp.GramMatrix(BOUNDS, 10, points=POINTS, row_change="box"),
    "edges": mdp.Adjacency(5),
    "nodes": mdp.Adjacency(5, unit="node", max_degree=2.0),
    "laplacian": mdp.Laplacian(5),
    "function": mdp.Query((2, 3), FrobeniusBall(0.1), bound=np.full((2, 3), 2.0)),
    "vertices": mdp.Query((1, 2), Vertices([[[1.0, 0.0]], [[0.0, 2.0]]]), bound=5.0),
}
DESIGNS = {
    **{name: lambda query=query: mdp.make_design(query, PRIVACY) for name, query in QUERIES.items()},
    "turned": lambda: mdp.make_design(QUERIES["moments"], PRIVACY, directions=TURNED.copy()),
    "turned, in a box": lambda: mdp.make_design(QUERIES["identity"], PRIVACY, directions=TURNED.copy()),
    "shares": lambda: mdp.make_design(
        QUERIES["moments"], PRIVACY, allocation=mdp.allocations.shares(np.array([0.5, 0.25, 0.25]))
    ),
    "optimal": lambda: mdp.make_design(
        QUERIES["second moment"], PRIVACY, allocation=mdp.allocations.optimal(np.array([1.0, 2.0, 3.0]))
    ),
    "best covariance of vertices": lambda: mdp.make_design(QUERIES["vertices"], PRIVACY, allocation="optimal"),
    "the paper's first": lambda: unimodal(epsilon=1, delta=1e-6, columns=4, **SHARES),
    "the paper's second": lambda: equimodal(epsilon=1, delta=1e-6, **SHARES),
}
NUMBERS = ["bmi", "weight"]
REQUESTS = {  # by question, or by question and method
    "everything": {},
    "means": {"columns": NUMBERS, "method": "plain"},
    "means, fitted": {"columns": NUMBERS, "method": "adaptive"},
    "table": {"cells": ["ward", "ill"]},
    "moments": {"columns": NUMBERS},
    "covariance": {"columns": NUMBERS, "method": "plain", "importance": {"bmi": 2.0}},
    "covariance, fitted": {"columns": NUMBERS, "method": "adaptive"},
    "correlation": {"columns": NUMBERS, "method": "plain", "directions": np.eye(2)},
    "components": {"columns": NUMBERS, "method": "adaptive"},
    "regression": {"columns": NUMBERS, "target": "weight", "method": "adaptive"},
    "second-moment": {"columns": NUMBERS},
    "identity": {"columns": NUMBERS},
    "gram": {"columns": NUMBERS, "points": np.array([[20.0, 50.0], [30.0, 90.0]])},
    "adjacency": {},
    "laplacian": {},
    "counts": {"cells": ["ward", "clinic"]},
}


def arrays(value, place="value", seen=None):
    """Every array that a value holds, with its place; cached properties are computed first."""
    seen = {} if seen is None else seen
    if id(value) in seen or isinstance(value, type):
        return
    seen[id(value)] = value
    if isinstance(value, np.ndarray):
        yield place, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from arrays(item, f"{place}[{key!r}]", seen)
    elif isinstance(value, tuple | list | set | frozenset):
        for number, item in enumerate(value):
            yield from arrays(item, f"{place}[{number}]", seen)
    elif type(value).__module__.startswith("matrixdp"):
        for base in type(value).__mro__:
            for name, item in vars(base).items():
                if isinstance(item, functools.cached_property) and name != "isotropic":  # a design like any other
                    getattr(value, name)
        for name, item in getattr(value, "__dict__", {}).items():
            yield from arrays(item, f"{place}.{name}", seen)


def writable(value):
    found = [place for place, array in arrays(value) if array.flags.writeable]
    assert sum(1 for _ in arrays(value)) or not found
    return found


@pytest.mark.parametrize("name", DESIGNS)
def test_no_array_of_a_design_can_be_written_to(name):
    design = DESIGNS[name]()
    str(design)
    assert not writable(design)
    assert not writable(pickle.loads(pickle.dumps(design)))
    assert not writable(copy.deepcopy(design))


@pytest.mark.parametrize("name", QUERIES)
def test_no_array_of_a_query_can_be_written_to(name):
    query = QUERIES[name]
    assert not writable(query)
    assert not writable(pickle.loads(pickle.dumps(query)))


@pytest.mark.parametrize("name", REQUESTS)
def test_no_array_of_a_plan_can_be_written_to(name):
    numbers = [mdp.Number("bmi", 10, 60), mdp.Number("weight", 30, 200)]
    categories = [mdp.Category("ward", ["a", "b"]), mdp.Category("clinic", ["x", "y"]), mdp.YesNo("ill")]
    question = name.partition(",")[0]
    schema = mdp.Columns([*numbers, *categories]) if question not in GRAPHS else Schema(graph=Graph(nodes=5))
    given = REQUESTS[name] if question in GRAPHS else {"records": 500, **REQUESTS[name]}
    assert not writable(plan(Request(schema=schema, question=question, epsilon=1, delta=1e-6, **given)))


def test_all_kinds_are_looked_at():
    assert {name.partition(",")[0] for name in REQUESTS} == set(options.QUESTIONS)
    kinds = {getattr(mdp.queries, name) for name in mdp.queries.__all__} - {mdp.queries.MatrixQuery}
    assert {type(query) for query in QUERIES.values()} == kinds
    rules = {
        rule for rule, kind in serialise._READERS.items() if isinstance(kind, type) and issubclass(kind, NoiseStructure)
    }
    assert {type(DESIGNS[name]().structure).__name__ for name in ("moments", "table", "laplacian")} == rules


def test_a_caller_that_keeps_an_array_cannot_change_a_design():
    shares, turned, points = np.array([0.5, 0.25, 0.25]), TURNED.copy(), POINTS.copy()
    query = mdp.GramMatrix(BOUNDS, 10, points=points)
    design = mdp.make_design(QUERIES["moments"], PRIVACY, allocation=mdp.allocations.shares(shares), directions=turned)
    before = design.std.copy()
    shares *= 7
    turned *= 7
    points *= 7
    design.check()
    np.testing.assert_array_equal(design.allocation.values, [0.5, 0.25, 0.25])
    np.testing.assert_array_equal(query.points, POINTS)
    np.testing.assert_array_equal(design.remade().std, before)


@serialise.register
@dataclass(frozen=True)
class Scaled:
    factor: float  # as its author says

    @functools.cached_property
    def squares(self) -> float:
        return self.factor**2


def test_annotations_of_other_packages_are_not_relied_upon():
    given = np.array([1.0, 2.0])
    held = Scaled(given)
    given *= 7
    np.testing.assert_array_equal(held.factor, [1.0, 2.0])
    assert not writable(held.factor)
    assert not writable(held.squares)


def test_less_noise_at_the_old_price_cannot_be_written():
    design = DESIGNS["moments"]()
    for change in (
        lambda: design.structure.strengths.__imul__(1e4),
        lambda: design.structure.weights.__imul__(1e4),
        lambda: design.colcov.whitening.__imul__(1e4),
        lambda: design.query.bounds.halfwidths.__imul__(1e-4),
        lambda: design.query.bounds.midpoint.__imul__(2.0),
        lambda: DESIGNS["table"]().structure.scales.__imul__(1e4),
        lambda: DESIGNS["turned"]().colcov.directions.__imul__(1e4),
    ):
        with pytest.raises(ValueError, match="read-only"):
            change()
