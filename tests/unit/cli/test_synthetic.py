"""``matrixdp synthetic``: files that read back by the schema, the report, the warning, and what is refused."""

import datetime
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.answers import synthetic
from matrixdp.domain.file_rules import DateRule
from matrixdp.report.page import write_words
from matrixdp.report.synthetic import list_remarks, make_files
from unit.cli.conftest import TABLE, read_charges

USAGE = 2


@pytest.fixture
def released(clinic, matrixdp, monkeypatch):
    """A release of everything in out/."""
    monkeypatch.setattr(synthetic, "draw_moments", lambda _view: None)  # quick
    Path("table.toml").write_text(TABLE)
    budget = ("--epsilon", "2", "--delta", "1e-6")
    place = ("--ledger", "clinic.db", "--dataset", "clinic", "--out", "out")
    done = matrixdp("release", "clinic.csv", "--schema", "table.toml", "--query", "everything", *budget, *place)
    assert done.code == 0, done.err


def test_a_table_is_written_with_its_report_and_can_be_released(released, matrixdp):
    before = read_charges()
    done = matrixdp("synthetic", "out", "--rows", "300", "--seed", "3", "-o", "made.csv")
    assert done.code == 0, done.err
    assert read_charges() == before
    assert write_words("synthetic_warning")[0] in done.err
    assert "not records" not in done.out + Path("made.csv").read_text()
    report = Path("made.report.html").read_text()
    for words in ("not records of anyone", "Means by level", "Furthest from the release", "beta distribution"):
        assert words in report
    assert pacsv.read_csv("made.csv").num_rows == 300
    checked = matrixdp("check", "made.csv", "--schema", "table.toml")
    assert checked.code == 0, checked.out + checked.err
    options = ("--epsilon", "1", "--delta", "1e-6", "--no-ledger", "--out", "again")
    again = matrixdp("release", "made.csv", "--schema", "table.toml", "--query", "everything", *options)
    assert again.code == 0, again.err


def test_several_tables_and_other_formats(released, matrixdp):
    assert matrixdp("synthetic", "out", "--rows", "50", "--tables", "2", "-o", "made.parquet").code == 0
    assert [pq.read_table(f"made-{k}.parquet").num_rows for k in (1, 2)] == [50, 50]
    assert not pq.read_table("made-1.parquet").equals(pq.read_table("made-2.parquet"))
    few = matrixdp("synthetic", "out", "--rows", "50", "-o", "more.feather")
    assert "50 rows are few" in few.err
    assert feather.read_table("more.feather").column_names == ["age", "bmi", "smoker", "outcome"]


def test_what_is_refused_writes_nothing(released, matrixdp):
    Path("there.csv").write_text("mine")
    Path("reported.report.html").write_text("mine")
    for options, word in (
        (("out", "-o", "made.xlsx"), ".parquet"),
        (("out", "-o", "made.csv", "--rows", "0"), "rows"),
        (("out", "-o", "made.csv", "--tables", "1"), "tables"),
        (("out", "-o", "there.csv"), "--force"),
        (("out", "-o", "reported.csv"), "--force"),
    ):
        done = matrixdp("synthetic", *options)
        assert done.code == USAGE
        assert word in done.err
        assert "Traceback" not in done.err
    assert Path("there.csv").read_text() == "mine"
    assert not Path("made.csv").exists()
    assert not Path("reported.csv").exists()


