"""Commands that share a budget: allowances and metrics."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from matrixdp import Ledger
from matrixdp.ledger import Gaussian
from unit.cli.conftest import BUDGET, argv, read_charges

RETURN = ("ledger", "return", "clinic.db", "--dataset", "clinic")


def allow(matrixdp, name, *size):
    return matrixdp("ledger", "allow", "clinic.db", "--dataset", "clinic", "--allowance", name, *size)


def test_an_allowance_from_its_beginning_to_its_end(clinic, matrixdp):
    assert allow(matrixdp, "ann", "--epsilon", "1.5").code == 0
    done = allow(matrixdp, "bob", "--share", "1/4", "--json")
    (dataset,) = done.json()["datasets"]
    assert [found["name"] for found in dataset["allowances"]] == ["ann", "bob"]
    assert dataset["allowances"][0]["epsilon"] == 1.5
    assert dataset["left"]["epsilon"] < dataset["unspent"]["epsilon"] == 4.0
    released = matrixdp(*argv("clinic.csv", "moments", "--allowance", "ann", "--json"))
    assert released.code == 0, released.err
    facts = released.json()["ledger"]
    assert facts["allowance"] == "ann"
    assert facts["left_before"] == pytest.approx(1.5)
    assert facts["left_after"] < 1.1
    (charge,) = matrixdp("ledger", "history", "clinic.db", "--json").json()
    assert charge["allowance"] == "ann"
    assert "ann" in matrixdp("ledger", "history", "clinic.db").out
    again = matrixdp(*argv("clinic.csv", "moments", "--allowance", "ann", "--epsilon", "1.2", "--force"))
    assert again.code == 4
    assert "the allowance 'ann' of 'clinic' has epsilon" in again.err
    returned = matrixdp("ledger", "return", "clinic.db", "--dataset", "clinic", "--allowance", "ann")
    assert returned.code == 0
    assert "returned" in returned.out
    assert matrixdp(*argv("clinic.csv", "moments", "--allowance", "ann", "--force")).code == 4
    assert len(read_charges()) == 1
    assert matrixdp("ledger", "verify", "clinic.db").code == 0


def test_a_report_names_the_allowance(clinic, matrixdp):
    allow(matrixdp, "ann", "--epsilon", "1.5")
    assert matrixdp(*argv("clinic.csv", "moments", "--allowance", "ann")).code == 0
    page = (clinic.path / "out" / "report.html").read_text()
    assert "The budget of “clinic”, from its part “ann”, paid for this release" in page
    assert "(ε = 1.5 at" in page


def test_designs_and_whatif_of_an_allowance(clinic, matrixdp):
    allow(matrixdp, "ann", "--epsilon", "1.5")
    account = ("--dataset", "clinic", "--allowance", "ann")
    before = matrixdp("ledger", "whatif", "clinic.db", *account, *BUDGET, "--json").json()
    assert (before["allowance"], round(before["epsilon_left_before"], 9)) == ("ann", 1.5)
    assert "ann" in matrixdp("ledger", "whatif", "clinic.db", *account, *BUDGET).out
    assert matrixdp("ledger", "whatif", "clinic.db", *account, "--epsilon", "2", "--delta", "1e-6").code == 4
    words = ("design", "--schema", "schema.toml", "--query", "moments", "--records", "500", *BUDGET)
    shown = matrixdp(*words, "--ledger", "clinic.db", *account, "--json").json()["ledger"]
    assert shown["epsilon_left_after"] == pytest.approx(before["epsilon_left_after"], rel=1e-6)


@pytest.mark.parametrize("size", [(), ("--epsilon", "1", "--share", "0.5"), ("--share", "all"), ("--epsilon", "-1")])
def test_sizes_that_are_not_clear_are_refused(clinic, matrixdp, size):
    assert allow(matrixdp, "ann", *size).code == 2


def test_an_allowance_that_is_too_large_is_refused(clinic, matrixdp):
    done = allow(matrixdp, "ann", "--epsilon", "4.5")
    assert done.code == 4
    assert "Choose a smaller one" in done.err
    assert allow(matrixdp, "ann", "--share", "1").code == 0


def test_an_unknown_allowance_is_refused_before_anything_is_read(clinic, matrixdp):
    for words in (argv("clinic.csv", "moments", "--allowance", "bob"), (*RETURN, "--allowance", "bob")):
        done = matrixdp(*words)
        assert done.code == 4
        assert "'clinic' has no allowance 'bob'.\nSee which it has: matrixdp ledger show" in done.err
    no_ledger = ("--no-ledger", "--allowance", "bob", "--out", "out")
    words = ("release", "clinic.csv", "--schema", "schema.toml", "--query", "moments", *BUDGET, *no_ledger)
    assert matrixdp(*words).code == 2


def test_metrics_of_a_ledger(clinic, matrixdp):
    allow(matrixdp, "ann", "--epsilon", "1.5")
    assert matrixdp(*argv("clinic.csv", "moments", "--allowance", "ann")).code == 0
    done = matrixdp("ledger", "metrics", "clinic.db")
    assert done.code == 0
    found = {
        (sample.name, sample.labels.get("allowance")): sample.value
        for family in text_string_to_metric_families(done.out)
        for sample in family.samples
    }
    assert found["matrixdp_ledger_budget_epsilon", None] == 4
    assert found["matrixdp_ledger_charges_total", None] == 1
    assert found["matrixdp_ledger_unfinished_charges", None] == 0
    assert found["matrixdp_ledger_allowance_epsilon", "ann"] == 1.5
    assert 0 <= found["matrixdp_ledger_last_charge_age_seconds", None] < 3600
    squares = [found[f"matrixdp_ledger_{name}_mu_squared", None] for name in ("spent", "unspent", "budget")]
    assert squares[0] + squares[1] == pytest.approx(squares[2])


@pytest.mark.parametrize(("below", "code"), [("0.1", 0), ("1.6", 8), ("99%", 0), ("99.9%", 8), ("5", 8)])
def test_an_alert_has_its_own_exit_code(clinic, matrixdp, below, code):
    allow(matrixdp, "ann", "--epsilon", "1.5")
    with Ledger.open("clinic.db") as ledger:
        ledger.charge("clinic", Gaussian(0.03), neighbours="replace", description={}, allowance="ann")
    done = matrixdp("ledger", "metrics", "clinic.db", "--alert-below", below)
    assert done.code == code
    assert ("the allowance 'ann' of 'clinic' has" in done.err) == (code == 8)
    assert done.out.startswith("# HELP matrixdp_ledger_")


def test_metrics_of_nothing_and_of_no_clear_threshold(clinic, matrixdp):
    assert matrixdp("ledger", "metrics", "nowhere.db").code == 4
    assert matrixdp("ledger", "metrics", "clinic.db", "--alert-below", "little").code == 2
