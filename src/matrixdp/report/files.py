"""A release as files: the matrix, its error bars, pictures and a report."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.report.content import Result
from matrixdp.report.html import release_page
from matrixdp.report.pictures import matrix_picture, std_picture


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
