"""Calibration: from a budget and a sensitivity to the size of the noise. No data, no randomness."""

from matrixdp.calibration.exact import isotropic_scale
from matrixdp.calibration.theorem2 import VARIANTS, precision_budget

CALIBRATIONS = ("exact", *VARIANTS)

__all__ = ["CALIBRATIONS", "VARIANTS", "isotropic_scale", "precision_budget"]
