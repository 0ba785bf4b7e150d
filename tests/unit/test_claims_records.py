"""What reading claims: columns by their names, the same code everywhere, and nothing of the data in messages."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import matrixdp as mdp
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
        with pytest.raises(mdp.DataError) as caught:
            model.fit(np.zeros((rows, 2)), np.zeros(rows + 1))
        texts.add(str(caught.value))
    assert len(texts) == 1
