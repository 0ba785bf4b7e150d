"""The place of a ledger's file, and what shows that an old copy took its place.

SQLite finds the journal of an interrupted transaction by the name of the file. If a file were written under two names,
or moved without its journal, a journal could be missed, or undo entries that were written since. So a ledger records
the one place at which it is written, and other places only read it. Its records are

- the identity of the file: its inode, when the inode was made, and its file system. The numbers of inodes are used
  again as soon as a file is removed, and on other disks; the times are not;
- the inode of its directory, and its name there;
- its marks. They are not in the file but on it and on its directory: extended attributes with the number and hash of
  the last entry. An old copy that is written over the file leaves the mark on the file, or, if it brings attributes of
  its own (``cp -a``), the one on the directory. A mark that the ledger has recorded must be there.

Anchors are the same outside of the file and of its directory: after each charge, the last entry is recorded in another
file, as a line ``ENTRY:HASH``. It is best kept where the ledger's users cannot alter it.

The file of the ledger is never opened here: closing it would release all locks that SQLite holds on it in this process.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sqlite3
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

from matrixdp.errors import LedgerError, ParameterError, show
from matrixdp.ledger.entries import sha256
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.values import Head

try:
    import fcntl
except ImportError:  # Windows, where there are no extended attributes, either
    fcntl = None  # type: ignore[assignment]

_LIBC = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
_LOCK_WAIT = 1.0  # seconds for the lock of a directory, which is held for a few system calls
_BIRTH_TIME, _BIRTH_PLACE = 0x800, 80  # STATX_BTIME, and where it is in the structure of statx
_CURRENT_FOLDER = -100  # AT_FDCWD
_TAIL = 1 << 16  # bytes at the end of anchors, in which the lines of processes that write at the same time can be mixed
# Numbers of file systems, as statfs gives them.
_SMB = dict.fromkeys((0x517B, 0xFF534D42, 0xFE534D42), "SMB")  # of three versions
_NETWORK = {0x6969: "NFS", 0x5346414F: "AFS", 0x73757245: "Coda", 0x564C: "NCP", **_SMB}
_STABLE = {0xEF53: "ext4", 0x9123683E: "btrfs"}  # their ids are stored on the disk, and stay when it is mounted again


@dataclass(frozen=True)
class Place:
    """Where a file is: its identity, the inode of its directory, its name there, and its marks. `path` is for messages.

    Devices are left out, since their numbers may change when a computer is started again.
    """

    identity: Mapping[str, str]
    directory: str
    name: str
    path: str
    marks: frozenset[str] = field(default=frozenset())

    def holds(self, other: Place) -> bool:
        """Whether `other` is the same file, as far as it was recorded here."""
        return all(other.identity.get(name) == value for name, value in self.identity.items())

    def matches(self, other: Place) -> bool:
        """Whether `other` is the same file at the same place."""
        return self.holds(other) and (self.directory, self.name) == (other.directory, other.name)


def find_place(path: Path, file: Path | None = None, marks: Iterable[str] = ()) -> Place:
    """The place of the file at `path`, or of the file at `file` once it is moved to `path`. Links are followed."""
    real = Path(os.path.realpath(path))
    try:
        identity, directory = find_identity(real if file is None else file), real.parent.stat().st_ino
    except OSError as error:
        raise LedgerError(f"{path} cannot be found: {error.strerror}. Nothing was charged.") from None
    return Place(identity, str(directory), _as_text(real.name), _as_text(str(real)), frozenset(marks))


def find_identity(path: Path) -> dict[str, str]:
    """What tells the file from those that had or will have the number of its inode."""
    found = {"inode": str(path.stat().st_ino)}
    born = find_birth_time(path)
    if born is not None:
        found["born"] = str(born)
    if (born is None or find_file_system(path) in _STABLE) and hasattr(os, "statvfs"):
        found["system"] = f"{os.statvfs(path).f_fsid:x}"
    return found


def find_birth_time(path: Path) -> int | None:
    """When the file's inode was made, in nanoseconds; None if the system does not say."""
    found = path.stat()
    for name, unit in (("st_birthtime_ns", 1), ("st_birthtime", 10**9)):  # outside of Linux
        if hasattr(found, name):
            return int(getattr(found, name) * unit)
    buffer = _ask_libc("statx", _CURRENT_FOLDER, os.fsencode(path), 0, _BIRTH_TIME)
    if buffer is None or not struct.unpack_from("I", buffer)[0] & _BIRTH_TIME:
        return None
    seconds, nanoseconds = struct.unpack_from("qI", buffer, _BIRTH_PLACE)
    return int(10**9 * seconds + nanoseconds)


