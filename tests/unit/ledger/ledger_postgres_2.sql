CREATE TABLE ledger_schema.ledger (one smallint PRIMARY KEY CHECK (one = 1), format text NOT NULL, version integer NOT NULL);
CREATE TABLE ledger_schema.entries (entry bigint PRIMARY KEY, kind text COLLATE "C" NOT NULL, dataset text COLLATE "C", request text COLLATE "C", charge bigint, allowance text COLLATE "C", body text COLLATE "C" NOT NULL, payload text COLLATE "C", hash text COLLATE "C" NOT NULL);
CREATE TABLE ledger_schema.head (one bigint PRIMARY KEY CHECK (one = 1), entry bigint NOT NULL, hash text COLLATE "C" NOT NULL);
CREATE TABLE ledger_schema.counters (dataset text COLLATE "C" NOT NULL, allowance text COLLATE "C" NOT NULL, charges bigint NOT NULL, releases bigint NOT NULL, last_charge bigint NOT NULL, last_release bigint NOT NULL, PRIMARY KEY (dataset, allowance));
CREATE TABLE ledger_schema.unfinished (entry bigint PRIMARY KEY, dataset text COLLATE "C" NOT NULL, allowance text COLLATE "C");
ALTER TABLE ledger_schema.entries ADD COLUMN attempt text COLLATE "C" DEFAULT current_setting('matrixdp.attempt', true);
INSERT INTO ledger_schema.ledger VALUES (1, 'matrixdp ledger', 2);
INSERT INTO ledger_schema.head VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');
ALTER TABLE ledger_schema.entries ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_may_read ON ledger_schema.entries FOR SELECT USING (true);
CREATE UNIQUE INDEX one_registration ON ledger_schema.entries USING btree (dataset) WHERE (kind = 'register'::text);
CREATE INDEX registrations ON ledger_schema.entries USING btree (entry) WHERE (kind = 'register'::text);
CREATE UNIQUE INDEX one_charge ON ledger_schema.entries USING btree (dataset, request) WHERE ((kind = 'charge'::text) AND (request IS NOT NULL));
CREATE UNIQUE INDEX one_release ON ledger_schema.entries USING btree (charge) WHERE (kind = 'release'::text);
CREATE UNIQUE INDEX one_allowance ON ledger_schema.entries USING btree (dataset, allowance) WHERE (kind = 'allowance'::text);
CREATE UNIQUE INDEX one_return ON ledger_schema.entries USING btree (dataset, allowance) WHERE (kind = 'return'::text);
CREATE INDEX states ON ledger_schema.entries USING btree (dataset, entry) WHERE (kind = ANY (ARRAY['charge'::text, 'allowance'::text, 'return'::text, 'settle'::text]));
CREATE INDEX allowances ON ledger_schema.entries USING btree (dataset, allowance, entry) WHERE ((kind = 'charge'::text) AND (allowance IS NOT NULL));
CREATE INDEX restores ON ledger_schema.entries USING btree (entry) WHERE (kind = 'restore'::text);
CREATE INDEX settlements ON ledger_schema.entries USING btree (dataset, entry) WHERE (kind = 'settle'::text);
CREATE INDEX oldest_unfinished ON ledger_schema.unfinished USING btree (dataset, entry);
CREATE FUNCTION ledger_schema.lock_head(OUT entry bigint, OUT version integer) RETURNS record LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    SELECT h.entry, l.version INTO STRICT entry, version
        FROM ledger_schema.head h CROSS JOIN ledger_schema.ledger l FOR UPDATE OF h;
END
$body$;
REVOKE ALL ON FUNCTION ledger_schema.lock_head(OUT entry bigint, OUT version integer) FROM PUBLIC;
CREATE FUNCTION ledger_schema.amounts(body text, field text) RETURNS numeric[] LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    RETURN ARRAY(SELECT a.value::numeric FROM json_array_elements_text(
        regexp_replace(replace(body, E'\\\\', '//'), E'\\\\u[0-9a-f]{4}', '?', 'g')::json -> field
    ) WITH ORDINALITY a (value, place) ORDER BY a.place);
END
$body$;
REVOKE ALL ON FUNCTION ledger_schema.amounts(body text, field text) FROM PUBLIC;
CREATE FUNCTION ledger_schema.follow() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    last text;
    spent numeric[];
    total numeric[];
