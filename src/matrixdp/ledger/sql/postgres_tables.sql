-- Tables and indexes of a ledger in a schema of PostgreSQL. Texts are compared byte by byte, whatever the database's
-- language. Indexes are written as PostgreSQL prints them, so that they can be compared.

CREATE TABLE {schema}.ledger (
    one smallint PRIMARY KEY CHECK (one = 1),
    format text NOT NULL,
    version integer NOT NULL
);

CREATE TABLE {schema}.entries (
    entry bigint PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    dataset text COLLATE "C",
    request text COLLATE "C",
    charge bigint,
    allowance text COLLATE "C",
    body text COLLATE "C" NOT NULL,
    payload text COLLATE "C",
    hash text COLLATE "C" NOT NULL,
    -- The transaction that appended the entry, and who was logged in; neither is in the chain.
    attempt text COLLATE "C" DEFAULT current_setting('matrixdp.attempt', true),
    role text COLLATE "C" DEFAULT session_user
);

CREATE TABLE {schema}.head (
    one bigint PRIMARY KEY CHECK (one = 1),
    entry bigint NOT NULL,
    hash text COLLATE "C" NOT NULL
);

CREATE TABLE {schema}.counters (
    dataset text COLLATE "C" NOT NULL,
    allowance text COLLATE "C" NOT NULL,
    charges bigint NOT NULL,
    releases bigint NOT NULL,
    last_charge bigint NOT NULL,
    last_release bigint NOT NULL,
    PRIMARY KEY (dataset, allowance)
);

CREATE TABLE {schema}.unfinished (
    entry bigint PRIMARY KEY,
    dataset text COLLATE "C" NOT NULL,
    allowance text COLLATE "C"
);

ALTER TABLE {schema}.entries ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_may_read ON {schema}.entries FOR SELECT USING (true);

INSERT INTO {schema}.ledger VALUES (1, 'matrixdp ledger', 5);
INSERT INTO {schema}.head VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

CREATE UNIQUE INDEX one_registration ON {schema}.entries USING btree (dataset) WHERE (kind = 'register'::text);
CREATE INDEX registrations ON {schema}.entries USING btree (entry) WHERE (kind = 'register'::text);
CREATE UNIQUE INDEX one_charge ON {schema}.entries USING btree (dataset, request)
    WHERE ((kind = 'charge'::text) AND (request IS NOT NULL));
CREATE UNIQUE INDEX one_release ON {schema}.entries USING btree (charge) WHERE (kind = 'release'::text);
CREATE UNIQUE INDEX one_allowance ON {schema}.entries USING btree (dataset, allowance) WHERE (kind = 'allowance'::text);
CREATE UNIQUE INDEX one_return ON {schema}.entries USING btree (dataset, allowance) WHERE (kind = 'return'::text);
CREATE INDEX states ON {schema}.entries USING btree (dataset, entry)
    WHERE (kind = ANY (ARRAY['charge'::text, 'allowance'::text, 'return'::text, 'settle'::text]));
CREATE INDEX allowances ON {schema}.entries USING btree (dataset, allowance, entry)
    WHERE ((kind = 'charge'::text) AND (allowance IS NOT NULL));
CREATE INDEX restores ON {schema}.entries USING btree (entry) WHERE (kind = 'restore'::text);
CREATE INDEX settlements ON {schema}.entries USING btree (dataset, entry) WHERE (kind = 'settle'::text);
CREATE INDEX oldest_unfinished ON {schema}.unfinished USING btree (dataset, entry);
