from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger_stores import LedgerStore, PostgresSchemas, SQLiteFiles
from ledger_worker import TOTAL
from matrixdp.ledger import Ledger


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> LedgerStore:
    """SQLite, unless the module is marked with `ledger_stores.both_stores`."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return SQLiteFiles(tmp_path)
    return PostgresSchemas(request.getfixturevalue("postgres_server"))


@pytest.fixture
def path(store: LedgerStore) -> Path | str:
    return store.new_path()


@pytest.fixture
def ledger(path: Path | str) -> Iterator[Ledger]:
    with Ledger.create(path) as made:
        made.register("clinic", TOTAL, neighbours="replace")
        yield made
