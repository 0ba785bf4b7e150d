"""What readers, writers and curators of a ledger in PostgreSQL may do, and what the server refuses to all of them."""

from __future__ import annotations

import contextlib
import json
import math
import random
import re
import struct

import psycopg
import pytest

from ledger_stores import PostgresSchemas, schema_of
from ledger_worker import TOTAL
from matrixdp.errors import LedgerError
from matrixdp.ledger import Gaussian, Ledger, Receipt
from matrixdp.ledger.entries import canonical_json, next_entry, sha256
from matrixdp.ledger.postgres import roles_sql
from matrixdp.ledger.values import Head

ROLES = ["reader", "writer", "curator"]


@pytest.fixture
def store(postgres_server):
    return PostgresSchemas(postgres_server)


@pytest.fixture
def urls(store):
    """URLs of a ledger for its owner, who is no superuser, and for one user of each role."""
    path = store.new_path("team")
    schema = schema_of(path)
    with contextlib.closing(store.server.connect()) as admin:
        for name in ("owner", "nobody", "b_writer", *(f"a_{role}" for role in ROLES)):
            admin.execute(f"CREATE ROLE {schema}_{name} LOGIN")
        admin.execute(f"ALTER ROLE {schema}_owner CREATEROLE")
        admin.execute(f"GRANT CREATE ON DATABASE postgres TO {schema}_owner")
    found = {
        name: path.replace("postgres@", f"{schema}_{login}@")
        for name, login in {
            "owner": "owner",
            "nobody": "nobody",
            "another writer": "b_writer",
            **{role: f"a_{role}" for role in ROLES},
        }.items()
    }
    with Ledger.create(found["owner"]) as made:
        made.register("clinic", TOTAL, neighbours="replace")
    with contextlib.closing(store.server.connect(user=f"{schema}_owner")) as owner:
        for _ in range(2):  # it may be run again
            owner.execute(roles_sql(schema))
        for role in ROLES:
            owner.execute(f"GRANT {schema}_{role} TO {schema}_a_{role}")
        owner.execute(f"GRANT {schema}_writer TO {schema}_b_writer")
    return found


def spend(ledger, mu=0.1):
    return ledger.charge("clinic", Gaussian(mu), neighbours="replace", description={}, request="r")


@contextlib.contextmanager
def connection_of(url):
    """A plain connection of one of the users."""
    schema = schema_of(url)
    with contextlib.closing(psycopg.connect(url.replace(f"&schema={schema}", ""), autocommit=True)) as connection:
        connection.execute(f"SET search_path = {schema}")
        yield connection


def test_a_reader_reads_and_verifies_and_charges_nothing(urls):
    with Ledger.open(urls["reader"]) as ledger:
        assert ledger.remaining("clinic").mu == TOTAL.mu
        assert ledger.history() == []
        assert ledger.summary("clinic").counts.charges == 0
        ledger.verify()
        with pytest.raises(LedgerError, match=r"this role may not do that.*matrixdp ledger roles"):
            spend(ledger)
        with pytest.raises(LedgerError, match="this role may not do that"):
            ledger.register("other", TOTAL, neighbours="replace")
        assert ledger.head.entry == 2


def test_a_writer_charges_and_completes_and_registers_nothing(urls):
    with Ledger.open(urls["writer"]) as ledger:
        receipt = spend(ledger)
        ledger.complete(receipt, "{}")
        assert ledger.stored("clinic", "r") == "{}"
        with pytest.raises(LedgerError, match="this role may not do that"):
            ledger.register("other", TOTAL, neighbours="replace")
        ledger.verify()
        assert ledger.head.entry == 4


def test_a_curator_registers(urls):
    with Ledger.open(urls["curator"]) as ledger:
        ledger.register("other", TOTAL, neighbours="replace")
        spend(ledger)
        ledger.verify()


