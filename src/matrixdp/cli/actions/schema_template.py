"""The text of a new schema: a type for each column from its Arrow type alone, never from its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matrixdp.cli.actions.schema_file import quote_key, quote_text
from matrixdp.display.numbers import make_visible

_HEADER = """\
# What is public about {name}. Take bounds and levels from general knowledge of what the values can be (a scale, a
# physical limit, a rule of the survey), never from the data. Delete the columns that are not to be released.
#
#   type = "number"     lower and upper are its bounds; values outside are moved to them.
#   type = "category"   levels = ["a", "b"] or levels = [1, 2]; any other value is an error, unless other = true adds a
#                       level for all of them.
#   type = "yes/no"     true, yes, 1 and false, no, 0.
#   type = "date"       lower = 1900-01-01 and upper = 2020-12-31 are its bounds; read as days since the lower one, or
#                       in another unit = "years"; format = "%d.%m.%Y" if they are not written as 2020-12-31.
#   type = "time"       a time of day: lower = 07:00:00 and upper = 19:30:00 are its bounds; read in hours.
#   missing = true      values may be missing. Without it a missing value is an error.

# Optional: the public number of records.
# records = 10000
# Optional, if people have several rows: protect each person with all their rows, and let each person count once. Then
# write these two lines at the end of this file, and no [columns.NAME] for that column.
# [person]
# column = "patient_id"
# Optional, for columns of numbers that are not missing: records are also moved into a ball of this radius around the
# middle of their bounds.
# radius = 1.0
# Optional, how values are written in the files:
{files}# decimal = ","
# thousands = "."
# missing_words = ["NA", "."]
"""
_MISSING = "# missing = true"
_LINES = {
    "number": ['type = "number"', 'lower = ""', 'upper = ""'],
    "category": ['type = "category"', "levels = []", "# other = true"],
    "yes/no": ['type = "yes/no"'],
    "date": ['type = "date"', 'lower = ""', 'upper = ""'],
    "time": ['type = "time"', 'lower = ""', 'upper = ""'],
}
_UNKNOWN = [
    "# Its type is unknown. Keep one of these, without the number signs:",
    *(f"# {line}" for line in ('type = "number"', "lower = ", "upper = ")),
    "#",
    *(f"# {line}" for line in ('type = "category"', "levels = []", "other = true")),
    "#",
    '# type = "yes/no"',
    "#",
    *(f"# {line}" for line in ('type = "date"', "lower = ", "upper = ")),
    "#",
    "# If values may be missing, also:",
    _MISSING,
]


def make_template(fields: Mapping[str, Any], source: str, sheet: str | None = None) -> str:
    """Text of a schema for the columns of the file `source`, with empty bounds and levels.

    Parameters
    ----------
    fields : mapping of str to Arrow field or None
        The columns; None where the type is unknown, as in CSV.
    source : str
        Name of the file.
    sheet : str, optional
        The sheet of a workbook; by default the first.

    Privacy
    -------
    Only names, types and whether a column may be null are used.
    """
    files = "# [files]\n" if sheet is None else f"[files]\nsheet = {quote_text(sheet)}\n"
    columns = (_describe_column(name, field) for name, field in fields.items())
    return "\n".join([_HEADER.format(name=make_visible(source), files=files), *columns])


def _describe_column(name: str, field: Any) -> str:
    if not name:
        return "# A column without a name is left out. To use it, give it a name in the file.\n"
    heading = f"[columns.{quote_key(name)}]"
    if field is None:
        return "\n".join([heading, *_UNKNOWN, ""])
    proposed = propose_type(field.type)
    if proposed is None:
        return (
            f"# {heading} holds {describe_type(field.type)}, which cannot be used as they are. Make them numbers "
            "or\n# a category first.\n"
        )
    return "\n".join([heading, *_LINES[proposed], *([_MISSING] * field.nullable), ""])


def propose_type(kind: Any) -> str | None:
    """The type in the schema for a column of this Arrow type, or None if it cannot be used."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
        return "category" if _is_text(kind) or types.is_integer(kind) else None
    if types.is_boolean(kind):
        return "yes/no"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    if types.is_time(kind):
        return "time"
    return "category" if _is_text(kind) else None


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def describe_type(kind: Any) -> str:
    """What a column that cannot be used holds, in words."""
    import pyarrow as pa

    return "lengths of time" if pa.types.is_duration(kind) else "values of another type"
