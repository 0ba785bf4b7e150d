"""The public description of data in a schema, for forecasts of adaptive fits and of tables."""

from __future__ import annotations

import numpy as np

from matrixdp.adaptive.forecast import Description
from matrixdp.answers.described_table import TableDescription
from matrixdp.cli.actions.schema_file import Schema
from matrixdp.cli.actions.schema_guesses import Guess
from matrixdp.domain.bounds import Bounds
from matrixdp.types import Floats


def describe_data(schema: Schema, bounds: Bounds) -> Description:
    """Description of the columns that `bounds` name; what the schema does not guess is typical of tables."""
    usual, width = Description(), 2 * bounds.halfwidths
    spread, position = (np.full(bounds.size, value, dtype=np.float64) for value in (usual.spread, usual.position))
    for index, name in enumerate(bounds.names or ()):
        guess = schema.guesses.get(name, Guess())
        if guess.mean is not None:
            position[index] = (guess.mean - bounds.lower[index]) / width[index]
        if guess.std is not None:
            spread[index] = guess.std / width[index]
    correlation = usual.correlation if schema.expected_correlation is None else schema.expected_correlation
    return Description(np.minimum(spread, 0.5), np.clip(position, 0.0, 1.0), correlation)


def describe_moments(schema: Schema, bounds: Bounds) -> Floats:
    """Mean and second moment of the described data, as `Moments` releases them, of shape (m + 1, m + 1)."""
    mean, covariance = describe_data(schema, bounds).moments(bounds.size)
    centre = np.concatenate([[1.0], mean])
    moments = np.multiply.outer(centre, centre)
    moments[1:, 1:] += covariance
    scale = np.concatenate([[1.0], bounds.halfwidths])
    return np.asarray(moments * np.multiply.outer(scale, scale))


def describe_table(schema: Schema) -> TableDescription:
    """The guesses of a schema about its columns."""
    found = schema.guesses.items()
    return TableDescription(
        means={name: guess.mean for name, guess in found if guess.mean is not None},
        stds={name: guess.std for name, guess in found if guess.std is not None},
        correlation=schema.expected_correlation,
        shares={name: guess.shares for name, guess in found if guess.shares},
        missing={name: guess.missing for name, guess in found if guess.missing is not None},
    )
