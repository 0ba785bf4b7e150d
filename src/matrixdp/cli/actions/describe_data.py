"""The public description of data in a schema, for forecasts."""

from __future__ import annotations

import numpy as np

from matrixdp.adaptive.forecast import Description
from matrixdp.cli.actions.schema_file import Guess, Schema
from matrixdp.domain.bounds import Bounds


def describe_data(schema: Schema, bounds: Bounds) -> Description:
    """Description of the columns that `bounds` name; what the schema does not guess is typical of tables."""
    usual, width = Description(), 2 * bounds.halfwidths
    spread, position = (np.full(bounds.size, value, dtype=np.float64) for value in (usual.spread, usual.position))
    for index, name in enumerate(bounds.names or ()):
        guess = schema.guesses.get(name, Guess(None, None))
        if guess.mean is not None:
            position[index] = (guess.mean - bounds.lower[index]) / width[index]
        if guess.std is not None:
            spread[index] = guess.std / width[index]
    correlation = usual.correlation if schema.expected_correlation is None else schema.expected_correlation
    return Description(np.minimum(spread, 0.5), np.clip(position, 0.0, 1.0), correlation)
