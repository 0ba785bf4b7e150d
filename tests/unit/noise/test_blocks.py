"""Large draws: the same on any number of threads, and no two draws from the same block's stream."""

import hashlib
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from forked_child import in_child
from matrixdp import Bounds, Identity, ParameterError, Privacy, Stream, StreamError, make_design
from matrixdp.noise import Covariance, MatrixGaussian, gaussian
from matrixdp.noise.gaussian import BLOCK, draw_blocks, draw_gaussian, draw_normal, read_threads

SIZE = BLOCK * 3 // 2 + 1001
THREADS = [1, 2, 3, 7]


def digest(array):
    return hashlib.sha256(array.astype(array.dtype.newbyteorder("<")).tobytes()).hexdigest()[:16]


def on_threads(monkeypatch, count, function):
    monkeypatch.setattr(gaussian, "THREADS", count)
    return function()


# The first two are draws of version 0.1, which come from the stream itself; the others are divided into blocks.
@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1000, "de0d7784afe30007"),
        (BLOCK, "cf1af55f019e5d22"),
        (BLOCK + 1, "6811b1ba639baf41"),
        (SIZE, "228e0595ea28bef8"),
    ],
)
def test_seeded_draws_stay_as_they_are(size, expected):
    assert digest(draw_gaussian(Stream(seed=1), 40, shape=size)) == expected


def test_small_draws_come_from_the_stream_itself():
    stream, other = Stream(seed=3), Stream(seed=3)
    parts = np.concatenate([draw_gaussian(stream, 40, shape=1000) for _ in range(3)])
    assert np.array_equal(parts[:1000], draw_gaussian(other, 40, shape=1000))
    assert np.array_equal(
        draw_normal(Stream(seed=3), 1000), (draw_gaussian(Stream(seed=3), 52, shape=1000) + 0.5) * 2.0**-52
    )


def identity_release():
    records = np.linspace(0, 1, 2 * SIZE // 3 * 3).reshape(-1, 3)
    design = make_design(Identity(Bounds([0] * 3, [1] * 3), records=len(records)), Privacy(1, 1e-6))
    return design.release(records, stream=Stream(seed=1), simulation=True).matrix


@pytest.mark.parametrize(
    "draw",
    [
        lambda: draw_gaussian(Stream(seed=1), 40, shape=SIZE),
        lambda: draw_normal(Stream(seed=1), SIZE),
        lambda: MatrixGaussian([1.0, 4.0, 9.0], Covariance.identity(SIZE // 2)).sample(Stream(seed=1)),
        identity_release,
    ],
    ids=["integers", "normals", "law", "identity"],
)
def test_draws_do_not_depend_on_the_number_of_threads(monkeypatch, draw):
    first, *others = (on_threads(monkeypatch, count, draw) for count in THREADS)
    assert all(np.array_equal(first, other) for other in others)


def test_large_draws_are_those_of_numbered_streams():
    """Block i is what the stream of block i gives, whatever is drawn before it."""
    found = draw_gaussian(Stream(seed=5), 40, shape=SIZE)
    key = gaussian.BlockKey(Stream(seed=5))
    for number in (1, 0):
        piece = found[number * BLOCK : (number + 1) * BLOCK]
        assert np.array_equal(piece, draw_gaussian(key.stream(number), 40, shape=piece.size))


def streams_used(stream, count=40):
    """First words of the streams of the blocks of one draw."""
    found = []
    draw_blocks(stream, count, lambda: lambda block, places: found.append(block.words(2).tobytes()), block=1)
    return found


@pytest.mark.parametrize("make", [Stream, lambda: Stream(seed=1)], ids=["keyed", "seeded"])
def test_two_draws_never_use_the_same_stream(monkeypatch, make):
    monkeypatch.setattr(gaussian, "THREADS", 3)
    shared, found = make(), []
    draws = [threading.Thread(target=lambda: found.extend(streams_used(shared))) for _ in range(4)]
    for thread in draws:
        thread.start()
    for thread in draws:
        thread.join()
    assert len(set(found)) == len(found) == 160


def test_after_a_fork_threads_start_again_with_other_streams(monkeypatch):
    monkeypatch.setattr(gaussian, "THREADS", 3)
    stream = Stream()
    streams_used(stream)
    children = [in_child(lambda: b"".join(streams_used(stream))) for _ in range(2)]
    assert all(len(child) == 40 * 16 for child in children)
    words = np.frombuffer(b"".join([*children, *streams_used(stream)]), np.uint64)
    assert np.unique(words).size == words.size == 240


def test_a_seeded_stream_is_refused_after_a_fork(monkeypatch):
    stream = Stream(seed=1)

    def attempt():
        try:
            draw_gaussian(stream, 40, shape=SIZE)
        except StreamError:
            return b"refused"
        return b"repeated"

    assert in_child(attempt) == b"refused"


def test_every_thread_takes_part_and_every_place_is_drawn_once(monkeypatch):
    monkeypatch.setattr(gaussian, "THREADS", 3)
    together, places, names = threading.Barrier(3), [], set()

    def draw(_, piece):
        if len(names) < 3:
            names.add(threading.get_ident())
            together.wait(timeout=60)  # all three threads are at work at the same time
        places.extend(range(piece.start, piece.stop))

    draw_blocks(Stream(seed=1), 30, lambda: draw, block=10)
    assert len(names) == 3
    assert sorted(places) == list(range(30))


def test_an_error_in_a_thread_is_raised_and_ends_the_draw(monkeypatch):
    monkeypatch.setattr(gaussian, "THREADS", 2)
    drawn = []

    def draw(_, piece):
        if piece.start >= 5:
            raise OverflowError("does not fit")
        drawn.append(piece.start)

    before = threading.active_count()
    with pytest.raises(OverflowError, match="does not fit"):
        draw_blocks(Stream(seed=1), 10_000, lambda: draw, block=1)
    assert sorted(drawn) == [0, 1, 2, 3, 4]
    assert threading.active_count() == before


def test_without_further_threads_the_caller_draws_all(monkeypatch):
    expected = draw_gaussian(Stream(seed=1), 40, shape=SIZE)

    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(gaussian, "THREADS", 4)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert np.array_equal(draw_gaussian(Stream(seed=1), 40, shape=SIZE), expected)


def test_errors_of_floats_are_handled_in_threads_as_in_the_caller(monkeypatch):
    """A warning in a thread could reveal private data that a release would not show."""
    monkeypatch.setattr(gaussian, "THREADS", 3)
    found = []
    with np.errstate(all="ignore", divide="raise"):
        draw_blocks(Stream(seed=1), 12, lambda: lambda block, places: found.append(np.geterr()["divide"]), block=1)
    assert found == ["raise"] * 12


def test_small_draws_start_no_thread(monkeypatch):
    monkeypatch.setattr(threading, "Thread", None)
    assert draw_gaussian(Stream(), 40, shape=BLOCK).size == BLOCK


def test_the_variable_sets_the_number_of_threads(monkeypatch):
    assert read_threads("5") == 5
    for value in ("0", "-1", "two", "1.5"):
        with pytest.raises(ParameterError, match="MATRIXDP_THREADS must be a number of threads"):
            read_threads(value)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert read_threads(None) == read_threads("") == 3
    code = "from matrixdp.noise import gaussian; print(gaussian.THREADS)"
    environment = {**os.environ, "MATRIXDP_THREADS": "9"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stdout == "9\n"
