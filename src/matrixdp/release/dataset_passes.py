"""The two passes over the records of a noisy data set: every error is found in the first, the second adds noise."""

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
from matrixdp.errors import DataError, EngineError
from matrixdp.noise import BlockKey
from matrixdp.queries import MatrixQuery
from matrixdp.records import to_array
from matrixdp.records.formats import pyarrow
from matrixdp.release.mechanism import RowMechanism

ALTERED = "the records were altered while they were read. Nothing was released."


@dataclass(frozen=True, order=True)
class FoundPart:
    """What the first pass found in a part."""

    number: int
    rows: int
    digest: bytes


class _Rows:
    """Records of a part, in the domain, with their number and digest."""

    def __init__(self, query: MatrixQuery, blocks: Iterable[Any], *, clip: bool, missing: str) -> None:
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
    """The task of the first pass: every error of the data is found here."""

    query: MatrixQuery
    clip: bool
    missing: str

    def __call__(self, number: int, blocks: Iterable[Any]) -> FoundPart:
        """How many records there are, and their digest."""
        rows = _Rows(self.query, blocks, clip=self.clip, missing=self.missing)
        for _ in rows:
            pass
        return FoundPart(number, rows.count, rows.digest)


@dataclass(frozen=True, eq=False)
class WriteTask:
    """The task of the second pass: noisy records of one part, in a file that appears when it is complete."""

    design: Design
    key: BlockKey
    parts: tuple[FoundPart, ...]
    starts: tuple[int, ...]
    clip: bool
    missing: str
    folder: str
    drafts: str
    names: tuple[str, ...]

    def __call__(self, number: int, blocks: Iterable[Any]) -> tuple[int, str | None]:
        """The part's number, and the name of its file; none for a part without records."""
        if number >= len(self.parts):
            raise DataError(ALTERED)
        expected = self.parts[number]
        if not expected.rows:
            return number, None
        rows = _Rows(self.design.query, blocks, clip=self.clip, missing=self.missing)
        name = f"part-{number:06d}.parquet"
        draft = Path(self.drafts) / f"{name}.{uuid.uuid4().hex}"  # two tries of one task do not meet
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
        with writing(draft.parent):  # noise can be neither compressed nor put in a dictionary
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
    """An error that names the folder, for whatever keeps it from being written to."""
    try:
        yield
    except OSError as error:
        raise EngineError(
            f"out: {folder} cannot be written: {error.strerror or error}. Nothing was released."
        ) from None
