"""Reading: without the right to write, in a fixed number of steps, and never a wrong value from a damaged file."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from ledger_worker import TOTAL, run_worker
from matrixdp.errors import LedgerError
from matrixdp.ledger import Gaussian, Ledger, Reserve
from matrixdp.ledger.entries import COLUMNS
from matrixdp.ledger.journal import _QUERIES
from nightly import times

OWN_MOUNTS = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode == 0
WAYS = {"readonly": [], "mounted": ["unshare", "--mount"]} if OWN_MOUNTS else {"readonly": []}


@pytest.fixture
def folder():
    """Not in tmp_path, which another user cannot enter: the worker gives up its rights if it has too many."""
    found = Path(tempfile.mkdtemp())
    found.chmod(0o755)
    yield found
    found.chmod(0o755)
    shutil.rmtree(found)


@pytest.fixture
def clinic(folder):
    with Ledger.create(folder / "clinic.db") as ledger:
        ledger.register("clinic", TOTAL, neighbours="replace")
        receipt = ledger.charge("clinic", Gaussian(0.1), neighbours="replace", description={})
        ledger.complete(receipt, "{}")
        ledger.charge("clinic", Gaussian(0.05), neighbours="replace", description={})
    return folder / "clinic.db"


@pytest.mark.parametrize("way", WAYS)
def test_reading_needs_no_writing(clinic, way):
    answer = run_worker(way, clinic, command=WAYS[way])
    assert (answer["read"], answer["entries"], answer["charges"]) == ("", 5, [2, 2, 1])
    assert answer["left"] == pytest.approx((TOTAL.mu**2 - 0.1**2 - 0.05**2) ** 0.5)
    assert answer["unchanged"]
    assert "clinic.db: it cannot be" in answer["charge"]
    assert "Make the file and its directory writable" in answer["charge"]
    assert "cannot be created: " in answer["create"]


@pytest.mark.parametrize("way", WAYS)
def test_an_interrupted_write_must_be_undone_by_somebody_who_may(clinic, way):
    run_worker("interrupt", clinic)
    answer = run_worker(way, clinic, command=WAYS[way])
    assert "a write to it was interrupted, and must be undone by a user who may write" in answer["read"]
    assert answer["unchanged"]
    clinic.parent.chmod(0o755)
    for file in clinic.parent.iterdir():
        file.chmod(0o644)
    assert Ledger.open(clinic).verify().entry == 5


@pytest.mark.parametrize("query", sorted(set(_QUERIES) - {"after"}))
def test_no_query_reads_all_entries(ledger, query):
    with ledger._store.reading() as journal:
        sql = f"EXPLAIN QUERY PLAN SELECT {COLUMNS} FROM entries {_QUERIES[query]}"
        for *_, step in journal.execute(sql, (1,) * sql.count("?")):
            assert "USING" in step or query == "last"  # the last row is the first of a scan


@pytest.fixture
def filled(ledger):
    """A ledger with two data sets, and pages enough for indexes of two levels."""
    ledger.register("rivals", TOTAL, neighbours="replace", reserve=Reserve(epsilon=0.5, delta=1e-7))
    for number in range(12):
        receipt = ledger.charge(
            "clinic", Gaussian(0.01), neighbours="replace", description={"n": number}, request=f"r{number}"
        )
        if number % 3:
            ledger.complete(receipt, f'{{"of":{number}}}')
    ledger.charge("rivals", Gaussian(0.02), neighbours="replace", description={})
    ledger.close()
    return ledger.path


def read_everything(path):
    with Ledger.open(path) as ledger:
        found = [ledger.datasets(), ledger.history(), ledger.history("rivals")]
        for dataset in ("clinic", "rivals"):
            counts = ledger.summary(dataset).counts
            found += [ledger.remaining(dataset), counts.charges, counts.unfinished]
        return found


def test_a_damaged_byte_never_gives_a_wrong_value(filled, tmp_path):
    """One bit of the file at a time: what can be read is right."""
    right, intact = read_everything(filled), filled.read_bytes()
    refused, copied = 0, tmp_path / "damaged.db"
    for start in range(0, len(intact), times(523, 131)):
        damaged = bytearray(intact)
        damaged[start] ^= 1 << (start % 8)
        copied.write_bytes(damaged)
        try:
            assert read_everything(copied) == right, f"byte {start}"
            # A damaged index can hide a request id. It is then charged again: the total is kept.
            assert Ledger.open(copied).stored("clinic", "r1") in ('{"of":1}', None), f"byte {start}"
        except LedgerError:
            refused += 1
    assert refused > times(12, 50)


def test_a_damaged_byte_is_no_other_error(filled, tmp_path):
    """Neither when a ledger is verified, nor when it is charged."""
    intact, copied = filled.read_bytes(), tmp_path / "damaged.db"
    for start in range(0, len(intact), times(2039, 509)):
        damaged = bytearray(intact)
        damaged[start] ^= 0x55
        copied.write_bytes(damaged)
        for action in (
            lambda ledger: ledger.verify(),
            lambda ledger: ledger.charge("clinic", Gaussian(0.01), neighbours="replace", description={}),
        ):
            try:
                with Ledger.open(copied) as ledger:
                    action(ledger)
            except LedgerError:
                pass
