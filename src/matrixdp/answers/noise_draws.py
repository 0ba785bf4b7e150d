"""Noise drawn again about released moments, for error bars of what is not linear in them; post-processing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

from matrixdp.answers.table_view import TableView
from matrixdp.types import Floats

DRAWS = 1000  # of the noise, for error bars: their own error is about 3%
_QUARTILE = float(ndtri(0.75))
_FAR = 5.0  # standard deviations at which a draw is cut off, where a fit has poles


def draw_again(view: TableView, count: int = DRAWS) -> Iterator[Floats]:
    """The matrix of a table with new noise added, `count` times. All of it is public."""
    rng = np.random.default_rng(0)  # the noise is simulated and public
    for _ in range(count):
        yield view.matrix + view.draw(rng)


def robust_spread(draws: Floats) -> Floats:
    """Standard deviation over the first axis, after moving draws that are far from the median nearer to it."""
    low, middle, high = np.quantile(draws, [0.25, 0.5, 0.75], axis=0)
    reach = _FAR * (high - low) / 2 / _QUARTILE
    return np.asarray(np.clip(draws, middle - reach, middle + reach).std(axis=0))
