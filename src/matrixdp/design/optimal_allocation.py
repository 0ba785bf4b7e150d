"""The allocation with the least noise: in closed form for boxes and balls, by a solver for vertices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.checks import check_magnitudes, to_floats
from matrixdp.design.allocation import Allocation, BuiltInAllocation, noise_sides
from matrixdp.display import short_repr
from matrixdp.errors import ParameterError
from matrixdp.noise.covariance import Covariance
from matrixdp.queries import MatrixQuery
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class Optimal(BuiltInAllocation):
    """The least weighted noise."""

    rule: ClassVar[str] = "optimal"
    values: Floats | None = None

    __repr__ = short_repr

    def to_fields(self) -> Mapping[str, Any]:
        """Rule, values and share, as JSON has them."""
        return {"rule": self.rule, "values": self.values, "share": 1.0}

    def weights(self, query: MatrixQuery) -> Floats:
        """Weight of each feature's variance, of shape (features,)."""
        if self.values is None:
            return np.asarray(1 / query.extent(None) ** 2)
        if self.values.shape != (query.features,):
            raise ParameterError(
                f"weights must be {query.features} numbers, one per feature, got shape {self.values.shape} instead."
            )
        return np.asarray(self.values)

    def variances(self, query: MatrixQuery, directions: Floats | None) -> Floats:
        """The closed form for a box; with directions, that or isotropic noise, whichever costs less."""
        weights, changes = self.weights(query), query.sensitivity
        if changes.ball:
            return np.ones(weights.size)
        best = _optimal_variances(weights, query.extent(directions), changes.record_radius)
        if directions is None:
            return best
        return min(best, np.ones(best.size), key=lambda variances: _cost(query, directions, variances, weights))

    def precisions(self, query: MatrixQuery) -> Floats:
        """Minimises ``sum weights_i sigma_i`` for a given ``sum 1/sigma_i^2``."""
        weights = self.weights(query) ** (2 / 3)
        return np.asarray(weights / weights.sum())

    def entry_covariance(self, query: MatrixQuery) -> Covariance | None:
        """The best covariance of all entries, where the sensitivity set can be optimised over."""
        return query.sensitivity.best_covariance(query.shape, self.values)


def optimal(weights: ArrayLike | None = None) -> Allocation:
    """The shares with the least noise, ``sum weights_i variance_i``.

    For a symmetric answer ``sum weights_i weights_j variance_ij``. In closed form for records in a box, optionally
    intersected with a ball, and standard directions: the best of all covariances for the identity query, and for second
    moments the best with one diagonal covariance on both sides. For a sensitivity set of vertices by a solver that
    certifies its optimality, over all covariances of the entries; `weights` then have the shape of the answer.

    Parameters
    ----------
    weights : array_like of shape (features,), optional
        Positive, in the inverse squared units of the features. By default one over the squared range of each, so that
        noise counts relative to it (for vertices, ones).
    """
    if weights is None:
        return Optimal()
    array = to_floats(weights, "weights")
    if not array.size:
        raise ParameterError("weights must be at least one number.")
    check_magnitudes(array, "weights", largest=1e120)  # squares of magnitudes
    return Optimal(array)


def _cost(query: MatrixQuery, directions: Floats, variances: Floats, weights: Floats) -> float:
    """The weighted noise of an optimal allocation, after scaling to unit distance."""
    distance = query.sensitivity.distance(*noise_sides(query, variances, directions)).value
    noise = float((weights * variances).sum())
    return noise * distance if query.side == "both" else noise * distance**2


def _optimal_variances(weights: Floats, extent: Floats, radius: float | None) -> Floats:
    """``sqrt(y/weights)``, y the maximiser of ``sum sqrt(weights y)`` over ``0 <= y <= extent^2``, ``sum y <= R^2``.

    y holds the squared coordinates of the record that the noise must hide. In a box it is a corner; a ball limits it to
    ``y_i = min(extent_i^2, level weights_i)`` (water filling).
    """
    y = extent**2
    if radius is not None and y.sum() > radius**2:
        order = np.argsort(y / weights)
        full = np.concatenate([[0.0], np.cumsum(y[order])])[:-1]  # used by the features that reach their bound earlier
        level = (radius**2 - full) / np.cumsum(weights[order][::-1])[::-1]
        first = int(np.argmax(level <= (y / weights)[order]))
        y = np.minimum(y, level[first] * weights)
    return np.sqrt(y / weights)
