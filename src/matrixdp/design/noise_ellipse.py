"""The noise of two features as an ellipse that contains it with 95 % probability."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from matrixdp.design.public_total import adjusted_covariance
from matrixdp.errors import ParameterError
from matrixdp.noise.structure import EdgeNoise, Squares
from matrixdp.queries import MatrixQuery, Moments
from matrixdp.types import Floats

if TYPE_CHECKING:
    from matrixdp.design.design import Design

REACH = math.sqrt(-2 * math.log(0.05))  # radius of the disc that holds 95 % of a standard normal pair


def pair_covariance(design: Design, i: int, j: int) -> Floats:
    """Covariance of the noise in two released numbers, one for each of two features, of shape (2, 2).

    The numbers are the means for moments, the diagonal entries for other symmetric answers, and otherwise the entries
    of one row or column. Symmetric noise has ``cov(Z_ij, Z_kl) = (C_ik C_jl + C_il C_jk)/2``.
    """
    if design.flat:
        raise ParameterError("a noise ellipse needs a design with directions; this one has a covariance of its own.")
    side, other = (design.colcov, design.rowcov) if design.query.side != "rows" else (design.rowcov, design.colcov)
    matrix = side.matrix()
    if isinstance(design.query, Moments):
        pair = np.array([i + 1, j + 1])
        return np.asarray(matrix[0, 0] * matrix[np.ix_(pair, pair)] / 2)
    if design.query.total is not None:
        return adjusted_covariance(design.noise, 0, [i, j])
    if isinstance(design.structure, Squares | EdgeNoise):
        return design.structure.diagonal_covariance(side)[np.ix_([i, j], [i, j])]
    block = matrix[np.ix_([i, j], [i, j])]
    return np.asarray(np.square(block) if design.query.symmetric else block * other.variances[0])


def outline_ellipse(covariance: Floats) -> Floats:
    """Points of the curve that contains 95 % of noise with this covariance, of shape (2, 121)."""
    values, vectors = np.linalg.eigh(covariance)
    angles = np.linspace(0, 2 * np.pi, 121)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    return np.asarray(REACH * (vectors * np.sqrt(np.maximum(values, 0.0))) @ circle)


def describe_numbers(design: Design) -> str:
    """The numbers of two features whose noise `pair_covariance` describes, to go before the names of the features."""
    if isinstance(design.query, Moments):
        return "the means of "
    return "the diagonal entries of " if design.query.symmetric else ""


def feature_names(query: MatrixQuery) -> tuple[str, ...]:
    """Names of the features of a query, as they are in its answer."""
    rows, columns = query.entry_names
    return rows if query.side == "rows" else columns[-query.features :]
