"""Tables, indexes and triggers of a ledger, in SQLite and in PostgreSQL, and the SQL that finds entries.

Entries are only appended: triggers refuse to alter or delete them, move the head with each one, and count charges and
releases. The table `counters` has a row for each data set, under the allowance '', and one for each allowance.
`counters` and `unfinished` save reading all entries; `verify` computes them again. Ledgers keep the triggers, functions
and indexes with which they were made, and `verify` compares them with those here: whoever changes one must raise the
version and upgrade existing ledgers.

In PostgreSQL all objects are in one schema of the database. The name of that schema is checked by
`matrixdp.ledger.location`, so that it is safe to insert into SQL. Functions run with the rights of the ledger's owner,
so that other roles need none to change the head and the counters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from matrixdp.ledger.entries import COLUMNS, LAST_ENTRY

STATES = ("charge", "allowance", "return", "settle")
"""Kinds of entries that change the balance of a data set."""

_TABLES = {
    "entries": "entry INTEGER PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT, request TEXT, charge INTEGER, "
    "allowance TEXT, body TEXT NOT NULL, payload TEXT, hash TEXT NOT NULL",
    "head": "one INTEGER PRIMARY KEY CHECK (one = 1), entry INTEGER NOT NULL, hash TEXT NOT NULL",
    "counters": "dataset TEXT NOT NULL, allowance TEXT NOT NULL, charges INTEGER NOT NULL, releases INTEGER NOT NULL, "
    "last_charge INTEGER NOT NULL, last_release INTEGER NOT NULL, PRIMARY KEY (dataset, allowance)",
    "unfinished": "entry INTEGER PRIMARY KEY, dataset TEXT NOT NULL, allowance TEXT",
}
_FIRST_HEAD = f"(1, 0, '{'0' * 64}')"


@dataclass(frozen=True)
class _Index:
    """An index of entries of some kinds, without those that have no value in `present`."""

    columns: str
    kinds: tuple[str, ...]
    present: str | None = None
    unique: bool = False
    table: str = "entries"

    def condition(self, *, postgres: bool = False) -> str:
        """The entries that are in the index, in the words of SQLite or as PostgreSQL prints them."""
        texts = [f"'{kind}'::text" if postgres else f"'{kind}'" for kind in self.kinds]
        if len(texts) == 1:
            parts = [f"kind = {texts[0]}"]
        elif postgres:
            parts = [f"kind = ANY (ARRAY[{', '.join(texts)}])"]
        else:
            parts = [f"kind IN ({', '.join(texts)})"] if texts else []
        parts += [f"{self.present} IS NOT NULL"] if self.present else []
        if postgres:
            return f"({' AND '.join(f'({part})' for part in parts)})" if len(parts) > 1 else f"({parts[0]})"
        return " AND ".join(parts)

    def create(self, name: str) -> str:
        """The statement for SQLite."""
        where = f" WHERE {self.condition()}" if self.kinds else ""
        return f"CREATE {'UNIQUE ' * self.unique}INDEX {name} ON {self.table} ({self.columns}){where}"

    def create_in(self, schema: str, name: str) -> str:
        """The statement for a schema of PostgreSQL, as PostgreSQL prints it."""
        where = f" WHERE {self.condition(postgres=True)}" if self.kinds else ""
        table = f"{schema}.{self.table} USING btree"
        return f"CREATE {'UNIQUE ' * self.unique}INDEX {name} ON {table} ({self.columns}){where}"


_INDEXES = {
    "one_registration": _Index("dataset", ("register",), unique=True),
    "registrations": _Index("entry", ("register",)),
    "one_charge": _Index("dataset, request", ("charge",), present="request", unique=True),
    "one_release": _Index("charge", ("release",), unique=True),
    "one_allowance": _Index("dataset, allowance", ("allowance",), unique=True),
    "one_return": _Index("dataset, allowance", ("return",), unique=True),
    "states": _Index("dataset, entry", STATES),
    "allowances": _Index("dataset, allowance, entry", ("charge",), present="allowance"),
    "restores": _Index("entry", ("restore",)),
    "settlements": _Index("dataset, entry", ("settle",)),
    "oldest_unfinished": _Index("dataset, entry", (), table="unfinished"),
}
IN_STATES = _INDEXES["states"].condition()  # the index `states` is used only where a query has its very words

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

SQLITE_ID = 0x4D78_4450  # "MxDP"
SQLITE_VERSION = 3  # earlier ones were never published

_SQLITE_TRIGGERS = (
    """
    CREATE TRIGGER entries_follow BEFORE INSERT ON entries
    WHEN NEW.entry IS NOT (SELECT entry + 1 FROM head)
      OR NEW.entry IS NOT (SELECT COALESCE(MAX(entry), 0) + 1 FROM entries)
    BEGIN SELECT RAISE(ABORT, 'an entry must follow the last one'); END
    """,
    """
    CREATE TRIGGER entries_move_head AFTER INSERT ON entries
    BEGIN UPDATE head SET entry = NEW.entry, hash = NEW.hash; END
    """,
    """
    CREATE TRIGGER head_follows BEFORE UPDATE ON head
    WHEN NEW.entry IS NOT OLD.entry + 1 OR NEW.hash IS NOT (SELECT hash FROM entries WHERE entry = NEW.entry)
    BEGIN SELECT RAISE(ABORT, 'the head moves with the entries only'); END
    """,
    "CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never altered'); END",
    "CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END",
    "CREATE TRIGGER head_lasts BEFORE DELETE ON head BEGIN SELECT RAISE(ABORT, 'the head is never deleted'); END",
    """
    CREATE TRIGGER registrations_count AFTER INSERT ON entries WHEN NEW.kind IN ('register', 'allowance')
    BEGIN
        INSERT INTO counters VALUES (NEW.dataset, COALESCE(NEW.allowance, ''), 0, 0, 0, 0);
    END
    """,
    """
    CREATE TRIGGER charges_count AFTER INSERT ON entries WHEN NEW.kind = 'charge'
    BEGIN
        INSERT INTO unfinished VALUES (NEW.entry, NEW.dataset, NEW.allowance);
        UPDATE counters SET charges = charges + 1, last_charge = NEW.entry
        WHERE dataset = NEW.dataset AND allowance IN ('', COALESCE(NEW.allowance, ''));
    END
    """,
    """
    CREATE TRIGGER releases_count AFTER INSERT ON entries WHEN NEW.kind = 'release'
    BEGIN
        DELETE FROM unfinished WHERE entry = NEW.charge;
        UPDATE counters SET releases = releases + 1, last_release = NEW.entry
        WHERE dataset = NEW.dataset AND allowance IN ('', COALESCE(NEW.allowance, ''));
    END
    """,
)
_PLACE_TABLE = (
    "CREATE TABLE place (one INTEGER PRIMARY KEY CHECK (one = 1), "
    "file TEXT NOT NULL, directory TEXT NOT NULL, name TEXT NOT NULL, path TEXT NOT NULL)"
)


def sqlite_statements() -> Iterator[str]:
    """The statements that make an empty SQLite file a ledger without entries."""
    for table, columns in _TABLES.items():
        yield f"CREATE TABLE {table} ({columns})"
    yield _PLACE_TABLE
    yield f"INSERT INTO head VALUES {_FIRST_HEAD}"  # noqa: S608
    for name, index in _INDEXES.items():
        yield index.create(name)
    yield from _SQLITE_TRIGGERS
    yield f"PRAGMA application_id = {SQLITE_ID}"
    yield f"PRAGMA user_version = {SQLITE_VERSION}"


POSTGRES_FORMAT = "matrixdp ledger"
POSTGRES_VERSION = 2  # earlier ones were never published

_POSTGRES_FUNCTIONS = {
    # Called by every writer first; whoever holds the lock is the only one that can append.
    "lock_head(OUT entry bigint, OUT version integer) RETURNS record": """
