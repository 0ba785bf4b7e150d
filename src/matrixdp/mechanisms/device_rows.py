"""A noisy data set on a GPU: the integers of `mechanisms.mechanism`, bit for bit, with noise drawn on the device."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from matrixdp.design.design import Design
from matrixdp.design.grid import column_factors
from matrixdp.device import load_cupy
from matrixdp.domain.bounds import Bounds
from matrixdp.errors import ParameterError
from matrixdp.noise import Stream
from matrixdp.noise.indexed_draws import Target, draw_on_device
from matrixdp.queries.base import check_count
from matrixdp.queries.cuda_sums import device_records, raise_unusable
from matrixdp.queries.identity import Identity

_THREADS = 256
_BLOCKS = 32  # for each multiprocessor
_ROWS = np.dtype([(name, np.uint64) for name in ("records", "midpoints", "factors", "limits", "out", "columns")])


def read_device_rows(design: Design, data: Any, *, clip: bool, missing: str) -> Any:
    """Records on a device, checked; raises every error of the data."""
    query = design.query
    if not isinstance(query, Identity) or not design.entrywise:
        raise ParameterError(
            "data on a GPU must be for moments, or for a data set with a box as its bounds and noise along its "
            "features. For other designs move the data to the memory of the host first."
        )
    cupy, bounds = load_cupy(), query.bounds
    records = cupy.ascontiguousarray(device_records(data, bounds.size, bounds.names))
    if records.data.ptr % 16:  # the kernels read 16 bytes at a time
        records = records.copy()
    check_count(len(records), query.shape[0])
    with cupy.cuda.Device(records.device.id):
        raise_unusable(_look(records, bounds), records, bounds, clip=clip, missing=missing)
        cupy.empty(records.shape)  # raises an error now if there is too little memory, and not after the charge
    return records


def noisy_device_rows(design: Design, records: Any, stream: Stream) -> Any:
    """Noisy records in their own units, of shape (records, features), on the device.

    The kernels that draw the noise add it to the records, so that neither is read twice.
    """
    cupy, query = load_cupy(), design.query
    assert isinstance(query, Identity)
    factors = column_factors(design.noise, design.grid.bits)
    with cupy.cuda.Device(records.device.id):
        out = cupy.empty(records.shape)
        vectors = [cupy.asarray(vector) for vector in (query.bounds.midpoint, factors, query.row_limits(factors))]
        addresses = [array.data.ptr for array in (records, *vectors, out)]
        content = np.array([(*addresses, records.shape[1])], _ROWS)[0]
        target = Target(f"Rows<{_kind(records)}>", content, _source())
        draw_on_device(stream.words(4).tobytes(), design.grid.bits, out.size, target)
        return out


def _look(records: Any, bounds: Bounds) -> int:
    """What a kernel sees that is wrong with records: see `raise_unusable`."""
    cupy, columns = load_cupy(), records.shape[1]
    blocks = max(-(-columns // _THREADS), _BLOCKS * cupy.cuda.Device().attributes["MultiProcessorCount"])
    stride, flags = blocks * _THREADS // columns * 4 * columns, cupy.zeros(1, np.int32)
    limits = [cupy.asarray(vector) for vector in (bounds.lower, bounds.upper)]
    sizes = np.uint64(records.size), np.uint64(columns), np.uint64(stride)
    _module().get_function(f"look<{_kind(records)}>")((blocks,), (_THREADS,), (records, *limits, *sizes, flags))
    return int(flags.get()[0])


def _kind(records: Any) -> str:
    return "float" if records.dtype.char == "f" else "double"


@cache
def _source() -> str:
    return files("matrixdp.mechanisms").joinpath("rows.cu").read_text(encoding="utf-8")


@cache
def _module() -> Any:
    types = "typedef unsigned int u32; typedef unsigned long long u64; typedef long long i64;\n"
    names = ("look<float>", "look<double>")
    return load_cupy().RawModule(code=types + _source(), options=("--std=c++17",), name_expressions=names)
