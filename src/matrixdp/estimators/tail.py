"""What clipping took away from the mean of the squared lengths, as one noisy number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.estimators.records import EXCESS_STEPS, Clippable
from matrixdp.estimators.spending import Spending
from matrixdp.noise.covariance import Floats
from matrixdp.queries import Query
from matrixdp.sensitivity import FrobeniusBall

_SURE = 1.5  # standard deviations of noise by which the number must stand out
_ROUNDING = 1 + 1e-12  # on the sensitivity, for the floats of a mean


def private_excess(
    private: Clippable, radius: float, reach: float, spending: Spending, *, records: int, share: float
) -> float:
    """The mean of ``min(max(l^2 - r^2, 0), reach)`` over records of length l, shrunk towards zero by its noise.

    Parameters
    ----------
    private : Clippable
        The records.
    radius : float
        r, to which records are clipped.
    reach : float
        Beyond which more of a square is not counted.
    spending : Spending
    records : int
        The public number of records.
    share : float
        Of ``mu^2``.

    Privacy
    -------
    A record adds a whole number of steps from 0 to `reach`, so the exact sum changes by `reach` at most, for either
    kind of neighbours.
    """
    query = Query(
        (1, 1),
        FrobeniusBall(reach / records * _ROUNDING),
        bound=2.5 * reach,
        function=_Mean(reach, records),
        neighbours=spending.neighbours,
    )
    released = spending.release("tail", query, private.excess(radius, reach), share=share)
    noisy, std = float(released.matrix[0, 0]), float(released.std[0, 0])
    return noisy * max(0.0, 1 - (_SURE * std / noisy) ** 2) if noisy > 0 else 0.0


@dataclass(frozen=True)
class _Mean:
    """A sum of steps over the public number of records, of shape (1, 1)."""

    reach: float
    records: int

    def __call__(self, steps: Any) -> Floats:
        return np.array([[int(steps) / EXCESS_STEPS * self.reach / self.records]])
