"""Tasks that tests run in a process of their own: races, kills, forks, a full disk, a read-only file.

Run as ``python ledger_worker.py TASK PATH [NUMBER ...]``; prints one JSON document.
It has one thread, so that it may fork.
"""

from __future__ import annotations

import json
import os
import random
import resource
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matrixdp.errors import BudgetExceededError, LedgerError
from matrixdp.gdp import share_mu
from matrixdp.ledger import Gaussian, Ledger
from matrixdp.privacy import Privacy

TOTAL = Privacy(epsilon=1, delta=1e-6)


def run_worker(task: str, path: Path | str, *numbers: float, command: Sequence[str] = ()) -> Any:
    """Run one task in a new process, perhaps by another command, and return its result."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, sys.executable, __file__, task, str(path), *map(str, numbers)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def race(path: Path | str, processes: float, attempts: float, admitted: float) -> list[int]:
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


def kill(path: Path | str, moments: float, seed: float) -> dict[str, list[int]]:
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


def kill_some(path: Path, kills: float, room: float, seed: float) -> list[int]:
    """Charges that were acknowledged by four processes that charge at once, of which one after another is killed."""
    chance, event = random.Random(int(seed)), Gaussian(share_mu(TOTAL.mu, 1 / room))
    reader, writer = os.pipe()
    children = [_charge_forever(path, event, writer) for _ in range(4)]
    seen = ""
    for _ in range(int(kills)):
        seen += _read_lines(reader, 1)  # every child writes at least one
        victim = children.pop(chance.randrange(len(children)))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        children.append(_charge_forever(path, event, writer))
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    os.close(writer)
    return [int(line) for line in (seen + _read_all(reader)).split()]


def _charge_forever(path: Path, event: Gaussian, writer: int) -> int:
    child = os.fork()
    if child == 0:
        ledger = Ledger.open(path)
        while True:
            try:
                receipt = ledger.charge("clinic", event, neighbours="replace", description={})
            except BudgetExceededError:
                os.write(writer, b"\n")  # so that the parent goes on
                signal.pause()
            os.write(writer, f"{receipt.entry}\n".encode())
    return child


def _read_lines(reader: int, count: int) -> str:
    """What a child wrote, up to the end of its line number `count` at least."""
    text = ""
    while text.count("\n") < count:
        text += os.read(reader, 4096).decode()
    return text


def _release_forever(path: Path | str, writer: int, moment: int) -> None:
    ledger, count = Ledger.open(path), 0
    while True:
        receipt = ledger.charge(
            "clinic", Gaussian(1e-4), neighbours="replace", description={}, request=f"{moment}.{count}"
        )
        os.write(writer, f"charge {receipt.entry}\n".encode())
        ledger.complete(receipt, json.dumps({"of": receipt.entry}))
        os.write(writer, f"release {receipt.entry}\n".encode())
        count += 1


def bind(path: Path, room: float) -> dict[str, Any]:
    """Charge under two names of a file: a single-file bind mount, as of a container, or a hard link without the rights.

    The mount needs a namespace of its own: ``unshare --mount``.
    """
    folder = path.with_name("container")
    folder.mkdir()
    other = folder / path.name
    other.touch()
    mounted = subprocess.run(["mount", "--bind", path, other], check=False, capture_output=True).returncode == 0
    if not mounted:
        other.unlink()
        os.link(path, other)
    ledgers = [Ledger.open(path), Ledger.open(other)]
    event, granted, errors = Gaussian(share_mu(TOTAL.mu, 1 / room)), [0, 0], ["", ""]
    for step in range(3 * int(room)):
        side = step % 2
        try:
            granted[side] += _granted(ledgers[side], event)
        except LedgerError as error:
            errors[side] = str(error)
    heads = [ledger.verify().entry for ledger in ledgers]
    return {"mounted": mounted, "granted": granted, "errors": errors, "heads": heads}


def meddle(path: Path, processes: float, attempts: float, room: float, seed: float) -> int:
    """The charges that processes were granted while their files were removed, renamed, linked, copied and replaced."""
    event, readers = Gaussian(share_mu(TOTAL.mu, 1 / room)), []
    for number in range(int(processes)):
        reader, writer = os.pipe()
        if os.fork() == 0:
            granted = _charge_somewhere(path, event, int(attempts), random.Random(number))
            os.write(writer, str(granted).encode())
            os._exit(0)
        os.close(writer)
        readers.append(reader)
    chance, original = random.Random(int(seed)), path.with_name("original.db")
    os.link(path, original)
    for _ in range(200):
        _meddle_once(path, original, chance)
    original.replace(path)
    return sum(int(_read_all(reader)) for reader in readers)


def _charge_somewhere(path: Path, event: Gaussian, attempts: int, chance: random.Random) -> int:
    """The charges that were granted, under one name or another, with handles that are sometimes opened again."""
    granted, handles = 0, {}
    for _ in range(attempts):
        name = path.with_name(chance.choice(["clinic.db", "clinic.db", "link.db", "copy.db", "away.db"]))
        try:
            if name not in handles or chance.random() < 0.1:
                handles[name] = Ledger.open(name)
            granted += _granted(handles[name], event)
        except LedgerError:
            handles.pop(name, None)
    return granted


def _meddle_once(path: Path, original: Path, chance: random.Random) -> None:
    """One trick; `original` is another name of the ledger, so that it cannot be lost."""
    away, link, copied = (path.with_name(name) for name in ("away.db", "link.db", "copy.db"))
    match chance.randrange(7):
        case 0:
            path.rename(away)
            away.rename(path)
        case 1:
            link.unlink(missing_ok=True)
            os.link(path, link)
        case 2 | 3:
            for suffix in ("-journal", "-wal", "-shm"):
                path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
        case 4:
            shutil.copyfile(original, copied)
        case 5:
            shutil.copyfile(original, away)
            away.rename(path)  # a copy in its place
            os.link(original, away)
            away.rename(path)
        case 6:
            path.unlink()
            os.link(original, path)


def interrupt(path: Path) -> None:
    """Die in the middle of a transaction whose first pages are already in the file: its journal is left behind."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 2")
    connection.execute("BEGIN IMMEDIATE")
    ((last,),) = connection.execute("SELECT entry FROM head")
    for entry in range(last + 1, last + 20):
        values = (entry, "x" * 10_000)
        connection.execute(
            "INSERT INTO entries (entry, kind, dataset, body, hash) VALUES (?, 'charge', 'clinic', ?, '')", values
        )
    print("null", flush=True)
    os._exit(0)