def test_the_server_lets_only_its_payers_charge_an_allowance(urls, store):
    schema = schema_of(urls["owner"])
    ann, team = f"{schema}_a_writer", f"{schema}_team"
    with contextlib.closing(store.server.connect()) as admin:
        admin.execute(f"CREATE ROLE {team} NOLOGIN")
    with Ledger.open(urls["curator"], actor="cara") as ledger:
        for payer in (ann, team):
            ledger.allow("clinic", payer, epsilon=0.2, payers=[payer])

    def spend_from(url, allowance, **author):
        with Ledger.open(url, **author) as ledger:
            ledger.charge("clinic", Gaussian(0.01), neighbours="replace", description={}, allowance=allowance)

    spend_from(urls["writer"], ann)
    with pytest.raises(LedgerError, match="and not for"):
        spend_from(urls["another writer"], ann)
    with pytest.raises(LedgerError, match="somebody whom it is for"):  # who claims to be another
        spend_from(urls["another writer"], ann, actor=ann)
    with pytest.raises(LedgerError, match="and not for"):
        spend_from(urls["writer"], team)
    with contextlib.closing(store.server.connect()) as admin:
        admin.execute(f"GRANT {team} TO {ann}")
    spend_from(urls["writer"], team)
    spend_from(urls["curator"], ann, actor=ann)  # a studio, which knows who asked
    with pytest.raises(LedgerError, match="and not for"):
        spend_from(urls["curator"], ann, actor="bob")
    with Ledger.open(urls["reader"]) as ledger:
        assert ledger.summary("clinic").counts.charges == 3
        ledger.verify()


def test_a_role_without_rights(urls):
    with pytest.raises(LedgerError, match=r"this role may not do that.*matrixdp ledger roles"):
        Ledger.open(urls["nobody"])
    with pytest.raises(LedgerError, match="this role may not do that"):
        Ledger.create(urls["nobody"].replace("schema=", "schema=new_"))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = body",
        "DELETE FROM entries",
        "TRUNCATE entries",
        "UPDATE head SET entry = 0",
        "DELETE FROM head",
        "SELECT * FROM head FOR UPDATE",
        "INSERT INTO counters VALUES ('x', '', 1, 0, 1)",
        "DELETE FROM unfinished",
        "UPDATE ledger SET version = 0",
        "ALTER TABLE entries DISABLE TRIGGER ALL",
        "ALTER TABLE entries DISABLE ROW LEVEL SECURITY",
        "DROP TRIGGER entries_follow ON entries",
        "DROP TABLE entries",
        "CREATE TABLE other (a integer)",
        "SET session_replication_role = replica",
        "SELECT adds_up('{0}', '{0}', '{0}', '{0}')",
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    ],
)
def test_no_role_can_do_more_than_append(urls, role, statement):
    with connection_of(urls[role]) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)


@pytest.mark.parametrize("statement", ["UPDATE entries SET body = body", "DELETE FROM entries", "TRUNCATE entries"])
def test_triggers_refuse_even_the_owner_and_replication(urls, store, statement):
    with connection_of(urls["owner"]) as connection, pytest.raises(psycopg.errors.RaiseException):
        connection.execute(statement)
    with contextlib.closing(store.server.connect()) as admin:
        admin.execute(f"SET search_path = {schema_of(urls['owner'])}")
        admin.execute("SET session_replication_role = replica")
        with pytest.raises(psycopg.errors.RaiseException):
            admin.execute(statement)


