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
POSTGRES_VERSION = 3  # version 2 is upgraded, and earlier ones were never published

_POSTGRES_FUNCTIONS = {
    # Called by every writer first; whoever holds the lock is the only one that can append.
    "lock_head(OUT entry bigint, OUT version integer) RETURNS record": """
BEGIN
    SELECT h.entry, l.version INTO STRICT entry, version
        FROM {schema}.head h CROSS JOIN {schema}.ledger l FOR UPDATE OF h;
END
""",
    # The content of an entry. PostgreSQL cannot decode all escapes, so a character that no entry contains masks them.
    "parse(body text) RETURNS json": r"""
BEGIN
    RETURN replace(replace(body, E'\\\\', chr(127) || 'b'), E'\\u', chr(127) || 'u')::json;
END
""",
    "unmask(value text) RETURNS text": r"""
DECLARE
    part text;
    plain text := '';
    high integer;
    code integer;
BEGIN
    IF (strpos(value, chr(127)) > 0) IS NOT TRUE THEN
        RETURN value;
    END IF;
    FOR part IN SELECT m.found[1] FROM regexp_matches(value, E'\x7f(?:u[0-9a-f]{4}|b)|.', 'g') m (found) LOOP
        IF length(part) = 6 THEN
            code := ('x' || substr(part, 3))::bit(16)::integer;
            IF code BETWEEN 55296 AND 56319 THEN
                high := code;
                CONTINUE;
            ELSIF code BETWEEN 56320 AND 57343 AND high IS NOT NULL THEN
                code := 65536 + (high - 55296) * 1024 + code - 56320;
            END IF;
            part := chr(CASE WHEN code = 0 OR code BETWEEN 55296 AND 57343 THEN 65533 ELSE code END);
        ELSIF length(part) = 2 THEN
            part := E'\\';
        END IF;
        high := NULL;
        plain := plain || part;
    END LOOP;
    RETURN plain;
END
""",
    # Whether a number is written as Python writes it.
    "is_number(token text) RETURNS boolean": r"""
DECLARE
    value float8;
    digits text := ltrim(rtrim(replace(split_part(ltrim(token, '-'), 'e', 1), '.', ''), '0'), '0');
    shortest text;
BEGIN
    IF token ~ '^(0|-?[1-9][0-9]*)$' THEN
        RETURN length(token) <= 1000;
    ELSIF token !~ ('^-?((0|[1-9][0-9]{0,15})[.]([0-9]*[1-9]|0)|'
        '[1-9]([.][0-9]*[1-9])?e[-+](0[1-9]|[1-9][0-9]{1,2}))$') THEN
        RETURN false;
    END IF;
    value := abs(token::float8);
    shortest := ltrim(rtrim(replace(split_part(value::text, 'e', 1), '.', ''), '0'), '0');
    RETURN (strpos(token, 'e') > 0) = (value <> 0 AND (value < 1e-4 OR value >= 1e16))
        AND (digits = shortest OR length(digits) < length(shortest));
END
""",
    # Whether a text is what Python writes: ASCII, no spaces, sorted keys, and no escapes where none are needed.
    "is_canonical(body text) RETURNS boolean": r"""
DECLARE
    masked text;
    bare text;
BEGIN
    masked := {schema}.parse(body)::text;
    bare := regexp_replace(masked, E'"(?:[^"\\\\]|\\\\.)*"', '""', 'g');
    RETURN body ~ E'^[\x20-\x7e]*$'
        AND masked !~ E'\x7fu(?![0-9a-f]{4})'
        AND masked !~ E'\x7fu(?:00[2-6]|007[0-9a-e]|000[89acd])'
        AND masked !~ E'\\\\(?!["nrtfb])'
        AND strpos(bare, ' ') = 0
        AND json_typeof(masked::json) = 'object'
        AND NOT EXISTS (
            SELECT FROM regexp_matches(bare, '-?[0-9][-+.0-9a-zA-Z]*', 'g') m (token)
            WHERE m.token[1] !~ '^[1-9]?[0-9]$' AND NOT {schema}.is_number(m.token[1])
        )
        AND NOT EXISTS (
            WITH RECURSIVE nodes (value, depth) AS (
                SELECT masked::json, 1
                UNION ALL
                SELECT c.value, n.depth + 1 FROM nodes n CROSS JOIN LATERAL (
                    SELECT e.value FROM json_each(CASE json_typeof(n.value) WHEN 'object' THEN n.value ELSE '{}' END) e
                    UNION ALL
                    SELECT a.value FROM json_array_elements(
                        CASE json_typeof(n.value) WHEN 'array' THEN n.value ELSE '[]' END
                    ) a (value)
                ) c WHERE json_typeof(c.value) IN ('object', 'array') AND n.depth < 60
            )
            SELECT FROM nodes n WHERE n.depth = 60 OR CASE json_typeof(n.value) WHEN 'object' THEN
                ARRAY(
                    SELECT k.name FROM json_object_keys(n.value) WITH ORDINALITY k (name, place) ORDER BY k.place
                ) <> ARRAY(
                    SELECT k.name FROM (SELECT DISTINCT j.name FROM json_object_keys(n.value) j (name)) k
                    ORDER BY CASE strpos(k.name, chr(127)) WHEN 0 THEN k.name ELSE {schema}.unmask(k.name) END
                    COLLATE "C"
                )
            ELSE false END
        );
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN false;
END
""",
    # Whether the content of an entry has a text in a field, or, for NULL, no such field.
    "holds(content json, field text, value text) RETURNS boolean": """
BEGIN
    IF value IS NULL THEN
        RETURN content -> field IS NULL;
    END IF;
    RETURN coalesce(json_typeof(content -> field) = 'string' AND {schema}.unmask(content ->> field) = value, false);
END
""",
    "amounts(content json, field text) RETURNS numeric[]": """
DECLARE
    found numeric[];
BEGIN
    IF json_typeof(content -> field) = 'array' THEN
        SELECT array_agg(
            CASE WHEN a.value::text ~ '^"(0|-?[1-9][0-9]*)"$' THEN (a.value #>> '{}')::numeric END ORDER BY a.place
        ) INTO found FROM json_array_elements(content -> field) WITH ORDINALITY a (value, place);
    END IF;
    RETURN CASE WHEN cardinality(found) = 3 THEN found END;
END
""",
    "is_event(event json, nested boolean) RETURNS boolean": """
DECLARE
    kind text := event ->> 'kind';
    names text;
BEGIN
    SELECT string_agg(k.name, ' ') INTO names FROM json_object_keys(event) k (name);
    RETURN coalesce(
        CASE kind
            WHEN 'gaussian' THEN names = 'kind mu'
            WHEN 'pure' THEN names = 'epsilon kind'
            WHEN 'approximate' THEN names = 'delta epsilon kind'
            WHEN 'plan' THEN NOT nested AND names = 'delta events kind'
                AND json_array_length(event -> 'events') > 0
                AND NOT EXISTS (
                    SELECT FROM json_array_elements(event -> 'events') e (part)
                    WHERE NOT {schema}.is_event(e.part, true)
                )
        END AND NOT EXISTS (
            SELECT FROM json_each(event) e WHERE e.key IN ('mu', 'epsilon', 'delta') AND NOT CASE
                WHEN json_typeof(e.value) <> 'number' THEN false
                WHEN kind = 'plan' THEN (e.value #>> '{}')::float8 >= 0 AND (e.value #>> '{}')::float8 < 1
                ELSE (e.value #>> '{}')::float8 > 0 AND (e.key <> 'delta' OR (e.value #>> '{}')::float8 < 1)
            END
        ),
        false
    );
EXCEPTION WHEN data_exception THEN
    RETURN false;
END
""",
    "follow() RETURNS trigger": """
DECLARE
    content json;
    registered json;
    state json;
    share json;
    paid json;
    counted {schema}.counters;
    cost numeric[];
    part numeric[];
    size numeric[];
    none CONSTANT numeric[] := '{0,0,0}';
BEGIN
    IF NOT EXISTS (SELECT FROM {schema}.head h WHERE h.entry = NEW.entry - 1) THEN
        RAISE EXCEPTION 'an entry must follow the last one';
    END IF;
    IF NOT {schema}.is_canonical(NEW.body) THEN
        RAISE EXCEPTION 'an entry must be canonical JSON';
    END IF;
    content := {schema}.parse(NEW.body);
    UPDATE {schema}.head h SET entry = NEW.entry, hash = NEW.hash
        WHERE h.entry = NEW.entry - 1 AND h.hash = content ->> 'previous';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'an entry must follow the last one';
    END IF;
    IF NEW.hash IS DISTINCT FROM encode(sha256(convert_to(NEW.body, 'UTF8')), 'hex') THEN
        RAISE EXCEPTION 'the hash of an entry must be that of its body';
    END IF;
    IF (content -> 'entry')::text IS DISTINCT FROM NEW.entry::text
        OR (content -> 'charge')::text IS DISTINCT FROM NEW.charge::text
        OR NOT {schema}.holds(content, 'kind', NEW.kind)
        OR NOT {schema}.holds(content, 'dataset', NEW.dataset)
        OR NOT {schema}.holds(content, 'request', NEW.request)
        OR NOT {schema}.holds(content, 'allowance', NEW.allowance)
        OR NOT {schema}.holds(content, 'payload', encode(sha256(convert_to(NEW.payload, 'UTF8')), 'hex')) THEN
        RAISE EXCEPTION 'the columns of an entry must be those of its body';
    END IF;
    IF NEW.role IS DISTINCT FROM session_user::text THEN
        RAISE EXCEPTION 'an entry must name the role that writes it';
    END IF;
    IF coalesce(content ->> 'time', '') !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,15}[+]00:00$' THEN
        RAISE EXCEPTION 'an entry must have the time at which it was written';
    END IF;
    IF NEW.kind IN ('charge', 'settle', 'allowance', 'return') THEN
        SELECT {schema}.parse(e.body) INTO STRICT registered FROM {schema}.entries e
            WHERE e.kind = 'register' AND e.dataset = NEW.dataset;
        SELECT {schema}.parse(e.body) INTO state FROM {schema}.entries e
            WHERE e.kind IN ('charge', 'allowance', 'return', 'settle') AND e.dataset = NEW.dataset
                AND e.entry < NEW.entry
            ORDER BY e.entry DESC LIMIT 1;
        cost := CASE WHEN NEW.kind IN ('charge', 'settle') THEN {schema}.amounts(content, 'cost') ELSE none END;
        part := CASE WHEN NEW.kind = 'charge' AND NEW.allowance IS NOT NULL THEN cost
            WHEN NEW.kind = 'return' THEN {schema}.amounts(content, 'returned') ELSE none END;
        size := CASE WHEN NEW.kind = 'allowance' THEN {schema}.amounts(content, 'size') ELSE none END;
        IF NOT {schema}.adds_up(
            coalesce({schema}.amounts(state, 'spent'), none),
            cost,
            {schema}.amounts(content, 'spent'),
            {schema}.amounts(registered, 'total')
        ) THEN
            RAISE EXCEPTION 'a charge must add its cost to what is spent, and must not exceed the total';
        END IF;
        IF NOT {schema}.allots(
            coalesce({schema}.amounts(state, 'allotted'), none),
            part,
            size,
            {schema}.amounts(content, 'allotted'),
            CASE WHEN NEW.kind = 'charge' AND NEW.allowance IS NULL THEN cost ELSE size END,
            {schema}.amounts(content, 'spent'),
            {schema}.amounts(registered, 'total')
        ) THEN
            RAISE EXCEPTION 'an entry must keep what is allotted to others';
        END IF;
    END IF;
    SELECT * INTO counted FROM {schema}.counters c WHERE c.dataset = NEW.dataset AND c.allowance = '';
    IF NEW.kind IN ('register', 'allowance') THEN
        INSERT INTO {schema}.counters VALUES (NEW.dataset, coalesce(NEW.allowance, ''), 0, 0, 0, 0);
    ELSIF NEW.kind = 'charge' THEN
        IF NOT {schema}.is_event(content -> 'event', false)
            OR json_typeof(content -> 'description') IS DISTINCT FROM 'object'
            OR json_typeof(content -> 'actor') IS DISTINCT FROM 'string'
            OR json_typeof(content -> 'version') IS DISTINCT FROM 'string'
            OR content ->> 'neighbours' IS DISTINCT FROM registered ->> 'neighbours'
            OR content ->> 'unit' IS DISTINCT FROM registered ->> 'unit'
            OR (content -> 'charges')::text IS DISTINCT FROM (counted.charges + 1)::text THEN
            RAISE EXCEPTION 'a charge must have an event, a description, an author, its number, and the neighbours and '
                'the unit of its data set';
        END IF;
        IF NEW.allowance IS NOT NULL THEN
            SELECT {schema}.parse(e.body) INTO STRICT share FROM {schema}.entries e
                WHERE e.kind = 'allowance' AND e.dataset = NEW.dataset AND e.allowance = NEW.allowance;
            SELECT {schema}.parse(e.body) INTO paid FROM {schema}.entries e
                WHERE e.kind = 'charge' AND e.dataset = NEW.dataset AND e.allowance = NEW.allowance
                    AND e.entry < NEW.entry
                ORDER BY e.entry DESC LIMIT 1;
            IF NOT {schema}.adds_up(
                coalesce({schema}.amounts(paid, 'allowance_spent'), none),
                cost,
                {schema}.amounts(content, 'allowance_spent'),
                {schema}.amounts(share, 'size')
            ) OR EXISTS (
                SELECT FROM {schema}.entries e
                WHERE e.kind = 'return' AND e.dataset = NEW.dataset AND e.allowance = NEW.allowance
            ) THEN
                RAISE EXCEPTION 'a charge to an allowance must stay within it';
            END IF;
        END IF;
        INSERT INTO {schema}.unfinished VALUES (NEW.entry, NEW.dataset, NEW.allowance);
        UPDATE {schema}.counters c SET charges = c.charges + 1, last_charge = NEW.entry
            WHERE c.dataset = NEW.dataset AND c.allowance IN ('', coalesce(NEW.allowance, ''));
    ELSIF NEW.kind = 'release' THEN
        IF NEW.payload IS NULL OR (content -> 'releases')::text IS DISTINCT FROM (counted.releases + 1)::text
            OR NOT EXISTS (
                SELECT FROM {schema}.entries e WHERE e.entry = NEW.charge AND e.kind = 'charge'
                    AND e.dataset = NEW.dataset AND e.allowance IS NOT DISTINCT FROM NEW.allowance
            ) THEN
            RAISE EXCEPTION 'a release must belong to a charge, and have its number';
        END IF;
        IF (SELECT e.role <> NEW.role FROM {schema}.entries e WHERE e.entry = NEW.charge) THEN
            RAISE EXCEPTION 'a release must be stored by the role that was charged';
        END IF;
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
    # Whether `part` was taken from what is allotted and `size` added, and what is `taken` was not allotted to others.
    "allots(allotted numeric[], part numeric[], size numeric[], after numeric[], taken numeric[], spent numeric[], "
    "total numeric[]) RETURNS boolean": """
BEGIN
    FOR i IN 1..3 LOOP
        IF (part[i] >= 0 AND size[i] >= 0 AND after[i] = allotted[i] - part[i] + size[i]
            AND (taken[i] = 0 OR spent[i] + after[i] <= total[i])) IS NOT TRUE THEN
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
    transaction that appended an entry, and `role` who was logged in; they are not part of the chain.
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
        _add_role(schema),
        f"INSERT INTO {schema}.ledger VALUES (1, '{POSTGRES_FORMAT}', {POSTGRES_VERSION});",  # noqa: S608
        f"INSERT INTO {schema}.head VALUES {_FIRST_HEAD};",  # noqa: S608
        f"ALTER TABLE {schema}.entries ENABLE ROW LEVEL SECURITY;",
        f"CREATE POLICY all_may_read ON {schema}.entries FOR SELECT USING (true);",
    ]
    statements += [f"{index.create_in(schema, name)};" for name, index in _INDEXES.items()]
    statements += _create_functions(schema)
    for name, definition in _POSTGRES_TRIGGERS.items():
        table = definition.partition(" ON ")[2].split()[0].format(schema=schema)
        # ALWAYS: also for sessions that replay a replication stream.
        statements.append(
            f"CREATE TRIGGER {name} {definition.format(schema=schema)};\n"
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name};"
        )
    return "\n".join(statements)


