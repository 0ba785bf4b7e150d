"""The reference of the kernels for numbered draws: the same draws in NumPy, any of them at a time."""

import numpy as np

from matrixdp.noise.envelope import FINEST, PLACE_BITS, envelope
from matrixdp.noise.indexed_draws import candidate_values, chacha_block, finish_exactly

_CONSTANTS = np.frombuffer(b"expand 32-byte k", "<u4")
_COLUMNS = [(i, 4 + i, 8 + i, 12 + i) for i in range(4)]
_DIAGONALS = [(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4) for i in range(4)]
_CERTAIN = np.uint64(PLACE_BITS + 1)


def chacha_blocks(key: bytes, counters: np.ndarray, nonce: int = 0) -> np.ndarray:
    """Return the 64-byte blocks of some counters, as eight 64-bit words each."""
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


def _quarter_round(state: np.ndarray, a: int, b: int, c: int, d: int) -> None:
    for target, source, turned, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[target] += state[source]
        mixed = state[turned] ^ state[target]
        state[turned] = mixed << np.uint32(bits) | mixed >> np.uint32(32 - bits)


def draw_indexed(key: bytes, bits: int, first: int, count: int) -> np.ndarray:
    """Return draws number ``first, first + 1, ...`` of a key: ``floor(G)`` with ``G ~ N(0, 4^bits)``.

    For tests and small numbers of draws; the kernels make the same draws.
    """
    table, shift = envelope(), FINEST - bits
    blocks = np.arange(first // 8, (first + count + 7) // 8, dtype=np.uint64)
    words = chacha_blocks(key, blocks).reshape(-1)[first % 8 : first % 8 + count]
    out = candidate_values(words) >> shift
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
        out[left[accepted]] = candidate_values(words[accepted]) >> shift
        for i in left[unsure]:
            out[i] = draw_exactly(key, bits, first + int(i))
        rejected = ~(accepted | unsure)
        left, words = left[rejected], random[rejected, 1]
        certain = words >> _CERTAIN < table.certain
        out[left[certain]] = candidate_values(words[certain]) >> shift
        left, words = left[~certain], words[~certain]
    return out


def draw_exactly(key: bytes, bits: int, index: int) -> int:
    """Return draw number `index` of a key, every comparison made in integers."""
    return finish_exactly(key, bits, index, 0, chacha_block(key, index // 8, 0)[index % 8])
