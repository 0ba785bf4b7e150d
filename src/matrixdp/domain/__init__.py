"""The public domain of a record: bounds of numbers, levels of categories, clipping, and rounding to a grid."""

from matrixdp.domain.bounds import Bounds, check_bounds, check_missing
from matrixdp.domain.columns import Category, Column, Columns, Number, YesNo
from matrixdp.domain.file_rules import DateRule, FileRules
from matrixdp.domain.person import Person, least_sample, most_rows
from matrixdp.domain.schema import Schema
from matrixdp.domain.schema_file import as_schema, parse_schema, read_schema

__all__ = ["Bounds", "Category", "Column", "Columns", "DateRule", "FileRules", "Number", "Person", "Schema", "YesNo"]
__all__ += ["as_schema", "check_bounds", "check_missing", "least_sample", "most_rows", "parse_schema", "read_schema"]
