"""Anchors: the number and hash of the last entry, kept outside of the ledger, so that a roll-back shows.

After each charge, the last entry is recorded in a file, as a line ``ENTRY:HASH``. The file is best kept where the
ledger's users cannot alter it.
"""

import contextlib
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from matrixdp.errors import LedgerError, ParameterError, show
from matrixdp.ledger.journal import Journal
from matrixdp.ledger.values import Head

_TAIL = 1 << 16  # bytes at the end of a file, in which the lines of processes that write at the same time can be mixed


def check_anchor(path: Path, journal: Journal) -> None:
    """Raise a `LedgerError` if the last entry that was recorded is not in the ledger, or none can be recorded."""
    with _open(path) as stream:
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
    with _open(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 1))
        start = b"\n" if size and stream.read(1) != b"\n" else b""
        stream.write(start + f"{head.entry}:{head.hash}\n".encode())
        os.fsync(stream.fileno())


@contextlib.contextmanager
def _open(path: Path) -> Iterator[FileIO]:
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
