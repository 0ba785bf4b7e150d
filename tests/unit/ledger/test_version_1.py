"""Ledgers of matrixdp 0.1, with a write-ahead log: read as they are, upgraded when they are first written."""

from __future__ import annotations

import contextlib
import os
import sqlite3

import pytest

from ledger_worker import TOTAL
from matrixdp.errors import LedgerError
from matrixdp.ledger import Approximate, Counts, Gaussian, Head, Ledger
from matrixdp.ledger.sqlite.schema import MIGRATIONS

HEAD = Head(8, "27701fac69c7fece14df7044f8e116f481dccfe5ed0af2eddfe4b2a702662808")


@pytest.fixture
def closed(old_ledger):
    """The old ledger after its last handle was closed: its log is written back and removed."""
    with contextlib.closing(sqlite3.connect(old_ledger)) as connection:
        connection.execute("SELECT COUNT(*) FROM entries").fetchone()
    assert not old_ledger.with_name("clinic.db-wal").exists()
    return old_ledger


def pragmas(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "journal_mode")]


def read_everything(ledger):
    assert ledger.verify() == HEAD
    assert [found.dataset for found in ledger.datasets()] == ["clinic", "rivals"]
    first, second, third = ledger.history()
    assert (first.event, first.request, first.released) == (Gaussian(0.1), "2031-w07", True)
    assert (second.event, second.released, second.actor, second.version) == (Gaussian(0.05), False, None, None)
    assert (third.event, third.released) == (Approximate(0.1, 1e-7), True)
    assert ledger.history("rivals") == [third]
    assert ledger.counts("clinic") == Counts(2, 1, second.time, second.time)
    assert ledger.counts("rivals") == Counts(1, 0, third.time, None)
    assert ledger.remaining("clinic").mu == 0.2086359600482619
    assert ledger.stored("clinic", "2031-w07") == '{"mean":[3.1]}'


@pytest.mark.parametrize("state", ["closed", "old_ledger"])
def test_an_old_ledger_is_read_as_it_is(state, request):
    path = request.getfixturevalue(state)
    with Ledger.open(path) as ledger:
        read_everything(ledger)
        assert not path.with_name("clinic.db-wal").exists()  # closed again, so that others may upgrade the file
    assert pragmas(path) == [1, "wal"]


@pytest.mark.parametrize("state", ["closed", "old_ledger"])
def test_an_old_ledger_is_upgraded_when_it_is_charged(state, request):
    path = request.getfixturevalue(state)
    reader = Ledger.open(path)
    with Ledger.open(path) as ledger:
        receipt = ledger.charge("clinic", Gaussian(0.01), neighbours="replace", description={})
        assert receipt.entry == 9
        ledger.verify(anchor=HEAD)
        assert ledger.counts("clinic").unfinished == 2
        ledger.complete(receipt, "{}")
        assert ledger.counts("clinic").unfinished == 1
    assert reader.verify().entry == 10
    reader.close()
    assert pragmas(path) == [3, "delete"]
    assert [found.name for found in path.parent.iterdir()] == ["clinic.db"]


def test_an_upgrade_waits_for_old_programs(closed):
    """An old program keeps the file open; its log could get entries that the new one does not see."""
    with contextlib.closing(sqlite3.connect(closed)) as old:
        old.execute("SELECT COUNT(*) FROM entries").fetchone()
        with pytest.raises(LedgerError, match="another process holds it locked"):
            Ledger.open(closed, timeout=0.05).register("new", TOTAL, neighbours="replace")
    assert pragmas(closed) == [1, "wal"]


def test_an_old_ledger_with_several_names_is_not_upgraded(closed):
    os.link(closed, closed.with_name("other.db"))
    with (
        Ledger.open(closed) as ledger,
        pytest.raises(LedgerError, match=r"has other names \(hard links\).*Remove the other names"),
    ):
        ledger.charge("clinic", Gaussian(0.01), neighbours="replace", description={})
    assert pragmas(closed) == [1, "wal"]
    closed.with_name("other.db").unlink()
    with Ledger.open(closed) as ledger:
        ledger.charge("clinic", Gaussian(0.01), neighbours="replace", description={})


def test_an_upgrade_that_fails_changes_nothing(closed, monkeypatch):
    broken = ("CREATE TABLE notes (text TEXT)", "NOT SQL")
    with monkeypatch.context() as patch, Ledger.open(closed) as ledger:
        patch.setattr("matrixdp.ledger.sqlite.schema.MIGRATIONS", (MIGRATIONS[0], broken))
        with pytest.raises(LedgerError, match="syntax error"):
            ledger.charge("clinic", Gaussian(0.01), neighbours="replace", description={})
    with Ledger.open(closed) as ledger:
        read_everything(ledger)
        ledger.charge("clinic", Gaussian(0.01), neighbours="replace", description={})
        ledger.verify(anchor=HEAD)
