"""Adaptive fits that spend more than they claim, or whose steps depend on private data."""

from __future__ import annotations

from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from matrixdp.adaptive import private_moment, radius
from matrixdp.adaptive.budget import FitBudget
from matrixdp.audit.broken.registry import BOX, PRIVACY, broken
from matrixdp.audit.replay import replay
from matrixdp.design import isotropic, make_design
from matrixdp.domain import Bounds
from matrixdp.domain.person import Person
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import Moments
from matrixdp.records import with_ids
from matrixdp.release.run import release
from matrixdp.sensitivity import (
    FrobeniusBall,
)
from matrixdp.types import Floats

_DATA = np.vstack([[[1.0, 1.0]], np.random.default_rng(0).normal(0, 0.05, (399, 2))])
_NEIGHBOUR = np.vstack([[[0.0, 0.0]], _DATA[1:]])


def _fit(data: Floats) -> Any:
    return private_moment(data, BOX, PRIVACY)


def _halved(radius: float) -> FrobeniusBall:
    return FrobeniusBall(radius / 2)


@broken("half the sensitivity of counts in a fit")
def _half_count() -> bool:
    with patch.object(radius, "FrobeniusBall", _halved):
        return replay(_fit, _DATA, _NEIGHBOUR).broken


@broken("half the sensitivity of the tail in a fit")
def _half_tail() -> bool:
    with patch("matrixdp.adaptive.clipped_tail.FrobeniusBall", _halved):
        return replay(_fit, _DATA, _NEIGHBOUR).broken


@broken("half the sensitivity of the moment of what clipping takes in a fit")
def _half_tail_moment() -> bool:
    data = np.column_stack([_DATA, np.linspace(-0.8, 0.8, len(_DATA))])
    data[:16, :2] = 1.0  # few long records
    neighbour = np.vstack([np.zeros((1, 3)), data[1:]])
    bounds, privacy = Bounds([-1] * 3, [1] * 3), Privacy(8.0, 1e-6)
    with patch("matrixdp.adaptive.tail_query.FrobeniusBall", _halved):
        return replay(lambda x: private_moment(x, bounds, privacy, aim="components"), data, neighbour).broken


def _replay_people(person: Person) -> bool:
    """Whether a replay finds a mistake where the first person has five rows at a corner, or one at the middle."""
    ids = np.arange(len(_DATA))
    data = with_ids(np.repeat(_DATA, [5, *[1] * (len(_DATA) - 1)], axis=0), np.append([0] * 4, ids))
    fit = partial(private_moment, bounds=BOX, privacy=PRIVACY, person=person, records=len(_DATA))
    return replay(fit, data, with_ids(_NEIGHBOUR, ids)).broken


@broken("a person each of whose rows counts in a fit where people count once")
def _every_row() -> bool:
    with patch.object(Person, "weights", lambda _, counts, unit: np.full(len(counts), unit)):
        return _replay_people(Person("id"))


@broken("the noise of one row in the counts of a fit where rows of people count")
def _one_row() -> bool:
    with patch.object(radius, "most_rows", lambda _: 1):
        return _replay_people(Person("id", rows=3))


@broken("a charge smaller than what is spent")
def _small_charge() -> bool:
    return replay(_fit, _DATA, _NEIGHBOUR, claim=0.9 * PRIVACY.mu).broken


def _two_releases(data: Floats, first: float, second: float) -> Any:
    """Two releases from budgets of their own, which nobody adds up."""
    query = Moments(BOX, len(data))
    for share in (first, second):
        design = make_design(query, PRIVACY, allocation=isotropic(), share=share)
        release(design, data)


@broken("shares of the budget that sum above one")
def _shares_above_one() -> bool:
    return replay(lambda data: _two_releases(data, 0.7, 0.7), _DATA, _NEIGHBOUR, claim=PRIVACY).broken


@broken("bounds taken from the data")
def _learned_bounds() -> bool:
    def fit(data: Floats) -> Any:
        largest = np.abs(data).max(axis=0) + 1e-9
        return private_moment(data, Bounds(-largest, largest), PRIVACY)

    return replay(fit, _DATA, _NEIGHBOUR).broken


@broken("a number of iterations that depends on the data")
def _data_dependent_steps() -> bool:
    def fit(data: Floats) -> Any:
        budget = FitBudget(PRIVACY, Neighbours.REPLACE)
        query = Moments(BOX, len(data))
        for _ in range(2 if data[0, 0] > 0.5 else 1):
            budget.release("moment", query, data, share=0.5)
        return budget.mu

    return replay(fit, _DATA, _NEIGHBOUR, claim=PRIVACY).broken


@broken("a private value in the result")
def _private_result() -> bool:
    return replay(lambda data: (_fit(data).mean, data.max()), _DATA, _NEIGHBOUR, claim=PRIVACY).broken
