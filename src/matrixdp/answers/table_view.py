"""The moments of some groups of a table with the law of their noise, from which answers about tables are computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from matrixdp.answers.consistent import ConsistentMoments, Gradient
from matrixdp.design.design import Design
from matrixdp.errors import ParameterError, show
from matrixdp.noise.table_noise import Place, TableNoise
from matrixdp.queries import TableMoments
from matrixdp.types import Floats

LEAST_SIZE = 4.0  # a share of records below so many standard deviations of its noise is too small to divide by


@dataclass(frozen=True, eq=False)
class TableView:
    """The noisy moment matrix of some groups of a table together, and the law of its noise.

    Attributes
    ----------
    matrix : float64 array of shape (p, p)
    design : Design
    merged : int
        Number of groups that were added up: each has the same noise.
    size_kept : float
        What is left of the variance of the noise in the share of the records, entry (0, 0), where the shares of all
        groups sum to a public number.
    """

    matrix: Floats
    design: Design
    merged: int = 1
    size_kept: float = 1.0

    @property
    def query(self) -> Any:
        """The query, which describes the columns."""
        return self.design.query

    @property
    def places(self) -> Mapping[str, Place]:
        """Where each column is in z."""
        places: Mapping[str, Place] = self.query.places
        return places

    def middle(self, column: str) -> float:
        """Middle of the bounds of a number; 0 for a category."""
        bounds = self.query.columns.bounds
        if self._place(column).levels or bounds is None:
            return 0.0
        return float(bounds.midpoint[bounds.index(column)])

    @cached_property
    def structure(self) -> TableNoise:
        """The noise of one group."""
        return replace(_noise_of(self.design), groups=1)

    @cached_property
    def consistent(self) -> ConsistentMoments:
        """How the noise is left after least squares."""
        return ConsistentMoments(self.structure)

    def std(self, gradient: Gradient) -> float:
        """Standard deviation of the noise in a function of the entries, to first order.

        Parameters
        ----------
        gradient : sequence of (row, column, derivative)
            Entries that the function depends on, and its derivatives.
        """
        size_variance = self.consistent.size_variance * self.size_kept
        return float(np.sqrt(self.consistent.variance(gradient, size_variance) * self.merged))

    def draw(self, rng: np.random.Generator) -> Floats:
        """Noise of the same law as that in the matrix, of shape (p, p)."""
        drawn = self.structure.combine(self.design.noise, rng.standard_normal(self.structure.count))
        size = float(self.consistent.sizes(drawn[None])[0]) * np.sqrt(self.size_kept)
        return np.asarray(self.consistent.adjust(drawn, size) * np.sqrt(self.merged))

    def variance(self, i: int, j: int) -> float:
        """Of the noise in one entry."""
        return self.std([(i, j, 1.0)]) ** 2

    def stands_out(self, i: int, j: int) -> bool:
        """Whether a share of records is large enough, beside its noise, to divide by."""
        return bool(self.matrix[i, j] > LEAST_SIZE * self.std([(i, j, 1.0)]))

    def ratio(self, top: tuple[int, int], bottom: tuple[int, int]) -> tuple[float, float]:
        """Value and standard deviation of one entry over another, NaN where the latter is too small."""
        if not self.stands_out(*bottom):
            return np.nan, np.nan
        size = self.matrix[bottom]
        value = self.matrix[top] / size
        return float(value), self.std([(*top, 1 / size), (*bottom, -value / size)])

    def number(self, name: str) -> Place:
        """Place of a number, or a `ParameterError`."""
        place = self._place(name)
        if place.levels:
            raise ParameterError(f"column {name!r} must hold numbers, and it is a category.")
        return place

    def category(self, name: str) -> Place:
        """Place of a category, or a `ParameterError`."""
        place = self._place(name)
        if not place.levels:
            raise ParameterError(f"column {name!r} must be a category, and it holds numbers.")
        return place

    def _place(self, name: str) -> Place:
        if name in self.query.by:
            raise ParameterError(
                f"column {name!r} groups the release, so it cannot be used here: ask for one group at a time, with "
                f"group={{{name!r}: level}} (--group {name}=LEVEL)."
            )
        if name not in self.places:
            known = ", ".join([*self.places, *self.query.by][:20])
            raise ParameterError(f"a column must be one of {known}, got {show(name)} instead.")
        return self.places[name]

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the numbers."""
        return tuple(name for name, place in self.places.items() if not place.levels)


def select_groups(matrix: Floats, design: Design, group: Any = None) -> TableView:
    """The moments of one group, or of all groups together.

    They are adjusted by least squares: levels of a category add up, and the shares of all groups sum to one where the
    number of all records is public. The shares have independent noise of the same variance, so each loses the same, and
    m of G groups together keep ``1 - m/G`` of their variance.

    Parameters
    ----------
    group : str, sequence of str, or dict, optional
        The levels of the columns of `by`, or those of some of them as ``{column: level}``. By default all groups.
    """
    query = table_query(design)
    chosen = _chosen(query, group)
    p = query.layout.size
    stacked = matrix.reshape(-1, p, p)
    consistent = ConsistentMoments(_noise_of(design))
    sizes, kept = consistent.sizes(stacked), 1.0
    size = float(sizes[chosen].sum())
    if query.public_number:
        part = len(chosen) / query.groups
        kept = 1 - part
        size = size - part * (float(sizes.sum()) - 1) if kept else 1.0
    return TableView(consistent.adjust(stacked[chosen].sum(axis=0), size), design, len(chosen), kept)


def _noise_of(design: Design) -> TableNoise:
    if not isinstance(design.structure, TableNoise):
        raise ParameterError("error bars of a table need noise that was made for it, not isotropic noise.")
    return design.structure


def table_query(design: Design) -> TableMoments:
    """The query of a table, or a `ParameterError` if the design is for something else."""
    if not isinstance(design.query, TableMoments):
        raise ParameterError(
            f"tables and means by level follow from TableMoments, got {type(design.query).__name__} instead."
        )
    return design.query


def read_other_groups(group: Any, by: str) -> dict[str, Any]:
    """The levels in `group`, which must be of other columns than `by`, all of whose levels are in the answer."""
    given = {} if group is None else group
    if not isinstance(given, dict) or by in given:
        raise ParameterError(
            f"group must name levels of other columns than {by!r}, as in group={{column: level}} (--group "
            f"COLUMN=LEVEL): the answer has all levels of {by!r}."
        )
    return given


def _chosen(query: Any, group: Any) -> list[int]:
    """Numbers of the groups that `group` means."""
    if group is None:
        return list(range(query.groups))
    if isinstance(group, dict):
        wanted = {name: str(level) for name, level in group.items()}
    else:
        levels = (group,) if isinstance(group, str | int) else tuple(group)
        if len(levels) != len(query.by):
            raise ParameterError(f"group must be {len(query.by)} levels, of {', '.join(query.by) or 'no column'}.")
        wanted = dict(zip(query.by, map(str, levels), strict=True))
    for name, level in wanted.items():
        if name not in query.by:
            raise ParameterError(f"group must be of columns among {', '.join(query.by) or 'none'}, got {show(name)}.")
        known = query.columns.category(name).level_names
        if level not in known:
            raise ParameterError(f"group of {name!r} must be one of {', '.join(known[:20])}, got {show(level)}.")
    return [
        number
        for number, found in enumerate(query.group_levels)
        if all(dict(zip(query.by, found, strict=True))[name] == level for name, level in wanted.items())
    ]
