"""Ledgers that were written before: they load, and their triggers, functions and indexes are those of today."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sqlite3
from pathlib import Path

import pytest

from matrixdp.errors import LedgerError
from matrixdp.ledger import Approximate, Gaussian, Head, Ledger, Plan, Pure, Reserve
from matrixdp.ledger.postgres import postgres_guards
from matrixdp.ledger.sqlite import sqlite_statements
from matrixdp.privacy import Unit

STORED = Path(__file__).with_name("ledger_3.db")
HEAD = Head(13, "966296584b3c35a0c0b6ce465a26deab5c096c9956c92f9a72c92fa3c93e86f8")


@pytest.fixture
def stored(path):
    """A copy of a ledger of version 3, which remembers that it was written at another place."""
    return Path(shutil.copyfile(STORED, path))


def test_all_that_a_stored_ledger_holds_is_read(stored):
    with Ledger.open(stored) as ledger:
        assert ledger.verify() == HEAD
        clinic, network, visits = ledger.summaries()
        assert clinic.registration.reserve == Reserve(0.25, 1e-7)
        assert (clinic.spent_mu, clinic.left.mu) == (0.0640312423743285, 0.16618137627593452)
        assert [(found.name, found.returned) for found in clinic.allowances] == [("bob", True), ("cid", False)]
        assert clinic.allowances[1].left.epsilon == 0.09999999999999998
        assert (network.registration.unit, network.counts.charges) == (Unit("edge"), 0)
        assert visits.registration.unit == Unit("person", "patient")
        first, second, third, last = ledger.history()
        assert (first.event, first.request, first.released) == (Gaussian(0.05), "2031-w07", True)
        assert (first.actor, first.purpose, first.options) == (
            "ann@clinic",
            "a fixture",
            {"columns": ["age"], "clip": True},
        )
        assert (second.event, second.released) == (Approximate(0.1, 1e-8), False)
        assert (third.allowance, third.released) == ("bob", True)
        assert last.event == Plan([Gaussian(0.1), Pure(0.1)])
        assert ledger.stored("clinic", "2031-w07") == '{"mean":[3.1]}'


def test_a_stored_ledger_is_charged_once_its_move_is_confirmed(stored):
    with Ledger.open(stored) as ledger, pytest.raises(LedgerError, match="is a copy of the ledger"):
        ledger.charge("clinic", Gaussian(0.01), neighbours="replace", description={})
    with Ledger.moved(stored) as ledger:
        ledger.charge("clinic", Gaussian(0.01), neighbours="replace", description={})
        assert ledger.verify(anchor=HEAD).entry == 15


def test_a_stored_ledger_is_restored(stored, tmp_path):
    with Ledger.restore(stored, tmp_path / "new.db") as ledger:
        ledger.settle("clinic", 0)
        ledger.charge("clinic", Gaussian(0.01), neighbours="replace", description={})
        ledger.verify(anchor=HEAD)


def test_the_guards_of_new_ledgers_are_those_of_stored_ones():
    """A change must come with a new version."""
    with contextlib.closing(sqlite3.connect(STORED)) as old, contextlib.closing(sqlite3.connect(":memory:")) as new:
        for statement in sqlite_statements():
            new.execute(statement)
        assert guards(new) == guards(old)
    wanted = [definitions for _, definitions in postgres_guards("clinic")]
    assert hashlib.sha256(repr(wanted).encode()).hexdigest()[:16] == "64c7fd79cb68e3a7"


def guards(connection):
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('trigger', 'index')")
    return {name: " ".join(str(sql).split()) for name, sql in rows}