def postgres_upgrade(schema: str) -> str:
    """The statements that make a ledger of version 2 one of today. Who wrote its entries is not known."""
    statements = [
        f"DROP FUNCTION {schema}.amounts(text, text);",
        _add_role(schema),
        *_create_functions(schema),
        f"UPDATE {schema}.ledger SET version = {POSTGRES_VERSION};",  # noqa: S608
    ]
    return "\n".join(statements)


def _add_role(schema: str) -> str:
    """Two statements, so that the entries that are there have no role."""
    return (
        f'ALTER TABLE {schema}.entries ADD COLUMN role text COLLATE "C";\n'
        f"ALTER TABLE {schema}.entries ALTER COLUMN role SET DEFAULT session_user;"
    )


def _create_functions(schema: str) -> Iterator[str]:
    for signature, source in _POSTGRES_FUNCTIONS.items():
        yield (
            f"CREATE OR REPLACE FUNCTION {schema}.{signature} LANGUAGE plpgsql SECURITY DEFINER "
            f"SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 "
            f"AS $body${_fill(source, schema)}$body$;\n"
            f"REVOKE ALL ON FUNCTION {schema}.{signature.partition(' RETURNS')[0]} FROM PUBLIC;"
        )


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
            signature.partition("(")[
                0
            ]: f"{_fill(source, schema)}truesearch_path=pg_catalog, pg_temp extra_float_digits=1"
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
