"""The envelope gives every point its mass, to sixty digits, and its inequalities hold."""

import mpmath as mp
import numpy as np
import pytest

from matrixdp.noise.envelope import (
    BLOCKS,
    BLOCKS_PER_SUPERBLOCK,
    BLOCKS_PER_UNIT,
    CELL_BITS,
    FINEST,
    PLACE_BITS,
    envelope,
    exp_bounds,
    tail_scale,
)

mp.mp.dps = 90
TABLE = envelope()


def curve(y):
    return TABLE.height * mp.exp(-(mp.mpf(y) ** 2) / 2)


def cells_by_signed_block():
    """{signed block: (number of certain cells, levels of the cut ones)}, read back from the tables."""
    index = np.arange(2 * TABLE.tail)
    signed = (TABLE.masks[: 2 * TABLE.tail] ^ (index << PLACE_BITS)) >> PLACE_BITS
    found = {}
    for i, block in zip(index.tolist(), signed.tolist(), strict=True):
        levels = found.setdefault(block, [0, []])[1]
        if i < 2 * TABLE.certain:
            found[block][0] += 1
        else:
            levels.append(TABLE.level[i - 2 * TABLE.certain])
    return found


CELLS = cells_by_signed_block()


def test_every_block_of_both_signs_is_there():
    assert sorted(CELLS) == list(range(-BLOCKS, BLOCKS))


@pytest.mark.parametrize("sign", [1, -1])
def test_mass_balance_in_the_blocks(sign):
    rng = np.random.default_rng(3)
    for k in range(BLOCKS):
        certain, levels = CELLS[k if sign > 0 else ~k]
        inner, outer = mp.mpf(k) / BLOCKS_PER_UNIT, mp.mpf(k + 1) / BLOCKS_PER_UNIT
        assert certain <= curve(outer)
        assert certain + len(levels) >= curve(inner)
        for share in (0, 1, *rng.random(3)):
            y = inner + (outer - inner) * mp.mpf(float(share))
            mass = certain + mp.fsum(min(max(curve(y) - j, 0), 1) for j in levels)
            assert mp.almosteq(mass, curve(y), rel_eps=mp.mpf(10) ** -60)


def test_mass_balance_in_the_tail():
    width = mp.mpf(BLOCKS_PER_SUPERBLOCK) / BLOCKS_PER_UNIT
    for i in (0, 1, 2, 5, 20, 100):
        start = mp.mpf(BLOCKS) / BLOCKS_PER_UNIT + i * width
        for share in (0, mp.mpf("0.37"), 1):
            y = start + share * width
            accepted = curve(y) * tail_scale(i)
            assert accepted <= TABLE.tail_bound <= 1
            proposed = mp.mpf(2) ** -(i + 1) / BLOCKS_PER_SUPERBLOCK  # cells of height one, a block wide
            assert mp.almosteq(proposed * accepted, curve(y), rel_eps=mp.mpf(10) ** -60)


def test_a_tail_with_too_little_mass_is_found():
    y = mp.mpf(BLOCKS + 1) / BLOCKS_PER_UNIT
    broken = curve(y) * tail_scale(0) * mp.mpf("0.997") * mp.mpf(2) ** -1 / BLOCKS_PER_SUPERBLOCK
    assert not mp.almosteq(broken, curve(y), rel_eps=mp.mpf(10) ** -60)


def test_cells_of_the_tail_and_beyond_are_never_accepted_by_comparison():
    words = np.array([TABLE.tail, TABLE.tail + 1, 2**CELL_BITS - 1], np.uint64) << np.uint64(PLACE_BITS + 1)
    assert (TABLE.compare(words, np.zeros(3)) < -1).all()


@pytest.mark.parametrize("bits", [20, 128, 400])
def test_exponential_is_enclosed(bits):
    rng = np.random.default_rng(5)
    cases = [(0, 1), (1, 10**9), (3, 2), (700, 1), (131072, 1), *rng.integers(1, 10**6, (40, 2)).tolist()]
    for numerator, denominator in cases:
        low, high = exp_bounds(numerator, denominator, bits)
        true = mp.mpf(2) ** bits * mp.exp(-mp.mpf(numerator) / denominator)
        with mp.workdps(bits):
            true = mp.mpf(2) ** bits * mp.exp(-mp.mpf(numerator) / denominator)
            assert low <= true <= high <= low + 2


def exact_height(word, uniform, share):
    """How far the curve lies above a point, exactly; `share` is the digit of its place beyond the word."""
    index, place = word >> PLACE_BITS, word & ((1 << PLACE_BITS) - 1)
    signed = (int(TABLE.masks[index]) ^ (index << PLACE_BITS)) >> PLACE_BITS
    signed = (signed + (1 << 14)) % (1 << 15) - (1 << 14)
    y = ((signed << PLACE_BITS) + place + mp.mpf(share)) / mp.mpf(2) ** FINEST
    return curve(y) - TABLE.level[index - 2 * TABLE.certain] - mp.mpf(uniform)


def test_float_comparison_keeps_its_error_bound():
    rng = np.random.default_rng(7)
    cells = rng.integers(2 * TABLE.certain, 2 * TABLE.tail, 3000)
    places = np.concatenate([np.zeros(1000), np.full(1000, 2**PLACE_BITS - 1), rng.integers(0, 2**PLACE_BITS, 1000)])
    words = (cells.astype(np.uint64) << np.uint64(PLACE_BITS)) | places.astype(np.uint64)
    near = np.array([min(max(float(exact_height(int(w), 0, 0)), 0.0), 1 - 2.0**-53) for w in words])  # all ties
    for uniform in (near, rng.random(3000)):
        measured = TABLE.compare(words, uniform)
        worst = max(
            abs(exact_height(int(w), u, share) - mp.mpf(float(m)))
            for w, u, m in zip(words, uniform, measured, strict=True)
            for share in (0, 1)
        )
        assert worst <= 0.62 * TABLE.error


def test_a_comparison_of_lower_order_breaks_the_bound():
    cells = np.arange(2 * TABLE.certain, 2 * TABLE.tail, 7)
    words = (cells.astype(np.uint64) << np.uint64(PLACE_BITS)) | np.uint64(2**PLACE_BITS - 1)
    place = 2.0 ** (PLACE_BITS - 1)
    poor = sum(TABLE.polynomials[k][cells - 2 * TABLE.certain] * place**k for k in range(4))
    worst = max(abs(exact_height(int(w), 0, 1) - mp.mpf(float(p))) for w, p in zip(words, poor, strict=True))
    assert worst > TABLE.error
