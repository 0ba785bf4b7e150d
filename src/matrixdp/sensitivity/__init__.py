"""Sensitivity sets: what one person can change, and how far that moves a noisy answer."""

from matrixdp.sensitivity.ball import FrobeniusBall
from matrixdp.sensitivity.distance import Distance, Sensitivity
from matrixdp.sensitivity.graphs import EdgeChange
from matrixdp.sensitivity.kernels import KernelChange
from matrixdp.sensitivity.moments import MomentsChange, RankOneChange
from matrixdp.sensitivity.quadratic import max_quadratic
from matrixdp.sensitivity.records import RecordChange
from matrixdp.sensitivity.tables import CellChange
from matrixdp.sensitivity.vertices import Vertices

__all__ = [
    "CellChange",
    "Distance",
    "EdgeChange",
    "FrobeniusBall",
    "KernelChange",
    "MomentsChange",
    "RankOneChange",
    "RecordChange",
    "Sensitivity",
    "Vertices",
    "max_quadratic",
]
