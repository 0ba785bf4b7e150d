"""Simulated tables for data sets that cannot be obtained, by a Gaussian copula.

The quantiles of each column and the correlations of their normal scores are in ``summaries.json``. Records are
independent draws, not measurements.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from matrixdp.datasets.catalogue import CATALOGUE
from matrixdp.datasets.table import Table
from matrixdp.errors import ParameterError
from matrixdp.types import Floats

LEVELS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)


def simulate_table(name: str) -> Table:
    """A table with about the same marginal distributions and correlations as a data set, marked as simulated.

    For 'movement' it has the 2,021 records of the paper's experiment, as one sequence.

    Parameters
    ----------
    name : 'liver', 'movement' or 'ctg'

    Examples
    --------
    >>> simulate_table("ctg").simulated
    True
    """
    if name not in CATALOGUE:
        raise ParameterError(f"name must be one of {', '.join(CATALOGUE)}, got {name!r} instead.")
    source, summary = CATALOGUE[name], _summaries()[name]
    columns = tuple(summary["columns"])
    scores = _scores(np.array(summary["correlations"]), int(summary["records"]))
    drawn = {}
    for j, column in enumerate(columns):
        level = ndtr(scores[:, j])
        level = (level - level.min()) / (level.max() - level.min())  # the ends of the range occur, as in the data
        values = np.interp(level, LEVELS, summary["quantiles"][j])
        drawn[column] = values if column in source.floats else np.rint(values)
    if name == "movement":
        count = np.arange(int(summary["records"]))
        drawn |= {"sequence_id": np.ones(count.size), "t": count, "target": np.ones(count.size)}
    return Table(name, source.columns, np.column_stack([drawn[c] for c in source.columns]).astype(float), "simulated")


def summarise(columns: tuple[str, ...], values: Floats) -> dict[str, Any]:
    """Summary statistics of a table, in the format of ``summaries.json``.

    Examples
    --------
    >>> summarise(("a",), np.arange(11.0)[:, None])["quantiles"][0][5]
    5.0
    """
    ranks = values.argsort(axis=0, kind="stable").argsort(axis=0) + 0.5
    correlations = np.atleast_2d(np.corrcoef(ndtri(ranks / len(values)).T))
    return {
        "columns": list(columns),
        "records": len(values),
        "quantiles": [[float(f"{q:.6g}") for q in np.quantile(column, LEVELS)] for column in values.T],
        "correlations": [[round(float(c), 3) for c in row] for row in correlations],
    }


def _scores(correlations: Floats, records: int) -> Floats:
    """Normal draws with these correlations, of shape (records, columns)."""
    values, vectors = np.linalg.eigh(correlations)  # rounded correlations need not be positive definite
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = np.random.default_rng(0).standard_normal((records, len(correlations))) @ factor.T
    return np.asarray(drawn / np.sqrt(np.square(factor).sum(axis=1)))


@cache
def _summaries() -> dict[str, Any]:
    text = resources.files("matrixdp.datasets").joinpath("summaries.json").read_text("utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
