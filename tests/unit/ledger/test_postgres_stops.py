"""A server that is stopped at once, or killed, while clients charge."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ledger_worker
from ledger_stores import PostgresSchemas
from matrixdp.ledger import Ledger
from nightly import times


@pytest.fixture
def store(postgres_server):
    return PostgresSchemas(postgres_server)


def test_a_server_that_stops_under_load_loses_nothing_that_was_acknowledged(ledger, path, postgres_server):
    ledger.close()
    clients = [
        subprocess.Popen(
            [sys.executable, ledger_worker.__file__, "persist", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    acknowledged = []
    for stop in (lambda: postgres_server.stop(immediate=True), postgres_server.kill, postgres_server.stop):
        for client in clients:
            acknowledged += [int(client.stdout.readline()) for _ in range(times(2, 5))]  # all are at work
        stop()
        postgres_server.start()
    for client in clients:
        rest, _ = client.communicate()  # ends its standard input
        acknowledged += [int(line) for line in rest.splitlines() if line != "null"]
        assert client.returncode == 0
    with Ledger.open(path) as opened:
        opened.verify()
        recorded = {charge.entry for charge in opened.history()}
    assert len(acknowledged) == len(set(acknowledged)) >= times(18, 45)
    assert set(acknowledged) <= recorded
