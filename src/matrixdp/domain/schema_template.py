"""The text of a new schema: a type for each column from its Arrow type alone, never from its values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from matrixdp.display import make_visible
from matrixdp.domain.fields import COLUMN_FIELDS
from matrixdp.domain.schema import quote_key, quote_text

_HEADER = """\
# What is public about {name}. Take bounds and levels from general knowledge of what the values can be (a scale, a
# physical limit, a rule of the survey), never from the data. Delete the columns that are not to be released. Examples:
#
#   age    = {{ type = "number", lower = 0, upper = 120 }}                  # values outside are moved to the bounds
#   ward   = {{ type = "category", levels = ["north", "south"] }}           # other = true adds a level for all others
#   smoker = {{ type = "yes/no" }}
#   born   = {{ type = "date", lower = 1900-01-01, upper = 2020-12-31 }}    # or unit = "years", format = "%d.%m.%Y"
#   start  = {{ type = "time", lower = 07:00:00, upper = 19:30:00 }}        # a time of day
#
# Add missing = true to a column whose values may be missing; without it, a missing value is an error.
# Above [columns] there may also be, without the number signs:
#
#   records = 10000                    # the public number of records
#   [person]                           # people have several rows: protects a person with all their rows
#   column = "patient_id"              # this column has no line below
#   [files]                            # how values are written
#   decimal = ","
#   thousands = "."
#   missing_words = ["NA", "."]
"""


def make_template(fields: Mapping[str, Any], source: str, sheet: str | None = None) -> str:
    """Text of a schema for the columns of the file `source`, with empty bounds and levels.

    `fields` are the Arrow fields of the columns by name, None where the type is unknown, as in CSV.

    Privacy
    -------
    Only names, types and whether a column may be null are used.
    """
    files = [] if sheet is None else ["[files]", f"sheet = {quote_text(sheet)}", ""]
    columns = (_describe_column(name, field) for name, field in fields.items())
    return "\n".join([_HEADER.format(name=make_visible(source)), *files, "[columns]", *columns, ""])


def _describe_column(name: str, field: Any) -> str:
    if not name:
        return "# A column without a name is left out. To use it, give it a name in the file."
    key = quote_key(name)
    if field is None:
        return f'{key} = {{ type = "" }}'
    proposed = propose_type(field.type)
    if proposed is None:
        held = describe_type(field.type)
        return f"# {key} holds {held}, which cannot be used as they are. Make them numbers or a category first."
    required = [one.name for one in COLUMN_FIELDS if proposed in one.types and one.required]
    empty = [f", {name} = []" if name == "levels" else f', {name} = ""' for name in required]
    return f'{key} = {{ type = "{proposed}"{"".join(empty)} }}'


# What a column is in a schema, by the letters with which the name of its Arrow type begins.
_PROPOSED = {
    **dict.fromkeys(("int", "uint", "halffloat", "float", "double", "decimal"), "number"),
    **dict.fromkeys(("string", "large_string", "string_view"), "category"),
    "bool": "yes/no",
    "date": "date",
    "timestamp": "date",
    "time": "time",
}


def propose_type(kind: Any) -> str | None:
    """The type in the schema for a column of this Arrow type, or None if it cannot be used."""
    encoded = str(kind).startswith("dictionary<")
    name = re.split(r"[^a-z_]", str(kind.value_type if encoded else kind))[0]
    proposed = _PROPOSED.get(name)
    if encoded:
        return "category" if proposed == "category" or name in ("int", "uint") else None
    return proposed


def describe_type(kind: Any) -> str:
    """What a column that cannot be used holds, in words."""
    return "lengths of time" if str(kind).startswith("duration") else "values of another type"
