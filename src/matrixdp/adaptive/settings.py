"""Settings of the private moment, fixed for all data, and the public rule for too little of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matrixdp.errors import ParameterError


@dataclass(frozen=True)
class Recipe:
    """How a fit spends its budget, and what it aims at. Public, and chosen without the data.

    Attributes
    ----------
    power : float
        Coordinates are divided by the variances to this power: 1/4 is best for noise alone in Frobenius' norm, 1/2
        makes the coordinates alike, as a regression needs them.
    above : float
        Records above a radius, as a multiple of the number at which clipping and noise balance.
    radius_share, rough_share, tail_share : float
        Shares of ``mu^2`` for each of the two radii (at most: `count_share`), for the rough moment (at most:
        `rough_share`) and for what the final radius cuts off; the final moment has the rest.
    least_rough : float
        The least that the rough moment gets.
    rough_ratio : float
        Square of the constant before each record in the rough moment, in squares of its radius.
    floor : float
        What is added to the rough variances, in standard deviations of their noise.
    pull : float
        How far the centre is moved from the rough mean towards the midpoint, in standard deviations on that way.
    drawn : float
        What clipping takes away from a mean beside the centre: this times the share of records that are clipped.
    shrink : bool
        Whether eigenvalues are shrunk before the matrix is made positive semidefinite.
    level : bool
        Whether eigenvalues that noise alone could have made are taken for alike. A regression lives on their
        differences, as it shows in the small ones: there the rough ones go halfway, and the final ones stay.
    about_mean : bool
        Whether the error counts about the mean, so that the mean itself matters less.
    scarce : float
        ``features/(records mu)`` above which there is too little for two steps.
    first_steps, second_steps : int
        How often each radius' bracket is halved.
    """

    power: float
    above: float
    radius_share: float = 0.06
    rough_share: float = 0.2
    least_rough: float = 0.2
    tail_share: float = 0.0
    rough_ratio: float = 0.125
    floor: float = 1.0
    pull: float = 0.0
    drawn: float = 0.0
    shrink: bool = True
    level: bool = True
    about_mean: bool = False
    scarce: float = 0.5
    first_steps: int = 5
    second_steps: int = 4


COVARIANCE = Recipe(
    power=0.22, above=1.5, rough_share=0.15, least_rough=0.06, tail_share=0.02, floor=0.2, pull=0.4, drawn=0.1
)
COMPONENTS = Recipe(power=0.25, above=4.0, shrink=False, about_mean=True)
REGRESSION = Recipe(power=0.5, above=4.0, level=False, about_mean=True, scarce=1.0)

_RECIPES = {"covariance": COVARIANCE, "components": COMPONENTS, "regression": REGRESSION}


_SURE = 2.25  # standard deviations of their noise that counts must aim at, or the search is led by noise
_NEAR = 3.0  # aimed counts should be as many standard deviations of their noise,
_ALL = 12.0  # and all records as many
_FEW = 0.075  # of the records, at most: to clip as many does less harm than to guess at a longer radius
_ROUGH = 0.6  # of the square root of features/(records mu), for the rough moment


def count_share(steps: int, *, features: int, records: int, mu: float, most: float) -> float:
    """Share of ``mu^2`` for a radius: what makes its counts exact enough, between a tenth of `most` and `most`.

    `steps` counts have noise of ``sqrt(steps/share)/mu``. Those aimed at are about ``2.25 features/mu``; for them no
    more than half of `most` is spent, since a radius that is a little off does little harm where records are many.
    """
    near = min(steps * (_NEAR / (2.25 * features)) ** 2, most / 2)
    return min(max(near, steps * (_ALL / (records * mu)) ** 2, most / 10), most)


def rough_share(recipe: Recipe, *, features: int, records: int, mu: float) -> float:
    """Share of ``mu^2`` for the rough moment: the more records, the less of the budget tells where they lie."""
    return min(max(_ROUGH * math.sqrt(features / (records * mu)), recipe.least_rough), recipe.rough_share)


def searched_count(wanted: float, std: float, records: int) -> float:
    """How many records should lie above a radius: no fewer than stand out from the counts' noise, at most half."""
    return min(max(wanted, _SURE * std), records / 2)


def target_count(wanted: float, aimed: float, records: int, freedom: float) -> float:
    """How many records should lie above a radius in the end, if more had to be aimed at: those wanted, or a few.

    The more freedom their lengths have, the less is cut off of a record, and the worse is a guess at a longer radius.
    """
    return min(aimed, max(wanted, _FEW * (1 - 1 / freedom) * records, 1.0))


def recipe_for(aim: str) -> Recipe:
    """The recipe for 'covariance', 'components' or 'regression'."""
    if aim not in _RECIPES:
        raise ParameterError(f"aim must be one of {', '.join(_RECIPES)}, got {aim!r} instead.")
    return _RECIPES[aim]
