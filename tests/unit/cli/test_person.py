"""Releases that protect people with several rows, and nodes of a graph, through the real command."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from matrixdp import Ledger, Person, Release, from_json
from matrixdp.release.adaptive_release import AdaptiveRelease
from unit.cli.conftest import BUDGET

USAGE, DATA, REFUSED = 2, 3, 4
SCHEMA = """\
[columns.height]
lower = 100
upper = 220
[columns.weight]
lower = 40
upper = 160
[columns.ward]
type = "category"
levels = ["north", "south"]
[columns.ill]
type = "category"
levels = ["yes", "no"]
"""
PEOPLE, ROWS = 400, 1000


@pytest.fixture
def visits(tmp_path, monkeypatch):
    """A table of visits, whose patients have one to about ten rows in several files."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    patient = np.concatenate([np.arange(PEOPLE), rng.zipf(1.6, ROWS - PEOPLE) % PEOPLE])
    rng.shuffle(patient)
    tall = rng.normal(170, 10, PEOPLE)[patient]
    table = pa.table(
        {
            "patient_id": [f"secret-{number}" for number in patient],
            "height": tall.round(1),
            "weight": (75 + 0.5 * (tall - 170) + rng.normal(0, 5, ROWS)).round(1),
            "ward": rng.choice(["north", "south"], ROWS),
            "ill": rng.choice(["yes", "no"], ROWS),
        }
    )
    pacsv.write_csv(table, "visits.csv")
    Path("visits").mkdir()
    for part in range(4):
        pq.write_table(table.slice(part * 250, 250), f"visits/{part}.parquet")
    Path("schema.toml").write_text(SCHEMA)
    Path("person.toml").write_text(SCHEMA + '[person]\ncolumn = "patient_id"\n')
    return table


@pytest.fixture
def ledger(visits, matrixdp):
    """A ledger whose data set `visits` is for persons, and `rows` for records."""
    answer = matrixdp(
        "ledger", "new", "l.db", "--dataset", "visits", "--epsilon", 8, "--delta", "1e-6", "--person", "patient_id"
    )
    assert answer.code == 0, answer.err
    assert "person:patient_id" in answer.out
    assert matrixdp("ledger", "add", "l.db", "--dataset", "rows", "--epsilon", 8, "--delta", "1e-6").code == 0
    return Path("l.db")


def argv(data="visits.csv", query="everything", *more, schema="schema.toml", out="out"):
    ledger = () if "--ledger" in more else ("--no-ledger",)
    return ("release", data, "--schema", schema, "--query", query, *BUDGET, "--out", out, *more, *ledger)


PERSON = ("--person", "patient_id")


def all_text(folder):
    return "".join(path.read_text(errors="ignore") for path in Path(folder).rglob("*") if path.is_file())


QUERIES = ["everything", "means", "covariance", "components", "regression", "moments", "table", "counts"]


@pytest.mark.parametrize("query", [*QUERIES, "second-moment"])
@pytest.mark.parametrize("data", ["visits.csv", "visits"])
def test_each_person_counts_once(query, data, visits, matrixdp, ledger):
    more = {"table": ("--cells", "ward,ill"), "counts": ("--cells", "ward,ill")}.get(query, ())
    if query in ("covariance", "components", "regression", "moments", "second-moment"):
        more = ("--columns", "height,weight", *(("--target", "weight") if query == "regression" else ()))
    answer = matrixdp(*argv(data, query, *PERSON, *more, "--ledger", "l.db", "--dataset", "visits", "--json"))
    assert answer.code == 0, answer.err
    assert answer.json()["unit"] == "person:patient_id"
    release = from_json(Path("out/release.json").read_text())
    records = release.design.query.records if isinstance(release, Release) else release.records
    assert records == PEOPLE  # counted, since their number is public
    assert isinstance(release, AdaptiveRelease) == (query in ("covariance", "correlation", "components", "regression"))
    assert str(release.unit) == "person:patient_id"
    assert "secret" not in all_text("out") + answer.out + answer.err
    page = Path("out/report.html").read_text()
    assert "one person with all their rows" in page
    assert f"{PEOPLE:,} people" in page
    assert "Each person counts once" in page
    assert "k times weaker" not in page
    assert str(Ledger.open("l.db").history()[0].unit) == "person:patient_id"


def test_the_schema_names_the_person(visits, matrixdp):
    answer = matrixdp(*argv(schema="person.toml"))
    assert answer.code == 0, answer.err
    assert "protects one person with all their rows" in answer.out
    first = Release.from_json(Path("out/release.json").read_text()).design.query
    assert matrixdp(*argv("visits.csv", "everything", *PERSON, out="again")).code == 0
    again = Release.from_json(Path("again/release.json").read_text()).design.query
    assert first.person == again.person


