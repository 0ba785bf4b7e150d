"""Learned directions: a rough moment, new coordinates about it, and the final moment in those."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matrixdp.design import isotropic, make_design
from matrixdp.estimators.ball import BallMoment, ball_moment, ball_query, denoise
from matrixdp.estimators.coordinates import Coordinates
from matrixdp.estimators.radius import Search, count_query, count_std, private_radius
from matrixdp.estimators.recipe import Recipe
from matrixdp.estimators.records import Clippable
from matrixdp.estimators.shrinkage import nearest_of_same_trace
from matrixdp.estimators.spending import Spending
from matrixdp.noise.covariance import Floats
from matrixdp.privacy import share_mu

_RATIOS = 2.0 ** np.arange(-4.0, 1.01, 0.25)  # squares of the constant that are tried, in squares of the radius


@dataclass(frozen=True, eq=False)
class Fitted:
    """Mean and covariance of records in [-1, 1]^d, and the noise in them.

    Attributes
    ----------
    mean, covariance : float64 arrays of shape (d,) and (d, d)
        The covariance is positive semidefinite.
    mean_std, std : float64 arrays of shape (d,) and (d, d)
        Standard deviation of the noise in each entry before shrinkage, to first order.
    scale : float64 array of shape (d, d)
        What the final moment's coordinates take for the identity: the learned shape of the noise.
    noise : float
        Standard deviation of the final noise off the diagonal, in those coordinates.
    radius : float
        To which the final moment was clipped.
    learned : bool
        Whether there were enough records for two steps.
    """

    mean: Floats
    covariance: Floats
    mean_std: Floats
    std: Floats
    scale: Floats
    noise: float
    radius: float
    learned: bool


def fit_moment(
    steps: Clippable, recipe: Recipe, spending: Spending, *, records: int, basis: Floats | None = None
) -> Fitted:
    """The whole recipe on records that are on their grid.

    Parameters
    ----------
    steps : Clippable
        Private, of shape (n, d).
    recipe : Recipe
    spending : Spending
    records : int
        The public number of records.
    basis : float64 array of shape (d, d), optional
        Public orthonormal columns to use; learned by default.

    Privacy
    -------
    Looks at the records through `spending` alone: every count and moment has its share of the budget, and whatever
    is chosen in between is a function of earlier noisy answers.
    """
    d, mu = steps.shape[1], spending.privacy.mu
    radius = _first_radius(steps, recipe, spending, records)
    scarce = is_scarce(d, records, mu, recipe)
    name, share = ("moment", spending.left) if scarce else ("rough moment", recipe.rough_share)
    rough = ball_moment(name, steps, radius, spending, share=share, public=records)
    if scarce:
        return _finish(None, rough, Coordinates.of(np.eye(d), np.zeros(d)), radius, recipe)
    coordinates, variances = _new_coordinates(rough, recipe, basis, steps.levels)
    ratio = _best_ratio(variances, coordinates.centre, recipe)
    moved = steps.moved(coordinates)
    search = _second_search(variances, recipe, share_mu(mu, spending.left - recipe.radius_share), records, ratio)
    cut = private_radius("second radius", moved, search, spending, records=records, share=recipe.radius_share)
    final = ball_moment("final moment", moved, cut, spending, share=spending.left, public=records, ratio=ratio)
    return _finish(rough, final, coordinates, cut, recipe)


def rehearse(spending: Spending, size: int, records: int) -> None:
    """The errors that designs of a fit could have, before it is charged: with the whole budget they are likeliest."""
    for query in (count_query(records, spending.neighbours), ball_query(size, 1.0, records, spending.neighbours)):
        make_design(query, spending.privacy, allocation=isotropic())


def is_scarce(features: int, records: int, mu: float, recipe: Recipe) -> bool:
    """The public rule: too few records for two steps."""
    return features / (records * mu) > recipe.scarce


def _first_radius(steps: Clippable, recipe: Recipe, spending: Spending, records: int) -> float:
    """A radius about the midpoint; a public one where counts would be lost in their noise."""
    d, mu = steps.shape[1], spending.privacy.mu
    if count_std(mu, recipe.radius_share, recipe.first_steps) > records / 4:
        return math.sqrt(d) / 2
    above = min(recipe.above * 1.5 * d / mu, records / 2)
    search = Search(math.sqrt(d) / 64, math.sqrt(d), above, recipe.first_steps)
    return private_radius("radius", steps, search, spending, records=records, share=recipe.radius_share)


def _new_coordinates(
    rough: BallMoment, recipe: Recipe, basis: Floats | None, levels: int
) -> tuple[Coordinates, Floats]:
    """Coordinates along the rough moment's directions, and its variances along them, raised by some of their noise."""
    mean, covariance = rough.denoised()
    if basis is None:
        values, basis = np.linalg.eigh(covariance)
    else:
        values = np.einsum("ji,jk,ki->i", basis, covariance, basis)
    variances = np.maximum(values, 0.0) + recipe.floor * math.sqrt(2) * rough.std
    return Coordinates.of((basis / variances**recipe.power).T, np.clip(mean, -1.0, 1.0), levels), variances


