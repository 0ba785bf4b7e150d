"""A made-up adaptive release, to try whether a release can be shown before anything is charged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from matrixdp.adaptive.method import MethodChoice
from matrixdp.adaptive.moment import prepare_fit
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.covariance_release import find_recipe

_RECORDS = 16


def make_sample_release(
    bounds: Bounds,
    privacy: Privacy,
    records: int,
    neighbours: Neighbours,
    *,
    aim: str = "covariance",
    person: Person | None = None,
) -> AdaptiveRelease:
    """A release of a few made-up records that fill their bounds evenly, as if they were `records`. Reads no data.

    It is marked as a simulation.

    Examples
    --------
    >>> sample = make_sample_release(Bounds([0], [6]), Privacy(1, 1e-6), 100, Neighbours.REPLACE)
    >>> sample.moment.covariance.shape, sample.records, sample.simulation
    ((1, 1), 100, True)
    """
    made_up = np.random.default_rng(0).uniform(bounds.lower, bounds.upper, (_RECORDS, bounds.size))
    prepared = prepare_fit(
        made_up,
        replace(bounds, names=None),
        privacy,
        aim=find_recipe(aim),
        records=_RECORDS,
        neighbours=neighbours,
        stream=Stream(seed=0),
        simulation=True,
    )
    moment = replace(prepared.fit(), bounds=bounds, records=records, person=person)
    return AdaptiveRelease(moment, MethodChoice("adaptive", "This is an example."), aim)