class TestForgedEntries:
    """What a writer could insert with SQL of its own, with correct hashes."""

    @pytest.fixture
    def template(self, urls):
        """The content of an honest charge, and the head after it."""
        with Ledger.open(urls["writer"]) as ledger:
            spend(ledger)
            head = ledger.head
        with connection_of(urls["writer"]) as connection:
            (body,) = connection.execute("SELECT body FROM entries WHERE entry = 3").fetchone()
        content = {key: value for key, value in json.loads(body).items() if key not in ("entry", "previous", "request")}
        cost = int(content["cost"][0])
        sums = {"cost": [str(cost), "0", "0"], "spent": [str(2 * cost), "0", "0"], "charges": 2}
        return {**content, **sums}, head

    def insert(self, urls, content, head, by="writer", **columns):
        body, after = next_entry(content, head)
        row = {"entry": after.entry, "kind": content["kind"], "dataset": "clinic", "body": body, "hash": after.hash}
        if "body" in columns:
            row["hash"] = sha256(columns["body"])
        row.update(columns)
        names, marks = ", ".join(row), ", ".join(["%s"] * len(row))
        with connection_of(urls[by]) as connection:
            connection.execute(f"INSERT INTO entries ({names}) VALUES ({marks})", tuple(row.values()))

    def require_usable(self, urls):
        """Nothing was written that the ledger cannot go on from."""
        with Ledger.open(urls["another writer"]) as ledger:
            receipt = ledger.charge("clinic", Gaussian(0.01), neighbours="replace", description={}, request="next")
            ledger.complete(receipt, "{}")
            ledger.verify()

    def test_the_honest_entry_is_accepted(self, urls, template):
        self.insert(urls, *template)
        with Ledger.open(urls["reader"]) as ledger:
            ledger.verify()

    @pytest.mark.parametrize(
        "change",
        [
            {"spent": ["0", "0", "0"]},
            {"cost": ["0", "0", "0"]},
            {"cost": ["-1", "0", "0"]},
            {"spent": [str(2**200), "0", "0"], "cost": [str(2**200), "0", "0"]},
            {"spent": ["1"]},
            {"spent": []},
            {"spent": ["NaN", "0", "0"], "cost": ["NaN", "0", "0"]},
        ],
    )
    def test_a_false_sum_is_refused(self, urls, template, change):
        content, head = template
        with pytest.raises(psycopg.errors.RaiseException, match="must add its cost to what is spent"):
            self.insert(urls, {**content, **change}, head)

    @pytest.mark.parametrize("kind", ["allowance", "return"])
    def test_an_allowance_cannot_reduce_what_is_spent(self, urls, template, kind):
        content, head = template
        forged = {**content, "kind": kind, "allowance": "ann", "spent": ["0", "0", "0"]}
        del forged["cost"]
        with pytest.raises(psycopg.errors.RaiseException, match="must add its cost to what is spent"):
            self.insert({"writer": urls["curator"]}, forged, head, allowance="ann")

    def test_more_than_the_total_is_refused(self, urls, template):
        content, head = template
        spent, whole = int(content["cost"][0]), 2**190
        forged = {**content, "cost": [str(whole), "0", "0"], "spent": [str(spent + whole), "0", "0"]}
        with pytest.raises(psycopg.errors.RaiseException, match="must not exceed the total"):
            self.insert(urls, forged, head)

    def test_an_entry_that_follows_another_is_refused(self, urls, template):
        content, head = template
        for wrong in (Head(head.entry, "0" * 64), Head(head.entry + 1, head.hash), Head(head.entry - 1, head.hash)):
            with pytest.raises((psycopg.errors.RaiseException, psycopg.errors.UniqueViolation)):
                self.insert(urls, content, wrong)

    def test_a_false_hash_is_refused(self, urls, template):
        with pytest.raises(psycopg.errors.RaiseException, match="must be that of its body"):
            self.insert(urls, *template, hash="0" * 64)

    def test_a_second_charge_of_a_request_is_refused(self, urls, template):
        content, head = template
        with pytest.raises(psycopg.errors.UniqueViolation):
            self.insert(urls, {**content, "request": "r"}, head, request="r")

    @pytest.mark.parametrize("kind", ["register", "settle", "create", "move", "arrive"])
    def test_a_writer_inserts_no_other_kind(self, urls, template, kind):
        content, head = template
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            self.insert(urls, {**content, "kind": kind}, head)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('"spent"', '"\\\\u0073pent"'),
            ('"kind":', '"kind": '),
            ('{"', '{ "'),
            ('"description":{}', '"description":{"b":1,"a":2}'),
            ('"description":{}', '"description":{"a":1,"a":1}'),
            ('"description":{}', '"description":{"a":[{"b":1,"a":2}]}'),
            ('"description":{}', '"description":{"a":1.50}'),
            ('"description":{}', '"description":{"a":1E5}'),
            ('"description":{}', '"description":{"a":1e5}'),
            ('"description":{}', '"description":{"a":0.10000000000000001}'),
            ('"description":{}', '"description":{"a":-0}'),
            ('"description":{}', '"description":{"a":01}'),
            ('"description":{}', '"description":{"a":NaN}'),
            ('"description":{}', '"description":{"a":' + "9" * 5000 + "}"),
            ('"description":{}', '"description":{"a":1e999}'),
            ('"description":{}', '"description":{"a":' + "[" * 2000 + "]" * 2000 + "}"),
            ('"description":{}', '"description":{"a":"\\\\/"}'),
            ('"description":{}', '"description":{"a":"\\\\u00E9"}'),
            ('"description":{}', '"description":{"a":"\\\\u000a"}'),
            ('"description":{}', '"description":{"a":"é"}'),
            ('"description":{}', '"description":{"a":"\\\\u00e"}'),
            ('"description":{}', '"description":{'),
            ('"description":{}', '"description":{}}'),
        ],
    )
    def test_a_body_that_is_not_canonical_is_refused(self, urls, template, old, new):
        body, _ = next_entry(*template)
        assert old in body
        with pytest.raises(psycopg.errors.RaiseException, match="must be canonical JSON"):
            self.insert(urls, *template, body=body.replace(old, new.replace("\\\\", "\\"), 1))
        self.require_usable(urls)

    @pytest.mark.parametrize("body", ["", "x", "null", "[]", "3", '"text"'])
    def test_a_body_that_is_no_object_is_refused(self, urls, template, body):
        with pytest.raises(psycopg.errors.RaiseException, match="must be canonical JSON"):
            self.insert(urls, *template, body=body)

    @pytest.mark.parametrize(
        "columns",
        [
            {"dataset": "other"},
            {"request": "forged"},
            {"allowance": "ann"},
            {"charge": 3},
            {"payload": "{}"},
            {"kind": "release", "charge": 3},
        ],
    )
    def test_columns_that_are_not_those_of_the_body_are_refused(self, urls, template, columns):
        with pytest.raises(psycopg.errors.RaiseException, match="must be those of its body"):
            self.insert(urls, *template, **columns)
        self.require_usable(urls)

    @pytest.mark.parametrize(
        "change", [{"dataset": None}, {"request": 5}, {"request": None}, {"entry": "4"}, {"payload": None}]
    )
    def test_a_body_that_is_not_that_of_its_columns_is_refused(self, urls, template, change):
        content, head = template
        body = canonical_json({**content, "entry": head.entry + 1, "previous": head.hash, **change})
        with pytest.raises(psycopg.errors.RaiseException, match="must be those of its body"):
            self.insert(urls, content, head, body=body)

    def test_nobody_writes_in_the_name_of_another_role(self, urls, template):
        for name in (None, f"{schema_of(urls['owner'])}_a_writer"):
            with pytest.raises(psycopg.errors.RaiseException, match="must name the role that writes it"):
                self.insert(urls, *template, by="another writer", role=name)
        self.require_usable(urls)

    @pytest.mark.parametrize(
        "change",
        [
            {"charges": 3},
            {"charges": "2"},
            {"actor": None},
            {"version": 1},
            {"description": []},
            {"unit": "edge"},
            {"neighbours": "add-remove"},
            {"event": None},
            {"event": {"kind": "laplace", "mu": 0.1}},
            {"event": {"kind": "gaussian", "mu": -0.1}},
            {"event": {"kind": "gaussian", "mu": "0.1"}},
            {"event": {"kind": "gaussian", "mu": 0.1, "sigma": 1.0}},
            {"event": {"delta": 2.0, "epsilon": 1.0, "kind": "approximate"}},
            {"event": {"delta": 0.0, "events": [], "kind": "plan"}},
            {"event": {"delta": 0.0, "events": [{"delta": 0.0, "events": [], "kind": "plan"}], "kind": "plan"}},
        ],
    )
    def test_a_charge_that_cannot_be_read_is_refused(self, urls, template, change):
        content, head = template
        with pytest.raises(psycopg.errors.RaiseException, match="must have an event, a description, an author"):
            self.insert(urls, {**content, **change}, head)
        self.require_usable(urls)

    @pytest.mark.parametrize("time", [None, "yesterday", 5, "2031-01-01", "2031-01-01T24:00:00.000+00:00"])
    def test_an_entry_without_its_time_is_refused(self, urls, template, time):
        content, head = template
        with pytest.raises(psycopg.errors.RaiseException, match="must have the time"):
            self.insert(urls, {**content, "time": time}, head)
        self.require_usable(urls)

    @pytest.mark.parametrize("time", ["2031-02-30T10:00:00.000+00:00", "9999-99-99T99:99:99+00:00"])
    def test_a_time_that_cannot_be_read_is_refused(self, urls, template, time):
        """The age of the last charge could not be shown."""
        content, head = template
        with pytest.raises(psycopg.errors.DatetimeFieldOverflow):
            self.insert(urls, {**content, "time": time}, head)
        self.require_usable(urls)

    @pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800"])
    def test_a_text_that_no_column_can_hold_is_refused(self, urls, template, text):
        """Half of a surrogate pair: the server would compare it with a replacement, and `verify` with itself."""
        content, head = template
        column = "".join("\ufffd" if "\ud800" <= sign <= "\udfff" else sign for sign in text)
        with pytest.raises(psycopg.errors.RaiseException, match="must be those of its body"):
            self.insert(urls, {**content, "request": text}, head, request=column)
        self.require_usable(urls)

    def test_a_text_beyond_the_basic_plane_is_accepted(self, urls, template):
        content, head = template
        self.insert(urls, {**content, "request": "\U0001f600\ufffd"}, head, request="\U0001f600\ufffd")
        self.require_usable(urls)

    def test_what_is_allotted_to_others_is_not_spent(self, urls, template):
        with Ledger.open(urls["curator"]) as ledger:
            ledger.allow("clinic", "ann", share=0.5)
            (allotted, *_), head = ledger.history(), ledger.head
            with ledger._store.reading() as journal:
                kept, whole = journal.balance("clinic").allotted.mu_squared, journal.balance("clinic").total.mu_squared
        assert allotted.released is False
        content, spent = template[0], int(template[0]["cost"][0])
        for cost, left in ((1, 0), (1, kept - 1), (whole - spent, kept)):
            sums = {"cost": [str(cost), "0", "0"], "spent": [str(spent + cost), "0", "0"]}
            forged = {**content, **sums, "allotted": [str(left), "0", "0"]}
            with pytest.raises(psycopg.errors.RaiseException, match="must keep what is allotted to others"):
                self.insert(urls, forged, head)
        size = int(kept)
        sums = {"cost": [str(size + 1), "0", "0"], "spent": [str(spent + size + 1), "0", "0"]}
        own = {"allowance": "ann", "allotted": ["-1", "0", "0"], "allowance_spent": [str(size + 1), "0", "0"]}
        with pytest.raises(psycopg.errors.RaiseException, match="must stay within it"):
            self.insert(urls, {**content, **sums, **own}, head, allowance="ann")
        self.require_usable(urls)

    def release(self, template, **change):
        """The content of a release of the charge that is pending, and its columns."""
        content = {name: template[0][name] for name in ("actor", "version", "time", "dataset")}
        forged = {**content, "kind": "release", "charge": 3, "releases": 1, "payload": sha256('{"forged":1}'), **change}
        return forged, {"charge": forged["charge"], "payload": '{"forged":1}'}

    def test_a_release_is_stored_by_the_role_that_was_charged(self, urls, template):
        content, columns = self.release(template)
        with pytest.raises(psycopg.errors.RaiseException, match="must be stored by the role that was charged"):
            self.insert(urls, content, template[1], by="another writer", **columns)
        self.require_usable(urls)
        with Ledger.open(urls["writer"]) as ledger:
            (pending,) = [one for one in ledger.history() if not one.released]
            with ledger._store.reading() as journal:
                row = journal.row("entry", pending.entry)
            ledger.complete(Receipt("clinic", pending.event, "r", row.entry, row.hash), "{}")
            assert ledger.stored("clinic", "r") == "{}"
            ledger.verify()

    @pytest.mark.parametrize("change", [{"charge": 2}, {"charge": 99}, {"releases": 2}, {"dataset": "other"}])
    def test_a_release_of_nothing_is_refused(self, urls, template, change):
        content, columns = self.release(template, **change)
        dataset = content["dataset"]
        with pytest.raises(psycopg.errors.RaiseException, match="must belong to a charge, and have its number"):
            self.insert(urls, content, template[1], dataset=dataset, **columns)
        self.require_usable(urls)

    def test_a_release_without_its_text_is_refused(self, urls, template):
        content, columns = self.release(template)
        del content["payload"]
        with pytest.raises(psycopg.errors.RaiseException, match="must belong to a charge"):
            self.insert(urls, content, template[1], charge=columns["charge"])


