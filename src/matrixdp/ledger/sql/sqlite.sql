-- A ledger in a SQLite file. What `verify` compares with existing files, triggers and indexes, is never changed.

CREATE TABLE entries (
    entry INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    dataset TEXT,
    request TEXT,
    charge INTEGER,
    allowance TEXT,
    body TEXT NOT NULL,
    payload TEXT,
    hash TEXT NOT NULL
);

CREATE TABLE head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    entry INTEGER NOT NULL,
    hash TEXT NOT NULL
);

CREATE TABLE counters (
    dataset TEXT NOT NULL,
    allowance TEXT NOT NULL,
    charges INTEGER NOT NULL,
    releases INTEGER NOT NULL,
    last_charge INTEGER NOT NULL,
    last_release INTEGER NOT NULL,
    PRIMARY KEY (dataset, allowance)
);

CREATE TABLE unfinished (
    entry INTEGER PRIMARY KEY,
    dataset TEXT NOT NULL,
    allowance TEXT
);

CREATE TABLE place (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    file TEXT NOT NULL,
    directory TEXT NOT NULL,
    name TEXT NOT NULL,
    path TEXT NOT NULL
);

INSERT INTO head VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

CREATE UNIQUE INDEX one_registration ON entries (dataset) WHERE kind = 'register';
CREATE INDEX registrations ON entries (entry) WHERE kind = 'register';
CREATE UNIQUE INDEX one_charge ON entries (dataset, request) WHERE kind = 'charge' AND request IS NOT NULL;
CREATE UNIQUE INDEX one_release ON entries (charge) WHERE kind = 'release';
CREATE UNIQUE INDEX one_allowance ON entries (dataset, allowance) WHERE kind = 'allowance';
CREATE UNIQUE INDEX one_return ON entries (dataset, allowance) WHERE kind = 'return';
CREATE INDEX states ON entries (dataset, entry) WHERE kind IN ('charge', 'allowance', 'return', 'settle');
CREATE INDEX allowances ON entries (dataset, allowance, entry) WHERE kind = 'charge' AND allowance IS NOT NULL;
CREATE INDEX restores ON entries (entry) WHERE kind = 'restore';
CREATE INDEX settlements ON entries (dataset, entry) WHERE kind = 'settle';
CREATE INDEX oldest_unfinished ON unfinished (dataset, entry);

CREATE TRIGGER entries_follow BEFORE INSERT ON entries
WHEN NEW.entry IS NOT (SELECT entry + 1 FROM head)
  OR NEW.entry IS NOT (SELECT COALESCE(MAX(entry), 0) + 1 FROM entries)
BEGIN SELECT RAISE(ABORT, 'an entry must follow the last one'); END;

CREATE TRIGGER entries_move_head AFTER INSERT ON entries
BEGIN UPDATE head SET entry = NEW.entry, hash = NEW.hash; END;

CREATE TRIGGER head_follows BEFORE UPDATE ON head
WHEN NEW.entry IS NOT OLD.entry + 1 OR NEW.hash IS NOT (SELECT hash FROM entries WHERE entry = NEW.entry)
BEGIN SELECT RAISE(ABORT, 'the head moves with the entries only'); END;

CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never altered'); END;

CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END;

CREATE TRIGGER head_lasts BEFORE DELETE ON head BEGIN SELECT RAISE(ABORT, 'the head is never deleted'); END;

CREATE TRIGGER registrations_count AFTER INSERT ON entries WHEN NEW.kind IN ('register', 'allowance')
BEGIN
    INSERT INTO counters VALUES (NEW.dataset, COALESCE(NEW.allowance, ''), 0, 0, 0, 0);
END;

CREATE TRIGGER charges_count AFTER INSERT ON entries WHEN NEW.kind = 'charge'
BEGIN
    INSERT INTO unfinished VALUES (NEW.entry, NEW.dataset, NEW.allowance);
    UPDATE counters SET charges = charges + 1, last_charge = NEW.entry
    WHERE dataset = NEW.dataset AND allowance IN ('', COALESCE(NEW.allowance, ''));
END;

CREATE TRIGGER releases_count AFTER INSERT ON entries WHEN NEW.kind = 'release'
BEGIN
    DELETE FROM unfinished WHERE entry = NEW.charge;
    UPDATE counters SET releases = releases + 1, last_release = NEW.entry
    WHERE dataset = NEW.dataset AND allowance IN ('', COALESCE(NEW.allowance, ''));
END;

PRAGMA application_id = 1299727440; -- "MxDP"
PRAGMA user_version = 3; -- earlier ones were never published
