"""Releases for wanted errors: forecasts meet them, none that was compared is cheaper, and releases keep them."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from matrixdp import Privacy
from matrixdp.domain.schema_file import parse_schema
from matrixdp.errors import BudgetExceededError, ParameterError
from matrixdp.noise import Stream
from matrixdp.release.run import run
from matrixdp.report.forecast import predict
from matrixdp.report.wants import Want, plan_wants, predict_error, read_wants

SCHEMA_TEXT = """
records = 20000
[columns]
age = { type = "number", lower = 18, upper = 90, expected_mean = 54, expected_std = 18 }
stay = { type = "number", lower = 0, upper = 60, expected_mean = 20, expected_std = 10 }
ward = { type = "category", levels = ["north", "south"], expected_shares = { north = 0.5, south = 0.5 } }
unit = { type = "category", levels = ["a", "b"], missing = true }
smoker = { type = "yes/no" }
"""
SCHEMA = parse_schema(SCHEMA_TEXT)
TOTAL = Privacy(4, 1e-6)
MEANS, TABLE = Want.parse("means of stay by ward ± 0.5"), Want.parse("table of ward and smoker ± 20")
MATRIX = Want.parse("correlation of age, stay by ward +- 0.1")


def plan(*wants, left=4.0, schema=SCHEMA):
    return plan_wants(wants, schema, TOTAL, left)


@pytest.mark.parametrize(
    "texts",
    [
        ["means of stay by ward ± 0.5", "means of age by ward ± 0.5"],
        ["means of stay by ward ± 0.5", "table of ward and smoker ± 20", "correlation of age, stay by ward ± 0.1"],
        ["regression of stay on age, ward ± 0.5", "covariance of age, stay ± 3", "means of age by unit ± 1"],
    ],
)
def test_every_want_is_met_and_nothing_that_was_compared_is_cheaper(texts):
    wants = [Want.parse(text) for text in texts]
    found = plan(*wants)
    answered = [want for one in found.releases for want in one.wants]
    assert sorted(map(wants.index, answered)) == list(range(len(wants)))
    for one in found.releases:
        for want, error in zip(one.wants, one.errors, strict=True):
            assert error <= want.error
            assert error == predict_error(want, one.plan)
    alone = sum(plan(want).mu_squared for want in wants)
    assert found.separate == pytest.approx(alone)
    assert found.mu_squared <= min(found.separate, found.together) * (1 + 1e-12)


def test_questions_are_joined_where_that_saves_and_only_there():
    joined = plan(MATRIX, Want.parse("covariance of age, stay by ward ± 20"))
    assert len(joined.releases) == 1
    assert joined.mu_squared < joined.separate
    apart = plan(replace(MEANS, error=0.1), TABLE)
    assert len(apart.releases) == 2
    assert apart.mu_squared == apart.separate < apart.together


@pytest.mark.parametrize("text", ["means of age by unit ± 1", "regression of stay on age, unit ± 3"])
def test_few_missing_values_do_not_make_a_want_unreachable(text):
    guess = "missing = true, expected_missing = 0.001"
    schema = parse_schema(SCHEMA_TEXT.replace("missing = true", guess))
    (one,) = plan(Want.parse(text), schema=schema).releases
    assert one.errors[0] <= one.wants[0].error


@pytest.mark.parametrize("want", [MEANS, TABLE, MATRIX, Want.parse("correlation of age, stay ± 0.05")])
def test_a_smaller_epsilon_does_not_meet_the_want(want):
    (one,) = plan(want).releases
    assert predict_error(want, one.plan.at(one.plan.request.epsilon * 0.98)) > want.error


def test_the_forecast_is_that_of_design():
    (one,) = plan(Want.parse("means of age by ward ± 0.5")).releases
    groups = next(answer for answer in predict(one.plan)["typical"] if answer.name == "groups")
    assert one.errors == (groups.estimate.std[:, 1].max(),)


def test_a_category_that_may_be_missing_is_asked_of_everything():
    (one,) = plan(Want.parse("means of stay by unit ± 1")).releases
    assert one.plan.request.question == "everything"


def test_releases_keep_the_wanted_errors():
    """Root mean squares over 60 releases, which are within 20% of the expected ones at six standard deviations."""
    rng, records = np.random.default_rng(7), 20_000
    ward = np.repeat(["north", "south"], records // 2)
    stay, smoker = np.clip(rng.normal(20, 10, records), 0, 60), rng.choice(["yes", "no"], records)
    data = pa.table({"age": rng.uniform(18, 90, records), "stay": stay, "ward": ward, "smoker": smoker})
    found = plan(MEANS, TABLE)
    stream, errors = Stream(seed=3), {MEANS: [], TABLE: []}
    truth = [[np.sum((ward == one) & (smoker == other)) for other in ("no", "yes")] for one in ("north", "south")]
    for one in found.releases:
        for _ in range(60):
            released = run(one.plan, data, stream=stream, simulation=True).release
            if MEANS in one.wants:
                means = released.means("ward").value[:, 1]
                errors[MEANS].append(means - [stay[ward == level].mean() for level in ("north", "south")])
            if TABLE in one.wants:
                errors[TABLE].append(released.table("ward", "smoker").value[:2, :2] * records - truth)
    for want, found_errors in errors.items():
        assert 0.5 * want.error < math.sqrt(np.square(found_errors).mean()) < 1.2 * want.error


def test_what_cannot_be_reached_is_refused_with_what_can():
    with pytest.raises(
        BudgetExceededError, match=r"means of stay by ward ± 1e-05 cannot be reached.*least error is (.+)\."
    ) as e:
        plan(replace(MEANS, error=1e-5), TABLE, left=2.0)
    least = float(str(e.value).split()[-1].rstrip("."))
    (one,) = plan(replace(MEANS, error=least * 1.01)).releases
    assert one.plan.request.epsilon == pytest.approx(2.0, rel=0.03)
    with pytest.raises(BudgetExceededError, match="noise hides"):
        plan(replace(MEANS, error=1e-5), left=1e-9)


def test_ids_follow_from_the_release():
    (first,), (second,), (other,) = (plan(one).releases for one in (MEANS, MEANS, replace(MEANS, error=0.4)))
    ids = [one.name("plan").plan.request.id for one in (first, second, other)]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("meens of stay ± 1", "'meens' is not a question"),
        ("everything ± 1", "'everything' is not a question"),
        ("means for stay ± 1", "'for' is not understood after means"),
        ("means of stay by ward", "must be a question, ± and"),
        ("means of stay ± 1 ± 2", "must be a question, ± and"),
        ("means of stay ± much", "with a decimal point, got 'much'"),
        ("means of stay ± -1", "error must be"),
        ("means of stay ± nan", "error must be"),
        ("means by ward ± 1", "means needs columns"),
        ("means of stay of age ± 1", "'of' must be there once"),
        ("means of stay on age ± 1", "means has no on"),
        ("means of stay, ± 1", "columns must be a list of columns"),
        ("table of ward ± 1", "two different columns"),
        ("regression of stay ± 1", "regression needs on"),
        ("regression of stay, age on ward ± 1", "'age' is not understood"),
        ("", "must be a question, ± and"),
        ("± 1", "must be a question, ± and"),
    ],
)
def test_a_want_that_is_not_understood_names_the_word(text, message):
    with pytest.raises(ParameterError, match=message) as error:
        Want.parse(text)
    assert "Examples: means of stay" in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("means of sty ± 1", "no column 'sty'"),
        ("means of ward ± 1", "no column holds numbers"),
        ("means of stay, ward ± 1", "'ward' is none"),
        ("means of stay by age ± 1", "'age' must be a category"),
        ("table of age and ward ± 1", "'age' must be a category"),
        ("correlation of age, ward ± 1", "'ward' is a category"),
        ("regression of ward on age ± 1", "target must be a column of numbers"),
        ("means of stay by stay ± 1", "'stay' must be a category"),
        ("means of stay by ward, ward ± 1", "by"),
    ],
)
def test_a_want_that_the_schema_does_not_answer_is_refused(text, message):
    with pytest.raises(ParameterError, match=message) as error:
        plan(Want.parse(text))
    assert str(error.value).startswith(Want.parse(text).words)


def test_the_words_of_a_want_are_read_back():
    for want in (MEANS, TABLE, MATRIX, Want.parse("regression of stay on age, ward ± 1")):
        assert Want.parse(f"{want.words} ± {want.error}") == want


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("want = ['means of stay']", "the want 'means of stay': it must be"),
        ("[[want]]\nquestion = 'means'", "list of texts"),
        ("want = [1]", "list of texts"),
        ("wants = ['means of stay ± 1']", "list of texts"),
        ("[[want]", "is not a TOML file"),
    ],
)
def test_a_file_that_is_not_understood_names_the_entry(tmp_path, text, message):
    path = tmp_path / "questions.toml"
    path.write_text(text)
    with pytest.raises(ParameterError, match=message):
        read_wants(path)


def test_the_number_of_wants_is_limited():
    for wants in ([], [replace(MEANS, error=1 + k) for k in range(21)]):
        with pytest.raises(ParameterError, match="1 to 20 wants"):
            plan(*wants)
