"""What reading claims: columns by their names, the same code everywhere, and nothing of the data in messages."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.domain import bounds as bounds_module
from matrixdp.records import formats
from matrixdp.records.parts import InMemoryPart, run_part, unwrap_results

PRIVACY = mdp.Privacy(1, 1e-6)
BOX = mdp.Bounds([0, -3], [1, 4], names=["a", "b"])


def count(number, blocks):
    return sum(len(block) for block in blocks)


def test_results_of_other_code_are_refused():
    """A worker with another version may round or sum otherwise; its result is not merged."""
    part = run_part(count, 0, InMemoryPart("here", (np.zeros((3, 2)),)))
    assert list(unwrap_results([part], None)) == [3]
    with pytest.raises(mdp.EngineError, match="must run matrixdp"):
        list(unwrap_results([replace(part, code="0.0.9 (000000000000)")], None))


def test_two_columns_of_one_name_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.zeros((3, 3)), columns=["a", "b", "a"])
    arrow = pa.Table.from_arrays([pa.array([0.0] * 3)] * 3, names=["a", "b", "a"])
    design = mdp.make_design(mdp.Moments(BOX, 3), PRIVACY)
    for table in (frame, arrow):
        with pytest.raises(mdp.DataError, match="'a' occurs twice"):
            design.release(table)


def test_columns_are_found_by_name():
    """Columns in another order, and others between them, give the same answer."""
    rng = np.random.default_rng(0)
    a, b, c = rng.uniform(0, 1, 5), rng.uniform(-3, 4, 5), rng.uniform(-9, 9, 5)
    expected = mdp.Moments(BOX, 5).evaluate(np.column_stack([a, b]), clip=True, missing="error")
    for names in (["a", "b", "c"], ["b", "a", "c"], ["c", "b", "a"], ["b", "c", "a"]):
        values = {"a": a, "b": b, "c": c}
        table = pa.table({name: values[name] for name in names})
        for source in (table, table.to_pandas(), table.to_batches()[0]):
            assert np.array_equal(mdp.Moments(BOX, 5).evaluate(source, clip=True, missing="error"), expected)


def test_no_warning_depends_on_records(recwarn):
    """Whatever a task does with the records of a part, its warnings would show something of them."""

    def overflow(number, blocks):
        return [float((block * 10).sum()) for block in blocks]

    for value in (1.0, 1e308):
        run_part(overflow, 0, InMemoryPart("here", (np.full((2, 2), value),)))
    assert not recwarn.list


def test_errors_state_no_private_number():
    """Lengths that differ are an error, the same for any number of records."""
    pytest.importorskip("sklearn")
    from matrixdp.estimators import PrivateLinearRegression

    texts = set()
    for rows in (7, 8, 31):
        model = PrivateLinearRegression(
            bounds=(-1, 1), target_bounds=(-1, 1), epsilon=1.0, neighbours="add-remove", records=20
        )
        with pytest.raises(mdp.DataError, match="the same number of records") as caught:
            model.fit(np.zeros((rows, 2)), np.zeros(rows + 1))
        texts.add(str(caught.value))
    assert len(texts) == 1


def test_every_row_group_is_read_once(tmp_path, monkeypatch):
    """However the row groups of a file are divided among parts, each record is in one of them."""
    numbers = np.arange(500.0)
    pq.write_table(pa.table({"a": numbers / 500, "b": np.zeros(500)}), tmp_path / "data.parquet", row_group_size=37)
    for rows in (1, 40, 100, 10**6):
        monkeypatch.setattr(formats, "_SPLIT_ROWS", rows)
        records = mdp.open_records(tmp_path / "data.parquet").select(["a", "b"])
        read = [batch.column("a").to_numpy() for part in records.map(lambda _, blocks: list(blocks)) for batch in part]
        assert np.array_equal(np.sort(np.concatenate(read)), numbers / 500)


@pytest.mark.parametrize("error", [pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowIOError])
def test_errors_of_arrow_are_not_shown(error):
    """Its messages quote the value that could not be converted."""

    def fail(number, blocks):
        raise error("could not convert '77.7654321'")

    with pytest.raises(mdp.DataError) as caught:
        run_part(fail, 0, InMemoryPart("clinic.csv", ()))
    assert "77.7654321" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_lengths_of_records_do_not_depend_on_their_layout(monkeypatch):
    """A length decides how a record is clipped to a ball, so its last bit must be the same for rows and columns."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((400, 30))
    bounds = mdp.Bounds([-3.0] * 30, [3.0] * 30, radius=5.0)
    seen = []
    factor = bounds_module._ball_factor
    monkeypatch.setattr(
        bounds_module,
        "_ball_factor",
        lambda bounds, lengths: (seen.append(lengths.tobytes()), factor(bounds, lengths))[1],
    )
    table = pa.table({f"x{i}": column for i, column in enumerate(data.T)})
    answers = [mdp.Moments(bounds, 400).evaluate(source, clip=True, missing="error") for source in (data, table)]
    assert np.array_equal(*answers)
    assert len(seen) == 2
    assert seen[0] == seen[1]
