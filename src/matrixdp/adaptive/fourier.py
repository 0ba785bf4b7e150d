"""Random Fourier features: a Gaussian kernel as a public map of each record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.adaptive.coordinates import LEVELS, Coordinates
from matrixdp.domain.bounds import Bounds
from matrixdp.records import to_array
from matrixdp.types import Floats


class FourierFeatures:
    """``sqrt(2/k) cos(w'x + b)``, whose inner products are close to ``exp(-gamma |x - y|^2)`` (Rahimi & Recht 2007).

    Parameters
    ----------
    bounds : Bounds
        Bounds of the m input features, which are scaled to [-1, 1].
    gamma : float
    count : int
        Number k of random features.
    seed : int
        Seed of the public random frequencies.

    Privacy
    -------
    Frequencies are public. Each record is mapped independently of the others, into the box of halfwidth ``sqrt(2/k)``.

    Examples
    --------
    >>> FourierFeatures(Bounds([-1], [1]), gamma=1.0, count=4, seed=0)([[0.5]]).shape
    (1, 4)
    """

    def __init__(self, bounds: Bounds, *, gamma: float, count: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.bounds, self.size = bounds, math.sqrt(2 / count)
        frequencies = rng.normal(scale=math.sqrt(2 * gamma), size=(count, bounds.size))
        self._phase = Coordinates.of(frequencies, np.zeros(bounds.size))
        self._shift = rng.uniform(0, 2 * math.pi, count)
        self.box = Bounds(np.full(count, -self.size), np.full(count, self.size))

    def __call__(self, records: Any) -> Floats:
        """Features of shape (n, k) of records of shape (n, m)."""
        phase = self._phase(self.bounds.quantise(records, LEVELS))
        return np.asarray(self.size * np.cos(phase + self._shift))


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Map from a block of records, the target last, to Fourier features and the target."""

    features: FourierFeatures
    columns: tuple[str, ...]

    def __call__(self, block: Any) -> Floats:
        """Features and target of shape (n, k + 1), the target last."""
        records = to_array(block, len(self.columns), self.columns)
        return np.column_stack([self.features(records[:, :-1]), records[:, -1]])
