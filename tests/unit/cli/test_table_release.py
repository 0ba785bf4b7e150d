"""Means, tables and everything about a table, by group and with missing values, through the real command."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from matrixdp import Release, TableMoments
from matrixdp.answers.estimate import CUT_NOTE
from unit.cli.conftest import BUDGET, read_charges

USAGE, DATA = 2, 3
SCHEMA = """\
[columns.age]
type = "number"
lower = 18
upper = 90
missing = true
[columns.bmi]
lower = 15
upper = 45
[columns.ward]
type = "category"
levels = ["north", "south", "east"]
[columns.smoker]
type = "yes/no"
[columns.outcome]
type = "category"
levels = ["well", "ill"]
missing = true
"""


@pytest.fixture
def hospital(clinic):
    """A table with categories, missing values and a group of two records, beside the files of the clinic."""
    rng = np.random.default_rng(1)
    count = 4000
    ward = rng.choice(["north", "south"], count)
    ward[:2] = "east"
    age = rng.uniform(30, 70, count).round(2)
    outcome = rng.choice(["well", "ill"], count)
    table = pa.table(
        {
            "age": pa.array(age, mask=rng.random(count) < 0.25),
            "bmi": (26 + 0.1 * (age - 50) + 2 * (ward == "south") + rng.normal(0, 1, count)).round(2),
            "ward": ward,
            "smoker": rng.random(count) < 0.25,
            "outcome": pa.array(outcome, mask=rng.random(count) < 0.25),
        }
    )
    pq.write_table(table, "hospital.parquet", row_group_size=1500)
    pacsv.write_csv(table, "hospital.csv")
    Path("hospital.toml").write_text(SCHEMA)
    return table


def words(query, *more, data="hospital.parquet", schema="hospital.toml", epsilon="4"):
    ledger = ("--ledger", "clinic.db", "--dataset", "clinic")
    budget = ("--epsilon", epsilon, "--delta", "1e-6")
    return ("release", data, "--schema", schema, "--query", query, *budget, *ledger, "--out", "out", *more)


def rows(name):
    with open(f"out/{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def number(name, **wanted):
    """Value and error bar of one line of a CSV file."""
    (found,) = [row for row in rows(name) if all(row[key] == value for key, value in wanted.items())]
    return float(found["value"]), float(found["std"])


def close(found, truth):
    value, std = found
    assert abs(value - truth) < 5 * std, (value, std, truth)


@pytest.mark.parametrize("data", ["hospital.parquet", "hospital.csv"])
def test_means_by_group(hospital, matrixdp, data):
    done = matrixdp(*words("means", "--columns", "age,bmi", "--by", "ward", data=data))
    assert done.code == 0, done.err
    frame = hospital.to_pandas()
    for ward in ("north", "south"):
        part = frame[frame.ward == ward]
        close(number("groups", ward=ward, column="bmi"), part.bmi.mean())
        close(number("groups", ward=ward, column="age"), part.age.mean())
        close(number("groups", ward=ward, column="share of records"), len(part) / len(frame))
    close(number("means", ward="", row="age", column="share observed"), frame.age.notna().mean())
    assert len(read_charges()) == 1


def test_means_of_groups_too_small_for_their_noise_have_intervals_only(hospital, matrixdp):
    done = matrixdp(*words("means", "--columns", "bmi", "--by", "ward", epsilon="1"))
    assert done.code == 0, done.err
    (east,) = [row for row in rows("groups") if row["ward"] == "east" and row["column"] == "bmi"]
    assert east["std"] == east["note"] == ""
    low, value, high = (float(east[name]) for name in ("low", "value", "high"))
    assert low < value < high
    page = Path("out/report.html").read_text()
    assert CUT_NOTE in done.out
    assert "are the ends of a 95% interval" in page
    assert re.search(r"east .*\d \[\d", done.out)
    assert "ward: east" in page


def test_a_table_of_two_categories_adds_up(hospital, matrixdp):
    done = matrixdp(*words("table", "--cells", "smoker,outcome", "--json"))
    assert done.code == 0, done.err
    (answer,) = done.json()["answers"]
    assert answer["rows"] == ["no", "yes", "all"]
    assert answer["columns"] == ["well", "ill", "missing", "all"]
    counts = np.array(answer["value"])
    assert np.allclose(counts[:-1].sum(axis=0), counts[-1])
    assert np.allclose(counts[:, :-1].sum(axis=1), counts[:, -1])
    assert counts[-1, -1] == pytest.approx(4000)
    truth = sum(hospital["smoker"].to_pylist())
    assert abs(counts[1, -1] - truth) < 5 * answer["std"][1][-1]
    assert {"release.json", "provenance.json", "table.csv", "report.html"} == set(done.json()["files"])
    assert number("table", row="all", column="all")[0] == pytest.approx(4000)


def test_everything_in_one_release(hospital, matrixdp):
    done = matrixdp(*words("everything", "--json"))
    assert done.code == 0, done.err
    facts = done.json()
    assert facts["notes"] == []
    files = {answer["file"] for answer in facts["answers"]}
    assert files == {"means.csv", "levels.csv", "means_by_level.csv", "table.csv", "covariance.csv", "correlation.csv"}
    assert files | {"release.json", "provenance.json", "report.html", "correlation.svg"} == set(facts["files"])
    frame = hospital.to_pandas()
    close(number("correlation", row="age", column="bmi"), frame.age.corr(frame.bmi))
    close(number("means_by_level", row="south", column="bmi"), frame.bmi[frame.ward == "south"].mean())
    release = Release.from_json(Path("out/release.json").read_text())
    assert isinstance(release.design.query, TableMoments)
    assert release.means()["bmi", "mean"] == number("means", row="bmi", column="mean")[0]
    page = Path("out/report.html").read_text()
    for text in ("Means by ward", "Counts by two categories", "Correlation", "missing at random", "add up"):
        assert text in page


@pytest.mark.usefixtures("hospital")
def test_histograms_and_quantiles_are_part_of_one_charge(matrixdp):
    Path("hospital.toml").write_text(SCHEMA.replace("upper = 45", "upper = 45\nstep = 1"))
    before = len(read_charges())
    done = matrixdp(*words("everything", "--shapes", "0.2"))
    assert done.code == 0, done.err
    assert len(read_charges()) == before + 1
    assert "\nQuantiles\n" in done.out
    assert "Histogram" not in done.out  # of which the report has pictures
    release = Release.from_json(Path("out/release.json").read_text())
    assert release.query.shapes == 0.2
    assert len(release.histograms()["bmi"].shares) == 31
    report = Path("out/report.html").read_text()
    assert "with a histogram of each number for 20% of the budget" in report
    assert "Histogram of age" in report
    assert [line["row"] for line in rows("quantiles")] == ["age"] * 3 + ["bmi"] * 3
    refused = matrixdp(*words("means", "--shapes", "0.2", "--force"))
    assert (refused.code, "--shapes must be left out for --query means" in refused.err) == (USAGE, True)


def test_two_columns_of_groups(hospital, matrixdp):
    done = matrixdp(*words("correlation", "--columns", "age,bmi", "--by", "ward,smoker", "--json"))
    assert done.code == 0, done.err
    groups = [answer["group"] for answer in done.json()["answers"] if answer["file"] == "correlation.csv"]
    assert len(groups) == 6
    assert {"ward": "south", "smoker": "yes"} in groups
    assert Path("out/matrix.csv").is_file()


def test_covariances_use_the_values_that_are_there(hospital, matrixdp):
    done = matrixdp(*words("covariance", "--columns", "age,bmi"))
    assert done.code == 0, done.err
    table = np.load("out/matrix.npy")
    std = np.loadtxt("out/std.csv", delimiter=",", skiprows=1, usecols=(1, 2))
    frame = hospital.to_pandas()
    truth = frame[["age", "bmi"]].cov(ddof=0).to_numpy()
    assert (np.abs(table - truth) < 5 * std + 0.02).all()


def test_columns_and_importance_are_chosen(hospital, matrixdp):
    plain = matrixdp("design", "--schema", "hospital.toml", "--query", "means", "--records", "4000", *BUDGET, "--json")
    weighed = matrixdp(
        "design", "--schema", "hospital.toml", "--query", "means", "--records", "4000", *BUDGET, "--json",
        "--importance", "bmi=4",
    )  # fmt: skip
    bars = [done.json()["answers"][0]["std"]["typical"] for done in (plain, weighed)]
    assert bars[1][1][0] < bars[0][1][0]
    assert bars[1][0][0] > bars[0][0][0]
    shown = matrixdp("design", "--schema", "hospital.toml", "--query", "everything", "--records", "4000", *BUDGET)
    assert "Predicted error of: Means by ward" in shown.out


def test_the_forecast_follows_the_guesses_of_the_schema(hospital, matrixdp):
    words = ("design", "--schema", "hospital.toml", "--query", "everything", "--records", "4000", *BUDGET)

    def find(*more):
        done = matrixdp(*words, *more)
        assert done.code == 0, done.err
        return done

    answer = find("--json").json()["answers"][-1]
    assert answer["title"] == "Correlation"
    usual = answer["std"]
    assert usual["friendly"][1][0] < usual["typical"][1][0]
    assert usual["hostile"][1][0] is None
    schema = Path("hospital.toml")
    schema.write_text(schema.read_text().replace("[columns.bmi]", "[columns.bmi]\nexpected_std = 0.01"))
    assert find("--json").json()["answers"][-1]["std"]["typical"][1][0] is None
    shown = find().out
    assert "hidden by noise" in shown
    assert "Median error at other epsilons, for typical data" in shown


@pytest.mark.parametrize("query", ["covariance", "moments"])
def test_values_in_place_of_missing_ones_are_pointed_out(clinic, matrixdp, query):
    lines = Path("clinic.csv").read_text().splitlines()
    lines[7] = "," + lines[7].partition(",")[2]
    Path("holes.csv").write_text("\n".join(lines) + "\n")
    method = ("--method", "plain") if query == "covariance" else ()
    more = (*method, "--missing", "midpoint", "--request", "r", "--force")
    shown = words(query, *more, data="holes.csv", schema="schema.toml", epsilon="1")
    done = matrixdp(*shown)
    assert done.code == 0, done.err
    stored = matrixdp(*shown, "--json")
    assert stored.code == 0, stored.err
    texts = [done.out, stored.out, Path("out/report.html").read_text(), Path("out/notes.txt").read_text()]
    for text in texts:
        assert "replaced by the middle of their bounds" in text
        assert "biases" in text
    assert json.loads(Path("out/release.json").read_text())["missing"] == "midpoint"
    plain = matrixdp(*words(query, "--force", "--json", data="clinic.csv", schema="schema.toml", epsilon="1"))
    assert plain.json()["notes"] == []
    assert not Path("out/notes.txt").exists()


def edit(old, new):
    return lambda: Path("hospital.toml").write_text(SCHEMA.replace(old, new))


def write_numbers():
    """The wards as text in one file, and as numbers in another."""
    Path("two").mkdir()
    columns = {"age": [40.0, 50.0], "bmi": [20.0, 21.0], "smoker": [True, False], "outcome": ["well", "ill"]}
    pq.write_table(pa.table({**columns, "ward": ["north", "south"]}), "two/a.parquet")
    pq.write_table(pa.table({**columns, "ward": [1, 2]}), "two/b.parquet")


def write_one():
    pq.write_table(pq.read_table("hospital.parquet").slice(0, 1), "one.parquet")


def write_unknown():
    table = pq.read_table("hospital.parquet")
    ward = table["ward"].to_pylist()
    ward[77] = "SECRET"
    pq.write_table(table.set_column(2, "ward", pa.array(ward)), "unknown.parquet")


def nothing():
    pass


ONLY_CATEGORIES = SCHEMA.partition("[columns.ward]")[1] + SCHEMA.partition("[columns.ward]")[2]
# fmt: off
CASES = {
    "a level twice": (
        edit('"south", "east"', '"south", "south"'), words("means"), USAGE, ["hospital.toml", "'ward'", "twice"],
    ),
    "an unknown level": (write_unknown, words("everything", data="unknown.parquet"), DATA, ["'ward'", "other = true"]),
    "a level missing": (
        edit("missing = true\n[columns.bmi]", "[columns.bmi]"), words("means"), DATA, ["'age'", "--missing"],
    ),
    "a group that may be missing": (nothing, words("means", "--by", "outcome"), USAGE, ["--by", "'outcome'"]),
    "a group of numbers": (nothing, words("means", "--by", "age"), USAGE, ["'age'", "category"]),
    "an unknown group": (nothing, words("means", "--by", "sex"), USAGE, ["--by", "'sex'", "ward"]),
    "a group twice": (nothing, words("means", "--by", "ward,ward"), USAGE, ["--by"]),
    "groups of moments": (nothing, words("moments", "--by", "ward"), USAGE, ["--by", "means"]),
    "groups of cells": (nothing, words("table", "--cells", "ward,smoker", "--by", "ward"), USAGE, ["--by", "'ward'"]),
    "no numbers": (
        lambda: Path("hospital.toml").write_text(ONLY_CATEGORIES), words("means"), USAGE, ["no column holds numbers"],
    ),
    "no numbers chosen": (nothing, words("covariance", "--columns", "ward"), USAGE, ["'ward'", "everything"]),
    "no categories": (
        nothing, words("table", "--cells", "age,bmi", schema="schema.toml"), USAGE, ["'age'", "must be a category"],
    ),
    "no cells": (nothing, words("table"), USAGE, ["--cells", "--query table"]),
    "unknown cells": (nothing, words("table", "--cells", "ward,sex"), USAGE, ["no column 'sex'", "ward"]),
    "one row": (write_one, words("everything", data="one.parquet"), USAGE, ["records", "at least 2"]),
    "numbers in one file and text in another": (
        write_numbers, words("everything", data="two"), DATA, ["'ward'", "numbers", "texts"],
    ),
    "a category in a correlation": (
        nothing, words("correlation"), USAGE, ["'ward' is a category", "--columns age,bmi", "--query everything"],
    ),
    "a yes/no in a correlation": (
        nothing, words("correlation", "--columns", "age,smoker"), USAGE, ["'smoker' is yes/no", "--columns age"],
    ),
    "missing values in moments": (
        nothing, words("moments", "--columns", "age,bmi"), USAGE, ["'age' may be missing", "--missing midpoint"],
    ),
    "yes/no in counts": (nothing, words("counts", "--cells", "ward,smoker"), USAGE, ["'smoker'", "--query table"]),
    "an unknown column": (nothing, words("means", "--columns", "age,sex"), USAGE, ["--columns", "'sex'"]),
    "a column twice": (nothing, words("covariance", "--columns", "age,age"), USAGE, ["--columns", "once"]),
    "columns of a table": (
        nothing, words("table", "--cells", "ward,smoker", "--columns", "age"), USAGE, ["--columns", "--cells"],
    ),
    "a radius": (
        lambda: Path("hospital.toml").write_text("radius = 1.0\n" + SCHEMA), words("means"), USAGE, ["radius"],
    ),
    "directions": (nothing, words("means", "--directions", "axes.npy"), USAGE, ["--directions"]),
    "another calibration": (nothing, words("means", "--calibration", "theorem2"), USAGE, ["--calibration", "exact"]),
    "an unknown importance": (nothing, words("means", "--importance", "sex=2"), USAGE, ["--importance", "sex"]),
    "too large an importance": (nothing, words("means", "--importance", "age=1e300"), USAGE, ["importance"]),
}
# fmt: on


@pytest.mark.parametrize("name", CASES)
def test_mistakes_are_found_before_anything_is_charged(hospital, matrixdp, name):
    prepare, line, code, expected = CASES[name]
    prepare()
    done = matrixdp(*line)
    assert done.code == code, done.err
    for text in expected:
        assert text in done.err, done.err
    assert "SECRET" not in done.err
    assert "Traceback" not in done.err
    assert read_charges() == []
    assert not Path("out").exists()
