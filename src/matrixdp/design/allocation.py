"""How much of the budget each direction gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.errors import ParameterError, show
from matrixdp.queries import MatrixQuery
from matrixdp.serialise import plain
from matrixdp.types import Floats


@plain
@dataclass(frozen=True, eq=False)
class Allocation:
    """A rule that turns a query and its directions into shares of the privacy loss.

    Made by `uniform`, `isotropic`, `binary`, `shares` or `optimal`.
    """

    rule: str
    values: Any = None
    share: float = 1.0

    @property
    def named(self) -> bool:
        """Whether features are given by name."""
        return isinstance(self.values, tuple) and any(isinstance(value, str) for value in self.values)

    def variances(self, query: MatrixQuery, directions: Floats | None) -> Floats:
        """Variance along each direction up to a common factor, of shape (features,)."""
        extent = query.extent(directions)
        if self.rule == "isotropic":
            return np.ones(extent.size)
        if self.rule == "optimal":
            return _optimal_variances(self.weights(query), extent, _radius(query))
        return extent**2 / self.theta(query)

    def precisions(self, query: MatrixQuery) -> Floats:
        """Shares of the paper's precision budget, of shape (features,); the paper knows nothing of ranges."""
        if self.rule == "optimal":  # minimises sum weights_i sigma_i subject to sum 1/sigma_i^2
            weights = self.weights(query) ** (2 / 3)
            return np.asarray(weights / weights.sum())
        return self.theta(query)

    def theta(self, query: MatrixQuery) -> Floats:
        """Shares of a uniform, binary or given allocation, of shape (features,)."""
        m = query.features
        if self.rule == "binary":
            return _binary(query, self.values, self.share)
        if self.rule == "shares":
            if self.values.shape != (m,):
                raise ParameterError(f"shares must be {m} numbers, one a direction, got {self.values.size} instead.")
            return np.asarray(self.values)
        return np.full(m, 1 / m)

    def weights(self, query: MatrixQuery) -> Floats:
        """Weights of an optimal allocation, of shape (features,)."""
        if self.values is None:
            return np.asarray(1 / query.extent(None) ** 2)
        if self.values.shape != (query.features,):
            raise ParameterError(
                f"weights must be {query.features} numbers, one a feature, got shape {self.values.shape} instead."
            )
        return np.asarray(self.values)


def uniform() -> Allocation:
    """Every direction uses the same share of the privacy loss: its noise is proportional to its range."""
    return Allocation("uniform")


def isotropic() -> Allocation:
    """The same noise in every direction."""
    return Allocation("isotropic")


def binary(important: Sequence[str | int] | int, share: float) -> Allocation:
    """The paper's strategy: the important directions use `share` of the privacy loss, the others the rest.

    Parameters
    ----------
    important : names or numbers of features, or how many of the first directions
        Names mean features; with directions of another basis give numbers.
    share : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import Identity
    >>> query = Identity(Bounds([0] * 4, [1] * 4, names=list("abcd")), records=10)
    >>> binary(["a", "d"], 0.9).theta(query).round(3).tolist()
    [0.45, 0.05, 0.05, 0.45]
    """
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0 < share < 1:
        raise ParameterError(f"share must be strictly between 0 and 1, got {show(share)} instead.")
    if isinstance(important, str):
        important = (important,)
    return Allocation("binary", important if isinstance(important, int) else tuple(important), float(share))


def shares(theta: ArrayLike) -> Allocation:
    """Shares as given: positive, summing to one.

    Examples
    --------
    >>> shares([0.5, 0.25, 0.25]).rule
    'shares'
    """
    return Allocation("shares", check_theta(theta))


def optimal(weights: ArrayLike | None = None) -> Allocation:
    """The shares with the least noise, ``sum weights_i variance_i``.

    For a symmetric answer ``sum weights_i weights_j variance_ij``. In closed form for records in a box, perhaps cut
    with a ball, and standard directions: the best of all covariances for the identity query, and for second moments
    the best with one diagonal covariance on both sides. For a sensitivity set of vertices by a solver that certifies
    its optimality, over all covariances of the entries; `weights` are then of the answer's shape.

    Parameters
    ----------
    weights : array_like of shape (features,), optional
        Positive, in the inverse squared units of the features. By default one over the squared range of each, so that
        noise counts relative to it (for vertices, ones).
    """
    if weights is None:
        return Allocation("optimal")
    array = np.array(weights, np.float64)
    if not array.size or not (np.isfinite(array) & (array > 0)).all():
        raise ParameterError("weights must be finite and positive.")
    return Allocation("optimal", array)


def check_theta(theta: ArrayLike) -> Floats:
    """Shares as floats, after a look at their sign and sum."""
    array = np.array(theta, np.float64)
    if array.ndim != 1 or not array.size or not (np.isfinite(array) & (array > 0)).all():
        raise ParameterError("theta must be a vector of positive shares: noise must be added in every direction.")
    if abs(array.sum() - 1) > 1e-9:
        raise ParameterError(f"theta must sum to 1, got {array.sum():.12g} instead; divide the shares by their sum.")
    return array


def _binary(query: MatrixQuery, important: Any, share: float) -> Floats:
    m = query.features
    chosen = range(important) if isinstance(important, int) else [_find(query, item) for item in important]
    marked = np.zeros(m, bool)
    for i in chosen:
        if not 0 <= i < m:
            raise ParameterError(f"important must be among {m} directions, got number {i} instead.")
        marked[i] = True
    count = int(marked.sum())
    if not 0 < count < m:
        raise ParameterError(
            f"important must be at least 1 and at most {m - 1} of {m} directions, got {count} instead."
        )
    return np.where(marked, share / count, (1 - share) / (m - count))


def _find(query: MatrixQuery, item: str | int) -> int:
    if isinstance(item, str):
        if query.names is None or item not in query.names:
            known = ", ".join(query.names or ()) or "none; use numbers"
            raise ParameterError(f"important must be among the features' names ({known}), got {show(item)} instead.")
        return query.names.index(item)
    return int(item)


def _radius(query: MatrixQuery) -> float | None:
    return getattr(query.sensitivity, "radius", None)


def _optimal_variances(weights: Floats, extent: Floats, radius: float | None) -> Floats:
    """``sqrt(y/weights)``, y the maximiser of ``sum sqrt(weights y)`` over ``0 <= y <= extent^2``, ``sum y <= R^2``.

    y is the most harmful record, squared. In a box it is the corner; a ball fills it up like water: ``y_i =
    min(extent_i^2, level weights_i)``.
    """
    y = extent**2
    if radius is not None and y.sum() > radius**2:
        order = np.argsort(y / weights)
        full = np.concatenate([[0.0], np.cumsum(y[order])])[:-1]  # used by the features that are filled up before each
        level = (radius**2 - full) / np.cumsum(weights[order][::-1])[::-1]
        first = int(np.argmax(level <= (y / weights)[order]))
        y = np.minimum(y, level[first] * weights)
    return np.sqrt(y / weights)
