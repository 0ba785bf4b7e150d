"""Backups, restored ledgers and what was spent since."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from ledger_worker import TOTAL
from matrixdp.errors import BudgetExceededError, LedgerError, ParameterError
from matrixdp.gdp import gdp_mu, share_mu
from matrixdp.ledger import Gaussian, Ledger, Pure, Reserve
from matrixdp.ledger.sqlite import connect

HALF = Gaussian(share_mu(TOTAL.mu, 0.5))


def spend(ledger, event=HALF, dataset="clinic"):
    return ledger.charge(dataset, event, neighbours="replace", description={})


@pytest.fixture
def backup(ledger, path, tmp_path):
    """A backup of a ledger with half of its total left; the ledger was lost since."""
    spend(ledger)
    ledger.register("rivals", TOTAL, neighbours="replace", reserve=Reserve(epsilon=0.5, delta=1e-7))
    assert ledger.backup(tmp_path / "backup.db") == ledger.head
    spend(ledger)
    ledger.close()
    path.unlink()
    return tmp_path / "backup.db"


def test_a_backup_is_one_file_that_is_not_charged(backup):
    assert sorted(found.name for found in backup.parent.iterdir()) == ["backup.db"]
    with Ledger.open(backup) as copied:
        assert copied.verify().entry == 4
        with pytest.raises(LedgerError, match=r"If the original is lost and this is a backup: matrixdp ledger restore"):
            spend(copied)


def test_a_backup_of_a_ledger_in_use_is_one_state(ledger, tmp_path):
    with ledger._store.writing(ledger.author) as journal:
        journal.append("move", {"from": "here", "to": "there"})
        other = Ledger.open(ledger.path)  # sees the state before
        assert other.backup(tmp_path / "backup.db").entry == 2
    assert Ledger.open(tmp_path / "backup.db").verify().entry == 2
    assert ledger.verify().entry == 3


def test_neither_backup_nor_restore_replaces_a_file(ledger, path, tmp_path):
    ledger.backup(tmp_path / "backup.db")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=r"backup\.db already exists and is not replaced"):
        ledger.backup(tmp_path / "backup.db")
    with pytest.raises(LedgerError, match=r"clinic\.db already exists and is not replaced.*move that file away"):
        Ledger.restore(tmp_path / "backup.db", path)
    assert path.read_bytes() == before
    with pytest.raises(LedgerError, match="cannot be written: No such file or directory"):
        ledger.backup(tmp_path / "nowhere" / "backup.db")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["backup.db", "clinic.db"]


def test_a_restored_ledger_asks_what_was_spent_since(backup, path):
    with Ledger.restore(backup, path, actor="ann", purpose="disk failed") as ledger:
        assert ledger.verify().entry == 5
        assert [each.restored_from for each in ledger.summaries()] == [4, 4]
        for action in (spend, lambda handle: handle.whatif("clinic", HALF)):
            with pytest.raises(LedgerError, match=r"(?s)backup that ends at entry 4.*ledger settle .*--spent EPS"):
                action(ledger)
        ledger.settle("clinic", "all")
        assert ledger.summary("clinic").restored_from is None
        assert ledger.remaining("clinic").mu == 0
        with pytest.raises(BudgetExceededError):
            spend(ledger, Gaussian(1e-9))
        with pytest.raises(LedgerError, match="Say what was"):
            spend(ledger, dataset="rivals")
        ledger.verify()


def test_what_was_spent_is_an_epsilon_or_an_event(backup, path):
    with Ledger.restore(backup, path) as ledger:
        ledger.settle("clinic", 0.0)
        left = ledger.remaining("clinic")
        ledger.settle("clinic", 0.3)  # more was found
        after = ledger.remaining("clinic").mu
        assert after**2 == pytest.approx(left.mu**2 - gdp_mu(epsilon=0.3, delta=1e-6) ** 2)
        ledger.settle("rivals", Pure(0.25))
        assert ledger.remaining("rivals").reserve.epsilon == 0.25
        spend(ledger, Gaussian(after))
        with pytest.raises(BudgetExceededError, match="To settle it as spent entirely, use --all"):
            ledger.settle("clinic", 0.1)
        for spent in (-1.0, float("nan"), "none"):
            with pytest.raises(ParameterError, match="spent must be"):
                ledger.settle("clinic", spent)
        ledger.verify()


def test_a_data_set_that_is_registered_again_is_settled_as_well(backup, path):
    """It may have been registered after the backup, and spent."""
    with Ledger.restore(backup, path) as ledger:
        ledger.register("laboratory", TOTAL, neighbours="replace")
        with pytest.raises(LedgerError, match="Say what was"):
            spend(ledger, dataset="laboratory")
        ledger.settle("laboratory", 0.0)
        spend(ledger, dataset="laboratory")
        ledger.verify()


def test_only_a_restored_ledger_is_settled(ledger):
    with pytest.raises(LedgerError, match="was not restored from a backup; there is nothing to settle"):
        ledger.settle("clinic", "all")


def make_backup(backup, path):
    with contextlib.closing(Ledger.open(backup)) as ledger:
        ledger.backup(path)
    return Ledger.open(path)


@pytest.mark.parametrize("make", [Ledger.restore, make_backup, lambda _, path: Ledger.create(path)])
@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
def test_what_an_earlier_file_left_is_not_replayed(backup, path, suffix, make):
    leftover = path.with_name(f"clinic.db{suffix}")
    leftover.write_bytes(b"pages of the lost file")
    with make(backup, path) as ledger:
        assert ledger.history() == Ledger.open(backup).history() or ledger.datasets() == []
    assert not leftover.exists()
    (kept,) = path.parent.glob(f"clinic.db{suffix}.*.old")
    assert kept.read_bytes() == b"pages of the lost file"


def test_the_journal_of_a_ledger_that_is_made_at_the_same_time_is_left_alone(tmp_path, monkeypatch):
    """Of two that are made at one path, one is; the other one moves nothing of it away."""
    path, first = tmp_path / "clinic.db", tmp_path / "first.db"
    Ledger.create(first).close()

    def make_another(draft):
        if draft.suffix == ".part":
            first.replace(path)
            path.with_name("clinic.db-journal").write_bytes(b"of a transaction")

    monkeypatch.setattr("matrixdp.ledger.sqlite._sync", make_another)
    with pytest.raises(LedgerError, match="already exists, and may be a ledger"):
        Ledger.create(path)
    assert path.with_name("clinic.db-journal").read_bytes() == b"of a transaction"


def test_a_ledger_is_not_restored_beside_its_original(ledger, tmp_path):
    ledger.backup(tmp_path / "backup.db")
    with pytest.raises(
        LedgerError, match=r"is a copy or another name of the ledger .*clinic\.db, which is still there"
    ):
        Ledger.restore(tmp_path / "backup.db", tmp_path / "new.db")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["backup.db", "clinic.db"]


def test_a_backup_that_does_not_verify_is_not_restored(backup, path):
    with contextlib.closing(sqlite3.connect(backup)) as connection, connection:
        connection.execute("DROP TRIGGER entries_stay")
        connection.execute("UPDATE entries SET body = replace(body, '1', '2') WHERE entry = 3")
    with pytest.raises(LedgerError, match="cannot be trusted"):
        Ledger.restore(backup, path)
    assert sorted(found.name for found in path.parent.iterdir()) == ["backup.db"]


def test_a_file_that_was_rolled_back_can_be_restored_elsewhere(ledger, path, tmp_path):
    old = path.read_bytes()
    spend(ledger)
    ledger.close()
    path.write_bytes(old)
    path.rename(tmp_path / "rolled-back.db")
    with Ledger.restore(tmp_path / "rolled-back.db", path) as restored:
        restored.settle("clinic", Gaussian(HALF.mu))
        spend(restored)
        with pytest.raises(BudgetExceededError):
            spend(restored)


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("DELETE FROM entries WHERE kind = 'settle'", "entries are missing|ends at entry"),
        ("UPDATE entries SET kind = 'move' WHERE kind = 'restore'", "columns were altered"),
    ],
)
def test_a_settlement_cannot_be_removed_unseen(backup, path, statement, fault):
    with Ledger.restore(backup, path) as ledger:
        ledger.settle("clinic", "all")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
        for _, sql in guards:
            connection.execute(sql)
    with pytest.raises(LedgerError, match=fault):
        ledger.verify()


@pytest.fixture
def restored(ledger, tmp_path):
    """A ledger with two allowances, one of them charged, that was restored from a backup."""
    ledger.allow("clinic", "ann", share=0.5)
    ledger.allow("clinic", "bob", share=0.25)
    ledger.charge("clinic", Gaussian(0.05), neighbours="replace", description={}, allowance="ann")
    ledger.backup(tmp_path / "backup.db")
    ledger.close()
    ledger.path.unlink()
    with Ledger.restore(tmp_path / "backup.db", tmp_path / "restored.db") as found:
        yield found


def test_allowances_continue_if_nothing_was_spent_since_the_backup(restored):
    before = restored.allowances("clinic")
    with pytest.raises(LedgerError, match="does not know what was spent"):
        restored.charge("clinic", Gaussian(0.01), neighbours="replace", description={}, allowance="ann")
    with pytest.raises(LedgerError, match="does not know what was spent"):
        restored.allow("clinic", "cat", share=0.1)
    assert restored.summary("clinic").restored_from == 5
    restored.settle("clinic", 0)
    assert restored.summaries()[0].restored_from is None
    assert restored.allowances("clinic") == before
    restored.charge("clinic", Gaussian(0.01), neighbours="replace", description={}, allowance="ann")
    restored.verify()


@pytest.mark.parametrize("spent", [0.1, 0.6, Gaussian(0.01), "all"])
def test_allowances_are_not_charged_if_something_was_spent_since_the_backup(restored, spent):
    restored.settle("clinic", spent)  # 0.6 is more than what is not allotted: holders may have spent it
    assert [found.left.mu for found in restored.allowances("clinic")] == [0, 0]
    with pytest.raises(BudgetExceededError, match="'ann' of 'clinic' is from before the ledger was restored"):
        restored.charge("clinic", Gaussian(0.01), neighbours="replace", description={}, allowance="ann")
    with pytest.raises(BudgetExceededError, match="is from before"):
        restored.whatif("clinic", Gaussian(0.01), allowance="bob")
    before = restored.summaries()[0]
    for name in ("ann", "bob"):
        restored.return_allowance("clinic", name)
    assert restored.remaining("clinic") == restored.summaries()[0].unspent == before.unspent
    if spent != "all":
        restored.allow("clinic", "ann 2", share=0.1)
        restored.charge("clinic", Gaussian(0.01), neighbours="replace", description={}, allowance="ann 2")
    restored.verify()


def test_verification_goes_on_after_any_entry_with_allowances(restored):
    heads = [restored.verify()]
    for step in (
        lambda: restored.settle("clinic", 0),
        lambda: restored.charge("clinic", Gaussian(0.01), neighbours="replace", description={}, allowance="ann"),
        lambda: restored.allow("clinic", "cat", share=0.1),
        lambda: restored.return_allowance("clinic", "bob"),
        lambda: restored.charge("clinic", Gaussian(0.01), neighbours="replace", description={}, allowance="cat"),
        lambda: restored.settle("clinic", 0.1),
        lambda: restored.return_allowance("clinic", "ann"),
        lambda: restored.charge("clinic", Gaussian(0.01), neighbours="replace", description={}),
    ):
        step()
        heads.append(restored.head)
    assert len(set(heads)) == 9
    for head in heads:
        assert restored.verify(head, resume=True) == heads[-1]


def test_a_full_disk_is_reported_with_the_path_of_the_copy(ledger, tmp_path, monkeypatch):
    def connect_full(path, timeout):
        connection = connect(path, timeout)
        connection.execute("PRAGMA max_page_count = 2")
        return connection

    monkeypatch.setattr("matrixdp.ledger.sqlite.connect", connect_full)
    with pytest.raises(LedgerError, match=r"copy\.db: the disk is full"):
        ledger.backup(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
