"""Exact Gaussian integers that are numbered, for GPUs: draw i is a function of a key and of i alone.

So draws can be made by any number of threads in any order, on a GPU (`noise/draws.cu`) as in this module, with the same
bits. GPUs have no instruction for AES, and ChaCha20 (RFC 8439) needs additions, exclusive ors and rotations of 32-bit
words only: all random words come from it, with the key of the call:

- the candidate of draw i is word ``i mod 8`` of the block with counter ``i // 8`` and nonce 0;
- attempt a = 0, 1, ... of draw i has the block with counter i and nonce a + 1. Its word 0 is the height with which a
  candidate is compared, unless its cell is certain; if the candidate is rejected, word 1 is the next one;
- what else an exact comparison needs (the place in the tail, further digits) is read from words 2 to 7 of that block,
  and then from the blocks with counter i and nonces ``a + 1 + 2^32``, ``a + 1 + 2 2^32``, ...

No block is used for two purposes: nonces differ between candidates and attempts, and counters between draws.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

from matrixdp.device import load_cupy, to_device_array
from matrixdp.errors import ParameterError
from matrixdp.noise.envelope import CELL_BITS, FINEST, PLACE_BITS, envelope, narrow, settle
from matrixdp.noise.stream import Stream

_CONSTANTS = np.frombuffer(b"expand 32-byte k", "<u4")
_COLUMNS = [(i, 4 + i, 8 + i, 12 + i) for i in range(4)]
_DIAGONALS = [(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4) for i in range(4)]
_CERTAIN = np.uint64(PLACE_BITS + 1)
_CHUNK, _SMALLEST = 1 << 27, 1 << 23  # draws for one launch
_FEW = 1 << 16  # chunks below this have memory for all of their candidates in the list
_THREADS, _BLOCKS = 256, 8  # of a block, and for each multiprocessor
_LEFT, _ENTRY = 127, 11  # draws of a chunk that the host can settle, of which four are expected; words for each
_KEY = np.dtype([(f"word{i}", np.uint32) for i in range(8)])


def chacha_blocks(key: bytes, counters: NDArray[np.uint64], nonce: int = 0) -> NDArray[np.uint64]:
    """Return the 64-byte blocks of some counters, as eight 64-bit words each.

    Parameters
    ----------
    key : 32 bytes
    counters : uint64 array of shape (n,)
        The first 64 bits of the last row of the state.
    nonce : int
        The last 64 bits of it.

    Returns
    -------
    uint64 array of shape (n, 8)

    Examples
    --------
    >>> chacha_blocks(bytes(32), np.arange(2, dtype=np.uint64)).shape
    (2, 8)
    """
    start = np.empty((16, len(counters)), np.uint32)
    start[:4] = _CONSTANTS[:, None]
    start[4:12] = np.frombuffer(key, "<u4")[:, None]
    start[12], start[13] = counters & np.uint64(0xFFFFFFFF), counters >> np.uint64(32)
    start[14], start[15] = nonce & 0xFFFFFFFF, nonce >> 32
    state = start.copy()
    for _ in range(10):
        for places in (*_COLUMNS, *_DIAGONALS):
            _quarter_round(state, *places)
    state += start
    return np.ascontiguousarray(state.T).view(np.uint64)


def chacha_block(key: bytes, counter: int, nonce: int) -> list[int]:
    """Return the eight words of one block."""
    start = counter.to_bytes(8, "little") + nonce.to_bytes(8, "little")
    block = Cipher(algorithms.ChaCha20(key, start), mode=None).encryptor().update(bytes(64))
    return list(struct.unpack("<8Q", block))


def _quarter_round(state: NDArray[np.uint32], a: int, b: int, c: int, d: int) -> None:
    for target, source, turned, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[target] += state[source]
        mixed = state[turned] ^ state[target]
        state[turned] = mixed << np.uint32(bits) | mixed >> np.uint32(32 - bits)


class _ExtraBits:
    """Random bits for one exact comparison, in place of a `Stream`: words in their order, the low bits first."""

    def __init__(self, key: bytes, index: int, nonce: int, first: Sequence[int]) -> None:
        self._key, self._index, self._nonce = key, index, nonce
        self._bits, self._left = sum(word << 64 * i for i, word in enumerate(first)), 64 * len(first)

    def bits(self, count: int) -> int:
        """Return a uniform integer of `count` bits."""
        while self._left < count:
            self._nonce += 1 << 32
            for word in chacha_block(self._key, self._index, self._nonce):
                self._bits |= word << self._left
                self._left += 64
        found = self._bits & ((1 << count) - 1)
        self._bits >>= count
        self._left -= count
        return found


def draw_indexed(key: bytes, bits: int, first: int, count: int) -> NDArray[np.int64]:
    """Return draws number ``first, first + 1, ...`` of a key: ``floor(G)`` with ``G ~ N(0, 4^bits)``.

    For tests and small numbers of draws; the kernels make the same draws.

    Examples
    --------
    >>> whole = draw_indexed(bytes(32), 40, 0, 20)
    >>> bool((draw_indexed(bytes(32), 40, 7, 5) == whole[7:12]).all())
    True
    """
    table, shift = envelope(), FINEST - bits
    blocks = np.arange(first // 8, (first + count + 7) // 8, dtype=np.uint64)
    words = chacha_blocks(key, blocks).reshape(-1)[first % 8 : first % 8 + count]
    out = _values(words) >> shift
    left = np.flatnonzero(words >> _CERTAIN >= table.certain)
    words = words[left]
    for attempt in range(1 << 32):
        if not left.size:
            break
        random = chacha_blocks(key, left.astype(np.uint64) + np.uint64(first), attempt + 1)
        uniform = (random[:, 0] >> np.uint64(11)).astype(np.float64) * 2.0**-53
        above = table.compare(words, uniform)
        in_tail = words >> _CERTAIN == table.tail
        unsure = (np.abs(above) <= table.error) | (in_tail & (uniform < table.tail_bound))
        accepted = (above > table.error) & ~unsure
        out[left[accepted]] = _values(words[accepted]) >> shift
        for i in left[unsure]:
            out[i] = draw_exactly(key, bits, first + int(i))
        rejected = ~(accepted | unsure)
        left, words = left[rejected], random[rejected, 1]
        certain = words >> _CERTAIN < table.certain
        out[left[certain]] = _values(words[certain]) >> shift
        left, words = left[~certain], words[~certain]
    return out


def draw_exactly(key: bytes, bits: int, index: int) -> int:
    """Return draw number `index` of a key, every comparison made in integers."""
    return finish_exactly(key, bits, index, 0, chacha_block(key, index // 8, 0)[index % 8])


def finish_exactly(
    key: bytes, bits: int, index: int, attempt: int, word: int, random: Sequence[int] | None = None
) -> int:
    """Return draw number `index` of a key, from an attempt on, whose candidate is `word`.

    `random` has the eight words of the attempt's block, if they are known.
    """
    table, shift = envelope(), FINEST - bits
    while word >> (PLACE_BITS + 1) >= table.certain:
        attempt += 1
        height, following, *rest = chacha_block(key, index, attempt) if random is None else random
        random = None
        if word >> (PLACE_BITS + 1) <= table.tail:  # cells after it are never accepted
            value = settle(_ExtraBits(key, index, attempt, rest), word, height)
            if value is not None:
                return narrow(value >> shift)
        word = following
    return int(_values(np.array([word], np.uint64))[0]) >> shift


def _values(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Candidates on the finest grid."""
    index = (words >> np.uint64(PLACE_BITS)).view(np.int64)
    return envelope().masks[index] ^ words.view(np.int64)


