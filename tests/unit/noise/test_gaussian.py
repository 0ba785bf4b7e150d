"""The sampler's mechanics: shapes, buffers, refills, the exact path, bad input."""

from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest

from matrixdp import ParameterError, Stream
from matrixdp.noise import envelope as envelope_module
from matrixdp.noise import gaussian
from matrixdp.noise.envelope import BLOCKS, FINEST, PLACE_BITS, envelope
from matrixdp.noise.gaussian import draw_gaussian, draw_normal


class Scripted:
    """A stream whose further bits are given."""

    def __init__(self, *values):
        self.values = list(values)

    def bits(self, count):
        return self.values.pop(0) & ((1 << count) - 1)


def test_any_shape_and_buffer():
    assert draw_gaussian(Stream(seed=1), 3, shape=()).shape == ()
    assert draw_gaussian(Stream(seed=1), 3, shape=0).shape == (0,)
    assert draw_gaussian(Stream(seed=1), 3, shape=(2, 0, 3)).size == 0
    flat = draw_gaussian(Stream(seed=1), 40, shape=24)
    assert np.array_equal(draw_gaussian(Stream(seed=1), 40, shape=(2, 3, 4)).ravel(), flat)
    out = np.zeros((4, 6), np.int64)
    assert draw_gaussian(Stream(seed=1), 40, out=out) is out
    assert np.array_equal(out.ravel(), flat)
    fortran = np.zeros((4, 6), np.int64, order="F")
    draw_gaussian(Stream(seed=1), 40, out=fortran)
    assert np.array_equal(fortran.ravel(order="F"), flat)


@pytest.mark.parametrize("bits", [0, 1, 4, 5, 6, 30, 51])
def test_the_floor_of_a_finer_draw_is_the_coarser_draw(bits):
    fine = draw_gaussian(Stream(seed=4), 52, shape=3000)
    assert np.array_equal(draw_gaussian(Stream(seed=4), bits, shape=3000), fine >> (52 - bits))


def test_refills_fill_every_place():
    out = np.full(10_007, 2**62)
    draw_gaussian(Stream(seed=9), 40, out=out)
    assert np.abs(out).max() < 2**44


def test_words_are_taken_afresh_for_rejected_places(monkeypatch):
    """When everything but certain cells is rejected, what is left follows the certain cells' law: nothing is stale."""
    table = envelope()
    never = replace(table, curve=np.zeros_like(table.curve), level=np.full_like(table.level, 9.0), tail_bound=0.0)
    monkeypatch.setattr(gaussian, "envelope", lambda: never)
    draws = draw_gaussian(Stream(seed=9), 52, shape=20_000)
    index = np.arange(2 * table.certain)
    allowed = np.unique((table.masks[: 2 * table.certain] ^ (index << PLACE_BITS)) >> PLACE_BITS)
    assert np.isin(draws >> (PLACE_BITS - 2), allowed).all()


def test_the_exact_path_decides_as_the_quick_one_does(monkeypatch):
    """With the error bound widened, many comparisons go to integer arithmetic; the decisions stay the same."""
    quick = draw_gaussian(Stream(seed=2), 40, shape=12_000)
    calls = []
    settle = envelope_module.settle
    monkeypatch.setattr(gaussian, "settle", lambda *args: calls.append(1) or settle(*args))
    monkeypatch.setattr(gaussian, "envelope", lambda: replace(envelope(), error=0.25))
    assert np.array_equal(draw_gaussian(Stream(seed=2), 40, shape=12_000), quick)
    assert len(calls) > 40


def near_tie(size, level, scale):
    """A height whose 64 bits do not decide, and the exact height for a fraction of one half."""
    with mp.workdps(60):
        gap = scale * mp.exp(-((mp.mpf(size) + mp.mpf("0.5")) ** 2) / mp.mpf(2) ** (2 * FINEST + 1)) - level
        return int(mp.floor(gap * 2**64)), gap


@pytest.mark.parametrize("k", [0, 3, 40, 100, 150])
def test_ties_take_further_bits(k):
    table = envelope()
    size = (k << PLACE_BITS) + 12345
    level = int(table.height * mp.exp(-((mp.mpf(k) / 32) ** 2) / 2))
    level = max(level - 1, 0)
    height, gap = near_tie(size, level, table.height)
    if not 0 <= height < 2**64:
        level = int(mp.floor(table.height * mp.exp(-((mp.mpf(size) / 2**FINEST) ** 2) / 2)))
        height, gap = near_tie(size, level, table.height)
    with mp.workdps(60):
        fraction = int(mp.floor((gap * 2**64 - height) * 2**64))
    half = 1 << 63
    for more, expected in ((fraction - 2**40, True), (fraction + 2**40, False)):
        stream = Scripted(half, more % 2**64)
        assert envelope_module.under_curve(stream, size, height, level=level, scale=table.height) is expected
        assert not stream.values


def test_tail_candidates_are_settled_exactly():
    table = envelope()
    word = table.tail << (PLACE_BITS + 1)
    place = 77 << 30
    assert envelope_module.settle(Scripted(1, place), word, 0) == (BLOCKS << PLACE_BITS) + place  # accepted: height 0
    assert envelope_module.settle(Scripted(1, place), word | 1 << PLACE_BITS, 0) == ~((BLOCKS << PLACE_BITS) + place)
    assert envelope_module.settle(Scripted(1, place), word, 2**63) is None
    third = envelope_module.settle(Scripted(0, 0, 1, place), word, 0)
    assert third == ((BLOCKS + 16) << PLACE_BITS) + place


def test_draws_that_int64_cannot_hold_are_an_error():
    with pytest.raises(OverflowError):
        envelope_module.narrow(1 << 63)
    assert envelope_module.narrow(-(1 << 63)) == -(1 << 63)


@pytest.mark.parametrize("bits", [-1, 53, 1.5, "40", None, True])
def test_bits_out_of_range_are_named(bits):
    with pytest.raises(ParameterError, match="bits must be an integer from 0 to 52"):
        draw_gaussian(Stream(seed=1), bits, shape=3)


@pytest.mark.parametrize(
    "out",
    [
        np.zeros(4),
        np.zeros(4, np.int32),
        np.zeros((4, 4), np.int64)[:, ::2],
        [0, 0],
        np.broadcast_to(np.int64(1), (3,)),
    ],
)
def test_unfit_buffers_are_named(out):
    with pytest.raises(ParameterError, match="out must be"):
        draw_gaussian(Stream(seed=1), 40, out=out)


@pytest.mark.parametrize("shape", [None, -1, "x", (2, -3)])
def test_unfit_shapes_are_named(shape):
    with pytest.raises(ParameterError, match="shape must be"):
        draw_gaussian(Stream(seed=1), 40, shape=shape)


def test_normals_are_the_integers_in_the_middle_of_their_step():
    assert np.array_equal(
        draw_normal(Stream(seed=3), (5, 7)).ravel(), (draw_gaussian(Stream(seed=3), 52, shape=35) + 0.5) * 2.0**-52
    )


def test_memory_is_the_buffer_and_little_more():
    import tracemalloc

    out = np.empty(4_000_000, np.int64)
    draw_gaussian(Stream(seed=3), 40, out=out)  # builds the table
    tracemalloc.start()
    draw_gaussian(Stream(seed=3), 40, out=out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 * 2**20
