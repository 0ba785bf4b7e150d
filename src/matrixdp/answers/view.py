"""The moments that answers are read off, of all records or of groups, with the law of their noise.

A view holds a stack of matrices of shape (..., p, p): one release, the levels of a column of groups, or simulated
releases. All have noise of the same law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.noise_law import NoiseLaw, NoNoise, Places, SidesLaw, TableLaw
from matrixdp.design.design import Design
from matrixdp.errors import ParameterError, join_names, show
from matrixdp.noise.table_noise import Place, TableNoise
from matrixdp.queries import Moments, TableMoments
from matrixdp.types import Floats

LEAST_SIZE = 4.0  # a share of records below so many standard deviations of its noise is too small to divide by


@dataclass(frozen=True, eq=False)
class MomentView:
    """Moments of the vectors ``z = (1, columns)`` of records, of shape (..., p, p), with the law of their noise."""

    matrix: Floats
    query: Any
    law: NoiseLaw
    places: Mapping[str, Place]  # where each column is in z

    def read(self, i: Places, j: Places) -> Floats:
        """Entries of the moments, of shape (..., *entries)."""
        return np.asarray(self.matrix[..., i, j])

    def stands_out(self, i: Places, j: Places) -> NDArray[np.bool_]:
        """Which shares of records are large enough, beside their noise, to divide by."""
        return np.asarray(self.read(i, j) > LEAST_SIZE * self.law.entry_std(i, j))

    def without_noise(self) -> MomentView:
        """The same moments, taken to be exact."""
        return replace(self, law=NoNoise(self.law.size))

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Names of the numbers."""
        return tuple(name for name, place in self.places.items() if not place.levels)

    @cached_property
    def variables(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Coordinates of the values of the numbers, and of the indicators of whether they are there, of shape (n,)."""
        found = [(self.places[name].value, self.places[name].observed) for name in self.numbers]
        values, observed = np.array(found, np.intp).reshape(-1, 2).T
        return values, observed

    @cached_property
    def middles(self) -> Floats:
        """Middles of the bounds of the numbers, of shape (n,)."""
        return np.zeros(0) if self.query.number_bounds is None else np.asarray(self.query.number_bounds.midpoint)

    @cached_property
    def halfwidths(self) -> Floats:
        """Half the widths of the bounds of the numbers, of shape (n,)."""
        return np.zeros(0) if self.query.number_bounds is None else np.asarray(self.query.number_bounds.halfwidths)

    def levels(self, name: str) -> NDArray[np.intp]:
        """Coordinates of the levels of a category."""
        place = self.place(name)
        if not place.levels:
            raise ParameterError(f"column {name!r} must be a category, and it holds numbers.")
        return place.value + np.arange(len(place.levels))

    def place(self, name: str) -> Place:
        """Place of a column, or a `ParameterError`."""
        by = getattr(self.query, "by", ())
        if name in by:
            raise ParameterError(
                f"column {name!r} groups the release, so it cannot be used here: ask for one group at a time, with "
                f"group={{{name!r}: level}} (--group {name}=LEVEL)."
            )
        if name not in self.places:
            known = join_names([*self.places, *by][:20], ", ")
            raise ParameterError(f"a column must be one of {known}, got {show(name)} instead.")
        return self.places[name]


def view_moments(matrix: Floats, design: Design, group: Any = None, by: Sequence[str] = ()) -> MomentView:
    """The moments of one group, or of all groups together, adjusted by least squares so that levels add up.

    The shares of all groups sum to one where the number of all records is public; m of G groups together keep ``1 -
    m/G`` of the variance of their noise. `group` has the levels of the columns of `TableMoments.by`, or those of some
    of them as ``{column: level}``. There is one matrix for each level of the columns in `by`: the first axes.
    """
    query = design.query
    if isinstance(query, Moments):
        if group is not None:
            raise ParameterError("group must be left out: groups are those of TableMoments with by.", parameter="group")
        return MomentView(matrix, query, SidesLaw(design), query.places)
    if not isinstance(query, TableMoments):
        raise ParameterError(
            f"means and covariances follow from Moments or TableMoments, got {type(query).__name__} instead."
        )
    chosen = _parse_group(query, group, by)
    p, widths = query.layout.size, [len(query.columns.category(name).level_names) for name in query.by]
    stacked = matrix[: query.groups * p].reshape(*widths, p, p)  # without bins
    picked = stacked[tuple(chosen.get(name, slice(None)) for name in query.by)]
    rest = [name for name in query.by if name not in chosen]
    summed = picked.sum(axis=tuple(axis for axis, name in enumerate(rest) if name not in by))
    if len(by) > 1 and rest.index(by[0]) > rest.index(by[1]):
        summed = summed.swapaxes(0, 1)
    merged = picked.size // summed.size
    public = query.public_number
    part = merged / query.groups if public else 0.0
    law = _make_law(design, merged, 1 - part)
    sizes = law.sizes(summed)
    if public:
        sizes = sizes - part * (law.sizes(stacked).sum() - 1) if part < 1 else np.ones(())
    return MomentView(law.adjust(summed, sizes), query, law, query.places)


@lru_cache(maxsize=8)
def _make_law(design: Design, merged: int, size_kept: float) -> TableLaw:
    """The law of the noise in the moments of merged groups, which all answers of a release share."""
    if not isinstance(design.structure, TableNoise):
        raise ParameterError("error bars of a table need noise that was made for it, not isotropic noise.")
    return TableLaw(replace(design.structure, groups=1, bins=0), design.noise, merged, size_kept)


def table_query(design: Design) -> TableMoments:
    """The query of a table, or a `ParameterError` if the design is for something else."""
    if not isinstance(design.query, TableMoments):
        raise ParameterError(
            f"tables and means by level follow from TableMoments, got {type(design.query).__name__} instead."
        )
    return design.query


def _parse_group(query: TableMoments, group: Any, by: Sequence[str]) -> dict[str, int]:
    """The numbers of the levels in `group`, which must be of other columns than `by`, by column."""
    for name in by:
        if (group is not None and not isinstance(group, dict)) or name in (group or {}):
            raise ParameterError(
                f"group must name levels of other columns than {name!r}, as in group={{column: level}} (--group "
                f"COLUMN=LEVEL): the answer has all levels of {name!r}.",
                parameter="group",
            )
    if group is None:
        return {}
    if not isinstance(group, dict):
        levels = (group,) if isinstance(group, str | int) else tuple(group)
        if len(levels) != len(query.by):
            raise ParameterError(
                f"group must be {len(query.by)} levels, of {', '.join(query.by) or 'no column'}.", parameter="group"
            )
        group = dict(zip(query.by, levels, strict=True))
    found = {}
    for name, level in group.items():
        if name not in query.by:
            raise ParameterError(
                f"group must be of columns among {', '.join(query.by) or 'none'}, got {show(name)}.", parameter="group"
            )
        known = query.columns.category(name).level_names
        if str(level) not in known:
            raise ParameterError(
                f"group of {name!r} must be one of {', '.join(known[:20])}, got {show(str(level))}.", parameter="group"
            )
        found[name] = known.index(str(level))
    return found