@dataclass(frozen=True, eq=False)
class Target:
    """The destination of draws.

    Attributes
    ----------
    name : str
        A type of `source`, with functions ``put`` and ``put_eight`` like those of ``Integers`` in `draws.cu`.
    content : NumPy scalar of a structured type
        The value of that type which the kernels get.
    source : str
        CUDA code that defines it.
    """

    name: str
    content: Any
    source: str = ""


@dataclass(frozen=True, eq=False)
class _Kernels:
    """Compiled kernels for one kind of target, and the tables of the envelope, on one device."""

    propose: Any
    decide: Any
    settle: Any
    tables: tuple[Any, ...]
    multiprocessors: int

    @property
    def addresses(self) -> list[np.uint64]:
        """Of the blocks of cells, and of level, curve and centre."""
        return [np.uint64(table.data.ptr) for table in self.tables]


@cache
def _kernels(device: int, name: str, source: str) -> _Kernels:
    cupy, table = load_cupy(), envelope()
    code = files("matrixdp.noise").joinpath("draws.cu").read_text(encoding="utf-8") + source
    names = [f"{kernel}<{name}>" for kernel in ("propose", "decide", "settle")]
    module = cupy.RawModule(code=code, options=("--std=c++17", "--fmad=false"), name_expressions=names)
    index = np.arange(0, 2 << CELL_BITS, 2)  # of each cell, with positive sign
    blocks = (table.masks[index] >> PLACE_BITS) ^ index
    blocks[table.tail :] = 0  # never accepted
    tables = (blocks & 0xFF).astype(np.uint8), table.level, table.curve, table.centre
    propose, decide, settle = (module.get_function(one) for one in names)
    return _Kernels(
        propose,
        decide,
        settle,
        tuple(cupy.asarray(one) for one in tables),
        cupy.cuda.Device(device).attributes["MultiProcessorCount"],
    )


def fill_on_device(stream: Stream, bits: int, out: Any) -> None:
    """Fill an int64 array on a GPU with draws whose key comes from a stream."""
    array = to_device_array(out)
    if array.dtype != np.int64 or not array.flags.c_contiguous:
        raise ParameterError("out must be a C-contiguous array of int64; copy the result where it is needed.")
    with load_cupy().cuda.Device(array.device.id):
        aligned = array if array.data.ptr % 16 == 0 else load_cupy().empty_like(array)  # 16 bytes are written at a time
        target = Target("Integers", np.array([(aligned.data.ptr,)], [("out", np.uint64)])[0])
        draw_on_device(stream.words(4).tobytes(), bits, array.size, target)
        if aligned is not array:
            array[...] = aligned


