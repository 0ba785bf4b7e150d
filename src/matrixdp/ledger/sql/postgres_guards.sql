-- Functions and triggers of a ledger in a schema of PostgreSQL. They run with the rights of its owner, so that others need
-- none to change the head and the counters. Ledgers keep them as they were made, and `verify` compares them with these:
-- whoever changes one must raise the version, and upgrade existing ledgers.

-- Called by every writer first; whoever holds the lock is the only one that can append.
CREATE OR REPLACE FUNCTION {schema}.lock_head(OUT entry bigint, OUT version integer) RETURNS record
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $body$
BEGIN
    SELECT h.entry, l.version INTO STRICT entry, version
        FROM {schema}.head h CROSS JOIN {schema}.ledger l FOR UPDATE OF h;
END
$body$;

-- The content of an entry. PostgreSQL cannot decode all escapes, so a character that no entry contains masks them.
CREATE OR REPLACE FUNCTION {schema}.parse(body text) RETURNS json
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $body$
BEGIN
    RETURN replace(replace(body, E'\\\\', chr(127) || 'b'), E'\\u', chr(127) || 'u')::json;
END
$body$;

CREATE OR REPLACE FUNCTION {schema}.unmask(value text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $body$
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
$body$;

-- Whether a number is written as Python writes it.
CREATE OR REPLACE FUNCTION {schema}.is_number(token text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $body$
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
$body$;

-- Whether a text is what Python writes: ASCII, no spaces, sorted keys, and no escapes where none are needed.
CREATE OR REPLACE FUNCTION {schema}.is_canonical(body text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $body$
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
$body$;

-- Whether the content of an entry has a text in a field, or, for NULL, no such field. A column cannot hold a NUL or half of
-- a surrogate pair, so no column equals a text that has one.
CREATE OR REPLACE FUNCTION {schema}.holds(content json, field text, value text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $body$
BEGIN
    IF value IS NULL THEN
        RETURN content -> field IS NULL;
    END IF;
    RETURN coalesce(
        json_typeof(content -> field) = 'string'
        AND {schema}.unmask(content ->> field) = value
        AND regexp_replace(content ->> field, E'\x7fud[89ab][0-9a-f]{2}\x7fud[c-f][0-9a-f]{2}', '', 'g')
            !~ E'\x7fu(?:0000|d[89a-f])',
        false
    );
END
$body$;

CREATE OR REPLACE FUNCTION {schema}.amounts(content json, field text) RETURNS numeric[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $body$
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
$body$;

CREATE OR REPLACE FUNCTION {schema}.is_event(event json, nested boolean) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $body$
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
$body$;

CREATE OR REPLACE FUNCTION {schema}.follow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $body$
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
    IF coalesce(content ->> 'time', '') !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}([.][0-9]{3,6})?[+]00:00$'
        OR to_char((content ->> 'time')::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS')
            <> left(content ->> 'time', 19) THEN
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
            -- What protects a person protects the person's values.
            OR (registered ->> 'unit' IN (content ->> 'unit', regexp_replace(content ->> 'unit', '^person:', 'values:')))
                IS NOT TRUE
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
            IF NOT {schema}.may_pay(share -> 'payers', content -> 'payer') THEN
                RAISE EXCEPTION 'a charge to an allowance must be made by somebody whom it is for';
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
$body$;

CREATE OR REPLACE FUNCTION {schema}.adds_up(spent numeric[], cost numeric[], after numeric[], total numeric[])
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $body$
BEGIN
    FOR i IN 1..3 LOOP
        IF (cost[i] >= 0 AND after[i] = spent[i] + cost[i] AND after[i] <= total[i]) IS NOT TRUE THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END
$body$;

-- Whether `part` was taken from what is allotted and `size` added, and what is `taken` was not allotted to others.
CREATE OR REPLACE FUNCTION {schema}.allots(
    allotted numeric[], part numeric[], size numeric[], after numeric[], taken numeric[], spent numeric[], total numeric[]
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $body$
BEGIN
    FOR i IN 1..3 LOOP
        IF (part[i] >= 0 AND size[i] >= 0 AND after[i] = allotted[i] - part[i] + size[i]
            AND (taken[i] = 0 OR spent[i] + after[i] <= total[i])) IS NOT TRUE THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END
$body$;

-- Whether the user may charge an allowance for `payers`, a list of names, in the name of one of them: as a role of this
-- name or a member of it, or as a curator or the owner, who may charge for others.
CREATE OR REPLACE FUNCTION {schema}.may_pay(payers json, payer json) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $body$
BEGIN
    IF payers IS NULL THEN
        RETURN payer IS NULL;
    END IF;
    RETURN EXISTS (SELECT FROM json_array_elements(payers) p (name) WHERE p.name::text = payer::text)
        AND EXISTS (
            SELECT FROM pg_roles r WHERE pg_has_role(session_user, r.oid, 'MEMBER') AND (
                r.rolname IN ({schema}.unmask(payer #>> '{}'), '{schema}_curator')
                OR r.oid = (SELECT c.relowner FROM pg_class c WHERE c.oid = '{schema}.entries'::regclass)
            )
        );
END
$body$;

CREATE OR REPLACE FUNCTION {schema}.refuse() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $body$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0];
END
$body$;

CREATE OR REPLACE FUNCTION {schema}.follow_head() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $body$
BEGIN
    IF NEW.entry IS DISTINCT FROM OLD.entry + 1
        OR NOT EXISTS (SELECT FROM {schema}.entries e WHERE e.entry = NEW.entry AND e.hash = NEW.hash) THEN
        RAISE EXCEPTION 'the head moves with the entries only';
    END IF;
    RETURN NEW;
END
$body$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;

-- As PostgreSQL prints them. ALWAYS: also for sessions that replay a replication stream.
CREATE OR REPLACE TRIGGER entries_follow AFTER INSERT ON {schema}.entries
    FOR EACH ROW EXECUTE FUNCTION {schema}.follow();
CREATE OR REPLACE TRIGGER entries_stay BEFORE UPDATE ON {schema}.entries
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse('entries are never altered');
CREATE OR REPLACE TRIGGER entries_last BEFORE DELETE ON {schema}.entries
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse('entries are never deleted');
CREATE OR REPLACE TRIGGER entries_remain BEFORE TRUNCATE ON {schema}.entries
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse('entries are never deleted');
CREATE OR REPLACE TRIGGER head_follows BEFORE UPDATE ON {schema}.head
    FOR EACH ROW EXECUTE FUNCTION {schema}.follow_head();
CREATE OR REPLACE TRIGGER head_lasts BEFORE DELETE ON {schema}.head
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse('the head is never deleted');
CREATE OR REPLACE TRIGGER head_remains BEFORE TRUNCATE ON {schema}.head
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse('the head is never deleted');
ALTER TABLE {schema}.entries ENABLE ALWAYS TRIGGER entries_follow;
ALTER TABLE {schema}.entries ENABLE ALWAYS TRIGGER entries_stay;
ALTER TABLE {schema}.entries ENABLE ALWAYS TRIGGER entries_last;
ALTER TABLE {schema}.entries ENABLE ALWAYS TRIGGER entries_remain;
ALTER TABLE {schema}.head ENABLE ALWAYS TRIGGER head_follows;
ALTER TABLE {schema}.head ENABLE ALWAYS TRIGGER head_lasts;
ALTER TABLE {schema}.head ENABLE ALWAYS TRIGGER head_remains;
