"""Representations of objects that fit on a few lines, whatever the size of their arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

_MOST_ITEMS = 5  # of a list
_MOST_ROWS, _MOST_COLUMNS = 20, 8  # of a table
_MOST_ENTRIES = 144  # of a matrix that is shown whole


def short_repr(value: Any) -> str:
    """Name and fields of a dataclass: long lists shortened, arrays by their shape, fields at their defaults left out.

    Examples
    --------
    >>> from matrixdp import Category
    >>> Category("ward", [f"w{number}" for number in range(100)])
    Category(name='ward', levels=('w0', 'w1', 'w2', 'w3', 'w4', ... 95 more))
    """
    shown = []
    for field in fields(value):
        found = getattr(value, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if field.repr and not _is_same(found, default):
            shown.append(f"{field.name}={_show(found)}")
    return f"{type(value).__name__}({', '.join(shown)})"


def table_repr(value: Any, rows: int, columns: int) -> str:
    """The text of a table of numbers if it fits on a screen, else its size."""
    if rows <= _MOST_ROWS and columns <= _MOST_COLUMNS:
        return str(value)
    return f"<{type(value).__name__} of {rows:,} x {columns:,} numbers; print shows them>"


def matrix_text(matrix: Any) -> str:
    """The text of a matrix, of a large one its corners."""
    with np.printoptions(threshold=_MOST_ENTRIES, edgeitems=3, precision=5):
        return str(matrix)


def _is_same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and isinstance(value, str | tuple) and value == default)


def _show(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return repr(value.item())
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return f"[{_join([f'{number:.6g}' for number in value[: _MOST_ITEMS + 1].tolist()], value.size)}]"
    if isinstance(shape, tuple) and len(shape) > 1:
        return f"<{' x '.join(f'{size:,}' for size in shape)} numbers>"
    if isinstance(value, tuple):
        items = [_show(item) for item in value[: _MOST_ITEMS + 1]]
        return f"({_join(items, len(value))}{',' if len(items) == 1 else ''})"
    return repr(value)


def _join(items: Sequence[str], count: int) -> str:
    more = count - _MOST_ITEMS
    return ", ".join([*items[:_MOST_ITEMS], *([f"... {more:,} more"] if more > 0 else [])])
