from __future__ import annotations

import math

import numpy as np
import pytest

from matrixdp.errors import LedgerError, ParameterError
from matrixdp.ledger import Approximate, Gaussian, Plan, Pure
from matrixdp.ledger.values import event_from_json, event_to_json

EVENTS = [Gaussian(0.1), Pure(0.3), Approximate(0.2, 1e-9), Plan([Pure(0.1), Gaussian(0.2)], delta=1e-8)]


@pytest.mark.parametrize("event", EVENTS)
def test_events_survive_json(event):
    assert event_from_json(event_to_json(event)) == event


@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, "much", None, True])
@pytest.mark.parametrize("kind", [Gaussian, Pure])
def test_numbers_out_of_range_are_refused(kind, value):
    with pytest.raises(ParameterError, match="must be"):
        kind(value)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-9])
def test_delta_out_of_range_is_refused(delta):
    with pytest.raises(ParameterError, match="delta must be strictly between 0 and 1"):
        Approximate(0.1, delta)


def test_numbers_become_plain_floats():
    assert type(Gaussian(np.float64(0.5)).mu) is float


@pytest.mark.parametrize("events", [[], [0.1], [Plan([Pure(0.1)])]])
def test_plans_hold_single_events_only(events):
    with pytest.raises(ParameterError, match="events must be one or more of"):
        Plan(events)


@pytest.mark.parametrize(
    "content",
    [
        {"kind": "laplace"},
        {"kind": "pure"},
        {"kind": "pure", "epsilon": -1},
        {"kind": "plan", "events": 1, "delta": 0},
    ],
)
def test_unreadable_events_are_a_ledger_error(content):
    with pytest.raises(LedgerError, match="event"):
        event_from_json(content)


def test_only_events_are_written():
    with pytest.raises(ParameterError, match="event must be"):
        event_to_json(0.1)
