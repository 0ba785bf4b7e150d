"""Missing, taken, foreign, damaged, newer, locked, read-only or full files: a clear error, nothing lost."""

from __future__ import annotations

import contextlib
import gc
import os
import sqlite3

import pytest

from ledger_worker import TOTAL, run_worker
from matrixdp.errors import LedgerError
from matrixdp.ledger import Gaussian, Ledger


def spend(ledger, mu=0.01):
    return ledger.charge("clinic", Gaussian(mu), neighbours="replace", description={"note": "x" * 500})


def test_a_mistyped_path_makes_no_new_ledger(path):
    with pytest.raises(LedgerError, match=r"there is no ledger at .*clinic\.db.*Ledger\.create"):
        Ledger.open(path)
    assert not path.exists()


def test_two_ledgers_never_share_a_path(ledger, path):
    spend(ledger)
    with pytest.raises(LedgerError, match=r"clinic\.db already exists.*Ledger\.open"):
        Ledger.create(path)
    assert len(ledger.history()) == 1


def test_a_ledger_needs_a_directory(tmp_path):
    with pytest.raises(LedgerError, match="cannot be created: No such file or directory"):
        Ledger.create(tmp_path / "nowhere" / "clinic.db")


def test_a_directory_is_no_ledger(tmp_path):
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger.open(tmp_path)


@pytest.mark.parametrize("name", ["a b.db", "what?.db", "50%25.db", "#1.db", "é.db"])
def test_any_file_name_will_do(tmp_path, name):
    with Ledger.create(tmp_path / name) as made:
        made.register("clinic", TOTAL, neighbours="replace")
    assert [found.name for found in tmp_path.iterdir()] == [name]


def test_a_relative_path_stays_with_its_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Ledger.create("clinic.db") as made:
        monkeypatch.chdir("/")
        made.close()
        made.register("clinic", TOTAL, neighbours="replace")
        assert made.path == tmp_path / "clinic.db"


@pytest.mark.parametrize("content", [b"", b"\x00" * 5000, b"records: 1, 2, 3\n" * 100])
def test_a_foreign_file_is_refused_and_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"clinic\.db.*(not a matrixdp ledger|not a ledger)"):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_a_foreign_database_is_refused_and_left_alone(path):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE entries (entry INTEGER)")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="is not a matrixdp ledger"):
        Ledger.open(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("version", "fault"),
    [
        (7, r"a newer matrixdp: its schema is version 7.*Upgrade matrixdp"),
        (2, r"an unpublished matrixdp: its schema is version 2.*Use that matrixdp"),
    ],
)
def test_another_schema_is_refused_and_left_alone(ledger, path, version, fault):
    ledger.close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=fault):
        Ledger.open(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kept", [50, 1000, 4096, 20_000, 40_960])
def test_a_truncated_file_is_refused(ledger, path, kept):
    for _ in range(60):
        spend(ledger)
    ledger.close()
    assert path.stat().st_size > 50_000
    os.truncate(path, kept)
    with pytest.raises(LedgerError, match=r"clinic\.db: it is (damaged|no ledger).*Restore it from a backup"):
        Ledger.open(path).remaining("clinic")


def test_a_damaged_page_is_found_by_verify(ledger, path):
    for _ in range(60):
        spend(ledger)
    ledger.close()
    with path.open("r+b") as stream:
        stream.seek(30_000)
        stream.write(b"\xff" * 3000)
    with pytest.raises(LedgerError, match=r"clinic\.db.*Restore it from a backup"):
        ledger.verify()


def test_a_locked_file_is_waited_for_and_then_refused(ledger, path):
    hasty = Ledger.open(path, timeout=0.05)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match=r"another process holds it locked.*longer timeout"):
            spend(hasty)
        assert hasty.remaining("clinic").mu == TOTAL.mu
        other.execute("ROLLBACK")
    spend(hasty)
    hasty.close()


def test_a_full_disk_loses_nothing(ledger, path):
    ledger.close()
    answer = run_worker("full", path)
    assert answer["granted"] == answer["on_file"] > 10
    assert "clinic.db: the disk" in answer["error"]
    assert answer["again"]


def test_a_full_database_loses_nothing(ledger):
    with ledger._store.reading() as journal:
        ((pages,),) = journal.execute("PRAGMA page_count")
        journal.execute(f"PRAGMA max_page_count = {pages}")
    granted = []

    def spend_for_ever():
        while True:
            granted.append(spend(ledger, 0.001).entry)

    with pytest.raises(LedgerError, match="the disk is full"):
        spend_for_ever()
    assert [charge.entry for charge in ledger.history()] == granted
    spend(ledger)
    ledger.verify()


def test_a_ledger_that_was_removed_is_not_charged(ledger, path):
    path.rename(path.with_name("elsewhere.db"))
    with pytest.raises(LedgerError, match=r"removed or replaced while it was open\. Nothing was charged"):
        spend(ledger)
    with pytest.raises(LedgerError, match="there is no ledger at"):
        spend(ledger)
    path.with_name("elsewhere.db").rename(path)
    spend(ledger)


def test_a_ledger_that_was_replaced_is_not_charged(ledger, path, tmp_path):
    with Ledger.create(tmp_path / "other.db") as other:
        other.register("clinic", TOTAL, neighbours="replace")
    ledger.close()
    (tmp_path / "other.db").replace(path)
    with pytest.raises(LedgerError, match="is not the ledger that was first opened here"):
        ledger.remaining("clinic")
    with pytest.raises(LedgerError, match=r"is another name of the ledger .*other\.db, or it was moved"):
        spend(ledger)
    assert Ledger.open(path).history() == []


def test_a_creation_that_fails_leaves_no_file(path, monkeypatch):
    monkeypatch.setattr("matrixdp.ledger.sqlite.SCRIPT", "CREATE TABLE entries (entry INTEGER); SELECT no_space();")
    with pytest.raises(LedgerError, match="no_space"):
        Ledger.create(path)
    assert not path.exists()


def test_only_the_owner_may_read_a_new_ledger(ledger, path):
    assert path.stat().st_mode & 0o077 == 0


def test_a_forgotten_handle_lets_go_of_the_file(ledger, path):
    spend(Ledger.open(path))
    gc.collect()
    ledger.close()
    assert [found.name for found in path.parent.iterdir()] == ["clinic.db"]


def test_every_commit_is_synchronised(ledger):
    with ledger._store.reading() as journal:
        settings = [next(iter(journal.execute(f"PRAGMA {name}")))[0] for name in ("journal_mode", "synchronous")]
    assert settings == ["delete", 3]  # 3 is EXTRA, which also syncs the directory once the journal is deleted
