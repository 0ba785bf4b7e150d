"""Strategies of a private moment: how a fit spends its budget on measurements.

A strategy is chosen by public numbers. It takes noisy measurements one after another, each chosen by what the earlier
ones say, and post-processes them into a mean and a covariance. It sees records through `Measurements` alone, so the
same functions fit private records and, for error bars and forecasts, simulated ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matrixdp.adaptive.measure import Measurements
from matrixdp.adaptive.plan import (
    box_ratio,
    box_share,
    find_final_ball,
    find_first_radius,
    for_targets,
    plan_final_moment,
)
from matrixdp.adaptive.postprocess import Fitted, finish_box, finish_learned, finish_single, finish_targets
from matrixdp.adaptive.settings import Settings
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class Purpose:
    """What a fit is for.

    Attributes
    ----------
    settings : Settings
        Those of the aim.
    basis : float64 array of shape (d, d), optional
        Public orthonormal columns to use; learned by default.
    targets : int
        Number of last features that a regression predicts; zero for other aims.
    """

    settings: Settings
    basis: Floats | None = None
    targets: int = 0


def fit_moment(measure: Measurements, purpose: Purpose) -> Fitted:
    """Mean and covariance of records, by the strategy that public numbers choose."""
    return STRATEGIES[choose_strategy(measure, purpose)](measure, purpose)


def choose_strategy(measure: Measurements, purpose: Purpose) -> str:
    """Name of the strategy; reads public numbers alone."""
    scarce = measure.size / (measure.public * measure.mu) > purpose.settings.scarce
    if scarce and purpose.targets:
        return "target mean"
    if measure.size == 1:
        return "box"
    return "ball" if scarce else "learned"


def fit_target_mean(measure: Measurements, purpose: Purpose) -> Fitted:
    """Spend everything on the means of a regression's targets: records are too few for coefficients.

    With a constant as large as the halfwidths' length, a mean has the noise that it would have if measured alone.
    """
    moment = measure.box("target mean", 1.0, measure.remaining, last=purpose.targets)
    return finish_targets(moment, measure.size)


def fit_box(measure: Measurements, purpose: Purpose) -> Fitted:
    """Spend everything on a moment of the whole box: one feature has no directions to learn."""
    return finish_box(measure.box("box moment", purpose.settings.ratio, measure.remaining))


def fit_ball(measure: Measurements, purpose: Purpose) -> Fitted:
    """Spend everything on one moment in a ball about the midpoint: records are too few to learn coordinates."""
    radius = find_first_radius(measure, purpose.settings)
    moment = measure.ball("moment", radius, purpose.settings.ratio, measure.remaining)
    return finish_single(moment, radius, purpose.settings)


def fit_learned(measure: Measurements, purpose: Purpose) -> Fitted:
    """Learn coordinates from a rough moment; measure the final one there, and perhaps one of the whole box."""
    settings = purpose.settings
    radius = find_first_radius(measure, settings)
    rough = measure.ball("rough moment", radius, settings.ratio, settings.rough_share)
    plan = plan_final_moment(rough, settings, basis=purpose.basis, levels=measure.levels)
    inside = measure.transform(plan.coordinates)
    ball = find_final_ball(inside, plan, settings)
    if purpose.targets:
        plan = for_targets(plan, ball, purpose.targets, measure.reach)
    ratio = box_ratio(rough, settings, public_number=measure.public_number)
    share = box_share(rough, plan, ball, settings, measure.reach, ratio) * measure.remaining
    box = measure.box("box moment", ratio, share) if share else None
    final = inside.ball("final moment", ball.radius, plan.ratio, measure.remaining)
    return finish_learned(rough, final, box, plan, ball, settings)


Strategy = Callable[[Measurements, Purpose], Fitted]
STRATEGIES: dict[str, Strategy] = {
    "target mean": fit_target_mean,
    "box": fit_box,
    "ball": fit_ball,
    "learned": fit_learned,
}
