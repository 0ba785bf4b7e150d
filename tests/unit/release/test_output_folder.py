"""The output folder: claimed by one process, complete or absent, and restored after a kill at any step."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import matrixdp as mdp
from matrixdp.release import output_folder
from matrixdp.release.output_folder import OutputFolder
from nightly import times

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(mdp.__file__).parents[1])}


def hidden(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_second_claim_is_refused_until_the_first_ends(tmp_path):
    with OutputFolder(tmp_path / "out") as first:
        for force in (False, True):
            with (
                pytest.raises(mdp.ParameterError, match="another process is writing"),
                OutputFolder(tmp_path / "sub" / ".." / "out", force=force),
            ):
                pytest.fail("claimed twice")
        (first.path / "a").write_text("a")
        first.finish()
    with pytest.raises(mdp.ParameterError, match="contains files"), OutputFolder(tmp_path / "out"):
        pytest.fail("a finished folder was claimed")
    assert (tmp_path / "out" / "a").read_text() == "a"
    assert hidden(tmp_path) == []


def test_an_error_removes_everything(tmp_path):
    with pytest.raises(FileNotFoundError), OutputFolder(tmp_path / "out") as folder:
        (folder.path / "missing" / "a").write_text("a")
    assert list(tmp_path.iterdir()) == []


def test_without_force_nothing_is_ever_replaced(tmp_path):
    with OutputFolder(tmp_path / "out") as folder:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "theirs").write_text("theirs")  # from a program that knows no claims
        with pytest.raises(mdp.ParameterError, match="contains files"):
            folder.finish()
    assert (tmp_path / "out" / "theirs").read_text() == "theirs"
    assert hidden(tmp_path) == []


def test_a_rename_that_fails_puts_the_old_folder_back(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").touch()
    rename = os.rename

    def refuse(source, target):
        if Path(source).name == "new":
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(output_folder, "_exchange", lambda *paths: False)
    monkeypatch.setattr(output_folder, "find_foreign_file", lambda _: None)
    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(OSError, match="error"), OutputFolder(tmp_path / "out", force=True) as folder:
        folder.finish()
    assert (tmp_path / "out" / "old").exists()
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_only_the_owner_reads_drafts_and_the_result_follows_the_umask(tmp_path, mask):
    previous = os.umask(mask)
    try:
        with OutputFolder(tmp_path / "out") as folder:
            assert mode(folder.workspace) == 0o700
            (folder.path / "a").write_text("a")
            folder.finish()
    finally:
        os.umask(previous)
    assert mode(tmp_path / "out") == 0o777 & ~mask
    assert mode(tmp_path / "out" / "a") == 0o666 & ~mask


def test_files_and_folders_are_synchronised_before_they_are_moved(tmp_path, monkeypatch):
    steps = []
    sync, rename = os.fsync, os.rename
    monkeypatch.setattr(
        os, "fsync", lambda handle: steps.append(os.readlink(f"/proc/self/fd/{handle}")) or sync(handle)
    )
    monkeypatch.setattr(os, "rename", lambda *paths: steps.append("rename") or rename(*paths))
    with OutputFolder(tmp_path / "out") as folder:
        (folder.path / "deep").mkdir()
        (folder.path / "deep" / "a").write_text("a")
        folder.finish()
    found = [Path(step).name for step in steps]
    assert found == ["a", "deep", "new", "rename", tmp_path.name]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to change an owner")
def test_a_workspace_of_somebody_else_is_not_used(tmp_path):
    (tmp_path / ".out.matrixdp").mkdir()
    os.chown(tmp_path / ".out.matrixdp", 12345, 12345)
    with pytest.raises(mdp.ParameterError, match="another process"), OutputFolder(tmp_path / "out"):
        pytest.fail("claimed")
    assert hidden(tmp_path) == [".out.matrixdp"]


@pytest.mark.parametrize("where", ["link", "loop", "file"])
def test_what_is_not_a_folder_is_refused(tmp_path, where):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    with pytest.raises(mdp.ParameterError, match="must be a folder"), OutputFolder(tmp_path / where, force=True):
        pytest.fail("claimed")


def test_a_name_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(mdp.ParameterError, match="File name too long"), OutputFolder(tmp_path / ("x" * 300)):
        pytest.fail("claimed")


# Forks a child for each step at which it can be killed, until one is not killed. Prints what each leaves.
KILLED = """
import json, os, shutil, sys
from pathlib import Path
from matrixdp.release import output_folder
from matrixdp.release.output_folder import OutputFolder
base, atomic = Path(sys.argv[1]), sys.argv[2] == "atomic"
if not atomic:
    output_folder._exchange = lambda *paths: False
output_folder.find_foreign_file = lambda place: None

def write(place):
    with OutputFolder(place, force=True) as folder:
        for name in "ab":
            (folder.path / name).write_text("new")
        folder.finish()

def counted(function, kill_at, count=[0]):
    def call(*a, **k):
        count[0] += 1
        if count[0] == kill_at:
            os._exit(9)
        return function(*a, **k)
    return call

def look(place):
    return {path.name: path.read_text() for path in place.iterdir()} if place.exists() else None

left, k = [], 0
while True:
    k += 1
    place = base / str(k) / "out"
    place.mkdir(parents=True)
    for name in "abc":
        (place / name).write_text("old")
    child = os.fork()
    if not child:
        for name in ("mkdir", "rename", "fsync", "open", "close", "unlink", "rmdir", "scandir"):
            setattr(os, name, counted(getattr(os, name), k))
        output_folder._exchange = counted(output_folder._exchange, k)
        write(place)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    at_once = look(place)
    try:
        with OutputFolder(place):
            pass
    except ValueError:
        pass
    names = sorted(path.name for path in place.parent.iterdir())
    left.append([code, at_once, look(place), names])
    if code == 0:
        break
