"""From trials to verdicts."""

import math

import numpy as np
import pytest
from scipy import stats

from matrixdp.paper.claims import (
    Claim,
    claims,
    compare,
    count_verdicts,
    judge,
    measure_z,
    resolve,
    tabulate_claims,
)
from matrixdp.paper.experiment import Figure
from matrixdp.paper.tables import CANNOT, NOT, REPRODUCED
from matrixdp.paper.trials import PARTS, list_published, part_rows

RNG = np.random.default_rng(0)
LOW, HIGH = RNG.normal(1.0, 0.1, 100), RNG.normal(2.0, 0.1, 100)


def verdict(test, *names, part="exp2", factor=1.0, **values):
    """Verdict of a claim on rows with these errors; a number among the names is itself."""
    rows = tuple(name if isinstance(name, float) else (part, name) for name in names)
    return judge(Claim("", "", "", rows, test, factor), {(part, key): one for key, one in values.items()}, {})


def test_a_clear_difference_is_reproduced_and_its_reverse_is_not():
    assert verdict("less", "a", "b", a=LOW, b=HIGH).verdict == REPRODUCED
    assert verdict("less", "b", "a", a=LOW, b=HIGH).verdict == NOT


def test_no_difference_is_not_reproduced():
    found = verdict("less", "a", "b", a=LOW, b=RNG.normal(1.0, 0.1, 100))
    assert found.verdict == NOT
    assert found.p > 0.001


def test_all_comparisons_must_hold():
    assert verdict("less", "a", "b", "c", a=LOW, b=HIGH, c=HIGH).verdict == REPRODUCED
    assert verdict("less", "a", "b", "c", a=LOW, b=HIGH, c=LOW + 0.001).verdict == NOT


def test_a_factor_asks_for_more():
    assert verdict("less", "a", "b", factor=1.5, a=LOW, b=HIGH).verdict == REPRODUCED
    assert verdict("less", "a", "b", factor=2.5, a=LOW, b=HIGH).verdict == NOT


def test_published_numbers_can_be_the_limit():
    assert verdict("less", "a", 1.5, a=LOW).verdict == REPRODUCED
    assert verdict("less", "a", 0.5, a=LOW).verdict == NOT


def test_pairs_are_used_where_trials_share_their_data():
    """A small gain under a large common spread: only the paired test sees it."""
    common = RNG.normal(0.0, 5.0, 100)
    a, b = common + LOW, common + LOW + RNG.normal(0.5, 0.1, 100)
    assert verdict("less", "a", "b", part="exp1", a=a, b=b).verdict == REPRODUCED
    assert verdict("less", "a", "b", part="exp2", a=a, b=b).verdict == NOT


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
    assert verdict("no gain", "a", "b", a=LOW, b=HIGH).verdict == NOT
    assert verdict("no gain", "b", "a", a=LOW, b=HIGH).verdict == NOT
    assert verdict("no gain", "a", "b", a=LOW, b=RNG.permutation(LOW)).verdict == REPRODUCED


def test_effects_and_likeness():
    found = {"a": LOW, "b": RNG.permutation(LOW), "c": HIGH}
    assert verdict("effect", "a", "b", "c", **found).verdict == REPRODUCED
    assert verdict("effect", "a", "b", **found).verdict == NOT
    assert verdict("likeness", "a", "b", "c", **found).verdict == REPRODUCED
    assert verdict("likeness", "a", "c", **found).verdict == NOT


@pytest.mark.parametrize(
    ("test", "rival", "expected"),
    [
        ("slower", "laplace", REPRODUCED),
        ("slower", "jl", NOT),
        ("faster", "jl", REPRODUCED),
        ("faster", "laplace", NOT),
    ],
)
def test_times(test, rival, expected):
    timings = {"I": {"mvg": [1.0] * 20, "laplace": [0.1] * 20, "jl": [9.0] * 20}}
    assert judge(Claim("", "", "", (("runtime", rival),), test), {}, timings).verdict == expected


def test_what_cannot_be_measured_says_why():
    finding = verdict("none")
    assert finding.verdict == CANNOT
    assert math.isnan(finding.p)
    assert all(claim.remark for claim in claims() if claim.test == "none")


def test_published_intervals_speak_for_themselves():
    assert measure_z(Figure(2.384e-1, 0.215e-1), Figure(2.485e-1, 0.207e-1)) == pytest.approx(0.66, abs=0.01)
    assert measure_z(Figure(1.0), Figure(2.0)) is None


def test_every_claim_has_rows_in_every_mode():
    """Two made-up trials for every row that there is: no claim names one that is not there."""
    values = {(part, key): np.array([1.0, 1.1, 0.9]) for part in PARTS for key in part_rows(part)}
    times = {key: [1.0, 1.1, 0.9] for key in ("mvg", "gaussian", "jl", "laplace", "exponential")}
    shown = tabulate_claims(values, dict.fromkeys(("I", "II", "III"), times), simulated=True)
    assert len(shown.rows) == len(claims()) >= 35
    assert sum(count_verdicts(shown)["fair"].values()) == len(shown.rows)
    assert {row["place"] for row in shown.rows} == {
        *("Exp. I", "Exp. II", "Exp. III"),
        *("Directions", "Runtime", "Projection"),
    }


@pytest.mark.parametrize("part", ["exp1", "exp2", "exp3", "subspace"])
def test_every_published_figure_is_that_of_a_row(part):
    shown = {*part_rows(part), *(("random guess", "mvg-1") if part == "subspace" else ())}  # those are of Exp. I
    assert list_published(part).keys() <= shown
    assert len(list_published(part)) >= 4


def test_figures_and_distances_come_from_the_published_tables():
    """The claim whose figures are printed in the table of Exp. I, and one without intervals."""
    shown = {claim.text: claim for claim in claims()}
    versus = shown["MVG-1 has a smaller error than the Gaussian mechanism"]
    assert versus.figures == [Figure(1.624e-2, 0.026e-2), Figure(1.913e-2, 0.069e-2)]
    guess = shown["MVG-1 beats the random guess"]
    assert measure_z(*guess.figures) is None
    assert shown["MVG provides the best utility of all"].figures == []


def test_modes_change_only_what_they_should():
    assert resolve(("exp1", "mvg-1"), "printed") == ("exp1", "mvg-1")
    assert resolve(("exp1", "gaussian"), "exact") == ("exp1", "gaussian")
    assert resolve(("subspace", "jl"), "fair") == ("subspace", "jl/exact")
    assert resolve(("directions", "exp1/theorem2/i.i.d./1"), "exact") == ("directions", "exp1/exact/i.i.d./1")
