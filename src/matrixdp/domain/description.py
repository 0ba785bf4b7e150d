"""Public guesses about a table, which forecasts use and no release depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from matrixdp.domain.columns import Category, Columns, YesNo
from matrixdp.errors import ParameterError, show
from matrixdp.types import Floats


@dataclass(frozen=True)
class TableDescription:
    """Public guesses about a table, for forecasts alone; all are optional.

    Parameters
    ----------
    means, stds : mapping of names of numbers to float
        Mean and standard deviation, in the data's units.
    correlation : float, optional
        Root mean square of the correlations of the numbers, from 0 to 1.
    shares : mapping of names of categories to mapping of levels to float
        Shares of the records, or of the people if they count once. Levels that are not named share the rest equally.
    missing : mapping of names of numbers to float
        Share of the values that are missing.

    Examples
    --------
    >>> guess = TableDescription(stds={"age": 12}, shares={"ward": {"north": 0.6, "south": 0.35}})
    """

    means: Mapping[str, float] = field(default_factory=dict)
    stds: Mapping[str, float] = field(default_factory=dict)
    correlation: float | None = None
    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    missing: Mapping[str, float] = field(default_factory=dict)

    def check(self, columns: Columns) -> None:
        """Raise a `ParameterError` unless the guesses are possible for these columns; others may be described, too."""
        for guess, name, rule in self.list_mistakes(columns):
            raise ParameterError(f"{guess} of {name!r} {rule}" if name else f"{guess} {rule}", parameter=guess)

    def list_mistakes(self, columns: Columns | None) -> Iterator[tuple[str, str, str]]:
        """Guesses that are not possible: the attribute, the column, and what is wrong, as in "must be a number"."""
        yield from _check_range("correlation", "", self.correlation, 0.0, 1.0)
        if columns is None:
            return
        for number in columns.numbers:
            name, half = number.name, (number.upper - number.lower) / 2
            yield from _check_range("means", name, self.means.get(name), number.lower, number.upper)
            yield from _check_range("stds", name, self.stds.get(name), 0.0, half)
            yield from _check_range("missing", name, self.missing.get(name), 0.0, 1.0)
        for category in columns.categories:
            for rule in _check_shares(category, self.shares.get(category.name, {})):
                yield "shares", category.name, rule


def spread_shares(category: Category | YesNo, shares: Mapping[str, float]) -> Floats:
    """Share of each level, of shape (levels,), if those of some are given and the others share the rest equally."""
    for rule in _check_shares(category, shares):
        raise ParameterError(f"shares of {category.name!r} {rule}", parameter="shares")
    names = category.level_names
    rest, others = 1 - sum(shares.values()), len(names) - len(shares)
    return np.array([shares.get(name, max(rest, 0.0) / max(others, 1)) for name in names])


def _check_shares(category: Category | YesNo, shares: Mapping[str, float]) -> Iterator[str]:
    names = category.level_names
    for level, share in shares.items():
        if level not in names:
            yield f"must be of levels among {', '.join(names[:20])}, got {show(level)}."
            return
        for _, _, rule in _check_range("shares", category.name, share, 0.0, 1.0):
            yield f"of level {level!r} {rule}"
            return
    rest, others = 1 - sum(shares.values()), len(names) - len(shares)
    if rest < -1e-6 or (not others and rest > 1e-6):
        yield f"must sum to {'at most ' * bool(others)}1, got {1 - rest:g} instead."


def _check_range(guess: str, name: str, value: Any, low: float, high: float) -> Iterator[tuple[str, str, str]]:
    if value is None:
        return
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        yield guess, name, f"must be a number from {low:g} to {high:g}, got {show(value)} instead."
