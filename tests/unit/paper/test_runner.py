"""A run that was interrupted goes on where it stopped, and gives what an uninterrupted one gives."""

import io

import pytest

from matrixdp.paper import trials as runner
from matrixdp.paper.trials import load_result, part_cells, run_cell, run_cells, store_result

pytestmark = pytest.mark.usefixtures("stand_ins")


@pytest.fixture
def asked():
    return part_cells("exp2", trials=2, seed=3)[:6]


def test_results_come_back_as_they_were_stored(asked, tmp_path):
    result = run_cell(asked[2])
    store_result(result, tmp_path)
    found = load_result(asked[2], tmp_path)
    assert found.values.tolist() == result.values.tolist()
    assert found.epsilon == result.epsilon
    assert load_result(asked[3], tmp_path) is None


def test_only_what_is_missing_is_run(asked, tmp_path, monkeypatch):
    ran = []

    def stopping(cell):
        if len(ran) == 3:
            raise KeyboardInterrupt
        ran.append(cell)
        return run_cell(cell)

    monkeypatch.setattr(runner, "run_cell", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_cells(asked, tmp_path, processes=1, out=io.StringIO())
    assert len(list(tmp_path.iterdir())) == 3
    monkeypatch.setattr(runner, "run_cell", lambda cell: ran.append(cell) or run_cell(cell))
    resumed = run_cells(asked, tmp_path, processes=1, out=io.StringIO())
    assert ran == asked  # each once
    whole = run_cells(asked, tmp_path / "other", processes=1, out=io.StringIO())
    assert [one.values.tolist() for one in resumed] == [one.values.tolist() for one in whole]


def test_two_processes_give_what_one_gives(asked, tmp_path):
    apart = run_cells(asked[:3], tmp_path / "two", processes=2, out=io.StringIO())
    alone = run_cells(asked[:3], tmp_path / "one", processes=1, out=io.StringIO())
    assert [one.values.tolist() for one in apart] == [one.values.tolist() for one in alone]


def test_a_spoiled_file_counts_for_nothing(asked, tmp_path):
    store_result(run_cell(asked[0]), tmp_path)
    path = tmp_path / asked[0].path
    path.write_text(path.read_text()[:40])
    assert load_result(asked[0], tmp_path) is None
    path.write_text("[]")
    assert load_result(asked[0], tmp_path) is None


def test_other_trials_seeds_and_data_are_other_results(asked):
    paths = {asked[0].path}
    paths |= {part_cells("exp2", trials=trials, seed=seed)[0].path for trials, seed in ((3, 3), (2, 4))}
    assert len(paths) == 3


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_says_how_far_on_a_terminal_only(asked, tmp_path):
    terminal, file = Terminal(), io.StringIO()
    for folder, out in (("one", terminal), ("two", file)):
        run_cells(asked[:2], tmp_path / folder, processes=1, out=out)
    assert "2/2" in terminal.getvalue()
    assert f"exp2: {asked[1].defined.label}" in terminal.getvalue()
    assert "/" not in file.getvalue()


def test_progress_counts_only_what_is_run(asked, tmp_path):
    terminal = Terminal()
    store_result(run_cell(asked[0]), tmp_path)
    run_cells(asked[:2], tmp_path, processes=1, out=terminal)
    assert "1/1" in terminal.getvalue()
