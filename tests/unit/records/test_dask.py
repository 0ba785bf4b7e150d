"""A Dask cluster gives the integers of one machine, whichever worker runs a task and however often."""

import os
import signal

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.records.parts import PartResult, unwrap_results
from matrixdp.release.dataset import release_dataset
from unit.records.conftest import BOUNDS, PRIVACY, RECORDS, UNNAMED, make_table, write_parts
from unit.records.test_dataset import DESIGNS, charges, read, seeded

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask itself

QUERY = mdp.Moments(BOUNDS, RECORDS)


def answer(query, data):
    return query.evaluate(data, clip=True, missing="error")


def test_arrays_and_frames_without_a_cluster(data):
    import dask.array as da
    import dask.dataframe as dd

    expected = answer(QUERY, data)
    for chunks in ((701, 3), (97, 2), (3000, 1)):
        assert np.array_equal(answer(mdp.Moments(UNNAMED, RECORDS), da.from_array(data, chunks=chunks)), expected)
    threads = mdp.open_records(da.from_array(data, chunks=(500, 3)), workers=2)
    assert np.array_equal(answer(mdp.Moments(UNNAMED, RECORDS), threads), expected)
    frame = dd.from_pandas(make_table(data).to_pandas(), npartitions=7)
    assert np.array_equal(answer(QUERY, frame), expected)
    with pytest.raises(mdp.DataError, match="column 'z'"):
        answer(mdp.Moments(mdp.Bounds([0], [1], names=["z"]), RECORDS), frame)
    with pytest.raises(mdp.ParameterError, match="two dimensions"):
        answer(QUERY, da.zeros(10))


def test_a_cluster_gives_the_same_bits_in_every_way(tmp_path, data, cluster, ledger):
    import dask.array as da
    import dask.dataframe as dd

    expected = answer(QUERY, data)
    folder = write_parts(tmp_path / "set", data, parts=9)
    address = cluster.scheduler.address
    assert np.array_equal(answer(QUERY, mdp.open_records(folder, workers=address)), expected)
    assert np.array_equal(answer(QUERY, mdp.open_records(folder, workers=cluster)), expected)
    unnamed = mdp.Moments(UNNAMED, RECORDS)
    array = mdp.open_records(da.from_array(data, chunks=(500, 2)), workers=cluster)
    assert np.array_equal(answer(unnamed, array), expected)
    frame = mdp.open_records(dd.read_parquet(folder), workers=cluster)
    assert np.array_equal(answer(QUERY, frame), expected)

    # The same noise as threads draw, for every kind of source.
    first = release_dataset(DESIGNS["directions"], folder, tmp_path / "threads", **seeded())
    for name, source in {"files": folder, "frame": dd.read_parquet(folder)}.items():
        made = release_dataset(DESIGNS["directions"], source, tmp_path / name, workers=cluster, **seeded())
        assert np.array_equal(read(made.path), read(first.path))

    asked = {"question": "covariance", "simulation": True}
    for method in ("adaptive", "plain"):
        whole, parts = (
            mdp.release_table(source, BOUNDS, PRIVACY, method=method, stream=mdp.Stream(seed=1), **asked)
            for source in (data, mdp.open_records(folder, workers=cluster))
        )
        assert parts.to_json() == whole.to_json()

    # An error on a worker arrives as it is.
    (folder / "005.parquet").write_bytes(b"")
    design = mdp.make_design(QUERY, PRIVACY)
    with pytest.raises(mdp.DataError, match=r"005\.parquet is empty"):
        design.release(mdp.open_records(folder, workers=cluster), ledger=ledger, dataset="clinic")
    with pytest.raises(mdp.DataError, match=r"005\.parquet is empty"):
        mdp.release_table(mdp.open_records(folder, workers=cluster), BOUNDS, PRIVACY, ledger=ledger, dataset="clinic")
    assert charges(ledger) == []
    with pytest.raises(mdp.ParameterError, match="threads for data in the memory of this process"):
        answer(QUERY, mdp.open_records(iter([data]), workers=cluster))


def kill(cluster, count):
    """Kills workers, each its own process by its id, when the first part is done."""
    pids = list(cluster.run(os.getpid).values())[:count]

    def progress(rows):
        while pids:
            os.kill(pids.pop(), signal.SIGKILL)

    return progress


def test_workers_that_are_killed_change_nothing(tmp_path, data, cluster, ledger, monkeypatch):
    folder = write_parts(tmp_path / "set", data, parts=24)
    expected = answer(QUERY, data)
    design = mdp.make_design(QUERY, PRIVACY)
    seen = []
    evaluate = mdp.Moments.evaluate
    monkeypatch.setattr(mdp.Moments, "evaluate", lambda *a, **k: seen.append(evaluate(*a, **k)) or seen[-1])
    records = mdp.open_records(folder, workers=cluster, progress=kill(cluster, 2))
    design.release(records, ledger=ledger, dataset="clinic")
    assert len(seen) == 1
    assert np.array_equal(seen[0], expected)
    assert charges(ledger) == [True]


def test_a_killed_worker_leaves_a_noisy_data_set_as_it_is(tmp_path, data, cluster, ledger):
    folder = write_parts(tmp_path / "set", data, parts=24)
    first = release_dataset(DESIGNS["axes"], folder, tmp_path / "threads", **seeded())
    records = mdp.open_records(folder, workers=cluster, progress=kill(cluster, 1))
    made = release_dataset(DESIGNS["axes"], records, tmp_path / "out", **seeded())
    assert np.array_equal(read(made.path), read(first.path))
    assert not [path for path in made.path.iterdir() if path.name.startswith(".")]


def test_a_scheduler_that_does_not_answer_is_named(tmp_path, data, monkeypatch):
    from matrixdp.records import clusters as module

    monkeypatch.setattr(module, "_TIMEOUT", 0.5)
    folder = write_parts(tmp_path / "set", data, parts=1)
    with pytest.raises(mdp.EngineError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        answer(QUERY, mdp.open_records(folder, workers="tcp://127.0.0.1:9"))


def test_a_worker_with_another_version_is_refused():
    with pytest.raises(mdp.EngineError, match=r"workers must run matrixdp .* got 0\.0 instead"):
        list(unwrap_results([PartResult(None, 0, "0.0")], progress=None))


def test_a_scheduler_without_workers_is_named(tmp_path, data, monkeypatch):
    from distributed import LocalCluster

    from matrixdp.records import clusters as module

    monkeypatch.setattr(module, "_TIMEOUT", 0.5)
    folder = write_parts(tmp_path / "set", data, parts=1)
    with (
        LocalCluster(n_workers=0, dashboard_address=None, silence_logs=50) as made,
        pytest.raises(mdp.EngineError, match=r"has no workers\. Start some: dask worker tcp://"),
    ):
        answer(QUERY, mdp.open_records(folder, workers=made.scheduler_address))
