"""``matrixdp stream``: opened once, published by a scheduler, an alert when a period is missing, restarted."""

import datetime
import json

import pytest

from matrixdp.cli.main import run

SCHEMA = """\
expected_records = 40
[columns.age]
lower = 0
upper = 100
[columns.ward]
type = "category"
levels = ["a", "b"]
"""
TODAY = datetime.date.today()
DAYS = [(TODAY - datetime.timedelta(days=days)).isoformat() for days in (4, 3, 2, 1)]
PLAN = ["--schema", "ward.toml", "--query", "everything", "--every", "day", "--when", "day", "--epsilon", "1"]
PLAN += ["--delta", "1e-6"]
PAID = ["--ledger", "clinic.db", "--dataset", "clinic"]


@pytest.fixture
def ask(tmp_path, monkeypatch, capsys):
    """A function that runs a command and returns its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ward.toml").write_text(SCHEMA)
    rows = [f"{day},{20 + i},{'ab'[i % 2]}" for day in DAYS for i in range(40)]
    (tmp_path / "ward.csv").write_text("\n".join(["day,age,ward", *rows]) + "\n")

    def call(*words):
        code = run(list(words))
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    total = ["--epsilon", "3", "--delta", "1e-6", "--count", "private"]
    assert call("ledger", "new", "clinic.db", "--dataset", "clinic", *total)[0] == 0
    return call


def test_a_stream_from_its_design_to_its_end(ask, tmp_path):
    assert "would be left once it is open" in ask("stream", "design", *PLAN, *PAID)[1]
    assert "ward.json and ward.schema.toml" in ask("stream", "open", "ward", *PLAN, *PAID)[1]
    assert "not charged again" in ask("stream", "open", "ward", *PLAN, *PAID)[1]
    assert ask("stream", "status", "ward.json", "--alert-after", "1 hour")[0] == 9  # nothing so far
    assert "must be named" in ask("stream", "status", "ward")[1]
    assert "no steps so far" in ask("answer", "means", "ward", "--last", "3")[1]
    code, shown = ask("stream", "publish", "ward", "ward.csv", *PAID)
    assert "--step must be given: the first day to publish (this day is 2" in shown
    assert ask("stream", "publish", "ward", "ward.csv", "--step", DAYS[0], *PAID)[0] == 0
    code, shown = ask("stream", "status", "ward", "--alert-after", "1 hour")
    assert (code, DAYS[2] in shown) == (9, True)
    assert DAYS[3] in ask("stream", "publish", "ward", "ward.csv", *PAID)[1]
    assert "--last must be an integer from 1 to 4" in ask("answer", "means", "ward", "--last", "9")[1]
    assert f"{DAYS[0]} to {DAYS[1]}" in ask("answer", "means", "ward", "--periods", f"{DAYS[0]},{DAYS[1]}")[1]
    assert f"Means, {DAYS[1]}\n" in ask("answer", "means", "ward.json", "--periods", DAYS[1])[1]
    for more in (["--periods", DAYS[1], "--last", "1"], ["--periods", ",".join(DAYS)]):
        assert "either --last N, or --periods" in ask("answer", "means", "ward", *more)[1]
    assert "Nothing to publish" in ask("stream", "publish", "ward", "ward.csv", *PAID)[1]
    code, shown = ask("stream", "status", "ward", "--alert-after", "1 hour", *PAID)
    assert (code, "the same hashes" in shown) == (0, True)
    assert ask("stream", "report", "ward.json", "--by", "ward", "--out", "ward.html")[0] == 0
    difference = ["--of", "age", "--difference", f"{DAYS[3]},{DAYS[2]}"]
    assert f"{DAYS[3]} - {DAYS[2]}" in ask("answer", "series", "ward.json", *difference)[1]
    facts = json.loads(ask("ledger", "history", "clinic.db", "--json")[1])
    assert [one["name"] for one in facts[0]["steps"]] == DAYS
    (tmp_path / "ward.state").unlink()
    code, shown = ask("stream", "publish", "ward", "ward.csv", *PAID)
    assert (code, "restart" in shown) == (4, True)
    assert "after 4 steps" in ask("stream", "restart", "ward", *PAID)[1]


def test_a_public_file_that_was_altered_is_noticed(ask, tmp_path):
    ask("stream", "open", "ward", *PLAN, *PAID)
    ask("stream", "publish", "ward", "ward.csv", "--step", DAYS[0], *PAID)
    content = json.loads((tmp_path / "ward.json").read_text())
    content["steps"][0]["noisy"][-1] += 1
    (tmp_path / "ward.json").write_text(json.dumps(content))
    code, shown = ask("stream", "status", "ward", *PAID)
    assert (code, "does not have the 1 steps of the ledger" in shown) == (4, True)
