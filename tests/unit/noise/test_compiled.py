"""The compiled steps give the same draws, and nothing depends on them."""

import sys

import numpy as np
import pytest

from matrixdp import Stream
from matrixdp.noise import blocks, compiled
from matrixdp.noise.blocks import BLOCK
from matrixdp.noise.compiled import WORTH, find_steps
from matrixdp.noise.gaussian import draw_gaussian, draw_normal


@pytest.fixture
def not_loaded(monkeypatch):
    monkeypatch.setattr(compiled, "_loaded", [])


@pytest.mark.usefixtures("not_loaded")
class TestWithNumba:
    @pytest.mark.parametrize("bits", [0, 5, 40, 52])
    @pytest.mark.parametrize("size", [1, 1000, BLOCK, BLOCK + 30_001])
    def test_the_draws_are_the_same_bit_for_bit(self, bits, size):
        pytest.importorskip("numba")
        expected = draw_gaussian(Stream(seed=7), bits, shape=size)
        assert find_steps(WORTH) is not None
        assert np.array_equal(draw_gaussian(Stream(seed=7), bits, shape=size), expected)

    def test_on_several_threads_too(self, monkeypatch):
        pytest.importorskip("numba")
        expected = draw_normal(Stream(seed=7), 3 * BLOCK)
        find_steps(WORTH)
        monkeypatch.setattr(blocks, "THREADS", 3)
        assert np.array_equal(draw_normal(Stream(seed=7), 3 * BLOCK), expected)

    def test_a_folder_that_cannot_be_written_costs_the_cache_only(self, monkeypatch):
        numba = pytest.importorskip("numba")
        njit = numba.njit

        def without_folder(signature, *, cache=False, **options):
            if cache:
                raise RuntimeError("cannot cache function: no locator available")
            return njit(signature, **options)

        monkeypatch.setattr(numba, "njit", without_folder)
        assert find_steps(WORTH) is not None

    def test_small_draws_do_not_load_it(self, monkeypatch):
        monkeypatch.setattr(compiled, "_compile", None)
        assert find_steps(WORTH - 1) is None
        assert not compiled._loaded


@pytest.mark.usefixtures("not_loaded")
@pytest.mark.parametrize("found", [None, "broken"])
def test_without_numba_draws_are_made_by_numpy(monkeypatch, found):
    expected = draw_gaussian(Stream(seed=7), 40, shape=1000)
    monkeypatch.setitem(sys.modules, "numba", found)
    assert find_steps(WORTH) is None
    assert np.array_equal(draw_gaussian(Stream(seed=7), 40, shape=1000), expected)
