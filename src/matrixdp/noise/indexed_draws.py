"""Exact Gaussian integers that are numbered: draw i is a function of a key and of i alone.

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

import struct
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

from matrixdp.noise.envelope import FINEST, PLACE_BITS, envelope, narrow, settle

_CONSTANTS = np.frombuffer(b"expand 32-byte k", "<u4")
_COLUMNS = [(i, 4 + i, 8 + i, 12 + i) for i in range(4)]
_DIAGONALS = [(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4) for i in range(4)]
_CERTAIN = np.uint64(PLACE_BITS + 1)


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
