"""Mechanisms by registration: checked, charged before they draw, stored, and refused where they break their claim."""

import json
from dataclasses import replace

import numpy as np
import pytest

import matrixdp as mdp
import matrixdp.baselines
from matrixdp.errors import MechanismError
from matrixdp.ledger import Approximate, Gaussian, Pure, Reserve
from matrixdp.release import registered
from matrixdp.release.registered import (
    Mechanism,
    MechanismRelease,
    find_mechanism,
    gaussian_cost,
    pure_cost,
    register_mechanism,
    registered_mechanisms,
    release_mechanism,
)

TOTAL = mdp.Privacy(4, 1e-6)
PRIVACY = mdp.Privacy(0.5, 1e-7)
QUERY = mdp.SecondMoment(mdp.Bounds([0, 0], [1, 1]), 30)
DATA = np.random.default_rng(0).random((30, 2))
EXACT = ["Laplace", "classical Gaussian", "analytic Gaussian", "Analyze Gauss", "SuLQ"]


@pytest.fixture
def ledger(tmp_path):
    with mdp.Ledger.create(tmp_path / "clinic.db") as ledger:
        ledger.register("clinic", TOTAL, neighbours="replace", reserve=Reserve(epsilon=1.0, delta=2e-7))
        yield ledger


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    registered_mechanisms()
    monkeypatch.setattr(registered, "_MECHANISMS", dict(registered._MECHANISMS))


def laplace_release(query, privacy, data, *, stream=None, simulation=False, changes=None):
    released = find_mechanism("Laplace").function(query, privacy, data, stream=stream, simulation=simulation)
    return replace(released, **({"mechanism": "mine"} | (changes or {})))


def mechanism(cost=pure_cost, tasks=("second-moment",), **changes):
    """A mechanism that changes what it says of a Laplace release."""

    @register_mechanism("mine", cost=cost, tasks=tasks)
    def mine(query, privacy, data, *, stream=None, simulation=False):
        return laplace_release(query, privacy, data, stream=stream, simulation=simulation, changes=changes)

    return find_mechanism("mine")


@pytest.mark.parametrize("name", EXACT)
def test_a_built_in_is_charged_its_cost(name, ledger):
    released = release_mechanism(name, QUERY, PRIVACY, DATA, ledger=ledger, dataset="clinic", request="r")
    (charge,) = ledger.history("clinic")
    assert charge.event == find_mechanism(name).cost(PRIVACY)
    assert charge.released
    assert charge.description["mechanism"] == name == released.mechanism
    assert ledger.verify()


def test_the_classical_calibration_costs_less_than_the_budget():
    event = find_mechanism("classical Gaussian").cost(PRIVACY)
    assert 0.5 * PRIVACY.mu < event.mu < PRIVACY.mu


def test_a_mechanism_of_ones_own_is_charged_and_stored(ledger):
    mechanism()
    first = release_mechanism("mine", QUERY, PRIVACY, DATA, ledger=ledger, dataset="clinic", request="week 7")
    again = release_mechanism("mine", QUERY, PRIVACY, None, ledger=ledger.path, dataset="clinic", request="week 7")
    assert first.to_json() == again.to_json() == ledger.stored("clinic", "week 7")
    assert [charge.event for charge in ledger.history("clinic")] == [Pure(0.5)]
    with pytest.raises(mdp.LedgerError, match="week 7"):
        release_mechanism(
            "mine", QUERY, mdp.Privacy(0.4, 1e-7), DATA, ledger=ledger, dataset="clinic", request="week 7"
        )


def test_without_a_ledger_nothing_is_charged():
    mechanism()
    released = release_mechanism("mine", QUERY, PRIVACY, DATA, stream=mdp.Stream(seed=1), simulation=True)
    assert released.simulation
    assert "SIMULATION" in str(released)


