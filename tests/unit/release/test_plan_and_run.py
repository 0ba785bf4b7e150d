"""The way from a request to a release: options, plan, charge, noise, outcome."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pandas as pd
import pytest

import matrixdp as mdp
from matrixdp.errors import ParameterError
from matrixdp.release import result
from matrixdp.release.charging import Account
from matrixdp.release.options import OPTIONS, QUESTIONS
from matrixdp.release.plan import Plan, plan
from matrixdp.release.request import Request
from matrixdp.release.run import run

COLUMNS = {"age": (18, 90), "bmi": (10, 60), "smoker": bool, "ward": ["a", "b"], "sex": ["f", "m"]}
DATA = pd.DataFrame({"age": [30.0, 41, 52, 67] * 50, "bmi": [20.0, 31, 24, 27] * 50, "smoker": [True, False] * 100})
NUMBERS = ["age", "bmi"]
NEEDS = {  # what some questions cannot do without
    "table": {"cells": ["smoker", "ward"]},
    "counts": {"cells": ["sex", "ward"]},
    "regression": {"target": "age"},
    "gram": {"columns": NUMBERS, "points": [[20.0, 30.0]]},
    **{name: {"columns": NUMBERS} for name in ("covariance", "correlation", "moments", "second-moment", "identity")},
    "components": {"columns": NUMBERS},
}
LIMITED = [option for option in OPTIONS if option.kind in ("number", "integer")]
ON_RECORDS = [name for name in QUESTIONS if name not in ("adjacency", "laplacian")]


def ask(question="means", **options):
    given = {"epsilon": 1.0, "delta": 1e-6, "records": 200, **NEEDS.get(question, {}), **options}
    return Request(schema=COLUMNS, question=question, **given)


def never():
    pytest.fail("the data were counted")


@pytest.fixture
def ledger(tmp_path):
    with mdp.Ledger.create(tmp_path / "ledger.db", wait=30) as ledger:
        ledger.register("clinic", mdp.Privacy(8, 1e-5), neighbours="replace")
        yield ledger


@pytest.mark.parametrize("question", ON_RECORDS)
def test_every_question_has_a_plan_that_reads_no_data(question):
    made = plan(ask(question), never)
    assert isinstance(made, Plan)
    assert made.event.mu <= made.request.privacy.mu * (1 + 1e-12)
    assert made.at(2.0).event.mu > made.event.mu


def test_a_private_number_of_records_is_never_counted():
    with pytest.raises(ParameterError, match="records must be given") as error:
        plan(ask(records=None, neighbours="add-remove"), never)
    assert error.value.parameter == "records"


@pytest.mark.parametrize(
    "option", [one for one in OPTIONS if one.kind in ("number", "integer")], ids=lambda one: one.name
)
def test_numbers_outside_of_the_limits_of_their_option_are_refused_by_name(option):
    outside = [limit for limit in (option.above, option.below) if np.isfinite(limit)]
    outside += [option.at_least - 1] * bool(np.isfinite(option.at_least))
    outside += [option.at_most + 1] * bool(np.isfinite(option.at_most))
    for value in (*outside, "many", True, float("nan")):
        with pytest.raises(ParameterError) as error:
            ask(**{option.name: value, **({"person": "id"} if option.name == "rows" else {})})
        assert error.value.parameter == option.name


def test_the_charge_is_committed_before_the_noise_is_drawn(ledger, monkeypatch):
    draw, charged = result.draw_noisy_answer, []

    def watch(*given, **options):
        charged.append(len(ledger.history("clinic")))
        return draw(*given, **options)

    monkeypatch.setattr(result, "draw_noisy_answer", watch)
    run(plan(ask(columns=["age", "smoker"])), DATA, Account(ledger, "clinic"))
    assert charged == [1]


@pytest.mark.parametrize("question", ["means", "correlation"])
def test_an_outcome_says_whether_it_was_charged_now(ledger, question):
    asked = ask(question, columns=NUMBERS, id="week 7", method="auto")
    first, again = (run(plan(asked), DATA, Account(ledger, "clinic")) for _ in range(2))
    assert (first.charged, again.charged) == (True, False)
    assert again.release.to_json() == first.release.to_json()
    assert len(ledger.history("clinic")) == 1
    assert not run(plan(asked), DATA).charged  # without an account nothing is


def test_a_run_that_another_one_forestalls_is_not_charged(ledger):
    """The other one charges the request and stores its release between the first one's check and its charge."""
    made, account, others = plan(ask(columns=["age"], id="week 7")), Account(ledger, "clinic"), []
    outcome = run(made, DATA, account, ready=lambda: others.append(run(made, DATA, account)))
    assert (outcome.charged, others[0].charged) == (False, True)
    assert outcome.release.to_json() == others[0].release.to_json()
    assert len(ledger.history("clinic")) == 1


def test_of_simultaneous_runs_with_one_id_exactly_one_is_charged(ledger):
    made, start = plan(ask(columns=["age"], id="week 7")), Barrier(4)

    def release(_):
        with mdp.Ledger.open(ledger.path, wait=30) as own:
            start.wait()
            return run(made, DATA, Account(own, "clinic"))

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(release, range(4)))
    assert sorted(outcome.charged for outcome in outcomes) == [False, False, False, True]
    assert len({outcome.release.to_json() for outcome in outcomes}) == 1
    assert len(ledger.history("clinic")) == 1
