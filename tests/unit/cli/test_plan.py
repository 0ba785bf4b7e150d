"""``matrixdp plan``: nothing is read or charged without --run, or unless all releases fit, and a repeat is free."""

from pathlib import Path

import pytest

from matrixdp import Ledger, load

WANTS = ("--want", "means of age by smoker ± 3", "--want", "table of smoker and outcome ± 20")
CLINIC = ("--schema", "table.toml", "--ledger", "clinic.db", "--dataset", "clinic", "--records", "500")
RUN = ("--run", "clinic.csv", "--out", "planned")


def spent():
    with Ledger.open("clinic.db") as ledger:
        return len(ledger.history("clinic")), ledger.remaining("clinic").mu


def test_a_plan_reads_and_charges_nothing(clinic, matrixdp):
    Path("clinic.csv").unlink()
    before = spent()
    shown, facts = matrixdp("plan", *WANTS, *CLINIC), matrixdp("plan", *WANTS, *CLINIC, "--json").json()
    assert (shown.code, spent()) == (0, before)
    assert "means of age by smoker" in shown.out
    assert facts["fits"]
    assert facts["mu_squared"] <= min(facts["mu_squared_separate"], facts["mu_squared_together"] or 1e9)
    for want in (want for one in facts["releases"] for want in one["wants"]):
        assert want["predicted"] <= want["wanted"]


def test_run_charges_the_sum_once(clinic, matrixdp):
    _, left = spent()
    planned = matrixdp("plan", *WANTS, *CLINIC, "--json").json()
    made = matrixdp("plan", *WANTS, *CLINIC, *RUN, "--json").json()
    count, after = spent()
    assert count == len(made["releases"]) == len(planned["releases"])
    assert left**2 - after**2 == pytest.approx(planned["mu_squared"])
    assert all((Path(one["released"]["out"]) / "report.html").is_file() for one in made["releases"])
    again = matrixdp("plan", *WANTS, *CLINIC, *RUN, "--force")
    assert (again.code, spent()) == (0, (count, after))
    assert "released before" in again.out
    assert matrixdp("plan", *WANTS, *CLINIC, *RUN, "--force", "--request", "june").code == 0
    assert spent()[0] == 2 * count


def test_a_guess_of_the_number_is_for_the_plan_and_records_are_counted_for_its_releases(clinic, matrixdp):
    Path("table.toml").write_text(f"expected_records = 450\n{Path('table.toml').read_text()}")
    made = matrixdp("plan", *WANTS[:2], *CLINIC[:-2], *RUN, "--json")
    assert made.code == 0, made.err
    assert load(made.json()["releases"][0]["released"]["out"]).query.records == 500


def test_nothing_is_charged_unless_all_fit(clinic, matrixdp):
    before = spent()
    wants = ("--want", "means of age by smoker ± 0.8", "--want", "table of smoker and outcome ± 2.5")
    refused = matrixdp("plan", *wants, *CLINIC, *RUN)
    facts = matrixdp("plan", *wants, *CLINIC, "--json")
    assert (refused.code, facts.code, spent()) == (4, 4, before)
    assert not Path("planned").exists()
    assert not facts.json()["fits"]
    larger = [f"{one['want']} ± {one['predicted'] * 1.03}" for one in facts.json()["reachable"]]
    assert matrixdp("plan", "--want", larger[0], "--want", larger[1], *CLINIC).code == 0
    unreachable = matrixdp("plan", "--want", "means of age ± 1e-9", *CLINIC, *RUN)
    assert (unreachable.code, spent()) == (4, before)
    assert "the least error is" in unreachable.err


def test_nothing_is_charged_if_a_later_release_cannot_be_made(clinic, matrixdp):
    before = spent()
    Path("planned/2-counts").mkdir(parents=True)
    Path("planned/2-counts/mine.txt").write_text("mine")
    blocked = matrixdp("plan", *WANTS, *CLINIC, *RUN)
    assert (blocked.code, spent()) == (2, before)
    rows = Path("clinic.csv").read_text().splitlines()
    Path("clinic.csv").write_text("\n".join(line.rpartition(",")[0] for line in rows))
    lacking = matrixdp("plan", *WANTS, *CLINIC, "--run", "clinic.csv", "--out", "other")
    assert (lacking.code, spent()) == (3, before)
    assert "outcome" in lacking.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "1 to 20 wants"),
        (("nowhere.toml",), "nowhere.toml cannot be read"),
        (("--want", "means for age ± 1"), "'for' is not understood"),
        ((*WANTS, "--run", "clinic.csv"), "--run and --out must be given together"),
        ((*WANTS, "--out", "planned"), "--run and --out must be given together"),
    ],
)
def test_mistakes_are_explained(clinic, matrixdp, words, message):
    found = matrixdp("plan", *words, *CLINIC)
    assert (found.code, found.out) == (2, "")
    assert message in found.err


def test_a_ledger_must_be_given(clinic, matrixdp):
    found = matrixdp("plan", *WANTS, "--schema", "table.toml", "--records", "500")
    assert (found.code, "--ledger must be given" in found.err) == (2, True)
