"""The private moment with learned coordinates, in five steps."""

from __future__ import annotations

import math

from matrixdp.adaptive.ball_moment import BallMoment, ball_moment, ball_query
from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.clipped_tail import private_excess
from matrixdp.adaptive.grid_records import PrivateRecords
from matrixdp.adaptive.plan import FinalBall, FinalPlan, plan_final_moment
from matrixdp.adaptive.postprocess import Fitted, finish_combined, finish_single
from matrixdp.adaptive.radius import Search, count_query, count_std, extrapolate_radius, private_radius
from matrixdp.adaptive.settings import Recipe, count_share, rough_share, searched_count, target_count
from matrixdp.design import isotropic, make_design
from matrixdp.privacy import share_mu
from matrixdp.types import Floats

_GIVEN_BACK = 4 / 3  # times as many records are clipped where what is cut off is given back


def fit_moment(
    records: PrivateRecords,
    recipe: Recipe,
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
    recipe : Recipe
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
    radius = find_first_radius(records, recipe, budget, public=public)
    if is_scarce(records.shape[1], public, budget.privacy.mu, recipe):
        return finish_single(measure_only_moment(records, radius, recipe, budget, public=public), radius, recipe)
    rough = measure_rough_moment(records, radius, recipe, budget, public=public)
    plan = plan_final_moment(rough, recipe, basis=basis, levels=records.levels, targets=targets)
    transformed = records.transform(plan.coordinates)
    ball = find_final_ball(transformed, plan, recipe, budget, public=public)
    final = measure_final_moment(transformed, plan, ball, budget, public=public)
    return finish_combined(rough, final, plan, ball, recipe)


def is_scarce(features: int, records: int, mu: float, recipe: Recipe) -> bool:
    """Whether there are too few records for learned coordinates: a public rule."""
    return features / (records * mu) > recipe.scarce


def find_first_radius(records: PrivateRecords, recipe: Recipe, budget: FitBudget, *, public: int) -> float:
    """Clipping norm about the midpoint that balances clipping error and noise.

    Spends up to `recipe.radius_share`; nothing where counts would be lost in their noise, for a public radius.
    """
    d, mu = records.shape[1], budget.privacy.mu
    share = count_share(recipe.first_steps, features=d, records=public, mu=mu, most=recipe.radius_share)
    std = count_std(mu, share, recipe.first_steps)
    if std > public / 4:
        return math.sqrt(d) / 2
    most, wanted = math.sqrt(d), recipe.above * 1.5 * d / mu
    search = Search(most / 64, most, searched_count(wanted, std, public), recipe.first_steps)
    radius = private_radius("radius", records, search, budget, records=public, share=share)
    return _extrapolated(radius, search, wanted, public, freedom=d, longest=most)[0]


def measure_rough_moment(
    records: PrivateRecords, radius: float, recipe: Recipe, budget: FitBudget, *, public: int
) -> BallMoment:
    """Noisy moment about the midpoint, from which coordinates are learned. Spends `rough_share`."""
    share = rough_share(recipe, features=records.shape[1], records=public, mu=budget.privacy.mu)
    return ball_moment("rough moment", records, radius, budget, share=share, public=public, ratio=recipe.rough_ratio)


def measure_only_moment(
    records: PrivateRecords, radius: float, recipe: Recipe, budget: FitBudget, *, public: int
) -> BallMoment:
    """Noisy moment about the midpoint where records are scarce. Spends all that remains."""
    share = budget.remaining
    return ball_moment("moment", records, radius, budget, share=share, public=public, ratio=recipe.rough_ratio)


def find_final_ball(
    records: PrivateRecords, plan: FinalPlan, recipe: Recipe, budget: FitBudget, *, public: int
) -> FinalBall:
    """Clipping norm in the plan's coordinates, and what it takes from the mean squared length.

    Spends up to `recipe.radius_share` on counts and `recipe.tail_share` on the excess.
    """
    mu, steps, tail = budget.privacy.mu, recipe.second_steps, recipe.tail_share
    share = count_share(steps, features=records.shape[1], records=public, mu=mu, most=recipe.radius_share)
    final = share_mu(mu, budget.remaining - share - tail)
    wanted = recipe.above * plan.noise * plan.mean_square / plan.clipping / final
    if tail and plan.even:
        wanted *= _GIVEN_BACK
    above = searched_count(wanted, count_std(mu, share, steps), public)
    search = Search(math.sqrt(plan.mean_square) / 4, math.sqrt(plan.mean_square) * 4, above, steps)
    found = private_radius("second radius", records, search, budget, records=public, share=share)
    radius, clipped = _extrapolated(found, search, wanted, public, freedom=plan.freedom, longest=plan.longest)
    if not tail:
        return FinalBall(radius, clipped, 0.0)
    limit = radius**2 * plan.excess_limit(math.sqrt(tail / (budget.remaining - tail)))
    return FinalBall(radius, clipped, private_excess(records, radius, limit, budget, records=public, share=tail))


def measure_final_moment(
    records: PrivateRecords, plan: FinalPlan, ball: FinalBall, budget: FitBudget, *, public: int
) -> BallMoment:
    """Noisy moment of records in the plan's coordinates, clipped to the ball. Spends all that remains."""
    share = budget.remaining
    return ball_moment("final moment", records, ball.radius, budget, share=share, public=public, ratio=plan.ratio)


def check_designs(budget: FitBudget, size: int, records: int) -> None:
    """Raise the errors that designs of a fit can have, before it is charged: likeliest with the whole budget."""
    for query in (count_query(records, budget.neighbours), ball_query(size, 1.0, records, budget.neighbours)):
        make_design(query, budget.privacy, allocation=isotropic())


def _extrapolated(
    radius: float, search: Search, wanted: float, records: int, *, freedom: float, longest: float
) -> tuple[float, float]:
    """A radius for as many records as wanted, from one found for more; and the share of records above it then."""
    share = target_count(wanted, search.above, records, freedom) / records
    further = extrapolate_radius(radius, search.above / records, share, freedom)
    return min(further, max(radius, longest)), share
