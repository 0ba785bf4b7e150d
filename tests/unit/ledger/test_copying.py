"""Moving a ledger between SQLite and PostgreSQL: the same entries, and never two that accept charges."""

from __future__ import annotations

import json

import pytest

from ledger_stores import PostgresSchemas, SQLiteFiles
from ledger_worker import TOTAL
from matrixdp.errors import BudgetExceededError, LedgerError
from matrixdp.ledger import Gaussian, Ledger, Plan, Pure, Reserve, store


@pytest.fixture(params=["sqlite to postgres", "postgres to sqlite", "postgres to postgres", "sqlite to sqlite"])
def stores(request, tmp_path, postgres_server):
    """Two stores, to copy from and to."""
    kinds = {"sqlite": lambda: SQLiteFiles(tmp_path), "postgres": lambda: PostgresSchemas(postgres_server)}
    return [kinds[name]() for name in request.param.split(" to ")]


@pytest.fixture
def paths(stores):
    return stores[0].new_path("from"), stores[1].new_path("to")


@pytest.fixture
def filled(paths):
    """The ledger to copy, with entries of many kinds."""
    with Ledger.create(paths[0], actor="ann@désk", purpose='yearly "report"') as ledger:
        ledger.register("clinic", TOTAL, neighbours="replace")
        ledger.register("résumé", TOTAL, neighbours="add-remove", reserve=Reserve(epsilon=0.5, delta=1e-7))
        for number in range(4):
            receipt = spend(ledger, request=f"r{number}", description={"n": number, "text": "\0\ud800 \\u0000 é"})
            if number:
                ledger.complete(receipt, json.dumps({"é": number}, ensure_ascii=False))
        ledger.charge("résumé", Plan([Pure(0.1)] * 2), neighbours="add-remove", description={})
        ledger.allow("clinic", "ann", share=0.25)
        ledger.charge("clinic", Gaussian(0.01), neighbours="replace", description={}, allowance="ann")
        yield ledger


def spend(ledger, mu=0.01, request=None, description=None):
    return ledger.charge("clinic", Gaussian(mu), neighbours="replace", description=description or {}, request=request)


def rows_of(store, path):
    with store.raw(path) as connection:
        columns = "entry, kind, dataset, request, charge, allowance, body, payload, hash"
        return connection.execute(f"SELECT {columns} FROM entries ORDER BY entry").fetchall()


def test_a_copy_has_every_entry_and_what_is_left(stores, paths, filled):
    before, left, history = rows_of(stores[0], paths[0]), filled.remaining("clinic"), filled.history()
    anchor = filled.head
    head = Ledger.copy(*paths)
    with Ledger.open(paths[1]) as copied:
        assert copied.head == head == copied.verify(anchor=anchor)
        assert copied.remaining("clinic") == left
        assert copied.history() == history
        assert copied.summary("clinic").counts.unfinished == 2
        assert copied.stored("clinic", "r2") == '{"é": 2}'
        copied.complete(spend(copied, request="new"), "{}")
        with pytest.raises(BudgetExceededError):
            spend(copied, TOTAL.mu)
        copied.verify()
    after = rows_of(stores[1], paths[1])
    assert after[: len(before)] == before
    assert [row[1] for row in after[len(before) :]] == ["leave", "arrive", "charge", "release"]


def test_the_original_accepts_nothing_more_and_can_be_read(paths, filled):
    receipt = spend(filled)
    Ledger.copy(*paths)
    head = filled.head
    for action in (
        lambda: spend(filled),
        lambda: filled.register("other", TOTAL, neighbours="replace"),
        lambda: filled.complete(receipt, "{}"),
    ):
        with pytest.raises(LedgerError, match=r"was copied to .*, and is charged there only\. Nothing was charged"):
            action()
    assert filled.head == filled.verify() == head
    assert filled.stored("clinic", "r2") == '{"é": 2}'
    with Ledger.open(paths[1]) as copied:
        copied.complete(receipt, "{}")


def test_a_copy_needs_a_new_place(stores, paths, filled):
    with Ledger.create(paths[1]) as other:
        head = other.head
    with pytest.raises(LedgerError, match="already exists"):
        Ledger.copy(*paths)
    with Ledger.open(paths[1]) as other:
        assert other.head == head
    spend(filled)
    filled.verify()


def test_a_ledger_is_copied_once(stores, paths, filled):
    Ledger.copy(*paths)
    for target in (paths[1], stores[0].new_path("other")):
        with pytest.raises(LedgerError, match=r"was copied already|there is no ledger at"):
            Ledger.copy(paths[0], target)


def test_a_ledger_that_cannot_be_trusted_is_not_copied(stores, paths, filled):
    with stores[0].without_triggers(paths[0]) as connection:
        connection.execute("UPDATE entries SET payload = '0' WHERE entry = 6")
    with pytest.raises(LedgerError, match="cannot be trusted"):
        Ledger.copy(*paths)
    with pytest.raises(LedgerError, match="there is no ledger at"):
        Ledger.open(paths[1])


class Stopped(BaseException):
    """As if the process were killed."""


def stop(*arguments, **options):
    raise Stopped


@pytest.mark.parametrize(
    ("step", "open_then"),
    [
        ("matrixdp.ledger.store._copy_entries", "original"),
        ("matrixdp.ledger.store._arrive", "neither"),
    ],
)
def test_a_copy_that_is_stopped_never_leaves_two_that_accept_charges(paths, filled, monkeypatch, step, open_then):
    with monkeypatch.context() as patch:
        patch.setattr(step, stop)
        with pytest.raises(Stopped):
            Ledger.copy(*paths)
    assert accepting(paths) == ([paths[0]] if open_then == "original" else [])
    Ledger.copy(*paths)
    assert accepting(paths) == [paths[1]]


def test_a_copy_that_is_stopped_before_the_original_is_closed_is_closed_itself(paths, filled, monkeypatch):
    audits = []

    def stop_second(journal):
        audits.append(journal.location)
        return stop() if len(audits) == 2 else original(journal)

    original = store.audit
    with monkeypatch.context() as patch:
        patch.setattr(store, "audit", stop_second)
        with pytest.raises(Stopped):
            Ledger.copy(*paths)
    assert accepting(paths) == [paths[0]]
    with pytest.raises(LedgerError, match="already exists"):
        Ledger.copy(*paths)
    filled.verify()


def accepting(paths):
    """Those of the ledgers that accept a charge."""
    found = []
    for path in paths:
        try:
            with Ledger.open(path) as ledger:
                spend(ledger, 1e-3)
        except LedgerError:
            continue
        found.append(path)
    return found


def test_allowances_are_copied(paths, filled):
    for name in ("ann", "bob"):
        filled.allow("clinic", name, share=0.25)
        filled.charge("clinic", Gaussian(0.05), neighbours="replace", description={}, allowance=name)
    filled.return_allowance("clinic", "bob")
    before = filled.summaries()
    Ledger.copy(*paths)
    with pytest.raises(LedgerError, match="is charged there only"):
        filled.allow("clinic", "cat", share=0.1)
    with Ledger.open(paths[1]) as copied:
        assert copied.summaries() == before
        copied.charge("clinic", Gaussian(0.05), neighbours="replace", description={}, allowance="ann")
        for name in ("ann", "bob"):
            with pytest.raises(BudgetExceededError, match=f"the allowance '{name}' of 'clinic'"):
                copied.charge("clinic", Gaussian(0.15), neighbours="replace", description={}, allowance=name)
        copied.verify()
