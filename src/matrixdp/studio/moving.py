"""Backups of a whole studio, and its one place: a copy that runs beside the original would answer for it twice.

The studio's file records the place at which it is used, as a ledger does (`matrixdp.ledger.place`).
"""

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from matrixdp.errors import LedgerError, ParameterError
from matrixdp.ledger import Ledger
from matrixdp.ledger.location import Location
from matrixdp.ledger.place import Place, find_place
from matrixdp.studio.state import State

_FOLDERS = ("schemas", "releases")
_DATABASE, _LEDGER = "studio.db", "ledger.db"


def check_place(state: Path) -> None:
    """Record where the studio's own files are; a `ParameterError` if they are a copy, or were moved."""
    database = state / _DATABASE
    if not database.exists():
        return
    opened = State(database)
    recorded, here = _read_place(opened), find_place(database)
    if recorded is not None and not recorded.matches(here):
        original = Path(recorded.path).parent
        raise ParameterError(
            f"{state} is a copy of the studio at {original}, or was moved from there. Two studios would answer the "
            f"same requests. Use the one at {original}. If it was moved here: matrixdp studio moved. If it is lost, "
            "and this is a backup: matrixdp studio restore."
        )
    _write_place(opened, here)


def confirm_move(state: Path) -> None:
    """Record that the studio's own files were moved to `state`, with the ledger among them; refused for a copy."""
    database = state / _DATABASE
    if not database.is_file():
        raise ParameterError(f"there is no studio at {state}. Check FOLDER and --state.")
    opened = State(database)
    recorded = _read_place(opened)
    if recorded is not None:
        original = Path(recorded.path)
        if original.exists() and not original.samefile(database) and recorded.holds(find_place(original)):
            raise ParameterError(f"the studio at {original.parent} is still there. Use it, or move it away first.")
    if (state / _LEDGER).exists():
        Ledger.moved(state / _LEDGER).close()
    _write_place(opened, find_place(database))


def back_up(state: Path, ledger: Location | None, target: Path) -> None:
    """Copy a studio, which may be running, to a new folder: its file, schemas, releases and its ledger.

    A `ledger` elsewhere is copied if it is a file; one in PostgreSQL is backed up by the server's own means.
    """
    if not (state / _DATABASE).is_file():
        raise ParameterError(f"there is no studio at {state}. Check FOLDER and --state.")
    if target.exists():
        raise ParameterError(f"{target} is there already. Choose a new folder.")
    target.mkdir(mode=0o700, parents=True)
    # The ledger comes first: what was charged after it was copied has to be settled, and a release whose charge it
    # lacks is not made again with other noise.
    place = ledger if ledger is not None else state / _LEDGER
    if isinstance(place, Path):
        with Ledger.open(place) as opened:
            opened.backup(target / _LEDGER)
    with closing(sqlite3.connect(state / _DATABASE)) as source, closing(sqlite3.connect(target / _DATABASE)) as copy:
        source.backup(copy)
        copy.execute("DELETE FROM sessions")
        copy.execute("DELETE FROM place")
        copy.commit()
    (target / _DATABASE).chmod(0o600)
    for name in _FOLDERS:
        if (state / name).is_dir():
            shutil.copytree(state / name, target / name, ignore=shutil.ignore_patterns("*.tmp"))


def restore(source: Path, state: Path, ledger: Path | None) -> None:
    """Make a studio from a backup, at a place where there is none; nobody is signed in, and tokens are valid again.

    The ledger is restored as by ``matrixdp ledger restore``: each data set has to be settled before it is charged.
    """
    if not (source / _DATABASE).is_file():
        raise ParameterError(f"{source} is no backup of a studio: it has no {_DATABASE}.")
    if (state / _DATABASE).exists():
        raise ParameterError(f"there is a studio at {state} already. Choose another --state, or move it away.")
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (source / _LEDGER).exists():
        place = ledger or state / _LEDGER
        try:
            Ledger.restore(source / _LEDGER, place).close()
        except LedgerError as error:
            raise ParameterError(f"the ledger cannot be restored to {place}: {error}") from None
    shutil.copyfile(source / _DATABASE, state / _DATABASE)
    (state / _DATABASE).chmod(0o600)
    for name in _FOLDERS:
        if (source / name).is_dir():
            shutil.copytree(source / name, state / name)
    check_place(state)


def _read_place(state: State) -> Place | None:
    rows = state.select("SELECT content FROM place")
    return Place(**{**json.loads(rows[0]["content"]), "marks": frozenset()}) if rows else None


def _write_place(state: State, place: Place) -> None:
    content = {name: value for name, value in asdict(place).items() if name != "marks"}
    with state.writing() as connection:
        connection.execute("INSERT OR REPLACE INTO place VALUES (1, ?)", (json.dumps(content),))
