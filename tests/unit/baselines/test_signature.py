"""What all rivals have in common."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from matrixdp import (
    Bounds,
    DataError,
    Identity,
    Neighbours,
    ParameterError,
    Privacy,
    SecondMoment,
    Stream,
    StreamError,
    baselines,
)
from matrixdp.release.registered import MechanismRelease, registered_mechanisms

BOUNDS = Bounds([0, 0, -1], [1, 2, 1])
DATA = np.array([[0.1, 1.9, 0.3], [0.5, 0.5, -1.0], [1.0, 0.0, 0.7], [0.2, 0.3, 0.4], [0.9, 1.0, -0.2]])
IDENTITY, MOMENT = Identity(BOUNDS, 5), SecondMoment(BOUNDS, 5)
PRIVACY = Privacy(0.9, 1e-3)
CASES = [
    ("laplace", IDENTITY, (5, 3), False, True),
    ("laplace", MOMENT, (3, 3), False, True),
    ("classical_gaussian", IDENTITY, (5, 3), False, False),
    ("analytic_gaussian", IDENTITY, (5, 3), False, False),
    ("analytic_gaussian", MOMENT, (3, 3), False, False),
    ("analyze_gauss", MOMENT, (3, 3), False, False),
    ("exponential", IDENTITY, (5, 3), True, True),
    ("exponential", MOMENT, (3, 3), True, True),
    ("ppca", MOMENT, (3, 1), True, True),
    ("johnson_lindenstrauss", IDENTITY, (5, 3), True, False),
    ("johnson_lindenstrauss", MOMENT, (3, 3), True, False),
    ("sulq", IDENTITY, (3, 3), False, False),
    ("sulq", MOMENT, (3, 3), False, False),
    ("separate_cov", MOMENT, (3, 3), True, False),
    ("adaptive_cov", MOMENT, (3, 3), True, False),
    ("coinpress", MOMENT, (3, 3), True, False),
    ("adassp", MOMENT, (3, 1), True, False),
]
RIVALS = sorted(baselines.__all__)


def rival_of(name):
    return getattr(baselines, name)


@pytest.mark.parametrize("name", RIVALS)
def test_signature_is_the_common_one(name):
    parameters = list(inspect.signature(rival_of(name)).parameters.values())
    assert [p.name for p in parameters[:5]] == ["query", "privacy", "data", "stream", "simulation"]
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters[3:])


def test_every_rival_has_a_case_and_is_registered():
    assert {case[0] for case in CASES} == set(RIVALS)
    functions = {mechanism.function.__name__ for mechanism in registered_mechanisms() if mechanism.builtin}
    assert functions == set(RIVALS)


@pytest.mark.parametrize(("name", "query", "shape", "floats", "pure"), CASES)
def test_release_says_what_it_is(name, query, shape, floats, pure):
    result = rival_of(name)(query, PRIVACY, DATA)
    assert isinstance(result, MechanismRelease)
    assert result.matrix.shape == shape
    assert result.matrix.dtype == np.float64
    assert np.isfinite(result.matrix).all()
    assert result.comparison_only is floats
    assert result.delta == (0.0 if pure else PRIVACY.delta)
    assert result.epsilon <= PRIVACY.epsilon
    assert result.neighbours is Neighbours.REPLACE
    assert not result.simulation
    assert ("comparison only" in str(result)) == floats


@pytest.mark.parametrize(("name", "query"), [case[:2] for case in CASES])
def test_seeded_stream_is_refused_unless_it_is_a_simulation(name, query):
    with pytest.raises(StreamError, match="simulation=True"):
        rival_of(name)(query, PRIVACY, DATA, stream=Stream(seed=1))
    first, second = (rival_of(name)(query, PRIVACY, DATA, stream=Stream(seed=1), simulation=True) for _ in range(2))
    assert first.simulation
    assert "SIMULATION" in str(first)
    assert np.array_equal(first.matrix, second.matrix)


@pytest.mark.parametrize(("name", "query"), [case[:2] for case in CASES])
def test_bad_arguments_are_errors(name, query):
    with pytest.raises(ParameterError, match="query must be"):
        rival_of(name)("identity", PRIVACY, DATA)
    with pytest.raises(ParameterError, match="privacy must be"):
        rival_of(name)(query, 1.0, DATA)
    with pytest.raises(DataError, match="finite"):
        rival_of(name)(query, PRIVACY, np.where(DATA == 0.5, np.nan, DATA))


@pytest.mark.parametrize(
    ("name", "query"),
    [("laplace", baselines), ("johnson_lindenstrauss", None), ("ppca", IDENTITY), ("analyze_gauss", IDENTITY)],
)
def test_queries_that_a_rival_does_not_take_are_errors(name, query):
    with pytest.raises(ParameterError, match="query must be"):
        rival_of(name)(query, PRIVACY, DATA)


@pytest.mark.parametrize("name", ["laplace", "classical_gaussian", "analytic_gaussian", "exponential"])
@pytest.mark.parametrize("query", [IDENTITY, MOMENT], ids=["identity", "moment"])
def test_with_a_huge_budget_the_answer_comes_out(name, query):
    epsilon = 1.0 if name == "classical_gaussian" else 1e9
    result = rival_of(name)(query, Privacy(epsilon, 0.1), DATA)
    exact = query.finish(query.evaluate(DATA, clip=True, missing="error"))
    if name == "classical_gaussian":
        assert np.abs(result.matrix - exact).max() < 10 * result.parameters["std"]
    else:
        assert np.abs(result.matrix - exact).max() < 1e-2
