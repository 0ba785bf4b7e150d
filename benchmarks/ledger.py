"""The ledger: durable charges a second, races, kills, rollbacks, and the time to open and show a long one."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.sizes import size
from matrixdp.errors import BudgetExceededError
from matrixdp.gdp import share_mu
from matrixdp.ledger import Gaussian, Head, Ledger
from matrixdp.ledger.accounting import payment_options
from matrixdp.ledger.entries import LAST_ENTRY, next_entry, request_content
from matrixdp.ledger.sqlite import connect
from matrixdp.privacy import Privacy

TOTAL = Privacy(1, 1e-6)
CHARGES = size(500, 2)
ENTRIES = size(1_000_000, 40)
PROCESSES, ATTEMPTS, ROOM = size((8, 2_000, 5_000), (2, 4, 5))
KILLS = size(100, 1)
EVENT = Gaussian(1e-5)
DESCRIPTION = {"query": "second moment", "shape": [16, 16], "calibration": "exact", "shares": [0.0625] * 16}


def run() -> list[dict[str, Any]]:
    from benchmarks import ledger_postgres, ledger_rollbacks

    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        files = [*_charges(folder), *race(folder / "race.db"), *kills(folder / "kills.db"), *_opening(folder)]
    return [*files, *ledger_rollbacks.run(), *ledger_postgres.run()]


def _charges(folder: Path) -> list[dict[str, Any]]:
    with create(folder / "charges.db") as ledger:
        _charge(ledger)
        with ledger._store.reading() as journal:
            row = journal.row("state", "clinic", LAST_ENTRY)
        assert row is not None
        (folder / "bare.db").touch()
        with contextlib.closing(connect(folder / "bare.db", 30.0)) as bare:
            bare.execute("CREATE TABLE entries (entry INTEGER PRIMARY KEY, body TEXT)")
            rates: tuple[list[float], list[float]] = ([], [])
            for _ in range(size(5, 1)):
                rates[0].append(CHARGES / measure(lambda: _charge(ledger), CHARGES))
                rates[1].append(CHARGES / measure(lambda: _commit(bare, row.body), CHARGES))
    ours, peer = map(statistics.median, rates)
    note = "same size of row, same synchronous setting, same disk; at least 300 wanted"
    return [make_row("durable charges a second, beside bare SQLite commits", ours, peer, note)]


def race(path: Path | str) -> list[dict[str, Any]]:
    """Processes that charge at the same time, for more than the total allows."""
    create(path).close()
    event, start = Gaussian(share_mu(TOTAL.mu, 1 / ROOM)), time.perf_counter()
    children = []
    for _ in range(PROCESSES):
        reader, writer = os.pipe()
        if os.fork() == 0:
            with Ledger.open(path, timeout=600) as ledger:
                os.write(writer, str(sum(_is_granted(ledger, event) for _ in range(ATTEMPTS))).encode())
            os._exit(0)
        os.close(writer)
        children.append(reader)
    granted = 0
    for reader in children:
        with os.fdopen(reader) as stream:
            granted += int(stream.read())
    seconds = time.perf_counter() - start
    with Ledger.open(path) as ledger:
        ledger.verify()
        recorded = ledger.summary("clinic").counts.charges
    what = f"charges granted to {PROCESSES} processes x {ATTEMPTS:,} attempts, room for {ROOM:,}"
    note = f"{recorded:,} are recorded; {seconds:.0f} s, {granted / seconds:.0f} charges a second"
    return [make_row(what, granted, ROOM, note)]


def kills(path: Path | str) -> list[dict[str, Any]]:
    """Processes that are killed while they charge; others go on."""
    chance = random.Random(5)
    create(path).close()
    room = 3_000
    event = Gaussian(share_mu(TOTAL.mu, 1 / room))
    reader, writer = os.pipe()
    children = [_start(path, event, writer) for _ in range(4)]
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.05, 0.15))
        victim = children.pop(chance.randrange(len(children)))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        children.append(_start(path, event, writer))
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        acknowledged = {int(line) for line in stream.read().split("\n") if line}
    with Ledger.open(path) as ledger:
        ledger.verify()
        recorded = {charge.entry for charge in ledger.history()}
    note = f"{len(recorded):,} charges recorded, {len(acknowledged):,} acknowledged, room for {room:,}"
    return [make_row(f"acknowledged charges lost in {KILLS} kills", len(acknowledged - recorded), 0, note)]


def _start(path: Path | str, event: Gaussian, writer: int) -> int:
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BudgetExceededError), Ledger.open(path, timeout=600) as ledger:
            while True:
                receipt = ledger.charge("clinic", event, neighbours="replace", description={})
                os.write(writer, f"{receipt.entry}\n".encode())
        while True:
            signal.pause()
    return child


def _opening(folder: Path) -> list[dict[str, Any]]:
    path, short = folder / "long.db", folder / "short.db"
    with create(short) as ledger:
        _charge(ledger)
    with create(path) as ledger:
        _fill(ledger, ENTRIES * 9 // 10)
        anchor = ledger.head
        _fill(ledger, ENTRIES)
        entries = ledger.head.entry
    ours, peer = [], []
    for _ in range(size(11, 1)):
        ours.append(1e3 * measure(lambda: _show(path)))
        peer.append(1e3 * measure(lambda: _show(short)))
    with Ledger.open(path) as ledger:
        audit = measure(lambda: ledger.verify(anchor, resume=True))
    return [
        make_row(
            f"ms to open and show a ledger of {entries:,} entries, beside one of 3",
            statistics.median(ours),
            statistics.median(peer),
            f"slowest of 11: {max(ours):.1f} ms; under 50 wanted",
        ),
        {
            "what": f"s to verify the last {entries - anchor.entry:,} of {entries:,} entries from an anchor",
            "ours": round(audit, 2),
            "peer": "",
            "ratio": "",
            "note": "no peer",
        },
    ]


def create(path: Path | str) -> Ledger:
    """A new ledger with one data set."""
    ledger = Ledger.create(path)
    ledger.register("clinic", TOTAL, neighbours="replace")
    return ledger


def _fill(ledger: Ledger, entries: int) -> None:
    """Write what `Ledger.charge` and `Ledger.complete` would, in one transaction: in minutes instead of hours."""
    request, options = request_content(EVENT, DESCRIPTION), payment_options(EVENT)
    author = ledger.author.to_json()
    with ledger._store.writing(ledger.author) as journal:
        balance, counters, head = journal.balance("clinic"), journal.counters("clinic"), journal.head()
        charges, releases = counters.charges, counters.releases
        common = {**author, "dataset": "clinic", "time": "2031-02-07T00:00:00.000+00:00"}
        insert = "INSERT INTO entries (entry, kind, dataset, charge, body, hash) VALUES (?, ?, 'clinic', ?, ?, ?)"

        def add(kind: str, charge: int | None, content: dict[str, Any]) -> Head:
            body, new = next_entry({**common, **content, "kind": kind}, head)
            journal.execute(insert, (new.entry, kind, charge, body, new.hash))
            return new

        while head.entry < entries:
            cost, balance = balance.pay(options, "")
            charges, releases = charges + 1, releases + 1
            sums = {"cost": cost.to_json(), **balance.list_sums("charge"), "charges": charges}
            head = add("charge", None, {**request, "neighbours": "replace", "unit": "record", **sums})
            head = add("release", head.entry, {"charge": head.entry, "releases": releases})


def _show(path: Path) -> None:
    """What ``matrixdp ledger show`` reads."""
    with Ledger.open(path) as ledger:
        for registration in ledger.datasets():
            ledger.remaining(registration.dataset)
            ledger.summary(registration.dataset)
        _ = ledger.head


def _is_granted(ledger: Ledger, event: Gaussian) -> bool:
    try:
        ledger.charge("clinic", event, neighbours="replace", description={})
    except BudgetExceededError:
        return False
    return True


def _charge(ledger: Ledger) -> None:
    ledger.charge("clinic", EVENT, neighbours="replace", description=DESCRIPTION)


def _commit(connection: sqlite3.Connection, body: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO entries (body) VALUES (?)", (body,))
    connection.execute("COMMIT")


def measure(action: Callable[[], object], times: int = 1) -> float:
    """Seconds that an action takes, so many times."""
    start = time.perf_counter()
    for _ in range(times):
        action()
    return time.perf_counter() - start


def make_row(what: str, ours: float, peer: float, note: str) -> dict[str, Any]:
    """One row of the table."""
    return {
        "what": what,
        "ours": round(ours, 2),
        "peer": round(peer, 2),
        "ratio": round(ours / peer, 2) if peer else "",
        "note": note,
    }


if __name__ == "__main__":
    for found in run():
        print("{what}: {ours} (peer {peer}, ratio {ratio}); {note}".format(**found))
