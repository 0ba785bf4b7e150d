"""The law of the sampler, computed from its decisions: every cell, both signs and the tail, for scripted random words.

A draw takes a word, which names a cell, a sign and a place, and perhaps a second word, which is compared with a height.
How many second words are accepted is found by bisection. The sum over the cells of a block must follow
``exp(-y^2/2)``, up to the resolution of the bisection.
"""

import mpmath as mp
import numpy as np
import pytest

from matrixdp.noise.envelope import BLOCKS, BLOCKS_PER_SUPERBLOCK, BLOCKS_PER_UNIT, CELL_BITS, FINEST, PLACE_BITS
from matrixdp.noise.gaussian import draw_gaussian, draw_normal

BITS = 52
ROUNDS = 34
PRECISION = 2.0**-32  # of an acceptance probability
SPARE = 987_654_321_012  # place of the words that are drawn after a rejection; no other word has it
RNG = np.random.default_rng(0)
PLACES = [0, (1 << PLACE_BITS) - 1, *RNG.integers(0, 1 << PLACE_BITS, 2).tolist()]


class Scripted:
    """A stream that gives these words, then these heights; further words are spare ones."""

    def __init__(self, words, heights, bits=()):
        self.script = [words, heights]
        self.queue = list(bits)

    def words(self, size, out=None):
        found = self.script.pop(0) if self.script and self.script[0].size == size else np.full(size, SPARE, np.uint64)
        if out is None:
            return found.copy()
        out[...] = found
        return out

    def bits(self, count):
        return self.queue.pop(0) if self.queue else 1  # ends the search for a superblock


def draw(words, heights, bits=()):
    return draw_gaussian(Scripted(words, heights, bits), BITS, shape=words.size)


def block_masses(place):
    """Probability, in units of one cell, that a draw falls on a place of each signed block."""
    codes = np.arange(2 << CELL_BITS, dtype=np.uint64)
    words = (codes << np.uint64(PLACE_BITS)) | np.uint64(place)
    asked = asked_again(words)
    spare = draw(np.full(1, SPARE, np.uint64), np.zeros(1, np.uint64))[0]
    low, high = np.zeros(asked.sum(), object), np.full(asked.sum(), 1 << 64, object)  # accepted below, refused above
    values = np.full(words.size, spare)
    for _ in range(ROUNDS):
        middle = (low + high) // 2
        drawn = draw(words, middle.astype(np.uint64))
        accepted = drawn != spare
        values = np.where(accepted, drawn, values)
        low, high = np.where(accepted[asked], middle, low), np.where(accepted[asked], high, middle)
    share = np.ones(words.size)
    share[asked] = (low / 2**64).astype(float)
    share[values == spare] = 0.0
    blocks = (values >> (BITS - 5)) + BLOCKS
    inside = (blocks >= 0) & (blocks < 2 * BLOCKS)  # without the tail
    return np.bincount(blocks[inside], weights=share[inside], minlength=2 * BLOCKS)


def asked_again(words):
    """Which words need a second one: those of the last cells, as many as are asked for."""
    sizes = []

    class Recording(Scripted):
        def words(self, size, out=None):
            if out is None:
                sizes.append(size)
            return super().words(size, out)

    draw_gaussian(Recording(words, np.zeros(0, np.uint64)), BITS, shape=words.size)
    return np.arange(words.size) >= words.size - sizes[0]


def curve(y):
    return float(mp.exp(-(mp.mpf(y) ** 2) / 2))


@pytest.fixture(scope="module")
def cells_at_zero():
    """Mass of the place where the curve is one, from which all others follow."""
    return block_masses(0)[BLOCKS]


@pytest.mark.parametrize("place", PLACES)
def test_every_block_has_its_mass(place, cells_at_zero):
    masses = block_masses(place)
    for k in range(BLOCKS):
        y = (k + (place + 0.5) / 2**PLACE_BITS) / BLOCKS_PER_UNIT
        assert masses[BLOCKS + k] == pytest.approx(cells_at_zero * curve(y), abs=4 * PRECISION, rel=2e-9)
    # A negative draw with the same bits lies at the mirrored place of its block.
    for k in range(BLOCKS):
        y = (k + 1 - (place + 0.5) / 2**PLACE_BITS) / BLOCKS_PER_UNIT
        assert masses[BLOCKS - 1 - k] == pytest.approx(cells_at_zero * curve(y), abs=4 * PRECISION, rel=2e-9)


def tail_mass(superblock, place, negative):
    """Probability, in units of one cell, that a draw falls on a place of the tail, and the draw."""
    word = np.array([(tail_cell() << 1 | negative) << PLACE_BITS], np.uint64)
    bits = [0] * superblock + [1, place]
    spare = draw(np.full(1, SPARE, np.uint64), np.zeros(1, np.uint64))[0]
    low, high, value = 0, 1 << 64, None
    for _ in range(40):
        middle = (low + high) // 2 if value is not None else 0
        drawn = int(draw(word, np.array([middle], np.uint64), bits)[0])
        if drawn == spare:
            high = middle
            if middle == 0:
                break
        else:
            low, value = middle, drawn
    # Places of a superblock share a cell's probability, and superblock i has 2^-(i + 1) of it.
    return low / 2**64 * 2.0 ** -(superblock + 1) / BLOCKS_PER_SUPERBLOCK, value


def tail_cell():
    """The cell that stands for the tail: the only one whose draws need bits beyond two words."""
    codes = np.arange(1 << CELL_BITS, dtype=np.uint64) << np.uint64(PLACE_BITS + 1)
    found = []
    for cell in range((1 << CELL_BITS) - 1, 0, -1):
        stream = Scripted(codes[cell : cell + 1], np.zeros(1, np.uint64), [1, 5])
        draw_gaussian(stream, BITS, shape=1)
        if not stream.queue:
            found.append(cell)
        elif found or cell < (1 << CELL_BITS) - 2000:
            break
    return found[0] if found else (1 << CELL_BITS) - 1


@pytest.mark.parametrize("superblock", [0, 1, 2, 5])
@pytest.mark.parametrize("negative", [0, 1])
def test_the_tail_has_its_mass(superblock, negative, cells_at_zero):
    width = PLACE_BITS + BLOCKS_PER_SUPERBLOCK.bit_length() - 1
    for place in (0, 3 << (width - 3), (1 << width) - 1):
        size = ((BLOCKS + BLOCKS_PER_SUPERBLOCK * superblock) << PLACE_BITS) + place
        mass, value = tail_mass(superblock, place, negative)
        assert mass == pytest.approx(cells_at_zero * curve(size / 2**FINEST), rel=1e-6)
        assert value == (~size if negative else size) >> (FINEST - BITS)


def test_draws_after_a_rejection_are_new_ones():
    """A rejected word leaves nothing behind: the place is filled by the next word."""
    words = np.array([((1 << CELL_BITS) - 1) << (PLACE_BITS + 1)] * 3, np.uint64)
    spare = draw(np.full(1, SPARE, np.uint64), np.zeros(1, np.uint64))[0]
    assert (draw(words, np.full(3, 2**64 - 1, np.uint64)) == spare).all()


def test_normals_are_no_wider_than_their_integers():
    words = np.arange(5, dtype=np.uint64) << np.uint64(PLACE_BITS + 1)
    integers = draw(words, np.zeros(0, np.uint64))
    normals = draw_normal(Scripted(words, np.zeros(0, np.uint64)), 5)
    assert np.array_equal(np.floor(normals * 2.0**BITS), integers)