def persist(path: Path | str) -> None:
    """Charge until standard input ends, whatever happens to the server; each acknowledged entry is printed at once."""
    ledger = Ledger.open(path)
    while not select.select([sys.stdin], [], [], 0)[0]:
        try:
            receipt = ledger.charge("clinic", Gaussian(1e-4), neighbours="replace", description={})
        except LedgerError:
            continue
        print(receipt.entry, flush=True)


def fork(path: Path | str) -> dict[str, int]:
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


def readonly(path: Path) -> dict[str, Any]:
    """What somebody who may not write can do with a ledger: read it, but neither charge it nor create one beside it."""
    for file in path.parent.iterdir():
        file.chmod(0o444)
    path.parent.chmod(0o555)
    if os.geteuid() == 0:
        os.seteuid(65534)
    return _use_without_writing(path)


def mounted(path: Path) -> dict[str, Any]:
    """The same on a read-only mount, in a namespace of its own: ``unshare --mount``."""
    subprocess.run(["mount", "--bind", path.parent, path.parent], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", path.parent], check=True)
    return _use_without_writing(path)


def _use_without_writing(path: Path) -> dict[str, Any]:
    before = sorted(file.name for file in path.parent.iterdir())
    answer: dict[str, Any] = {
        "read": _error(lambda: Ledger.open(path).remaining("clinic")),
        "charge": _error(lambda: _granted(Ledger.open(path), Gaussian(0.01))),
        "create": _error(lambda: Ledger.create(path.with_name("new.db"))),
    }
    if not answer["read"]:
        with Ledger.open(path) as ledger:
            answer["left"] = ledger.remaining("clinic").mu
            answer["entries"] = ledger.verify().entry
            counted = ledger.summary("clinic").counts.charges
            answer["charges"] = [counted, len(ledger.history()), sum(not one.released for one in ledger.history())]
    answer["unchanged"] = sorted(file.name for file in path.parent.iterdir()) == before
    return answer


def full(path: Path | str) -> dict[str, Any]:
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
        "bind": bind,
        "meddle": meddle,
        "interrupt": interrupt,
        "persist": persist,
        "fork": fork,
        "kill_some": kill_some,
        "readonly": readonly,
        "mounted": mounted,
        "full": full,
    }
    place = sys.argv[2] if sys.argv[2].startswith("postgresql:") else Path(sys.argv[2])
    print(json.dumps(tasks[sys.argv[1]](place, *map(float, sys.argv[3:]))))
