"""The colours of a matrix, and what each means: what is certain is loud, what may be noise alone fades."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from matrixdp.display import CERTAIN, format_number
from matrixdp.report.stylesheet import DOUBTFUL, FADED, WEAKEST
from matrixdp.types import Floats

CHANCE = 0.05  # that noise alone lifts any of the numbers that stand out
_WORDS = {"positive": "orange: positive", "negative": "blue: negative", "count": "green: the larger, the stronger"}


def find_limit(numbers: int) -> float:
    """Error bars from zero from which on one of so many numbers stands out from noise (Bonferroni).

    Examples
    --------
    >>> round(find_limit(1), 2), round(find_limit(100), 2)
    (2.0, 3.48)
    """
    return max(CERTAIN, float(-ndtri(CHANCE / (2 * max(numbers, 1)))))


def count_different(value: Floats, noisy: NDArray[np.bool_]) -> int:
    """How many of the noisy entries are different numbers: of a symmetric matrix, those on one side of the diagonal."""
    if value.ndim == 2 and value.shape[0] == value.shape[1] and np.array_equal(value, value.T, equal_nan=True):
        noisy = np.triu(noisy)
    return int(noisy.sum())


@dataclass(frozen=True)
class LegendItem:
    """One entry: a 'ramp' of one or two hues, or a swatch that is 'weak', 'fixed' or 'hidden', and its words."""

    kind: str
    hues: tuple[str, ...]
    words: str
    strength: float = 1.0


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
    percent : bool
        Whether full colour is a share of the largest value possible.
    """

    hue: NDArray[np.str_]
    strength: Floats
    weak: NDArray[np.bool_]
    doubtful: NDArray[np.bool_]
    limit: float
    percent: bool = False

    def has(self, hue: str) -> bool:
        """Whether any entry has this hue and does not fade."""
        return bool(((self.hue == hue) & ~self.weak).any())

    def attributes(self, i: int, j: int) -> str:
        """Attributes of an entry's cell in HTML; none for one that noise hides, or outside of the matrix."""
        if i >= self.hue.shape[0] or j >= self.hue.shape[1] or (hue := str(self.hue[i, j])) == "hidden":
            return ""
        share = "" if hue == "fixed" else f' style="--s:{100 * self.strength[i, j]:.0f}%"'
        mark = " weak" if self.weak[i, j] else " doubtful" if self.doubtful[i, j] else ""
        return f'class="{hue}{mark}"{share}'

    def list_legend(self, meaning: str) -> list[LegendItem]:
        """What each colour of the matrix means; `meaning` is what the colours show, such as "correlation"."""
        found = []
        hues = tuple(hue for hue in ("negative", "positive", "count") if self.has(hue))
        if hues:
            limit = f"{format_number(100 * self.limit)}%" if self.percent else format_number(self.limit)
            limit = f"{self.limit:,.0f}" if not self.percent and 1e3 <= self.limit < 1e9 else limit
            words = ", ".join(_WORDS[hue] for hue in hues)
            words += f"; full colour at {'±' * (len(hues) > 1)}{limit} ({meaning})"
            found.append(LegendItem("ramp", hues, words))
        if self.doubtful.any():
            words = "light, number not bold: further from zero, but possible by chance among so many numbers"
            found.append(LegendItem("weak", (str(self.hue[self.doubtful][0]),), words, DOUBTFUL))
        if self.weak.any():
            words = "pale, number in grey: within two error bars of zero, may be noise alone"
            found.append(LegendItem("weak", (str(self.hue[self.weak][0]),), words, FADED))
        if (self.hue == "fixed").any():
            found.append(LegendItem("fixed", ("fixed",), "grey: no noise, known from the definition"))
        if (self.hue == "hidden").any():
            found.append(LegendItem("hidden", ("hidden",), "no number: hidden by noise"))
        return found


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
    percent, shown = shown is not None, value if shown is None else shown
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
    full = min(full, 1.0) if percent else full
    strong = np.where(size > 0, WEAKEST + (1 - WEAKEST) * np.minimum(size / full, 1.0), 0.0)
    strong = np.where(doubtful, np.minimum(strong, DOUBTFUL), strong)
    with np.errstate(all="ignore"):
        pale = FADED * np.minimum(np.abs(np.nan_to_num(value)) / np.where(bars > 0, CERTAIN * bars, 1.0), 1.0)
    strength = np.where(hidden | fixed, 0.0, np.where(weak, pale, strong))
    return Shading(hue, strength, weak, doubtful, full, percent)
