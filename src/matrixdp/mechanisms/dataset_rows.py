"""The tasks of the two passes over a data set: the first checks the records, the second adds noise and writes them."""

from __future__ import annotations

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
from matrixdp.mechanisms.mechanism import RowMechanism, rowwise_query
from matrixdp.noise import BlockKey
from matrixdp.queries import Identity
from matrixdp.records import to_array
from matrixdp.records.formats import pyarrow

ALTERED = "the records were altered while they were read. Nothing was released."


@dataclass(frozen=True, order=True)
class FoundPart:
    """Number, number of records and SHA-256 of a part, from the first pass."""

    number: int
    rows: int
    digest: bytes


class _Rows:
    """Iterates over the checked records of a part, and keeps their count and SHA-256."""

    def __init__(self, query: Identity, blocks: Iterable[Any], *, clip: bool, missing: str) -> None:
        self._query, self._blocks, self._clip, self._missing = query, blocks, clip, missing
        self.count = 0
        self._hash = hashlib.sha256()

    def __iter__(self) -> Iterator[NDArray[np.generic]]:
        for block in self._blocks:
            array = to_array(block, self._query.shape[1], self._query.names)
            self._hash.update(np.ascontiguousarray(array, np.float64).data)
            yield self._query.read_rows(array, clip=self._clip, missing=self._missing)
            self.count += len(array)

    @property
    def digest(self) -> bytes:
        return self._hash.digest()


@dataclass(frozen=True, eq=False)
class CheckTask:
    """Task of the first pass: checks the records, so that errors are raised before the charge."""

    query: Identity
    clip: bool
    missing: str

    def __call__(self, number: int, blocks: Iterable[Any]) -> FoundPart:
        """Return the number of records and their digest."""
        rows = _Rows(self.query, blocks, clip=self.clip, missing=self.missing)
        for _ in rows:
            pass
        return FoundPart(number, rows.count, rows.digest)


@dataclass(frozen=True, eq=False)
class WriteTask:
    """Task of the second pass: writes the noisy records of one part to a file."""

    design: Design
    key: BlockKey  # of the noise of the whole release
    parts: tuple[FoundPart, ...]  # found in the first pass
    starts: tuple[int, ...]  # position in the data set of the first record of each part
    clip: bool
    missing: str
    folder: str
    drafts: str  # the folder for unfinished files
    names: tuple[str, ...]  # of the columns

    def __call__(self, number: int, blocks: Iterable[Any]) -> tuple[int, str | None]:
        """Return the number of the part and the name of its file, or None if the part has no records."""
        if number >= len(self.parts):
            raise DataError(ALTERED)
        expected = self.parts[number]
        if not expected.rows:
            return number, None
        rows = _Rows(rowwise_query(self.design), blocks, clip=self.clip, missing=self.missing)
        name = f"part-{number:06d}.parquet"
        draft = Path(self.drafts) / f"{name}.{uuid.uuid4().hex}"  # a retried task must not write to the same file
        self._write(draft, rows, first=self.starts[number])
        if (rows.count, rows.digest) != (expected.rows, expected.digest):
            raise DataError(ALTERED)
        with writing(Path(self.folder)):
            draft.replace(Path(self.folder) / name)
        return number, name

    def _write(self, draft: Path, rows: _Rows, *, first: int) -> None:
        pa = pyarrow()
        from pyarrow import parquet

        mechanism = RowMechanism(self.design, self.key)
        schema = pa.schema([(name, pa.float64()) for name in self.names])
        with writing(draft.parent):  # noise does not compress
            writer = parquet.ParquetWriter(str(draft), schema, compression="none", use_dictionary=False)
        try:
            for records in rows:
                noisy = mechanism(first + rows.count, records)
                with writing(draft.parent):
                    writer.write_batch(pa.record_batch([pa.array(column) for column in noisy.T], schema=schema))
        except BaseException:
            with suppress(OSError):
                writer.close()
            raise
        with writing(draft.parent):
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
