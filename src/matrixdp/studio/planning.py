"""What a request would cost, and whether a release can be made for it at all. Reads no data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from matrixdp.adaptive.method import MethodChoice
from matrixdp.cli.actions.design_options import build_design, build_query, find_records
from matrixdp.cli.actions.method import choose_method_for, find_bounds
from matrixdp.cli.actions.person_options import find_person
from matrixdp.design import Design
from matrixdp.domain.schema import Schema
from matrixdp.errors import ParameterError
from matrixdp.ledger import Event, Gaussian
from matrixdp.privacy import Neighbours, Unit
from matrixdp.queries import Moments
from matrixdp.studio.spec import ReleaseSpec

_MOST_ENTRIES = 10**6  # of a release that the ledger stores, from which it is read again after a fault


@dataclass(frozen=True)
class ReleasePlan:
    """The public facts of a release that was asked for.

    Attributes
    ----------
    event : Event
        What the ledger is charged with, in all.
    neighbours : Neighbours
    unit : Unit
        What is protected.
    records : int or None
        Public number of records; None for a graph.
    choice : MethodChoice or None
        The method, and why; None for a query that has only one.
    design : Design or None
        Of a plain release; with standard directions, where they are to be learned. None for an adaptive fit.
    public_number : bool
        Whether the number of records is public; where it is private, `records` is an estimate of it.
    """

    event: Event
    neighbours: Neighbours
    unit: Unit
    records: int | None
    choice: MethodChoice | None
    design: Design | None
    public_number: bool


def plan_release(spec: ReleaseSpec, schema: Schema) -> ReleasePlan:
    """The plan of a request, or a `ParameterError` that says why no release can be made for it."""
    options = spec.to_design_options(Path(schema.path.name))
    records = find_records(options, schema)
    choice = choose_method_for(options, schema, records, spec.missing)
    whole = Gaussian(options.privacy.mu)
    if choice is not None and choice.method == "adaptive":
        assert records is not None  # only graphs have none
        neighbours = Neighbours.parse(options.neighbours or Neighbours.REPLACE)
        person = find_person(options, schema)
        query = Moments(find_bounds(options, schema), records, neighbours=neighbours, person=person)
        return ReleasePlan(whole, neighbours, query.protected_unit, records, choice, None, query.public_number)
    made = build_query(options, schema, records)
    height, width = made.shape
    if height * width > _MOST_ENTRIES:
        raise ParameterError(
            f"query must have at most {_MOST_ENTRIES:,} entries, got {height * width:,} instead. Larger ones are "
            "released with the command line: matrixdp release"
        )
    if options.learned:
        design = build_design(replace(options, directions="standard"), made)
        return ReleasePlan(whole, made.neighbours, made.protected_unit, records, choice, design, made.public_number)
    design = build_design(options, made)
    unit, public = made.protected_unit, made.public_number
    return ReleasePlan(design.event, made.neighbours, unit, records, choice, design, public)
