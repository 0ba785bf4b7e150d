"""What a release claims of its noise, and what a request id stands for."""

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.mechanisms import dataset_rows, mechanism
from matrixdp.noise import BlockKey
from matrixdp.release.charging import describe_design

release = mdp.Design.release

PRIVACY = mdp.Privacy(1, 1e-6)
BOX = mdp.Bounds([0, -3], [1, 4])
ROTATION = [[0.6, -0.8], [0.8, 0.6]]
RECORDS = 40


@pytest.fixture
def small_blocks(monkeypatch):
    """Noise is drawn for five records of two columns at a time."""
    monkeypatch.setattr(mechanism, "BLOCK", 10)


def designs():
    query = mdp.Identity(BOX, RECORDS)
    return [mdp.make_design(query, PRIVACY), mdp.make_design(query, PRIVACY, directions=ROTATION)]


def assert_independent(matrix):
    """For equal records, noise that is used again shows as two equal entries."""
    for column in matrix.T:
        assert np.unique(column).size == len(column)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("design", designs(), ids=["entrywise", "rotated"])
class TestNoiseIsNeverUsedAgain:
    """The difference of two records with the same noise would be the difference of their private values."""

    DATA = np.full((RECORDS, 2), 0.5)

    def test_in_a_matrix(self, design):
        assert_independent(release(design, self.DATA).matrix)

    def test_in_a_data_set(self, design, tmp_path, monkeypatch):
        monkeypatch.setattr(dataset_rows, "_CHUNK", 6)  # three records
        blocks = [self.DATA[:7], self.DATA[7:12], self.DATA[12:]]
        mdp.release_dataset(design, mdp.records.Blocks(lambda: blocks), tmp_path / "out", workers=1)
        table = pq.read_table(tmp_path / "out").to_pandas()
        assert_independent(table.to_numpy())

    def test_in_files_of_several_parts(self, design, tmp_path, monkeypatch):
        monkeypatch.setattr(dataset_rows, "_CHUNK", 6)  # three records
        (tmp_path / "data").mkdir()
        for i in range(4):
            table = pa.table({"a": self.DATA[10 * i : 10 * i + 10, 0], "b": self.DATA[10 * i : 10 * i + 10, 1]})
            feather.write_feather(table, tmp_path / "data" / f"{i}.feather", chunksize=3)  # batches of a part
        named = mdp.Identity(mdp.Bounds(BOX.lower, BOX.upper, names=["a", "b"]), RECORDS)
        made = mdp.make_design(named, PRIVACY, directions=design.directions)
        mdp.release_dataset(made, str(tmp_path / "data"), tmp_path / "out", workers=2)
        assert_independent(pq.read_table(tmp_path / "out").to_pandas().to_numpy())

    def test_in_two_releases(self, design):
        first, second = (release(design, self.DATA).matrix for _ in range(2))
        assert not (first == second).any()

    def test_in_two_data_sets(self, design, tmp_path):
        tables = []
        for name in ("one", "two"):
            mdp.release_dataset(design, mdp.records.Blocks(lambda: [self.DATA]), tmp_path / name)
            tables.append(pq.read_table(tmp_path / name).to_pandas().to_numpy())
        assert not (tables[0] == tables[1]).any()

    def test_whatever_the_order_of_the_blocks(self, design):
        key, places = BlockKey(mdp.Stream(seed=1)), [(20, 10), (0, 5), (33, 7), (5, 15), (30, 3)]

        def add_noise(first, count):
            (noisy,) = mechanism.noisy_parts(design, key, first, [self.DATA[first : first + count]])
            return noisy

        parts = {first: add_noise(first, count) for first, count in places}
        assert_independent(np.vstack(list(parts.values())))
        assert np.array_equal(add_noise(0, 5), parts[0])


def test_noise_of_two_entries_is_not_shared_within_a_block():
    design = mdp.make_design(mdp.Moments(BOX, 3), PRIVACY)
    noisy = release(design, np.full((3, 2), 0.5)).matrix
    assert np.unique(noisy[np.tril_indices(3)]).size == 6


def described_alike():
    """Pairs of designs whose ledger entries differ in nothing but the hash of their inputs."""
    unit, double = mdp.Bounds([0, 0], [1, 1]), mdp.Bounds([0, 0], [2, 2])  # the same noise in other units
    names = mdp.Bounds([0, 0], [1, 1], names=["a", "b"])
    weights = mdp.allocations.optimal([1.0, 2.0]), mdp.allocations.optimal([2.0, 1.0])
    query = mdp.Moments(unit, 30)
    return {
        "bounds": (mdp.make_design(query, PRIVACY), mdp.make_design(mdp.Moments(double, 30), PRIVACY)),
        "names": (mdp.make_design(query, PRIVACY), mdp.make_design(mdp.Moments(names, 30), PRIVACY)),
        "weights": tuple(mdp.make_design(mdp.Identity(unit, 30), PRIVACY, allocation=rule) for rule in weights),
        "directions": tuple(
            mdp.make_design(mdp.Identity(unit, 30), PRIVACY, allocation=mdp.allocations.isotropic(), directions=turn)
            for turn in (np.eye(2), np.eye(2)[:, ::-1])
        ),
    }


@pytest.mark.parametrize("case", described_alike())
def test_a_request_id_stands_for_one_design(case, tmp_path):
    """Another design under the same id is refused; the stored answer of the first one is not returned for it."""
    first, second = described_alike()[case]
    data = np.random.default_rng(0).random((30, 2))
    with mdp.Ledger.create(tmp_path / "l.db") as ledger:
        ledger.register("d", mdp.Privacy(9, 1e-6), neighbours="replace")
        stored = first.release(data, ledger=ledger, dataset="d", request="r")
        again = first.release(data, ledger=ledger, dataset="d", request="r")
        assert np.array_equal(again.matrix, stored.matrix)
        table = {"a": data[:, 0], "b": data[:, 1]}
        assert describe_design(first) != describe_design(second)  # for ledgers that kept no options
        with pytest.raises(mdp.LedgerError, match=r"with other options: .*use another request id"):
            second.release(pytest.importorskip("pandas").DataFrame(table), ledger=ledger, dataset="d", request="r")
        assert len(ledger.history("d")) == 1


def test_a_warning_that_depends_on_records_is_never_shown(recwarn):
    """Records that overflow on the way to the grid, or in a function of the user's own, give no warning."""
    huge = np.array([[1e308, -1e308], [0.5, 0.5]])
    own = mdp.Query(
        (1, 2), mdp.sensitivity.FrobeniusBall(2.0), 1.0, lambda data: np.clip(10 * data, -1, 1).mean(axis=0)[None]
    )
    for query in (mdp.Identity(BOX, 2), mdp.Moments(BOX, 2), mdp.GramMatrix(BOX, 2, [[0.0, 0.0]]), own):
        mdp.make_design(query, PRIVACY).release(huge)
    assert not recwarn.list
