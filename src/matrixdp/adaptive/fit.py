"""The private moment with learned coordinates, in five steps, and a moment of the whole box beside it."""

from __future__ import annotations

import math
from dataclasses import replace

from matrixdp.adaptive.ball_moment import BallMoment, ball_moment, ball_query
from matrixdp.adaptive.box_moment import box_moment, box_query, pool_moments
from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.clipped_tail import ClippedTail, measure_excess, measure_tail, private_excess
from matrixdp.adaptive.grid_records import PrivateRecords
from matrixdp.adaptive.noisy_count import share_count
from matrixdp.adaptive.plain_mix import finish_plain, mix_plain
from matrixdp.adaptive.plain_share import plain_ratio, plain_share
from matrixdp.adaptive.plan import FinalBall, FinalPlan, plan_final_moment
from matrixdp.adaptive.postprocess import Fitted, finish_combined, finish_single
from matrixdp.adaptive.radius import Goal, clipped_share, count_query, count_share, count_std, find_radius, step_down
from matrixdp.adaptive.settings import Settings
from matrixdp.adaptive.target_mean import (
    finish_targets,
    has_signal,
    is_mean_better,
    measure_targets,
    regression_ratio,
)
from matrixdp.design import isotropic, make_design
from matrixdp.gdp import share_mu
from matrixdp.types import Floats

_TAIL_SHARES = (0.1, 0.2, 0.35, 0.5)  # of what remains, for the moment of what clipping takes


def fit_moment(
    records: PrivateRecords,
    settings: Settings,
    budget: FitBudget,
    *,
    public: int,
    basis: Floats | None = None,
    targets: int = 0,
) -> Fitted:
    """Mean and covariance of records on their grid.

    Parameters
    ----------
    records : PrivateRecords
        Private, of shape (n, d).
    settings : Settings
    budget : FitBudget
    public : int
        The public number of records.
    basis : float64 array of shape (d, d), optional
        Public orthonormal columns to use; learned by default.
    targets : int
        Number of last features that a regression predicts; zero for other aims.

    Privacy
    -------
    Reads the records through `budget.release` alone: every count and moment has its share of the budget, and whatever
    is chosen in between is a function of earlier noisy answers.
    """
    d = records.shape[1]
    scarce = is_scarce(d, public, budget.effective_mu, settings)
    if targets and scarce:
        return finish_targets(measure_targets(records, targets, budget, public=public), d)
    if d == 1:
        return finish_plain(measure_box(records, settings.only_ratio, budget, public=public))
    radius = find_first_radius(records, settings, budget, public=public)
    if scarce:
        return finish_single(measure_only_moment(records, radius, settings, budget, public=public), radius, settings)
    rough = measure_rough_moment(records, radius, settings, budget, public=public)
    plan = plan_final_moment(rough, settings, basis=basis, levels=records.levels)
    transformed = records.transform(plan.coordinates)
    ball = find_final_ball(transformed, plan, settings, budget, public=public)
    reach = public * share_mu(budget.effective_mu, budget.remaining)
    doubtful = targets > 0 and public * budget.effective_mu < settings.doubtful
    if doubtful and not has_signal(rough, targets, settings.signal) and is_mean_better(plan, ball, targets):
        return finish_targets(measure_targets(records, targets, budget, public=public), d)
    if targets:
        plan = replace(plan, ratio=regression_ratio(plan, ball, targets, reach))
    ratio = plain_ratio(rough, public_number=budget.public_number)
    share = plain_share(rough, plan, ball, settings, reach, ratio)
    if not share:
        rough, final = share_count(rough, measure_final_moment(transformed, plan, ball, budget, public=public))
        return finish_combined(rough, final, plan, ball, settings)
    plain = measure_box(records, ratio, budget, public=public, part=share)
    if share == 1:  # the rough moment is of the whole box, too
        return finish_plain(pool_moments(*share_count(rough, plain)))
    final = measure_final_moment(transformed, plan, ball, budget, public=public)
    rough, plain, final = share_count(rough, plain, final)
    known: BallMoment | None = rough
    if rough.diagonal is not None:  # of the whole box, too
        plain, known = pool_moments(rough, plain), None
    return mix_plain(finish_combined(known, final, plan, ball, settings), final, plan, plain)


def is_scarce(features: int, records: int, mu: float, settings: Settings) -> bool:
    """Whether there are too few records for learned coordinates: a public rule."""
    return features / (records * mu) > settings.scarce


def find_first_radius(records: PrivateRecords, settings: Settings, budget: FitBudget, *, public: int) -> float:
    """Step 1: clipping norm about the midpoint that balances clipping error and noise.

    Spends `count_share`. Where the counts would be lost in their noise the radius is public, unless a few coarse counts
    tell that the box is far too wide.
    """
    d, mu, counts = records.shape[1], budget.effective_mu, settings.first_bisections
    longest = math.sqrt(d)
    share = count_share(counts, settings, features=d, public=public, mu=mu)
    if count_std(counts, share, mu) > settings.lost_counts * public:
        return find_coarse_radius(records, settings, budget, public=public)
    clipped = settings.clip_factor * settings.first_count * d / mu
    goal = Goal(clipped, longest / settings.first_span, longest, counts, freedom=d, longest=longest)
    return find_radius("radius", records, goal, settings, budget, public=public)


def find_coarse_radius(records: PrivateRecords, settings: Settings, budget: FitBudget, *, public: int) -> float:
    """Step 1 where records are few: the public radius, or less if most records are much shorter.

    Counts at a quarter of the longest possible record, a sixteenth and so on, until more than half of the records are
    longer. Each spends `coarse_share`, and nothing is counted where even one such count would be lost in its noise.
    """
    longest, share = math.sqrt(records.shape[1]), settings.coarse_share
    radius, counts = settings.public_radius * longest, settings.coarse_counts
    if not share or count_std(1, share, budget.effective_mu) > settings.coarse_lost * public:
        return radius
    cuts = [longest / 4 ** (k + 1) for k in range(counts)]
    return step_down("radius", records, radius, cuts, budget, public=public, share=share)


