"""The public domain of a record: numbers in bounds, and their exact position on a grid."""

from matrixdp.domain.bounds import Bounds, check_bounds, check_missing
from matrixdp.domain.row_arithmetic import Rescaling, square_lengths

__all__ = ["Bounds", "Rescaling", "check_bounds", "check_missing", "square_lengths"]
