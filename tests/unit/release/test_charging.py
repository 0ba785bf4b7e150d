"""A release and its charge: in this order, once, and never one without the other."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive.moment import prepare_fit
from matrixdp.adaptive.scales import prepare_scales
from matrixdp.estimators import PrivateCovariance
from matrixdp.release.charging import release_fit

TOTAL = mdp.Privacy(1, 1e-6)
BOUNDS = mdp.Bounds([0, 0], [1, 1])
DATA = np.random.default_rng(0).random((30, 2))
DESIGN = mdp.make_design(mdp.Moments(BOUNDS, 30), TOTAL, share=0.4)


@pytest.fixture
def ledger(tmp_path):
    with mdp.Ledger.create(tmp_path / "clinic.db") as ledger:
        ledger.register("clinic", TOTAL, neighbours="replace")
        yield ledger


def test_a_release_charges_what_it_spends(ledger):
    DESIGN.release(DATA, ledger=ledger, dataset="clinic")
    (charge,) = ledger.history("clinic")
    assert charge.event.mu == DESIGN.distance
    assert charge.released
    assert charge.description["query"] == "Moments"
    assert ledger.remaining("clinic").mu ** 2 == pytest.approx(0.6 * TOTAL.mu**2, rel=1e-6)
    assert ledger.verify()


def test_a_ledger_may_be_given_by_its_path(ledger):
    DESIGN.release(DATA, ledger=ledger.path, dataset="clinic")
    assert len(ledger.history("clinic")) == 1


def test_the_charge_is_on_the_disk_before_the_first_random_bit(ledger, monkeypatch):
    seen = []
    draw = mdp.Stream.words

    def words(self, size, out=None):
        with mdp.Ledger.open(ledger.path) as other:
            seen.append([charge.released for charge in other.history("clinic")])
        return draw(self, size, out=out)

    monkeypatch.setattr(mdp.Stream, "words", words)
    DESIGN.release(DATA, ledger=ledger, dataset="clinic")
    assert seen
    assert all(state == [False] for state in seen)


def test_a_release_that_dies_leaves_its_charge(ledger, monkeypatch):
    def words(self, size, out=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(mdp.Stream, "words", words)
    with pytest.raises(KeyboardInterrupt):
        DESIGN.release(DATA, ledger=ledger, dataset="clinic", request="r")
    assert sum(not one.released for one in ledger.history("clinic")) == 1
    ledger.wait = 0.0  # nobody will store it
    with pytest.raises(mdp.LedgerError, match="r"):
        DESIGN.release(DATA, ledger=ledger, dataset="clinic", request="r")


def test_what_would_overdraw_is_refused_and_nothing_is_drawn(ledger, monkeypatch):
    def words(self, size, out=None):
        raise AssertionError("noise was drawn")

    for _ in range(2):
        DESIGN.release(DATA, ledger=ledger, dataset="clinic")
    monkeypatch.setattr(mdp.Stream, "words", words)
    with pytest.raises(mdp.BudgetExceededError, match="clinic"):
        DESIGN.release(DATA, ledger=ledger, dataset="clinic")
    assert len(ledger.history("clinic")) == 2


def test_an_error_in_the_data_costs_nothing(ledger):
    with pytest.raises(mdp.DataError):
        DESIGN.release(DATA * np.nan, ledger=ledger, dataset="clinic")
    assert ledger.history("clinic") == []


def test_the_same_request_costs_once(ledger):
    first = DESIGN.release(DATA, ledger=ledger, dataset="clinic", request="week 7")
    again = DESIGN.release(None, ledger=ledger, dataset="clinic", request="week 7")
    assert np.array_equal(first.matrix, again.matrix)
    assert len(ledger.history("clinic")) == 1
    other = mdp.make_design(mdp.Moments(BOUNDS, 30), TOTAL, share=0.3)
    with pytest.raises(mdp.LedgerError):
        other.release(DATA, ledger=ledger, dataset="clinic", request="week 7")


def test_directions_charge_by_themselves_and_the_rest_fits(ledger):
    learned = mdp.principal_directions(DATA, BOUNDS, TOTAL, records=30, share=0.2, ledger=ledger, dataset="clinic")
    query = mdp.Identity(BOUNDS, 30)
    rest = mdp.make_design(query, TOTAL, directions=learned.directions, share=0.8)
    assert ledger.whatif("clinic", rest).mu < 1e-6
    rest.release(DATA, ledger=ledger, dataset="clinic")
    assert len(ledger.history("clinic")) == 2


def test_neighbours_are_never_mixed(ledger):
    design = mdp.make_design(mdp.Moments(BOUNDS, 30, neighbours="add-remove"), TOTAL)
    with pytest.raises(mdp.ParameterError, match="neighbours"):
        design.release(DATA, ledger=ledger, dataset="clinic")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "clinic"}, "ledger must be given"),
        ({"request": "r"}, "ledger must be given"),
        ({"ledger": "x.db"}, "dataset must be given"),
        ({"ledger": "x.db", "dataset": "clinic", "simulation": True}, "left out for a simulation"),
    ],
)
def test_unfit_combinations_are_named(options, message):
    with pytest.raises(mdp.ParameterError, match=message):
        DESIGN.release(DATA, **options)


def test_an_allowance_pays_for_every_kind_of_release(ledger, tmp_path):
    ledger.allow("clinic", "ann", share=0.9)
    account = {"ledger": ledger, "dataset": "clinic", "allowance": "ann"}
    tenth = mdp.Privacy(TOTAL.epsilon / 10, TOTAL.delta)
    small = mdp.make_design(mdp.Identity(BOUNDS, 30), tenth)
    small.release(DATA, **account)
    mdp.release_dataset(small, mdp.records.Blocks(lambda: iter([DATA])), tmp_path / "out", **account)
    mdp.release_mechanism("Laplace", small.query, mdp.Privacy(0.01, TOTAL.delta), DATA, **account)
    mdp.principal_directions(DATA, BOUNDS, tenth, records=30, share=0.2, **account)
    path = {**account, "ledger": ledger.path}
    release_fit(prepare_fit(DATA, BOUNDS, tenth, aim="covariance"), **path)
    release_fit(prepare_scales(DATA, BOUNDS, tenth), **path)
    PrivateCovariance(bounds=BOUNDS, epsilon=tenth.epsilon, delta=TOTAL.delta, **path).fit(DATA)
    assert [charge.allowance for charge in ledger.history("clinic")] == ["ann"] * 7
    assert [one for one in ledger.history("clinic") if not one.released] == []
    assert ledger.remaining("clinic").mu == pytest.approx(TOTAL.mu * 0.1**0.5)
    ledger.verify()


def test_an_allowance_that_is_too_small_refuses_before_noise_is_drawn(ledger, monkeypatch):
    ledger.allow("clinic", "ann", share=0.1)
    monkeypatch.setattr("matrixdp.mechanisms.mechanism.add_noise", lambda *_: pytest.fail("noise was drawn"))
    head = ledger.head
    for name, message in (("ann", "the allowance 'ann' of 'clinic' has"), ("bob", "has no allowance 'bob'")):
        with pytest.raises(mdp.LedgerError, match=message):
            DESIGN.release(DATA, ledger=ledger, dataset="clinic", allowance=name)
    with pytest.raises(mdp.ParameterError, match="ledger must be given with dataset, request or allowance"):
        DESIGN.release(DATA, allowance="ann")
    assert ledger.head == head
