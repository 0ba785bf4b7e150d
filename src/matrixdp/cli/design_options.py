"""From what was asked for on the command line to a query and a design. Looks at no data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.cli.private_inputs import read_numbers
from matrixdp.cli.schema_file import Schema, read_schema
from matrixdp.design import Allocation, Design, make_design, optimal, uniform
from matrixdp.errors import DataError, ParameterError
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import (
    Adjacency,
    ContingencyTable,
    GramMatrix,
    Identity,
    Laplacian,
    MatrixQuery,
    Moments,
    SecondMoment,
)
from matrixdp.records.files import open_files
from matrixdp.types import Floats

GRAPHS = ("adjacency", "laplacian")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Options that a design is made from, as they were given."""

    schema: Path
    query: str
    epsilon: float
    delta: float
    records: int | None = None
    neighbours: str | None = None
    importance: str | None = None
    directions: str = "standard"
    directions_share: float = 0.2
    calibration: str = "exact"
    cells: str | None = None
    points: Path | None = None
    kernel: str = "gaussian"
    bandwidth: float = 1.0

    @property
    def privacy(self) -> Privacy:
        """The whole budget."""
        return Privacy(self.epsilon, self.delta)

    @property
    def learned(self) -> bool:
        """Whether directions are to be learned from the data, for a share of the budget."""
        return self.directions == "learned"

    @property
    def kind(self) -> str:
        """What is read off the release."""
        return self.query if self.query in ("covariance", "correlation") else "matrix"

    def cell_columns(self) -> tuple[str, str]:
        """The two columns of a table of counts."""
        names = [name.strip() for name in (self.cells or "").split(",")]
        if len(names) != 2 or not all(names):
            raise ParameterError("--cells must name two columns, as in --cells smoker,outcome, for --query counts.")
        return names[0], names[1]


def require_records(asked: Asked, schema: Schema, *, counted: int | None = None) -> int:
    """The public number of records: given, written in the schema, or, where it is public, counted."""
    records = asked.records or schema.records
    if records is not None:
        return records
    if counted is None:
        raise ParameterError("--records must be given, or records in the schema: the public number of records.")
    if asked.neighbours == Neighbours.ADD_REMOVE:
        raise ParameterError(
            "--records must be given for add-remove neighbours, for which the true number is private: a public "
            "figure near it."
        )
    return counted


def make_query(asked: Asked, schema: Schema, records: int | None) -> MatrixQuery:
    """The query that the options name."""
    neighbours = Neighbours.parse(asked.neighbours or ("add-remove" if asked.query in GRAPHS else "replace"))
    if asked.query in GRAPHS:
        if schema.graph is None:
            raise ParameterError(f"{schema.path}: a graph needs [graph] with its public nodes.")
        kind = Adjacency if asked.query == "adjacency" else Laplacian
        nodes, weight = schema.graph.nodes, schema.graph.weight
        return kind(len(nodes), weight, node_names=nodes, neighbours=neighbours)
    assert records is not None
    if asked.query == "counts":
        rows, columns = (schema.categories(name) for name in asked.cell_columns())
        return ContingencyTable(rows, columns, records, neighbours=neighbours)
    bounds = schema.bounds()
    if asked.query == "gram":
        points = None if asked.points is None else _read_points(asked.points, bounds.names or ())
        return GramMatrix(
            bounds, records, points, kernel=asked.kernel, bandwidth=asked.bandwidth, neighbours=neighbours
        )
    if asked.query == "second-moment":
        return SecondMoment(bounds, records, neighbours=neighbours)
    if asked.query == "identity":
        return Identity(bounds, records, neighbours=neighbours)
    return Moments(bounds, records, neighbours=neighbours)


def make_asked_design(asked: Asked, query: MatrixQuery, directions: Floats | None = None) -> Design:
    """The design; `directions` are those that were learned, if any were."""
    share = 1 - asked.directions_share if asked.learned else 1.0
    if asked.directions not in ("standard", "learned"):
        directions = read_matrix(Path(asked.directions), "directions")
    allocation = parse_importance(asked.importance, query, directions)
    return make_design(
        query,
        asked.privacy,
        allocation=allocation,
        directions=directions,
        calibration=asked.calibration,
        share=share,
    )


def parse_importance(text: str | None, query: MatrixQuery, directions: Floats | None) -> Allocation:
    """``alt=4,bmi=2``: how much the squared error of a feature, relative to its range, counts; 1 for the others."""
    if text is None:
        return uniform()
    names = query.names if directions is None and query.names else tuple(map(str, range(query.features)))
    weights = np.ones(query.features)
    for part in text.split(","):
        name, mark, value = part.rpartition("=")
        name = name.strip()
        if not mark or name not in names:
            known = ", ".join(names[:20])
            raise ParameterError(
                f"--importance must be NAME=NUMBER,... with names among {known}; got {part!r} instead."
            )
        try:
            weights[names.index(name)] = float(value)
        except ValueError:
            raise ParameterError(f"--importance of {name} must be a number, got {value!r} instead.") from None
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ParameterError("--importance must be positive and finite for every feature.")
    return optimal(weights / query.extent(directions) ** 2)


def read_matrix(path: Path, option: str) -> Floats:
    """A public matrix in a NPY file, or in a CSV file without names."""
    try:
        if path.suffix.lower() == ".npy":
            return np.asarray(np.load(path, allow_pickle=False), np.float64)
        return np.loadtxt(path, delimiter=",", ndmin=2, dtype=np.float64)
    except OSError as error:
        raise ParameterError(f"--{option}: {path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, TypeError):
        raise ParameterError(f"--{option}: {path} must be a NPY file, or a CSV file of numbers alone.") from None


def _read_points(path: Path, names: Sequence[str]) -> Any:
    """Public points: a table with the bounds' columns, or a matrix in a NPY file."""
    if path.suffix.lower() == ".npy":
        return read_matrix(path, "points")
    try:
        return read_numbers(open_files(path), names)
    except DataError as error:
        raise ParameterError(f"--points: {error}") from None


def load_schema(asked: Asked) -> Schema:
    """The schema that was asked for."""
    return read_schema(asked.schema)
