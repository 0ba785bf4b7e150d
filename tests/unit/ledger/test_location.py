"""Paths and URLs of ledgers. No text about a URL contains its password."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from matrixdp.errors import LedgerError
from matrixdp.ledger.location import PostgresURL, parse_location


@pytest.mark.parametrize("name", ["clinic.db", Path("clinic.db"), "postgresql.db", "a:b.db"])
def test_a_path_is_made_absolute(name):
    assert parse_location(name) == Path(name).absolute()


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("postgresql://db.example.org/privacy", {"host": "db.example.org", "dbname": "privacy"}),
        ("postgres://ann@db:6543/p", {"user": "ann", "host": "db", "port": "6543", "dbname": "p"}),
        ("POSTGRESQL://db/p", {"host": "db", "dbname": "p"}),
        ("postgresql:///p?host=/run/pg&port=1", {"host": "/run/pg", "port": "1", "dbname": "p"}),
        ("postgresql://[::1]:7/p", {"host": "::1", "port": "7", "dbname": "p"}),
        (
            "postgresql://a:1,b/p?target_session_attrs=read-write",
            {"host": "a,b", "port": "1,", "dbname": "p", "target_session_attrs": "read-write"},
        ),
        ("postgresql://%C3%A9@db/p%2Fq", {"user": "é", "host": "db", "dbname": "p/q"}),
    ],
)
def test_a_url_gives_the_parameters_of_the_connection(text, parameters):
    url = parse_location(text)
    assert isinstance(url, PostgresURL)
    assert (url.parameters, url.schema) == (parameters, "matrixdp")
    assert str(url) == "postgresql" + text[text.index("://") :]
    assert parse_location(url) is url


def test_a_url_may_name_the_schema():
    url = parse_location("postgresql://db/p?schema=clinic_2")
    assert url.schema == "clinic_2"
    assert "schema" not in url.parameters


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann:hunter2@db/p",
        "postgresql://ann@db/p?password=hunter2",
        "postgresql://ann@db/p?password=hunter2&sslmode=require",
        "postgresql://ann@db/p?sslpassword=hunter2",
    ],
)
def test_a_password_is_used_but_not_shown(text):
    url = parse_location(text)
    assert "hunter2" in url.parameters.values()
    for shown in (str(url), repr(url), f"{url}", repr([url]), repr(copy.deepcopy(url))):
        assert "hunter2" not in shown
    assert pickle.loads(pickle.dumps(url)) == url


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann:hunt@er2@db/p",
        "postgresql://ann:hunt/er2@db/p",
        "postgresql://ann:hunt?er2@db/p",
        "postgresql://ann:hunt#er2@db/p",
        "postgresql://ann:12/er2@db/p",
        "postgresql://ann:12?er2@db/p",
        "postgresql://ann:hunt%er2@db/p",
        "postgresql://ann:hunt%ffer2@db/p",
        "postgresql://ann:hunt%00er2@db/p",
        "postgresql://ann:hunt\ner2@db/p",
        "postgresql://ann@db/p?password=hunt&er2",
        "postgresql://ann@db/p?password=hunt&er2=er2",
        "postgresql://ann:hunter2@db:port/p",
        "postgresql://ann:hunter2@db",
        "postgresql://ann:hunter2@db/",
        "postgresql://ann:hunter2@db/?sslmode=require",
        "postgresql://ann:hunter2@db/p?options=-cfsync=off",
        "postgresql://ann:hunter2@db/p?service=er2",
        "postgresql://ann:hunter2@db/p?sslmode",
        "postgresql:/ann:hunter2@db/p",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_and_not_shown(text):
    with pytest.raises(LedgerError, match=r"the ledger's URL|names no database") as refusal:
        parse_location(text)
    assert "hunt" not in str(refusal.value)
    assert "er2" not in str(refusal.value)


def test_a_url_must_not_pass_through_a_path():
    with pytest.raises(LedgerError, match="in text and not as a Path"):
        parse_location(Path("postgresql://ann:hunter2@db/p"))


@pytest.mark.parametrize("name", ["", "A", "1a", "pg_x", "a-b", "a;drop", 'a"b', "é", "a" * 64, "a.b", "%61"])
def test_a_schema_is_a_plain_name(name):
    with pytest.raises(LedgerError, match="schema must be a name of lower-case letters"):
        parse_location(f"postgresql://db/p?schema={name}")