def test_the_server_knows_how_python_writes_numbers_and_texts(urls):
    """What `canonical_json` writes is canonical to the server, whatever it holds."""
    chance = random.Random(3)
    numbers = [0.0, -0.0, 1e16, 1e15, 9999999999999998.0, 1e-4, 9.9e-5, 5e-324, 1.7976931348623157e308, 8.41e21, 2**60]
    numbers += [struct.unpack("d", chance.randbytes(8))[0] for _ in range(300)]
    numbers += [round(chance.uniform(-100, 100), chance.randrange(17)) for _ in range(300)]
    signs = [
        "\0",
        "\n",
        "\x01",
        "\x7f",
        '"',
        "\\",
        "/",
        "a",
        "aa",
        "Z",
        "é",
        "\ud800",
        "\uffff",
        "\U0001f600",
        "\\u0041",
    ]
    texts = ["".join(chance.choices(signs, k=chance.randrange(1, 6))) for _ in range(300)]
    content = {
        "numbers": [number for number in numbers if math.isfinite(number)],
        "texts": {text: [True, None, {}] for text in texts if not re.search("[\0\ud800]", text)},
        "values": texts,
    }
    with connection_of(urls["owner"]) as connection:
        for part in ({"numbers": [number]} for number in content["numbers"]):
            assert connection.execute("SELECT is_canonical(%s)", (canonical_json(part),)).fetchone() == (True,), part
        assert connection.execute("SELECT is_canonical(%s)", (canonical_json(content),)).fetchone() == (True,)
