"""The ledger against a plain model that keeps its sums as fractions."""

from __future__ import annotations

import math
import pickle
import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from ledger_stores import PostgresSchemas
from matrixdp.errors import BudgetExceededError, LedgerError
from matrixdp.ledger import Approximate, Gaussian, Ledger, Pure, Reserve
from matrixdp.privacy import Privacy, gdp_mu, pure_mu
from nightly import examples

DATASETS = {
    "gaussian": (Privacy(1.0, 1e-6), Reserve()),
    "mixed": (Privacy(2.0, 1e-5), Reserve(epsilon=0.5, delta=1e-6)),
    "rivals": (Privacy(0.5, 1e-9), Reserve(epsilon=0.5, delta=1e-9)),
}
names = st.sampled_from(sorted(DATASETS))
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


class LedgerMachine(RuleBasedStateMachine):
    receipts = Bundle("receipts")
    completed = Bundle("completed")

    @initialize()
    def create(self):
        self.folder = Path(tempfile.mkdtemp())
        self.ledger = Ledger.create(self.new_path())
        self.spent = {name: (Fraction(0),) * 3 for name in DATASETS}
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

    def allowed(self, name, event):
        for way in ways(event):
            after = tuple(a + b for a, b in zip(self.spent[name], way, strict=True))
            if all(a <= b for a, b in zip(after, self.total[name], strict=True)):
                return after
        return None

    @rule(target=receipts, name=names, event=events, with_request=st.booleans())
    def charge(self, name, event, with_request):
        self.count += 1
        request = f"r{self.count}" if with_request else None
        after = self.allowed(name, event)
        try:
            receipt = self.ledger.charge(
                name, event, neighbours="replace", description={"n": self.count}, request=request
            )
        except BudgetExceededError:
            assert after is None
            return multiple()
        assert after is not None
        self.spent[name] = after
        self.entries += 1
        self.open.add(receipt.entry)
        return receipt

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

    @rule(name=names)
    def spend_all_that_is_left(self, name):
        mu = self.ledger.remaining(name).mu
        if mu > 0:
            self.charge(name, Gaussian(mu), False)

    @rule()
    def change_hands(self):
        handle = pickle.loads(pickle.dumps(self.ledger))
        self.ledger.close()
        self.ledger = handle

    @invariant()
    def agrees_with_the_model(self):
        assert self.ledger.head.entry == self.entries
        for name, spent in self.spent.items():
            left = self.ledger.remaining(name)
            exact = [total - used for total, used in zip(self.total[name], spent, strict=True)]
            assert Fraction(left.mu) ** 2 <= exact[0] < Fraction(left.mu * (1 + 1e-15)) ** 2 + Fraction(1, 2**190)
            assert (left.reserve.epsilon, left.reserve.delta) == tuple(_down(value) for value in exact[1:])

    def teardown(self):
        if hasattr(self, "ledger"):
            assert self.ledger.verify().entry == self.entries
            assert {charge.entry for charge in self.ledger.incomplete()} == self.open
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
TestLedgerMachine.settings = settings(examples(40), stateful_step_count=30)
TestPostgresMachine = PostgresMachine.TestCase
TestPostgresMachine.settings = settings(examples(10), stateful_step_count=30)