print(json.dumps(left))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("method", ["atomic", "two steps"])
def test_a_kill_at_any_step_leaves_the_old_or_the_new(tmp_path, method):
    command = [sys.executable, "-c", KILLED, str(tmp_path), method]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    left = json.loads(done.stdout)
    old, new = dict.fromkeys("abc", "old"), dict.fromkeys("ab", "new")
    assert len(left) > 15
    assert [code for code, *_ in left] == [9] * (len(left) - 1) + [0]
    for _, at_once, recovered, names in left:
        assert recovered in (old, new)
        assert names == ["out"]
        if method == "atomic":
            assert at_once == recovered
    assert left[0][2] == old
    assert left[-1][2] == new
    if method != "atomic":
        assert any(at_once is None for _, at_once, _, _ in left)  # the attack reaches the moment between the steps


CLAIM = """
import sys
from matrixdp.release.output_folder import OutputFolder
folder = OutputFolder(sys.argv[1]).__enter__()
(folder.path / "a").write_text("draft")
print("claimed", flush=True)
sys.stdin.read()
"""


def test_a_living_process_keeps_its_claim_and_a_killed_one_loses_it(tmp_path):
    place = tmp_path / "out"
    command = [sys.executable, "-c", CLAIM, str(place)]
    with subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "claimed\n"
        with pytest.raises(mdp.ParameterError, match="another process"), OutputFolder(place):
            pytest.fail("claimed twice")
        other.kill()
        other.wait()
    assert hidden(tmp_path) == [".out.matrixdp"]
    with OutputFolder(place) as folder:
        assert list(folder.path.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


def test_without_locks_a_claim_is_refused_while_its_folder_exists(tmp_path, monkeypatch):
    monkeypatch.setattr(output_folder, "_HAS_LOCKS", False)
    with OutputFolder(tmp_path / "out") as folder:
        with pytest.raises(mdp.ParameterError, match=r"remove .*\.out\.matrixdp"), OutputFolder(tmp_path / "out"):
            pytest.fail("claimed twice")
        folder.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


RACE = """
import sys
import numpy as np
import matrixdp as mdp
design = mdp.make_design(mdp.Identity(mdp.Bounds([0], [1]), 1000), mdp.Privacy(0.5, 1e-7))
print("ready", flush=True)
sys.stdin.readline()
try:
    blocks = mdp.records.Blocks(lambda: iter([np.full((1000, 1), 0.5)]))
    mdp.release_dataset(design, blocks, "out", ledger="ledger.db", dataset="d")
except mdp.ParameterError as error:
    print(error)
    sys.exit(2)
"""
RACE_COMMAND = """
import sys
from matrixdp.cli.main import run
import matrixdp.cli.release_text
import matrixdp.report.release_folder
print("ready", flush=True)
sys.stdin.readline()
sys.exit(run(["release", "data.csv", "--schema", "schema.toml", "--query", "moments", "--epsilon", "0.5", "--delta",
              "1e-7", "--ledger", "ledger.db", "--dataset", "d", "--out", "out"]))
"""


@pytest.mark.parametrize("program", [RACE, RACE_COMMAND], ids=["release_dataset", "command"])
def test_of_several_that_start_together_one_is_charged(tmp_path, program):
    with mdp.Ledger.create(tmp_path / "ledger.db") as ledger:
        ledger.register("d", mdp.Privacy(8, 1e-5), neighbours="replace")
    (tmp_path / "schema.toml").write_text("[columns.a]\nlower = 0\nupper = 1\n")
    (tmp_path / "data.csv").write_text("a\n" + "0.5\n" * 1000)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-c", program]
    count = times(2, 6)
    several = [subprocess.Popen(command, env=ENVIRONMENT, cwd=tmp_path, text=True, **pipes) for _ in range(count)]
    for process in several:
        assert process.stdout.readline() == "ready\n"
    for process in several:
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=120) for process in several]
    assert sorted(process.returncode for process in several) == [0, *[2] * (count - 1)], outputs
    with mdp.Ledger.open(tmp_path / "ledger.db") as ledger:
        assert [charge.released for charge in ledger.history("d")] == [True]
    assert hidden(tmp_path) == []


DIE = """
import os
import matrixdp as mdp
kind, step = mdp.Ledger, {step!r}
original = getattr(kind, step)
def die(*a, **k):
    if step == "charge":
        original(*a, **k)
    os._exit(9)
setattr(kind, step, die)
"""


@pytest.mark.parametrize("step", ["charge", "complete"])
def test_a_kill_between_charge_and_release_shows_as_unfinished(tmp_path, step):
    with mdp.Ledger.create(tmp_path / "ledger.db") as ledger:
        ledger.register("d", mdp.Privacy(8, 1e-5), neighbours="replace")
    for program, code, states in [
        (DIE.format(step=step) + RACE, 9, [False]),
        (RACE if step == "charge" else RACE.replace('"d")', '"d", force=True)'), 0, [False, True]),
    ]:
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=ENVIRONMENT, cwd=tmp_path, input="go\n", text=True, timeout=60, check=False)
        assert done.returncode == code
        with mdp.Ledger.open(tmp_path / "ledger.db") as ledger:
            assert [charge.released for charge in ledger.history("d")] == states
        # The files are complete before the ledger says so.
        assert (tmp_path / "out" / "_release.json").exists() == (step == "complete" or code == 0)
    assert hidden(tmp_path) == []
