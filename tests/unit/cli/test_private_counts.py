"""Where the number of records is private, nothing that a terminal shows depends on it."""

import io
import re
import sys

import pyarrow.csv as pacsv
import pytest

from matrixdp.cli.main import run


class Terminal(io.StringIO):
    """Standard error that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def shown(clinic, monkeypatch):
    """What a release of so many records shows on standard error, and its exit code."""

    def call(records, *options):
        pacsv.write_csv(clinic.table.slice(0, records), "some.csv")
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        words = ["release", "some.csv", "--schema", "schema.toml", "--query", "moments", "--epsilon", "1"]
        words += ["--delta", "1e-6", "--no-ledger", "--out", f"out-{records}-{len(options)}", *options]
        return run(words), re.sub(r"[\d,]+ rows/s", "", terminal.getvalue())

    return call


def test_neighbours_show_the_same(shown):
    options = ("--neighbours", "add-remove", "--records", "200")
    assert shown(200, *options) == shown(199, *options) == shown(20, *options) == (0, "")


def test_a_public_number_is_shown(shown):
    code, text = shown(200)
    assert code == 0
    assert "reading some.csv" in text


def test_an_error_shows_the_public_number_only(shown):
    """A data set of more than twice the public number is refused, without saying how many records it has."""
    texts = {shown(records, "--neighbours", "add-remove", "--records", "60") for records in (121, 150, 433)}
    (result,) = texts
    assert result[0] != 0
    assert "2 x 60" in result[1]


def test_the_number_of_records_is_not_counted_where_it_is_private(shown):
    code, text = shown(200, "--neighbours", "add-remove")
    assert code != 0
    assert "--records must be given" in text
