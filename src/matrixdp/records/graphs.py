"""Input files that are not blocks of records: graphs, pairs of categories, public points and directions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.cli.actions.schema_file import Graph, Schema
from matrixdp.errors import DataError, ParameterError
from matrixdp.records import read_array
from matrixdp.records.arrays import load_npy
from matrixdp.records.files import Files, open_files
from matrixdp.records.stored import StoredRecords
from matrixdp.records.threads import Threads
from matrixdp.types import Floats


def read_graph(source: Files, graph: Graph) -> Floats:
    """Adjacency matrix of shape (nodes, nodes), from a list of edges or from the matrix itself.

    A table with columns `source` and `target`, and optionally `weight`, is a list of edges; an edge may be listed in
    either direction, or in both with the same weight. Any other table must have one column for each node, by its name,
    and one row for each node, in the order of the schema.
    """
    if {"source", "target"} <= set(source.column_names()):
        return _read_edges(source, graph)
    matrix = read_numbers(source, graph.nodes)
    if matrix.shape[0] != len(graph.nodes):
        raise DataError(f"{source.place} must have one row for each of the {len(graph.nodes)} nodes of the schema.")
    return matrix


def read_numbers(source: Files, columns: Sequence[str]) -> Floats:
    """Numeric columns of a table, of shape (records, columns)."""
    records = StoredRecords(source, Threads()).select(columns)
    return read_array(records, len(columns), columns).astype(np.float64)


def _read_edges(source: Files, graph: Graph) -> Floats:
    numbers = {name: i for i, name in enumerate(graph.nodes)}
    ends = source.read_columns(["source", "target"], as_text=True)
    weights = np.ones(len(ends[0]))
    if "weight" in source.column_names():
        weights = read_numbers(source, ["weight"])[:, 0]
    matrix = np.zeros((len(graph.nodes), len(graph.nodes)))
    seen = np.zeros(matrix.shape, bool)
    for start, end, weight in zip(*ends, weights, strict=True):
        i, j = (numbers.get(str(node)) for node in (start, end))
        if i is None or j is None:
            raise DataError(f"{source.place} has an edge at a node that is not in the schema. Correct one of them.")
        if i == j:
            raise DataError(f"{source.place} has an edge from a node to itself. Remove such edges.")
        if seen[i, j] and matrix[i, j] != weight:
            raise DataError(f"{source.place} lists an edge twice with different weights. Add them up first.")
        matrix[i, j] = matrix[j, i] = weight
        seen[i, j] = seen[j, i] = True
    return matrix


def read_pairs(source: Files, columns: tuple[str, str], schema: Schema) -> list[tuple[Any, Any]]:
    """Pairs of categories, one for each record; values are compared with the categories as text."""
    values = []
    for name, column in zip(columns, source.read_columns(columns, as_text=True), strict=True):
        categories = {str(category): category for category in schema.pair_levels(name)}
        try:
            values.append([categories[str(value)] for value in column])
        except KeyError:
            raise DataError(
                f"{source.place}: column {name!r} has a value that is not among its categories in the schema. Add a "
                "category for it, such as 'other', or map it to one."
            ) from None
    return list(zip(*values, strict=True))


def read_points(path: Path, names: Sequence[str]) -> Floats:
    """Public points, of shape (points, features): a table with the columns `names`, or a matrix in a NPY file."""
    if path.suffix.lower() == ".npy":
        return read_matrix(path, "points")
    try:
        return read_numbers(open_files(path), names)
    except DataError as error:
        raise ParameterError(f"--points: {error}") from None


def read_matrix(path: Path, option: str) -> Floats:
    """A public matrix in a NPY file, or in a CSV file without a header; `option` is the one that named the file."""
    try:
        if path.suffix.lower() == ".npy":
            return np.array(load_npy(path), np.float64)
        return np.loadtxt(path, delimiter=",", ndmin=2, dtype=np.float64)
    except OSError as error:
        raise ParameterError(f"--{option}: {path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, TypeError, OverflowError):
        raise ParameterError(f"--{option}: {path} must be a NPY file, or a CSV file of numbers only.") from None
