"""The tasks of the two passes over a data set: the first checks the records, the second adds noise and writes them."""

import hashlib
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.design import Design
from matrixdp.errors import DataError, ParameterError
from matrixdp.mechanisms.mechanism import noisy_parts
from matrixdp.noise import BlockKey
from matrixdp.queries import Identity
from matrixdp.records import to_array
from matrixdp.records.tables import pa
from matrixdp.types import Floats

ALTERED = "the records were altered while they were read. Nothing was released."
_CHUNK = 1 << 20  # entries that are compared, and get their noise, at a time


@dataclass(frozen=True, order=True)
class FoundPart:
    """Number of a part, its number of records, and the SHA-256 of each of its chunks, from the first pass."""

    number: int
    rows: int
    digests: tuple[bytes, ...]


@dataclass(frozen=True, eq=False)
class CheckTask:
    """Task of the first pass: checks the records of a part, so that errors are raised before the charge."""

    query: Identity
    clip: bool
    missing: str

    def __call__(self, number: int, blocks: Iterable[Any]) -> FoundPart:
        """Return the number of records and their digests."""
        rows, digests = 0, []
        for chunk in self.read_chunks(blocks):
            self.read(chunk)
            digests.append(self.digest(chunk))
            rows += len(chunk)
        return FoundPart(number, rows, tuple(digests))

    def read_chunks(self, blocks: Iterable[Any]) -> Iterator[NDArray[np.generic]]:
        """Copies of the records of a part, cut at the same places in every pass, however they are read."""
        columns = self.query.shape[1]
        step = max(1, _CHUNK // columns)
        rest: NDArray[np.generic] = np.empty((0, columns))
        for block in blocks:
            array = to_array(block, columns, self.query.names)
            rest = np.concatenate([rest, array]) if len(rest) else array
            for _ in range(len(rest) // step):
                yield np.array(rest[:step])
                rest = rest[step:]
        if len(rest):
            yield np.array(rest)

    def read(self, chunk: NDArray[np.generic]) -> NDArray[np.generic]:
        """Records within their bounds; raises every error that they have."""
        return self.query.read_rows(chunk, clip=self.clip, missing=self.missing)

    def digest(self, chunk: NDArray[np.generic]) -> bytes:
        """SHA-256 of some records."""
        return hashlib.sha256(np.ascontiguousarray(chunk, np.float64).data).digest()


@dataclass(frozen=True, eq=False)
class WriteTask:
    """Task of the second pass: writes the noisy records of one part to a file.

    Privacy
    -------
    A part that is processed again, also by a worker that replaces one that was killed, gets the same noise. So noise is
    added only to records that are those of the first pass: a chunk of others raises before any of it is written, and
    whatever files a killed run leaves, no two of them differ in the records alone.
    """

    check: CheckTask
    design: Design
    key: BlockKey  # of the noise of the whole release
    parts: tuple[FoundPart, ...]  # found in the first pass
    folder: Path
    drafts: Path  # the folder for unfinished files

    def __call__(self, number: int, blocks: Iterable[Any]) -> tuple[int, str | None]:
        """Return the number of the part and the name of its file, or None if the part has no records."""
        if number >= len(self.parts):
            raise DataError(ALTERED)
        expected = self.parts[number]
        if not expected.rows:
            return number, None
        name = f"part-{number:06d}.parquet"
        draft = self.drafts / f"{name}.{uuid.uuid4().hex}"  # a retried task must not write to the same file
        first = sum(part.rows for part in self.parts[:number])  # its position in the data set
        self.write(draft, noisy_parts(self.design, self.key, first, self.compare(blocks, expected)))
        with writing(self.folder):
            draft.replace(self.folder / name)
        return number, name

    def compare(self, blocks: Iterable[Any], expected: FoundPart) -> Iterator[NDArray[np.generic]]:
        """The records of each chunk, after it was compared with that of the first pass."""
        place = 0
        for chunk in self.check.read_chunks(blocks):
            if expected.digests[place : place + 1] != (self.check.digest(chunk),):
                raise DataError(ALTERED)
            yield self.check.read(chunk)
            place += 1
        if place != len(expected.digests):
            raise DataError(ALTERED)

    def write(self, draft: Path, chunks: Iterable[Floats]) -> None:
        """Write noisy records to a file, and the file to the disk.

        The next chunk is read outside of `writing`, which shows errors: those of reading may quote the records.
        """
        schema = pa.schema([(name, pa.float64()) for name in name_columns(self.check.query)])
        with writing(self.folder):  # noise does not compress
            writer = pa.parquet.ParquetWriter(str(draft), schema, compression="none", use_dictionary=False)
        try:
            for noisy in chunks:
                with writing(self.folder):
                    writer.write_batch(pa.record_batch([pa.array(column) for column in noisy.T], schema=schema))
        except BaseException:
            with suppress(OSError):
                writer.close()
            raise
        with writing(self.folder):
            writer.close()
            with draft.open("rb") as file:
                os.fsync(file.fileno())


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise a `ParameterError` that names the folder if writing to it fails, for example on a full disk."""
    try:
        yield
    except OSError as error:
        raise ParameterError(
            f"out: {folder} cannot be written: {error.strerror or error}. Nothing was released."
        ) from None


def name_columns(query: Identity) -> tuple[str, ...]:
    """Names of the columns of a data set; x0, x1, ... where they have none."""
    return query.names or tuple(f"x{i}" for i in range(query.shape[1]))
