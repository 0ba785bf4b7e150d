"""The public domain of a record: bounds of numbers, levels of categories, clipping, and rounding to a grid."""

from matrixdp.domain.bounds import Bounds
from matrixdp.domain.columns import Category, Columns, Number, YesNo
from matrixdp.domain.person import Person

__all__ = ["Bounds", "Category", "Columns", "Number", "Person", "YesNo"]