BEGIN
    SELECT h.entry, l.version INTO STRICT entry, version
        FROM {schema}.head h CROSS JOIN {schema}.ledger l FOR UPDATE OF h;
END
""",
    # An array of amounts in the body of an entry. Escapes that PostgreSQL cannot decode, in other fields, are masked.
    "amounts(body text, field text) RETURNS numeric[]": r"""
BEGIN
    RETURN ARRAY(SELECT a.value::numeric FROM json_array_elements_text(
        regexp_replace(replace(body, E'\\\\', '//'), E'\\\\u[0-9a-f]{4}', '?', 'g')::json -> field
    ) WITH ORDINALITY a (value, place) ORDER BY a.place);
END
""",
    "follow() RETURNS trigger": """
DECLARE
    last text;
    spent numeric[];
    total numeric[];
BEGIN
    UPDATE {schema}.head h SET entry = NEW.entry, hash = NEW.hash
        WHERE h.entry = NEW.entry - 1 AND strpos(NEW.body, '"previous":"' || h.hash || '"') > 0;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'an entry must follow the last one';
    END IF;
    IF NEW.hash IS DISTINCT FROM encode(sha256(convert_to(NEW.body, 'UTF8')), 'hex') THEN
        RAISE EXCEPTION 'the hash of an entry must be that of its body';
    END IF;
    IF NEW.kind IN ('charge', 'settle', 'allowance', 'return') THEN
        SELECT {schema}.amounts(e.body, 'total') INTO STRICT total FROM {schema}.entries e
            WHERE e.kind = 'register' AND e.dataset = NEW.dataset;
        SELECT {schema}.amounts(e.body, 'spent') INTO spent FROM {schema}.entries e
            WHERE e.kind IN ('charge', 'allowance', 'return', 'settle') AND e.dataset = NEW.dataset
                AND e.entry < NEW.entry
            ORDER BY e.entry DESC LIMIT 1;
        IF NOT {schema}.adds_up(
            coalesce(spent, '{0,0,0}'),
            CASE WHEN NEW.kind IN ('charge', 'settle') THEN {schema}.amounts(NEW.body, 'cost') ELSE '{0,0,0}' END,
            {schema}.amounts(NEW.body, 'spent'),
            total
        ) THEN
            RAISE EXCEPTION 'a charge must add its cost to what is spent, and must not exceed the total';
        END IF;
    END IF;
    IF NEW.kind IN ('register', 'allowance') THEN
        INSERT INTO {schema}.counters VALUES (NEW.dataset, coalesce(NEW.allowance, ''), 0, 0, 0, 0);
    ELSIF NEW.kind = 'charge' THEN
        INSERT INTO {schema}.unfinished VALUES (NEW.entry, NEW.dataset, NEW.allowance);
        UPDATE {schema}.counters c SET charges = c.charges + 1, last_charge = NEW.entry
            WHERE c.dataset = NEW.dataset AND c.allowance IN ('', coalesce(NEW.allowance, ''));
    ELSIF NEW.kind = 'release' THEN
        DELETE FROM {schema}.unfinished u WHERE u.entry = NEW.charge;
        UPDATE {schema}.counters c SET releases = c.releases + 1, last_release = NEW.entry
            WHERE c.dataset = NEW.dataset AND c.allowance IN ('', coalesce(NEW.allowance, ''));
    END IF;
    RETURN NULL;
