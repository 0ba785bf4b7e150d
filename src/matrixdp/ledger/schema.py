"""Tables, indexes and triggers of a ledger, in SQLite and in PostgreSQL, and the SQL that finds entries.

The statements are in the folder ``sql``. Entries are only appended: triggers refuse to alter or delete them, move the
head with each one, and count charges and releases. The table `counters` has a row for each data set, with the allowance
'', and one for each allowance. `counters` and `unfinished` save reading all entries; `verify` computes them again.
Ledgers keep the triggers, functions and indexes with which they were made, and `verify` compares them.

In PostgreSQL all objects are in one schema of the database. The name of that schema is checked by
`matrixdp.ledger.location`, so that it is safe to insert into SQL.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from matrixdp.ledger.entries import COLUMNS, LAST_ENTRY

SQLITE_ID = 0x4D78_4450  # "MxDP"
SQLITE_VERSION = 3  # earlier ones were never published
POSTGRES_FORMAT = "matrixdp ledger"
POSTGRES_VERSION = 3  # version 2 is upgraded, and earlier ones were never published

# Read at once: a process may have given up the right to read them when it needs them.
_TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in Path(__file__).with_name("sql").glob("*.sql")}

# Kinds of entries that change the balance of a data set. The index `states` is used only where a query has these words.
IN_STATES = "kind IN ('charge', 'allowance', 'return', 'settle')"

_QUERIES = {
    "entry": "WHERE entry = ?",
    "last": "ORDER BY entry DESC LIMIT 1",
    "registration": "WHERE kind = 'register' AND dataset = ?",
    "registrations": "WHERE kind = 'register' ORDER BY entry",
    "state": f"WHERE {IN_STATES} AND dataset = ? ORDER BY entry DESC LIMIT 1",
    "request": "WHERE kind = 'charge' AND dataset = ? AND request = ?",
    "release": "WHERE kind = 'release' AND charge = ?",
    "allowance": "WHERE kind = 'allowance' AND dataset = ? AND allowance = ?",
    "allowance charge until": "WHERE kind = 'charge' AND dataset = ? AND allowance = ? AND entry <= ? "
    "ORDER BY entry DESC LIMIT 1",
    "return until": "WHERE kind = 'return' AND dataset = ? AND allowance = ? AND entry <= ?",
    "state until": f"WHERE {IN_STATES} AND dataset = ? AND entry <= ? ORDER BY entry DESC LIMIT 1",
    "settlement until": "WHERE kind = 'settle' AND dataset = ? AND entry <= ? ORDER BY entry DESC LIMIT 1",
    "settlements between": "WHERE kind = 'settle' AND dataset = ? AND entry > ? AND entry <= ?",
    "restore until": "WHERE kind = 'restore' AND entry <= ? ORDER BY entry DESC LIMIT 1",
    "after": "WHERE entry > ? ORDER BY entry LIMIT ?",
}
HEAD_QUERY = "SELECT entry, hash FROM head"


def select_entries(query: str) -> str:
    """The SQL of a named query."""
    return f"SELECT {COLUMNS} FROM entries {_QUERIES[query]}"  # noqa: S608


ENTRY_QUERY, LAST_QUERY = select_entries("entry"), select_entries("last")
FIRST_QUERIES: tuple[tuple[str, tuple[int, ...]], ...] = (
    (ENTRY_QUERY, (1,)),
    (HEAD_QUERY, ()),
    (LAST_QUERY, ()),
    (select_entries("restore until"), (LAST_ENTRY,)),
)
"""Statements, with their values, that nearly every transaction runs: a store may fetch them all at once."""


def sqlite_statements() -> Iterator[str]:
    """The statements that make an empty SQLite file a ledger without entries."""
    statement = ""
    for line in _read("sqlite").splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def postgres_sql(schema: str) -> str:
    """The statements that create the tables, functions and triggers of a ledger in an existing, empty schema."""
    return _read("postgres_tables", schema) + _read("postgres_guards", schema)


def postgres_upgrade(schema: str) -> str:
    """The statements that make a ledger of version 2 one of today. Who wrote its entries is not known."""
    return f"""
        DROP FUNCTION {schema}.amounts(text, text);
        ALTER TABLE {schema}.entries ADD COLUMN role text COLLATE "C";
        ALTER TABLE {schema}.entries ALTER COLUMN role SET DEFAULT session_user;
        {_read("postgres_guards", schema)}
        UPDATE {schema}.ledger SET version = {POSTGRES_VERSION};
    """  # noqa: S608


def roles_sql(schema: str) -> str:
    """SQL that creates the roles of the ledger in `schema`, with their rights."""
    return _read("postgres_roles", schema)


def postgres_guards(schema: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Queries that find the definitions of all guards by their names, and what they should find."""
    tables, guards = _read("postgres_tables", schema), _read("postgres_guards", schema)
    triggers = re.findall(r"^CREATE OR REPLACE TRIGGER (\w+) ([^;]*);", guards, re.MULTILINE)
    yield (
        "SELECT t.tgname, pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text FROM pg_trigger t "
        "JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s",
        {name: f"CREATE TRIGGER {name} {' '.join(text.split())} A" for name, text in triggers},
    )
    indexes = re.findall(r"^(CREATE (?:UNIQUE )?INDEX (\w+) [^;]*);", tables, re.MULTILINE)
    yield (
        "SELECT c.relname, pg_get_indexdef(i.indexrelid) || ' ' || i.indisvalid::text FROM pg_index i "
        "JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s",
        {name: f"{' '.join(text.split())} true" for text, name in indexes},
    )
    functions = re.findall(r"^CREATE OR REPLACE FUNCTION \w+\.(\w+)\(.*?\$body\$(.*?)\$body\$;", guards, re.M | re.S)
    yield (
        "SELECT p.proname, p.prosrc || p.prosecdef::text || array_to_string(p.proconfig, ' ') FROM pg_proc p "
        "JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = %s",
        {name: f"{source}truesearch_path=pg_catalog, pg_temp extra_float_digits=1" for name, source in functions},
    )
    yield (
        "SELECT c.relname || ' (row security)', c.relrowsecurity::text FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = %s",
        {"entries (row security)": "true"},
    )


def _read(name: str, schema: str = "") -> str:
    """The text of a file of SQL, for a schema of PostgreSQL."""
    return _TEXTS[name].replace("{schema}", schema)
