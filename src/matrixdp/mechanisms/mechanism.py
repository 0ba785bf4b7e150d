"""The Gaussian mechanism on integers, which adds noise to an answer.

The answer is whitened and rounded to integers, and exact Gaussian integers are added (`docs/mathematics.md`,
"Rounding"). Everything after that is post-processing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.checks import check_flag
from matrixdp.design.design import Design, check_design
from matrixdp.design.grid import column_factors
from matrixdp.device import is_device_block, load_cupy
from matrixdp.domain.bounds import Bounds
from matrixdp.errors import ParameterError, StreamError, show
from matrixdp.noise import BlockKey, Stream, draw_gaussian
from matrixdp.noise.gaussian import BLOCK, Draw, Sampler, draw_blocks
from matrixdp.noise.indexed_draws import Target, draw_on_device
from matrixdp.noise.matrix import adjust_total, triangle_to_vector, vector_to_triangle
from matrixdp.queries.base import check_answer, check_count
from matrixdp.queries.cuda_sums import device_records, raise_unusable
from matrixdp.queries.identity import Identity, OwnRowsQuery
from matrixdp.types import Floats

# From the design and what `prepare` returned to the noisy answer.
Answer = Callable[[Design, NDArray[Any]], Floats]

# Of kernels that read records on a device, and what they are given.
_THREADS = 256
_BLOCKS = 32  # for each multiprocessor
_ROWS = np.dtype([(name, np.uint64) for name in ("records", "midpoints", "factors", "limits", "out", "columns")])

_ANSWER: ContextVar[Answer | None] = ContextVar("matrixdp_release_answer", default=None)


@contextmanager
def intercept_releases(answer: Answer) -> Iterator[None]:
    """Context manager in which `answer` replaces the noise of every release of this thread.

    Privacy
    -------
    Releases within the block are marked as simulations and cannot be charged. The hook ends with the block, also after
    an error, and other threads never see it. Blocks cannot be nested.
    """
    if _ANSWER.get() is not None:
        raise ParameterError("releases are intercepted already; end the other audit first.")
    token = _ANSWER.set(answer)
    try:
        yield
    finally:
        _ANSWER.reset(token)


def current_answer() -> Answer | None:
    """The function that answers releases, or None outside of an audit."""
    return _ANSWER.get()


@dataclass(frozen=True, eq=False)
class NoisyAnswer:
    """A noisy matrix of the query's shape, and the design of its noise. A `simulation` protects nothing."""

    matrix: Floats
    design: Design
    simulation: bool = False

    std = property(attrgetter("design.std"), doc="Standard deviation of the noise in each entry.")


def measure(design: Design, data: Any, *, stream: Stream | None = None, simulation: bool = False) -> NoisyAnswer:
    """The noisy answer of a design's query on private data, without a charge: whoever calls has charged for it.

    Privacy
    -------
    `design.distance`-GDP for `design.neighbours`. Records are moved into their bounds, and missing values are errors.
    """
    check_stream(stream, simulation=simulation)
    check_design(design)
    with np.errstate(all="ignore"):  # a warning could reveal private data
        prepared = prepare(design, data, clip=True, missing="error")
        return draw_noisy_answer(design, prepared, stream, simulation=simulation)


def draw_noisy_answer(
    design: Design, prepared: NDArray[Any], stream: Stream | None = None, *, simulation: bool = False
) -> NoisyAnswer:
    """The noisy answer, from what `prepare` returned; an audit may answer in place of noise.

    Without a `stream`, a new one is keyed from the operating system.
    """
    answer, on_host = current_answer(), isinstance(prepared, np.ndarray)
    if answer is not None and on_host:
        return NoisyAnswer(design.query.finish(answer(design, prepared)), design, simulation=True)
    stream = Stream() if stream is None else stream
    if not on_host:
        return NoisyAnswer(noisy_device_rows(design, prepared, stream), design, simulation)
    return NoisyAnswer(design.query.finish(add_noise(design, prepared, stream)), design, simulation)


