"""The ledger against a plain model that keeps its sums as fractions, and broken ledgers that it must reject."""

from __future__ import annotations

import dataclasses
import math
import pickle
import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from ledger_stores import PostgresSchemas
from matrixdp.errors import BudgetExceededError, LedgerError
from matrixdp.gdp import gdp_mu, pure_mu
from matrixdp.ledger import Approximate, Gaussian, Ledger, Pure, Reserve
from matrixdp.ledger.balance import AllowanceBalance, Balance
from matrixdp.privacy import Privacy
from nightly import examples

DATASETS = {
    "gaussian": (Privacy(1.0, 1e-6), Reserve()),
    "mixed": (Privacy(2.0, 1e-5), Reserve(epsilon=0.5, delta=1e-6)),
    "rivals": (Privacy(0.5, 1e-9), Reserve(epsilon=0.5, delta=1e-9)),
}
NOTHING = (Fraction(0),) * 3
names = st.sampled_from(sorted(DATASETS))
holders = st.sampled_from(["ann", "bob", "cat"])
payers = st.one_of(st.none(), holders)
sizes = st.one_of(
    st.sampled_from([0.1, 0.25, "1/3", 0.5, 1]).map(lambda share: {"share": share}),
    st.floats(0.01, 0.5).map(lambda epsilon: {"epsilon": epsilon}),
    st.floats(0.2, 0.6).map(lambda epsilon: {"epsilon": epsilon, "reserve": Reserve(epsilon / 2, 3e-10)}),
)
events = st.one_of(
    st.floats(1e-9, 0.2).map(Gaussian),
    st.floats(1e-9, 0.4).map(Pure),
    st.builds(Approximate, st.floats(1e-9, 0.2), st.sampled_from([1e-12, 3e-10, 1e-7, 0.5])),
)


def ways(event):
    """What an event costs, as (mu^2, epsilon, delta), written down once more from the theory."""
    match event:
        case Gaussian(mu):
            return [(Fraction(mu) ** 2, 0, 0)]
        case Pure(epsilon):
            return [(0, Fraction(epsilon), 0), (Fraction(pure_mu(epsilon)) ** 2, 0, 0)]
        case Approximate(epsilon, delta):
            return [(a, b, Fraction(delta)) for a, b, _ in ways(Pure(epsilon))]


def add(first, second):
    return tuple(a + b for a, b in zip(first, second, strict=True))


def subtract(first, second):
    return tuple(a - b for a, b in zip(first, second, strict=True))


def amount(size, total, delta):
    """The amounts of an allowance: shares are rounded down to units of 2^-192, and so are fractions of units."""
    if "share" in size:
        return tuple(Fraction(math.floor(part * Fraction(str(size["share"])) * 2**192), 2**192) for part in total)
    reserve = size.get("reserve", Reserve())
    epsilon, rest = Fraction(size["epsilon"]) - Fraction(reserve.epsilon), Fraction(delta) - Fraction(reserve.delta)
    mu = gdp_mu(epsilon=_down(epsilon), delta=_down(rest))
    return (Fraction(mu) ** 2, Fraction(reserve.epsilon), Fraction(reserve.delta))


