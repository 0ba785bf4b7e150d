"""Links, mounts, copies, renames and removals: a total is never spent twice, whatever is done with the file."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess

import pytest

from ledger_worker import TOTAL, run_worker
from matrixdp.errors import BudgetExceededError, LedgerError
from matrixdp.gdp import share_mu
from matrixdp.ledger import Gaussian, Ledger
from matrixdp.ledger.place import read_mark, write_mark

HALF = Gaussian(share_mu(TOTAL.mu, 0.5))


def spend(ledger, event=HALF):
    return ledger.charge("clinic", event, neighbours="replace", description={})


@pytest.fixture
def half(ledger, path):
    """A ledger with half of its total left."""
    spend(ledger)
    ledger.close()
    return path


@pytest.fixture
def interrupted(half):
    """The same, after a process died in the middle of a transaction: the file has some of its pages."""
    before = half.read_bytes()
    run_worker("interrupt", half)
    assert half.with_name("clinic.db-journal").stat().st_size > 0
    assert half.read_bytes() != before
    return half


def has_own_mounts():
    return subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode == 0


def test_a_bind_mount_or_a_link_is_not_charged(ledger, path):
    ledger.close()
    command = ["unshare", "--mount"] if has_own_mounts() else []
    answer = run_worker("bind", path, 4, command=command)
    assert answer["mounted"] or os.geteuid() != 0  # the superuser of this machine may mount
    assert answer["granted"] == [4, 0]
    assert "is another name of the ledger" in answer["errors"][1]
    assert answer["heads"] == [6, 6]
    assert len(Ledger.open(path).history()) == 4


@pytest.mark.parametrize("first_open", [True, False])
def test_a_hard_link_is_not_charged_in_any_order(half, first_open):
    other = half.with_name("other.db")
    if first_open:
        ledger = Ledger.open(half)
        os.link(half, other)
    else:
        os.link(half, other)
        ledger = Ledger.open(half)
    linked = Ledger.open(other)
    assert linked.remaining("clinic") == ledger.remaining("clinic")
    with pytest.raises(LedgerError, match=r"is another name of the ledger .*clinic\.db.*Nothing was charged"):
        spend(linked)
    spend(ledger)
    with pytest.raises(LedgerError):
        spend(linked)
    with pytest.raises(BudgetExceededError):
        spend(ledger)
    half.unlink()
    for handle in (linked, ledger):
        with pytest.raises(LedgerError):
            spend(handle)


def test_a_symbolic_link_is_the_same_ledger(half):
    other = half.with_name("other.db")
    other.symlink_to(half)
    spend(Ledger.open(other))
    with pytest.raises(BudgetExceededError):
        spend(Ledger.open(half))


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
def test_files_beside_an_open_ledger_may_be_removed(half, suffix):
    first, second = Ledger.open(half), Ledger.open(half)
    half.with_name(f"clinic.db{suffix}").unlink(missing_ok=True)
    spend(first)
    for handle in (second, Ledger.open(half)):
        with pytest.raises(BudgetExceededError):
            spend(handle)


@pytest.mark.parametrize("in_use", [True, False])
def test_a_copy_is_not_charged(half, in_use):
    ledger, copied = Ledger.open(half), half.with_name("copied.db")
    if not in_use:
        ledger.close()
    shutil.copy2(half, copied)
    with pytest.raises(LedgerError, match=r"is a copy of the ledger .*clinic\.db.*matrixdp ledger restore"):
        spend(Ledger.open(copied))
    spend(ledger)


def test_a_copy_in_the_place_of_its_original_is_not_charged(half):
    ledger, copied = Ledger.open(half), half.with_name("copied.db")
    shutil.copyfile(half, copied)
    spend(ledger)
    copied.replace(half)
    with pytest.raises(LedgerError, match="was removed or replaced while it was open"):
        spend(ledger)
    for handle in (ledger, Ledger.open(half)):
        with pytest.raises(LedgerError, match="is a copy of the ledger"):
            spend(handle)


def test_an_old_copy_that_is_written_over_the_file_is_not_charged(half):
    """The file keeps its inode, but also the mark of its last entry, on file systems with extended attributes."""
    old = half.read_bytes()
    ledger = Ledger.open(half)
    spend(ledger)
    mark = read_mark(half)
    half.write_bytes(old)
    if mark is None:
        pytest.skip("this file system has no extended attributes, so such a copy cannot be noticed on it")
    for handle in (ledger, Ledger.open(half)):
        with pytest.raises(LedgerError, match=r"was replaced by an earlier copy of itself.*entry 4"):
            spend(handle)


def test_a_file_that_is_replaced_during_a_charge_releases_nothing(half):
    ledger, copied = Ledger.open(half), half.with_name("copied.db")
    shutil.copyfile(half, copied)

    def charge():
        with ledger._store.writing(ledger.author) as journal:
            journal.append("move", {"from": "here", "to": "there"})
            copied.replace(half)

    with pytest.raises(LedgerError, match=r"was just charged may be in the other file only, so nothing was released"):
        charge()


def test_a_mark_of_an_earlier_entry_is_enough(half):
    """Two processes may write their marks in any order."""
    ledger = Ledger.open(half)
    first = ledger.head
    spend(ledger, Gaussian(0.01))
    write_mark(half, first)
    spend(ledger, Gaussian(0.01))


def test_a_file_that_was_moved_is_charged_once_the_move_is_confirmed(half):
    other = half.with_name("other.db")
    half.rename(other)
    with pytest.raises(LedgerError, match=r"or confirm the move: matrixdp ledger moved .*other\.db"):
        spend(Ledger.open(other))
    with Ledger.moved(other, actor="ann", purpose="new disk") as ledger:
        spend(ledger)
        ledger.verify()
    other.rename(half)
    with pytest.raises(LedgerError, match="confirm the move"):
        spend(Ledger.open(half))


def test_a_file_on_another_disk_is_charged_once_the_move_is_confirmed(half):
    other = half.with_name("other.db")
    shutil.copyfile(half, other)
    with pytest.raises(LedgerError, match=r"is a copy or another name .*clinic\.db, which is still there"):
        Ledger.moved(other)
    half.unlink()
    spend(Ledger.moved(other))


def test_a_link_is_no_move(half):
    other = half.with_name("other.db")
    os.link(half, other)
    with pytest.raises(LedgerError, match=r"is a copy or another name .*which is still there"):
        Ledger.moved(other)
    spend(Ledger.moved(half))  # where it was: nothing to confirm
    assert Ledger.open(half).head.entry == 4


def test_a_ledger_that_does_not_verify_is_not_moved(half):
    with contextlib.closing(sqlite3.connect(half)) as connection, connection:
        connection.execute("DROP TRIGGER entries_stay")
    other = half.with_name("other.db")
    half.rename(other)
    with pytest.raises(LedgerError, match="its guard entries_stay was removed"):
        Ledger.moved(other)
    with pytest.raises(LedgerError):
        spend(Ledger.open(other))


def test_an_interrupted_transaction_is_undone_at_its_place(interrupted):
    with Ledger.open(interrupted) as ledger:
        ledger.verify()
        spend(ledger)


def test_an_interrupted_transaction_is_not_built_upon_under_another_name(interrupted):
    other = interrupted.with_name("other.db")
    os.link(interrupted, other)
    with contextlib.suppress(LedgerError), Ledger.open(other) as linked:  # it may be unreadable there
        spend(linked)
        raise AssertionError
    spend(Ledger.open(interrupted))


def test_a_file_is_not_moved_without_its_journal(interrupted):
    other = interrupted.with_name("other.db")
    interrupted.rename(other)
    with pytest.raises(LedgerError):
        spend(Ledger.open(other))
    with pytest.raises(LedgerError, match=r"whose journal is still there.*Move the file back"):
        Ledger.moved(other)
    other.rename(interrupted)
    Ledger.open(interrupted).verify()
    interrupted.rename(other)
    spend(Ledger.moved(other))


@pytest.fixture
def left_behind(half, tmp_path):
    """A ledger whose total is spent, beside a journal that was left before it was moved and charged elsewhere."""
    folder, elsewhere = tmp_path / "a", tmp_path / "b"
    folder.mkdir()
    elsewhere.mkdir()
    half.rename(folder / "clinic.db")
    Ledger.moved(folder / "clinic.db").close()
    intact = (folder / "clinic.db").read_bytes()
    run_worker("interrupt", folder / "clinic.db")
    (folder / "clinic.db").write_bytes(intact)  # as if it had died before a page was written
    (folder / "clinic.db").rename(elsewhere / "clinic.db")
    folder.rename(tmp_path / "c")  # the journal cannot be found under the name of the old place
    with Ledger.moved(elsewhere / "clinic.db") as ledger:
        spend(ledger)
    return (elsewhere / "clinic.db").rename(tmp_path / "c" / "clinic.db")


def test_a_journal_that_was_left_behind_undoes_nothing(left_behind):
    """Written at another place since: SQLite would put the old pages back, and the entries since would be gone."""
    with pytest.raises(LedgerError, match=r"was left by an interrupted write.*Remove that journal"):
        Ledger.open(left_behind)
    left_behind.with_name("clinic.db-journal").unlink()
    with Ledger.moved(left_behind) as ledger, pytest.raises(BudgetExceededError):
        spend(ledger)


def test_without_the_check_of_its_place_a_journal_would_undo_charges(left_behind, monkeypatch):
    monkeypatch.setattr("matrixdp.ledger.place.require_own_journal", lambda path: None)
    with Ledger.open(left_behind) as ledger:
        assert ledger.remaining("clinic").mu > 0  # what was spent elsewhere is gone


def test_without_the_check_of_its_place_a_copy_would_spend_the_total_again(half, monkeypatch):
    monkeypatch.setattr("matrixdp.ledger.place.require_place", lambda connection, path: None)
    copied = half.with_name("copied.db")
    shutil.copyfile(half, copied)
    for name in (half, copied):
        spend(Ledger.open(name))


def test_a_log_that_another_program_sets_up_is_left_again(half):
    with contextlib.closing(sqlite3.connect(half)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    with Ledger.open(half) as ledger:
        spend(ledger)
    with contextlib.closing(sqlite3.connect(half)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_file_system_without_links_is_no_obstacle(half, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    with Ledger.open(half) as ledger:
        ledger.backup(half.with_name("backup.db"))
    half.unlink()
    with Ledger.restore(half.with_name("backup.db"), half) as ledger:
        ledger.settle("clinic", 0.0)
        spend(ledger)
    with pytest.raises(LedgerError, match="already exists and is not replaced"):
        Ledger.restore(half.with_name("backup.db"), half)


@pytest.mark.parametrize("seed", [1, 2])
def test_racing_processes_spend_a_total_once_while_their_files_are_meddled_with(ledger, path, seed):
    ledger.close()
    granted = run_worker("meddle", path, 3, 60, 100, seed)
    with Ledger.open(path) as after:
        after.verify()
        charges = len(after.history())
    # A charge whose file was moved while it was written is on file, but its noise was not drawn.
    assert 0 < granted <= charges <= 100
