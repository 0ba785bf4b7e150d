"""Copies, pickles, threads, forks, races and kills: one file, whoever holds it."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest

from ledger_stores import both_stores
from ledger_worker import TOTAL, run_worker
from matrixdp.errors import BudgetExceededError, LedgerError
from matrixdp.gdp import share_mu
from matrixdp.ledger import Gaussian, Ledger
from nightly import times

pytestmark = both_stores


def spend(ledger, mu=0.01):
    return ledger.charge("clinic", Gaussian(mu), neighbours="replace", description={})


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda handle: pickle.loads(pickle.dumps(handle))])
def test_copies_charge_the_one_file(ledger, copied):
    spend(ledger, TOTAL.mu * 0.8)
    other = copied(ledger)
    assert other.path == ledger.path
    with pytest.raises(BudgetExceededError):
        spend(other, TOTAL.mu * 0.8)
    spend(other, TOTAL.mu * 0.1)
    assert len(ledger.history()) == 2
    other.close()


def test_receipts_survive_pickling(ledger):
    receipt = spend(ledger)
    assert pickle.loads(pickle.dumps(receipt)) == receipt


def test_a_closed_handle_opens_again(ledger):
    ledger.close()
    spend(ledger)
    assert repr(ledger) == f"Ledger.open({str(ledger.path)!r})"


def test_threads_share_a_handle(ledger):
    event, granted = Gaussian(share_mu(TOTAL.mu, 1 / 50)), []

    def work():
        for _ in range(25):
            try:
                granted.append(ledger.charge("clinic", event, neighbours="replace", description={}))
            except BudgetExceededError:
                continue

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({receipt.entry for receipt in granted}) == len(ledger.history()) == 50
    ledger.verify()


def test_one_request_is_charged_once_however_many_ask(ledger, path):
    receipts, refusals = [], []

    def ask():
        with Ledger.open(path) as handle:
            try:
                receipts.append(
                    handle.charge("clinic", Gaussian(0.01), neighbours="replace", description={}, request="r")
                )
            except LedgerError as error:
                refusals.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(receipts), len(refusals), len(ledger.history())) == (1, 7, 1)


def test_parent_and_child_share_a_handle(ledger, path):
    ledger.close()
    assert run_worker("fork", path) == {"status": 0, "charges": 8}
    ledger.verify()


def test_a_fork_unseen_by_python_is_refused(ledger, monkeypatch):
    monkeypatch.setattr(ledger._store, "_pid", -1)
    with pytest.raises(LedgerError, match="forked without Python's knowledge"):
        spend(ledger)


def test_processes_race_for_twice_as_many_charges_as_fit_and_half_are_granted(ledger, path):
    ledger.close()
    processes, attempts = times((4, 25), (8, 250))
    fit = processes * attempts // 2
    granted = run_worker("race", path, processes, attempts, fit)
    assert sum(granted) == len(ledger.history()) == fit
    assert ledger.remaining("clinic").mu < share_mu(TOTAL.mu, 1 / fit)
    ledger.verify()


def test_killed_at_many_moments_nothing_acknowledged_is_lost(ledger, store, path):
    ledger.close()
    moments = times(12, 200 if store.kind == "sqlite" else 40)
    acknowledged = run_worker("kill", path, moments, 6)
    ledger.verify()  # no release without its charge, every sum right
    released = {charge.entry for charge in ledger.history() if charge.released}
    charged = {charge.entry for charge in ledger.history()}
    assert set(acknowledged["charge"]) <= charged
    assert set(acknowledged["release"]) <= released
    assert len(acknowledged["release"]) > moments
    # Each kill cuts off one charge at most; it stays spent and is listed.
    incomplete = {charge.entry for charge in ledger.history() if not charge.released}
    assert incomplete == charged - released
    assert len(incomplete) <= moments


def test_processes_killed_while_others_charge_lose_nothing_and_pass_no_total(ledger, path):
    ledger.close()
    kills, room = times((6, 20), (20, 60))
    acknowledged = run_worker("kill_some", path, kills, room, 7)
    ledger.verify()
    charged = [charge.entry for charge in ledger.history()]
    assert len(acknowledged) == len(set(acknowledged))
    assert set(acknowledged) <= set(charged)
    assert kills <= len(charged) <= room
