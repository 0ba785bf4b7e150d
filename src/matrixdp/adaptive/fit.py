"""Strategies of a private moment: how a fit spends its budget on measurements.

A strategy is chosen by public numbers. It takes noisy measurements one after another, each chosen by what the earlier
ones say, and post-processes them into a mean and a covariance. It sees records through `Measurements` alone, so the
same functions fit private records and, for error bars and forecasts, simulated ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matrixdp.adaptive.measure import Measurements
from matrixdp.adaptive.plan import box_ratio, box_share, find_final_ball, for_targets, plan_final_moment
from matrixdp.adaptive.postprocess import Fitted, finish_box, finish_learned, finish_single, finish_targets
from matrixdp.adaptive.radius import find_first_radius
from matrixdp.adaptive.settings import Settings
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class Task:
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


def fit_moment(measure: Measurements, task: Task) -> Fitted:
    """Mean and covariance of records, by the strategy that public numbers choose."""
    return STRATEGIES[choose_strategy(measure, task)](measure, task)


def choose_strategy(measure: Measurements, task: Task) -> str:
    """Name of the strategy; reads public numbers alone."""
    scarce = measure.size / (measure.public * measure.mu) > task.settings.scarce
    if scarce and task.targets:
        return "target mean"
    if measure.size == 1:
        return "box"
    return "ball" if scarce else "learned"


def fit_target_mean(measure: Measurements, task: Task) -> Fitted:
    """Spend everything on the means of a regression's targets: records are too few for coefficients.

    With a constant as large as the halfwidths' length, a mean has the noise that it would have if measured alone.
    """
    moment = measure.box("target mean", 1.0, measure.remaining, last=task.targets)
    return finish_targets(moment, measure.size)


def fit_box(measure: Measurements, task: Task) -> Fitted:
    """Spend everything on a moment of the whole box: one feature has no directions to learn."""
    return finish_box(measure.box("box moment", task.settings.ratio, measure.remaining))


def fit_ball(measure: Measurements, task: Task) -> Fitted:
    """Spend everything on one moment in a ball about the midpoint: records are too few to learn coordinates."""
    radius = find_first_radius(measure, task.settings)
    moment = measure.ball("moment", radius, task.settings.ratio, measure.remaining)
    return finish_single(moment, radius, task.settings)


def fit_learned(measure: Measurements, task: Task) -> Fitted:
    """Learn coordinates from a rough moment; measure the final one there, and perhaps one of the whole box."""
    settings = task.settings
    radius = find_first_radius(measure, settings)
    rough = measure.ball("rough moment", radius, settings.ratio, settings.rough_share)
    plan = plan_final_moment(rough, settings, basis=task.basis, levels=measure.levels)
    inside = measure.transform(plan.coordinates)
    ball = find_final_ball(inside, plan, settings)
    if task.targets:
        plan = for_targets(plan, ball, task.targets, measure.reach)
    ratio = box_ratio(rough, public_number=measure.public_number)
    share = box_share(rough, plan, ball, settings, measure.reach, ratio) * measure.remaining
    box = measure.box("box moment", ratio, share) if share else None
    final = inside.ball("final moment", ball.radius, plan.ratio, measure.remaining)
    return finish_learned(rough, final, box, plan, ball, settings)


Strategy = Callable[[Measurements, Task], Fitted]
STRATEGIES: dict[str, Strategy] = {
    "target mean": fit_target_mean,
    "box": fit_box,
    "ball": fit_ball,
    "learned": fit_learned,
}
