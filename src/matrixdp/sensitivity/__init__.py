"""Sensitivity sets: what one record can change, and how far that moves a noisy answer."""

from matrixdp.sensitivity.distance import Distance, FrobeniusBall, Sensitivity
from matrixdp.sensitivity.graph_change import EdgeChange, KernelChange, KernelRowChange, NodeChange
from matrixdp.sensitivity.limit import Vertices
from matrixdp.sensitivity.moment_change import MomentsChange, RankOneChange, TableChange
from matrixdp.sensitivity.quadratic import max_quadratic
from matrixdp.sensitivity.record_change import CellChange, OwnRowsChange, RecordChange, RowsChange

__all__ = ["CellChange", "Distance", "EdgeChange", "FrobeniusBall", "KernelChange", "KernelRowChange"]
__all__ += ["MomentsChange", "NodeChange", "OwnRowsChange", "RankOneChange", "RecordChange", "RowsChange"]
__all__ += ["Sensitivity", "TableChange", "Vertices", "max_quadratic"]
