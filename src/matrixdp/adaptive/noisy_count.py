"""One estimate of a private number of records from several moments, each of which has measured it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from matrixdp.adaptive.ball_moment import BallMoment


def share_count(*moments: BallMoment) -> tuple[BallMoment, ...]:
    """The same moments over one number of records: the average of their noisy numbers by precisions.

    Where the number is public, moments are returned as they are.
    """
    if all(moment.count == 1.0 for moment in moments):
        return moments
    precisions = np.array([(moment.constant**2 / (moment.std * moment.count)) ** 2 for moment in moments])
    count = float(precisions @ [moment.count for moment in moments] / precisions.sum())
    return tuple(_divide(moment, count) for moment in moments)


def _divide(moment: BallMoment, count: float) -> BallMoment:
    """A moment over another number of records."""
    factor = moment.count / count
    second = moment.second * factor
    second[0, 0] = 1.0
    return replace(
        moment,
        second=second,
        std=moment.std * factor,
        trace_std=moment.trace_std * factor,
        count=count,
        diagonal=None if moment.diagonal is None else moment.diagonal * factor**2,
    )