def test_a_mechanism_that_raises_leaves_its_charge(ledger):
    seen = []

    @register_mechanism("mine", cost=pure_cost)
    def mine(query, privacy, data, *, stream=None, simulation=False):
        seen.append([charge.released for charge in ledger.history("clinic")])
        raise RuntimeError("no luck")

    with pytest.raises(RuntimeError, match="no luck"):
        release_mechanism("mine", QUERY, PRIVACY, DATA, ledger=ledger, dataset="clinic", request="r")
    assert seen == [[False]]
    assert sum(not one.released for one in ledger.history("clinic")) == 1
    ledger.wait = 0.0
    with pytest.raises(mdp.RequestPendingError, match="r"):
        release_mechanism("mine", QUERY, PRIVACY, DATA, ledger=ledger, dataset="clinic", request="r")


BROKEN = {
    "weaker epsilon than its cost": ({"cost": lambda privacy: Pure(0.4)}, "weaker than its cost"),
    "a delta beside a pure cost": ({"delta": 1e-8}, "weaker than its cost"),
    "no mu for a Gaussian cost": ({"cost": gaussian_cost, "delta": 1e-7}, "weaker than its cost"),
    "a larger mu than its cost": ({"cost": lambda privacy: Gaussian(0.01), "mu": 0.02}, "weaker than its cost"),
    "a smaller delta was charged": (
        {"cost": lambda privacy: Approximate(0.5, 1e-9), "delta": 1e-8},
        "weaker than its cost",
    ),
    "beyond the budget": ({"epsilon": 0.6}, "at most those of the budget"),
    "another shape": ({"matrix": np.zeros((3, 2)), "std": None}, "shape"),
    "not finite": ({"matrix": np.full((2, 2), np.nan)}, "finite"),
    "another query": ({"query": mdp.Identity(QUERY.bounds, 30)}, "return query"),
    "another name": ({"mechanism": "yours"}, "registered name"),
    "an unmarked simulation": ({"simulation": True}, "return query and simulation"),
    "floating-point noise": ({"comparison_only": True}, "low bits"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_result_that_breaks_its_claim_is_not_released(case, ledger):
    changes, message = BROKEN[case]
    mechanism(**changes)
    with pytest.raises(MechanismError, match=message):
        release_mechanism("mine", QUERY, PRIVACY, DATA, ledger=ledger, dataset="clinic")
    assert [charge.released for charge in ledger.history("clinic")] == [False]


def test_a_stronger_claim_than_the_cost_is_released(ledger):
    mechanism(cost=lambda privacy: Approximate(0.5, 1e-7), epsilon=0.3)
    assert release_mechanism("mine", QUERY, PRIVACY, DATA, ledger=ledger, dataset="clinic").epsilon == 0.3
    assert [charge.released for charge in ledger.history("clinic")] == [True]


@pytest.mark.parametrize("name", ["exponential", "PPCA", "Johnson-Lindenstrauss", "CoinPress", "AdaSSP"])
def test_floating_point_noise_is_never_charged(name, ledger):
    with pytest.raises(mdp.ParameterError, match="floating-point"):
        release_mechanism(name, QUERY, PRIVACY, DATA, ledger=ledger, dataset="clinic")
    assert ledger.history("clinic") == []
    assert release_mechanism(name, QUERY, PRIVACY, DATA, stream=mdp.Stream(seed=1), simulation=True).comparison_only


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"data": DATA * np.nan}, mdp.DataError),
        ({"query": "moment"}, mdp.ParameterError),
        ({"privacy": 1.0}, mdp.ParameterError),
        ({"dataset": None}, mdp.ParameterError),
        ({"stream": mdp.Stream(seed=1)}, mdp.StreamError),
        ({"calibration": "exact"}, mdp.ParameterError),
        ({"weight": 3.0}, mdp.ParameterError),
        ({"mechanism": "no such"}, mdp.ParameterError),
        ({"simulation": True}, mdp.ParameterError),
    ],
)
def test_what_can_be_checked_is_checked_before_the_charge(changes, error, ledger):
    asked = {"mechanism": "Laplace", "query": QUERY, "privacy": PRIVACY, "data": DATA, "dataset": "clinic"} | changes
    with pytest.raises(error):
        release_mechanism(**asked, ledger=ledger)
    assert ledger.history("clinic") == []


