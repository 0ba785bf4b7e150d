"""Exact Gaussian integers that are numbered, for GPUs: draw i is a function of a key and of i alone.

So draws can be made by any number of threads in any order, on a GPU (`noise/draws.cu`) and, where a comparison must be
exact, in this module. GPUs have no instruction for AES, and ChaCha20 (RFC 8439) needs additions, exclusive ors and
rotations of 32-bit words only: all random words come from it, with the key of the call:

- the candidate of draw i is word ``i mod 8`` of the block with counter ``i // 8`` and nonce 0;
- attempt a = 0, 1, ... of draw i has the block with counter i and nonce a + 1. Its word 0 is the height with which a
  candidate is compared, unless its cell is certain; if the candidate is rejected, word 1 is the next one;
- what else an exact comparison needs (the place in the tail, further digits) is read from words 2 to 7 of that block,
  and then from the blocks with counter i and nonces ``a + 1 + 2^32``, ``a + 1 + 2 2^32``, ...

No block is used for two purposes: nonces differ between candidates and attempts, and counters between draws.
"""

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

_CHUNK, _SMALLEST = 1 << 27, 1 << 23  # draws for one launch
_FEW = 1 << 16  # chunks below this have memory for all of their candidates in the list
_THREADS, _BLOCKS = 256, 8  # of a block, and for each multiprocessor
_LEFT, _ENTRY = 127, 11  # draws of a chunk that the host can settle, of which four are expected; words for each
_KEY = np.dtype([(f"word{i}", np.uint32) for i in range(8)])


def chacha_block(key: bytes, counter: int, nonce: int) -> list[int]:
    """Return the eight words of one block."""
    start = counter.to_bytes(8, "little") + nonce.to_bytes(8, "little")
    block = Cipher(algorithms.ChaCha20(key, start), mode=None).encryptor().update(bytes(64))
    return list(struct.unpack("<8Q", block))


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


def finish_exactly(
    key: bytes, bits: int, index: int, attempt: int, word: int, random: Sequence[int] | None = None
) -> int:
    """Return draw `index` of a key, from an attempt with candidate `word` on; `random` is its block, if known."""
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
    return int(candidate_values(np.array([word], np.uint64))[0]) >> shift


def candidate_values(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Candidates on the finest grid."""
    index = (words >> np.uint64(PLACE_BITS)).view(np.int64)
    return envelope().masks[index] ^ words.view(np.int64)


@dataclass(frozen=True, eq=False)
class Target:
    """The destination of draws."""

    name: str  # a type of `source` with functions ``put`` and ``put_eight`` like those of ``Integers`` in `draws.cu`
    content: Any  # a NumPy scalar of a structured type: the value of that type which the kernels get
    source: str = ""  # CUDA code


@cache
def _kernels(device: int, name: str, source: str) -> tuple[list[Any], list[Any], int]:
    """Kernels for one kind of target; blocks of cells, level, curve and centre on a device; its multiprocessors."""
    cupy, table = load_cupy(), envelope()
    code = files("matrixdp.noise").joinpath("draws.cu").read_text(encoding="utf-8") + source
    names = [f"{kernel}<{name}>" for kernel in ("propose", "decide", "settle")]
    module = cupy.RawModule(code=code, options=("--std=c++17", "--fmad=false"), name_expressions=names)
    index = np.arange(0, 2 << CELL_BITS, 2)  # of each cell, with positive sign
    blocks = (table.masks[index] >> PLACE_BITS) ^ index
    blocks[table.tail :] = 0  # never accepted
    tables = (blocks & 0xFF).astype(np.uint8), table.level, table.curve, table.centre
    processors = cupy.cuda.Device(device).attributes["MultiProcessorCount"]
    return [module.get_function(one) for one in names], [cupy.asarray(one) for one in tables], processors


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
        kernels, tables, multiprocessors = _kernels(cupy.cuda.Device().id, target.name, target.source)
        self._propose, self._decide, self._settle = kernels
        self._grid = (_BLOCKS * multiprocessors,), (_THREADS,)
        capacity = size if size <= _FEW else size // 16 + 4096  # 3.7% are expected
        self._capacity, self._target = capacity, target.content
        self._lists = cupy.empty((2, capacity), np.uint64)  # numbers of draws, and their candidates
        # For each chunk: the sizes of both lists, and the list of what is left to the host.
        self._left = cupy.zeros((count, 1 + _LEFT * _ENTRY), np.uint64)
        self._stream, self._done = cupy.cuda.get_current_stream(), list[Any]()
        lists = np.uint64(self._lists.data.ptr), np.uint64(self._lists.data.ptr + 8 * capacity)
        blocks, *curve = (np.uint64(one.data.ptr) for one in tables)
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
        self._propose(*self._grid, candidates)
        entries = np.uint64(row.data.ptr + 8)
        self._decide(*self._grid, (*self._deciding, listed, capacity, entries, left, np.uint32(_LEFT)))
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
        self._settle((1,), (_THREADS,), arguments)
        self._stream.synchronize()
