"""The private moment with learned coordinates, in five steps."""

from __future__ import annotations

import math

from matrixdp.adaptive.ball_moment import BallMoment, ball_moment, ball_query
from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.clipped_tail import private_excess
from matrixdp.adaptive.grid_records import PrivateRecords
from matrixdp.adaptive.plan import FinalBall, FinalPlan, plan_final_moment
from matrixdp.adaptive.postprocess import Fitted, finish_combined, finish_single
from matrixdp.adaptive.radius import (
    Search,
    count_query,
    count_share,
    count_std,
    extrapolate_radius,
    private_radius,
    searched_count,
    target_count,
)
from matrixdp.adaptive.settings import Settings
from matrixdp.design import isotropic, make_design
from matrixdp.privacy import share_mu
from matrixdp.types import Floats


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
        How many of the last features a regression is to predict from the others.

    Privacy
    -------
    Reads the records through `budget.release` alone: every count and moment has its share of the budget, and whatever
    is chosen in between is a function of earlier noisy answers.
    """
    radius = find_first_radius(records, settings, budget, public=public)
    if is_scarce(records.shape[1], public, budget.privacy.mu, settings):
        return finish_single(measure_only_moment(records, radius, settings, budget, public=public), radius, settings)
    rough = measure_rough_moment(records, radius, settings, budget, public=public)
    plan = plan_final_moment(rough, settings, basis=basis, levels=records.levels, targets=targets)
    transformed = records.transform(plan.coordinates)
    ball = find_final_ball(transformed, plan, settings, budget, public=public)
    final = measure_final_moment(transformed, plan, ball, budget, public=public)
    return finish_combined(rough, final, plan, ball, settings)


def is_scarce(features: int, records: int, mu: float, settings: Settings) -> bool:
    """Whether there are too few records for learned coordinates: a public rule."""
    return features / (records * mu) > settings.scarce


def find_first_radius(records: PrivateRecords, settings: Settings, budget: FitBudget, *, public: int) -> float:
    """Clipping norm about the midpoint that balances clipping error and noise.

    Spends up to `settings.radius_share`; nothing where counts would be lost in their noise, for a public radius.
    """
    d, mu = records.shape[1], budget.privacy.mu
    share = count_share(settings.first_steps, settings, features=d, records=public, mu=mu)
    std = count_std(mu, share, settings.first_steps)
    if std > settings.lost_counts * public:
        return settings.public_radius * math.sqrt(d)
    most, wanted = math.sqrt(d), settings.clip_factor * settings.first_count * d / mu
    search = Search(
        most / settings.first_span, most, searched_count(wanted, std, public, settings), settings.first_steps
    )
    radius = private_radius("radius", records, search, budget, records=public, share=share)
    return _extrapolated(radius, search, wanted, public, settings, freedom=d, longest=most)[0]


def measure_rough_moment(
    records: PrivateRecords, radius: float, settings: Settings, budget: FitBudget, *, public: int
) -> BallMoment:
    """Noisy moment about the midpoint, from which coordinates are learned. Spends `rough_share`."""
    share = rough_share(settings, features=records.shape[1], records=public, mu=budget.privacy.mu)
    return ball_moment("rough moment", records, radius, budget, share=share, public=public, ratio=settings.rough_ratio)


def measure_only_moment(
    records: PrivateRecords, radius: float, settings: Settings, budget: FitBudget, *, public: int
) -> BallMoment:
    """Noisy moment about the midpoint where records are scarce. Spends all that remains."""
    share = budget.remaining
    return ball_moment("moment", records, radius, budget, share=share, public=public, ratio=settings.rough_ratio)


def find_final_ball(
    records: PrivateRecords, plan: FinalPlan, settings: Settings, budget: FitBudget, *, public: int
) -> FinalBall:
    """Clipping norm in the plan's coordinates, and what it takes from the mean squared length.

    Spends up to `settings.radius_share` on counts and `settings.tail_share` on the excess.
    """
    mu, steps, tail = budget.privacy.mu, settings.second_steps, settings.tail_share
    share = count_share(steps, settings, features=records.shape[1], records=public, mu=mu)
    final = share_mu(mu, budget.remaining - share - tail)
    wanted = settings.clip_factor * plan.noise * plan.mean_square / plan.clipping / final
    if tail and plan.even:
        wanted *= settings.surplus_factor
    above = searched_count(wanted, count_std(mu, share, steps), public, settings)
    half = math.sqrt(settings.second_span)
    search = Search(math.sqrt(plan.mean_square) / half, math.sqrt(plan.mean_square) * half, above, steps)
    found = private_radius("second radius", records, search, budget, records=public, share=share)
    radius, clipped = _extrapolated(found, search, wanted, public, settings, freedom=plan.freedom, longest=plan.longest)
    if not tail:
        return FinalBall(radius, clipped, 0.0)
    limit = radius**2 * plan.excess_limit(math.sqrt(tail / (budget.remaining - tail)), settings)
    return FinalBall(radius, clipped, private_excess(records, radius, limit, budget, records=public, share=tail))


def measure_final_moment(
    records: PrivateRecords, plan: FinalPlan, ball: FinalBall, budget: FitBudget, *, public: int
) -> BallMoment:
    """Noisy moment of records in the plan's coordinates, clipped to the ball. Spends all that remains."""
    share = budget.remaining
    return ball_moment("final moment", records, ball.radius, budget, share=share, public=public, ratio=plan.ratio)


def rough_share(settings: Settings, *, features: int, records: int, mu: float) -> float:
    """Share of ``mu^2`` for the rough moment: with more records, less of the budget finds where they lie."""
    share = settings.rough_scale * math.sqrt(features / (records * mu))
    return min(max(share, settings.least_rough_share), settings.rough_share)


def check_designs(budget: FitBudget, size: int, records: int) -> None:
    """Raise the errors that designs of a fit can have, before it is charged: likeliest with the whole budget."""
    for query in (count_query(records, budget.neighbours), ball_query(size, 1.0, records, budget.neighbours)):
        make_design(query, budget.privacy, allocation=isotropic())


def _extrapolated(
    radius: float, search: Search, wanted: float, records: int, settings: Settings, *, freedom: float, longest: float
) -> tuple[float, float]:
    """A radius for as many records as wanted, from one found for more; and the share of records above it then."""
    share = target_count(wanted, search.above, records, freedom, settings) / records
    further = extrapolate_radius(radius, search.above / records, share, freedom)
    return min(further, max(radius, longest)), share