def find_file_system(path: Path) -> int | None:
    """The number of the kind of the file system, as statfs gives it; None if the system does not say."""
    buffer = _ask_libc("statfs", os.fsencode(path))
    return None if buffer is None else int(struct.unpack_from("l", buffer)[0] & 0xFFFFFFFF)


def _ask_libc(name: str, *arguments: int | bytes) -> bytes | None:
    """The structure that a function of the C library fills; None if there is no such function, or it fails."""
    buffer = ctypes.create_string_buffer(512)
    with contextlib.suppress(AttributeError):
        if getattr(_LIBC, name)(*arguments, buffer) == 0:
            return buffer.raw
    return None


def require_local(path: Path) -> None:
    """Raise a `LedgerError` if the file would be on a network file system, whose locks may not exclude writers."""
    real = Path(os.path.realpath(path))  # a link or a mount can lead from a local folder to a file on a server
    kind = _NETWORK.get(find_file_system(real) or find_file_system(real.parent) or 0)
    if kind is not None:
        raise LedgerError(
            f"{path} is on a network file system ({kind}), where two writers may not exclude each other, and charges "
            "would be lost. Nothing was charged. Use a ledger in PostgreSQL: postgresql://USER@HOST/DATABASE. A file "
            "that is there already: move it to a local disk, confirm that with matrixdp ledger moved, and copy it to "
            "PostgreSQL with matrixdp ledger copy."
        )


def read_place(execute: Callable[[str], Iterable[tuple[Any, ...]]]) -> Place:
    """The place that the ledger recorded; earlier versions recorded of the file only its inode."""
    ((file, directory, name, path),) = execute("SELECT file, directory, name, path FROM place")
    identity = {"inode": file} if file.isdecimal() else json.loads(file)
    marks = frozenset(identity.pop("marks", "").split())
    return Place(identity, directory, name, path, marks)


def write_place(journal: Journal, place: Place) -> None:
    """Record the place at which the ledger is written from now on."""
    file = json.dumps({**place.identity, "marks": " ".join(sorted(place.marks))})
    values = (file, place.directory, place.name, place.path)
    journal.execute("INSERT OR REPLACE INTO place VALUES (1, ?, ?, ?, ?)", values)


def peek_place(path: Path) -> Place | None:
    """The place that the ledger recorded, read without using a journal; None if it cannot be read or has none."""
    with contextlib.suppress(sqlite3.Error, TypeError, ValueError):
        # The file alone is read: no journal, no log, no locks.
        uri = f"{path.as_uri()}?mode=ro&immutable=1"
        connected = sqlite3.connect(uri, isolation_level=None, check_same_thread=False, uri=True)
        with contextlib.closing(connected) as connection:
            return read_place(connection.execute)
    return None


def find_leftovers(path: Path) -> list[Path]:
    """Journals and logs beside `path` that are not empty: of a transaction in progress, or an interrupted one."""
    real = os.path.realpath(path)
    found = [Path(f"{real}{suffix}") for suffix in ("-journal", "-wal", "-shm")]
    return [file for file in found if file.exists() and file.stat().st_size > 0]


