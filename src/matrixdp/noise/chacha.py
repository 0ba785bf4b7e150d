"""The block function of ChaCha20 (RFC 8439), for many counters at once.

GPUs have no instruction for AES. ChaCha20 needs additions, exclusive ors and rotations of 32-bit words only.
"""

from __future__ import annotations

import struct

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

_CONSTANTS = np.frombuffer(b"expand 32-byte k", "<u4")
_COLUMNS = [(i, 4 + i, 8 + i, 12 + i) for i in range(4)]
_DIAGONALS = [(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4) for i in range(4)]


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
