"""A release as files: the matrix, its error bars, pictures and a report."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.display import blank_hidden, has_equal_rows, list_entries, quote_formula
from matrixdp.report.answers import Answer
from matrixdp.report.content import ReportContent
from matrixdp.report.dates import DATES, write_dates
from matrixdp.report.pictures import draw_correlation, draw_matrix, draw_std
from matrixdp.report.release_page import render_release
from matrixdp.types import Floats


def write_folder(content: ReportContent, folder: str | os.PathLike[str]) -> list[str]:
    """Write the release, the matrix, its error bars, pictures and the report into a folder; returns the files.

    Answers from the moments of a table are written as one CSV file for each kind, with one number to a line.
    A name in a CSV file that begins as a formula of a spreadsheet does (with ``= + - @``, a tab or a line end) has a
    single quote before it; the other files have the names as they are. The Parquet file is left out if `pyarrow` is not
    installed, and files of error bars if these are unknown.
    """
    place = Path(folder)
    (place / "release.json").write_text(content.release.to_json(), encoding="utf-8")
    if content.answers:
        _write_answers(place, content)
    if remarks := content.caveats + content.units:
        (place / "notes.txt").write_text("\n".join(remarks) + "\n", encoding="utf-8")
    if content.dates:
        (place / DATES).write_text(write_dates(content.dates), encoding="utf-8")
    if not content.summary:
        _write_matrix(place, content)
    names = sorted(path.name for path in place.iterdir())
    (place / "report.html").write_text(render_release(content, files=names), encoding="utf-8")
    return ["report.html", *names]


def _write_matrix(place: Path, content: ReportContent) -> None:
    np.save(place / "matrix.npy", content.matrix)
    _write_csv(place / "matrix.csv", content.columns, content.row_names, content.matrix)
    _write_parquet(place / "matrix.parquet", content)
    (place / "matrix.svg").write_text(draw_matrix(content), encoding="utf-8")
    if content.std is not None:
        same = has_equal_rows(content.std)
        rows, std = (None, content.std[:1]) if same else (content.row_names, content.std)
        _write_csv(place / "std.csv", content.columns, rows, std)
        (place / "std.svg").write_text(draw_std(content), encoding="utf-8")
    if content.mean is not None:
        table = np.concatenate([content.mean.value, content.mean.std], axis=1)
        _write_csv(place / "mean.csv", ("mean", "std"), content.feature_names, table)


def _write_answers(place: Path, content: ReportContent) -> None:
    """One CSV file for each kind of answer, and a picture of the correlations."""
    files: dict[str, list[Answer]] = {}
    for answer in content.answers:
        files.setdefault(answer.name, []).append(answer)
    for name, answers in files.items():
        with (place / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(_list_lines(answers, content.mechanism.query))
    if "correlation" in files and len(files["correlation"][0].estimate.rows) > 1:
        (place / "correlation.svg").write_text(draw_correlation(files["correlation"][0].estimate), encoding="utf-8")


def _list_lines(answers: Sequence[Answer], query: Any) -> Iterator[list[Any]]:
    """Lines of a CSV file with one number and its error bar each; empty, with a note, where noise hides it."""
    by = getattr(query, "by", ())
    yield [*map(quote_formula, by), "table", "row", "column", "value", "std", "note"]
    for answer in answers:
        title, own = quote_formula(answer.title), [quote_formula(level) for level in answer.group] or [""] * len(by)
        for i, entry in list_entries(answer.estimate):
            group = map(quote_formula, query.group_levels[i]) if answer.name == "groups" else own
            yield [*group, title, *entry]


def rehearse_folder(content: ReportContent, folder: str | os.PathLike[str]) -> None:
    """Write the files of a made-up release and remove them again; raises what writing a release would raise."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        write_folder(content, place)


def _write_csv(path: Path, columns: Sequence[str], rows: Sequence[str] | None, values: Floats) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        header = [quote_formula(name) for name in columns]
        writer.writerow(["", *header] if rows is not None else header)
        body: Iterable[list[Any]] = (blank_hidden(values[i].tolist()) for i in range(len(values)))
        if rows is not None:
            body = ([quote_formula(name), *line] for name, line in zip(rows, body, strict=True))
        writer.writerows(body)


def _write_parquet(path: Path, content: ReportContent) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return
    columns = [pa.array(np.ascontiguousarray(column)) for column in content.matrix.T]
    names = list(content.columns)
    if content.row_names is not None:
        columns.insert(0, pa.array(content.row_names))
        names.insert(0, "row" if "row" not in names else "row names")
    with path.open("wb") as file:  # a path would have to be in UTF-8
        pq.write_table(pa.Table.from_arrays(columns, names=names), file)
