"""How the entries of a matrix are coloured: what is certain is loud, what may be noise alone fades."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.display import CERTAIN
from matrixdp.report.certainty import count_different, find_limit
from matrixdp.report.stylesheet import DOUBTFUL, FADED, WEAKEST
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class Shading:
    """Colours of the entries of a matrix of shape (rows, columns).

    Attributes
    ----------
    hue : array of str
        'positive', 'negative' or 'count'; 'fixed' for an entry without noise, 'hidden' for one that noise hides.
    strength : float64 array
        Share of the hue, from 0 to 1.
    weak : bool array
        Whether an entry is within two error bars of zero.
    doubtful : bool array
        Whether an entry is further away, but not so far that it stands out among all entries.
    limit : float
        What an entry of full colour is, in the units of the colours.
    """

    hue: NDArray[np.str_]
    strength: Floats
    weak: NDArray[np.bool_]
    doubtful: NDArray[np.bool_]
    limit: float

    def has(self, hue: str) -> bool:
        """Whether any entry has this hue and does not fade."""
        return bool(((self.hue == hue) & ~self.weak).any())


def shade_entries(value: Floats, std: Floats | None, *, shown: Floats | None = None, counts: bool = False) -> Shading:
    """Colours of a matrix.

    Parameters
    ----------
    value : float64 array of shape (rows, columns)
    std : float64 array of the same shape, or None
        Error bars; None if they are unknown. Nothing fades then.
    shown : float64 array of the same shape, optional
        What the colours show, if not the values themselves: shares of the largest value possible.
    counts : bool
        Whether the values are counts, which have one hue.

    Examples
    --------
    >>> shading = shade_entries(np.array([[1.0, -0.5, 0.1]]), np.array([[0.0, 0.1, 0.1]]))
    >>> shading.hue.tolist(), shading.weak.tolist(), shading.limit
    ([['fixed', 'negative', 'positive']], [[False, False, True]], 0.5)
    """
    shown = value if shown is None else shown
    bars = np.zeros_like(value) if std is None else np.where(np.isfinite(std), std, 0.0)
    hidden = ~np.isfinite(value)
    fixed = np.zeros(value.shape, bool) if std is None else ~hidden & (np.asarray(std) == 0)
    with np.errstate(invalid="ignore"):
        weak = ~hidden & ~fixed & ((np.abs(value) < CERTAIN * bars) | (counts & (value <= 0) & (bars > 0)))
        limit = find_limit(count_different(value, ~hidden & (bars > 0)))
        doubtful = ~hidden & ~fixed & ~weak & (np.abs(value) < limit * bars)
        hue = np.where(counts, "count", np.where(value < 0, "negative", "positive"))
    hue = np.where(hidden, "hidden", np.where(fixed, "fixed", hue))
    size = np.where(hidden | fixed, 0.0, np.abs(np.nan_to_num(shown)))
    full = float(size[~weak].max(initial=0.0)) or float(size.max(initial=0.0)) or 1.0
    full = full if shown is value else min(full, 1.0)
    strong = np.where(size > 0, WEAKEST + (1 - WEAKEST) * np.minimum(size / full, 1.0), 0.0)
    strong = np.where(doubtful, np.minimum(strong, DOUBTFUL), strong)
    with np.errstate(all="ignore"):
        pale = FADED * np.minimum(np.abs(np.nan_to_num(value)) / np.where(bars > 0, CERTAIN * bars, 1.0), 1.0)
    strength = np.where(hidden | fixed, 0.0, np.where(weak, pale, strong))
    return Shading(hue, strength, weak, doubtful, full)
