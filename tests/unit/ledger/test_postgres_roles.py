"""What readers, writers and curators of a ledger in PostgreSQL may do, and what the server refuses to all of them."""

from __future__ import annotations

import contextlib
import json

import psycopg
import pytest

from ledger_stores import PostgresSchemas, schema_of
from ledger_worker import TOTAL
from matrixdp.errors import LedgerError
from matrixdp.ledger import Gaussian, Ledger
from matrixdp.ledger.entries import next_entry
from matrixdp.ledger.schema import roles_sql
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
        for name in ("owner", "nobody", *(f"a_{role}" for role in ROLES)):
            admin.execute(f"CREATE ROLE {schema}_{name} LOGIN")
        admin.execute(f"ALTER ROLE {schema}_owner CREATEROLE")
        admin.execute(f"GRANT CREATE ON DATABASE postgres TO {schema}_owner")
    found = {
        name: path.replace("postgres@", f"{schema}_{login}@")
        for name, login in {"owner": "owner", "nobody": "nobody", **{role: f"a_{role}" for role in ROLES}}.items()
    }
    with Ledger.create(found["owner"]) as made:
        made.register("clinic", TOTAL, neighbours="replace")
    with contextlib.closing(store.server.connect(user=f"{schema}_owner")) as owner:
        for _ in range(2):  # it may be run again
            owner.execute(roles_sql(schema))
        for role in ROLES:
            owner.execute(f"GRANT {schema}_{role} TO {schema}_a_{role}")
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

    def insert(self, urls, content, head, **columns):
        body, after = next_entry(content, head)
        row = {"entry": after.entry, "kind": content["kind"], "dataset": "clinic", "body": body, "hash": after.hash}
        row.update(columns)
        names, marks = ", ".join(row), ", ".join(["%s"] * len(row))
        with connection_of(urls["writer"]) as connection:
            connection.execute(f"INSERT INTO entries ({names}) VALUES ({marks})", tuple(row.values()))

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
