"""The dossier names every release of a data set, what it cost and its answers, and how to verify the ledger."""

import json

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.cli.main import run
from matrixdp.ledger import Gaussian, Ledger
from matrixdp.release.options import title_charge
from matrixdp.report.dossier import charge_epsilon, write_dossier

COLUMNS = {"age": (0, 100), "stay": (0, 60), "ward": ["surgery", "medicine"]}


@pytest.fixture
def ledger(tmp_path):
    rng = np.random.default_rng(0)
    table = {"age": rng.uniform(20, 90, 500), "stay": rng.uniform(0, 20, 500), "ward": ["surgery", "medicine"] * 250}
    path = tmp_path / "clinic.db"
    with Ledger.create(path, actor="ann", purpose="quality <report> (approved by bob)") as made:
        made.register("clinic", mdp.Privacy(4, 1e-6), neighbours="replace")
        made.register("other", mdp.Privacy(1, 1e-6), neighbours="replace")
        budget = {"epsilon": 1, "delta": 1e-6, "ledger": made, "dataset": "clinic"}
        mdp.release_table(table, COLUMNS, **budget, request="all")
        mdp.release_table(table, COLUMNS, **budget, request="groups", question="means", by=["ward"])
        numbers = {name: bounds for name, bounds in COLUMNS.items() if name != "ward"}
        mdp.release_table(table, numbers, **budget, request="fit", question="regression", target="stay")
        made.charge("clinic", Gaussian(0.1), neighbours="replace", description={"query": "an own mean"})
    with Ledger.open(path) as opened:
        yield opened


def test_charges_are_named_by_their_question_and_epsilon(ledger):
    charges = ledger.history("clinic")
    titles = ["Everything", "Means of age, stay by ward", "A regression of stay", "an own mean"]
    assert [title_charge(charge) for charge in charges] == titles
    assert [charge_epsilon(charge, 1e-6) for charge in charges[:3]] == [1.0, 1.0, 1.0]
    assert mdp.Privacy(charge_epsilon(charges[3], 1e-6), 1e-6).mu == pytest.approx(0.1)


def test_it_has_every_release_with_its_share_of_the_total(ledger):
    page = write_dossier(ledger, "clinic")
    for words in ("Means of age, stay by ward", "A regression of stay", "an own mean", "charged; no release is stored"):
        assert words in page
    mu, total = mdp.Privacy(1, 1e-6).mu, mdp.Privacy(4, 1e-6).mu
    assert page.count(f"{(mu / total) ** 2:.1%}") == 3  # squares of mu add up
    assert "quality &lt;report&gt;</td><td>ann</td><td>bob</td>" in page
    head = ledger.head
    assert f"matrixdp ledger verify LEDGER --anchor {head.entry}:{head.hash}" in page


def test_dates_are_dates_and_the_contact_is_that_of_the_schema(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (
        'contact = "data@clinic.example"\n[columns]\nborn = { type = "date", lower = 1900-01-01, upper = 2020-12-31 }\n'
    )
    (tmp_path / "schema.toml").write_text(text)
    (tmp_path / "a.csv").write_text("born\n" + "1960-05-01\n1970-05-01\n" * 500)
    total = ["--epsilon", "4", "--delta", "1e-6"]
    ledger, data = ["--ledger", "l.db", "--dataset", "d"], ["a.csv", "--schema", "schema.toml"]
    assert run(["ledger", "new", "l.db", "--dataset", "d", *total, "--count", "public"]) == 0
    assert run(["release", *data, "--query", "means", *total, *ledger, "--out", "out"]) == 0
    assert run(["dossier", "l.db", "--dataset", "d", "--schema", "schema.toml", "--out", "dossier.html"]) == 0
    page = (tmp_path / "dossier.html").read_text()
    assert "data@clinic.example" in page
    assert "born: a date, shown in days since 1900-01-01; its mean is 196" in page
    capsys.readouterr()
    assert run(["ledger", "history", "l.db", "--json"]) == 0
    (charge,) = json.loads(capsys.readouterr().out)
    assert (charge["question"], charge["epsilon"]) == ("Means of born", 4.0)

    assert run(["release", *data, "--query", "means", *total, *ledger, "--out", "again"]) == 4
    note = f"this question was released from d on {charge['time'][:10]}"
    error = capsys.readouterr().err
    assert note in error
    assert f"--request {charge['request']}" in error
    assert (
        run(["release", *data, "--query", "means", *total, *ledger, "--out", "b", "--request", charge["request"]]) == 0
    )
    assert note not in capsys.readouterr().err


def test_it_verifies_the_ledger_first(ledger, monkeypatch):
    def fail(*_):
        raise mdp.LedgerError("altered")

    monkeypatch.setattr(type(ledger), "verify", fail)
    with pytest.raises(mdp.LedgerError, match="altered"):
        write_dossier(ledger, "clinic")


def test_the_command_writes_one_file_and_replaces_none(ledger, tmp_path, capsys):
    words = ["dossier", str(ledger.path), "--dataset", "other", "--out", str(tmp_path / "dossier.html")]
    assert run(words) == 0
    assert "Nothing has been released." in (tmp_path / "dossier.html").read_text()
    assert run(words) == 2
    assert "already exists" in capsys.readouterr().err
    assert run([*words, "--force"]) == 0
