"""Allowances in a ledger: set apart, charged, returned and shown."""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

from ledger_stores import both_stores
from ledger_worker import TOTAL
from matrixdp.errors import BudgetExceededError, LedgerError, ParameterError
from matrixdp.ledger import Approximate, Gaussian, Ledger, Pure, Reserve
from matrixdp.ledger.entries import default_actor
from matrixdp.privacy import Privacy

pytestmark = both_stores


def charge(ledger, mu=0.01, allowance=None, **options):
    return ledger.charge("clinic", Gaussian(mu), neighbours="replace", description={}, allowance=allowance, **options)


def test_an_allowance_is_spent_to_the_last_bit_and_no_further(ledger):
    ledger.allow("clinic", "ann", epsilon=0.4)
    mu = Privacy(0.4, TOTAL.delta).mu
    assert ledger.remaining("clinic", allowance="ann").mu == mu
    charge(ledger, mu, "ann")
    assert ledger.remaining("clinic", allowance="ann").mu == 0
    with pytest.raises(BudgetExceededError, match=r"the allowance 'ann' of 'clinic' has epsilon 0\.0+ left"):
        charge(ledger, 0.01, "ann")
    assert ledger.remaining("clinic").mu > 0.2
    ledger.verify()


def test_what_is_allotted_is_not_left_for_others(ledger):
    ledger.allow("clinic", "ann", share=0.75)
    ledger.allow("clinic", "bob", share="1/4")
    assert ledger.remaining("clinic").mu < 1e-20  # a quarter is rounded down
    with pytest.raises(BudgetExceededError, match="allotted: name an allowance"):
        charge(ledger)
    with pytest.raises(BudgetExceededError, match=r"the allowance 'cat' needs 0\.1"):
        ledger.allow("clinic", "cat", epsilon=0.1)
    with pytest.raises(BudgetExceededError, match="'bob'"):
        charge(ledger, ledger.remaining("clinic", allowance="ann").mu, "bob")
    charge(ledger, ledger.remaining("clinic", allowance="ann").mu, "ann")
    charge(ledger, ledger.remaining("clinic", allowance="bob").mu, "bob")
    ledger.verify()


def test_what_is_spent_cannot_be_allotted(ledger):
    charge(ledger, TOTAL.mu * 0.9)
    with pytest.raises(BudgetExceededError, match="Choose a smaller one"):
        ledger.allow("clinic", "ann", share=0.5)
    ledger.allow("clinic", "ann", share="0.1")


def test_the_rest_of_a_returned_allowance_is_left_for_others(ledger):
    ledger.allow("clinic", "ann", share=1)
    charge(ledger, 0.1, "ann")
    returned = ledger.return_allowance("clinic", "ann")
    assert returned.returned
    assert returned.left.mu == 0
    assert Fraction(ledger.remaining("clinic").mu) ** 2 <= Fraction(TOTAL.mu) ** 2 - Fraction(0.1) ** 2
    with pytest.raises(BudgetExceededError, match="'ann' of 'clinic' was returned"):
        charge(ledger, 1e-6, "ann")
    with pytest.raises(BudgetExceededError, match="was returned"):
        ledger.whatif("clinic", Gaussian(0.01), allowance="ann")
    charge(ledger, ledger.remaining("clinic").mu)
    ledger.verify()


def test_a_second_return_and_a_second_allowance_change_nothing(ledger):
    first = ledger.allow("clinic", "ann", epsilon=0.4)
    head = ledger.head
    assert ledger.allow("clinic", "ann", epsilon=0.4) == first
    assert ledger.head == head
    with pytest.raises(LedgerError, match="of another size"):
        ledger.allow("clinic", "ann", epsilon=0.5)
    ledger.return_allowance("clinic", "ann")
    head = ledger.head
    assert ledger.return_allowance("clinic", "ann").returned
    assert ledger.head == head
    with pytest.raises(LedgerError, match=r"was returned. Choose another name"):
        ledger.allow("clinic", "ann", epsilon=0.4)


