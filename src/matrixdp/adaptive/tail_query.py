"""The moment that clipping to a ball takes from records, as a query."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from matrixdp.adaptive.grid_records import PrivateRecords
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person, most_rows
from matrixdp.privacy import Neighbours
from matrixdp.queries import MatrixQuery
from matrixdp.queries.moment_sums import levels
from matrixdp.sensitivity import FrobeniusBall
from matrixdp.types import Floats

_ROUNDING = 1 + 1e-12  # factor on the sensitivity, for rounding in its formula
_EPS = float(np.finfo(float).eps)
_SCALED = 1 + 1e-6  # factor on the rounding to a grid, for that of the factor which scales a record into a ball
_BEYOND = 1 + 1e-9  # factor on the longest possible length, for rounding in its formula
_MANY = 2.5  # bound on the number of records over the public number


class TailMoments(MatrixQuery):
    """Moment of records clipped to a ball of radius R, less that of the same records clipped to a smaller one, r.

    Parameters
    ----------
    size : int
        Number of features, d.
    radii : tuple of two floats
        r and R.
    longest : float
        A length that no record exceeds.
    records : int
        The public number of records, N.
    neighbours : Neighbours
    person : Person, optional

    Notes
    -----
    The answer is one row: ``sqrt(2) r E (x_i - z_i)``, ``sqrt(2) E (x_i x_j - z_i z_j)`` (i < j), ``E (x_i^2 - z_i^2)``
    and, for replaced records, ``E (|x|^2 - |z|^2)``, x and z being a record clipped to either ball.

    Privacy
    -------
    A record of length l has ``x - z = g w`` and ``x x' - z z' = e w w'`` for a unit vector w, with ``g = min(l, R) -
    min(l, r)`` in [0, G] and ``e = min(l, R)^2 - min(l, r)^2 = g (g + 2 r)`` in [0, E]. When one record replaces
    another with h and f in place of g and e, t being the cosine between both, the squared change times N^2 is
    ``2 r^2 (g^2 + h^2 - 2 g h t) + e^2 + f^2 - 2 e f t^2 + (e - f)^2``. Its largest value over t exceeds that at t = 0
    by at most ``2 r^4 (g h)^2/(e f) <= r^2 g h/2 <= r^2 (g^2 + h^2)/4``, since ``e >= 2 r g``. As ``g^2`` is convex in
    e, so is the bound ``(9/4) r^2 (g^2 + h^2) + e^2 + f^2 + (e - f)^2``, which is largest at a corner of [0, E]^2:
    ``2 E^2 + (9/2) r^2 G^2``. Adding or removing a record changes the row, which has no trace then, by at most
    ``sqrt(E^2 + 2 r^2 G^2)``. For w to be the same vector, records must be clipped along their direction: both balls
    lie in a box that no record exceeds, so that it clips none. A row of zeros is that of a record shorter than r, so
    that where k rows of a person count, the change is at most k times as large. Clipped records are rounded to the grid
    of that box; a
    rounding of length q changes ``x x'`` and its trace by at most ``2 R q + q^2`` and the mean's entries by ``sqrt(2) r
    q``, for both balls and both records. The sums are exact.
    """

    side = "columns"

    def __init__(
        self,
        size: int,
        radii: tuple[float, float],
        longest: float,
        records: int,
        *,
        neighbours: Neighbours,
        person: Person | None = None,
    ) -> None:
        self.size, self.records, self.neighbours, self.person = size, records, neighbours, person
        self.radius, self.outer = radii
        self.longest = max(longest, self.outer) * _BEYOND

    @property
    def traced(self) -> bool:
        """Whether the trace is measured a second time, which is free for replaced records."""
        return self.neighbours is Neighbours.REPLACE

    @property
    def shape(self) -> tuple[int, int]:
        """(1, d (d + 3)/2 + 1), without the one where the trace is not measured again."""
        return 1, self.size * (self.size + 3) // 2 + self.traced

    @cached_property
    def sensitivity(self) -> FrobeniusBall:
        """Largest change when one record is replaced, or added or removed."""
        e, g = self.outer**2 - self.radius**2, self.outer - self.radius
        change = 2 * (e**2 + 2.25 * (self.radius * g) ** 2) if self.traced else e**2 + 2 * (self.radius * g) ** 2
        most = most_rows(self.person)
        rounded = math.sqrt(self.size) * self.longest / levels(self.records) * _SCALED
        term = 2 * math.hypot(*[2 * self.outer * rounded + rounded**2] * 2, math.sqrt(2) * self.radius * rounded)
        return FrobeniusBall(most * (math.sqrt(change) + 2 * term) / self.records * _ROUNDING)

    @cached_property
    def magnitude(self) -> Floats:
        """Largest absolute value of each entry: of the larger moment, since the answer is a difference."""
        d, square = self.size, _MANY * self.outer**2
        products = d * (d - 1) // 2
        return np.array([math.sqrt(2) * square] * (d + products) + [square] * (self.shape[1] - d - products))[None]

    @property
    def relative_error(self) -> float:
        """Relative rounding error of two exact sums as floats, of their difference and of the sum in the trace."""
        return (self.size + 24) * _EPS

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        """The row of differences, from exact sums."""
        assert isinstance(data, PrivateRecords)
        lost = data.moment(self._ball(self.outer), self.records) - data.moment(self._ball(self.radius), self.records)
        rows, columns = np.triu_indices(self.size, 1)
        diagonal = np.diagonal(lost)[1:]
        parts = [
            math.sqrt(2) * self.radius * lost[0, 1:],
            math.sqrt(2) * lost[1:, 1:][rows, columns],
            diagonal,
            np.array([float(diagonal.sum())] if self.traced else []),
        ]
        return np.concatenate(parts)[None]

    def _ball(self, radius: float) -> Bounds:
        return Bounds(np.full(self.size, -self.longest), np.full(self.size, self.longest), radius=radius)
