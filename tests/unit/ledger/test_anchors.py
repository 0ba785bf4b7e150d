"""Anchors: the last entry, recorded outside of the ledger."""

from __future__ import annotations

import pickle
import shutil

import pytest

from ledger_stores import both_stores
from ledger_tampering import edit, tampering
from ledger_worker import TOTAL
from matrixdp.errors import LedgerError, ParameterError
from matrixdp.ledger import Gaussian, Head, Ledger
from matrixdp.ledger.place import write_marks


def spend(ledger, mu=0.01):
    return ledger.charge("clinic", Gaussian(mu), neighbours="replace", description={})


@pytest.fixture
def anchors(tmp_path):
    return tmp_path / "anchors.txt"


@pytest.fixture
def anchored(ledger, path, anchors):
    with Ledger.open(path, anchor=anchors) as handle:
        yield handle


@both_stores
def test_every_charge_is_anchored(anchored, anchors):
    for _ in range(3):
        receipt = spend(anchored)
        assert anchors.read_text().splitlines()[-1] == f"{receipt.entry}:{receipt.hash}"
    anchored.complete(receipt, "{}")
    assert len(anchors.read_text().splitlines()) == 3


def test_a_roll_back_shows_at_the_next_charge(anchored, path, anchors):
    spend(anchored)
    old, mark = path.read_bytes(), anchored.head
    receipt = spend(anchored)
    path.write_bytes(old)
    with anchored._store.reading() as journal:
        first = journal.row("entry", 1).hash
    write_marks(path, mark, first, anew=True)  # as if the file system had no attributes, or was rolled back as a whole
    for handle in (anchored, Ledger.open(path, anchor=anchors)):
        with pytest.raises(LedgerError, match=r"the anchored entry 4 is not in it\. Nothing was charged"):
            spend(handle)
    with pytest.raises(LedgerError, match="before the anchored entry 4"):
        anchored.verify(anchor=Head(receipt.entry, receipt.hash))


@both_stores
def test_lines_of_other_processes_may_be_mixed(anchored, anchors):
    first, second = spend(anchored), spend(anchored)
    anchors.write_text(f"{second.entry}:{second.hash}\n{first.entry}:{first.hash}\n{second.entry}:{second.hash[:9]}")
    third = spend(anchored)  # the last line was interrupted
    assert anchors.read_text().splitlines()[-1] == f"{third.entry}:{third.hash}"
    assert anchors.read_text().splitlines()[-2] == f"{second.entry}:{second.hash[:9]}"


@both_stores
def test_a_long_file_is_read_from_its_end(anchored, anchors):
    receipt = spend(anchored)
    anchors.write_text("1:abc\n" * 20_000 + f"{receipt.entry}:{receipt.hash}\n")
    spend(anchored)


@pytest.mark.parametrize("content", [b"name,age\n", b"3:\xff\n", b"3\n"])
def test_another_file_is_refused_before_the_charge(anchored, anchors, content):
    anchors.write_bytes(content)
    with pytest.raises(LedgerError, match="is not a file of anchors"):
        spend(anchored)
    assert anchored.history() == []
    assert anchors.read_bytes() == content


@both_stores
def test_a_file_that_cannot_be_written_is_refused_before_the_charge(path, ledger, tmp_path):
    with (
        Ledger.open(path, anchor=tmp_path / "nowhere" / "anchors.txt") as handle,
        pytest.raises(LedgerError, match="cannot be written: No such file or directory"),
    ):
        spend(handle)
    assert ledger.history() == []


@both_stores
def test_an_anchor_survives_pickling(anchored, anchors):
    spend(pickle.loads(pickle.dumps(anchored)))
    assert len(anchors.read_text().splitlines()) == 1


@both_stores
def test_an_anchor_is_a_path(path, ledger):
    with pytest.raises(ParameterError, match="anchor must be a path"):
        Ledger.open(path, anchor=3)


@pytest.fixture
def long(ledger):
    """Two data sets with charges before and after an anchor, some of them released after it."""
    ledger.register("other", TOTAL, neighbours="replace")
    early = spend(ledger)
    ledger.complete(spend(ledger), "{}")
    anchor = ledger.verify()
    ledger.complete(early, "{}")
    spend(ledger)
    ledger.charge("other", Gaussian(0.1), neighbours="replace", description={}, request="r")
    return ledger, anchor


@both_stores
def test_verify_goes_on_from_an_anchor(long):
    ledger, anchor = long
    assert ledger.verify(anchor, resume=True) == ledger.verify(anchor) == ledger.head
    assert ledger.verify(ledger.head, resume=True) == ledger.head


def test_a_resumed_verify_finds_what_was_altered_since(long, tmp_path):
    ledger, anchor = long
    ledger.close()
    shutil.copyfile(ledger.path, tmp_path / "intact.db")
    alterations = {
        "was altered": lambda c: edit(c, anchor.entry + 2, lambda content: content.update(spent=["0", "0", "0"])),
        "entries are missing": lambda c: c.execute("DELETE FROM entries WHERE entry = ?", (anchor.entry + 1,)),
        "unfinished charges": lambda c: c.execute("DELETE FROM unfinished"),
        "the counters of": lambda c: c.execute("UPDATE counters SET charges = charges + 1"),
        "is not the one that was anchored": lambda c: c.execute("DELETE FROM entries WHERE entry = ?", (anchor.entry,)),
    }
    for fault, alter in alterations.items():
        shutil.copyfile(tmp_path / "intact.db", ledger.path)
        with tampering(ledger) as connection:
            alter(connection)
        with pytest.raises(LedgerError, match=fault):
            ledger.verify(anchor, resume=True)
        ledger.close()


@both_stores
def test_a_resumed_verify_needs_an_anchor(ledger):
    with pytest.raises(ParameterError, match="anchor must be given with resume"):
        ledger.verify(resume=True)
