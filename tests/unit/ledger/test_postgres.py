"""A ledger in PostgreSQL when connections break, and when URLs, servers or schemas are wrong."""

from __future__ import annotations

import contextlib
import datetime
import pickle
import sys
import threading

import pytest

from commit_proxy import CommitProxy
from ledger_stores import PostgresSchemas, schema_of
from ledger_worker import TOTAL
from matrixdp.errors import LedgerError
from matrixdp.ledger import Gaussian, Ledger


@pytest.fixture
def store(postgres_server):
    return PostgresSchemas(postgres_server)


@pytest.fixture
def server(postgres_server):
    return postgres_server


@pytest.fixture
def admin(server):
    """A superuser's connection."""
    with contextlib.closing(server.connect()) as connection:
        yield connection


def spend(ledger, mu=0.01, request=None):
    return ledger.charge("clinic", Gaussian(mu), neighbours="replace", description={}, request=request)


def end_sessions(admin):
    """End all sessions of ledgers."""
    admin.execute("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'matrixdp'")


class TestLostConnections:
    @pytest.fixture
    def proxy(self, server):
        with CommitProxy(server.port) as made:
            yield made

    @pytest.fixture
    def remote(self, ledger, path, proxy, server):
        """The ledger through the proxy."""
        url = server.tcp_url(options=f"?schema={schema_of(path)}").replace(f":{server.port}/", f":{proxy.port}/")
        with Ledger.open(url, timeout=30.0) as opened:
            yield opened

    @pytest.mark.parametrize("request_id", [None, "r"])
    def test_a_commit_whose_answer_is_lost_is_found_and_not_repeated(self, ledger, remote, proxy, request_id):
        proxy.fault = lambda commit, abort: commit()
        receipt = spend(remote, request=request_id)
        assert proxy.fault is None
        assert [charge.entry for charge in ledger.history()] == [receipt.entry]
        remote.complete(receipt, "{}")
        ledger.verify()

    def test_a_release_whose_answer_is_lost_is_stored_once(self, ledger, remote, proxy):
        receipt = spend(remote, request="r")
        proxy.fault = lambda commit, abort: commit()
        remote.complete(receipt, "{}")
        assert ledger.stored("clinic", "r") == "{}"
        assert ledger.head.entry == receipt.entry + 1

    def test_a_commit_that_never_arrives_is_an_error_and_charges_nothing(self, ledger, remote, proxy):
        proxy.fault = lambda commit, abort: abort()
        with pytest.raises(LedgerError, match=r"connection to the server was lost.*Nothing was released"):
            spend(remote)
        assert ledger.history() == []
        spend(remote)
        assert len(ledger.history()) == 1

    def test_a_commit_that_arrives_late_is_waited_for(self, ledger, remote, proxy, admin):
        """The server is asked when the lost transaction has ended. Before, it would say no, and be wrong."""
        waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'matrixdp'"

        def commit_late(commit, abort):
            while not admin.execute(waits).fetchall():
                pass
            commit()

        proxy.fault = commit_late
        receipt = spend(remote)
        assert [charge.entry for charge in ledger.history()] == [receipt.entry]

    def test_a_lost_commit_is_not_mistaken_for_the_same_entry_of_another_client(
        self, ledger, remote, proxy, monkeypatch
    ):
        class Clock:
            """Two clients write at the same time, so that their entries are the same to the last bit."""

            @staticmethod
            def now(zone):
                return datetime.datetime(2131, 1, 1, tzinfo=zone)

        monkeypatch.setattr("matrixdp.ledger.journal.datetime", Clock)
        receipts = []
        proxy.fault = lambda commit, abort: (abort(), receipts.append(spend(ledger)))
        with pytest.raises(LedgerError, match="connection to the server was lost"):
            spend(remote)
        assert [charge.entry for charge in ledger.history()] == [receipt.entry for receipt in receipts]

    def test_a_commit_that_cannot_be_asked_for_is_reported_as_unknown(self, ledger, path, remote, proxy):
        def commit_and_go(commit, abort):
            proxy.refuse = True
            commit()

        remote._store.timeout = 0.2
        proxy.fault = commit_and_go
        with pytest.raises(LedgerError, match=r"does not say whether it was made\. Nothing was released\. If .* stays"):
            spend(remote)
        assert len(ledger.history()) == 1

    def test_a_connection_that_was_lost_while_idle_is_made_again(self, ledger, admin):
        end_sessions(admin)
        spend(ledger)
        end_sessions(admin)
        assert len(ledger.history()) == 1

    def test_a_connection_that_is_lost_in_a_transaction_charges_nothing(self, ledger, admin, monkeypatch):
        from matrixdp.ledger.balance import Balance

        pay = Balance.pay

        def pay_later(self, *arguments):
            end_sessions(admin)
            return pay(self, *arguments)

        with monkeypatch.context() as patch:
            patch.setattr(Balance, "pay", pay_later)
            with pytest.raises(LedgerError, match="connection to the server was lost") as refusal:
                spend(ledger)
        assert "Nothing was released" in str(refusal.value)
        assert ledger.history() == []
        spend(ledger)
        ledger.verify()

    def test_a_client_that_sleeps_in_a_transaction_lets_others_continue(self, ledger, path):
        def sleep(sleeper):
            with sleeper._store.writing(sleeper.author) as journal:
                spend(ledger)  # waits until the server has ended the other's transaction
                journal.append("register", {}, dataset="other")

        with Ledger.open(path, timeout=0.05) as opened, pytest.raises(LedgerError, match="idle for too long"):
            sleep(opened)
        ledger.verify()


