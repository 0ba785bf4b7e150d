"""Tasks that tests run in a process of their own: races, kills, forks, a full disk, a read-only file.

Run as ``python ledger_worker.py TASK PATH [NUMBER ...]``; prints one JSON document.
It has one thread, so that it may fork.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matrixdp.errors import BudgetExceededError, LedgerError
from matrixdp.ledger import Gaussian, Ledger
from matrixdp.privacy import Privacy, share_mu

TOTAL = Privacy(epsilon=1, delta=1e-6)


def run_worker(task: str, path: Path | str, *numbers: float) -> Any:
    """Run one task in a new process and return its result."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, __file__, task, str(path), *map(str, numbers)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def race(path: str, processes: float, attempts: float, admitted: float) -> list[int]:
    """The number of charges that each process was granted, when the total allows `admitted` of them."""
    ledger = Ledger.open(path)
    event = Gaussian(share_mu(TOTAL.mu, 1 / admitted))
    pipes = []
    for _ in range(int(processes)):
        reader, writer = os.pipe()
        if os.fork() == 0:
            granted = sum(_granted(ledger, event) for _ in range(int(attempts)))
            os.write(writer, str(granted).encode())
            os._exit(0)
        os.close(writer)
        pipes.append(reader)
    return [int(_read_all(reader)) for reader in pipes]


def _granted(ledger: Ledger, event: Gaussian) -> bool:
    try:
        ledger.charge("clinic", event, neighbours="replace", description={})
    except BudgetExceededError:
        return False
    return True


def kill(path: str, moments: float, seed: float) -> dict[str, list[int]]:
    """Charges and releases that were acknowledged by child processes before they were killed at random moments."""
    chance = random.Random(int(seed))
    acknowledged: dict[str, list[int]] = {"charge": [], "release": []}
    for moment in range(int(moments)):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            _release_forever(path, writer, moment)
        os.close(writer)
        seen = _read_lines(reader, chance.randrange(8))  # some way into the loop, however slow the machine is
        time.sleep(chance.uniform(0.0, 0.002))  # any moment will do: no assertion depends on where the kill falls
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for line in (seen + _read_all(reader)).split("\n")[:-1]:
            kind, entry = line.split()
            acknowledged[kind].append(int(entry))
    return acknowledged


def _read_lines(reader: int, count: int) -> str:
    """What a child wrote, up to the end of its line number `count` at least."""
    text = ""
    while text.count("\n") < count:
        text += os.read(reader, 4096).decode()
    return text


def _release_forever(path: str, writer: int, moment: int) -> None:
    ledger, count = Ledger.open(path), 0
    while True:
        receipt = ledger.charge(
            "clinic", Gaussian(1e-4), neighbours="replace", description={}, request=f"{moment}.{count}"
        )
        os.write(writer, f"charge {receipt.entry}\n".encode())
        ledger.complete(receipt, json.dumps({"of": receipt.entry}))
        os.write(writer, f"release {receipt.entry}\n".encode())
        count += 1


def fork(path: str) -> dict[str, int]:
    """Parent and child use one ledger that was open at the fork; the parent closes it first."""
    ledger = Ledger.open(path)
    _granted(ledger, Gaussian(1e-3))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        _granted(ledger, Gaussian(1e-3))
        os.read(reader, 1)  # the parent has closed its handle, the only other one
        _granted(ledger, Gaussian(1e-3))
        os._exit(0)
    for _ in range(5):
        _granted(ledger, Gaussian(1e-3))
    ledger.close()
    os.write(writer, b".")
    _, status = os.waitpid(child, 0)
    return {"status": status, "charges": len(Ledger.open(path).history())}


def readonly(name: str) -> list[str]:
    """The errors of a charge to, and of a new ledger beside, a file that this user may not write."""
    path = Path(name)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    if os.geteuid() == 0:
        os.seteuid(65534)
    return [
        _error(lambda: _granted(Ledger.open(path), Gaussian(0.01))),
        _error(lambda: Ledger.create(path.with_name("new.db"))),
    ]


def full(path: str) -> dict[str, Any]:
    """Charge until the disk is full, then after space was freed; the numbers of charges granted and recorded."""
    ledger = Ledger.open(path)
    _granted(ledger, Gaussian(1e-4))
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, most))
    granted, error = 1, ""
    while not error:
        error = _error(lambda: _granted(ledger, Gaussian(1e-4)))
        granted += not error
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    on_file = len(ledger.history())
    again = _granted(ledger, Gaussian(1e-4))
    ledger.verify()
    return {"granted": granted, "on_file": on_file, "error": error, "again": again}


def _error(action: Callable[[], object]) -> str:
    try:
        action()
    except LedgerError as error:
        return str(error)
    return ""


def _read_all(reader: int) -> str:
    with os.fdopen(reader) as stream:
        return stream.read()


if __name__ == "__main__":
    tasks: dict[str, Callable[..., Any]] = {
        "race": race,
        "kill": kill,
        "fork": fork,
        "readonly": readonly,
        "full": full,
    }
    print(json.dumps(tasks[sys.argv[1]](sys.argv[2], *map(float, sys.argv[3:]))))
