from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger_worker import TOTAL
from matrixdp.ledger import Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clinic.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.create(path) as made:
        made.register("clinic", TOTAL, neighbours="replace")
        yield made