def require_own_journal(path: Path) -> None:
    """Raise a `LedgerError` if there is a journal beside the file that cannot belong to its present content.

    SQLite would undo what it names, and with it entries that were written at another place since.
    """
    journal = Path(f"{os.path.realpath(path)}-journal")
    with contextlib.suppress(FileNotFoundError):
        recorded = peek_place(path) if journal.stat().st_size > 0 else None
        if recorded is not None and not recorded.matches(find_place(path)):
            raise LedgerError(
                f"{journal} was left by an interrupted write, but {path} has been written as {recorded.path} since. "
                "Nothing was read or charged. Remove that journal."
            )


def require_place(journal: Journal, path: Path, *, moving: bool = False) -> None:
    """Raise a `LedgerError` unless this is the file that the ledger recorded, at its place and with its marks.

    What can be known of the place now, and was not recorded before, is recorded: within the transaction of a writer.
    While a move is confirmed, only what is marked is compared.
    """
    marks = require_marked_entries(journal, path, Path(os.path.realpath(path)))
    if moving:
        return
    recorded, here = read_place(journal.execute), find_place(path, marks=marks)
    if not recorded.matches(here):
        if recorded.holds(here):
            raise LedgerError(
                f"{path} is another name of the ledger {recorded.path}, or it was moved. A ledger is written under one "
                f"name only. Nothing was charged. Use {recorded.path}, or confirm the move: matrixdp ledger moved "
                f"{path}"
            )
        raise LedgerError(
            f"{path} is a copy of the ledger {recorded.path}, or it was moved to another disk. A copy would spend the "
            f"total twice. Nothing was charged. Use the original. If the original is lost and this is a backup: "
            f"matrixdp ledger restore {path} NEW. If the original was moved here: matrixdp ledger moved {path}"
        )
    if missing := recorded.marks - here.marks:
        raise LedgerError(
            f"the mark of the last entry on the {' and the '.join(sorted(missing))} of {path} is gone, so an old copy "
            "may have replaced it. Nothing was charged. Put the latest file back. If this is the latest: matrixdp "
            f"ledger moved {path}. If it is lost: matrixdp ledger restore {path} NEW"
        )
    if recorded != here:
        write_place(journal, here)


def require_original_gone(recorded: Place | None, path: Path) -> None:
    """Raise a `LedgerError` if the file that `recorded` describes is still there, beside the one at `path`."""
    if recorded is None or os.path.realpath(recorded.path) == os.path.realpath(path):
        return
    original = Path(recorded.path)
    if original.exists() and recorded.holds(find_place(original)):
        raise LedgerError(
            f"{path} is a copy or another name of the ledger {original}, which is still there: both would spend the "
            "total twice. Nothing was changed. Use the original, or move it away first."
        )
    if not original.exists() and find_leftovers(original):
        raise LedgerError(
            f"{path} was moved from {original} after an interrupted write, whose journal is still there. Nothing was "
            f"changed. Move the file back, run `matrixdp ledger show {original}`, which undoes that write, and move it "
            "again."
        )


def require_marked_entries(journal: Journal, path: Path, marked: Path) -> Mapping[str, Head]:
    """The marks at `marked`; a `LedgerError` if their entries are not in the ledger at `path`, an old copy then."""
    marks = read_marks(marked, journal.first_hash())
    for mark in set(marks.values()):
        if journal.find(mark) is None:
            raise LedgerError(
                f"{path} was replaced by an earlier copy of itself, or by another ledger: entry {mark.entry}, which "
                f"was written to {marked}, is not in it. Nothing was charged. Put the latest file back; if it is lost: "
                f"matrixdp ledger restore {path} NEW"
            )
    return marks


def read_marks(path: Path, first: str) -> dict[str, Head]:
    """The entries that are marked as the last ones of the ledger with this `first` hash, on its file and directory.

    `path` may have become a link since it was recorded; its own name was marked, and not that of the link's target.
    """
    found = {}
    for name, (target, attribute) in _mark_places(path).items():
        with contextlib.suppress(OSError, AttributeError, ValueError):
            entry, digest, *ledger = os.getxattr(target, attribute).decode().split(":")
            if ledger in ([], [first]):  # earlier versions wrote no first hash, and only to the file
                found[name] = Head(int(entry), digest)
    return found


