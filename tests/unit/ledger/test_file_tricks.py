"""Links, mounts, copies, renames and removals: a total is never spent twice, whatever is done with the file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sqlite3
import subprocess

import pytest

from ledger_worker import TOTAL, run_worker
from matrixdp.errors import BudgetExceededError, LedgerError
from matrixdp.gdp import share_mu
from matrixdp.ledger import Gaussian, Ledger, place

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
        with pytest.raises(LedgerError, match=r"was replaced by an earlier copy of itself|is a copy of"):
            spend(handle)


def first_of(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT hash FROM entries WHERE entry = 1").fetchone()[0]


def marks_of(path):
    return place.read_marks(path, first_of(path))


def drop(target, attribute):
    os.removexattr(target, attribute)


def without_marks(monkeypatch):
    """A file system without extended attributes."""
    monkeypatch.delattr("os.getxattr")
    monkeypatch.delattr("os.setxattr")


def without_birth_times(monkeypatch):
    """A file system that does not know when a file was made."""
    monkeypatch.setattr(place, "find_birth_time", lambda path: None)


HAS_MARKS = pytest.mark.skipif(
    not hasattr(os, "getxattr"), reason="extended attributes are those of Linux; find_blind_spots names what is missed"
)


@HAS_MARKS
def test_a_charge_marks_the_last_entry_on_the_file_and_its_directory(ledger, path):
    assert set(marks_of(path)) == {"file", "directory"}
    spend(ledger)
    assert set(marks_of(path).values()) == {ledger.head}


@HAS_MARKS
def test_an_old_copy_that_is_written_over_the_file_is_not_charged(half):
    """The file keeps its inode, but also the mark of its last entry."""
    old = half.read_bytes()
    ledger = Ledger.open(half)
    spend(ledger)
    half.write_bytes(old)
    drop(half.parent, place._mark_places(half)["directory"][1])
    for handle in (ledger, Ledger.open(half)):
        with pytest.raises(LedgerError, match=r"was replaced by an earlier copy of itself.*entry 4"):
            spend(handle)


@HAS_MARKS
def test_an_old_copy_that_brings_its_own_mark_is_not_charged(half):
    """As ``cp -a`` and ``rsync -X --inplace`` do; the mark on the directory stays."""
    old, mark = half.read_bytes(), os.getxattr(half, "user.matrixdp.head")
    spend(Ledger.open(half))
    half.write_bytes(old)
    os.setxattr(half, "user.matrixdp.head", mark)
    with pytest.raises(LedgerError, match=r"was replaced by an earlier copy of itself.*entry 4"):
        spend(Ledger.open(half))
    with pytest.raises(LedgerError, match="was replaced by an earlier copy of itself"):
        Ledger.moved(half)


@HAS_MARKS
@pytest.mark.parametrize("gone", ["file", "directory"])
def test_a_mark_that_is_gone_is_a_refusal_until_somebody_confirms_it(half, gone):
    drop(*place._mark_places(half)[gone])
    with pytest.raises(LedgerError, match=rf"the mark of the last entry on the {gone} of .* is gone.*ledger moved"):
        spend(Ledger.open(half))
    spend(Ledger.moved(half, actor="ann"))
    assert set(marks_of(half)) == {"file", "directory"}


def put_back(path, old):
    """Remove the file and write an old copy; on many file systems it gets the same inode."""
    path.unlink()
    path.write_bytes(old)


def test_an_old_copy_under_the_same_inode_is_not_charged_without_marks(half, monkeypatch):
    """Numbers of inodes are used again; the time at which the inode was made is another."""
    old = half.read_bytes()
    spend(Ledger.open(half))
    put_back(half, old)
    without_marks(monkeypatch)
    with pytest.raises(LedgerError, match="is a copy of the ledger"):
        spend(Ledger.open(half))


def test_an_inode_that_was_made_at_another_time_is_another_file(tmp_path, monkeypatch):
    without_marks(monkeypatch)
    monkeypatch.setattr(place, "find_birth_time", lambda path: 10**18)
    with Ledger.create(tmp_path / "clinic.db") as ledger:
        ledger.register("clinic", TOTAL, neighbours="replace")
        spend(ledger)
        monkeypatch.setattr(place, "find_birth_time", lambda path: 10**18 + 1)
        with pytest.raises(LedgerError, match="is a copy of the ledger"):
            spend(ledger)


@HAS_MARKS
def test_an_old_copy_under_the_same_inode_is_not_charged_without_birth_times(tmp_path, monkeypatch):
    without_birth_times(monkeypatch)
    path = tmp_path / "clinic.db"
    with Ledger.create(path) as ledger:
        ledger.register("clinic", TOTAL, neighbours="replace")
        old = path.read_bytes()
        spend(ledger)
    put_back(path, old)
    with pytest.raises(LedgerError, match="was replaced by an earlier copy of itself"):
        spend(Ledger.open(path))


def test_the_file_system_tells_files_apart_where_it_does_not_say_when_they_were_made(tmp_path, monkeypatch):
    """Inodes of fresh volumes have the same numbers."""
    without_birth_times(monkeypatch)
    without_marks(monkeypatch)
    with Ledger.create(tmp_path / "clinic.db") as ledger:
        ledger.register("clinic", TOTAL, neighbours="replace")
        spend(ledger)
        found = os.statvfs(tmp_path)
        monkeypatch.setattr("os.statvfs", lambda path: type("Found", (), {"f_fsid": found.f_fsid + 1}))
        with pytest.raises(LedgerError, match="is a copy of the ledger"):
            spend(ledger)


@HAS_MARKS
def test_an_older_mark_never_replaces_a_newer_one(half):
    """Two processes may write their marks in any order."""
    ledger = Ledger.open(half)
    first = ledger.head
    spend(ledger, Gaussian(0.01))
    place.write_marks(half, first, first_of(half))
    assert set(marks_of(half).values()) == {ledger.head}


@HAS_MARKS
def test_marks_are_compared_and_written_by_one_process_at_a_time(half, monkeypatch):
    """Between the comparison and the new mark nobody else writes one: the directory is locked."""
    locked = []

    def read(path, first):
        folder = os.open(half.parent, os.O_RDONLY)  # as another process would
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked.append(False)
        except BlockingIOError:
            locked.append(True)
        finally:
            os.close(folder)
        return {}

    monkeypatch.setattr(place, "read_marks", read)
    place.write_marks(half, Ledger.open(half).head, first_of(half))
    assert locked == [True]


@HAS_MARKS
def test_a_ledger_of_an_earlier_version_learns_its_place_and_its_marks(half):
    """Earlier versions recorded the inode alone, and marked the file alone, without the first hash."""
    head = Ledger.open(half).head
    drop(half.parent, place._mark_places(half)["directory"][1])
    os.setxattr(half, "user.matrixdp.head", f"{head.entry}:{head.hash}".encode())
    with contextlib.closing(sqlite3.connect(half)) as connection, connection:
        connection.execute("UPDATE place SET file = ?", (str(half.stat().st_ino),))
    with Ledger.open(half) as ledger:
        spend(ledger, Gaussian(0.01))
        assert set(marks_of(half).values()) == {ledger.head}
        spend(ledger, Gaussian(0.01))
    with contextlib.closing(sqlite3.connect(half)) as connection:
        recorded = place.read_place(connection.execute)
    assert recorded.marks == {"file", "directory"}
    assert recorded.identity == place.find_identity(half)


@HAS_MARKS
def test_the_marks_of_a_removed_ledger_do_not_concern_a_new_one_of_its_name(half):
    half.unlink()
    with Ledger.create(half) as ledger:
        ledger.register("clinic", TOTAL, neighbours="replace")
        spend(ledger)


@HAS_MARKS
def test_an_old_copy_is_not_moved_to_another_folder(half, tmp_path):
    """The directory of the original still has the mark of what was spent since."""
    other = tmp_path / "elsewhere" / "clinic.db"
    other.parent.mkdir()
    shutil.copyfile(half, other)
    spend(Ledger.open(half))
    half.unlink()
    with pytest.raises(LedgerError, match=r"entry 4, which was written to .*clinic\.db, is not in it"):
        Ledger.moved(other)


@HAS_MARKS
def test_an_old_copy_is_not_moved_behind_a_link_with_the_name_of_the_original(half):
    old = half.with_name("old.db")
    shutil.copy2(half, old)
    spend(Ledger.open(half))
    half.rename(half.with_name("latest.db"))
    half.symlink_to(old)
    for path in (half, old):
        with pytest.raises(LedgerError, match=r"entry 4, which was written to .*clinic\.db, is not in it"):
            Ledger.moved(path)


@HAS_MARKS
@pytest.mark.parametrize("attributes", [True, False])
def test_an_old_copy_in_the_place_of_its_original_is_not_verified(half, attributes):
    old = half.with_name("old.db")
    (shutil.copy2 if attributes else shutil.copyfile)(half, old)
    spend(Ledger.open(half))
    Ledger.open(half).verify()
    half.unlink()
    shutil.copyfile(old, half)
    with pytest.raises(LedgerError, match="was replaced by an earlier copy of itself"):
        Ledger.open(half).verify()
    Ledger.open(old).verify()  # a copy that does not pretend to be the ledger


def test_a_file_system_that_shows_nothing_is_named(tmp_path, monkeypatch):
    with Ledger.create(tmp_path / "clinic.db") as ledger:
        assert ledger.blind_spots == [] or not hasattr(os, "getxattr")
        without_marks(monkeypatch)
        assert ledger.blind_spots == ["that an old copy was written over the file"]
        without_birth_times(monkeypatch)
        assert ledger.blind_spots == [
            "that the file was removed and an old copy put in its place",
            "that an old copy was written over the file",
        ]
    assert Ledger.open(tmp_path / "clinic.db", anchor=tmp_path / "anchors.txt").blind_spots == []


@HAS_MARKS
def test_a_directory_that_cannot_be_marked_is_named(half):
    """One in which only owners may set attributes, such as /tmp."""
    drop(*place._mark_places(half)["directory"])
    (found,) = Ledger.open(half).blind_spots
    assert found == "that an old copy was written over the file together with its extended attributes (cp -a)"


@pytest.mark.parametrize("number", [0x6969, 0x517B, 0xFF534D42, 0xFE534D42])
def test_a_network_file_system_is_refused(half, tmp_path, number, monkeypatch):
    monkeypatch.setattr(place, "find_file_system", lambda path: number)
    remote = r"is on a network file system \((NFS|SMB)[ (CIFS)]*\).*Nothing was charged.*PostgreSQL"
    with pytest.raises(LedgerError, match=remote):
        Ledger.create(tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()
    with Ledger.open(half) as ledger:
        assert ledger.remaining("clinic").mu > 0  # it can be read
        ledger.backup(tmp_path / "backup.db")
        with pytest.raises(LedgerError, match=remote):
            spend(ledger)
    half.unlink()
    with pytest.raises(LedgerError, match=remote):
        Ledger.restore(tmp_path / "backup.db", half)


def test_a_link_to_a_file_on_a_network_file_system_is_refused(half, tmp_path, monkeypatch):
    link = tmp_path / "local" / "clinic.db"
    link.parent.mkdir()
    link.symlink_to(half)
    monkeypatch.setattr(place, "find_file_system", lambda path: 0xEF53 if path == link.parent else 0x6969)
    with pytest.raises(LedgerError, match="is on a network file system"):
        spend(Ledger.open(link))


def test_a_local_file_system_is_recognised(tmp_path):
    assert place.find_file_system(tmp_path) in (0xEF53, 0x01021994, 0x9123683E, 0x58465342, 0x794C7630, None)


def test_a_file_that_is_replaced_during_a_charge_releases_nothing(half):
    ledger, copied = Ledger.open(half), half.with_name("copied.db")
    shutil.copyfile(half, copied)

    def charge():
        with ledger._store.writing(ledger.author) as journal:
            journal.append("move", {"from": "here", "to": "there"})
            copied.replace(half)

    with pytest.raises(LedgerError, match=r"was just charged may be in the other file only, so nothing was released"):
        charge()


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
    monkeypatch.setattr("matrixdp.ledger.place.require_place", lambda connection, path, moving: None)
    copied = half.with_name("copied.db")
    shutil.copyfile(half, copied)
    for name in (half, copied):
        spend(Ledger.open(name))


def test_a_log_that_another_program_sets_up_is_refused(half):
    with contextlib.closing(sqlite3.connect(half)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    with Ledger.open(half) as ledger, pytest.raises(LedgerError, match=r"write-ahead log.*Nothing was charged"):
        spend(ledger)
    with contextlib.closing(sqlite3.connect(half)) as connection:
        assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    with Ledger.open(half) as ledger:
        spend(ledger)


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
