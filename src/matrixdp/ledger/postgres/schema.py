"""The schema of a ledger in PostgreSQL, whose entries are only appended.

All its objects are in one schema of the database. The name of that schema is checked by `matrixdp.ledger.location`, so
that it is safe to insert into SQL. Functions run with the rights of the ledger's owner, so that other roles need none
to change the head and the counters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from matrixdp.errors import LedgerError
from matrixdp.ledger.location import PostgresURL

if TYPE_CHECKING:
    from matrixdp.ledger.postgres.driver import Connection

FORMAT = "matrixdp ledger"
VERSION = 2  # since 2, registrations name a unit; the tables are those of 1

# `attempt` identifies the transaction that appended an entry; it is not part of the chain. The allowance '' is the data
# set. Texts are compared byte by byte, whatever the language of the database.
_TABLES = """
CREATE TABLE {schema}.ledger (
    one     smallint PRIMARY KEY CHECK (one = 1),
    format  text NOT NULL,
    version integer NOT NULL
);
CREATE TABLE {schema}.entries (
    entry     bigint PRIMARY KEY,
    kind      text COLLATE "C" NOT NULL,
    dataset   text COLLATE "C",
    request   text COLLATE "C",
    charge    bigint,
    allowance text COLLATE "C",
    body      text COLLATE "C" NOT NULL,
    payload   text COLLATE "C",
    hash      text COLLATE "C" NOT NULL,
    attempt   text COLLATE "C" DEFAULT current_setting('matrixdp.attempt', true)
);
CREATE TABLE {schema}.head (
    one   smallint PRIMARY KEY CHECK (one = 1),
    entry bigint NOT NULL,
    hash  text COLLATE "C" NOT NULL
);
CREATE TABLE {schema}.counters (
    dataset      text COLLATE "C" NOT NULL,
    allowance    text COLLATE "C" NOT NULL,
    charges      bigint NOT NULL,
    releases     bigint NOT NULL,
    last_charge  bigint NOT NULL,
    last_release bigint NOT NULL,
    PRIMARY KEY (dataset, allowance)
);
CREATE TABLE {schema}.unfinished (
    entry     bigint PRIMARY KEY,
    dataset   text COLLATE "C" NOT NULL,
    allowance text COLLATE "C"
);
INSERT INTO {schema}.ledger VALUES (1, '{format}', {version});
INSERT INTO {schema}.head VALUES (1, 0, repeat('0', 64));
ALTER TABLE {schema}.entries ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_may_read ON {schema}.entries FOR SELECT USING (true);
"""

# As PostgreSQL prints them, so that `faults` can compare.
_INDEXES = {
    "one_registration": "UNIQUE INDEX one_registration ON {schema}.entries USING btree (dataset) "
    "WHERE (kind = 'register'::text)",
    "registrations": "INDEX registrations ON {schema}.entries USING btree (entry) WHERE (kind = 'register'::text)",
    "one_charge": "UNIQUE INDEX one_charge ON {schema}.entries USING btree (dataset, request) "
    "WHERE ((kind = 'charge'::text) AND (request IS NOT NULL))",
    "one_release": "UNIQUE INDEX one_release ON {schema}.entries USING btree (charge) WHERE (kind = 'release'::text)",
    "one_allowance": "UNIQUE INDEX one_allowance ON {schema}.entries USING btree (dataset, allowance) "
    "WHERE (kind = 'allowance'::text)",
    "one_return": "UNIQUE INDEX one_return ON {schema}.entries USING btree (dataset, allowance) "
    "WHERE (kind = 'return'::text)",
    "states": "INDEX states ON {schema}.entries USING btree (dataset, entry) "
    "WHERE (kind = ANY (ARRAY['charge'::text, 'allowance'::text, 'return'::text, 'settle'::text]))",
    "allowances": "INDEX allowances ON {schema}.entries USING btree (dataset, allowance, entry) "
    "WHERE ((kind = 'charge'::text) AND (allowance IS NOT NULL))",
    "restores": "INDEX restores ON {schema}.entries USING btree (entry) WHERE (kind = 'restore'::text)",
    "settlements": "INDEX settlements ON {schema}.entries USING btree (dataset, entry) WHERE (kind = 'settle'::text)",
    "oldest_unfinished": "INDEX oldest_unfinished ON {schema}.unfinished USING btree (dataset, entry)",
}

_FUNCTIONS = {
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

# As PostgreSQL prints them, so that `faults` can compare.
_TRIGGERS = {
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


def creation_sql(schema: str) -> str:
    """The statements that create the tables, functions and triggers of a ledger in an existing, empty schema."""
    statements = [_TABLES.format(schema=schema, format=FORMAT, version=VERSION)]
    statements += [f"CREATE {index.format(schema=schema)};" for index in _INDEXES.values()]
    for signature, source in _FUNCTIONS.items():
        arguments = signature.partition(" RETURNS")[0]
        statements.append(
            f"CREATE FUNCTION {schema}.{signature} LANGUAGE plpgsql SECURITY DEFINER "
            f"SET search_path = pg_catalog, pg_temp AS $body${_fill(source, schema)}$body$;\n"
            f"REVOKE ALL ON FUNCTION {schema}.{arguments} FROM PUBLIC;"
        )
    for name, definition in _TRIGGERS.items():
        table = definition.partition(" ON ")[2].split()[0].format(schema=schema)
        # ALWAYS: also for sessions that replay a replication stream.
        statements.append(
            f"CREATE TRIGGER {name} {definition.format(schema=schema)};\n"
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name};"
        )
    return "\n".join(statements)


def check_schema(connection: Connection, url: PostgresURL) -> None:
    """Raise a `LedgerError` unless the schema holds a ledger that this version can use, on a server that is durable."""
    schema = url.schema
    fsync, ledger, tables = connection.execute(
        "SELECT current_setting('fsync'), to_regclass(%s), "
        "(SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s)",
        (f"{schema}.ledger", schema),
    ).fetchone() or ("", None, 0)
    if ledger is None and not tables:
        raise LedgerError(
            f"there is no ledger at {url}, in its schema {schema!r}. Check the URL, or create one: Ledger.create(url), "
            "or matrixdp ledger new."
        )
    found = None if ledger is None else connection.execute(f"SELECT * FROM {schema}.ledger").fetchone()  # noqa: S608
    if found is None or len(found) != 3 or found[1] != FORMAT:
        raise LedgerError(
            f"{url} is not a matrixdp ledger: its schema {schema!r} holds other tables. Check the URL, or add the "
            "option schema=NAME to it."
        )
    check_version(found[2], url)
    require_durability(fsync, url)


def check_version(version: int, url: PostgresURL) -> None:
    """Raise a `LedgerError` if the ledger's schema is newer than this version knows."""
    if version > VERSION:
        raise LedgerError(
            f"{url} was written by a newer matrixdp: its schema is version {version}, and this "
            f"matrixdp supports up to {VERSION}. Nothing was changed. Upgrade matrixdp to use it."
        )


