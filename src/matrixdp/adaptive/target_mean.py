"""The private mean of the targets of a regression, where nothing tells that the features explain them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matrixdp.adaptive.ball_moment import BallMoment
from matrixdp.adaptive.box_moment import BoxMoments, measured
from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.grid_records import PrivateRecords
from matrixdp.adaptive.plain_mix import with_std
from matrixdp.adaptive.plan import FinalBall, FinalPlan
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.domain.bounds import Bounds
from matrixdp.types import Floats

_RATIOS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
_EXPLAINED = 0.5  # share of a target's variance that features may explain


class TargetMoments(BoxMoments):
    """`Moments` of the last features of `PrivateRecords` in [-1, 1]^d.

    Privacy
    -------
    As `Moments` of those features alone: the entries of the other features are left out.
    """

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        """Moments of the targets."""
        assert isinstance(data, PrivateRecords)
        every = BoxMoments(_unit_box(data.shape[1]), self.records, neighbours=self.neighbours, person=self.person)
        moment = every.evaluate(data, clip=clip, missing=missing)
        kept = np.r_[0, data.shape[1] + 1 - self.bounds.size : data.shape[1] + 1]
        return np.asarray(moment[np.ix_(kept, kept)])


def measure_targets(records: PrivateRecords, targets: int, budget: FitBudget, *, public: int) -> BallMoment:
    """Noisy moment of the last features, for which the mean is as exact as if it were measured alone.

    Spends all that remains.
    """
    box, neighbours = _unit_box(targets), budget.neighbours
    query = TargetMoments(box, public, neighbours=neighbours, person=budget.person, mean_share=0.5)
    released = budget.release("target mean", query, records, share=budget.remaining, structured=True)
    return measured(released, public)


def has_signal(rough: BallMoment, targets: int, least: float) -> bool:
    """Whether the covariances of features and a target exceed their noise by `least` standard deviations.

    Post-processing of the rough moment.
    """
    d = rough.mean.size
    second, variances = rough.transform(np.eye(d), np.clip(rough.mean, -1.0, 1.0))
    m = d - targets
    values, vectors = np.linalg.eigh(second[1 : m + 1, 1 : m + 1])
    squares = (vectors.T @ second[1 : m + 1, m + 1 :]) ** 2 / variances[1 : m + 1, m + 1 :].mean(axis=0)
    # Directions along which features vary explain most, but where features are many the rough ones may be noise.
    for weights in (np.maximum(values, values[-1] / m), np.ones(m)):
        if (weights @ (squares - 1) > least * math.sqrt(2 * float(weights @ weights))).any():
            return True
    return False


def is_mean_better(plan: FinalPlan, ball: FinalBall, targets: int) -> bool:
    """Whether the targets' mean has less noise in their box than in learned coordinates, for the same budget."""
    rows = plan.coordinates.inverse[-targets:]
    learned = (1 + plan.ratio) * ball.radius / math.sqrt(plan.ratio) * np.linalg.norm(rows)
    return bool(learned > 2 * targets)


def regression_ratio(plan: FinalPlan, ball: FinalBall, targets: int, reach: float) -> float:
    """Square of the constant before each record of the final moment, in units of r^2, with the least error of guesses.

    With a larger constant the means of the targets have less noise, and coefficients more. In the plan's coordinates,
    in which features have variances v, noise of covariances of size s adds ``s^2 sum 1/v`` to the square of a
    guess, but not more than `_EXPLAINED` of the target's variance: where coefficients are lost in noise, they are zero.

    Parameters
    ----------
    plan : FinalPlan
    ball : FinalBall
    targets : int
    reach : float
        The public number of records times the `mu` that remains.
    """
    back = plan.coordinates.inverse
    spreads, rows = (back**2).sum(axis=0), back[-targets:] ** 2  # of all coordinates, and what targets are made of
    share = float(np.mean(rows.sum(axis=1) / (rows @ spreads)))  # squared length over variance
    mean = share * (ball.radius / reach) ** 2
    cross = share * (ball.radius**2 / reach) ** 2 * float((1 / spreads).sum())

    def error(ratio: float) -> float:
        noise = (1 + ratio) ** 2
        return mean * noise / ratio + _EXPLAINED * cross * noise / (_EXPLAINED + cross * noise)

    return min((ratio for ratio in _RATIOS if ratio >= plan.ratio), key=error)


def finish_targets(moment: BallMoment, size: int) -> Fitted:
    """A fit in which the targets have their private means and variances, and nothing is known of the features."""
    targets = moment.mean.size
    second, variances = moment.transform(np.eye(targets), np.zeros(targets))
    mean, covariance, std = with_std(second, variances)
    m = size - targets
    every = np.zeros((size, size))
    every[m:, m:] = np.diag(np.clip(np.diagonal(covariance), 0.0, 1.0))
    stds = np.ones((size, size))
    stds[m:, m:] = std
    location = np.append(np.zeros(m), np.clip(mean, -1.0, 1.0))
    return Fitted(
        mean=location,
        covariance=every,
        evident=1.0,
        second=every + np.multiply.outer(location, location),
        mean_std=np.append(np.ones(m), np.sqrt(variances[0, 1:])),
        std=stds,
        unshrunk=every,
        noise_shape=np.eye(size),
        noise_std=moment.std,
        radius=math.sqrt(size),
        learned=False,
    )


def _unit_box(size: int) -> Bounds:
    return Bounds(np.full(size, -1.0), np.full(size, 1.0))
