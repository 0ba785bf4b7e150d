"""The public description of data in a schema, for forecasts of adaptive fits and of tables."""

from __future__ import annotations

import numpy as np

from matrixdp.adaptive.forecast import Description
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.schema import Schema
from matrixdp.types import Floats


def describe_data(schema: Schema, bounds: Bounds) -> Description:
    """Description of the columns that `bounds` name; what the schema does not guess is typical of tables."""
    usual, width = Description(), 2 * bounds.halfwidths
    spread, position = (np.full(bounds.size, value, dtype=np.float64) for value in (usual.spread, usual.position))
    for index, name in enumerate(bounds.names or ()):
        if name in schema.guesses.means:
            position[index] = (schema.guesses.means[name] - bounds.lower[index]) / width[index]
        if name in schema.guesses.stds:
            spread[index] = schema.guesses.stds[name] / width[index]
    guessed = schema.guesses.correlation
    correlation = usual.correlation if guessed is None else guessed
    return Description(np.minimum(spread, 0.5), np.clip(position, 0.0, 1.0), correlation)


def describe_moments(schema: Schema, bounds: Bounds) -> Floats:
    """Mean and second moment of the described data, as `Moments` releases them, of shape (m + 1, m + 1)."""
    mean, covariance = describe_data(schema, bounds).moments(bounds.size)
    centre = np.concatenate([[1.0], mean])
    moments = np.multiply.outer(centre, centre)
    moments[1:, 1:] += covariance
    scale = np.concatenate([[1.0], bounds.halfwidths])
    return np.asarray(moments * np.multiply.outer(scale, scale))
