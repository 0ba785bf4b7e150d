"""Durable charges compared with bare SQLite commits, and the time to read the remaining budget of a long ledger."""

from __future__ import annotations

import contextlib
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matrixdp.ledger import Gaussian, Ledger
from matrixdp.ledger.accounting import payment_options
from matrixdp.ledger.journal import amount_to_json
from matrixdp.ledger.request import ChargeRequest
from matrixdp.ledger.sqlite.store import connect
from matrixdp.privacy import Privacy

CHARGES = 500
ENTRIES = 100_000
EVENT = Gaussian(1e-5)
DESCRIPTION = {"query": "second moment", "shape": [16, 16], "calibration": "exact", "shares": [0.0625] * 16}


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        return [*_charges(folder), *_opening(folder)]


def _charges(folder: Path) -> list[dict[str, Any]]:
    with Ledger.create(folder / "charges.db") as ledger:
        ledger.register("clinic", Privacy(1, 1e-6), neighbours="replace")
        _charge(ledger)
        with ledger._store.reading() as journal:
            row = journal.row("state", "clinic")
        (folder / "bare.db").touch()
        with contextlib.closing(connect(folder / "bare.db", 30.0)) as bare:
            bare.execute("CREATE TABLE entries (entry INTEGER PRIMARY KEY, body TEXT)")
            rates: tuple[list[float], list[float]] = ([], [])
            for _ in range(5):
                rates[0].append(CHARGES / _seconds(lambda: _charge(ledger), CHARGES))
                rates[1].append(CHARGES / _seconds(lambda: _commit(bare, row.body), CHARGES))
    ours, peer = map(statistics.median, rates)
    note = "same size of row, same synchronous setting, same disk; at least 300 wanted"
    return [_row("durable charges a second, beside bare SQLite commits", ours, peer, note)]


def _opening(folder: Path) -> list[dict[str, Any]]:
    path = folder / "long.db"
    with Ledger.create(path) as ledger:
        ledger.register("clinic", Privacy(1, 1e-6), neighbours="replace")
        _fill(ledger)
        entries = ledger.head.entry
    ours, peer = [], []
    for _ in range(11):
        ours.append(1e3 * _seconds(lambda: _remaining(path)))
        peer.append(1e3 * _seconds(lambda: _last_row(path)))
    with Ledger.open(path) as ledger:
        audit = _seconds(ledger.verify)
    label = f"{entries:,} entries"
    return [
        _row(
            f"ms to open {label} and read what remains, beside bare SQLite and its last row",
            statistics.median(ours),
            statistics.median(peer),
            f"slowest of 11: {max(ours):.1f} ms; under 50 wanted",
        ),
        {"what": f"s to verify {label}", "ours": round(audit, 2), "peer": "", "ratio": "", "note": "no peer"},
    ]


def _fill(ledger: Ledger) -> None:
    """Write the entries of many `Ledger.charge` calls in one transaction, which takes seconds instead of minutes."""
    request, options = ChargeRequest.from_event(EVENT, DESCRIPTION), payment_options(EVENT)
    with ledger._store.writing(ledger.author) as journal:
        balance = journal.balance("clinic")
        for _ in range(ENTRIES - journal.head().entry):
            cost, balance = balance.pay(EVENT, options, str(ledger.path))
            sums = {"cost": amount_to_json(cost), "spent": amount_to_json(balance.spent)}
            journal.append("charge", {**request.content, "neighbours": "replace", **sums}, dataset="clinic")


def _charge(ledger: Ledger) -> None:
    ledger.charge("clinic", EVENT, neighbours="replace", description=DESCRIPTION)


def _commit(connection: sqlite3.Connection, body: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO entries (body) VALUES (?)", (body,))
    connection.execute("COMMIT")


def _remaining(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.remaining("clinic")


def _last_row(path: Path) -> None:
    with contextlib.closing(connect(path, 30.0)) as connection:
        connection.execute("SELECT * FROM entries ORDER BY entry DESC LIMIT 1").fetchone()


def _seconds(action: Callable[[], object], times: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(times):
        action()
    return time.perf_counter() - start


def _row(what: str, ours: float, peer: float, note: str) -> dict[str, Any]:
    return {
        "what": what,
        "ours": round(ours, 2),
        "peer": round(peer, 2),
        "ratio": round(ours / peer, 2),
        "note": note,
    }


if __name__ == "__main__":
    for found in run():
        print("{what}: {ours} (peer {peer}, ratio {ratio}); {note}".format(**found))
