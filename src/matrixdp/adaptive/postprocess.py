"""Post-processing of the noisy moments of a fit into a mean and a covariance, at no privacy cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from matrixdp.adaptive.ball_moment import BallMoment, denoise
from matrixdp.adaptive.clipped_tail import restore_excess, restore_tail
from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.plan import FinalBall, FinalPlan
from matrixdp.adaptive.settings import Settings
from matrixdp.adaptive.shrinkage import keep_spikes, nearest_of_same_trace, shrink_spectrum
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats

_EVIDENCE = 2.5  # standard deviations of a trace below which the covariance is zero


@builtin_kind
@dataclass(frozen=True, eq=False)
class Fitted:
    """Mean and covariance of records in [-1, 1]^d, and the noise in them.

    Attributes
    ----------
    mean, covariance : float64 arrays of shape (d,) and (d, d)
        The covariance is positive semidefinite, and zero where nothing tells it from zero.
    evident : float
        The factor from 0 to 1 by which the covariance was multiplied, since noise may be all there is.
    second : float64 array of shape (d, d)
        Second moment about the midpoint of the box.
    mean_std, std : float64 arrays of shape (d,) and (d, d)
        Standard deviation of the noise in each entry of mean and covariance before shrinkage, to first order.
    unshrunk : float64 array of shape (d, d)
        The covariance before shrinkage; may have negative eigenvalues.
    noise_shape : float64 array of shape (d, d)
        The matrix B B' for which the final noise is ``B G B'``, G symmetric with independent entries.
    noise_std : float
        Standard deviation of the entries of G off the diagonal.
    radius : float
        Clipping norm of the final moment, in its coordinates.
    learned : bool
        Whether there were enough records to learn coordinates.
    """

    mean: Floats
    covariance: Floats
    evident: float
    second: Floats
    mean_std: Floats
    std: Floats
    unshrunk: Floats
    noise_shape: Floats
    noise_std: float
    radius: float
    learned: bool


def finish_single(moment: BallMoment, radius: float, settings: Settings) -> Fitted:
    """Mean and covariance from one moment about the midpoint, where records are too few for learned coordinates.

    Everything is multiplied by a factor from 0 to 1, since the trace itself may be noise.
    """
    d = moment.mean.size
    second, variances = moment.transform(np.eye(d), np.zeros(d))
    second[0, 0] = 1.0
    if not settings.shrink:
        mean, covariance = about_mean(second, variances)
    else:
        mean, covariance = denoise(second, moment.constant, moment.std, keep_spikes)
        kept = _evident(float(np.trace(second)) - 1.0, moment.trace_std)
        mean, covariance = math.sqrt(kept) * mean, kept * covariance
    identity = Coordinates.of(np.eye(d), np.zeros(d))
    evident = evident_share(second, variances, moment.trace_std) if settings.shrink else 1.0
    return _fitted(second, variances, mean, covariance, identity, moment.std, radius, evident, learned=False)


def finish_combined(
    rough: BallMoment | None, final: BallMoment, plan: FinalPlan, ball: FinalBall, settings: Settings
) -> Fitted:
    """Mean and covariance from both moments, combined by their precisions in the plan's coordinates.

    Without a rough moment, from the final one alone. What clipping took is added back.
    """
    d = final.mean.size
    second, variances = final.transform(np.eye(d), np.zeros(d))
    if rough is not None:
        other, others = rough.transform(plan.coordinates.matrix, plan.coordinates.centre)
        weights = others / (variances + others)
        second = weights * second + (1 - weights) * other
        variances = weights * variances
    second[0, 0] = 1.0
    if not settings.shrink:
        mean, covariance = about_mean(second, variances)
    else:
        mean, covariance = denoise(second, final.constant, final.std, partial(shrink_spectrum, level=settings.level))
    if ball.tail is not None:
        mean, covariance = restore_tail(mean, covariance, ball.tail, ball.radius, final.count)
        variances = variances + ball.tail.variances(final.count)
    elif settings.shrink:
        covariance = restore_excess(covariance, ball.excess / final.count, ball.radius)
    evident = evident_share(second, variances, final.trace_std) if settings.shrink else 1.0
    return _fitted(second, variances, mean, covariance, plan.coordinates, final.std, ball.radius, evident, learned=True)


def about_mean(second: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of a noisy moment of (1, u), without the bias that the mean's noise has in its square."""
    mean = second[0, 1:]
    return mean, second[1:, 1:] - np.multiply.outer(mean, mean) + np.diag(variances[0, 1:])


def _fitted(
    second: Floats,
    variances: Floats,
    mean: Floats,
    covariance: Floats,
    coordinates: Coordinates,
    noise_std: float,
    radius: float,
    evident: float,
    *,
    learned: bool,
) -> Fitted:
    """Map everything back from the coordinates u to [-1, 1]^d, and make the covariance a possible one."""
    back = coordinates.inverse
    squares = back**2
    noise = squares @ variances[1:, 1:] @ squares.T
    np.fill_diagonal(noise, 2 * np.diagonal(noise) - squares**2 @ np.diagonal(variances)[1:])  # pairs count twice
    location = np.clip(coordinates.centre + back @ mean, -1.0, 1.0)
    possible = nearest_possible(back @ covariance @ back.T)
    return Fitted(
        mean=location,
        covariance=evident * possible,
        evident=evident,
        second=possible + np.multiply.outer(location, location),
        mean_std=np.sqrt(squares @ variances[0, 1:]),
        std=np.sqrt(noise),
        unshrunk=back @ (second[1:, 1:] - np.multiply.outer(second[0, 1:], second[0, 1:])) @ back.T,
        noise_shape=back @ back.T,
        noise_std=noise_std,
        radius=radius,
        learned=learned,
    )


def nearest_possible(covariance: Floats) -> Floats:
    """Nearest positive semidefinite matrix of the same trace, with variances of at most one: the most in [-1, 1]."""
    nearest = nearest_of_same_trace(covariance)
    within = 1 / np.sqrt(np.maximum(np.diagonal(nearest), 1.0))
    return nearest * np.multiply.outer(within, within)


def evident_share(second: Floats, variances: Floats, trace_std: float) -> float:
    """Factor from 0 to 1 for the covariance, by how far its noisy trace exceeds its noise.

    The trace is the number that is measured best. Within `_EVIDENCE` standard deviations of zero there is nothing to
    tell the covariance from zero, and the zero matrix has less error; beyond, the factor approaches one quickly.
    """
    mean, own = second[0, 1:], variances[0, 1:]
    trace = float(np.trace(second)) - 1.0 - float(mean @ mean) + float(own.sum())
    std = math.sqrt(trace_std**2 + 4 * float(own @ mean**2) + 2 * float(own @ own))
    return _evident(trace, std)


def _evident(value: float, std: float) -> float:
    """Zero up to `_EVIDENCE` standard deviations, and beyond a factor that approaches one quickly."""
    return 1 - (_EVIDENCE * std / value) ** 4 if value > _EVIDENCE * std else 0.0