def test_allowances_of_two_data_sets_are_apart(ledger):
    ledger.register("other", TOTAL, neighbours="replace")
    ledger.allow("clinic", "ann", share=0.5)
    with pytest.raises(LedgerError, match="'other' has no allowance 'ann'"):
        ledger.remaining("other", allowance="ann")
    ledger.allow("other", "ann", share=1)
    charge(ledger, 0.05, "ann")
    assert ledger.allowances("other")[0].left.mu == TOTAL.mu
    ledger.verify()


@pytest.mark.parametrize("name", ["", "a\nb", 7, None])
def test_names_that_cannot_be_shown_are_refused(ledger, name):
    with pytest.raises(ParameterError, match="name must be a printable"):
        ledger.allow("clinic", name, epsilon=0.1)


def test_unknown_names_are_refused(ledger):
    head = ledger.head
    for action in (
        lambda: charge(ledger, 0.01, "bob"),
        lambda: ledger.remaining("clinic", allowance="bob"),
        lambda: ledger.return_allowance("clinic", "bob"),
        lambda: ledger.allow("nowhere", "bob", epsilon=1),
    ):
        with pytest.raises(LedgerError, match=r"'clinic' has no allowance 'bob'|has no data set 'nowhere'"):
            action()
    assert ledger.head == head


def test_the_reserve_of_an_allowance_pays_for_other_events(ledger):
    ledger.register("rivals", Privacy(2, 1e-6), neighbours="replace", reserve=Reserve(epsilon=1, delta=1e-7))
    ledger.allow("rivals", "ann", epsilon=0.5, reserve=Reserve(epsilon=0.5, delta=1e-8))
    options = {"neighbours": "replace", "description": {}, "allowance": "ann"}
    ledger.charge("rivals", Pure(0.25), **options)
    ledger.charge("rivals", Approximate(0.25, 1e-8), **options)
    for event in (Pure(0.1), Approximate(0.01, 1e-9), Gaussian(0.1)):
        with pytest.raises(BudgetExceededError):
            ledger.charge("rivals", event, **options)
    assert ledger.remaining("rivals").reserve.epsilon == 0.5
    assert ledger.allowances("rivals")[0].epsilon == 0.5
    with pytest.raises(ParameterError, match="the reserve must be part of"):
        ledger.allow("rivals", "bob", epsilon=0.1, reserve=Reserve(epsilon=0.2))
    ledger.verify()


def test_a_request_belongs_to_the_data_set_whoever_paid(ledger):
    for name in ("ann", "bob"):
        ledger.allow("clinic", name, share=0.3)
    receipt = charge(ledger, 0.01, "ann", request="week 7")
    with pytest.raises(LedgerError, match="was charged"):
        charge(ledger, 0.01, "bob", request="week 7")
    ledger.complete(receipt, "{}")
    assert ledger.stored("clinic", "week 7") == "{}"
    assert ledger.verify() == ledger.head


def test_what_if_it_were_charged_to_an_allowance(ledger):
    ledger.allow("clinic", "ann", share=0.5)
    before = ledger.remaining("clinic", allowance="ann")
    after = ledger.whatif("clinic", Gaussian(0.1), allowance="ann")
    assert after.allowance == before.allowance == "ann"
    charge(ledger, 0.1, "ann")
    assert ledger.remaining("clinic", allowance="ann") == after
    with pytest.raises(BudgetExceededError):
        ledger.whatif("clinic", Gaussian(0.15), allowance="ann")


def seventh(ledger):
    """The largest mu of which seven equal charges fit into the allowance, but for rounding."""
    return ledger.remaining("clinic", allowance="ann").mu / math.sqrt(7) * (1 - 1e-12)


def test_equal_parts_of_an_allowance_can_be_charged(ledger):
    ledger.allow("clinic", "ann", share="1/3")
    mu = seventh(ledger)
    for _ in range(7):
        charge(ledger, mu, "ann")
    with pytest.raises(BudgetExceededError):
        charge(ledger, mu, "ann")


