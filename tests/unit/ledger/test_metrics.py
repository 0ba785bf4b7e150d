"""Metrics: the text format of Prometheus, read back by its own parser, and thresholds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from matrixdp.errors import ParameterError
from matrixdp.ledger import Allowance, Counts, Registration, Remaining, Reserve, Summary
from matrixdp.ledger.metrics import find_low, parse_threshold, render_metrics
from matrixdp.privacy import Neighbours, Privacy

NOW = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
NONE = Counts(0, 0, None, None)


def make_left(epsilon, mu, reserve=0.0, name="clinic"):
    return Remaining(name, mu, epsilon, 1e-6, Reserve(reserve))


def make_summary(name="clinic", **changes):
    registration = Registration(name, Privacy(4, 1e-6), Neighbours.REPLACE, Reserve())
    left = make_left(2.0, 0.5)
    return replace(Summary(registration, 0.8, 0.6, 2.5, left, make_left(1.0, 0.3), (), NONE), **changes)


def make_allowance(name="ann", epsilon=1.0, mu=0.3, left=(0.5, 0.15), *, returned=False):
    return Allowance("clinic", name, mu, epsilon, 1e-6, make_left(*left), returned)


def parse(text):
    """Samples by name and labels, after the checks of Prometheus' own parser."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in ("gauge", "counter")
        for sample in family.samples:
            key = (sample.name.removeprefix("matrixdp_ledger_"), *sorted(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def test_every_number_is_there():
    summary = make_summary(
        allowances=(make_allowance(), make_allowance("bob", returned=True)),
        counts=Counts(7, 2, "2031-02-03T04:03:36.000+00:00", "2031-02-03T02:05:06.000+00:00"),
    )
    found, own = parse(render_metrics([summary], 9, NOW)), ("dataset", "clinic")
    assert found[("entries_total",)] == 9
    for name, value in {
        "budget_epsilon": 4.0,
        "budget_delta": 1e-6,
        "budget_mu_squared": 0.8**2,
        "spent_epsilon": 2.5,
        "spent_mu_squared": 0.6**2,
        "unspent_epsilon": 2.0,
        "unspent_mu_squared": 0.5**2,
        "left_epsilon": 1.0,
        "left_mu_squared": 0.3**2,
        "charges_total": 7,
        "unfinished_charges": 2,
        "unsettled": 0,
        "last_charge_age_seconds": 90,
        "oldest_unfinished_charge_age_seconds": 7200,
    }.items():
        assert found[(name, own)] == value, name
    assert found[("allowance_epsilon", ("allowance", "ann"), own)] == 1.0
    assert found[("allowance_left_epsilon", ("allowance", "ann"), own)] == 0.5
    assert not any(("allowance", "bob") in key for key in found)


@given(names=st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=4, unique=True))
def test_any_name_survives(names):
    found = parse(render_metrics([make_summary(name) for name in names], 1, NOW))
    assert {dict(key[1:])["dataset"] for key in found if key[0] == "left_epsilon"} == set(names)


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\\", 'x"} 1\nevil 2', "ü ☃", "{dataset=}"])
def test_names_cannot_add_samples(name):
    text = render_metrics([make_summary(name, allowances=(make_allowance(name),))], 1, NOW)
    assert all(line.startswith(("# HELP matrixdp_", "# TYPE matrixdp_", "matrixdp_")) for line in text.split("\n")[:-1])
    assert ("allowance_left_epsilon", ("allowance", name), ("dataset", "clinic")) in parse(text)


def test_an_empty_ledger_and_a_data_set_without_charges():
    assert parse(render_metrics([], 1, NOW)) == {("entries_total",): 1.0}
    found = parse(render_metrics([make_summary()], 1, NOW))
    assert not any("age" in key[0] for key in found)


def test_a_clock_that_was_set_back_and_an_infinite_epsilon():
    found = parse(
        render_metrics(
            [make_summary(counts=replace(NONE, last_charge="2031-02-04T04:05:06+00:00"), spent_epsilon=float("inf"))],
            1,
            NOW,
        )
    )
    assert found[("last_charge_age_seconds", ("dataset", "clinic"))] == 0
    assert found[("spent_epsilon", ("dataset", "clinic"))] == float("inf")


def test_what_is_below_a_threshold_is_named():
    summaries = [make_summary(allowances=(make_allowance(), make_allowance("bob", left=(0.0, 0.0), returned=True)))]
    assert find_low(summaries, parse_threshold("0.5")) == []
    assert find_low(summaries, parse_threshold("0.6")) == [
        "the allowance 'ann' of 'clinic' has epsilon 0.5 left, less than 0.6."
    ]
    assert len(find_low(summaries, parse_threshold("2.1"))) == 2
    assert find_low(summaries, parse_threshold("24.9%")) == []
    assert find_low(summaries, parse_threshold("26%")) == [
        "the allowance 'ann' of 'clinic' has 25% of its budget left, less than 26%."
    ]
    assert find_low(summaries, parse_threshold("40%"))[0].startswith("'clinic' has 39.06% of its budget left")


def test_a_data_set_that_is_all_reserve_counts_its_epsilon():
    registration = Registration("clinic", Privacy(4, 1e-6), Neighbours.REPLACE, Reserve(4, 1e-6))
    summary = make_summary(registration=registration, total_mu=0.0, unspent=make_left(0.0, 0.0, 1.0))
    assert find_low([summary], parse_threshold("20%")) == []
    assert find_low([summary], parse_threshold("1")) == []
    assert len(find_low([summary], parse_threshold("30%"))) == 1
    assert len(find_low([summary], parse_threshold("1.5"))) == 1


@pytest.mark.parametrize("text", ["", "0", "-1", "nan", "inf", "101%", "half", "1%%", "1e999", "%"])
def test_other_thresholds_are_refused(text):
    with pytest.raises(ParameterError, match="the threshold must be"):
        parse_threshold(text)
