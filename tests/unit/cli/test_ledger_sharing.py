"""Commands that share a budget: allowances, and plans for repeated releases."""

from __future__ import annotations

import pytest

from matrixdp import Ledger, Privacy
from matrixdp.ledger import Gaussian

TOTAL = ("--epsilon", "4", "--delta", "1e-6")


def test_a_plan_without_a_ledger(clinic, matrixdp):
    facts = matrixdp("ledger", "plan", *TOTAL, "--every", "night", "--for", "90", "--json").json()
    assert facts["releases"] == 90
    assert facts["every"] == "night"
    assert (facts["total_epsilon"], facts["delta"]) == (4.0, 1e-6)
    shown = matrixdp("ledger", "plan", *TOTAL, "--every", "night", "--for", "90").out
    assert "90 releases, one every night" in shown
    assert "0.347504" in shown  # rounded down from 0.3475047
    assert 0.347504 < facts["epsilon"] < 0.347505


def test_a_plan_of_what_is_left_can_be_spent_as_shown(clinic, matrixdp):
    words = ("ledger", "plan", "clinic.db", "--dataset", "clinic", "--every", "week", "--for")
    assert matrixdp(*words, "1 year", "--json").json()["releases"] == 53
    epsilon = float(matrixdp(*words, "5").out.splitlines()[2].split()[-1])
    with Ledger.open("clinic.db") as ledger:
        for week in range(5):
            ledger.charge(
                "clinic", Gaussian(Privacy(epsilon, 1e-6).mu), neighbours="replace", description={"week": week}
            )
    left = matrixdp(*words, "5")
    assert left.code == 0
    assert float(left.out.splitlines()[2].split()[-1]) < epsilon / 100


def test_a_plan_of_shares_below_delta_says_so(clinic, matrixdp):
    done = matrixdp("ledger", "plan", "--epsilon", "0.1", "--delta", "1e-3", "--every", "hour", "--for", "999999")
    assert done.code == 0
    assert "too little for a release at delta 0.001" in done.out


@pytest.mark.parametrize(
    "words",
    [
        ("--epsilon", "4", "--every", "night", "--for", "90"),
        ("clinic.db", "--every", "night", "--for", "90"),
        ("clinic.db", "--dataset", "clinic", *TOTAL, "--every", "night", "--for", "90"),
        ("--dataset", "clinic", *TOTAL, "--every", "night", "--for", "90"),
        (*TOTAL, "--every", "moon", "--for", "90"),
        (*TOTAL, "--every", "night", "--for", "ever"),
        (*TOTAL, "--every", "night", "--for", "0"),
        (*TOTAL, "--every", "night"),
    ],
)
def test_a_plan_that_is_not_clear_is_refused(clinic, matrixdp, words):
    done = matrixdp("ledger", "plan", *words)
    assert done.code == 2
    assert 1 <= done.err.count("\n") <= 2
