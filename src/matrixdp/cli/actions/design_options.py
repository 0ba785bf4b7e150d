"""From the options of the command line to a query and a design. Reads no private data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from matrixdp.checks import check_integer, check_number
from matrixdp.cli.actions.input_files import read_matrix, read_points
from matrixdp.cli.actions.person_options import ROW_PER_RECORD, counts_people, find_person, require_number
from matrixdp.cli.actions.table_query import (
    MATRICES,
    MODELS,
    SUMMARIES,
    build_table_query,
    choose_numbers,
    is_table_query,
    require_complete,
    split_names,
)
from matrixdp.cli.query_options import QueryOptions
from matrixdp.design import Allocation, Design, make_design, optimal
from matrixdp.domain.schema import MAX_SIDE, Schema
from matrixdp.errors import MatrixDPError, ParameterError
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
    TableMoments,
)
from matrixdp.types import Floats

GRAPHS: dict[str, type[Adjacency | Laplacian]] = {"adjacency": Adjacency, "laplacian": Laplacian}
TABLES: dict[str, type[Moments | SecondMoment | Identity]] = {
    "moments": Moments,
    "covariance": Moments,
    "correlation": Moments,
    "second-moment": SecondMoment,
    "identity": Identity,
}
_LARGEST_WEIGHT = 1e12
_LEAST_SHARE = 1e-6


@dataclass(frozen=True, kw_only=True)
class DesignOptions(QueryOptions):
    """The options that determine a design, as they were given."""

    schema: Path
    points: Path | None = None

    @cached_property
    def privacy(self) -> Privacy:
        """The whole budget."""
        return Privacy(self.epsilon, self.delta)

    @property
    def learned(self) -> bool:
        """Whether directions are learned from the data, for a share of the budget."""
        return self.directions == "learned"

    @property
    def kind(self) -> str:
        """What the report shows: the released 'matrix', or what the query names if it follows from the matrix."""
        return self.query if self.query in (*MATRICES, *SUMMARIES, *MODELS) else "matrix"

    def list_aims(self) -> dict[str, str | list[str]]:
        """What is computed from the released matrix, by the names of the options; empty for the matrix itself."""
        if self.kind == "matrix":
            return {}
        aims = {"aim": self.query, "target": self.target, "on": split_names(self.on)}
        return {name: value for name, value in aims.items() if value is not None}

    def parse_cells(self) -> tuple[str, str]:
        """The two columns of a table of counts."""
        names = split_names(self.cells) or []
        if len(names) != 2 or not all(names) or names[0] == names[1]:
            raise ParameterError(
                f"--cells must name two different columns, as in --cells smoker,outcome, for --query {self.query}."
            )
        return names[0], names[1]


def find_records(options: DesignOptions, schema: Schema, count: Callable[[], int] | None = None) -> int | None:
    """Public number of records, from --records, the schema or, where it is public, `count()`; None for a graph."""
    if options.records is not None:
        check_integer(options.records, "records (--records)", at_least=1)
    if options.query in GRAPHS:
        return None
    records = schema.records if options.records is None else options.records
    if records is not None:
        return records
    if count is None:
        counted = "people" if counts_people(options, find_person(options, schema)) else "records"
        raise ParameterError(f"--records must be given, or records in the schema: the public number of {counted}.")
    require_number(options, find_person(options, schema))
    if options.neighbours == Neighbours.ADD_REMOVE:
        raise ParameterError(
            "--records must be given for add-remove neighbours: a public estimate of the number of records, since "
            "the true number is private."
        )
    return count()


def build_query(options: DesignOptions, schema: Schema, records: int | None) -> MatrixQuery:
    """The query that the options name."""
    default = Neighbours.ADD_REMOVE if options.query in GRAPHS else Neighbours.REPLACE
    neighbours = Neighbours.parse(options.neighbours or default)
    _refuse_unused(options)
    if options.query in GRAPHS:
        if schema.graph is None:
            raise ParameterError(f"{schema.path}: a graph needs [graph] with its public nodes.")
        find_person(options, schema)
        graph, nodes = schema.graph, schema.graph.nodes
        with refuse_extremes():
            return GRAPHS[options.query](
                len(nodes),
                graph.weight,
                node_names=nodes,
                neighbours=neighbours,
                unit=graph.unit,
                max_degree=graph.max_degree,
            )
    assert records is not None  # only graphs have none
    with refuse_extremes():
        if is_table_query(options, schema):
            return build_table_query(options, schema, records, neighbours)
        query = _build_record_query(options, schema, records, neighbours)
    height, width = query.shape
    if options.query not in ROW_PER_RECORD and max(height, width) > MAX_SIDE + 1:
        raise ParameterError(
            f"--query {options.query} must have at most {MAX_SIDE:,} rows and columns, got {max(height, width):,} "
            f"instead; the matrix is held in memory. Remove columns from {schema.path}."
        )
    return query


def _refuse_unused(options: DesignOptions) -> None:
    """Raise a `ParameterError` for --by and --columns where the query has no use for them."""
    grouped = (*SUMMARIES, *MATRICES)
    if options.by is not None and options.query not in grouped:
        raise ParameterError(f"--by must be left out for --query {options.query}; it is for {', '.join(grouped)}.")
    if options.columns is not None and (options.query in GRAPHS or options.query == "counts"):
        raise ParameterError(f"--columns must be left out for --query {options.query}.")


def _build_record_query(options: DesignOptions, schema: Schema, records: int, neighbours: Neighbours) -> MatrixQuery:
    person = find_person(options, schema)
    if options.query == "counts":
        rows, columns = (schema.pair_levels(name) for name in options.parse_cells())
        return ContingencyTable(rows, columns, records, neighbours=neighbours, person=person)
    chosen = choose_numbers(options, schema)
    require_complete(options, schema, chosen)
    bounds = schema.bounds(chosen)
    if options.query == "gram":
        points = None if options.points is None else read_points(options.points, bounds.names or ())
        return GramMatrix(
            bounds,
            records,
            points,
            kernel=options.kernel,
            bandwidth=options.bandwidth,
            neighbours=neighbours,
            person=person,
        )
    if options.kind != "matrix":
        return Moments.for_covariance(bounds, records, neighbours=neighbours, person=person)
    return TABLES[options.query](bounds, records, neighbours=neighbours, person=person)


def build_design(options: DesignOptions, query: MatrixQuery, learned: Floats | None = None) -> Design:
    """The design for a query; `learned` are the directions that were learned, if any."""
    if options.learned:
        check_number(
            options.directions_share, "share (--directions-share)", at_least=_LEAST_SHARE, at_most=1 - _LEAST_SHARE
        )
    if isinstance(query, TableMoments):
        return _build_table_design(options, query)
    given = options.directions not in ("standard", "learned")
    directions = read_matrix(Path(options.directions), "directions") if given else learned
    with refuse_extremes():
        return make_design(
            query,
            options.privacy,
            allocation=parse_importance(options.importance, query, directions),
            directions=directions,
            calibration=options.calibration,
            share=1 - options.directions_share if options.learned else 1.0,
        )


def _build_table_design(options: DesignOptions, query: MatrixQuery) -> Design:
    """The design for the moments of a table, whose noise follows from its columns."""
    for name, default in (("directions", "standard"), ("calibration", "exact")):
        if getattr(options, name) != default:
            raise ParameterError(
                f"--{name} must be {default!r} for --query {options.query} of this schema: the noise of a table "
                "follows from its columns. Use --importance to weigh them."
            )
    with refuse_extremes():
        return make_design(query, options.privacy)


@contextmanager
def refuse_extremes() -> Iterator[None]:
    """Raise a `ParameterError` where arithmetic fails; for queries, designs and reports that are made without data."""
    try:
        with np.errstate(all="ignore"):
            yield
    except MatrixDPError:
        raise
    except (ArithmeticError, ValueError) as error:
        raise ParameterError(
            "no design can be made with these options; one of them is too large or too small. Check --epsilon, "
            "--delta, --records, --importance, --directions-share and --bandwidth, and the bounds in the schema."
        ) from error


def parse_importance(text: str | None, query: MatrixQuery, directions: Floats | None) -> Allocation | None:
    """The allocation for ``alt=4,bmi=2``: weights of squared errors relative to the range, 1 for other features."""
    if text is None:
        return None
    names = query.names if directions is None and query.names else tuple(map(str, range(query.features)))
    positions = {name: i for i, name in enumerate(names)}
    weights = np.ones(query.features)
    for part in text.split(","):
        name, mark, value = part.rpartition("=")
        name = name.strip()
        if not mark or name not in positions:
            known = ", ".join(names[:20])
            raise ParameterError(
                f"--importance must be NAME=NUMBER,... with names among {known}; got {part!r} instead."
            )
        try:
            weights[positions[name]] = float(value)
        except ValueError:
            raise ParameterError(f"--importance of {name} must be a number, got {value!r} instead.") from None
    if not ((weights >= 1 / _LARGEST_WEIGHT) & (weights <= _LARGEST_WEIGHT)).all():
        raise ParameterError(
            f"--importance must be positive, from {1 / _LARGEST_WEIGHT:g} to {_LARGEST_WEIGHT:g}, for every feature."
        )
    return optimal(weights / query.extent(directions) ** 2)