END
""",
    "adds_up(spent numeric[], cost numeric[], after numeric[], total numeric[]) RETURNS boolean": """
BEGIN
    FOR i IN 1..3 LOOP
        IF (cost[i] >= 0 AND after[i] = spent[i] + cost[i] AND after[i] <= total[i]) IS NOT TRUE THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END
""",
    "refuse() RETURNS trigger": """
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0];
END
""",
    "follow_head() RETURNS trigger": """
BEGIN
    IF NEW.entry IS DISTINCT FROM OLD.entry + 1
        OR NOT EXISTS (SELECT FROM {schema}.entries e WHERE e.entry = NEW.entry AND e.hash = NEW.hash) THEN
        RAISE EXCEPTION 'the head moves with the entries only';
    END IF;
    RETURN NEW;
END
""",
}

# As PostgreSQL prints them, so that they can be compared.
_POSTGRES_TRIGGERS = {
    "entries_follow": "AFTER INSERT ON {schema}.entries FOR EACH ROW EXECUTE FUNCTION {schema}.follow()",
    "entries_stay": "BEFORE UPDATE ON {schema}.entries FOR EACH ROW "
    "EXECUTE FUNCTION {schema}.refuse('entries are never altered')",
    "entries_last": "BEFORE DELETE ON {schema}.entries FOR EACH ROW "
    "EXECUTE FUNCTION {schema}.refuse('entries are never deleted')",
    "entries_remain": "BEFORE TRUNCATE ON {schema}.entries FOR EACH STATEMENT "
    "EXECUTE FUNCTION {schema}.refuse('entries are never deleted')",
    "head_follows": "BEFORE UPDATE ON {schema}.head FOR EACH ROW EXECUTE FUNCTION {schema}.follow_head()",
    "head_lasts": "BEFORE DELETE ON {schema}.head FOR EACH ROW "
    "EXECUTE FUNCTION {schema}.refuse('the head is never deleted')",
    "head_remains": "BEFORE TRUNCATE ON {schema}.head FOR EACH STATEMENT "
    "EXECUTE FUNCTION {schema}.refuse('the head is never deleted')",
}


def postgres_sql(schema: str) -> str:
    """The statements that create the tables, functions and triggers of a ledger in an existing, empty schema.

    Texts are compared byte by byte, whatever the language of the database. The column `attempt` identifies the
    transaction that appended an entry; it is not part of the chain.
    """
    statements = [
        f"CREATE TABLE {schema}.ledger "
        "(one smallint PRIMARY KEY CHECK (one = 1), format text NOT NULL, version integer NOT NULL);"
    ]
    for table, columns in _TABLES.items():
        text = columns.replace("INTEGER", "bigint").replace("TEXT", 'text COLLATE "C"')
        statements.append(f"CREATE TABLE {schema}.{table} ({text});")
    statements += [
        f'ALTER TABLE {schema}.entries ADD COLUMN attempt text COLLATE "C" '
        "DEFAULT current_setting('matrixdp.attempt', true);",
        f"INSERT INTO {schema}.ledger VALUES (1, '{POSTGRES_FORMAT}', {POSTGRES_VERSION});",  # noqa: S608
        f"INSERT INTO {schema}.head VALUES {_FIRST_HEAD};",  # noqa: S608
        f"ALTER TABLE {schema}.entries ENABLE ROW LEVEL SECURITY;",
        f"CREATE POLICY all_may_read ON {schema}.entries FOR SELECT USING (true);",
    ]
    statements += [f"{index.create_in(schema, name)};" for name, index in _INDEXES.items()]
    for signature, source in _POSTGRES_FUNCTIONS.items():
        arguments = signature.partition(" RETURNS")[0]
        statements.append(
            f"CREATE FUNCTION {schema}.{signature} LANGUAGE plpgsql SECURITY DEFINER "
            f"SET search_path = pg_catalog, pg_temp AS $body${_fill(source, schema)}$body$;\n"
            f"REVOKE ALL ON FUNCTION {schema}.{arguments} FROM PUBLIC;"
        )
    for name, definition in _POSTGRES_TRIGGERS.items():
        table = definition.partition(" ON ")[2].split()[0].format(schema=schema)
        # ALWAYS: also for sessions that replay a replication stream.
        statements.append(
            f"CREATE TRIGGER {name} {definition.format(schema=schema)};\n"
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name};"
        )
    return "\n".join(statements)


def postgres_guards(schema: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Queries that find the definitions of all guards by their names, and what they should find."""
    yield (
        "SELECT t.tgname, pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text FROM pg_trigger t "
        "JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s",
        {name: f"CREATE TRIGGER {name} {text.format(schema=schema)} A" for name, text in _POSTGRES_TRIGGERS.items()},
    )
    yield (
        "SELECT c.relname, pg_get_indexdef(i.indexrelid) || ' ' || i.indisvalid::text FROM pg_index i "
        "JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s",
        {name: f"{index.create_in(schema, name)} true" for name, index in _INDEXES.items()},
    )
    yield (
        "SELECT p.proname, p.prosrc || p.prosecdef::text || array_to_string(p.proconfig, ' ') FROM pg_proc p "
        "JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = %s",
        {
            signature.partition("(")[0]: f"{_fill(source, schema)}truesearch_path=pg_catalog, pg_temp"
            for signature, source in _POSTGRES_FUNCTIONS.items()
        },
    )
    yield (
        "SELECT c.relname || ' (row security)', c.relrowsecurity::text FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = %s",
        {"entries (row security)": "true"},
    )