def write_marks(path: Path, head: Head, first: str, *, anew: bool = False) -> None:
    """Mark the last entry on the file and its directory, where the file system has extended attributes.

    An older mark never replaces a newer one, unless the ledger was made `anew`: processes write theirs in any order.
    """
    path = Path(os.path.realpath(path))
    with _locked_directory(path):
        present = {} if anew else read_marks(path, first)
        for name, (target, attribute) in _mark_places(path).items():
            if name not in present or present[name].entry < head.entry:
                with contextlib.suppress(OSError, AttributeError):
                    os.setxattr(target, attribute, f"{head.entry}:{head.hash}:{first}".encode())


def file_id(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file, or None if there is none."""
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def _mark_places(path: Path) -> dict[str, tuple[str, str]]:
    """Where the marks are, and the names of their attributes; that of a directory tells its ledgers apart."""
    folder = os.path.realpath(path.parent)
    return {
        "file": (str(path), "user.matrixdp.head"),
        "directory": (folder, f"user.matrixdp.{sha256(_as_text(path.name))[:16]}"),
    }


@contextlib.contextmanager
def _locked_directory(path: Path) -> Iterator[None]:
    """Exclude others that write marks beside `path`, where this is possible."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a directory that cannot be opened, a file system without locks
            folder = os.open(path.parent, os.O_RDONLY)
            stack.callback(os.close, folder)
            _lock_directory(folder)
        yield


def _lock_directory(folder: int) -> None:
    """Wait for the lock of a directory, but not for ever."""
    deadline = time.monotonic() + _LOCK_WAIT
    while fcntl is not None and time.monotonic() < deadline:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(0.001)


def _as_text(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def check_anchor(path: Path, journal: Journal) -> None:
    """Raise a `LedgerError` if the last entry that was recorded is not in the ledger, or none can be recorded."""
    with _open_anchors(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - _TAIL))
        lines = stream.read().split(b"\n")
    complete = lines[1 if size > _TAIL else 0 : -1]  # a line without its end was interrupted
    try:
        heads = [parse_anchor(line.decode()) for line in complete if line]
    except (UnicodeDecodeError, ParameterError):
        raise LedgerError(
            f"{path} is not a file of anchors: its lines must be ENTRY:HASH. Nothing was charged. Choose another file."
        ) from None
    last = max(heads, key=lambda head: head.entry, default=None)
    if last is not None and journal.find(last) is None:
        raise LedgerError(
            f"{journal.location} was replaced by an earlier copy, or {path} belongs to another ledger: the anchored "
            f"entry {last.entry} is not in it. Nothing was charged. Put the latest file back; if it is lost: matrixdp "
            f"ledger restore {journal.location} NEW, with a new anchor file."
        )


def record_anchor(path: Path, head: Head) -> None:
    """Append the line of an entry, durable when this returns."""
    with _open_anchors(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 1))
        start = b"\n" if size and stream.read(1) != b"\n" else b""
        stream.write(start + f"{head.entry}:{head.hash}\n".encode())
        os.fsync(stream.fileno())


@contextlib.contextmanager
def _open_anchors(path: Path) -> Iterator[FileIO]:
    try:
        with FileIO(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "r+") as stream:
            yield stream
    except OSError as error:
        raise LedgerError(
            f"the anchor file {path} cannot be written: {error.strerror}. Nothing was released."
        ) from None


def parse_anchor(text: str) -> Head:
    """The head that ``ENTRY:HASH`` names, or a `ParameterError`."""
    entry, mark, digest = text.partition(":")
    if not mark or not entry.isdecimal() or len(entry) > 18 or not digest or not digest.isalnum():
        raise ParameterError(
            f"«anchor» must be ENTRY:HASH, as `matrixdp ledger verify` prints it, got {show(text)} instead."
        )
    return Head(int(entry), digest)
