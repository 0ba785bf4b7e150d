"""Tables of two categories from the moments of a table, with totals and error bars. Post-processing."""

from __future__ import annotations

from typing import Any

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.answers.table_view import TableView, read_other_groups, select_groups, table_query
from matrixdp.design.design import Design
from matrixdp.errors import ParameterError
from matrixdp.types import Floats

ALL = "all"


def cross_table(matrix: Floats, design: Design, first: str, second: str, group: Any = None) -> Estimate:
    """Shares of records for each pair of levels, with totals, of shape (levels + 1, levels + 1); they add up.

    Each is a category of the table, or a column by which the release is grouped. The adjusted moments of groups are
    linear in the released ones, so that those of all levels of a column of groups sum to those of all records.
    """
    if first == second:
        raise ParameterError("a table needs two different categories.")
    by = table_query(design).by
    if first in by:
        return _split_by_group(matrix, design, first, second, group)
    if second in by:
        turned = _split_by_group(matrix, design, second, first, group)
        return Estimate(turned.value.T, turned.std.T, turned.columns, turned.rows)
    return _read_view(select_groups(matrix, design, group), first, second)


def _split_by_group(matrix: Floats, design: Design, by: str, other: str, group: Any) -> Estimate:
    """The table with the levels of a column of groups in its rows."""
    query: Any = design.query
    given = read_other_groups(group, by)
    if other in query.by:
        given = read_other_groups(group, other)
    levels = query.columns.category(by).level_names
    rows = [_read_row(matrix, design, other, {**given, by: level}) for level in levels]
    rows.append(_read_row(matrix, design, other, given))
    value, std = (np.array([getattr(row, name)[0] for row in rows]) for name in ("value", "std"))
    return Estimate(value, std, (*levels, ALL), rows[0].columns)


def _read_row(matrix: Floats, design: Design, name: str, group: dict[str, Any]) -> Estimate:
    """Share of each level of a category or of a column of groups, and of all, of shape (1, levels + 1)."""
    query: Any = design.query
    if name in query.by:
        levels = query.columns.category(name).level_names
        chosen = [*({**group, name: level} for level in levels), group]
        cells = [(select_groups(matrix, design, one), (0, 0)) for one in chosen]
    else:
        view = select_groups(matrix, design, group)
        place = view.category(name)
        levels = place.levels
        cells = [(view, (0, place.value + k)) for k in range(len(levels))]
        cells.append((view, (0, 0)))
    value = [view.matrix[entry] for view, entry in cells]
    std = [view.std([(*entry, 1.0)]) for view, entry in cells]
    return Estimate(np.array([value]), np.array([std]), (ALL,), (*levels, ALL))


def _read_view(view: TableView, first: str, second: str) -> Estimate:
    """The table of two categories of the same groups."""
    one, other = view.category(first), view.category(second)
    k, m = len(one.levels), len(other.levels)
    rows, columns = slice(one.value, one.value + k), slice(other.value, other.value + m)
    value, std = np.empty((k + 1, m + 1)), np.empty((k + 1, m + 1))
    value[:k, :m], value[:k, m], value[k, :m] = (
        view.matrix[rows, columns],
        view.matrix[0, rows],
        view.matrix[0, columns],
    )
    std[:k, :m], std[:k, m], std[k, :m] = (  # the same for all levels
        view.std([(i, j, 1.0)]) for i, j in ((one.value, other.value), (0, one.value), (0, other.value))
    )
    value[k, m], std[k, m] = view.matrix[0, 0], view.std([(0, 0, 1.0)])
    return Estimate(value, std, (*one.levels, ALL), (*other.levels, ALL))