def draw_on_device(key: bytes, bits: int, count: int, target: Target) -> None:
    """Put draws number 0 to ``count - 1`` of a key into a target on the current device.

    Privacy
    -------
    A key is used for one call: it must be new random bits.
    """
    sizes = _chunk_sizes(count)
    if not sizes:
        return
    starts = [0, *itertools.accumulate(sizes)]
    chunks = _Chunks(key, bits, target, max(sizes), len(sizes))
    for number, size in enumerate(sizes):
        chunks.draw(number, starts[number], size)
    settled: list[tuple[int, int]] = []
    for number in range(len(sizes)):
        for index, attempt, word, *random in chunks.undecided(number):
            settled.append((index, finish_exactly(key, bits, index, attempt, word, random)))
    chunks.settle(settled)


def _chunk_sizes(count: int) -> list[int]:
    """Numbers of draws of the chunks, all but the last multiples of eight; the last ones get smaller.

    The host settles what is left of a chunk while the next ones are drawn, and waits for the last one.
    """
    sizes = []
    while count:
        sizes.append(min(count, max(_SMALLEST, min(_CHUNK, count // 16 * 8))))
        count -= sizes[-1]
    return sizes


class _Chunks:
    """Launches the kernels chunk by chunk, and keeps the lists of candidates that are not decided yet."""

    def __init__(self, key: bytes, bits: int, target: Target, size: int, count: int) -> None:
        cupy, table = load_cupy(), envelope()
        self._kernels = _kernels(cupy.cuda.Device().id, target.name, target.source)
        self._grid = (_BLOCKS * self._kernels.multiprocessors,), (_THREADS,)
        capacity = size if size <= _FEW else size // 16 + 4096  # 3.7% are expected
        self._capacity, self._target = capacity, target.content
        self._lists = cupy.empty((2, capacity), np.uint64)  # numbers of draws, and their candidates
        # For each chunk: the sizes of both lists, and the list of what is left to the host.
        self._left = cupy.zeros((count, 1 + _LEFT * _ENTRY), np.uint64)
        self._stream, self._done = cupy.cuda.get_current_stream(), list[Any]()
        lists = np.uint64(self._lists.data.ptr), np.uint64(self._lists.data.ptr + 8 * capacity)
        blocks, *curve = self._kernels.addresses
        key_words, shift = np.array([tuple(np.frombuffer(key, np.uint32))], _KEY)[0], np.int32(FINEST - bits)
        certain, tail, errors = np.uint32(table.certain), np.uint32(table.tail), (table.error, table.tail_bound)
        self._key = key_words
        self._proposing = shift, certain, blocks, self._target, *lists
        self._deciding = (
            key_words, shift, certain, tail, *map(np.float64, errors), blocks, *curve, self._target, *lists
        )  # fmt: skip

    @cached_property
    def _on_host(self) -> NDArray[np.uint64]:
        """Memory of the host that the device can read and write. Made when the first kernels run already."""
        import cupyx

        found: NDArray[np.uint64] = cupyx.empty_pinned(self._left.shape, np.uint64)
        return found

    def draw(self, number: int, first: int, count: int) -> None:
        """Start to draw a chunk, whose first draw has the number `first`."""
        row, capacity = self._left[number], np.uint32(self._capacity)
        listed, left = np.uint64(row.data.ptr), np.uint64(row.data.ptr + 4)
        candidates = self._key, np.uint64(first), np.uint64(count), *self._proposing, listed, capacity
        self._kernels.propose(*self._grid, candidates)
        entries = np.uint64(row.data.ptr + 8)
        self._kernels.decide(*self._grid, (*self._deciding, listed, capacity, entries, left, np.uint32(_LEFT)))
        row.get(out=self._on_host[number], blocking=False)
        self._done.append(self._stream.record())

    def undecided(self, number: int) -> list[list[int]]:
        """Wait for a chunk, and return what is left to the host: draw, attempt, candidate, and the attempt's block."""
        self._done[number].synchronize()
        row = self._on_host[number]
        listed, left = row[:1].view(np.uint32).tolist()
        if listed > self._capacity or left > _LEFT:
            raise RuntimeError("more draws were undecided than can happen by chance; the GPU may be faulty.")
        entries: list[list[int]] = row[1 : 1 + left * _ENTRY].reshape(left, _ENTRY).tolist()
        return entries

    def settle(self, draws: list[tuple[int, int]]) -> None:
        """Put draws that the host settled into the target."""
        if not draws:
            return
        pairs = self._on_host.reshape(-1)[: 2 * len(draws)]  # its content is not needed any more
        pairs[...] = np.array(draws, np.int64).view(np.uint64).reshape(-1)
        arguments = np.uint64(pairs.ctypes.data), np.uint32(len(draws)), self._target
        self._kernels.settle((1,), (_THREADS,), arguments)
        self._stream.synchronize()