def _best_ratio(variances: Floats, centre: Floats, recipe: Recipe) -> float:
    """Square of the constant before each record, in squares of the radius, with the least error of the moment.

    All noise grows with ``1 + y``. The mean's is ``1/sqrt(y)`` times larger, and moves the second moment about the
    midpoint by its product with the centre; about the mean it hardly matters.
    """
    if recipe.about_mean:
        return float(_RATIOS[0])
    back = variances ** (2 * recipe.power)
    square = float((variances ** (1 - 2 * recipe.power)).sum())  # about the mean of |u|^2
    own = float(back.sum() ** 2 + (back**2).sum()) / 2
    mean = float(centre @ centre) * float(back.sum()) / square
    return float(_RATIOS[np.argmin((1 + _RATIOS) ** 2 * (own + mean / _RATIOS))])


def _second_search(variances: Floats, recipe: Recipe, mu: float, records: int, ratio: float) -> Search:
    """The final radius: about the typical length, with as many records above it as balance the noise."""
    inner = float((variances ** (1 - 2 * recipe.power)).sum())
    outer = float((variances ** (2 * recipe.power)).sum())
    balance = (1 + ratio) * inner * outer / float(np.linalg.norm(variances)) / mu
    return Search(
        math.sqrt(inner) / 4, math.sqrt(inner) * 4, min(recipe.above * balance, records / 2), recipe.second_steps
    )


def _finish(
    rough: BallMoment | None, final: BallMoment, coordinates: Coordinates, radius: float, recipe: Recipe
) -> Fitted:
    """Both moments by their precisions, in the final coordinates; made a covariance, and mapped back."""
    d = final.mean.size
    second, variances = final.moved(np.eye(d), np.zeros(d))
    if rough is not None:
        other, others = rough.moved(coordinates.matrix, coordinates.centre)
        weights = others / (variances + others)
        second = weights * second + (1 - weights) * other
        variances = weights * variances
    second[0, 0] = 1.0
    back = coordinates.inverse
    if recipe.shrink:
        mean, inner = denoise(second, final.constant, final.std)
        kept = 1.0 if rough is not None else _kept(second, final.std)
        mean, covariance = math.sqrt(kept) * mean, kept * back @ inner @ back.T
    else:
        mean = second[0, 1:]
        inner = second[1:, 1:] - np.multiply.outer(mean, mean) + np.diag(variances[0, 1:])
        covariance = nearest_of_same_trace(back @ inner @ back.T)
    squares = back**2
    return Fitted(
        mean=np.clip(coordinates.centre + back @ mean, -1.0, 1.0),
        covariance=nearest_of_same_trace(covariance),
        mean_std=np.sqrt(squares @ variances[0, 1:]),
        std=np.sqrt(squares @ variances[1:, 1:] @ squares.T),
        scale=back @ back.T,
        noise=final.std,
        radius=radius,
        learned=rough is not None,
    )


def _kept(second: Floats, std: float) -> float:
    """How much of a moment to keep whose trace may be noise alone: Wiener's factor, with the trace as it was seen."""
    trace = float(np.trace(second)) - 1.0
    variance = 2 * std**2 * (len(second) - 1)
    return trace**2 / (trace**2 + variance) if trace > 0 else 0.0
