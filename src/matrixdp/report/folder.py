"""A release as files, put in place all at once or not at all."""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from matrixdp.errors import ParameterError
from matrixdp.report.html import release_page
from matrixdp.report.pictures import matrix_picture, std_picture
from matrixdp.report.result import Result


class OutputFolder:
    """A folder that appears at its place only when it is complete.

    Made, and so known to be writable, when the context is entered; nothing of it is left behind by an error.

    Parameters
    ----------
    place : path
        Where it will be. Anything there already is an error, unless it is an empty folder or `force` is said.
    force : bool
        Put it in the place of a folder that is there already, which stays as it is until then.
    """

    def __init__(self, place: str | os.PathLike[str], *, force: bool = False) -> None:
        self.place = Path(place).absolute()
        self.force = force
        self.path = self.place
        self._finished = False

    def __enter__(self) -> Self:
        if self.place.is_symlink() or (self.place.exists() and not self.place.is_dir()):
            raise ParameterError(f"out must be a folder, but {self.place} is something else. Choose another place.")
        if self.place.exists() and any(self.place.iterdir()) and not self.force:
            raise ParameterError(
                f"out must be a new or empty folder, but {self.place} holds files. "
                "Choose another place, or say force=True (--force) to put the new release in its stead."
            )
        try:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix=f".{self.place.name}.", dir=self.place.parent))
            self.path.chmod(0o755)
        except OSError as error:
            raise ParameterError(
                f"out cannot be written: {error.strerror or error} at {self.place.parent}. "
                "Choose another place, or make it writable."
            ) from None
        return self

    def finish(self) -> None:
        """Put the folder in its place; an old one is removed after the new one is there."""
        old = self.path.with_name(self.path.name + ".old")
        if self.place.exists():
            self.place.rename(old)
        try:
            self.path.rename(self.place)
        except OSError:
            if old.exists():
                old.rename(self.place)
            raise
        self._finished = True
        shutil.rmtree(old, ignore_errors=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._finished:
            shutil.rmtree(self.path, ignore_errors=True)


def write_folder(result: Result, folder: str | os.PathLike[str]) -> list[str]:
    """Write `release.json`, the matrix and its error bars, the pictures and the report; gives the files' names.

    Parameters
    ----------
    result : Result
    folder : path
        An existing folder.

    Notes
    -----
    Parquet is left out when `pyarrow` is not installed.
    """
    place = Path(folder)
    (place / "release.json").write_text(result.release.to_json(), encoding="utf-8")
    np.save(place / "matrix.npy", result.matrix)
    named = not result.rows[0].isdigit() or result.square
    _write_csv(place / "matrix.csv", result.columns, result.rows if named else None, result.matrix)
    _write_csv(place / "std.csv", *_std_rows(result, named=named))
    if result.mean is not None:
        names = result.columns[1:] if result.kind == "matrix" else result.columns
        table = np.stack([result.mean.value, result.mean.std], axis=1)
        _write_csv(place / "mean.csv", ("mean", "std"), names, table)
    _write_parquet(place / "matrix.parquet", result, named=named)
    (place / "matrix.svg").write_text(matrix_picture(result), encoding="utf-8")
    (place / "std.svg").write_text(std_picture(result), encoding="utf-8")
    names_written = sorted(path.name for path in place.iterdir())
    (place / "report.html").write_text(release_page(result, files=names_written), encoding="utf-8")
    return ["report.html", *names_written]


def _std_rows(result: Result, *, named: bool) -> tuple[Sequence[str], Sequence[str] | None, Any]:
    if result.std.strides[0] == 0:  # rows that are alike are written once
        return result.columns, None, result.std[:1]
    return result.columns, result.rows if named else None, result.std


def _write_csv(path: Path, columns: Sequence[str], rows: Sequence[str] | None, values: Any) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["", *columns] if rows is not None else columns)
        body: Iterable[list[Any]] = (values[i].tolist() for i in range(len(values)))
        if rows is not None:
            body = ([name, *line] for name, line in zip(rows, body, strict=True))
        writer.writerows(body)


def _write_parquet(path: Path, result: Result, *, named: bool) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return
    columns = [pa.array(np.ascontiguousarray(result.matrix[:, j])) for j in range(len(result.columns))]
    names = list(result.columns)
    if named:
        columns, names = [pa.array(result.rows), *columns], ["row" if "row" not in names else "row names", *names]
    pq.write_table(pa.Table.from_arrays(columns, names=names), path)
