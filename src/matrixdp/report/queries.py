"""Sentences about queries for reports: what is released, and what two neighbours differ in.

Each table has the words of the library's own queries by their type; a query of any other class gets general words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matrixdp.privacy import Neighbours
from matrixdp.queries import ContingencyTable, GramMatrix, Identity, MatrixQuery, Moments, TableMoments

_SAME_ROWS = (
    "tables of the same rows that differ in the values of all rows of one person (replace-one); the number of rows is "
    "public, and which of them belong to the same person is not protected"
)
# By unit, and whether neighbours are 'replace': completes "can hardly tell whether ...".
_UNCERTAINTY = {
    ("record", True): "any one record is as it is or completely different",
    ("record", False): "any one record is in the data or not",
    ("person", True): "any one person has the rows that they have or completely different ones",
    ("person", False): "any one person is in the data, with all their rows, or not",
    ("edge", True): "any one edge is in the graph or not",
    ("edge", False): "any one edge is in the graph or not",
    ("node", True): "any one node has the edges that it has or completely different ones",
    ("node", False): "any one node has all its edges or none",
}
_ADJACENCY = {
    ("record", True): "data sets of the same size that differ in one record (replace-one); the number of records is "
    "public",
    ("record", False): "data sets of which one has one record more (add-remove); the number of records is private, too",
    ("person", True): "data sets of equally many people that differ in all rows of one (replace-one); {public}",
    ("person", False): "data sets of which one has one person more (add-remove); the number of people is private, too",
    ("edge", True): "graphs on the same nodes that differ in one edge (it comes, goes or changes its weight)",
    ("edge", False): "graphs on the same nodes that differ in one edge (it comes, goes or changes its weight)",
    ("node", True): "graphs on the same nodes, which are public, that differ in the edges of one node (they are "
    "replaced by others)",
    ("node", False): "graphs on the same nodes, which are public, that differ in the edges of one node (they all come "
    "or go)",
}


def describe_answer(query: MatrixQuery, records: str) -> str:
    """Return one sentence on what is released; `records` says of how many records, such as " of 500 records"."""
    for kind, describe in _ANSWERS.items():
        if isinstance(query, kind):
            return describe(query, records)
    return f"The {query.title}{records}, {query.shape[0]:,} x {query.shape[1]:,}."


def describe_uncertainty(query: MatrixQuery) -> str:
    """Return what an adversary cannot tell, to complete "can hardly tell whether ..."."""
    return _UNCERTAINTY[query.unit, query.neighbours is Neighbours.REPLACE]


def describe_adjacency(query: MatrixQuery) -> str:
    """Return the pairs of data sets that the guarantee compares, in words."""
    if query.person is not None and isinstance(query, Identity | GramMatrix):
        return _SAME_ROWS
    public = "the number of people is public" if query.public_number else "the number of rows is private"
    return _ADJACENCY[query.unit, query.neighbours is Neighbours.REPLACE].format(public=public)


def _describe_counts(query: ContingencyTable, records: str) -> str:
    return f"A {query.shape[0]:,} x {query.shape[1]:,} table of counts{records}."


def _describe_moments(query: Moments, records: str) -> str:
    return (
        f"The mean and second moment{records} about the middle of their bounds, {query.shape[0]:,} x "
        f"{query.shape[1]:,}: the first row has the means, the rest the second moments."
    )


def _describe_table(query: TableMoments, records: str) -> str:
    counts = {"numbers": len(query.used.numbers), "categories": len(query.used.categories)}
    parts = [f"{count:,} column{'s' * (count > 1)} of {kind}" for kind, count in counts.items() if count]
    groups = f", for each of {query.groups:,} groups by {' and '.join(query.by)}" if query.by else ""
    return f"The moments{records} of {' and '.join(parts)}{groups}."


_ANSWERS: dict[type[MatrixQuery], Callable[[Any, str], str]] = {
    ContingencyTable: _describe_counts,
    Moments: _describe_moments,
    TableMoments: _describe_table,
}