def require_durability(fsync: str, url: PostgresURL) -> None:
    """Raise a `LedgerError` if the server does not write commits to the disk."""
    if fsync != "on":
        raise LedgerError(
            f"{url}: the server runs with fsync = off, so it may lose charges when its machine stops. Nothing was "
            "charged. Set fsync = on in its configuration."
        )


def faults(connection: Connection, schema: str) -> Iterator[str]:
    """Triggers, functions and indexes of the schema that are missing, altered or disabled."""
    connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")  # so that all names are printed in full
    for query, wanted in _guards(schema):
        found: dict[str, str] = dict(connection.execute(query, (schema,)).fetchall())
        for name, definition in wanted.items():
            if found.get(name) != definition:
                yield f"its guard {name} was removed or altered."
    connection.execute(f"SET LOCAL search_path = {schema}, pg_temp")


def _guards(schema: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Queries that find the definitions of all guards by their names, and what they should find."""
    yield (
        "SELECT t.tgname, pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text FROM pg_trigger t "
        "JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s",
        {name: f"CREATE TRIGGER {name} {text.format(schema=schema)} A" for name, text in _TRIGGERS.items()},
    )
    yield (
        "SELECT c.relname, pg_get_indexdef(i.indexrelid) || ' ' || i.indisvalid::text FROM pg_index i "
        "JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s",
        {name: f"CREATE {text.format(schema=schema)} true" for name, text in _INDEXES.items()},
    )
    yield (
        "SELECT p.proname, p.prosrc || p.prosecdef::text || array_to_string(p.proconfig, ' ') FROM pg_proc p "
        "JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = %s",
        {
            signature.partition("(")[0]: f"{_fill(source, schema)}truesearch_path=pg_catalog, pg_temp"
            for signature, source in _FUNCTIONS.items()
        },
    )
    yield (
        "SELECT c.relname || ' (row security)', c.relrowsecurity::text FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = %s",
        {"entries (row security)": "true"},
    )


def _fill(source: str, schema: str) -> str:
    return source.replace("{schema}", schema)
