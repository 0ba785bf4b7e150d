"""Numbered draws from ChaCha20, the reference of the kernels: their words, and what they make of them."""

from dataclasses import replace

import numpy as np
import pytest

import numbered_draws
from matrixdp.noise import gaussian, indexed_draws
from matrixdp.noise.envelope import CELL_BITS, PLACE_BITS, envelope
from matrixdp.noise.gaussian import draw_gaussian
from matrixdp.noise.indexed_draws import chacha_block
from numbered_draws import chacha_blocks, draw_exactly, draw_indexed

KEY = bytes(range(32))
SPARE = np.uint64(987_654_321_012)  # a candidate in a certain cell
# RFC 8439, 2.3.2 and appendix A.1 (test vectors 1 and 5): key, counter, nonce, block
VECTORS = [
    (
        KEY,
        1,
        "000000090000004a00000000",
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    (
        bytes(32),
        0,
        "000000000000000000000000",
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    (
        bytes(32),
        0,
        "000000000000000000000002",
        "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
        "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
    ),
]


@pytest.mark.parametrize(("key", "counter", "nonce", "block"), VECTORS)
def test_blocks_of_the_standard(key, counter, nonce, block):
    first, second, third = np.frombuffer(bytes.fromhex(nonce), "<u4").tolist()
    counter, last = counter | first << 32, second | third << 32
    expected = np.frombuffer(bytes.fromhex(block), "<u8")
    assert np.array_equal(chacha_blocks(key, np.array([counter], np.uint64), last)[0], expected)
    assert chacha_block(key, counter, last) == expected.tolist()


def test_many_blocks_are_those_of_the_cipher():
    counters = np.random.default_rng(0).integers(0, 2**63, 50, dtype=np.uint64)
    for nonce in (0, 1, 2**32, 2**63 + 7):
        found = chacha_blocks(KEY, counters, nonce)
        assert [row.tolist() for row in found] == [chacha_block(KEY, int(counter), nonce) for counter in counters]


@pytest.mark.parametrize("bits", [0, 7, 40, 52])
def test_a_draw_depends_on_its_number_alone(bits):
    whole = draw_indexed(KEY, bits, 0, 5000)
    for first, count in ((0, 1), (1, 7), (8, 8), (4093, 907), (2500, 0)):
        assert np.array_equal(draw_indexed(KEY, bits, first, count), whole[first : first + count])
    assert np.array_equal(whole >> 0, [draw_exactly(KEY, bits, i) for i in range(5000)])
    assert not np.array_equal(draw_indexed(bytes(32), bits, 0, 5000), whole)


def test_no_block_serves_two_purposes(monkeypatch):
    used = []

    def blocks(key, counters, nonce=0):
        used.extend((int(counter), nonce) for counter in counters)
        return chacha_blocks(key, counters, nonce)

    monkeypatch.setattr(numbered_draws, "chacha_blocks", blocks)
    draw_indexed(KEY, 40, 0, 50_000)
    assert len(used) == len(set(used))
    extra = indexed_draws._ExtraBits(KEY, 5, 3, [1, 2])
    assert extra.bits(128) == 1 | 2 << 64
    assert extra.bits(512) == sum(word << 64 * i for i, word in enumerate(chacha_block(KEY, 5, 3 + (1 << 32))))
    assert extra.bits(64) == chacha_block(KEY, 5, 3 + (2 << 32))[0]


class Script:
    """A stream whose candidates, heights and further bits are given."""

    def __init__(self, words, heights, extra):
        self.script, self.extra = [words, heights], extra

    def words(self, size, out=None):
        found = self.script.pop(0) if self.script and self.script[0].size == size else np.full(size, SPARE)
        if out is None:
            return found.copy()
        out[...] = found
        return out

    def bits(self, count):
        found, self.extra = self.extra & ((1 << count) - 1), self.extra >> count
        return found


def test_words_mean_what_they_mean_to_the_sampler(monkeypatch):
    """For every cell, both signs, and heights and places at random, both make the same draw: so their laws agree."""
    rng = np.random.default_rng(1)
    codes = np.arange(2 << CELL_BITS, dtype=np.uint64)
    asked = codes[codes >= 2 * envelope().certain].size
    extra = rng.integers(0, 2**64, 6, dtype=np.uint64)
    for widened in (None, 0.25):
        if widened is not None:  # most comparisons are made in integers
            table = replace(envelope(), error=widened, tail_bound=1.0)
            monkeypatch.setattr(gaussian, "envelope", lambda table=table: table)
            monkeypatch.setattr(indexed_draws, "envelope", lambda table=table: table)
            monkeypatch.setattr(numbered_draws, "envelope", lambda table=table: table)
        for heights in (rng.integers(0, 2**64, asked, dtype=np.uint64), np.zeros(asked, np.uint64)):
            words = codes << np.uint64(PLACE_BITS) | rng.integers(0, 1 << PLACE_BITS, codes.size, dtype=np.uint64)

            def block(key, counter, nonce, words=words, heights=heights):
                if nonce == 0:
                    return words[8 * counter : 8 * counter + 8].tolist()
                return [int(heights[counter - words.size + asked]), int(SPARE), *extra.tolist()]

            def blocks(key, counters, nonce=0, block=block):
                return np.array([block(key, int(counter), nonce) for counter in counters], np.uint64).reshape(-1, 8)

            monkeypatch.setattr(indexed_draws, "chacha_block", block)
            monkeypatch.setattr(numbered_draws, "chacha_block", block)
            monkeypatch.setattr(numbered_draws, "chacha_blocks", blocks)
            found = draw_indexed(KEY, 52, 0, words.size)
            expected = draw_gaussian(Script(words, heights, 2**4096 - 1), 52, shape=words.size)
            in_tail = np.arange(words.size) // 2 == envelope().tail
            assert np.array_equal(found[~in_tail], expected[~in_tail])
            for i in np.flatnonzero(in_tail):
                own = Script(
                    words[i : i + 1], heights[[i - words.size]], sum(int(x) << 64 * j for j, x in enumerate(extra))
                )
                assert found[i] == draw_gaussian(own, 52, shape=1)[0]