def check_stream(stream: Stream | None, *, simulation: bool) -> None:
    """Raise an error for a stream from outside, unless the release is marked as a simulation."""
    check_flag(simulation, "simulation")
    if stream is not None and not isinstance(stream, Stream):
        raise ParameterError(f"stream must be a Stream, such as Stream(seed=1), got {show(stream)} instead.")
    if stream is not None and not simulation:
        raise StreamError(
            "a stream that others may know or use again must not protect data. "
            "Leave it out, or say simulation=True and the release is marked as a simulation."
        )


def prepare(design: Design, data: Any, *, clip: bool, missing: str) -> NDArray[Any]:
    """All that is computed from the private data before the charge; raises every error of the data. Private.

    The answer in whole steps of the grid, or the records of a query that rounds entrywise, which are rounded block by
    block.
    """
    query = design.query
    data = query.check_people(data) if isinstance(query, OwnRowsQuery) else data
    if isinstance(query, Identity) and is_device_block(data):
        on_device: NDArray[Any] = read_device_rows(design, data, clip=clip, missing=missing)
        return on_device
    if isinstance(query, Identity) and design.entrywise:
        rows = query.read_rows(data, clip=clip, missing=missing)
        check_count(len(rows), query.shape[0])
        return rows
    answer = check_answer(query, query.evaluate(data, clip=clip, missing=missing))
    if design.structure is not None:  # whitened: in coordinates in which the noise is independent with unit variance
        whitened = design.structure.whiten(design.noise, answer)
    else:
        whitened = design.noise.whiten(answer.reshape(-1, 1) if design.flat else answer)
        if query.symmetric and not design.flat:
            whitened = triangle_to_vector(whitened)
    steps = np.rint(whitened * 2.0**design.grid.bits)
    return np.clip(steps, -design.grid.limit, design.grid.limit).astype(np.int64)


def round_answer(design: Design, prepared: NDArray[Any]) -> NDArray[np.int64]:
    """The integers to which noise is added, from what `prepare` returned. Private; for audits."""
    if not design.entrywise:
        return prepared
    steps = np.empty(prepared.shape)
    convert_rows(design)[0](prepared, steps)
    return steps.astype(np.int64)


def add_noise(design: Design, prepared: NDArray[Any], stream: Stream) -> Floats:
    """The noisy answer in the answer's units, before its public part is added."""
    if design.entrywise:
        return _noisy_rows(design, prepared, stream)
    return unwhiten(design, prepared + draw_noise(design, prepared.shape, stream))


def draw_noise(design: Design, shape: tuple[int, ...], stream: Stream) -> NDArray[np.int64]:
    """Gaussian integers for an answer that is rounded as a whole."""
    return draw_gaussian(stream, design.grid.bits, shape=shape)


def add_keyed_noise(exact: Sequence[int], key: BlockKey, number: int, content: bytes, bits: int) -> tuple[int, ...]:
    """Integers plus Gaussian integers of standard deviation ``2^bits``: the same for the same key, number and content.

    Privacy
    -------
    `content` must be a hash of all that `exact` was computed from, so that other integers get independent noise.
    """
    noise = draw_gaussian(key.stream(number, content), bits, shape=len(exact)).tolist()
    return tuple(a + b for a, b in zip(exact, noise, strict=True))


