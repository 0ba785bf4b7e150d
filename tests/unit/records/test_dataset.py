"""Noisy data sets in parts: the same bits for every engine and partition, and all files or none."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.mechanisms import dataset_rows as passes
from matrixdp.mechanisms import mechanism as rows
from matrixdp.mechanisms.mechanism import noisy_parts
from matrixdp.noise import BlockKey
from matrixdp.release import dataset
from matrixdp.release.dataset import DatasetRelease, release_dataset
from unit.records.conftest import BOUNDS, NAMES, PRIVACY, RECORDS, UNNAMED, make_table, write_parts

QUERY = mdp.Identity(BOUNDS, RECORDS)
TURN = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
DESIGNS = {
    "axes": mdp.make_design(QUERY, PRIVACY),
    "shares": mdp.make_design(QUERY, PRIVACY, allocation=mdp.allocations.shares([0.6, 0.3, 0.1])),
    "directions": mdp.make_design(QUERY, PRIVACY, directions=TURN, allocation=mdp.allocations.shares([0.6, 0.3, 0.1])),
    "ball": mdp.make_design(mdp.Identity(mdp.Bounds([-1, -2, 0], [1, 3, 1], NAMES, radius=1.0), RECORDS), PRIVACY),
}


@pytest.fixture
def folder(tmp_path, data):
    return write_parts(tmp_path / "set", data, parts=5)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(rows, "BLOCK", 300)  # 100 records, so that parts begin and end within blocks


def read(place):
    table = pa.dataset.dataset(place).to_table()
    return np.column_stack([table.column(name).to_numpy() for name in table.column_names])


def seeded():
    return {"stream": mdp.Stream(seed=5), "simulation": True}


def simulate(design, source, out, **options):
    released = release_dataset(design, source, out, **seeded(), **options)
    return read(released.path)


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_no_partition_and_no_number_of_workers_changes_a_bit(tmp_path, data, folder, design):
    first = simulate(design, folder, tmp_path / "first", workers=1)
    assert first.shape == (RECORDS, 3)
    other = write_parts(tmp_path / "other", data, parts=11)
    assert np.array_equal(simulate(design, other, tmp_path / "second", workers=3), first)
    blocks = mdp.records.Blocks(lambda: (make_table(data[i : i + 77]) for i in range(0, RECORDS, 77)))
    assert np.array_equal(simulate(design, blocks, tmp_path / "third"), first)


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_the_noise_is_that_of_the_design(tmp_path, data, folder, design):
    noisy = simulate(design, folder, tmp_path / "out")
    inside = design.query.evaluate(data, clip=True, missing="error") + design.query.bounds.midpoint
    errors = (noisy - inside) @ np.linalg.inv(np.linalg.cholesky(design.colcov.matrix())).T
    errors /= np.sqrt(design.rowcov.variances[0])
    # 9,000 standard normals: bounds that fail with a probability below 1e-9.
    assert np.abs(errors.mean(axis=0)).max() < 6.5 / np.sqrt(RECORDS)
    assert np.abs(errors.T @ errors / RECORDS - np.eye(3)).max() < 10 / np.sqrt(RECORDS)


def test_two_releases_differ_and_none_repeats_a_block(tmp_path, folder, data):
    one, two = (read(release_dataset(DESIGNS["axes"], folder, tmp_path / name).path) for name in "ab")
    inside = np.clip(data, BOUNDS.lower, BOUNDS.upper)
    assert not np.isin(one, two).any()
    noise = (one - inside)[: RECORDS // 100 * 100].reshape(-1, 300)
    assert len(np.unique(noise.round(9), axis=0)) == len(noise)


def test_the_folder_says_what_it_holds(tmp_path, folder):
    released = release_dataset(DESIGNS["shares"], folder, tmp_path / "out")
    found = DatasetRelease.open(tmp_path / "out")
    assert found.files == released.files == tuple(sorted(found.files))
    assert (found.mu, found.privacy, found.simulation) == (released.mu, PRIVACY, False)
    assert found.std == pytest.approx(DESIGNS["shares"].std[0])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted([*found.files, "_release.json"])
    schema = pq.read_schema(tmp_path / "out" / found.files[0])
    assert schema.names == list(NAMES)


def test_other_libraries_read_it(tmp_path, folder):
    import pandas as pd

    released = release_dataset(DESIGNS["axes"], folder, tmp_path / "out")
    assert pd.read_parquet(released.path).shape == (RECORDS, 3)
    frame = pytest.importorskip("dask.dataframe").read_parquet(released.path)
    assert len(frame) == RECORDS


@pytest.mark.parametrize("spoil", ["manifest", "file", "format"])
def test_an_incomplete_folder_is_refused(tmp_path, folder, spoil):
    released = release_dataset(DESIGNS["axes"], folder, tmp_path / "out")
    manifest = released.path / "_release.json"
    if spoil == "manifest":
        manifest.unlink()
    elif spoil == "file":
        (released.path / released.files[1]).unlink()
    else:
        manifest.write_text(manifest.read_text().replace("data set 1", "data set 9"))
    with pytest.raises(mdp.ParameterError, match=r"complete data set|altered"):
        DatasetRelease.open(released.path)


def test_it_is_charged_before_the_first_random_bit_and_released_at_the_end(tmp_path, folder, ledger, monkeypatch):
    seen = []
    words = mdp.Stream.words

    def watched(self, size, out=None):
        with mdp.Ledger.open(ledger) as opened:
            seen.append([charge.released for charge in opened.history("clinic")])
        return words(self, size, out=out)

    monkeypatch.setattr(mdp.Stream, "words", watched)
    release_dataset(DESIGNS["axes"], folder, tmp_path / "out", ledger=ledger, dataset="clinic")
    assert seen
    assert all(state == [False] for state in seen)
    with mdp.Ledger.open(ledger) as opened:
        (charge,) = opened.history("clinic")
        assert charge.released
        assert charge.event.mu == DESIGNS["axes"].distance


def charges(ledger):
    with mdp.Ledger.open(ledger) as opened:
        return [charge.released for charge in opened.history("clinic")]


def nothing_left(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir() if path.name.startswith((".out", "out"))) == []


def test_a_fault_that_is_found_in_time_costs_nothing(tmp_path, folder, ledger):
    table = pq.read_table(folder / "003.parquet")
    pq.write_table(table.set_column(1, "a", pa.nulls(len(table), pa.float32())), folder / "003.parquet")
    with pytest.raises(mdp.DataError, match=r"003\.parquet.*'a' has an empty"):
        release_dataset(DESIGNS["axes"], folder, tmp_path / "out", ledger=ledger, dataset="clinic")
    assert charges(ledger) == []
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("change", ["a value", "a row", "a file"])
def test_records_that_are_altered_in_between_are_not_released(tmp_path, folder, ledger, data, monkeypatch, change):
    charge = mdp.Ledger.charge

    def then_alter(self, *a, **k):
        receipt = charge(self, *a, **k)
        path = folder / "002.parquet"
        if change == "a file":
            path.unlink()
            return receipt
        piece = pq.read_table(path)
        values = piece.column("a").to_numpy().copy()
        values[9] += 0.5
        altered = piece.slice(1) if change == "a row" else piece.set_column(1, "a", pa.array(values))
        pq.write_table(altered, path, row_group_size=97)
        return receipt

    monkeypatch.setattr(mdp.Ledger, "charge", then_alter)
    with pytest.raises(mdp.DataError, match=r"002\.parquet.*(altered|does not exist)|altered"):
        release_dataset(DESIGNS["axes"], folder, tmp_path / "out", ledger=ledger, dataset="clinic")
    assert charges(ledger) == [False]
    assert nothing_left(tmp_path)


def test_errors_of_the_second_reading_show_no_record(tmp_path, folder, ledger, monkeypatch):
    compare = passes.WriteTask.compare

    def then_fail(self, blocks, expected):
        yield next(compare(self, blocks, expected))
        raise OSError("invalid value 'secret' in row 7")

    monkeypatch.setattr(passes.WriteTask, "compare", then_fail)
    with pytest.raises(mdp.DataError) as caught:
        release_dataset(DESIGNS["axes"], folder, tmp_path / "out", ledger=ledger, dataset="clinic")
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
    assert charges(ledger) == [False]
    assert nothing_left(tmp_path)


LIMITED = """
import resource, signal, sys
import matrixdp as mdp
folder, out, ledger = sys.argv[1:]
bounds = mdp.Bounds([-1, -2, 0], [1, 3, 1], names=["a", "b", "c"])
design = mdp.make_design(mdp.Identity(bounds, 3000), mdp.Privacy(1, 1e-6))
charge = mdp.Ledger.charge
def then_full(self, *a, **k):
    receipt = charge(self, *a, **k)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, resource.RLIM_INFINITY))
    return receipt