def test_a_mechanism_need_not_be_registered(ledger):
    def other(query, privacy, data, *, stream=None, simulation=False):
        return laplace_release(
            query, privacy, data, stream=stream, simulation=simulation, changes={"mechanism": "other"}
        )

    release_mechanism(Mechanism("other", other, pure_cost), QUERY, PRIVACY, DATA, ledger=ledger, dataset="clinic")
    assert len(ledger.history("clinic")) == 1


def test_names_are_not_taken_twice():
    with pytest.raises(mdp.ParameterError, match="built-in mechanism of matrixdp"):
        register_mechanism("Laplace", cost=pure_cost)(laplace_release)
    assert mechanism() is not mechanism()  # the same module may register again


def test_what_cannot_be_a_mechanism_is_refused():
    def wrong(data, query, privacy):
        raise NotImplementedError

    with pytest.raises(mdp.ParameterError, match="signature"):
        register_mechanism("wrong", cost=pure_cost)(wrong)
    with pytest.raises(mdp.ParameterError, match="tasks must be"):
        register_mechanism("wrong", cost=pure_cost, tasks=("median",))(laplace_release)
    with pytest.raises(mdp.ParameterError, match="name must be"):
        register_mechanism("", cost=pure_cost)(laplace_release)
    with pytest.raises(mdp.ParameterError, match="cost must be"):
        register_mechanism("wrong", cost=1.0)(laplace_release)
    mechanism(cost=lambda privacy: privacy)
    with pytest.raises(mdp.ParameterError, match="cost of 'mine'"):
        release_mechanism("mine", QUERY, PRIVACY, DATA)


@pytest.mark.parametrize("name", [*EXACT, "exponential", "AdaSSP"])
def test_json_gives_back_every_bit(name):
    released = release_mechanism(name, QUERY, PRIVACY, DATA)
    again = MechanismRelease.from_json(released.to_json())
    assert again.to_json() == released.to_json()
    assert np.array_equal(again.matrix, released.matrix)
    assert again.neighbours is released.neighbours
    assert (again.std is None) == (name in ("SuLQ", "AdaSSP"))


@pytest.mark.parametrize(
    "change",
    [
        {"format": "matrixdp release 1"},
        {"neighbours": "add-remove"},
        {"epsilon": 3.0},
        {"delta": "0"},
        {"matrix": [1.0]},
        {"matrix": [[float("nan"), 1.0], [1.0, 2.0]]},
        {"std": [[1.0]]},
        {"query": {"kind": "Nothing"}},
        {"privacy": None},
        {"simulation": 1},
        {"parameters": 3},
        {"mu": 100.0},
    ],
)
def test_text_that_no_release_wrote_is_refused(change):
    content = json.loads(release_mechanism("Laplace", QUERY, PRIVACY, DATA).to_json())
    with pytest.raises(mdp.ParameterError, match="MechanismRelease"):
        MechanismRelease.from_json(json.dumps(content | change))
    with pytest.raises(mdp.ParameterError):
        MechanismRelease.from_json(json.dumps({key: content[key] for key in content if key not in change}))
    for text in ("", "[]", "3", None):
        with pytest.raises(mdp.ParameterError):
            MechanismRelease.from_json(text)


def test_standard_deviations_are_those_of_the_noise():
    for name in ("Laplace", "exponential"):
        drawn = [
            release_mechanism(name, QUERY, PRIVACY, DATA, stream=mdp.Stream(seed=seed), simulation=True)
            for seed in range(1500)
        ]
        found = np.std([one.matrix for one in drawn], axis=0)
        assert found == pytest.approx(drawn[0].std, rel=0.15)
