"""Designs: directions, allocation and calibration, fixed before any data are seen."""

from matrixdp.design.allocations import Allocation, binary, isotropic, optimal, shares, uniform
from matrixdp.design.builder import ErrorCurve, equimodal, error_curve, make_design, unimodal
from matrixdp.design.design import Design

__all__ = ["Allocation", "Design", "ErrorCurve", "binary", "equimodal", "error_curve", "isotropic"]
__all__ += ["make_design", "optimal", "shares", "uniform", "unimodal"]
