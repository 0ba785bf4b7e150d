"""Sensitivity set for answers of which only the L2 sensitivity is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrixdp.checks import check_magnitude
from matrixdp.noise.covariance import Covariance
from matrixdp.sensitivity.distance import ROUND_DOWN, Distance, Sensitivity, scale_free, spectral_norm
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats


@builtin_kind
@dataclass(frozen=True)
class FrobeniusBall(Sensitivity):
    """All D with ``||D||_F <= radius``.

    The distance is ``radius / sqrt(lambda_min(rowcov) lambda_min(colcov))``, attained by a rank-one D along the two
    directions with the least noise. So no directional noise can do better than isotropic noise.

    Examples
    --------
    >>> FrobeniusBall(3.0).distance(Covariance.identity(2), Covariance.diagonal([1.0, 9.0])).attained
    3.0
    """

    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", check_magnitude(self.radius, "radius (the L2 sensitivity)"))

    @property
    def frobenius(self) -> float:
        """The radius."""
        return self.radius

    @property
    def ball(self) -> bool:
        """True."""
        return True

    def least_error(self, scale: Floats, *, symmetric: bool) -> float:
        """``radius^2 sum scale^-2``: weights on changes of single entries, in proportion to ``scale^-2``, prove it."""
        weights = scale**-2.0
        return self.radius**2 * float((np.tril(weights) if symmetric else weights).sum()) * ROUND_DOWN

    @scale_free
    def distance(self, rowcov: Covariance, colcov: Covariance) -> Distance:
        """Exact."""
        value = self.radius * spectral_norm(rowcov.whitening) * spectral_norm(colcov.whitening)
        return Distance(value, value).times(1.0)
