"""The public domain of a record: bounds on its numbers, clipping to them, and rounding to a grid."""

from matrixdp.domain.bounds import Bounds, check_bounds
from matrixdp.domain.clipping import check_missing
from matrixdp.domain.row_arithmetic import Rescaling, square_lengths

__all__ = ["Bounds", "Rescaling", "check_bounds", "check_missing", "square_lengths"]