class LedgerMachine(RuleBasedStateMachine):
    receipts = Bundle("receipts")
    completed = Bundle("completed")
    allowances = Bundle("allowances")

    @initialize()
    def create(self):
        self.folder = Path(tempfile.mkdtemp())
        self.ledger = Ledger.create(self.new_path())
        self.spent = {(name, holder): NOTHING for name in DATASETS for holder in (None, "ann", "bob", "cat")}
        self.sizes, self.returned = {}, set()
        self.entries, self.open, self.count = 1, set(), 0
        self.total = {}
        for name, (privacy, reserve) in DATASETS.items():
            self.ledger.register(name, privacy, neighbours="replace", reserve=reserve)
            self.entries += 1
            left = (privacy.epsilon - reserve.epsilon, privacy.delta - reserve.delta)
            mu = gdp_mu(epsilon=left[0], delta=left[1]) if left[1] > 0 else 0.0
            self.total[name] = (Fraction(mu) ** 2, Fraction(reserve.epsilon), Fraction(reserve.delta))

    def new_path(self):
        return self.folder / "clinic.db"

    def left(self, name, holder):
        """What an allowance or, without one, the data set can still pay."""
        if holder is not None:
            size = self.sizes[name, holder]
            return NOTHING if (name, holder) in self.returned else subtract(size, self.spent[name, holder])
        left = subtract(self.total[name], self.spent[name, None])
        for key, size in self.sizes.items():
            if key[0] == name:
                left = subtract(left, self.spent[key] if key in self.returned else size)
        return left

    def allowed(self, name, event, holder):
        """What is spent by `holder` after an event that fits, or None."""
        for way in ways(event):
            if all(cost <= left for cost, left in zip(way, self.left(name, holder), strict=True)):
                return add(self.spent[name, holder], way)
        return None

    @rule(target=receipts, name=names, event=events, with_request=st.booleans(), holder=payers)
    def charge(self, name, event, with_request, holder):
        if holder is not None and (name, holder) not in self.sizes:
            with pytest.raises(LedgerError, match="has no allowance"):
                self.ledger.charge(name, event, neighbours="replace", description={}, allowance=holder)
            return multiple()
        self.count += 1
        request = f"r{self.count}" if with_request else None
        after = self.allowed(name, event, holder)
        try:
            receipt = self.ledger.charge(
                name, event, neighbours="replace", description={"n": self.count}, request=request, allowance=holder
            )
        except BudgetExceededError:
            assert after is None
            return multiple()
        assert after is not None
        self.spent[name, holder] = after
        self.entries += 1
        self.open.add(receipt.entry)
        return receipt

    @rule(target=allowances, name=names, holder=holders, size=sizes)
    def allow(self, name, holder, size):
        if (name, holder) in self.sizes:
            return multiple()
        wanted = amount(size, self.total[name], DATASETS[name][0].delta)
        fits = all(part <= left for part, left in zip(wanted, self.left(name, None), strict=True))
        try:
            self.ledger.allow(name, holder, **size)
        except BudgetExceededError:
            assert not fits
            return multiple()
        assert fits
        self.sizes[name, holder] = wanted
        self.entries += 1
        return name, holder

    @rule(target=receipts, allowance=allowances, event=events)
    def charge_allowance(self, allowance, event):
        return self.charge(allowance[0], event, False, allowance[1])

    @rule(allowance=allowances, mu=st.floats(1e-9, 0.02))
    def return_allowance(self, allowance, mu):
        self.charge(allowance[0], Gaussian(mu), False, allowance[1])
        self.ledger.return_allowance(*allowance)
        self.entries += allowance not in self.returned
        self.returned.add(allowance)

    @rule(target=completed, receipt=consumes(receipts))
    def complete(self, receipt):
        self.ledger.complete(receipt, f'{{"of":{receipt.entry}}}')
        self.entries += 1
        self.open.discard(receipt.entry)
        return receipt

    @rule(receipt=completed)
    def ask_again(self, receipt):
        if receipt.request is not None:
            assert self.ledger.stored(receipt.dataset, receipt.request) == f'{{"of":{receipt.entry}}}'

    @rule(receipt=receipts)
    def ask_too_early(self, receipt):
        if receipt.request is not None:
            with pytest.raises(LedgerError, match="stays spent"):
                self.ledger.stored(receipt.dataset, receipt.request)

    @rule(account=st.one_of(names.map(lambda name: (name, None)), allowances))
    def spend_all_that_is_left(self, account):
        name, holder = account
        mu = self.ledger.remaining(name, allowance=holder).mu
        if mu > 0:
            self.charge(name, Gaussian(mu), False, holder)

    @rule()
    def change_hands(self):
        handle = pickle.loads(pickle.dumps(self.ledger))
        self.ledger.close()
        self.ledger = handle

    @invariant()
    def agrees_with_the_model(self):
        assert self.ledger.head.entry == self.entries
        for name, holder in [*((name, None) for name in DATASETS), *self.sizes]:
            left = self.ledger.remaining(name, allowance=holder)
            exact = self.left(name, holder)
            assert Fraction(left.mu) ** 2 <= exact[0] < Fraction(left.mu * (1 + 1e-15)) ** 2 + Fraction(1, 2**190)
            assert (left.reserve.epsilon, left.reserve.delta) == tuple(_down(value) for value in exact[1:])

    def teardown(self):
        if hasattr(self, "ledger"):
            assert self.ledger.verify().entry == self.entries
            assert {charge.entry for charge in self.ledger.history() if not charge.released} == self.open
            self.ledger.close()
            shutil.rmtree(self.folder)


def _down(value):
    number = float(value)
    return number if Fraction(number) <= value else math.nextafter(number, 0.0)


class PostgresMachine(LedgerMachine):
    store = None

    def new_path(self):
        return self.store.new_path("machine")


@pytest.fixture(autouse=True)
def _postgres(request, postgres_server):
    PostgresMachine.store = PostgresSchemas(postgres_server)


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(examples(20), stateful_step_count=30)
TestPostgresMachine = PostgresMachine.TestCase
TestPostgresMachine.settings = settings(examples(5), stateful_step_count=30)


def ignore_what_is_allotted(patch):
    def available(self):
        return self.allowance.left if self.allowance else self.total - self.spent

    patch.setattr(Balance, "available", available)


def let_allowances_use_the_rest(patch):
    patch.setattr(Balance, "available", lambda self: self.total - self.spent)


def return_the_whole_size(patch):
    apply = Balance.apply

    def take_back(self, kind, content):
        rest = {"allotted": self.allotted - self.allowance.size} if kind == "return" else {}
        return dataclasses.replace(apply(self, kind, content), **rest)

    patch.setattr(Balance, "apply", take_back)


def forget_what_an_allowance_spent(patch):
    spend = Balance.spend
    patch.setattr(Balance, "spend", lambda self, cost: dataclasses.replace(spend(self, cost), allowance=self.allowance))


def charge_returned_allowances(patch):
    patch.setattr(AllowanceBalance, "left", property(lambda self: self.size - self.spent))


def allot_without_a_check(patch):
    patch.setattr(Balance, "require_room", lambda *_: None)


@pytest.mark.parametrize(
    "breaks",
    [
        ignore_what_is_allotted,
        let_allowances_use_the_rest,
        return_the_whole_size,
        forget_what_an_allowance_spent,
        charge_returned_allowances,
        allot_without_a_check,
    ],
)
def test_a_broken_ledger_is_caught(breaks, monkeypatch):
    breaks(monkeypatch)
    quick = settings(max_examples=200, stateful_step_count=30, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises((AssertionError, LedgerError)):
        run_state_machine_as_test(LedgerMachine, settings=quick)
