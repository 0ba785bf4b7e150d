"""The design command: what it predicts, and that it needs no data."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import matrixdp as mdp
from unit.cli.conftest import BUDGET, read_charges


def words(query="moments", *more):
    return ("design", "--schema", "schema.toml", "--query", query, "--records", "500", *BUDGET, *more)


def test_it_predicts_the_standard_deviation_of_every_entry(clinic, matrixdp):
    Path("clinic.csv").unlink()
    facts = matrixdp(*words("moments", "--importance", "bmi=4", "--json")).json()
    bounds = mdp.Bounds([18, 15], [90, 45])
    weights = np.array([1, 4]) / bounds.halfwidths**2
    design = mdp.make_design(
        mdp.Moments(bounds, 500), mdp.Privacy(1, 1e-6), allocation=mdp.allocations.optimal(weights)
    )
    (answer,) = facts["answers"]
    assert answer["std"]["typical"] == design.std.tolist()
    assert answer["columns"] == ["1", "age", "bmi"]
    assert facts["mu"] == design.distance
    assert facts["gain"] == design.gain
    assert facts["excess"] == design.excess


def test_importance_of_one_for_all_is_the_default(clinic, matrixdp):
    plain, weighted = (
        matrixdp(*words("moments", *more, "--json")).json()["answers"][0]["std"]["typical"]
        for more in ([], ["--importance", "age=1"])
    )
    assert np.allclose(plain, weighted, rtol=1e-9)


def test_a_release_has_the_noise_that_its_design_predicts(clinic, matrixdp):
    predicted = matrixdp(*words("second-moment", "--json")).json()["answers"][0]["std"]["typical"]
    place = ("--schema", "schema.toml", "--no-ledger", "--out", "out")
    assert matrixdp("release", "clinic.csv", "--query", "second-moment", *BUDGET, *place).code == 0
    release = mdp.Release.from_json(Path("out/release.json").read_text())
    assert release.std.tolist() == predicted


@pytest.mark.parametrize("query", ["covariance", "correlation", "identity", "gram", "second-moment"])
def test_every_query_can_be_designed_and_drawn(clinic, matrixdp, query):
    method = ["--method", "plain"] if query in ("covariance", "correlation") else []
    done = matrixdp(*words(query, *method, "--plot", "design.svg"))
    assert done.code == 0, done.err
    assert "rror at other epsilons" in done.out
    ElementTree.parse("design.svg")


def test_the_plot_names_the_two_features(clinic, matrixdp):
    assert matrixdp(*words("moments", "--plot", "design.svg", "--features", "bmi,age")).code == 0
    assert "Noise in the means of bmi and age" in Path("design.svg").read_text()


@pytest.mark.parametrize("features", ["bmi", "bmi,bmi", "bmi,height"])
def test_other_features_are_refused(clinic, matrixdp, features):
    done = matrixdp(*words("moments", "--plot", "design.svg", "--features", features))
    assert done.code == 2
    assert "--features" in done.err
    assert not Path("design.svg").exists()


def test_it_shows_what_would_be_left_and_charges_nothing(clinic, matrixdp):
    facts = matrixdp(*words("moments", "--ledger", "clinic.db", "--dataset", "clinic", "--json")).json()
    assert facts["ledger"]["epsilon_left_before"] == pytest.approx(4)
    assert facts["ledger"]["epsilon_left_after"] < 4
    assert read_charges() == []
    over = matrixdp(*words("moments", "--ledger", "clinic.db", "--dataset", "clinic"), "--epsilon", "5")
    assert over.code == 4


def test_records_must_be_known(clinic, matrixdp):
    done = matrixdp("design", "--schema", "schema.toml", "--query", "moments", *BUDGET)
    assert done.code == 2
    assert "--records" in done.err
    schema = Path("schema.toml")
    schema.write_text("records = 500\n" + schema.read_text())
    assert matrixdp("design", "--schema", "schema.toml", "--query", "moments", *BUDGET).code == 0


def test_a_graph_needs_no_records(clinic, matrixdp):
    Path("schema.toml").write_text("[graph]\nnodes = 5\nweight = 2.0\n")
    facts = matrixdp("design", "--schema", "schema.toml", "--query", "laplacian", *BUDGET, "--json").json()
    assert facts["shape"] == [5, 5]
    assert facts["answers"][0]["columns"] == ["0", "1", "2", "3", "4"]


def test_a_plot_that_cannot_be_written_is_an_error(clinic, matrixdp):
    done = matrixdp(*words("moments", "--plot", "schema.toml/x.svg"))
    assert done.code == 2
    assert "--plot" in done.err