BEGIN
    UPDATE ledger_schema.head h SET entry = NEW.entry, hash = NEW.hash
        WHERE h.entry = NEW.entry - 1 AND strpos(NEW.body, '"previous":"' || h.hash || '"') > 0;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'an entry must follow the last one';
    END IF;
    IF NEW.hash IS DISTINCT FROM encode(sha256(convert_to(NEW.body, 'UTF8')), 'hex') THEN
        RAISE EXCEPTION 'the hash of an entry must be that of its body';
    END IF;
    IF NEW.kind IN ('charge', 'settle', 'allowance', 'return') THEN
        SELECT ledger_schema.amounts(e.body, 'total') INTO STRICT total FROM ledger_schema.entries e
            WHERE e.kind = 'register' AND e.dataset = NEW.dataset;
        SELECT ledger_schema.amounts(e.body, 'spent') INTO spent FROM ledger_schema.entries e
            WHERE e.kind IN ('charge', 'allowance', 'return', 'settle') AND e.dataset = NEW.dataset
                AND e.entry < NEW.entry
            ORDER BY e.entry DESC LIMIT 1;
        IF NOT ledger_schema.adds_up(
            coalesce(spent, '{0,0,0}'),
            CASE WHEN NEW.kind IN ('charge', 'settle') THEN ledger_schema.amounts(NEW.body, 'cost') ELSE '{0,0,0}' END,
            ledger_schema.amounts(NEW.body, 'spent'),
            total
        ) THEN
            RAISE EXCEPTION 'a charge must add its cost to what is spent, and must not exceed the total';
        END IF;
    END IF;
    IF NEW.kind IN ('register', 'allowance') THEN
        INSERT INTO ledger_schema.counters VALUES (NEW.dataset, coalesce(NEW.allowance, ''), 0, 0, 0, 0);
    ELSIF NEW.kind = 'charge' THEN
        INSERT INTO ledger_schema.unfinished VALUES (NEW.entry, NEW.dataset, NEW.allowance);
        UPDATE ledger_schema.counters c SET charges = c.charges + 1, last_charge = NEW.entry
            WHERE c.dataset = NEW.dataset AND c.allowance IN ('', coalesce(NEW.allowance, ''));
    ELSIF NEW.kind = 'release' THEN
        DELETE FROM ledger_schema.unfinished u WHERE u.entry = NEW.charge;
        UPDATE ledger_schema.counters c SET releases = c.releases + 1, last_release = NEW.entry
            WHERE c.dataset = NEW.dataset AND c.allowance IN ('', coalesce(NEW.allowance, ''));
    END IF;
    RETURN NULL;
END
$body$;
REVOKE ALL ON FUNCTION ledger_schema.follow() FROM PUBLIC;
CREATE FUNCTION ledger_schema.adds_up(spent numeric[], cost numeric[], after numeric[], total numeric[]) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    FOR i IN 1..3 LOOP
        IF (cost[i] >= 0 AND after[i] = spent[i] + cost[i] AND after[i] <= total[i]) IS NOT TRUE THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END
$body$;
REVOKE ALL ON FUNCTION ledger_schema.adds_up(spent numeric[], cost numeric[], after numeric[], total numeric[]) FROM PUBLIC;
CREATE FUNCTION ledger_schema.refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0];
END
$body$;
REVOKE ALL ON FUNCTION ledger_schema.refuse() FROM PUBLIC;
CREATE FUNCTION ledger_schema.follow_head() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    IF NEW.entry IS DISTINCT FROM OLD.entry + 1
        OR NOT EXISTS (SELECT FROM ledger_schema.entries e WHERE e.entry = NEW.entry AND e.hash = NEW.hash) THEN
        RAISE EXCEPTION 'the head moves with the entries only';
    END IF;
    RETURN NEW;
END
$body$;
REVOKE ALL ON FUNCTION ledger_schema.follow_head() FROM PUBLIC;
CREATE TRIGGER entries_follow AFTER INSERT ON ledger_schema.entries FOR EACH ROW EXECUTE FUNCTION ledger_schema.follow();
ALTER TABLE ledger_schema.entries ENABLE ALWAYS TRIGGER entries_follow;
CREATE TRIGGER entries_stay BEFORE UPDATE ON ledger_schema.entries FOR EACH ROW EXECUTE FUNCTION ledger_schema.refuse('entries are never altered');
ALTER TABLE ledger_schema.entries ENABLE ALWAYS TRIGGER entries_stay;
CREATE TRIGGER entries_last BEFORE DELETE ON ledger_schema.entries FOR EACH ROW EXECUTE FUNCTION ledger_schema.refuse('entries are never deleted');
ALTER TABLE ledger_schema.entries ENABLE ALWAYS TRIGGER entries_last;
CREATE TRIGGER entries_remain BEFORE TRUNCATE ON ledger_schema.entries FOR EACH STATEMENT EXECUTE FUNCTION ledger_schema.refuse('entries are never deleted');
ALTER TABLE ledger_schema.entries ENABLE ALWAYS TRIGGER entries_remain;
CREATE TRIGGER head_follows BEFORE UPDATE ON ledger_schema.head FOR EACH ROW EXECUTE FUNCTION ledger_schema.follow_head();
ALTER TABLE ledger_schema.head ENABLE ALWAYS TRIGGER head_follows;
CREATE TRIGGER head_lasts BEFORE DELETE ON ledger_schema.head FOR EACH ROW EXECUTE FUNCTION ledger_schema.refuse('the head is never deleted');
ALTER TABLE ledger_schema.head ENABLE ALWAYS TRIGGER head_lasts;
CREATE TRIGGER head_remains BEFORE TRUNCATE ON ledger_schema.head FOR EACH STATEMENT EXECUTE FUNCTION ledger_schema.refuse('the head is never deleted');
ALTER TABLE ledger_schema.head ENABLE ALWAYS TRIGGER head_remains;