def test_a_summary_of_everything(ledger):
    ledger.register("other", TOTAL, neighbours="add-remove")
    ledger.allow("clinic", "bob", share=0.25)
    ledger.allow("clinic", "ann", share=0.25)
    ledger.complete(charge(ledger, 0.05, "ann"), "{}")
    charge(ledger, 0.05)
    clinic, other = ledger.summaries()
    assert [found.name for found in clinic.allowances] == ["ann", "bob"]
    assert clinic.allowances == tuple(ledger.allowances("clinic"))
    assert (clinic.counts.charges, clinic.counts.unfinished) == (2, 1)
    assert clinic == ledger.summary("clinic")
    assert clinic.left == ledger.remaining("clinic")
    assert clinic.spent_mu**2 == pytest.approx(2 * 0.05**2)
    assert clinic.unspent.mu**2 == pytest.approx(TOTAL.mu**2 - 2 * 0.05**2)
    assert clinic.total_mu == other.unspent.mu == other.left.mu == TOTAL.mu
    assert (other.spent_mu, other.spent_epsilon, other.allowances, other.counts.charges) == (0, 0, (), 0)
    assert [charged.allowance for charged in ledger.history("clinic")] == ["ann", None]


def test_copies_of_a_handle_see_the_same_allowances(ledger):
    ledger.allow("clinic", "ann", share=0.5)
    with pickle.loads(pickle.dumps(ledger)) as other:
        charge(other, 0.1, "ann")
        assert other.allowances("clinic") == ledger.allowances("clinic")


def test_racing_handles_never_exceed_an_allowance_or_the_total(ledger):
    """Four handles charge, allot and return at once; the allowance has room for seven of twelve charges."""
    ledger.allow("clinic", "ann", share=0.5)
    event = Gaussian(seventh(ledger))

    def attempt(number):
        granted = 0
        with pickle.loads(pickle.dumps(ledger)) as own:
            own.allow("clinic", f"team {number % 4}", share=0.05)
            for _ in range(3):
                try:
                    own.charge("clinic", event, neighbours="replace", description={}, allowance="ann")
                    granted += 1
                except BudgetExceededError:
                    own.return_allowance("clinic", f"team {number % 4}")
        return granted

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(attempt, range(4))) == 7
    assert len(ledger.history("clinic")) == 7
    assert ledger.remaining("clinic", allowance="ann").mu < event.mu
    ledger.verify()


def test_an_allowance_for_some_people_is_charged_by_them_alone(ledger):
    ledger.allow("clinic", "team", epsilon=0.2, payers=["ann", "cardiology"])
    ledger.allow("clinic", "team", epsilon=0.2, payers=["cardiology", "ann"])  # the same
    with pytest.raises(LedgerError, match="is for ann, cardiology, which cannot be changed"):
        ledger.allow("clinic", "team", epsilon=0.2)

    for author in ({"actor": "ann"}, {"actor": "eve", "groups": ("cardiology",)}):
        with Ledger.open(ledger.path, **author) as own:
            own.whatif("clinic", Gaussian(0.01), allowance="team")
            charge(own, allowance="team")
    for author in ({"actor": "bob"}, {"actor": "ann@elsewhere"}, {"actor": "bob", "groups": ("surgery",)}, {}):
        with Ledger.open(ledger.path, **author) as own:
            with pytest.raises(LedgerError, match="is for ann, cardiology, and not for"):
                own.whatif("clinic", Gaussian(0.01), allowance="team")
            with pytest.raises(LedgerError, match="is for ann, cardiology, and not for"):
                charge(own, allowance="team")
    assert ledger.summary("clinic").counts.charges == 2
    assert ledger.verify() == ledger.head
    (found,) = [one for one in ledger.allowances("clinic") if one.name == "team"]
    assert found.is_for(["ann"])
    assert not found.is_for(["bob"])


def test_somebody_whom_nobody_named_pays_by_the_name_of_the_user(ledger):
    ledger.allow("clinic", "own", epsilon=0.2, payers=[default_actor().rpartition("@")[0]])
    with Ledger.open(ledger.path) as own:
        charge(own, allowance="own")
        with pickle.loads(pickle.dumps(own)) as copied:
            charge(copied, allowance="own")
