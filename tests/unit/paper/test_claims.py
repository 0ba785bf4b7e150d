"""From trials to verdicts."""

import math

import numpy as np
import pytest
from scipy import stats

from matrixdp.paper.cells import PART_ROWS, part_rows
from matrixdp.paper.claims import (
    CANNOT,
    NOT,
    REPRODUCED,
    Evidence,
    cannot,
    claims,
    comparable,
    compare,
    differ,
    less,
    no_gain,
    published_z,
    resolver,
    slower,
)
from matrixdp.paper.claims import count_verdicts as count
from matrixdp.paper.claims import tabulate_claims as table
from matrixdp.paper.published import Figure

RNG = np.random.default_rng(0)
LOW, HIGH = RNG.normal(1.0, 0.1, 100), RNG.normal(2.0, 0.1, 100)


def evidence(**values):
    return Evidence({("exp2", name): value for name, value in values.items()}, {})


def same(key):
    return key


def test_a_clear_difference_is_reproduced_and_its_reverse_is_not():
    found = evidence(a=LOW, b=HIGH)
    assert less("exp2", "a", "b")(found, same).verdict == REPRODUCED
    assert less("exp2", "b", "a")(found, same).verdict == NOT


def test_no_difference_is_not_reproduced():
    other = RNG.normal(1.0, 0.1, 100)
    found = less("exp2", "a", "b")(evidence(a=LOW, b=other), same)
    assert found.verdict == NOT
    assert found.p > 0.001


def test_all_comparisons_must_hold():
    assert less("exp2", "a", "b", "c")(evidence(a=LOW, b=HIGH, c=LOW + 0.001), same).verdict == NOT


def test_a_factor_asks_for_more():
    found = evidence(a=LOW, b=HIGH)
    assert less("exp2", "a", "b", factor=1.5)(found, same).verdict == REPRODUCED
    assert less("exp2", "a", "b", factor=2.5)(found, same).verdict == NOT


def test_published_numbers_can_be_the_limit():
    assert less("exp2", "a", 1.5)(evidence(a=LOW), same).verdict == REPRODUCED
    assert less("exp2", "a", 0.5)(evidence(a=LOW), same).verdict == NOT


def test_pairs_are_used_where_trials_share_their_data():
    """A small gain under a large common spread: only the paired test sees it."""
    common = RNG.normal(0.0, 5.0, 100)
    a, b = common + LOW, common + LOW + RNG.normal(0.5, 0.1, 100)
    assert less("exp1", "a", "b")(Evidence({("exp1", "a"): a, ("exp1", "b"): b}, {}), same).verdict == REPRODUCED
    assert less("exp2", "a", "b")(evidence(a=a, b=b), same).verdict == NOT


@pytest.mark.parametrize("paired", [True, False])
def test_p_values_are_scipys(paired):
    a, b = RNG.normal(0.0, 1.0, 30), RNG.normal(0.2, 2.0, 30)
    if paired:
        expected = stats.ttest_rel(b, a, alternative="greater").pvalue
    else:
        expected = stats.ttest_ind(b, a, equal_var=False, alternative="greater").pvalue
    assert compare(a, b, paired=paired).p == pytest.approx(expected, rel=1e-9)


def test_constants_need_no_test():
    ones = np.ones(5)
    assert compare(ones, 2 * ones, paired=False).p == 0.0
    assert compare(ones, ones, paired=False).p == 1.0


def test_an_admission_holds_only_where_nothing_is_found_either_way():
    assert no_gain("exp2", "a", "b")(evidence(a=LOW, b=HIGH), same).verdict == NOT
    assert no_gain("exp2", "b", "a")(evidence(a=LOW, b=HIGH), same).verdict == NOT
    assert no_gain("exp2", "a", "b")(evidence(a=LOW, b=RNG.permutation(LOW)), same).verdict == REPRODUCED


def test_effects_and_likeness():
    found = evidence(a=LOW, b=RNG.permutation(LOW), c=HIGH)
    assert differ("exp2", ["a", "b", "c"])(found, same).verdict == REPRODUCED
    assert differ("exp2", ["a", "b"])(found, same).verdict == NOT
    assert comparable("exp2", ["a", "b", "c"])(found, same).verdict == REPRODUCED
    assert comparable("exp2", ["a", "c"])(found, same).verdict == NOT


def test_times():
    timings = {"I": {"mvg": [1.0] * 20, "laplace": [0.1] * 20, "jl": [9.0] * 20}}
    found = Evidence({}, timings)
    assert slower(["laplace"])(found, same).verdict == REPRODUCED
    assert slower(["jl"])(found, same).verdict == NOT
    assert slower(["jl"], faster=True)(found, same).verdict == REPRODUCED


def test_what_cannot_be_measured_says_why():
    finding = cannot("no figures")(Evidence({}, {}), same)
    assert (finding.verdict, finding.why) == (CANNOT, "no figures")
    assert math.isnan(finding.p)


def test_published_intervals_speak_for_themselves():
    assert published_z(Figure(2.384e-1, 0.215e-1), Figure(2.485e-1, 0.207e-1)) == pytest.approx(0.66, abs=0.01)
    assert published_z(Figure(1.0), Figure(2.0)) is None


def test_every_claim_has_rows_in_every_mode():
    """Two made-up trials for every row that there is: no claim names one that is not there."""
    values = {(part, key): np.array([1.0, 1.1, 0.9]) for part in PART_ROWS for key in part_rows(part)}
    times = {key: [1.0, 1.1, 0.9] for key in ("mvg", "gaussian", "jl", "laplace", "exponential")}
    shown = table(Evidence(values, dict.fromkeys(("I", "II", "III"), times)), simulated=True)
    assert len(shown.rows) == len(claims()) >= 35
    assert sum(count(shown)["fair"].values()) == len(shown.rows)
    assert {row["place"] for row in shown.rows} == {
        *("Exp. I", "Exp. II", "Exp. III"),
        *("Directions", "Runtime", "Projection"),
    }


def test_modes_change_only_what_they_should():
    assert resolver("printed")(("exp1", "mvg-1")) == ("exp1", "mvg-1")
    assert resolver("exact")(("exp1", "gaussian")) == ("exp1", "gaussian")
    assert resolver("fair")(("subspace", "jl")) == ("subspace", "jl/exact")
