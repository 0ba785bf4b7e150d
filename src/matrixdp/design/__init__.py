"""Designs: directions, allocation and calibration put together, before any data are seen."""

from matrixdp.design.algorithms import equimodal, unimodal
from matrixdp.design.allocation import Allocation, binary, isotropic, optimal, shares, uniform
from matrixdp.design.design import Design
from matrixdp.design.making import make_design

__all__ = [
    "Allocation",
    "Design",
    "binary",
    "equimodal",
    "isotropic",
    "make_design",
    "optimal",
    "shares",
    "uniform",
    "unimodal",
]
