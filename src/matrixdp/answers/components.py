"""Principal components of the numbers of a table, with error bars, where noise separates them."""

from __future__ import annotations

from typing import Any

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.answers.noise_draws import draw_again, robust_spread
from matrixdp.answers.pairs import Pairs, Variable
from matrixdp.answers.table_view import select_groups
from matrixdp.checks import check_integer
from matrixdp.design.design import Design
from matrixdp.errors import ParameterError
from matrixdp.types import Floats

SEPARATION = 6.0  # of two components, in standard deviations of the noise that mixes them


def components(matrix: Floats, design: Design, count: int | None = None, group: Any = None) -> Estimate:
    """Principal components of the numbers, standardised, of shape (numbers + 1, count); variances in the last row.

    A component is given if its variance differs from that of each other one by at least `SEPARATION` standard
    deviations of the noise that mixes them, and is NaN otherwise: then noise turns it, and no error bar holds.
    """
    view = select_groups(matrix, design, group)
    names = view.numbers
    if len(names) < 2:
        raise ParameterError("principal components need at least two columns of numbers.")
    number = check_integer(len(names) if count is None else count, "count", at_least=1, at_most=len(names))
    pairs = Pairs(view, [Variable(name, view.number(name).value, view.number(name).observed) for name in names])

    def standardise(noisy: Floats) -> Floats:
        moments = pairs.moments(noisy)
        scale = np.sqrt(np.maximum(np.diagonal(moments.covariance), np.diagonal(moments.noise)))
        return np.asarray(moments.covariance / scale / scale[:, None])

    released = standardise(view.matrix)
    drawn = np.array([standardise(noisy) for noisy in draw_again(view)])
    values, vectors = (array[..., ::-1] for array in np.linalg.eigh(released))
    vectors = vectors * np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(names))] < 0, -1.0, 1.0)
    gaps = np.abs(values - values[:, None])
    mixing = robust_spread(vectors.T @ (drawn - released) @ vectors)
    np.fill_diagonal(gaps, np.inf)
    nearest = np.argmin(gaps / np.maximum(mixing, 1e-300), axis=1)
    drawn_values, drawn_vectors = (array[..., ::-1] for array in np.linalg.eigh(drawn))
    drawn_vectors = drawn_vectors * np.where((drawn_vectors * vectors).sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    with np.errstate(divide="ignore"):
        apart = (mixing**2 / np.where(np.isinf(gaps), np.inf, values[:, None] - values)).sum(axis=1)
    value = np.vstack([vectors, np.maximum(values - apart, 0.0)])  # noise moves variances apart
    std = robust_spread(np.concatenate([drawn_vectors, drawn_values[:, None]], axis=1))
    reasons = np.empty(value.shape, object)
    for k, other in enumerate(nearest.tolist()):
        if gaps[k, other] < SEPARATION * mixing[k, other]:
            value[:, k], std[:, k], reasons[:, k] = np.nan, np.nan, f"not separated from PC{other + 1}"
    titles = tuple(f"PC{k + 1}" for k in range(number))
    return Estimate(value[:, :number], std[:, :number], (*names, "variance"), titles, reasons[:, :number])
