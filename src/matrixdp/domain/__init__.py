"""The public domain of a record: bounds of numbers, levels of categories, clipping, and rounding to a grid."""

from matrixdp.domain.bounds import Bounds, check_bounds
from matrixdp.domain.clipping import check_missing
from matrixdp.domain.columns import Category, Columns, Number, YesNo
from matrixdp.domain.person import Person
from matrixdp.domain.row_arithmetic import Rescaling, square_lengths

__all__ = [
    "Bounds",
    "Category",
    "Columns",
    "Number",
    "Person",
    "Rescaling",
    "YesNo",
    "check_bounds",
    "check_missing",
    "square_lengths",
]
