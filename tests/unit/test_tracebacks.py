"""A user's mistake is shown with the user's own lines and the message; debuggers see every call."""

import os
import subprocess
import sys
import types

import pytest

import matrixdp as mdp
from matrixdp.errors import leave_out_package

SCRIPT = """
import sys
import matrixdp as mdp

def shown(kind, error, traceback):
    previous(kind, error, traceback)
    depth, call = 0, error.__traceback__
    while call is not None:
        depth, call = depth + 1, call.tb_next
    print(f"{depth} calls", file=sys.stderr)

def mine():
    mdp.make_design(mdp.Moments(mdp.Bounds([0], [1]), records=10), mdp.Privacy(-1, 1e-6))

mdp.Privacy
previous, sys.excepthook = sys.excepthook, shown
mine()
"""


def run(tmp_path, **environment):
    path = tmp_path / "mine.py"
    path.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 1
    return done.stderr


def test_an_error_is_shown_with_the_lines_of_the_caller(tmp_path):
    short = run(tmp_path)
    assert short.count("  File ") == 2
    assert short.count("mine.py") == 2
    assert "ParameterError: epsilon must be greater than 0" in short
    full = run(tmp_path, MATRIXDP_TRACEBACK="full")
    assert full.count("  File ") > 4
    assert short.splitlines()[-1] == full.splitlines()[-1]  # what debuggers find afterwards


def caught():
    try:
        mdp.Privacy(-1, 1e-6)
    except mdp.ParameterError as error:
        return error


def depth(traceback):
    return 0 if traceback is None else 1 + depth(traceback.tb_next)


def test_code_that_catches_an_error_gets_every_call():
    error = caught()
    assert depth(error.__traceback__) > depth(leave_out_package(error.__traceback__)) == 1


def test_calls_of_the_package_alone_are_kept():
    inside = caught().__traceback__.tb_next
    assert leave_out_package(inside) is inside
    assert leave_out_package(None) is None


@pytest.mark.parametrize(("setting", "calls"), [("", 1), ("full", 5)])
def test_notebooks_show_the_same(monkeypatch, setting, calls):
    formatter = types.SimpleNamespace(structured_traceback=lambda kind, error, traceback, tb_offset: depth(traceback))
    shell = types.SimpleNamespace(InteractiveTB=formatter)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setenv("MATRIXDP_TRACEBACK", setting)
    assert caught()._render_traceback_() == calls
