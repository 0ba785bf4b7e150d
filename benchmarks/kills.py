"""``python -m benchmarks.kills``: releases that a signal stops at a random time, and what a repetition of each finds.

Each process runs ``matrixdp release`` with a request id of its own. After the signal the same command is run again: a
charge whose release it cannot give is lost. Only SIGKILL, which no process can defer, may lose one, if it comes between
the charge and the moment when the ledger has the release.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from contextlib import chdir
from pathlib import Path

import numpy as np

import matrixdp as mdp
import matrixdp.cli.release_text  # imported once, not by each process
import matrixdp.report.release_folder
from benchmarks.sizes import size
from matrixdp.cli.main import run

KILLS = size(100, 3)
SIGNALS = ("SIGHUP", "SIGINT", "SIGTERM", "SIGQUIT", "SIGKILL")
TOTAL = mdp.Privacy(epsilon=1000, delta=1e-6)


def prepare() -> None:
    """A table, its schema and a ledger in the current folder."""
    rows = [f"{a:.1f},{b:.1f}" for a, b in np.random.default_rng(0).uniform(0, 100, (500, 2))]
    Path("clinic.csv").write_text("\n".join(["age,weight", *rows]) + "\n")
    Path("schema.toml").write_text("".join(f"[columns.{name}]\nlower = 0\nupper = 100\n" for name in ("age", "weight")))
    with mdp.Ledger.create("ledger.db") as ledger:
        ledger.register("clinic", TOTAL, neighbours="replace")


def start(request: str) -> int:
    """Start a process that releases the table under a request id."""
    child = os.fork()
    if child:
        return child
    code = 5
    try:
        for name in SIGNALS[:-1]:  # a job in the background ignores some
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        silent = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(silent, number)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        words = ["release", "clinic.csv", "--schema", "schema.toml", "--query", "moments", "--epsilon", "1"]
        words += ["--delta", "1e-6", "--ledger", "ledger.db", "--dataset", "clinic", "--out", request]
        code = run([*words, "--request", request, "--wait", "0", "--force"])
    finally:
        os._exit(code)


def wait_for(child: int) -> int:
    """The exit code of a process."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill(name: str, longest: float, chance: random.Random) -> dict[str, int]:
    """How many processes were stopped, how many charges were made before that, and how many were lost."""
    found = {"stopped": 0, "charged": 0, "lost": 0}
    for number in range(KILLS):
        request = f"{name}-{number}"
        child = start(request)
        time.sleep(chance.uniform(0.0, longest))
        os.kill(child, getattr(signal, name))
        found["stopped"] += wait_for(child) != 0
        found["charged"] += bool(find_charges(request))
        wait_for(start(request))
        charges = find_charges(request)
        assert len(charges) == 1, f"{request} was charged {len(charges)} times"
        found["lost"] += not (charges[0] and Path(request, "report.html").exists())
    return found


def find_charges(request: str) -> list[bool]:
    """Of each charge of a request, whether the ledger has its release."""
    with mdp.Ledger.open("ledger.db") as ledger:
        return [charge.released for charge in ledger.history("clinic") if charge.request == request]


def main() -> None:
    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        prepare()
        times = []
        for number in range(3):
            begin = time.monotonic()
            assert wait_for(start(f"whole-{number}")) == 0
            times.append(time.monotonic() - begin)
        for name in SIGNALS:
            found = kill(name, max(times), chance)
            print(
                f"{name}: {KILLS} kills,", ", ".join(f"{number} {what}" for what, number in found.items()), flush=True
            )


if __name__ == "__main__":
    main()
