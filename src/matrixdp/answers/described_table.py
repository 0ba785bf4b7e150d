"""Moments of a table that is described in public: what a forecast takes the data to be. No data are read.

Given a few common factors (`factor_loadings`), columns are independent: a number is the factors' part plus its own, a
category is a number that is cut into levels, and values are missing at random. So the moments are those of a table that
could exist, and only they matter for the errors of a release, since its noise does not depend on the data.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from matrixdp.answers.noise_law import repeat_entries
from matrixdp.domain.columns import Category, Number, YesNo
from matrixdp.domain.schema import TableDescription, spread_shares
from matrixdp.noise.table_noise import LEVEL, VALUE
from matrixdp.types import Floats

_SEED = 1
_POINTS = 128  # values of the factors, over which moments are averaged
_ROUNDS = 8  # of fitting the shares of levels to their guesses
_ASSOCIATION = 0.7  # of categories, relative to the correlations of numbers: in real tables they depend less on others


class TableShape(NamedTuple):
    """What is assumed where a `TableDescription` has no guess."""

    spread: float  # as a share of the width of the bounds, as is the position of the mean above the lower bound
    position: float
    correlation: float  # root mean square of those of the numbers
    level: float  # size of the level or group that is judged, relative to equal ones
    missing: float  # share of missing values in a column that allows them


# About the quantiles 10%, 50% and 90% of tables whose bounds are the rounded range of their values.
FRIENDLY = TableShape(spread=0.25, position=0.5, correlation=0.1, level=1.0, missing=0.0)
TYPICAL = TableShape(spread=0.15, position=0.3, correlation=0.3, level=0.5, missing=0.1)
HOSTILE = TableShape(spread=0.05, position=0.05, correlation=0.5, level=0.1, missing=0.3)
SHAPES = {"friendly": FRIENDLY, "typical": TYPICAL, "hostile": HOSTILE}


def describe_moments(query: Any, description: TableDescription, shape: TableShape, *, rare: bool = False) -> Floats:
    """Moments of a described table, of the shape of the answer of `query`, a TableMoments; levels may be `rare`."""
    description.check(query.columns)
    correlation = shape.correlation if description.correlation is None else description.correlation
    numbers, categories = query.used.numbers, query.columns.categories
    loadings, common = factor_loadings(correlation, len(numbers), others=len(categories))
    factors = loadings.shape[1]
    spread = np.random.default_rng(_SEED).standard_normal((max(_POINTS, 4 * factors), factors))
    left, _, right = np.linalg.svd(spread - spread.mean(axis=0), full_matrices=False)  # to mean 0 and covariance I
    reach = left @ right * np.sqrt(len(spread)) @ loadings.T * np.sqrt(common)  # the factors' part of each column
    reach[:, len(numbers) :] *= _ASSOCIATION
    rest = np.sqrt(1 - common * _ASSOCIATION**2)
    levels = {
        column.name: _cut(_guess_shares(column, description, shape, rare=rare), part, rest)
        for column, part in zip(categories, reach.T[len(numbers) :], strict=True)
    }
    points, p = len(reach), query.layout.size
    given, squares = np.ones((points, p)), np.zeros((points, p))  # expectation of z given the factors, and of squares
    level, owners = query.layout.of_kind(LEVEL), np.array(query.layout.columns)
    given[:, level] = 1 / np.bincount(owners)[owners[level]]  # of bins, which answers do not use
    for name, place in query.places.items():
        if place.levels:
            given[:, place.value : place.value + len(place.levels)] = levels[name]
    for column, part in zip(numbers, reach.T, strict=False):
        mean, std, there = _guess_number(column, description, shape)
        place = query.places[column.name]
        value = mean + std * part
        if place.observed:
            given[:, place.observed] = there
        given[:, place.value] = there * value
        squares[:, place.value] = there * (value**2 + std**2 * (1 - common))
    sizes = np.full((points, 1), 1 / points)  # of the groups, given the factors
    for name in query.by:
        sizes = (sizes[:, :, None] * levels[name][:, None]).reshape(points, -1)
    return np.concatenate([_multiply(query.layout, given, squares, size) for size in sizes.T])


def factor_loadings(wanted: float, size: int, *, others: int = 0) -> tuple[Floats, float]:
    """Loadings of unit length on about ``1/wanted`` factors, and the share of the variance that the factors have.

    Correlations of the first `size` variables then have the root mean square `wanted`. One factor would be too easy.
    """
    if not wanted or size + others == 1:
        return np.ones((size + others, 1)), 0.0
    factors = max(1, min(round(1 / wanted), size or others))
    rng = np.random.default_rng(_SEED)
    loadings = np.concatenate([rng.standard_normal((many, factors)) for many in (size, others)])
    loadings /= np.linalg.norm(loadings, axis=1)[:, None]
    products = (loadings @ loadings.T)[:size, :size][np.tril_indices(size, -1)]
    found = float(np.sqrt(np.mean(products**2))) if products.size else factors**-0.5
    return loadings, min(1.0, wanted / found)


def _guess_number(column: Number, description: TableDescription, shape: TableShape) -> tuple[float, float, float]:
    """Mean less the middle of the bounds, standard deviation, and share of the values that are there."""
    width = column.upper - column.lower
    mean = description.means.get(column.name, column.lower + shape.position * width)
    std = description.stds.get(column.name, shape.spread * width)
    most = np.sqrt(max((mean - column.lower) * (column.upper - mean), 0.0))  # the largest that is possible
    there = 1 - description.missing.get(column.name, shape.missing) if column.missing else 1.0
    return mean - (column.lower + column.upper) / 2, min(std, float(most)), there


def _guess_shares(column: Category | YesNo, description: TableDescription, shape: TableShape, *, rare: bool) -> Floats:
    shares = description.shares.get(column.name)
    if shares is None:  # levels are equal or, but for the first, have the size that is judged
        names = column.level_names[: -1 if column.missing else None]
        shares = dict.fromkeys(names[1:], (shape.level if rare else 1.0) / len(names))
    return spread_shares(column, shares, description.missing.get(column.name, shape.missing))


def _cut(shares: Floats, part: Floats, rest: float) -> Floats:
    """Probability of each level given the factors, of shape (points, levels), for a normal variable cut into levels."""
    with np.errstate(divide="ignore"):
        cuts = ndtri(np.clip(np.cumsum(np.append(0.0, shares)), 0.0, 1.0))
    cuts[-1] = np.inf
    found = np.diff(ndtr((cuts - part[:, None]) / rest), axis=1)
    for _ in range(_ROUNDS):  # the points are few, and their shares differ a little
        found *= shares / np.maximum(found.mean(axis=0), 1e-300)
        found /= np.maximum(found.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(found)


def _multiply(layout: Any, given: Floats, squares: Floats, weights: Floats) -> Floats:
    """Moments of one group, of shape (p, p)."""
    moments = repeat_entries(layout, (given * weights[:, None]).T @ given)
    values = layout.of_kind(VALUE)
    moments[values, values] = weights @ squares[:, values]
    return moments
