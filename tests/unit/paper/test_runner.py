"""A run that was interrupted goes on where it stopped, and gives what an uninterrupted one gives."""

import io

import pytest

from matrixdp.paper import trials as runner
from matrixdp.paper.trials import Progress, load_result, part_cells, run_cell, run_cells, store_result

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


def test_progress_says_how_far_and_how_long():
    out = io.StringIO()
    progress = Progress(2, out)
    progress._spoken -= 10.0
    progress.step("first")
    progress.step("second")
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("[1/2] first, about ")
    assert lines[1] == "[2/2] second"


def test_progress_rewrites_its_line_on_a_terminal():
    out = io.StringIO()
    out.isatty = lambda: True
    progress = Progress(2, out)
    progress.step("stored", stored=True)
    progress.step("fresh")
    assert out.getvalue() == "\r\x1b[K[1/2] stored\r\x1b[K[2/2] fresh\n"