mdp.Ledger.charge = then_full
try:
    mdp.release_dataset(design, folder, out, ledger=ledger, dataset="clinic")
except mdp.ParameterError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files as Linux does")
def test_a_disk_that_is_full_leaves_a_charge_and_no_folder(tmp_path, folder, ledger):
    environment = {**os.environ, "PYTHONPATH": str(Path(mdp.__file__).parents[1])}
    command = [sys.executable, "-c", LIMITED, str(folder), str(tmp_path / "out"), str(ledger)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert "cannot be written" in done.stdout, done.stderr
    assert "Nothing was released" in done.stdout
    assert charges(ledger) == [False]
    assert nothing_left(tmp_path)


def test_the_manifest_is_written_last(tmp_path, folder, ledger, monkeypatch):
    monkeypatch.setattr(dataset, "WriteTask", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        release_dataset(DESIGNS["axes"], folder, tmp_path / "out", ledger=ledger, dataset="clinic")
    assert charges(ledger) == [False]
    assert nothing_left(tmp_path)


def test_what_cannot_be_released_in_parts_is_refused(tmp_path, folder, data):
    with pytest.raises(mdp.ParameterError, match="identity query"):
        release_dataset(mdp.make_design(mdp.Moments(BOUNDS, RECORDS), PRIVACY), folder, tmp_path / "out")
    with pytest.raises(mdp.ParameterError, match="readable more than once"):
        release_dataset(DESIGNS["axes"], iter([data]), tmp_path / "out")
    with pytest.raises(mdp.ParameterError, match="number of rows"):
        release_dataset(mdp.make_design(mdp.Identity(BOUNDS, 2999), PRIVACY), folder, tmp_path / "out")
    with pytest.raises(mdp.StreamError):
        release_dataset(DESIGNS["axes"], folder, tmp_path / "out", stream=mdp.Stream(seed=1))
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").write_text("mine")
    with pytest.raises(mdp.ParameterError, match="new or empty folder"):
        release_dataset(DESIGNS["axes"], folder, tmp_path / "taken")
    assert nothing_left(tmp_path)


def test_columns_without_names_get_numbers(tmp_path, data):
    design = mdp.make_design(mdp.Identity(UNNAMED, RECORDS), PRIVACY)
    released = release_dataset(design, mdp.records.Blocks(lambda: iter([data])), tmp_path / "out")
    assert pq.read_schema(released.path / released.files[0]).names == ["x0", "x1", "x2"]


def test_a_key_can_be_sent_and_shows_nothing():
    key = BlockKey(mdp.Stream())
    again = pickle.loads(pickle.dumps(key))
    assert np.array_equal(key.stream(3).words(8), again.stream(3).words(8))
    assert not np.array_equal(key.stream(3).words(8), key.stream(4).words(8))
    assert repr(key) == "BlockKey(secret)"
    assert not np.array_equal(BlockKey(mdp.Stream(seed=1)).stream(0).words(4), mdp.Stream(seed=1).child(0).words(4))


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_rows_that_are_asked_for_again_have_the_same_bits(data, design):
    key = BlockKey(mdp.Stream(seed=9))
    (whole,) = noisy_parts(design, key, 0, [data[:500]])
    for first, last in [(0, 1), (99, 101), (123, 437), (499, 500)]:
        (part,) = noisy_parts(design, key, first, [data[first:last]])
        assert np.array_equal(part, whole[first:last])


def test_a_folder_s_name_must_not_order_the_rows(tmp_path, data, ledger):
    for i, piece in enumerate(np.array_split(data, 2)):
        write_parts(tmp_path / "set" / f"ill={i}", piece, parts=1)
    with pytest.raises(mdp.DataError, match="key=value sort them by the key"):
        release_dataset(DESIGNS["axes"], tmp_path / "set", tmp_path / "out", ledger=ledger, dataset="clinic")
    assert charges(ledger) == []
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("out", ["set", "set/noisy", "."])
def test_the_data_s_own_folder_is_never_written_to(tmp_path, folder, out):
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(mdp.ParameterError, match="out must be outside of the data"):
        release_dataset(DESIGNS["axes"], folder, tmp_path / out, force=True)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_what_a_killed_task_leaves_is_never_put_in_place(tmp_path, folder, monkeypatch):
    write = passes.WriteTask.write

    def leaving(self, draft, chunks):
        write(self, draft, chunks)
        draft.with_name("leftover").write_bytes(draft.read_bytes())

    monkeypatch.setattr(passes.WriteTask, "write", leaving)
    released = release_dataset(DESIGNS["axes"], folder, tmp_path / "out")
    assert sorted(path.name for path in released.path.iterdir()) == sorted([*released.files, "_release.json"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "set"]


def test_one_stream_gives_two_data_sets_other_noise(tmp_path, folder):
    stream = mdp.Stream(seed=1)
    made = [
        read(release_dataset(DESIGNS["axes"], folder, tmp_path / name, stream=stream, simulation=True).path)
        for name in "ab"
    ]
    assert not np.isin(*made).any()


def test_workers_are_named_once(folder, tmp_path):
    with pytest.raises(mdp.ParameterError, match="workers must be given to the first"):
        release_dataset(DESIGNS["axes"], mdp.open_records(folder), tmp_path / "out", workers=2)
