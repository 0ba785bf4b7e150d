"""Ledgers that were written before: they load, and their triggers, functions and indexes are those of today."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sqlite3
from pathlib import Path

import psycopg
import pytest

from ledger_stores import PostgresSchemas, schema_of
from matrixdp.errors import LedgerError
from matrixdp.ledger import Approximate, Gaussian, Head, Ledger, Plan, Pure, Receipt, Reserve
from matrixdp.ledger.entries import COLUMNS
from matrixdp.ledger.postgres import postgres_guards
from matrixdp.ledger.sqlite import SCRIPT
from matrixdp.privacy import Unit

STORED = Path(__file__).with_name("ledger_3.db")
STORED_SQL = STORED.with_name("ledger_postgres_2.sql")
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


@pytest.fixture
def version_2(postgres_server):
    """A ledger of version 2 in PostgreSQL, with the entries of the stored file, of an owner who is no superuser."""
    path = PostgresSchemas(postgres_server).new_path("stored")
    schema = schema_of(path)
    with contextlib.closing(postgres_server.connect()) as admin:
        for name in ("owner", "reader"):
            admin.execute(f"CREATE ROLE {schema}_{name} LOGIN")
        admin.execute(f"CREATE SCHEMA AUTHORIZATION {schema}_owner")
        admin.execute(f"ALTER SCHEMA {schema}_owner RENAME TO {schema}")
        admin.execute(f"SET SESSION AUTHORIZATION {schema}_owner")
        admin.execute(STORED_SQL.read_text().replace("ledger_schema", schema))
        with contextlib.closing(sqlite3.connect(STORED)) as stored:
            for row in stored.execute(f"SELECT {COLUMNS} FROM entries ORDER BY entry"):
                admin.execute(f"INSERT INTO {schema}.entries ({COLUMNS}) VALUES ({', '.join(['%s'] * len(row))})", row)
        admin.execute(f"GRANT USAGE ON SCHEMA {schema} TO {schema}_reader")
        admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {schema}_reader")
    return path.replace("postgres@", f"{schema}_owner@"), path.replace("postgres@", f"{schema}_reader@")


def test_a_ledger_of_the_version_before_is_upgraded_by_its_owner(version_2, postgres_server):
    owner, reader = version_2
    with pytest.raises(LedgerError, match=r"must be upgraded once, by its owner: matrixdp ledger show"):
        Ledger.open(reader)
    with Ledger.open(owner) as ledger:
        assert ledger.verify() == HEAD  # also that the triggers and functions are those of today
        ledger.charge("clinic", Gaussian(0.01), neighbours="replace", description={})
        pending = next(found for found in ledger.history("clinic") if not found.released)
        with ledger._store.reading() as journal:
            row = journal.row("entry", pending.entry)
        ledger.complete(
            Receipt("clinic", pending.event, None, row.entry, row.hash), "{}"
        )  # nobody knows who was charged
        ledger.verify(anchor=HEAD)
    with Ledger.open(reader) as ledger:
        assert ledger.verify().entry == 15
    with contextlib.closing(postgres_server.connect()) as admin:
        roles = admin.execute(f"SELECT role FROM {schema_of(owner)}.entries ORDER BY entry").fetchall()
    assert [role for (role,) in roles] == [None] * 13 + [f"{schema_of(owner)}_owner"] * 2


def test_a_ledger_of_version_3_is_upgraded(version_2):
    """Its tables are those of today, its functions are not."""
    owner, _ = version_2
    Ledger.open(owner).close()
    schema = schema_of(owner)
    with contextlib.closing(psycopg.connect(owner.replace(f"&schema={schema}", ""), autocommit=True)) as connection:
        connection.execute(
            f"CREATE OR REPLACE FUNCTION {schema}.holds(content json, field text, value text) RETURNS boolean "
            "LANGUAGE plpgsql AS 'BEGIN RETURN true; END'"
        )
        connection.execute(f"UPDATE {schema}.ledger SET version = 3")
    with Ledger.open(owner) as ledger:
        assert ledger.verify() == HEAD


def test_the_guards_of_new_ledgers_are_those_of_stored_ones():
    """A change must come with a new version, and an upgrade of existing ledgers."""
    with contextlib.closing(sqlite3.connect(STORED)) as old, contextlib.closing(sqlite3.connect(":memory:")) as new:
        new.executescript(SCRIPT)
        assert guards(new) == guards(old)
    wanted = [definitions for _, definitions in postgres_guards("clinic")]
    assert hashlib.sha256(repr(wanted).encode()).hexdigest()[:16] == "64c7fd79cb68e3a7"


def guards(connection):
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('trigger', 'index')")
    return {name: " ".join(str(sql).split()) for name, sql in rows}