def _noisy_rows(design: Design, records: NDArray[np.generic], stream: Stream) -> Floats:
    """Noisy records less the midpoint, of shape (records, features), made block by block if they are many."""
    rows, columns = design.query.shape
    out = np.empty((rows, columns))
    round_rows, values = convert_rows(design)
    step = max(1, BLOCK // columns)

    def make_draw() -> Draw:
        integers = np.empty((min(step, rows), columns), np.int64)
        sampler = Sampler(design.grid.bits, out.size)

        def draw(block_stream: Stream, places: slice) -> None:
            block = out[places]
            noisy = integers[: len(block)]
            round_rows(records[places], block)
            sampler.fill(block_stream, noisy.reshape(-1))
            noisy += block.astype(np.int64)
            values(noisy, block)

        return draw

    draw_blocks(stream, rows, make_draw, block=step)
    return out


def unwhiten(design: Design, integers: NDArray[np.int64]) -> Floats:
    """Noisy integers in the answer's units; post-processing."""
    return unwhiten_coordinates(design, (integers.astype(np.float64) + 0.5) * 2.0**-design.grid.bits)


def unwhiten_coordinates(design: Design, noisy: Floats) -> Floats:
    """Noisy coordinates, in standard deviations, in the answer's units; post-processing."""
    if design.structure is not None:
        return design.structure.combine(design.noise, noisy)
    query, symmetric = design.query, design.query.symmetric
    if symmetric and not design.flat:
        noisy = vector_to_triangle(noisy, query.shape[0])
    else:
        noisy = noisy.reshape(design.noise.shape)
    matrix = design.noise.unwhiten(noisy)
    if design.flat:
        matrix = matrix.reshape(query.shape)
    if (total := query.total) is not None:
        adjust_total(matrix, design.noise, total)
    return (matrix + matrix.T) / 2 if symmetric else matrix


Rounding = Callable[[NDArray[np.generic], Floats], None]  # from records to grid steps in an array
Values = Callable[[NDArray[np.int64], Floats], None]  # from noisy grid steps to the units of the records


def convert_rows(design: Design) -> tuple[Rounding, Values]:
    """Functions from records to grid steps and back, which write to an array.

    They work entry by entry where noise is independent between features. Where directions mix the features, or records
    lie in a ball, a row's bits may depend on its place in a block, as BLAS works on several rows at once, but on no
    other row.
    """
    query, noise, bits, limit = design.query, design.noise, design.grid.bits, design.grid.limit
    assert isinstance(query, Identity)

    def divide(noisy: NDArray[np.int64], out: Floats) -> None:
        np.add(noisy, 0.5, out=out)
        out /= factors

    def turn(records: NDArray[np.generic], out: Floats) -> None:
        np.rint(noise.whiten(query.bounds.centre(records)) * 2.0**bits, out=out)
        np.clip(out, -limit, limit, out=out)

    def turn_back(noisy: NDArray[np.int64], out: Floats) -> None:
        out[...] = noise.unwhiten((noisy.astype(np.float64) + 0.5) / 2.0**bits)

    if not design.entrywise:
        return turn, turn_back
    factors = column_factors(noise, bits)
    return query.row_rounding(factors), divide


def noisy_parts(design: Design, key: BlockKey, first: int, parts: Iterable[NDArray[np.generic]]) -> Iterator[Floats]:
    """Yield noisy records of a data set that is released in parts, of shape (rows, features), from number `first` on.

    Row i of the data set gets the noise of row i of an infinite table, which is drawn in blocks of a fixed size, each
    from a stream derived from the key of the release and the number of the block. So a part that is processed twice
    gets the same bits, and neither the number of workers nor the partition of the records can change one.

    Privacy
    -------
    Use a key for one data set only: two data sets with the same noise reveal their difference.
    """
    check_rowwise(design)
    columns = design.query.shape[1]
    size = max(1, BLOCK // columns)
    round_rows, values = convert_rows(design)
    block, steps, noise = np.zeros((size, columns)), np.empty((size, columns)), np.empty((size, columns), np.int64)
    drawn = -1
    for records in parts:
        out, done = np.empty(records.shape), 0
        while done < len(records):
            number, place = divmod(first + done, size)
            count = min(size - place, len(records) - done)
            rows, found = slice(place, place + count), slice(done, done + count)
            block[rows] = records[found]  # the other rows hold finite numbers that are not used
            round_rows(block, steps)
            if drawn != number:
                draw_gaussian(key.stream(number), design.grid.bits, out=noise)
                drawn = number
            noisy = noise.copy()
            noisy[rows] += steps[rows].astype(np.int64)
            values(noisy, steps)
            out[found] = steps[rows]
            done += count
        first += len(records)
        yield design.query.finish(out)


def check_rowwise(design: Design) -> Identity:
    """The query of a data set, or a `ParameterError` unless each record gets the same noise: rows come in parts."""
    query = design.query
    if not isinstance(query, Identity):
        raise ParameterError(
            f"design must be for the identity query, whose answer is a data set, got {type(query).__name__}; "
            "other answers are small, and released as a whole."
        )
    if design.flat or isinstance(design.noise.rowcov.whitening, np.ndarray):
        raise ParameterError("design must have noise that is the same for every record to be released in parts.")
    return query


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
