"""Means and covariances of the columns of a table as variables, each pair over the records that have both.

A variable is a number, or a level of a category. All of it is post-processing of the noisy moments of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.table_view import TableView
from matrixdp.errors import ParameterError
from matrixdp.noise.table_noise import Place
from matrixdp.types import Floats

_HIDDEN = 1.5  # standard deviations of the noise, for a variance that it hides


@dataclass(frozen=True)
class Variable:
    """A coordinate of z: a number or a level.

    Attributes
    ----------
    column : str
    value, observed : int
        As for `Place`.
    name : str
        By default that of the column.
    """

    column: str
    value: int
    observed: int
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.column)


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Means and covariances of variables, and the standard deviation of the noise in each product."""

    mean: Floats
    covariance: Floats
    noise: Floats

    def inverse(self, count: int) -> Floats:
        """`pseudo_inverse` of the covariance of the first `count` variables."""
        return pseudo_inverse(self.covariance[:count, :count], self.noise[:count, :count])

    def hidden_inverse(self, count: int) -> Floats:
        """`hidden_inverse` of the covariance of the first `count` variables."""
        return hidden_inverse(self.covariance[:count, :count], self.noise[:count, :count])


class Pairs:
    """Moments of variables, each over the records in which both are there, as a function of the noisy matrix.

    What does not depend on the matrix is computed once.
    """

    def __init__(self, view: TableView, variables: Sequence[Variable]) -> None:
        x = np.array([variable.value for variable in variables])
        r = np.array([variable.observed for variable in variables])
        variances = view.structure.variances(view.design.noise)[: len(view.matrix)] * view.merged
        self._products, self._firsts, self._sizes = np.ix_(x, x), np.ix_(x, r), np.ix_(r, r)
        self._least = np.maximum(np.sqrt(variances[self._sizes]), 1e-300)  # the smallest share of records to divide by
        self._noise = np.sqrt(variances[self._products])
        self._mean_variances = np.array([view.variance(*pair) for pair in zip(x.tolist(), r.tolist(), strict=True)])

    def moments(self, matrix: Floats, *, noisy: bool = True) -> PairMoments:
        """The moments, without the bias of noise in squared means; `noisy` says whether there is noise."""
        size = np.maximum(matrix[self._sizes], self._least if noisy else 1e-300)
        first = matrix[self._firsts] / size
        covariance = matrix[self._products] / size - first * first.T
        rows = np.arange(len(size))
        covariance[rows, rows] += noisy * self._mean_variances / np.diagonal(size) ** 2
        return PairMoments(np.diagonal(first).copy(), (covariance + covariance.T) / 2, noisy * self._noise / size)


def column_variables(name: str, place: Place) -> list[Variable]:
    """The variables of a column: one for a number, one for each level of a category."""
    if not place.levels:
        return [Variable(name, place.value, place.observed)]
    return [Variable(name, place.value + k, 0, f"{name}={level}") for k, level in enumerate(place.levels)]


def choose_variables(view: TableView, features: Sequence[str] | None, target: str) -> list[Variable]:
    """Variables of the features of a model, by default of all columns but the target.

    A category has one for each level but the first, which is the reference.
    """
    names = [name for name in view.places if name != target] if features is None else list(features)
    if not names:
        raise ParameterError("features must be at least one column besides the target.")
    if target in names or len(set(names)) != len(names):
        raise ParameterError("features must be different columns, and not the target.")
    found: list[Variable] = []
    for name in names:
        place = view.places.get(name)
        if place is None:
            view.number(name)  # raises
        assert place is not None
        found += column_variables(name, place)[1 if place.levels else 0 :]  # the first level is the reference
    if not found:
        raise ParameterError("features must have at least one number, or a category of two levels.")
    return found


def pseudo_inverse(covariance: Floats, noise: Floats) -> Floats:
    """Inverse over the directions whose variance stands out from the noise, in units of the noise."""
    values, directions, kept, _ = _split_directions(covariance, noise)
    return np.asarray((directions[:, kept] / values[kept]) @ directions[:, kept].T)


def hidden_inverse(covariance: Floats, noise: Floats) -> Floats:
    """Inverse over the other directions, as if their variance were `_HIDDEN` standard deviations of the noise.

    Noise leaves open what it is. Times the variance of a target, this is how far slopes may be from zero there.
    """
    _, directions, kept, unit = _split_directions(covariance, noise)
    return np.asarray(directions[:, ~kept] @ directions[:, ~kept].T / max(_HIDDEN * unit, 1e-300))


def _split_directions(covariance: Floats, noise: Floats) -> tuple[Floats, Floats, NDArray[np.bool_], float]:
    """Eigenvalues and directions of scaled variables, which of them stand out, and the noise of a scaled product."""
    scale = np.sqrt(np.maximum(np.diagonal(covariance), np.diagonal(noise)))
    values, vectors = np.linalg.eigh(covariance / scale / scale[:, None])
    unit = float(np.median(noise / scale / scale[:, None]))
    kept = values > max(unit * np.sqrt(len(covariance)), 1e-12)
    if not kept.any():
        kept[-1] = values[-1] > 0
    return values, vectors / scale[:, None], kept, unit
