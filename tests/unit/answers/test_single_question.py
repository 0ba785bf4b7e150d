"""What a question would cost alone: ratios of the noise of two designs, as releases show it."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.described_table import describe_moments
from matrixdp.answers.table_forecast import EVEN, NOTHING, compare_questions

PRIVACY = mdp.Privacy(1.0, 1e-6)
NUMBERS = [mdp.Number("age", 0, 120), mdp.Number("bmi", 10, 50, missing=True)]
CATEGORIES = [mdp.Category("ward", ["a", "b", "c"]), mdp.YesNo("smoker"), mdp.Category("outcome", ["ill", "well"])]


def questions(columns, **options):
    query = mdp.TableMoments(mdp.Columns(columns), 10_000, **options)
    return {one.title: one.ratio for one in compare_questions(mdp.make_design(query, PRIVACY))}


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_question_alone_has_less_noise(neighbours):
    found = questions([*NUMBERS, *CATEGORIES], neighbours=neighbours)
    assert list(found) == ["means of age by ward", "the table ward x smoker", "the correlation of age and bmi"]
    assert all(1.2 < ratio < 10 for ratio in found.values())
    more = [*NUMBERS, *CATEGORIES, *(mdp.Number(f"x{i}", 0, 1) for i in range(10))]
    for title, ratio in questions(more, neighbours=neighbours).items():
        assert ratio > found[title]


def test_only_questions_that_can_be_asked_are_compared():
    assert list(questions(NUMBERS)) == ["the correlation of age and bmi"]
    assert list(questions(CATEGORIES)) == ["the table ward x smoker"]
    assert list(questions([NUMBERS[0], CATEGORIES[0]])) == ["means of age by ward"]
    assert questions(NUMBERS)["the correlation of age and bmi"] == pytest.approx(1.0)
    assert "means of age by smoker" in questions([*NUMBERS, *CATEGORIES], by=["smoker"])
    missing = [NUMBERS[0], mdp.Category("ward", ["a", "b"], missing=True)]
    assert questions(missing)["means of age by ward"] == pytest.approx(1.0)


def test_a_ratio_is_that_of_the_error_bars_of_two_releases():
    columns = mdp.Columns([*NUMBERS, *CATEGORIES])
    design = mdp.make_design(mdp.TableMoments(columns, 10_000), PRIVACY)
    joint = mdp.Release(describe_moments(design.query, NOTHING, EVEN), design).table("ward", "smoker")
    alone = mdp.make_design(mdp.ContingencyTable(["a", "b", "c"], ["no", "yes"], 10_000), PRIVACY)
    expected = joint.std[0, 0] * 10_000 / alone.std[0, 0]
    (found,) = [one for one in compare_questions(design) if one.title == "the table ward x smoker"]
    assert found.ratio == pytest.approx(expected)
    assert np.isfinite(found.ratio)
