"""Sensitivity sets: what one record can change, and how far that moves a noisy answer."""

from matrixdp.sensitivity.cell_change import CellChange
from matrixdp.sensitivity.distance import Distance, Sensitivity
from matrixdp.sensitivity.edge_change import EdgeChange
from matrixdp.sensitivity.frobenius_ball import FrobeniusBall
from matrixdp.sensitivity.kernel_change import KernelChange
from matrixdp.sensitivity.kernel_row_change import KernelRowChange
from matrixdp.sensitivity.moment_change import MomentsChange, RankOneChange
from matrixdp.sensitivity.node_change import NodeChange
from matrixdp.sensitivity.own_rows_change import OwnRowsChange
from matrixdp.sensitivity.quadratic import max_quadratic
from matrixdp.sensitivity.record_change import RecordChange
from matrixdp.sensitivity.rows_change import RowsChange
from matrixdp.sensitivity.table_change import TableChange
from matrixdp.sensitivity.vertices import Vertices

__all__ = [
    "CellChange",
    "Distance",
    "EdgeChange",
    "FrobeniusBall",
    "KernelChange",
    "KernelRowChange",
    "MomentsChange",
    "NodeChange",
    "OwnRowsChange",
    "RankOneChange",
    "RecordChange",
    "RowsChange",
    "Sensitivity",
    "TableChange",
    "Vertices",
    "max_quadratic",
]