def measure_rough_moment(
    records: PrivateRecords, radius: float, settings: Settings, budget: FitBudget, *, public: int
) -> BallMoment:
    """Step 2: noisy moment about the midpoint, from which coordinates are learned. Spends `rough_share`.

    Of the whole box where the ball is hardly smaller: no record is clipped then, and the diagonal is nearly exact.
    """
    share, ratio = settings.rough_share, settings.rough_ratio
    if radius**2 > settings.whole * records.shape[1]:
        return box_moment("rough moment", records, budget, share=share, public=public, ratio=ratio)
    return ball_moment("rough moment", records, radius, budget, share=share, public=public, ratio=ratio)


def measure_only_moment(
    records: PrivateRecords, radius: float, settings: Settings, budget: FitBudget, *, public: int
) -> BallMoment:
    """Step 2 where records are scarce: noisy moment about the midpoint. Spends all that remains."""
    share, ratio = budget.remaining, settings.rough_ratio
    return ball_moment("moment", records, radius, budget, share=share, public=public, ratio=ratio)


def find_final_ball(
    records: PrivateRecords, plan: FinalPlan, settings: Settings, budget: FitBudget, *, public: int
) -> FinalBall:
    """Step 4: clipping norm in the plan's coordinates, and what clipping takes: its trace, or its moment.

    Spends up to `settings.radius_share` on counts and `settings.tail_share` on the trace; see also `measure_far_tail`.
    """
    mu, tail, counts = budget.effective_mu, settings.tail_share, settings.second_bisections
    share = count_share(counts, settings, features=records.shape[1], public=public, mu=mu)
    final = share_mu(mu, budget.remaining - share - tail)
    clipped = settings.clip_factor * plan.noise * plan.mean_square / plan.clipping / final
    typical, half = math.sqrt(plan.mean_square), math.sqrt(settings.second_span)
    goal = Goal(clipped, typical / half, typical * half, counts, freedom=plan.freedom, longest=plan.longest)
    radius = find_radius("second radius", records, goal, settings, budget, public=public)
    part = clipped_share(goal, settings, public)
    usual = part * radius**2 / math.log(1 / part)  # where squared lengths have exponential tails
    moment = measure_far_tail(records, radius, usual, plan, settings, budget, public=public)
    if not tail or moment is not None:
        return FinalBall(radius, 0.0, moment)
    precision = math.sqrt(tail / (budget.remaining - tail))  # relative to that of the final moment
    limit = settings.tail_noise * precision * plan.noise * plan.mean_square / plan.clipping
    limit = min(limit, settings.tail_limit) * radius**2
    return FinalBall(radius, private_excess(records, radius, limit, budget, public=public, share=tail))


def measure_far_tail(
    records: PrivateRecords,
    radius: float,
    usual: float,
    plan: FinalPlan,
    settings: Settings,
    budget: FitBudget,
    *,
    public: int,
) -> ClippedTail | None:
    """Step 4, continued: the moment of what clipping takes, where one number tells that it is more than usual.

    Spends `settings.far_share` on that number. The moment gets the share for which the error that it saves exceeds the
    noise that it adds by most, and none if it saves less. What clipping takes may turn directions or change their order
    where few records are far longer than the others; where lengths have usual tails it does not.
    """
    far, reach = settings.far_share, public * budget.effective_mu
    limit = min(plan.longest**2 - radius**2, settings.far_noise * plan.mean_square * reach * math.sqrt(far))
    if not far or limit < settings.far_least * radius**2:
        return None
    found, std = measure_excess("far tail", records, radius, limit, budget, public=public, share=far)
    bias = settings.astray * (found - usual)
    core, tail = (plan.noise * radius**2 / reach) ** 2, records.shape[1] * (limit / reach) ** 2
    rest = budget.remaining

    def added(share: float) -> float:
        return core / (rest - share) - core / rest + tail / share

    share = min((part * rest for part in _TAIL_SHARES), key=added)
    if found - usual < settings.far_evidence * std or bias**2 < added(share):
        return None
    radii = radius, math.sqrt(radius**2 + limit)
    return measure_tail(records, radii, plan.longest, budget, public=public, share=share)


def measure_final_moment(
    records: PrivateRecords, plan: FinalPlan, ball: FinalBall, budget: FitBudget, *, public: int
) -> BallMoment:
    """Step 5: noisy moment of records in the plan's coordinates, clipped to the ball. Spends all that remains."""
    share = budget.remaining
    return ball_moment("final moment", records, ball.radius, budget, share=share, public=public, ratio=plan.ratio)


def measure_box(
    records: PrivateRecords, ratio: float, budget: FitBudget, *, public: int, part: float = 1.0
) -> BallMoment:
    """Noisy moment of all records in their box, none of them clipped. Spends `part` of what remains."""
    return box_moment("box moment", records, budget, share=part * budget.remaining, public=public, ratio=ratio)


def check_designs(budget: FitBudget, size: int, records: int) -> None:
    """Raise the errors that designs of a fit can have, before it is charged: likeliest with the whole budget."""
    counts = count_query(records, budget.neighbours, budget.person)
    for query in (counts, ball_query(size, 1.0, records, budget.neighbours, person=budget.person)):
        make_design(query, budget.privacy, allocation=isotropic())
    make_design(box_query(size, records, budget.neighbours, 1 / 8, budget.person), budget.privacy, allocation="uniform")
