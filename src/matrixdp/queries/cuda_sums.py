"""Exact moments of records and tables on a GPU: the integers of `sums` and `table_sums`, bit for bit.

Records are put on the grid of their bounds by one kernel (`sums.cu`), which reads them once, and multiplied as whole
numbers in float64 by cuBLAS. As in `sums.py`, every partial sum is an integer below 2^53, so the products are exact
in any order. Categories of a table may lie on the device as integers, or in the memory of the host as strings; either
way a value has the code that `records.tables` gives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.device import is_on_device, load_cupy, to_device_array
from matrixdp.domain.bounds import Bounds, check_missing, round_into_ball
from matrixdp.domain.columns import Category, Columns, YesNo
from matrixdp.errors import DataError
from matrixdp.records.tables import TableBlock, choose_columns

if TYPE_CHECKING:
    from matrixdp.queries.table_sums import TableTask

_BLOCK = 1 << 26  # entries on the grid at a time: 512 MiB
_EXACT = 1 << 53
_SHORT = 4096  # rows of one product where there are few columns: products of many pieces fill the GPU
_NARROW = 256
_WIDE = 1 << 13  # up to which a product with 2^40/width, rounded up, gives the row of an entry exactly
_NOT_FINITE, _OUTSIDE = 1, 2
_GRID = np.dtype(
    [(name, np.uint64) for name in ("midpoint", "factor", "lower", "upper", "missing")]
    + [("levels", np.float64), ("clip_first", np.int32), ("round", np.int32)]
)


@cache
def _module() -> Any:
    cupy = load_cupy()
    source = files("matrixdp.queries").joinpath("sums.cu").read_text(encoding="utf-8")
    names = ("quantise<float>", "quantise<double>")
    return cupy.RawModule(code=source, options=("--std=c++17", "--fmad=false"), name_expressions=names)


def device_records(block: Any, size: int, names: tuple[str, ...] | None) -> Any:
    """Records of shape (rows, size) on the device, float32 or float64, in C order; columns of a mapping by name."""
    if isinstance(block, Mapping):
        columns = _named_columns(block, size, names)
        block = load_cupy().stack([device_column(column) for column in columns.values()], axis=1)
    return _real_numbers(_of_width(block, size))


def _of_width(block: Any, size: int) -> Any:
    """An array on the device with as many columns as `size`."""
    array = to_device_array(block)
    if array.ndim != 2 or array.shape[1] != size:
        raise DataError(f"records must have shape (records, {size}), got {array.shape} instead.")
    return array


def _named_columns(table: Mapping[str, Any], size: int, names: Sequence[str] | None) -> dict[str, Any]:
    """The columns of a mapping that are wanted, all of the same length."""
    columns = {name: table[name] for name in choose_columns(list(table), size, names)}
    if len({len(column) for column in columns.values()}) > 1:
        raise DataError("all columns of the table must have the same number of values.")
    return columns


def device_column(column: Any) -> Any:
    """One column of real numbers on the device."""
    array = to_device_array(column) if is_on_device(column) else load_cupy().asarray(np.asarray(column))
    if array.ndim != 1:
        raise DataError("the columns of a mapping must have one dimension.")
    return _real_numbers(array)


def _real_numbers(array: Any) -> Any:
    if array.dtype.kind not in "biuf":
        raise DataError(f"records must be real numbers, got an array of {array.dtype} instead.")
    return array if array.dtype.char in "fd" else array.astype(np.float64)


@dataclass(frozen=True, eq=False)
class DeviceGrid:
    """Puts records on a GPU, each with a constant before it, on the grid of a box."""

    bounds: Bounds  # to which records are clipped
    box: Bounds  # whose grid it is; another one for a centre of one's own
    levels: int  # of the grid
    clip: bool
    missing: str
    optional: tuple[bool, ...] = ()  # of columns that may have missing values whatever `missing` is

    @property
    def size(self) -> int:
        """Coordinates of a record."""
        return self.bounds.size + 1

    def __call__(self, records: Any, width: int) -> Any:
        """Integers of shape (rows, width) on the device: the constant, the record, zeros. `width` is even."""
        cupy = load_cupy()
        records = cupy.ascontiguousarray(records)
        out = cupy.empty((len(records), width))
        if not len(records):
            return out
        kernel = _module().get_function("quantise<float>" if records.dtype.char == "f" else "quantise<double>")
        pairs = out.size // 2
        inverse = -(-(1 << 40) // width) if width <= _WIDE else 0
        threads, blocks = 256, min(-(-pairs // 256), 32 * cupy.cuda.Device().attributes["MultiProcessorCount"])
        scalars = self.levels, self.box is not self.bounds, self.box.radius is None
        grid = np.array([(*(vector.data.ptr for vector in self._vectors), *scalars)], _GRID)[0]
        arguments = (
            records, grid, np.uint32(pairs), np.int32(self.bounds.size), np.int32(width),
            np.int32(1), np.uint64(inverse), out, self._flags,
        )  # fmt: skip
        kernel((blocks,), (threads,), arguments)
        return out if self.box.radius is None else self._into_ball(out)

    def check(self, records: Any) -> None:
        """Raise the error of records that were put on the grid, if they have any."""
        optional = np.array(self.optional or [False] * self.bounds.size)
        found = int(self._flags.get()[0])
        raise_unusable(found, records, self.bounds, clip=self.clip, missing=self.missing, optional=optional)

    @cached_property
    def _flags(self) -> Any:
        """Flags for what the kernel saw."""
        return load_cupy().zeros(1, np.int32)

    @cached_property
    def _vectors(self) -> list[Any]:
        cupy, bounds, box = load_cupy(), self.bounds, self.box
        optional = np.array(self.optional or [False] * bounds.size) | (self.missing == "midpoint")
        vectors = box.midpoint, self.levels / box.halfwidths, bounds.lower, bounds.upper, optional.astype(np.uint8)
        return [cupy.asarray(vector) for vector in vectors]

    def _into_ball(self, grid: Any) -> Any:
        """Round rows into the ball. Those near the sphere are rounded on the host, whose sums along a row decide."""
        cupy, radius = load_cupy(), self.box.radius
        assert radius is not None
        inner = grid[:, 1 : self.size]
        steps = self.box.steps(self.levels)
        lengths = cupy.sqrt(((inner * cupy.asarray(steps)) ** 2).sum(axis=1)) * (1 + 1e-9)
        near = cupy.flatnonzero(lengths + 2 * float(np.linalg.norm(steps)) > radius)
        rows = round_into_ball(self.box, np.ascontiguousarray(inner[near].get()), self.levels)
        cupy.rint(grid, out=grid)
        inner[near] = cupy.asarray(rows)
        return grid


def raise_unusable(
    flags: int, records: Any, bounds: Bounds, *, clip: bool, missing: str, optional: NDArray[np.bool_] | None = None
) -> None:
    """Raise the error that the records raise on the host, by `flags`: 1 for values not finite, 2 for values outside."""
    check_missing(missing)
    sample = bounds.midpoint.copy()
    if flags & _NOT_FINITE:
        finite = load_cupy().isfinite(records).all(axis=0).get()
        sample[~finite & (True if optional is None else ~optional)] = np.nan
    if flags & _OUTSIDE and not clip and np.isfinite(sample).all():
        sample[:] = bounds.upper + 1.0 + np.abs(bounds.upper)
    bounds.checked(sample[None], clip=clip, missing=missing)


def padded(size: int) -> int:
    """Width of rows of `size` entries: a multiple of eight, for which cuBLAS is fastest."""
    return -(-size // 8) * 8


def rows_at_a_time(width: int) -> int:
    """Rows of this width that are put on the grid and multiplied together."""
    return max(1, _BLOCK // width)


def device_gram(rows: Any, limit: int) -> Any:
    """``sum q q'`` over the rows of a matrix of integers up to `limit`, exact, as int64 on the device."""
    cupy = load_cupy()
    count, width = rows.shape
    total = cupy.zeros((width, width), np.int64)
    step = min(_EXACT // limit**2 - 1 or 1, _SHORT if width <= _NARROW else count or 1)
    whole = count // step
    for first, length, batch in ((0, step, whole), (whole * step, count - whole * step, 1)):
        if length and batch:
            products = _products(rows[first : first + length * batch], length, batch)
            total += products.sum(axis=0, dtype=np.int64) if batch > 1 else products[0].astype(np.int64)
    return total


def _products(rows: Any, length: int, batch: int) -> Any:
    """``Q'Q`` of `batch` pieces of `length` rows each, by one call of cuBLAS."""
    cupy = load_cupy()
    from cupy.cuda import cublas, device

    width = rows.shape[1]
    out = cupy.empty((batch, width, width))
    handle = device.get_cublas_handle()
    one, zero = np.ones(1), np.zeros(1)
    mode = cublas.getPointerMode(handle)
    cublas.setPointerMode(handle, cublas.CUBLAS_POINTER_MODE_HOST)
    try:
        cublas.dgemmStridedBatched(
            handle, cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_T, width, width, length, one.ctypes.data,
            rows.data.ptr, width, length * width, rows.data.ptr, width, length * width, zero.ctypes.data,
            out.data.ptr, width, width * width, batch,
        )  # fmt: skip
    finally:
        cublas.setPointerMode(handle, mode)
    return out


def moment_on_device(records: Any, grid: DeviceGrid) -> NDArray[np.int64]:
    """``sum z z'`` over records of shape (rows, features), z on the grid: the integers that `GramSum` has."""
    cupy, width = load_cupy(), padded(grid.size)
    with cupy.cuda.Device(records.device.id):
        total, step = cupy.zeros((width, width), np.int64), rows_at_a_time(width)
        for start in range(0, len(records), step):
            total += device_gram(grid(records[start : start + step], width), grid.levels)
        grid.check(records)
        return np.asarray(total.get()[: grid.size, : grid.size])


def sums_on_device(data: Any, task: TableTask, levels: int) -> Iterator[tuple[int, NDArray[np.int64], int]]:
    """Yield groups with their ``sum z z'`` and number of records; a group may come several times.

    Columns of a mapping are found by name; an array has them in the order of their description. Coordinates of z are in
    the order of their kinds: the constant, all values, all indicators of values, all levels.
    """
    cupy, used, names = load_cupy(), task.used, task.columns.names
    if isinstance(data, Mapping):
        table = _named_columns(data, len(names), names)
    else:
        array = _of_width(data, len(names))
        table = {name: array[:, i] for i, name in enumerate(names)}
    numbers = [device_column(table[column.name]) for column in used.numbers]
    codes = [device_codes(table[column.name], column) for column in used.categories]
    groups = None
    for column in task.groups:
        code = device_codes(table[column.name], column)
        groups = code if groups is None else groups * len(column.level_names) + code
    optional = tuple(column.missing for column in used.numbers)
    observed = [values for values, may_be_missing in zip(numbers, optional, strict=True) if may_be_missing]
    widths = [len(column.level_names) for column in used.categories]
    size = 1 + len(numbers) + len(observed) + sum(widths)
    width, grid = padded(size), None
    if used.bounds is not None:
        grid = DeviceGrid(used.bounds, used.bounds, levels, task.clip, task.missing, optional)
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
        for values in observed:
            z[:, place] = cupy.isfinite(values[part]) * float(levels)
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
