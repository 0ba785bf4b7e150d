"""What one question about a table would cost alone: how much less noise its answer would have in a release of its own.

Everything follows from designs; no data are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.answers.cross_tables import cross_table
from matrixdp.answers.tables import correlation_table, means_by
from matrixdp.design import make_design
from matrixdp.design.design import Design
from matrixdp.domain.columns import Columns
from matrixdp.queries import ContingencyTable, TableMoments
from matrixdp.types import Floats


@dataclass(frozen=True)
class SingleQuestion:
    """A question, and the noise of its answer relative to asking it alone.

    Attributes
    ----------
    title : str
    ratio : float
        Standard deviation of the noise in the release of all answers over that in a release for this question alone,
        with the same guarantee.
    """

    title: str
    ratio: float


def compare_questions(design: Design) -> tuple[SingleQuestion, ...]:
    """One question of each kind, with the first columns that it can be asked of.

    For numbers that fill their bounds evenly, and levels and groups of equal size.

    Examples
    --------
    >>> from matrixdp import Category, Number, Privacy, YesNo
    >>> ward = Category("ward", ["north", "south", "west"])
    >>> columns = Columns([Number("age", 0, 120), Number("bmi", 10, 60), ward, YesNo("smoker")])
    >>> design = make_design(TableMoments(columns, records=10_000), Privacy(1, 1e-6))
    >>> [question.title for question in compare_questions(design)]
    ['means of age by ward', 'the table ward x smoker', 'the correlation of age and bmi']
    """
    return tuple(_compare(design))


def _compare(design: Design) -> Iterator[SingleQuestion]:
    query: Any = design.query
    even, numbers, categories = make_even_moments(query), query.used.numbers, query.used.categories
    groups = [query.columns.category(name) for name in query.by] or list(categories)
    with np.errstate(all="ignore"):
        if numbers and groups:
            number, by = numbers[0], groups[0]
            joint = means_by(even, design, by.name)
            best_options = {} if by.missing else {"by": [by.name], "mean_share": 0.5}
            alone = _design_alone(design, [number, by], **best_options)
            best = means_by(make_even_moments(alone.query), alone, by.name)
            place = joint.columns.index(number.name)
            yield SingleQuestion(f"means of {number.name} by {by.name}", float(joint.std[0, place] / best.std[0, 1]))
        if len(categories) > 1:
            one, other = categories[:2]
            joint = cross_table(even, design, one.name, other.name)
            table = ContingencyTable(one.level_names, other.level_names, query.records, **_who_changes(query))
            counts = make_design(table, design.privacy)
            title = f"the table {one.name} x {other.name}"
            yield SingleQuestion(title, float(joint.std[0, 0] * query.records / counts.std[0, 0]))
        if len(numbers) > 1:
            alone = _design_alone(design, list(numbers[:2]))
            joint = correlation_table(even, design)
            best = correlation_table(make_even_moments(alone.query), alone)
            title = f"the correlation of {numbers[0].name} and {numbers[1].name}"
            yield SingleQuestion(title, float(joint.std[0, 1] / best.std[0, 1]))


def _design_alone(design: Design, columns: list[Any], **options: Any) -> Design:
    query: Any = design.query
    alone = TableMoments(Columns(tuple(columns)), query.records, **_who_changes(query), **options)
    return make_design(alone, design.privacy)


def _who_changes(query: Any) -> dict[str, Any]:
    """What neighbours differ in, the same in all releases that are compared."""
    return {"neighbours": query.neighbours, "person": query.person}


def make_even_moments(query: Any) -> Floats:
    """The moments of a table of which nothing is missing, with even numbers, levels and groups, all independent."""
    mean = np.zeros(query.layout.size)
    mean[0] = 1.0
    for place in query.places.values():
        if place.levels:
            mean[place.value : place.value + len(place.levels)] = 1 / len(place.levels)
        else:
            mean[place.observed] = 1.0
    moments = np.multiply.outer(mean, mean)
    for name, place in query.places.items():
        if place.levels:
            levels = slice(place.value, place.value + len(place.levels))
            moments[levels, levels] = np.diag(mean[levels])
        else:
            number = query.columns.number(name)
            moments[place.value, place.value] = ((number.upper - number.lower) / 2) ** 2 / 3
    return np.tile(moments / query.groups, (query.groups, 1))
