"""Exact moments of a table on a GPU, by group: the integers of `queries.table_sums`, bit for bit.

Numbers lie on the device. Categories may lie there as integers, or in the memory of the host as texts; either way a
value has the code that `records.table_columns` gives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.device import is_on_device, load_cupy, to_device_array
from matrixdp.domain.columns import Category, Columns, YesNo
from matrixdp.errors import DataError
from matrixdp.queries.cuda_sums import DeviceGrid, device_column, device_gram, padded, rows_at_a_time
from matrixdp.records.table_columns import TableBlock


def device_table(block: Any, columns: Columns) -> dict[str, Any]:
    """The described columns of a table by name; an array on a device has them in the order of the description."""
    if isinstance(block, Mapping):
        absent = [name for name in columns.names if name not in block]
        if absent:
            raise DataError(f"the table has no column {absent[0]!r}.")
        table = {name: block[name] for name in columns.names}
    else:
        array = to_device_array(block)
        if array.ndim != 2 or array.shape[1] != len(columns.names):
            raise DataError(f"records must have {len(columns.names)} columns, as described, got shape {array.shape}.")
        table = {name: array[:, i] for i, name in enumerate(columns.names)}
    if len({len(column) for column in table.values()}) > 1:
        raise DataError("all columns of the table must have the same number of values.")
    return table


def sums_on_device(
    table: Mapping[str, Any], columns: Columns, by: tuple[str, ...], levels: int, *, clip: bool, missing: str
) -> Iterator[tuple[int, NDArray[np.int64], int]]:
    """Yield groups with their ``sum z z'`` and number of records; a group may come several times.

    Coordinates of z are in the order of their kinds: the constant, all values, all indicators of values, all levels.
    """
    cupy, used = load_cupy(), columns.without(by)
    numbers = [device_column(table[column.name]) for column in used.numbers]
    codes = [device_codes(table[column.name], column) for column in used.categories]
    groups = _groups(table, [columns.category(name) for name in by])
    optional = tuple(column.missing for column in used.numbers)
    observed = [values for values, may_be_missing in zip(numbers, optional, strict=True) if may_be_missing]
    widths = [len(column.level_names) for column in used.categories]
    size = 1 + len(numbers) + len(observed) + sum(widths)
    width, grid = padded(size), None
    if used.bounds is not None:
        grid = DeviceGrid(used.bounds, used.bounds, levels, True, clip, missing, optional)
    rows, step = len(next(iter(table.values()))), rows_at_a_time(width)
    for start in range(0, rows, step):
        part = slice(start, min(rows, start + step))
        if grid is not None:
            values = cupy.stack([column[part] for column in numbers], axis=1)
            z = grid(values, width)
            grid.check(values)
        else:
            z = cupy.zeros((part.stop - start, width))
            z[:, 0] = levels
        place, every = 1 + len(numbers), cupy.arange(part.stop - start)
        for column in observed:
            z[:, place] = cupy.isfinite(column[part]) * float(levels)
            place += 1
        for code, count in zip(codes, widths, strict=True):
            z[every, place + code[part]] = levels
            place += count
        for group, of_group in _by_group(z, None if groups is None else groups[part]):
            yield group, device_gram(of_group, levels).get()[:size, :size], len(of_group)


def device_codes(column: Any, category: Category | YesNo) -> Any:
    """Position of each value of a category among its levels, on the device."""
    cupy = load_cupy()
    if not is_on_device(column):
        return cupy.asarray(_host_codes(column, category))
    values = to_device_array(column)
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise DataError(f"column {category.name!r} must hold integers on a device, or texts in the memory of the host.")
    absent = cupy.isnan(values) if values.dtype.kind == "f" else cupy.zeros(len(values), bool)
    distinct = cupy.unique(values[~absent])
    found = _host_codes(distinct.get(), category)
    codes = cupy.asarray(found)[cupy.clip(cupy.searchsorted(distinct, values), 0, max(0, len(found) - 1))]
    if bool(absent.any()):
        codes[absent] = int(_host_codes(np.array([np.nan]), category)[0])
    return codes


def _host_codes(values: Any, category: Category | YesNo) -> NDArray[np.intp]:
    return TableBlock({category.name: values}, Columns([category])).codes(category)


def _groups(table: Mapping[str, Any], by: list[Category | YesNo]) -> Any:
    """The group of each record, None without groups."""
    groups = None
    for column in by:
        codes = device_codes(table[column.name], column)
        groups = codes if groups is None else groups * len(column.level_names) + codes
    return groups


def _by_group(rows: Any, groups: Any) -> Iterator[tuple[int, Any]]:
    """The rows of each group that has any."""
    if groups is None:
        yield 0, rows
        return
    cupy = load_cupy()
    ordered, first = rows[cupy.argsort(groups)], 0
    for group, count in enumerate(cupy.bincount(groups).get().tolist()):
        if count:
            yield group, ordered[first : first + count]
            first += count
