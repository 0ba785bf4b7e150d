"""Keyed hashes of many texts at once.

Each text is read as 32-bit words x, its length first, and hashed to ``(a_0 + sum a_i x_i mod 2^64) >> 32`` with secret
random numbers a. Two texts that are not chosen with knowledge of the key have the same 32 bits with a probability of
2^-32 (Dietzfelbinger 1996); four such numbers make 128 bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_MOST_BYTES = 1 << 12  # of a text; longer ones are digested first
_HIGH = np.uint64(0xFFFFFFFF00000000)


def hash_texts(texts: Sequence[str], key: bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Two hashes of 64 bits for each text, of shape (texts,)."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(one) for one in encoded], out=offsets[1:])
    return hash_bytes(np.frombuffer(b"".join(encoded), np.uint8), offsets, key)


def hash_bytes(
    content: NDArray[np.uint8], offsets: NDArray[np.int64], key: bytes
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Two hashes of 64 bits for each of some texts in UTF-8, of which text i is ``content[offsets[i]:offsets[i + 1]]``.

    Parameters
    ----------
    content : uint8 array
    offsets : int64 array of shape (texts + 1,)
    key : bytes
    """
    starts, lengths = offsets[:-1], np.diff(offsets)
    if len(lengths) and int(lengths.max()) > _MOST_BYTES:
        raw = content.tobytes()
        pieces = [raw[a:b] for a, b in zip(starts.tolist(), offsets[1:].tolist(), strict=True)]
        digested = [p if len(p) <= _MOST_BYTES else b"\0" + hashlib.blake2b(p, key=key).digest() for p in pieces]
        content = np.frombuffer(b"".join(digested), np.uint8)
        lengths = np.array([len(p) for p in digested], np.int64)
        starts = np.cumsum(lengths) - lengths
    words = -(-int(lengths.max()) // 4) if len(lengths) else 0
    factors = _factors(key, words + 2)
    sums = [lengths.astype(np.uint64) * factor + constant for constant, factor in factors[:2].T]
    padded = np.concatenate([content, np.zeros(4, np.uint8)])
    unaligned = np.ndarray((len(content) + 1,), "<u4", padded, strides=(1,))  # the word that begins at each byte
    rest = np.arange(len(lengths))
    for number in range(words):
        rest = rest[lengths[rest] > 4 * number]
        every = len(rest) == len(lengths)
        left = np.minimum(lengths[rest] - 4 * number, 4).astype(np.uint64)
        mask = (np.uint64(1) << (np.uint64(8) * left)) - np.uint64(1)
        word = unaligned[starts[rest] + 4 * number].astype(np.uint64) & mask
        for total, factor in zip(sums, factors[2 + number], strict=True):
            if every:
                total += word * factor  # several times faster than at chosen places
            else:
                total[rest] += word * factor
    first, second = ((one & _HIGH) | (other >> np.uint64(32)) for one, other in (sums[:2], sums[2:]))
    return first, second


def _factors(key: bytes, count: int) -> NDArray[np.uint64]:
    """Secret numbers of shape (count, 4); for another count, the first ones are the same."""
    content = hashlib.shake_256(b"text hash" + key).digest(32 * count)
    return np.frombuffer(content, "<u8").reshape(count, 4)
