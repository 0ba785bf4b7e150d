"""Public guesses about the columns of a schema, which are used for forecasts alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from matrixdp.answers.described_table import spread_shares
from matrixdp.domain.columns import Category, Column, Number, YesNo
from matrixdp.errors import ParameterError, show

NUMBER_GUESSES = ("expected_mean", "expected_std", "expected_missing")
CATEGORY_GUESSES = ("expected_shares",)


@dataclass(frozen=True)
class Guess:
    """Guesses about one column.

    Attributes
    ----------
    mean, std, missing : float or None
        Of a number: mean, standard deviation, and share of the values that are missing; None where there is no guess.
    shares : mapping of str to float
        Of a category: shares of some levels.
    """

    mean: float | None = None
    std: float | None = None
    missing: float | None = None
    shares: Mapping[str, float] = field(default_factory=dict)


def parse_guess(column: Column, entry: Mapping[str, Any], where: str) -> Guess:
    """Guesses that the bounds or the levels of the column allow."""
    if not isinstance(column, Number):
        return Guess(shares=_parse_shares(column, entry.get("expected_shares", {}), where))
    mean, std, missing = (read_number(entry, name, where) for name in NUMBER_GUESSES)
    lower, upper, half = column.lower, column.upper, (column.upper - column.lower) / 2
    if mean is not None and not lower <= mean <= upper:
        raise ParameterError(f"{where}: expected_mean must be within the bounds {lower:g} to {upper:g}, got {mean:g}.")
    if std is not None and not 0 <= std <= half:
        raise ParameterError(f"{where}: expected_std must be from 0 to {half:g}, half the bounds' width, got {std:g}.")
    if missing is not None and not 0 <= missing <= 1:
        raise ParameterError(f"{where}: expected_missing must be from 0 to 1, got {missing:g}.")
    if missing is not None and not column.missing:
        raise ParameterError(f"{where}: expected_missing needs missing = true.")
    return Guess(mean, std, missing)


def _parse_shares(column: Category | YesNo, shares: Any, where: str) -> dict[str, float]:
    if not isinstance(shares, dict):
        raise ParameterError(
            f"{where}: expected_shares must be levels and shares, as in {{north = 0.6, south = 0.3}}, got "
            f"{show(shares)} instead."
        )
    read = {level: read_number(shares, level, f"{where}: expected_shares") for level in shares}
    found = {level: share for level, share in read.items() if share is not None}
    try:
        spread_shares(column, found)
    except ParameterError as error:
        raise ParameterError(f"{where}: expected_{error}") from None
    return found


def read_number(content: Mapping[str, Any], name: str, where: str) -> float | None:
    """A number, or None if there is none; a `ParameterError` for anything else."""
    value = content.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterError(f"{where}: {name} must be a number, got {show(value)} instead.")
    try:
        return float(value)
    except OverflowError:
        raise ParameterError(f"{where}: {name} must be at most 1e60 in size; change the units.") from None
