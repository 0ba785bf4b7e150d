"""Designs: directions, allocation and calibration, fixed before any data are seen."""

from matrixdp.design.algorithms import equimodal, unimodal
from matrixdp.design.allocation import Allocation
from matrixdp.design.allocation_rules import binary, isotropic, shares, uniform
from matrixdp.design.builder import make_design
from matrixdp.design.calibration import isotropic_scale
from matrixdp.design.design import Design
from matrixdp.design.error_curve import ErrorCurve, error_curve
from matrixdp.design.optimal_allocation import optimal

__all__ = [
    "Allocation",
    "Design",
    "ErrorCurve",
    "binary",
    "equimodal",
    "error_curve",
    "isotropic",
    "isotropic_scale",
    "make_design",
    "optimal",
    "shares",
    "uniform",
    "unimodal",
]
