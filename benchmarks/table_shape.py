"""How much less error other shapes of noise would have in the answers about a table, in theory.

A table of m numbers and g categories of k levels each, under replace neighbours. The answers are means by level, tables
of two categories and correlations, and their error is the sum of all standard deviations, relative to ranges; levels
have the same size, numbers the mean 0.2 and the given variance in halfwidths. Noise that treats numbers alike and
levels alike has five precisions: of means of numbers, shares of levels, products of two numbers, of a number and a
level, and of two levels, all about the centre of the levels. The change of a record at corners depends only on how many
numbers and levels it keeps, so that the best precisions are found by search. Compared with the default:

- **weights**: the best squared lengths of constant and levels, relative to numbers, for `TableMoments`.
- **centred**: the same for levels that are measured about their public centre 1/k.
- **best**: the best of all such noise. Squares of numbers are left aside, which favours it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize

from benchmarks.sizes import size
from matrixdp.types import Floats

TABLES = size(
    ((8, 7, 2, 0.1), (5, 7, 3, 0.1), (5, 4, 5, 0.1), (7, 3, 7, 0.1), (10, 5, 8, 0.1), (20, 2, 3, 0.1)),
    ((5, 4, 5, 0.1),),
)
MEAN = 0.2


class Shapes:
    """Noise for m numbers and g categories of k levels."""

    def __init__(self, m: int, g: int, k: int, variance: float) -> None:
        self.m, self.g, self.k, self.variance = m, g, k, variance
        self.changes = np.array([self._change(a, e) for a in range(m + 1) for e in range(g + 1)], float)

    def _change(self, flipped: int, kept: int) -> Sequence[float]:
        """Squared changes of the five kinds of numbers if some numbers change sign and some levels are kept."""
        m, g, k = self.m, self.g, self.k
        inner, length = kept - g / k, g * (1 - 1 / k)
        squares = kept * (1 - 1 / k) ** 2 + (g - kept) / k**2
        number_level = 2 * m * length - 2 * (m - 2 * flipped) * inner
        two_levels = g * (g - 1) * (1 - 1 / k) ** 2 - (inner**2 - squares)
        return 4 * flipped, 2 * (g - kept), 4 * flipped * (m - flipped), number_level, two_levels

    def error(self, precisions: Floats) -> float:
        """Sum of the standard deviations of all answers, for noise scaled to these precisions."""
        mean, share, numbers, number_level, levels = (self.changes @ precisions).max() / precisions
        m, g, k, p = self.m, self.g, self.k, 1 - 1 / self.k
        by_level = g * k * m * k * np.sqrt(p * number_level + mean / k**2) / 2
        tables = g * (g - 1) / 2 * k**2 * np.sqrt(p**2 * levels + 2 * p / k**2 * share)
        correlations = m * (m - 1) / 2 * np.sqrt(numbers + 2 * MEAN**2 * mean) / self.variance / 2
        return float(by_level + tables + correlations)

    def precisions(self, constant: float, level: float) -> Floats:
        """For squared lengths of the constant and of levels about their centre; numbers have 1."""
        return np.array(
            [2 * constant, 2 * constant * level + (1 - 2 / self.k) * level**2, 2, 2 * level, 2 * level**2], float
        )

    @property
    def today(self) -> float:
        """Error of the default."""
        rest, centre = self.m + self.g, self.g / self.k
        return self.error(self.precisions(max(rest / np.sqrt(8 * rest) - centre, 0.01 * rest) + centre, 1.0))

    def gains(self) -> list[float]:
        """How many times less error the best weights, centred levels and the best noise have."""

        def uncentred(t: Floats) -> float:
            constant, level = np.exp(t)
            return self.error(self.precisions(constant + self.g * level / self.k, level))

        weights, _ = search(uncentred, np.zeros(2))
        centred, found = search(lambda t: self.error(self.precisions(*np.exp(t))), np.zeros(2))
        best, _ = search(lambda t: self.error(np.exp(t)), np.log(self.precisions(*np.exp(found))))
        return [self.today / error for error in (weights, centred, best)]


def search(error: Callable[[Floats], float], start: Floats) -> tuple[float, Floats]:
    """The least error, and where it is."""
    for _ in range(4):  # from where the last one ended
        options = {"maxiter": 10_000, "xatol": 1e-9, "fatol": 1e-9}
        start = minimize(error, start, method="Nelder-Mead", options=options).x
    return error(start), start


def main() -> None:
    print(
        f"{'numbers':>7} {'categories':>10} {'levels':>6}   times less error: {'weights':>7} {'centred':>7} {'best':>7}"
    )
    for m, g, k, variance in TABLES:
        gains = " ".join(f"{gain:7.3f}" for gain in Shapes(m, g, k, variance).gains())
        print(f"{m:7} {g:10} {k:6}                     {gains}", flush=True)


if __name__ == "__main__":
    main()
