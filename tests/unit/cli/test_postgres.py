"""Commands with a ledger in PostgreSQL, whose password no output shows."""

import contextlib
from pathlib import Path

import pytest

from ledger_stores import PostgresSchemas, schema_of
from matrixdp import Ledger
from unit.cli.conftest import BUDGET


@pytest.fixture
def url(postgres_server):
    """Of a new ledger, by TCP and with a password."""
    schema = schema_of(PostgresSchemas(postgres_server).new_path("shell"))
    return postgres_server.tcp_url(options=f"?schema={schema}")


@pytest.fixture
def secret(postgres_server):
    return postgres_server.password


@pytest.fixture
def team(matrixdp, url):
    """The URL of a ledger with one data set."""
    assert matrixdp("ledger", "new", url, "--dataset", "clinic", "--epsilon", "4", "--delta", "1e-6").code == 0
    return url


def test_every_command_takes_a_url_and_shows_no_password(clinic, matrixdp, team, secret):
    schema = ("--schema", "schema.toml", "--query", "moments", *BUDGET)
    charged = ("--ledger", team, "--dataset", "clinic")
    for words in (
        ("ledger", "add", team, "--dataset", "laboratory", "--epsilon", "1", "--delta", "1e-6", "--json"),
        ("design", *schema, "--records", "500", *charged),
        ("release", "clinic.csv", *schema, *charged, "--out", "out", "--request", "r", "--json"),
        ("release", "clinic.csv", *schema, *charged, "--out", "again", "--request", "r"),
        ("ledger", "show", team, "--json"),
        ("ledger", "show", team),
        ("ledger", "history", team, "--json"),
        ("ledger", "whatif", team, "--dataset", "clinic", *BUDGET),
        ("ledger", "allow", team, "--dataset", "clinic", "--allowance", "ann", "--share", "0.1", "--json"),
        ("ledger", "metrics", team, "--alert-below", "1%"),
        ("ledger", "return", team, "--dataset", "clinic", "--allowance", "ann"),
        ("ledger", "verify", team),
        ("ledger", "verify", team, "--json"),
    ):
        done = matrixdp(*words)
        assert done.code == 0, done.err
        assert secret not in done.out + done.err
    with Ledger.open(team) as ledger:
        assert [charge.request for charge in ledger.history("clinic")] == ["r"]
    for file in Path("out").iterdir():
        assert secret.encode() not in file.read_bytes()


@pytest.mark.parametrize("debug", [(), ("--debug",)])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("ledger", "show", "URL?schema=nowhere"), 4),
        (("ledger", "show", "URL?colour=blue"), 4),
        (("ledger", "show", "URL", "URL"), 2),
        (("ledger", "show", "--ledger", "URL"), 2),
        (("ledger", "new", "URL", "--dataset", "x", "--epsilon", "URL", "--delta", "1e-6"), 2),
        (("ledger", "backup", "URL", "copy.db"), 4),
        (("ledger", "restore", "clinic.db", "URL"), 4),
        (("ledger", "moved", "URL"), 4),
        (("ledger", "copy", "nowhere.db", "URL"), 4),
        (("ledger", "copy", "clinic.db", "WRONG"), 4),
        (("ledger", "show", "WRONG"), 4),
        (("ledger", "roles", "clinic.db"), 2),
        (("URL",), 2),
    ],
)
def test_errors_show_no_password(clinic, matrixdp, postgres_server, secret, debug, words, code):
    plain = postgres_server.tcp_url()
    urls = {"URL": plain, "WRONG": plain.replace(secret, f"{secret}x")}
    done = matrixdp(*debug, *(_fill(word, urls) for word in words))
    assert done.code == code, done.err
    assert done.err.startswith("matrixdp: ") or debug
    assert secret not in done.out + done.err


def _fill(word, urls):
    for name, url in urls.items():
        word = word.replace(name, url)
    return word


def test_a_ledger_is_copied_to_postgres_and_back(clinic, matrixdp, url, secret):
    matrixdp("ledger", "add", "clinic.db", "--dataset", "laboratory", "--epsilon", "1", "--delta", "1e-6")
    done = matrixdp("ledger", "copy", "clinic.db", url)
    assert done.code == 0, done.err
    assert "clinic.db was copied to postgresql://" in done.out
    assert "laboratory" in done.out
    assert secret not in done.out + done.err
    refused = matrixdp("ledger", "add", "clinic.db", "--dataset", "third", "--epsilon", "1", "--delta", "1e-6")
    assert refused.code == 4
    assert "charged there only" in refused.err
    back = matrixdp("ledger", "copy", url, "back.db", "--json")
    assert back.code == 0, back.err
    assert [found["dataset"] for found in back.json()["datasets"]] == ["clinic", "laboratory"]
    assert matrixdp("ledger", "verify", "back.db").code == 0


def test_the_roles_are_sql_for_this_schema(matrixdp, team, postgres_server):
    done = matrixdp("ledger", "roles", team)
    assert done.code == 0
    with contextlib.closing(postgres_server.connect()) as connection:
        connection.execute(done.out)
        grants = connection.execute(
            "SELECT grantee, table_name, privilege_type FROM information_schema.role_table_grants "
            "WHERE table_schema = %s AND grantee LIKE %s ORDER BY 1, 2, 3",
            (schema_of(team), "%writer"),
        ).fetchall()
    assert {grant[1:] for grant in grants} == {
        ("entries", "INSERT"),
        *((table, "SELECT") for table in ("counters", "entries", "head", "ledger", "unfinished")),
    }
