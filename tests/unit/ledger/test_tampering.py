"""What `verify` detects after edits with the triggers dropped, as with any database tool."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
from pathlib import Path

import psycopg
import pytest

from ledger_stores import both_stores
from ledger_tampering import edit, rehash
from ledger_worker import TOTAL
from matrixdp.errors import LedgerError
from matrixdp.ledger import Gaussian, Head, Ledger, Plan, Pure, Reserve, place
from matrixdp.ledger.entries import sha256

pytestmark = both_stores


@pytest.fixture
def filled(ledger):
    """Entries: 1 create, 2 and 3 register, then six charges, each with its release."""
    ledger.register("rivals", TOTAL, neighbours="replace", reserve=Reserve(epsilon=0.5, delta=1e-7))
    for number in range(5):
        receipt = ledger.charge("clinic", Gaussian(0.05), neighbours="replace", description={"n": number})
        ledger.complete(receipt, json.dumps(number))
    plan = ledger.charge("rivals", Plan([Pure(0.1)] * 2), neighbours="replace", description={}, request="plan")
    ledger.complete(plan, "{}")
    ledger.close()
    return ledger


@pytest.fixture
def tampering(store, path):
    """A connection without triggers, which are restored afterwards, so that only the entries show the change."""

    @contextlib.contextmanager
    def connect(*, rechain=False):
        with store.without_triggers(path) as connection:
            yield connection
            if rechain:
                rehash(connection)

    return connect


def test_an_honest_ledger_is_verified(filled):
    head = filled.verify()
    assert head == filled.head
    assert head.entry == 15
    filled.charge("clinic", Gaussian(0.01), neighbours="replace", description={})
    assert filled.verify(anchor=head).entry == 16


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = replace(body, '\"n\":1', '\"n\":2') WHERE entry = 6",
        "UPDATE entries SET hash = 'ab' WHERE entry = 6",
        "UPDATE entries SET dataset = 'other' WHERE entry = 6",
        "UPDATE entries SET request = 'other' WHERE entry = 6",
        "UPDATE entries SET kind = 'create' WHERE entry = 6",
        "UPDATE entries SET charge = 99 WHERE entry = 15",
        "UPDATE entries SET payload = '7' WHERE entry = 7",
        "UPDATE entries SET payload = NULL WHERE entry = 7",
        "DELETE FROM entries WHERE entry = 6",
        "DELETE FROM entries WHERE entry = 1",
        "DELETE FROM entries WHERE entry = 15",
        "DELETE FROM entries WHERE entry > 10",
        "UPDATE head SET entry = 14",
        "UPDATE head SET hash = 'ab'",
        "DELETE FROM head",
        "DELETE FROM counters WHERE dataset = 'rivals'",
        "UPDATE counters SET charges = 3",
        "INSERT INTO unfinished VALUES (4, 'clinic', NULL)",
    ],
)
def test_edits_and_deletions_are_found(filled, tampering, statement):
    with tampering() as connection:
        assert connection.execute(statement).rowcount > 0
    with pytest.raises(LedgerError, match=r"Restore it from a backup|is not the ledger that was first opened"):
        filled.verify()


def test_reordering_is_found(filled, tampering):
    with tampering() as connection:
        for old, new in ((4, 100), (6, 4), (100, 6)):
            connection.execute("UPDATE entries SET entry = ? WHERE entry = ?", (new, old))
    with pytest.raises(LedgerError, match="entry 4 is wrong: it does not contain the hash"):
        filled.verify()


def remove_marks(path):
    """Remove the marks of a file, as anyone can who may write it and its directory."""
    if isinstance(path, Path) and place.read_marks(path, Ledger.open(path)._store._first_hash):
        with pytest.raises(LedgerError, match="was replaced by an earlier copy of itself, or by another ledger"):
            Ledger.open(path).verify()
        for target, attribute in place._mark_places(path).values():
            os.removexattr(target, attribute)


def test_a_tail_that_was_cut_off_with_its_head_is_found_by_marks_and_anchors_only(filled, tampering):
    anchor = filled.head
    with tampering() as connection:
        connection.execute("DELETE FROM entries WHERE entry > 10")
        connection.execute("DELETE FROM unfinished")
        connection.execute("INSERT INTO unfinished VALUES (10, 'clinic', NULL)")
        connection.execute("UPDATE counters SET charges = 0, releases = 0, last_charge = 0, last_release = 0")
        connection.execute(
            "UPDATE counters SET charges = 4, releases = 3, last_charge = 10, last_release = 9 WHERE dataset = 'clinic'"
        )
        rehash(connection)
    remove_marks(filled.path)
    assert filled.verify().entry == 10
    with pytest.raises(LedgerError, match="ends at entry 10, before the anchored entry 15"):
        filled.verify(anchor=anchor)


def test_a_rewritten_history_is_found_by_marks_and_anchors_only(filled, tampering):
    anchor = filled.head
    with tampering(rechain=True) as connection:
        edit(connection, 4, lambda content: content["description"].update(n=7))
    remove_marks(filled.path)
    again = Ledger.open(filled.path)
    again.verify()
    with pytest.raises(LedgerError, match="entry 15 is not the one that was anchored"):
        again.verify(anchor=anchor)
    again.close()


@pytest.fixture
def shared(ledger):
    """Entries: create, register, two allowances, two charges to them, a release, a return, a charge to neither."""
    ledger.allow("clinic", "ann", share=0.5)
    ledger.allow("clinic", "bob", share=0.25)
    receipts = [
        ledger.charge("clinic", Gaussian(0.05), neighbours="replace", description={}, allowance=name)
        for name in ("ann", "bob")
    ]
    ledger.complete(receipts[0], "{}")
    ledger.return_allowance("clinic", "bob")
    ledger.charge("clinic", Gaussian(0.05), neighbours="replace", description={})
    ledger.close()
    return ledger


def rename(content):
    content["allowance"] = "cat"


@pytest.mark.parametrize(
    ("entry", "change", "fault"),
    [
        (3, lambda c: c.update(size=[str(2**192), "0", "0"]), "size is more than what was available"),
        (3, lambda c: c.update(size=["-1", "0", "0"]), "size is more than what was available"),
        (3, lambda c: c.update(epsilon=0.1), "size is more than its guarantee allows"),
        (3, lambda c: c.update(epsilon="much"), "entry 3 is wrong"),
        (4, lambda c: c.update(allotted=["0", "0", "0"]), "its sum 'allotted' is wrong"),
        (5, rename, "allowance does not exist"),
        (5, lambda c: c.update(allowance_spent=["0", "0", "0"]), "its sum 'allowance_spent' is wrong"),
        (5, lambda c: c.pop("allowance_spent"), "entry 5 is wrong: 'allowance_spent'"),
        (5, lambda c: c.pop("allotted"), "entry 5 is wrong: 'allotted'"),
        (6, lambda c: c.update(cost=[str(2**190), "0", "0"]), "cost is more than what was available"),
        (7, lambda c: c.update(allowance="bob"), "release without a charge"),
        (8, lambda c: c.update(returned=["0", "0", "0"]), "does not return what is left"),
        (8, rename, "allowance does not exist"),
        (9, lambda c: c.update(allowance="bob"), "was returned before"),
    ],
)
def test_forged_allowances_are_found(shared, tampering, entry, change, fault):
    shared.verify()
    with tampering() as connection:
        edit(connection, entry, change)
        (body,) = connection.execute("SELECT body FROM entries WHERE entry = ?", (entry,)).fetchone()
        column = json.loads(body).get("allowance")
        connection.execute("UPDATE entries SET allowance = ? WHERE entry = ?", (column, entry))
        rehash(connection)
    with pytest.raises(LedgerError, match=fault):
        shared.verify()


def test_an_anchor_of_another_ledger_is_found(filled):
    with pytest.raises(LedgerError, match="entry 3 is not the one that was anchored"):
        filled.verify(anchor=Head(3, sha256("another")))


@pytest.mark.parametrize(
    ("entry", "change", "fault"),
    [
        (2, lambda c: c.update(total=[str(2**192), "0", "0"]), "more than its guarantee allows"),
        (3, lambda c: c.update(dataset="clinic"), "columns were altered"),
        (4, lambda c: c.update(cost=["1", "0", "0"]), "cost is less than its event's"),
        (4, lambda c: c.update(event={"kind": "gaussian", "mu": 0.06}), "cost is less than its event's"),
        (4, lambda c: c.update(neighbours="add-remove"), "neighbours must be"),
        (6, lambda c: c.update(spent=c["cost"]), "its sum 'spent' is wrong"),
        (6, lambda c: c.pop("spent"), "entry 6 is wrong: 'spent'"),
        (7, lambda c: c.update(payload=sha256("7")), "was altered"),
    ],
)
def test_a_forged_chain_with_false_sums_is_found(filled, tampering, entry, change, fault):
    with tampering(rechain=True) as connection:
        edit(connection, entry, change)
    with pytest.raises(LedgerError, match=fault):
        Ledger.open(filled.path).verify()


@pytest.mark.parametrize(
    ("guard", "table"), [("entries_stay", "entries"), ("entries_follow", "entries"), ("head_follows", "head")]
)
def test_missing_guards_are_found(filled, store, path, guard, table):
    with store.raw(path) as connection:
        connection.execute(f"DROP TRIGGER {guard}" + (f" ON {table}" if store.kind == "postgres" else ""))
    with pytest.raises(LedgerError, match=f"its guard {guard} was removed"):
        filled.verify()


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE entries SET dataset = 'x' WHERE entry = 4", "entries are never altered"),
        ("DELETE FROM entries WHERE entry = 15", "entries are never deleted"),
        ("DELETE FROM head", "the head is never deleted"),
        ("UPDATE head SET entry = 3", "the head moves with the entries only"),
        (
            "INSERT INTO entries (entry, kind, body, hash) VALUES (17, 'charge', '', '')",
            "must follow the last one",
        ),
    ],
)
def test_the_guards_refuse_changes_in_plain_sql(filled, store, path, statement, reason):
    with pytest.raises((sqlite3.IntegrityError, psycopg.Error), match=reason), store.raw(path) as connection:
        connection.execute(statement)
    filled.verify()


def test_an_altered_entry_is_not_built_upon(filled, tampering):
    with tampering() as connection:
        edit(connection, 12, lambda content: content.update(spent=["0", "0", "0"]))
    with pytest.raises(LedgerError, match="entry 12 was altered"):
        filled.remaining("clinic")


def test_an_altered_release_is_not_given_back(filled, tampering):
    with tampering() as connection:
        connection.execute("UPDATE entries SET payload = '{\"forged\":1}' WHERE entry = 15")
    with pytest.raises(LedgerError, match="entry 15 was altered"):
        filled.stored("rivals", "plan")


def test_entries_hold_no_more_than_was_described(filled, store, path):
    with store.raw(path) as connection:
        (body,) = connection.execute("SELECT body FROM entries WHERE entry = 4").fetchone()
    assert set(json.loads(body)) == {
        *(
            "entry",
            "previous",
            "kind",
            "time",
            "dataset",
            "event",
            "neighbours",
            "unit",
            "description",
            "cost",
            "spent",
            "allotted",
            "charges",
            "actor",
            "version",
        )
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", json.loads(body)["time"])