def test_rows_count_up_to_a_number_a_person(visits, matrixdp):
    more = ("--columns", "height,weight", *PERSON, "--rows-per-person", 3)
    answer = matrixdp(*argv("visits.csv", "moments", *more))
    assert answer.code == USAGE
    assert "--records must be given with --rows-per-person" in answer.err
    answer = matrixdp(*argv("visits.csv", "moments", *more, "--records", 900))
    assert answer.code == 0, answer.err
    page = Path("out/report.html").read_text()
    assert "about 900 rows" in page
    assert "with more than 3 of them together count as 3" in page
    answer = matrixdp(*argv("visits.csv", "correlation", *more, "--records", 900, "--force"))
    assert answer.code == 0, answer.err
    assert "an adaptive fit. With 2 features and 900 rows" in answer.out
    page = Path("out/report.html").read_text()
    assert "about 900 rows" in page
    assert "with more than 3 of them together count as 3" in page
    found = from_json(Path("out/release.json").read_text())
    assert found.moment.person == Person("patient_id", rows=3)


def test_add_remove_needs_a_public_number(visits, matrixdp):
    answer = matrixdp(*argv("visits.csv", "everything", *PERSON, "--neighbours", "add-remove"))
    assert answer.code == USAGE
    answer = matrixdp(*argv("visits.csv", "everything", *PERSON, "--neighbours", "add-remove", "--records", 500))
    assert answer.code == 0, answer.err
    assert "about 500 people (a public figure; their true number is private)" in Path("out/report.html").read_text()


@pytest.mark.parametrize("query", ["identity", "gram"])
def test_rows_of_a_data_set(query, visits, matrixdp, tmp_path):
    Path("points.csv").write_text("height,weight\n170,70\n150,60\n")
    more = ("--columns", "height,weight", *PERSON, *(("--points", "points.csv") if query == "gram" else ()))
    answer = matrixdp(*argv("visits.csv", query, *more))
    assert answer.code == USAGE
    assert "--rows-per-person 3" in answer.err
    answer = matrixdp(*argv("visits.csv", query, *more, "--rows-per-person", 2))
    assert answer.code == DATA
    assert "has more than 2 rows" in answer.err
    assert "secret" not in answer.err
    answer = matrixdp(*argv("visits.csv", query, *more, "--rows-per-person", 700))
    assert answer.code == 0, answer.err
    assert "protects the values in all rows of one person" in answer.out


def test_a_ledger_for_persons_refuses_rows_and_others(ledger, matrixdp):
    to = ("--ledger", "l.db", "--dataset")
    for dataset, more in (("visits", ()), ("rows", PERSON)):
        answer = matrixdp(*argv("visits.csv", "everything", *more, *to, dataset))
        assert answer.code == REFUSED
        assert "is registered for releases that protect" in answer.err
        assert "Nothing was charged" in answer.err
        assert not Path("out").exists()
    assert "If each person has one row at most, design the release for records" in answer.err
    assert "ledger add --person patient_id" in answer.err
    answer = matrixdp(
        "design", "--schema", "schema.toml", "--query", "everything", "--records", 500, *BUDGET, *to, "visits"
    )
    assert answer.code == REFUSED
    assert Ledger.open("l.db").history() == []
    shown = matrixdp("ledger", "show", "l.db", "--json").json()
    assert [fact["unit"] for fact in shown["datasets"]] == ["person:patient_id", "record"]
    verified = matrixdp("ledger", "verify", "l.db")
    assert "visits protects one person with all their rows, replace neighbours." in verified.out
    assert matrixdp("ledger", "verify", "l.db", "--json").json()["units"] == {
        "visits": "person:patient_id",
        "rows": "record",
    }
    metrics = matrixdp("ledger", "metrics", "l.db").out
    assert 'dataset_info{dataset="visits",neighbours="replace",unit="person:patient_id"} 1' in metrics


