"""Allocations: how a rule divides the privacy loss among directions, and the covariances of the noise that follow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from matrixdp.noise.covariance import Covariance
from matrixdp.queries import MatrixQuery
from matrixdp.types import Floats


class Allocation(ABC):
    """A rule that divides the privacy loss among directions. Subclass it for a rule of your own.

    Attributes
    ----------
    rule : str
        Name of the rule in reports and ledgers.
    structured : bool
        Whether a moment's diagonal may get more precision where that costs no privacy.
    named : bool
        Whether the rule refers to features by name, which means nothing in another basis.
    chooses_directions : bool
        Whether the rule has directions of its own (`own_directions`), so that none can be given.

    Privacy
    -------
    An allocation only shapes the noise: `make_design` scales it until the distance between neighbours fits the budget.
    """

    rule: ClassVar[str] = "custom"
    chooses_directions: ClassVar[bool] = False
    structured: ClassVar[bool] = True

    @property
    def named(self) -> bool:
        """Whether features are given by name."""
        return False

    def own_directions(self, query: MatrixQuery) -> Floats | None:
        """Directions of a rule that chooses them, of shape (features, features)."""
        return None

    @abstractmethod
    def variances(self, query: MatrixQuery, directions: Floats | None) -> Floats:
        """Variance of the noise along each direction, up to a common factor, of shape (features,)."""

    def precisions(self, query: MatrixQuery) -> Floats:
        """Shares of the precision budget of the paper's Theorem 2, of shape (features,); uniform by default."""
        return np.full(query.features, 1 / query.features)

    def entry_covariance(self, query: MatrixQuery) -> Covariance | None:
        """Covariance over all entries, flattened, for rules that shape each entry; None for rules on directions."""
        return None


class BuiltInAllocation(Allocation):
    """The rules of this package, which share one form in JSON."""

    def to_fields(self) -> Mapping[str, Any]:
        """Rule, values and share, as JSON has them."""
        return {"rule": self.rule, "values": None, "share": 1.0}


def noise_sides(query: MatrixQuery, variances: Floats, directions: Floats | None) -> tuple[Covariance, Covariance]:
    """Covariances of rows and columns from the variances along the directions of the query's side."""
    variances, directions = query.lift(variances, directions)
    alike = directions is None and bool((variances == variances[0]).all())
    side = Covariance.identity(variances.size, variances[0]) if alike else Covariance(variances, directions)
    if query.side == "both":
        return side, side
    if query.side == "rows":
        return side, Covariance.identity(query.shape[1])
    return Covariance.identity(query.shape[0]), side
