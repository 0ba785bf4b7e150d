"""No two streams repeat each other."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

from forked_child import in_child
from matrixdp import ParameterError, Stream, StreamError
from matrixdp.noise import stream as module
from pool_words import SHARED, draw_words


def test_keyed_streams_differ_and_seeded_ones_repeat():
    assert not np.array_equal(Stream().words(4), Stream().words(4))
    assert np.array_equal(Stream(seed=5).words(4), Stream(seed=5).words(4))
    assert not np.array_equal(Stream(seed=5).words(4), Stream(seed=6).words(4))
    assert Stream(seed=5).seeded
    assert not Stream().seeded


def test_words_do_not_depend_on_how_they_are_asked_for():
    at_once = Stream(seed=1).words(300_000)
    stream = Stream(seed=1)
    parts = np.concatenate([stream.words(n) for n in (1, 131_072, 2, 168_925)])
    assert np.array_equal(at_once, parts)


def test_bits_have_the_asked_length():
    stream = Stream(seed=2)
    for count in (1, 5, 64, 65, 200):
        values = [stream.bits(count) for _ in range(50)]
        assert max(values) < 1 << count
        assert max(values) >= 1 << (count - 1)


def test_children_repeat_by_index_and_differ_from_each_other():
    parent = Stream()
    assert np.array_equal(parent.child(3).words(4), parent.child(3).words(4))
    families = [parent.words(4), parent.child(0).words(4), parent.child(1).words(4), parent.child(0).child(0).words(4)]
    assert len({words.tobytes() for words in families}) == 4


def test_a_used_up_key_is_replaced(monkeypatch):
    monkeypatch.setattr(module, "_WORDS_PER_KEY", 8)
    stream = Stream(seed=1)
    words = np.concatenate([stream.words(4) for _ in range(6)])
    assert np.unique(words).size == 24


def test_streams_are_neither_copied_nor_pickled():
    for act in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(StreamError, match="cannot be copied or pickled"):
            act(Stream())


def test_a_forked_child_does_not_repeat_its_parent():
    stream = Stream()
    stream.words(3)
    children = [in_child(lambda: stream.words(8).tobytes()) for _ in range(2)]
    assert len({*children, stream.words(8).tobytes()}) == 3


def test_a_fork_while_another_thread_draws_does_not_lock_up_the_child():
    stream = Stream()
    with stream._lock:
        assert len(in_child(lambda: stream.words(2).tobytes())) == 16


def test_a_seeded_stream_says_no_after_a_fork():
    stream = Stream(seed=1)

    def attempt():
        try:
            stream.words(1)
        except StreamError as error:
            return str(error).encode()
        return b"repeated"

    assert b"crossed a fork" in in_child(attempt)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_pool_never_repeats_a_word(method):
    with multiprocessing.get_context(method).Pool(3) as pool:
        results = pool.map(draw_words, range(12), chunksize=1)
    words = np.frombuffer(b"".join(results) + SHARED.words(64).tobytes(), np.uint64)
    assert np.unique(words).size == words.size


def test_threads_never_repeat_a_word():
    stream, found = Stream(), []
    threads = [threading.Thread(target=lambda: found.extend(stream.words(1000) for _ in range(20))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(found)
    assert np.unique(words).size == words.size == 80_000


@pytest.mark.parametrize("seed", [-1, 1.5, "x", True])
def test_unfit_seeds_are_named(seed):
    with pytest.raises(ParameterError, match="seed must be"):
        Stream(seed=seed)


def test_unfit_indices_are_named():
    with pytest.raises(ParameterError, match="index must be"):
        Stream().child(-1)


def test_representation_shows_no_key():
    assert repr(Stream()) == "Stream()"
    assert "simulation" in repr(Stream(seed=1))


def test_keys_come_from_the_operating_system():
    """In processes of their own, where the tests' repeatable keys are not used."""
    code = "from matrixdp.noise import Stream; print(*Stream().words(1), *Stream().words(1))"
    drawn = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in range(2)]
    assert len(set(b" ".join(drawn).split())) == 4
