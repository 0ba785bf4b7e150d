"""A ledger in PostgreSQL, on a server that this benchmark starts: charges a second, races, kills, stopped servers."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.ledger import PROCESSES, TOTAL, create, kills, make_row, measure, race
from benchmarks.sizes import size
from matrixdp.errors import BudgetExceededError, LedgerError
from matrixdp.gdp import share_mu
from matrixdp.ledger import Gaussian, Ledger

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from postgres_server import PostgresServer

CHARGES = size(300, 2)
STOPS = size(20, 2)
_BARE = "INSERT INTO bare (body) VALUES (repeat('x', 900))"


def run() -> list[dict[str, Any]]:
    return list(_measure_all())


def _measure_all() -> Iterator[dict[str, Any]]:
    with PostgresServer() as server:
        for part in (
            _charges,
            _stops,
            lambda server: race(_path(server, "race")),
            lambda server: kills(_path(server, "kills")),
        ):
            for row in part(server):
                yield {**row, "what": f"PostgreSQL: {row['what']}"}


def _path(server: PostgresServer, name: str) -> str:
    return server.url(options=f"&schema={name}")


def _charges(server: PostgresServer) -> list[dict[str, Any]]:
    """Charges of one and of eight clients, beside bare commits of one client."""
    one, bare, eight = [], [], []
    path = _path(server, "charges")
    event = Gaussian(1e-5)
    with create(path) as ledger, contextlib.closing(server.connect()) as connection:
        connection.execute("CREATE TABLE bare (entry bigserial PRIMARY KEY, body text)")
        for _ in range(size(5, 1)):
            one.append(CHARGES / measure(lambda: _charge(ledger, event), CHARGES))
            bare.append(CHARGES / measure(lambda: connection.execute(_BARE), CHARGES))
            eight.append(_together(path, event))
    peer = statistics.median(bare)
    return [
        make_row("durable charges a second of one client, beside bare commits", statistics.median(one), peer, ""),
        make_row(
            f"durable charges a second of {PROCESSES} clients, beside bare commits of one",
            statistics.median(eight),
            peer,
            f"slowest of 5: {min(eight):.0f}; at least 300 wanted",
        ),
    ]


def _charge(ledger: Ledger, event: Gaussian) -> None:
    ledger.charge("clinic", event, neighbours="replace", description={"query": "mean"})


def _together(path: str, event: Gaussian) -> float:
    """Charges a second of several processes, from when all are connected."""
    start_reader, start_writer = os.pipe()
    ready_reader, ready_writer = os.pipe()
    children = []
    for _ in range(PROCESSES):
        child = os.fork()
        if child == 0:
            with Ledger.open(path) as ledger:
                os.write(ready_writer, b".")
                os.read(start_reader, 1)
                for _ in range(CHARGES):
                    _charge(ledger, event)
            os._exit(0)
        children.append(child)
    for _ in range(PROCESSES):
        os.read(ready_reader, 1)
    start = time.perf_counter()
    os.write(start_writer, b"." * PROCESSES)
    for child in children:
        os.waitpid(child, 0)
    rate = PROCESSES * CHARGES / (time.perf_counter() - start)
    for end in (start_reader, start_writer, ready_reader, ready_writer):
        os.close(end)
    return rate


def _stops(server: PostgresServer) -> list[dict[str, Any]]:
    """A server that is stopped at once, or killed, while clients charge more than the total allows."""
    path, chance, room = _path(server, "stops"), random.Random(7), 200  # few enough to be reached
    create(path).close()
    event = Gaussian(share_mu(TOTAL.mu, 1 / room))
    reader, writer = os.pipe()
    children = [_start(path, event, writer) for _ in range(4)]
    try:
        for stop in range(STOPS):
            time.sleep(chance.uniform(0.2, 0.6))
            if stop % 2:
                server.kill()
            else:
                server.stop(immediate=True)
            server.start()
        time.sleep(1.0)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        lines = stream.read().split()
    acknowledged, errors = [int(line) for line in lines if line != "error"], lines.count("error")
    with Ledger.open(path) as ledger:
        ledger.verify()
        recorded = {charge.entry for charge in ledger.history()}
    note = (
        f"{len(recorded):,} charges recorded, {len(acknowledged):,} acknowledged, {errors} errors, room for {room:,}; "
        f"{len(acknowledged) - len(set(acknowledged))} acknowledged twice"
    )
    lost = len(set(acknowledged) - recorded)
    return [make_row(f"acknowledged charges lost in {STOPS} immediate stops", lost, 0, note)]


def _start(path: str, event: Gaussian, writer: int) -> int:
    child = os.fork()
    if child == 0:
        ledger = Ledger.open(path)
        while True:
            try:
                receipt = ledger.charge("clinic", event, neighbours="replace", description={})
            except BudgetExceededError:
                signal.pause()
            except LedgerError:
                os.write(writer, b"error\n")
                time.sleep(0.02)
            else:
                os.write(writer, f"{receipt.entry}\n".encode())
    return child


if __name__ == "__main__":
    for found in _measure_all():
        print("{what}: {ours} (peer {peer}, ratio {ratio}); {note}".format(**found), flush=True)
