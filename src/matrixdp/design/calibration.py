"""The exact condition: the answer may move by `mu` standard deviations, no more."""

from __future__ import annotations

import math

from matrixdp.design.theorem2 import VARIANTS
from matrixdp.errors import ParameterError, show
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
    if not 0 < sensitivity < math.inf:
        raise ParameterError(f"sensitivity must be finite and greater than 0, got {show(sensitivity)} instead.")
    return math.nextafter(sensitivity / privacy.mu, math.inf)
