"""Families of neighbouring data sets, and the base class of domains that make them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.domain import Bounds


@dataclass(frozen=True, eq=False)
class Family:
    """Data sets that are equal but for one record.

    Attributes
    ----------
    build : callable
        From a record to the data set with it; from None to the data set without it.
    records : list
        Records to begin with.
    clique : bool
        Whether any two of the data sets are neighbours; otherwise each is one of the data set without the record.
    bounds : Bounds or None
        Where records of shape (m,) may move; None for records that cannot be varied.
    """

    build: Callable[[Any], Any]
    records: list[Any]
    clique: bool
    bounds: Bounds | None = None


class Domain(ABC):
    """The data sets of a query. Subclass it for records that are not numbers in bounds."""

    @abstractmethod
    def family(self, rng: np.random.Generator) -> Family:
        """A random family of neighbouring data sets."""