def test_a_design_needs_no_data(visits, matrixdp):
    words = ("design", "--schema", "person.toml", "--query", "means", "--records", PEOPLE, *BUDGET)
    answer = matrixdp(*words)
    assert answer.code == 0, answer.err
    assert "protects one person with all their rows" in answer.out
    assert matrixdp(*words, "--json").json()["unit"] == "person:patient_id"
    assert "the public number of people" in matrixdp(*words[:5], *BUDGET).err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--person", "household", "--schema", "person.toml"), "--person must be 'patient_id'"),
        (("--rows-per-person", "3"), "--person must be given with --rows-per-person"),
        (("--person", "patient_id", "--rows-per-person", "0"), "--rows-per-person must be"),
        (("--person", "height"), "column 'height' says whose each row is"),
        (("--person", "nobody"), "nobody"),
        (("--person", ""), "printable text"),
        (("--rows-per-person", "4", "--schema", "three.toml"), "--rows-per-person must be 3"),
    ],
)
def test_conflicts_are_errors(visits, matrixdp, words, message):
    Path("three.toml").write_text(SCHEMA + '[person]\ncolumn = "patient_id"\nrows = 3\n')
    answer = matrixdp(*argv("visits.csv", "everything", *words))
    assert answer.code in (USAGE, DATA)
    assert message in answer.err
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("[person]\n", '[person] column must be given: the column with the ids of people, as in column = "NAME"'),
        ("[person]\ncolumn = 3\n", "[person] column must be the name of a column, got 3"),
        ('[person]\ncolumn = "patient_id"\nrows = 0\n', "rows must be a positive integer, got 0"),
        ('[person]\ncolumn = "patient_id"\nrows = true\n', "rows must be a positive integer"),
        ('[person]\nname = "patient_id"\n', "unknown entry 'name'"),
        ("person = 3\n", "person must be a table"),
    ],
)
def test_wrong_schemas(visits, matrixdp, entry, message):
    text = entry + SCHEMA if entry.startswith("person =") else SCHEMA + entry
    Path("wrong.toml").write_text(text)
    answer = matrixdp("schema", "check", "wrong.toml")
    assert answer.code == USAGE
    assert message in answer.err


def test_a_schema_shows_its_person(visits, matrixdp):
    answer = matrixdp("schema", "check", "person.toml", "--data", "visits.csv")
    assert answer.code == 0, answer.err
    assert "protects one person with all their rows (column 'patient_id'); each counts once" in answer.out
    assert matrixdp("schema", "check", "person.toml", "--json").json()["person"]["column"] == "patient_id"


@pytest.mark.parametrize(("unit", "neighbours"), [("node", "replace"), ("node", "add-remove"), ("edge", "add-remove")])
def test_graphs(tmp_path, monkeypatch, matrixdp, unit, neighbours):
    monkeypatch.chdir(tmp_path)
    Path("graph.toml").write_text(
        '[graph]\nnodes = 6\nunit = "node"\nmax_degree = 2\n' if unit == "node" else "[graph]\nnodes = 6\n"
    )
    Path("edges.csv").write_text("\n".join(["source,target", *(f"0,{i}" for i in range(1, 6)), "1,2"]) + "\n")
    words = ("ledger", "new", "g.db", "--dataset", "ties", "--epsilon", 4, "--delta", "1e-6")
    assert matrixdp(*words, "--unit", unit, "--count", "private" if neighbours == "add-remove" else "public").code == 0
    more = ("--neighbours", neighbours, "--ledger", "g.db", "--dataset", "ties")
    answer = matrixdp(*argv("edges.csv", "laplacian", *more, schema="graph.toml"))
    assert answer.code == 0, answer.err
    assert f"protects one {unit}" in answer.out
    assert json.loads(Path("out/release.json").read_text())["unit"] == unit
    page = Path("out/report.html").read_text()
    assert ("one node with all its edges" in page) == (unit == "node")
    assert ("all those of one node, it is about k times weaker" in page) == (unit == "edge")
    answer = matrixdp(*argv("edges.csv", "laplacian", *PERSON, schema="graph.toml", out="other"))
    assert answer.code == USAGE
    assert "--person must be left out for --query laplacian" in answer.err


@pytest.mark.parametrize(
    "entry", ['unit = "node"', "max_degree = 3", 'unit = "person"', 'unit = "edge"\nmax_degree = 2']
)
def test_wrong_units_of_graphs(tmp_path, monkeypatch, matrixdp, entry):
    monkeypatch.chdir(tmp_path)
    Path("graph.toml").write_text(f"[graph]\nnodes = 6\n{entry}\n")
    answer = matrixdp("schema", "check", "graph.toml")
    assert answer.code == USAGE
    assert '[graph] unit must be "edge", without max_degree, or "node"' in answer.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--unit", "person"), "--person COLUMN must be given with --unit person"),
        (("--unit", "node", "--person", "id"), "--unit must be person or values with --person"),
        (("--unit", "household"), "household"),
    ],
)
def test_wrong_units_of_ledgers(tmp_path, monkeypatch, matrixdp, words, message):
    monkeypatch.chdir(tmp_path)
    answer = matrixdp("ledger", "new", "l.db", "--dataset", "d", *BUDGET, *words)
    assert answer.code == USAGE
    assert message in answer.err
    assert not Path("l.db").exists()


@pytest.mark.parametrize("more", [(), ("--rows-per-person", "2")])
def test_audits_attack_people(visits, matrixdp, more):
    answer = matrixdp("audit", "--schema", "person.toml", *BUDGET, "--starts", 1, "--json", *more)
    assert answer.code == 0, answer.err
    audited = [found["subject"].split()[0] for found in answer.json()["results"]]
    assert ("identity" in audited) == bool(more)
    assert {"moments", "everything", "counts"} <= set(audited)