@pytest.mark.parametrize("question", [("covariance",), ("regression", "--target", "y")])
def test_other_questions_have_no_synthetic_table(question, matrixdp, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(
        "records = 50\n[columns]\n" + "".join(f"{n} = {{ lower = 0, upper = 1 }}\n" for n in "xy")
    )
    Path("n.csv").write_text("x,y\n" + "0.1,0.7\n0.5,0.2\n" * 25)
    options = ("--schema", "s.toml", "--epsilon", "1", "--delta", "1e-6", "--no-ledger", "--out", "out")
    assert matrixdp("release", "n.csv", "--query", *question, *options).code == 0
    done = matrixdp("synthetic", "out", "-o", "made.csv")
    assert done.code == USAGE
    assert "follows from TableMoments (--query everything)" in done.err
    with pytest.raises(mdp.ParameterError, match="TableMoments"):
        mdp.load("out").synthetic()


def test_dates_are_written_as_the_schema_has_them(matrixdp, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    visit = 'visit = { type = "date", lower = 2024-01-01, upper = 2024-12-31, format = "%d.%m.%Y", missing = true }'
    Path("s.toml").write_text(f"records = 112\n[columns]\n{visit}\n")
    Path("visits.csv").write_text(
        "visit\n" + "".join(f"{day:02}.0{month}.2024\n" for day in range(1, 29) for month in "1234")
    )
    options = ("--schema", "s.toml", "--query", "everything", "--epsilon", "1", "--delta", "1e-6", "--no-ledger")
    assert matrixdp("release", "visits.csv", *options, "--out", "out").code == 0
    assert matrixdp("synthetic", "out", "-o", "made.csv").code == 0
    assert matrixdp("release", "made.csv", *options, "--out", "again").code == 0
    assert matrixdp("synthetic", "out", "-o", "typed.parquet").code == 0
    assert pa.types.is_date(pq.read_table("typed.parquet").schema.field("visit").type)
    assert "visit (days since" in Path("typed.report.html").read_text("utf-8")


def test_the_report_has_the_columns_beside_the_release_and_pairs_of_two_levels_once(released, matrixdp):
    assert matrixdp("synthetic", "out", "-o", "made.csv").code == 0
    page, made = Path("made.report.html").read_text("utf-8"), pacsv.read_csv("made.csv")
    parts = page.split("<h2")
    (columns,), (furthest,) = ([part for part in parts if name in part[:80]] for name in (">Columns<", "Furthest"))
    assert all(f"{name}: standard deviation" in columns for name in ("age", "bmi"))
    share = f"{np.mean(np.array(made.column('smoker').to_pylist()) == 'yes'):.2f}"
    assert re.search(rf"smoker=yes.*?{share}", columns, re.DOTALL)
    assert "smoker=no" in furthest  # the last of two levels
    assert "smoker=yes" not in furthest


def test_pairs_that_noise_hides_wholly_are_not_drawn_and_bins_are_explained():
    """A bin without values has a standard deviation of nearly zero, so that noise is large beside it."""
    columns = mdp.Columns([mdp.Number("x", 0, 1000), mdp.Category("c", ["a", "b", "rare"])])
    data = {"x": np.linspace(0, 300, 500), "c": ["a", "b"] * 250}
    query = mdp.TableMoments(columns, 500, bins=8)
    release = mdp.make_design(query, mdp.Privacy(1, 1e-6)).release(data, stream=mdp.Stream(seed=1), simulation=True)
    files, table = make_files(release, Path("made.csv"), rows=400)
    report, left = [*files.values()][1].decode(), int((table.comparison.std > 1).sum())
    assert left > 0
    assert f"Not drawn: {left:,} pairs" in report
    assert "bin 1 of a number" in report


def test_few_rows_are_no_contradiction():
    columns = mdp.Columns([mdp.Number("x", 0, 100), mdp.Category("c", ["a", "b"])])
    design = mdp.make_design(mdp.TableMoments(columns, 500, shapes=0.1), mdp.Privacy(10, 1e-6))
    release = design.release({"x": np.arange(500) % 100, "c": ["a", "b"] * 250}, stream=mdp.Stream(0), simulation=True)
    table = replace(make_files(release, Path("made.csv"), rows=10)[1], misfit=0.7)
    remarks = list_remarks(release, table)
    why = "so that they cannot fit the release (misfit 0.70)"
    assert remarks[2:] == [f"10 rows are few: shares are rounded to whole rows, {why}."]


def test_what_a_reader_must_know_is_said():
    """Rows far above the records, columns that contradict each other, levels that noise hides, wide bounds."""
    rng = np.random.default_rng(0)
    levels = [mdp.Category("a", ["p", "q"]), mdp.Category("b", ["u", "v", "rare"]), mdp.Number("x", 0, 1e6)]
    data = {"a": rng.choice(["p", "q"], 500), "b": rng.choice(["u", "v"], 500), "x": rng.random(500)}
    found = {}
    for pairs in ((), [{"a": "p", "b": "u"}]):  # which half of the records of p have
        query = mdp.TableMoments(mdp.Columns(levels, impossible=pairs), 500)
        release = mdp.make_design(query, mdp.Privacy(4, 1e-6)).release(data, stream=mdp.Stream(0), simulation=True)
        for rows in (500, 1001):
            files, table = make_files(release, Path("made.csv"), rows=rows)
            found[bool(pairs), rows] = list_remarks(release, table)[2:]  # after the warning, and that it is simulated
        report = files[Path("made.report.html")].decode()
        assert "Hidden by noise, and so a guess: share of b=rare, spread of x." in report
    many = "1,001 rows hold no more information than the 500 records of the release."
    assert found[False, 500] == []
    assert found[False, 1001] == [many]
    shown = "The table has no pairs that cannot occur by the schema, but the release shows some: a=p × b=u."
    assert [*map(sorted, (found[True, 500], found[True, 1001]))] == [[shown], sorted([shown, many])]
    words, *_ = list_remarks(release, replace(table, misfit=0.7))[2:]
    assert words.startswith("The table does not fit the release (misfit 0.70): its columns and their pairs")
    assert words.endswith("Else check the bounds, or release histograms with --shapes.")


def test_a_table_and_its_report_follow_from_the_stored_release_alone(tmp_path):
    columns = mdp.Columns([mdp.Number("x", 0, 9, missing=True), mdp.Category("c", ["a", "b"])])
    design = mdp.make_design(mdp.TableMoments(columns, 300, shapes=0.1), mdp.Privacy(1, 1e-6))
    data = {"x": np.arange(300.0) % 9, "c": ["a", "b"] * 150}
    release = design.release(data, stream=mdp.Stream(0), simulation=True)
    before = release.to_json()
    Path(tmp_path / "release.json").write_text(before)
    expected, _ = make_files(release, Path("made.csv"), rows=200, tables=2, seed=4)
    data["x"][:] = 0
    assert make_files(mdp.load(tmp_path / "release.json"), Path("made.csv"), rows=200, tables=2, seed=4)[0] == expected
    assert release.to_json() == before


def test_dates_and_one_column_alone():
    columns = mdp.Columns([mdp.Number("born", 0, 36500, missing=True)])
    design = mdp.make_design(mdp.TableMoments(columns, 200), mdp.Privacy(1, 1e-6))
    release = design.release({"born": np.arange(200.0)}, stream=mdp.Stream(seed=1), simulation=True)
    rule = DateRule("born", "days", datetime.date(1900, 1, 1), "%d.%m.%Y")
    files, _ = make_files(release, Path("made.csv"), rows=120, dates=[rule])
    table, report = files.values()
    dates = [line.strip('"') for line in table.decode().split()[1:] if line]
    assert all(datetime.datetime.strptime(date, "%d.%m.%Y").year >= 1900 for date in dates)
    assert b"simulation that protects nothing" in report
