"""Old copies of a ledger's file, put in its place by seven means on two file systems: how many are charged again."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.ledger import TOTAL, create, make_row
from benchmarks.sizes import size
from matrixdp.errors import LedgerError
from matrixdp.gdp import share_mu
from matrixdp.ledger import Gaussian, Ledger

ROLLBACKS = size(200, 7)
EVENT = Gaussian(share_mu(TOTAL.mu, 1 / 1_000))
Rollback = Callable[[Path, Path, random.Random], Callable[[], object]]
"""Saves the file at the first path, with the second folder on another disk; what it returns puts the old copy back."""


def run() -> list[dict[str, Any]]:
    """Rows for the file system of the current folder and for that of /dev/shm."""
    folders = [folder for folder in (Path.cwd(), Path("/dev/shm")) if os.access(folder, os.W_OK)]
    return [_measure(folder, folders[-1 - number]) for number, folder in enumerate(folders)]


def _measure(folder: Path, elsewhere: Path) -> dict[str, Any]:
    chance, accepted, tried = random.Random(7), Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(dir=folder) as here, tempfile.TemporaryDirectory(dir=elsewhere) as there:
        for number in range(ROLLBACKS):
            name = list(MEANS)[number % len(MEANS)]
            own, other = Path(here, str(number)), Path(there, str(number))
            own.mkdir()
            other.mkdir()
            tried[name] += 1
            accepted[name] += _is_charged_again(MEANS[name], own / "clinic.db", other, chance)
            shutil.rmtree(own)
            shutil.rmtree(other)
        system = _run("stat", "--file-system", "--format=%T", here)
    means = ", ".join(f"{name} {accepted[name]} of {number}" for name, number in tried.items())
    return make_row(f"rollbacks accepted of {ROLLBACKS} on {system}", accepted.total(), 0, means)


def _is_charged_again(means: Rollback, path: Path, elsewhere: Path, chance: random.Random) -> bool:
    """Whether a ledger accepts charges after its file was replaced by an older state."""
    with create(path) as ledger:
        for _ in range(chance.randrange(3)):
            _charge(ledger)
        if chance.random() < 0.5:
            ledger.close()
        put_back = means(path, elsewhere, chance)
        for _ in range(chance.randint(1, 3)):
            _charge(ledger)
        if chance.random() < 0.5:
            ledger.close()
        put_back()
        try:
            if chance.random() < 0.3:
                Ledger.moved(path).close()
            with Ledger.open(path) as opened:
                _charge(chance.choice((ledger, opened)))
        except LedgerError:
            return False
    return True


def _charge(ledger: Ledger) -> None:
    ledger.charge("clinic", EVENT, neighbours="replace", description={})


def _remove_and_copy(path: Path, _: Path, chance: random.Random) -> Callable[[], object]:
    old = path.with_name("old.db")
    _run("cp", *chance.choice(([], ["-p"], ["-a"])), path, old)
    return lambda: (_run("rm", path), _run("cp", *chance.choice(([], ["-p"], ["-a"])), old, path))


def _unpack(path: Path, elsewhere: Path, chance: random.Random) -> Callable[[], object]:
    archive, attributes = elsewhere / "old.tar", chance.choice(([], ["--xattrs", "--xattrs-include=*"]))
    _run("tar", "-C", path.parent, *attributes, "-cf", archive, path.name)
    return lambda: (
        chance.random() < 0.5 and _run("rm", path),
        _run("tar", "-C", path.parent, *attributes, "-xf", archive),
    )


def _check_out(path: Path, *_: object) -> Callable[[], object]:
    git = ("git", "-C", path.parent, "-c", "user.name=x", "-c", "user.email=x@y", "-c", "init.defaultBranch=main")
    _run(*git, "init", "-q")
    _run(*git, "add", path.name)
    _run(*git, "commit", "-qm", "old")
    return lambda: _run(*git, "checkout", "--", path.name)


def _restore_backup(path: Path, elsewhere: Path, chance: random.Random) -> Callable[[], object]:
    backup = chance.choice((path.parent, elsewhere)) / "backup.db"
    with Ledger.open(path) as ledger:
        ledger.backup(backup)
    return lambda: (_run("rm", path), _run("cp", *chance.choice(([], ["-a"])), backup, path))


def _rename(path: Path, _: Path, chance: random.Random) -> Callable[[], object]:
    old = path.with_name("old.db")
    _run("cp", *chance.choice(([], ["-a"])), path, old)
    return lambda: (chance.random() < 0.5 and _run("rm", path), _run("mv", old, path))


def _copy_there_and_back(path: Path, elsewhere: Path, chance: random.Random) -> Callable[[], object]:
    away = elsewhere / chance.choice((path.name, "old.db"))
    _run("cp", *chance.choice(([], ["-a"])), path, away)
    return lambda: (chance.random() < 0.5 and _run("rm", path), _run("cp", *chance.choice(([], ["-a"])), away, path))


def _copy_with_attributes(path: Path, _: Path, chance: random.Random) -> Callable[[], object]:
    """In place, as ``cp -a`` and ``rsync -aX --inplace``; or to a draft that is renamed, as ``rsync -aX``."""
    old, draft = path.with_name("old.db"), path.with_name(".clinic.db.part")
    _run("cp", "--preserve=all", path, old)
    if chance.random() < 0.5:
        return lambda: _run("cp", "--preserve=all", old, path)
    return lambda: (_run("cp", "--preserve=all", old, draft), draft.rename(path))


MEANS: dict[str, Rollback] = {
    "rm and cp": _remove_and_copy,
    "tar x": _unpack,
    "git checkout": _check_out,
    "backup, rm and cp": _restore_backup,
    "mv": _rename,
    "another disk and back": _copy_there_and_back,
    "cp --preserve": _copy_with_attributes,
}


def _run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    for found in run():
        print("{what}: {ours}; {note}".format(**found))
