"""Sources and engines of other packages give the bits of the array."""

import re

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.records import InMemoryPart, Source, run_part
from unit.records.conftest import PRIVACY, RECORDS, UNNAMED

DESIGN = mdp.make_design(mdp.Moments(UNNAMED, RECORDS), PRIVACY)


class Shelf:
    """Data of a library that matrixdp does not know."""


class ShelfSource(Source):
    def __init__(self, drawers):
        self.drawers = drawers

    def parts(self, columns, texts=()):
        return [InMemoryPart(f"drawer {i}", (drawer,)) for i, drawer in enumerate(self.drawers)]


class LastFirst:
    """An engine that runs the last part first, and each part twice."""

    def run(self, task, parts, *, whole=False):
        for number, part in reversed(list(enumerate(parts))):
            run_part(task, number, part)
            yield run_part(task, number, part)


@pytest.fixture
def shelf(data):
    return ShelfSource(np.array_split(data, 7))


def release(data):
    return DESIGN.release(data, stream=mdp.Stream(seed=4), simulation=True).matrix


def test_a_source_of_one_s_own_gives_the_bits_of_the_array(data, shelf):
    assert np.array_equal(release(shelf), release(data))
    assert np.array_equal(release(mdp.open_records(shelf, workers=3)), release(data))


def test_an_engine_of_one_s_own_gives_the_bits_of_the_array(data, shelf):
    seen = []
    records = mdp.open_records(shelf, workers=LastFirst(), progress=seen.append)
    assert np.array_equal(release(records), release(data))
    assert sum(seen) == RECORDS
    blocks = mdp.open_records(iter(np.array_split(data, 5)), workers=LastFirst())
    assert np.array_equal(release(blocks), release(data))


def test_a_dask_array_needs_threads_or_a_dask_cluster(data):
    array = pytest.importorskip("dask.array").from_array(data, chunks=(500, 3))
    with pytest.raises(mdp.ParameterError, match="workers must be a number of threads or a Dask cluster"):
        mdp.open_records(array, workers=LastFirst())


def test_data_and_workers_that_nothing_recognises_are_named(data):
    with pytest.raises(mdp.ParameterError, match=r"data must be a path.*got Shelf instead"):
        mdp.open_records(Shelf())
    message = (
        "workers must be a number of threads, the address of a Dask scheduler or a distributed.Client, got a Shelf"
    )
    with pytest.raises(mdp.ParameterError, match=re.escape(message)):
        mdp.open_records(iter([data]), workers=Shelf())