class TestBadInput:
    @pytest.fixture
    def password_url(self, server, path, ledger):
        return server.tcp_url(password="hunter2", options=f"?schema={schema_of(path)}")

    def test_a_wrong_password(self, password_url, ledger):
        with pytest.raises(
            LedgerError, match=r"user or the password is wrong.*\.pgpass.*Nothing was charged"
        ) as refusal:
            Ledger.open(password_url)
        assert "hunter2" not in str(refusal.value)
        assert refusal.value.__cause__ is None

    def test_a_missing_password(self, server, monkeypatch):
        monkeypatch.setenv("PGPASSFILE", "/nowhere")
        monkeypatch.delenv("PGPASSWORD", raising=False)
        with pytest.raises(LedgerError, match="a password is needed"):
            Ledger.open(server.tcp_url(password=""))

    def test_the_password_may_be_in_the_environment(self, server, path, ledger, monkeypatch):
        monkeypatch.setenv("PGPASSWORD", server.password)
        with Ledger.open(server.tcp_url(password="", options=f"?schema={schema_of(path)}")) as opened:
            spend(opened)

    def test_the_password_is_kept_by_copies_and_not_shown(self, server, path, ledger):
        url = server.tcp_url(options=f"?schema={schema_of(path)}")
        with Ledger.open(url) as opened, pickle.loads(pickle.dumps(opened)) as copied:
            spend(copied)
            for text in (repr(opened), str(opened.path), repr(opened.path), repr(vars(opened)), repr(copied.path)):
                assert server.password not in text
            with pytest.raises(LedgerError) as refusal:
                opened.remaining("unknown")
            assert server.password not in str(refusal.value)

    @pytest.mark.parametrize("part", ["database", "user"])
    def test_an_unknown_database_or_role(self, server, part):
        with pytest.raises(LedgerError, match="database or the role does not exist"):
            Ledger.open(server.url(**{part: "nowhere"}))

    def test_a_server_that_is_gone(self, server):
        url = server.tcp_url().replace(f":{server.port}/", ":1/")
        for action in (Ledger.open, Ledger.create):
            with pytest.raises(LedgerError, match=r"the server cannot be reached.*Nothing was charged") as refusal:
                action(url)
            assert server.password not in str(refusal.value)

    def test_a_schema_without_a_ledger(self, path):
        with pytest.raises(LedgerError, match=r"there is no ledger at .*Ledger\.create"):
            Ledger.open(path)

    def test_a_schema_with_other_tables(self, path, admin):
        admin.execute(f"CREATE SCHEMA {schema_of(path)}")
        admin.execute(f"CREATE TABLE {schema_of(path)}.entries (entry integer)")
        with pytest.raises(LedgerError, match=r"is not a matrixdp ledger: its schema .* holds other tables"):
            Ledger.open(path)
        with pytest.raises(LedgerError, match=r"holds other tables.*schema=NAME"):
            Ledger.create(path)
        admin.execute(f"CREATE TABLE {schema_of(path)}.ledger (one integer)")
        with pytest.raises(LedgerError, match="is not a matrixdp ledger"):
            Ledger.open(path)

    def test_an_empty_schema_is_used(self, path, admin):
        admin.execute(f"CREATE SCHEMA {schema_of(path)}")
        Ledger.create(path).close()

    def test_two_ledgers_never_share_a_schema(self, ledger, path):
        spend(ledger)
        with pytest.raises(LedgerError, match=r"already exists.*Ledger\.open"):
            Ledger.create(path)
        assert len(ledger.history()) == 1

    def test_a_newer_schema(self, ledger, path, store, admin):
        with store.raw(path) as connection:
            connection.execute("UPDATE ledger SET version = 7")
        for action in (lambda: spend(ledger), lambda: Ledger.open(path)):
            with pytest.raises(LedgerError, match=r"newer matrixdp: its schema is version 7.*Upgrade matrixdp"):
                action()
        with store.raw(path) as connection:
            assert connection.execute("SELECT count(*) FROM entries").fetchone() == (2,)

    def test_a_database_in_another_encoding(self, server, admin):
        admin.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        with pytest.raises(LedgerError, match="must have the encoding UTF8, not LATIN1"):
            Ledger.create(server.url(database="latin"))

    def test_a_server_that_does_not_write_to_the_disk(self, ledger, path, admin):
        ledger.close()
        admin.execute("ALTER SYSTEM SET fsync = off")
        try:
            reload_settings(admin, "fsync", "off")
            for action in (lambda: spend(ledger), lambda: Ledger.create(path.replace("clinic", "new"))):
                with pytest.raises(LedgerError, match=r"runs with fsync = off.*Nothing was charged"):
                    action()
        finally:
            admin.execute("ALTER SYSTEM RESET fsync")
            reload_settings(admin, "fsync", "on")
        assert ledger.history() == []

    def test_a_standby_that_does_not_confirm(self, ledger, path, admin):
        """The charge is on the primary server, and could be lost with it: it counts, but nothing is released."""
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        try:
            reload_settings(admin, "synchronous_standby_names", "nobody")
            with (
                Ledger.open(path, timeout=0.2) as hasty,
                pytest.raises(LedgerError, match=r"its standby did not confirm it.*stays spent"),
            ):
                spend(hasty)
        finally:
            admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
            reload_settings(admin, "synchronous_standby_names", "")
        assert len(ledger.history()) == 1

    def test_a_server_that_only_reads(self, ledger, path, admin):
        ledger.close()
        role = schema_of(path)
        admin.execute(f"CREATE ROLE {role} LOGIN SUPERUSER")
        url = path.replace("postgres@", f"{role}@")
        admin.execute(f"ALTER ROLE {role} SET default_transaction_read_only = on")
        with Ledger.open(url) as opened:
            spend(opened)  # a transaction of the ledger says what it needs
        admin.execute(f"ALTER ROLE {role} SET synchronous_commit = off")
        with Ledger.open(url) as opened, opened._store.writing(opened.author) as journal:
            assert list(journal.execute("SHOW synchronous_commit")) == [("on",)]

    def test_a_locked_ledger_is_waited_for_and_then_refused(self, ledger, path, store):
        with Ledger.open(path, timeout=0.05) as hasty:
            with store.raw(path) as other:
                other.execute("SELECT * FROM lock_head()")
                with pytest.raises(LedgerError, match=r"another client holds it locked.*longer timeout"):
                    spend(hasty)
                assert hasty.remaining("clinic").mu == TOTAL.mu
            hasty._store.timeout = 30.0
            spend(hasty)

    def test_a_name_that_is_too_long(self, ledger):
        import secrets

        with pytest.raises(LedgerError, match="request id is too long"):
            spend(ledger, request=secrets.token_hex(10_000))
        assert ledger.history() == []

    def test_psycopg_is_not_installed(self, ledger, path, monkeypatch):
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(LedgerError, match=r"requires psycopg.*pip install -e '.*\[postgres\]'"):
            Ledger.open(path)

    @pytest.mark.parametrize("name", ["x'; DROP TABLE entries; --", 'a"b', "50%s", "?", "\\", "é", "$1"])
    def test_names_are_never_read_as_sql(self, ledger, name):
        ledger.register(name, TOTAL, neighbours="replace")
        receipt = ledger.charge(name, Gaussian(0.1), neighbours="replace", description={name: name}, request=name)
        ledger.complete(receipt, name)
        assert ledger.stored(name, name) == name
        ledger.verify()

    @pytest.mark.parametrize("text", ["\0", "\ud800", "\\u0000", '\\"', "\\\\u0000"])
    def test_a_description_may_hold_any_text(self, ledger, text):
        for _ in range(2):
            ledger.charge("clinic", Gaussian(0.1), neighbours="replace", description={"spent": ["0", text]})
        assert ledger.history()[1].description == {"spent": ["0", text]}
        ledger.verify()

    def test_other_schemas_in_the_search_path_are_not_used(self, ledger, path, admin):
        trap = f"trap_{schema_of(path)}"
        admin.execute(f"CREATE SCHEMA {trap}")
        for table in ("entries", "head", "ledger", "counters"):
            admin.execute(f"CREATE TABLE {trap}.{table} (entry bigint)")
        admin.execute(f"CREATE FUNCTION {trap}.sha256(bytea) RETURNS bytea LANGUAGE sql AS $$ SELECT $1 $$")
        admin.execute(f"CREATE ROLE {trap} LOGIN SUPERUSER")
        admin.execute(f"ALTER ROLE {trap} SET search_path = {trap}, pg_catalog")
        with Ledger.open(path.replace("postgres@", f"{trap}@")) as opened:
            spend(opened)
            opened.verify()
        assert len(ledger.history()) == 1


def test_a_ledger_whose_server_was_restored_is_settled_before_it_is_charged(ledger, path):
    spend(ledger)
    Ledger.restore(path, path).close()
    with pytest.raises(LedgerError, match=r"was restored from a backup that ends at entry 3"):
        spend(ledger)
    ledger.settle("clinic", 0.5)
    spend(ledger)
    ledger.verify()


def test_a_settlement_must_add_up_on_the_server_as_well(ledger, path):
    Ledger.restore(path, path).close()
    ledger.settle("clinic", "all")
    assert ledger.remaining("clinic").mu == 0.0
    ledger.verify()


def reload_settings(admin, name, value):
    """Let the server read its settings again, and wait until this session has them."""
    admin.execute("SELECT pg_reload_conf()")
    while admin.execute("SELECT current_setting(%s)", (name,)).fetchone() != (value,):
        pass


def test_threads_create_one_ledger(path):
    made, refused = [], []

    def create():
        try:
            made.append(Ledger.create(path))
        except LedgerError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert all("already exists" in text or "another client is creating" in text for text in refused)
    made[0].verify()
    made[0].close()
