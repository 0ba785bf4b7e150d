"""Graphs and pairs of categories in files, read into memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from matrixdp.errors import DataError
from matrixdp.records.files import Files
from matrixdp.records.opening import Threads, read_array
from matrixdp.records.records import StoredRecords
from matrixdp.types import Floats


def read_graph(source: Files, nodes: Sequence[str]) -> Floats:
    """Adjacency matrix of shape (nodes, nodes), from a list of edges or from the matrix itself.

    A table with columns `source` and `target`, and optionally `weight`, is a list of edges; an edge may be listed in
    either direction, or in both with the same weight. Any other table must have one column for each node, by its name,
    and one row for each node, in the order of the schema.
    """
    if {"source", "target"} <= set(source.column_names()):
        return _read_edges(source, nodes)
    matrix = read_numbers(source, nodes)
    if matrix.shape[0] != len(nodes):
        raise DataError(f"{source.place} must have one row for each of the {len(nodes)} nodes of the schema.")
    return matrix


def read_numbers(source: Files, columns: Sequence[str]) -> Floats:
    """Numeric columns of a table, of shape (records, columns)."""
    records = StoredRecords(source, Threads()).select(columns)
    return read_array(records, len(columns), columns).astype(np.float64)


def _read_edges(source: Files, nodes: Sequence[str]) -> Floats:
    numbers = {name: i for i, name in enumerate(nodes)}
    ends = source.read_columns(["source", "target"], as_text=True)
    weights = np.ones(len(ends[0]))
    if "weight" in source.column_names():
        weights = read_numbers(source, ["weight"])[:, 0]
    matrix = np.zeros((len(nodes), len(nodes)))
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


def read_pairs(source: Files, levels: Mapping[str, Sequence[str | int]]) -> list[tuple[Any, ...]]:
    """Categories of several columns, one tuple for each record; values are compared with `levels` as text."""
    values = []
    for name, column in zip(levels, source.read_columns(list(levels), as_text=True), strict=True):
        categories = {str(category): category for category in levels[name]}
        try:
            values.append([categories[str(value)] for value in column])
        except KeyError:
            raise DataError(
                f"{source.place}: column {name!r} has a value that is not among its categories in the schema. Add a "
                "category for it, such as 'other', or map it to one."
            ) from None
    return list(zip(*values, strict=True))