def _fill(source: str, schema: str) -> str:
    return source.replace("{schema}", schema)


_ROLES = """\
-- Roles of the ledger in schema {schema}. Run this as the owner of the ledger (who created it), with the right to
-- create roles, or as a superuser. It may be run again.
--   {schema}_reader   may read balances and the history, and verify
--   {schema}_writer   may also charge releases and store them
--   {schema}_curator  may also register data sets, divide totals, settle a restored ledger and move the ledger
-- Nobody may alter or delete entries; the owner and superusers could remove the triggers, and keep out of daily use.
DO $roles$
DECLARE role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['{schema}_reader', '{schema}_writer', '{schema}_curator'] LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
    END LOOP;
END
$roles$;
GRANT USAGE ON SCHEMA {schema} TO {schema}_reader, {schema}_writer, {schema}_curator;
GRANT SELECT ON {schema}.ledger, {schema}.entries, {schema}.head, {schema}.counters, {schema}.unfinished
    TO {schema}_reader, {schema}_writer, {schema}_curator;
GRANT INSERT ON {schema}.entries TO {schema}_writer, {schema}_curator;
GRANT EXECUTE ON FUNCTION {schema}.lock_head() TO {schema}_writer, {schema}_curator;
DROP POLICY IF EXISTS writers_charge ON {schema}.entries;
CREATE POLICY writers_charge ON {schema}.entries FOR INSERT TO {schema}_writer
    WITH CHECK (kind IN ('charge', 'release'));
DROP POLICY IF EXISTS curators_decide ON {schema}.entries;
CREATE POLICY curators_decide ON {schema}.entries FOR INSERT TO {schema}_curator
    WITH CHECK (kind <> 'create');
-- Then give a role to each user:
--   GRANT {schema}_writer TO ann;
"""


def roles_sql(schema: str) -> str:
    """SQL that creates the roles of the ledger in `schema`, with their rights."""
    return _ROLES.format(schema=schema)
