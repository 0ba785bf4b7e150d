"""The exact condition: the answer may move by `mu` standard deviations, no more."""

from __future__ import annotations

import math

from matrixdp.checks import check_magnitude
from matrixdp.design.theorem2 import VARIANTS
from matrixdp.privacy import Privacy

CALIBRATIONS = ("exact", *VARIANTS)


def isotropic_scale(privacy: Privacy, *, sensitivity: float) -> float:
    """Smallest isotropic scale that meets a budget, rounded up.

    Privacy
    -------
    Exactly (epsilon, delta)-DP when the answer moves by at most `sensitivity` in L2 (Balle & Wang 2018).

    Examples
    --------
    >>> round(isotropic_scale(Privacy(epsilon=1, delta=1e-5), sensitivity=1.0), 4)
    3.7306
    """
    return math.nextafter(check_magnitude(sensitivity, "sensitivity") / privacy.mu, math.inf)
