"""Privacy guarantees (epsilon, delta), neighbouring data sets, and the unit that a guarantee protects."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from matrixdp.checks import check_number
from matrixdp.errors import ParameterError, show
from matrixdp.gdp import LARGEST_EPSILON, check_delta, gdp_epsilon, gdp_mu, share_mu
from matrixdp.serialise import builtin_kind


class Neighbours(StrEnum):
    """The data sets that are neighbours: those with one record replaced, or with one record added or removed."""

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"

    @classmethod
    def parse(cls, value: str) -> Neighbours:
        """The member with this value. Raises a `ParameterError` if there is none."""
        try:
            return cls(value)
        except ValueError:
            message = f"neighbours must be 'replace' or 'add-remove', got {show(value)} instead."
            raise ParameterError(message, parameter="neighbours") from None


_UNITS = {
    "record": "one record (row)",
    "person": "one person with all their rows",
    "values": "the values in all rows of one person",
    "edge": "one edge",
    "node": "one node with all its edges",
}


@dataclass(frozen=True)
class Unit:
    """The unit of protection: what two neighbours differ in, and so what a guarantee protects.

    The `kind` is 'record', 'person', 'values', 'edge' or 'node'; persons and their values have the `column` that says
    whose each row is. Persons of two columns, such as patients and households, are different units.

    Privacy
    -------
    A person is protected with all their rows: their values, how many they are, and which they are. Where only the
    values are, which rows belong to one person, and how many, may become known.

    Examples
    --------
    >>> str(Unit("person", "patient_id")), Unit.parse("person:patient_id").words
    ('person:patient_id', 'one person with all their rows')
    """

    kind: str = "record"
    column: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in _UNITS:
            known = ", ".join(map(repr, _UNITS))
            raise ParameterError(f"unit must be one of {known}, got {show(self.kind)} instead.", parameter="unit")
        if self.kind in ("person", "values"):
            if not isinstance(self.column, str) or not self.column or not self.column.isprintable():
                raise ParameterError(
                    f"unit {self.kind!r} needs the column that says whose each row is, as printable text: "
                    "person='patient_id', or --person patient_id.",
                    parameter="person",
                )
        elif self.column is not None:
            raise ParameterError(
                f"unit must be 'person' or 'values' where a column of persons is named, got {self.kind!r} instead.",
                parameter="unit",
            )

    @classmethod
    def parse(cls, value: str | Unit) -> Unit:
        """The unit that `str` wrote, such as ``"record"``, ``"person:COLUMN"`` or ``"values:COLUMN"``."""
        if isinstance(value, Unit):
            return value
        kind, colon, column = value.partition(":") if isinstance(value, str) else (value, "", "")
        return cls(kind, column if colon else None)

    def __str__(self) -> str:
        return self.kind if self.column is None else f"{self.kind}:{self.column}"

    def covers(self, other: Unit) -> bool:
        """True if a guarantee for this unit is one for the other, too: it is the same, or the values of its person."""
        return self == other or (self.kind, self.column, other.kind) == ("person", other.column, "values")

    @property
    def full_words(self) -> str:
        """The unit in words, with the column of persons."""
        return self.words if self.column is None else f"{self.words} (column {self.column})"

    @property
    def words(self) -> str:
        """The unit in words, as reports show it."""
        return _UNITS[self.kind]


RECORD = Unit()


_MARGIN = 1e-9  # by which a share is smaller, for the rounding of its epsilon
_LEAST_SHARE = 1e-12  # of a budget, so that it and the rest are within the whole in floats


@builtin_kind
@dataclass(frozen=True)
class Privacy:
    """An (epsilon, delta)-DP guarantee that Gaussian noise can satisfy.

    Parameters
    ----------
    epsilon : float
        Greater than 0 and less than 1e12.
    delta : float
        Strictly between 0 and 1. Choose it much smaller than one over the number of records.

    Privacy
    -------
    `mu` is the largest value for which `mu`-GDP implies (epsilon, delta)-DP, rounded down.

    Examples
    --------
    >>> round(Privacy(epsilon=1, delta=1e-5).mu, 9)
    0.268051123
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        rule = f"greater than 0 and less than {LARGEST_EPSILON:g}"
        epsilon = check_number(self.epsilon, "epsilon", above=0, below=LARGEST_EPSILON, rule=rule)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", check_delta(self.delta))

    @cached_property
    def mu(self) -> float:
        """Largest `mu` for which `mu`-GDP implies this guarantee, rounded down."""
        return gdp_mu(epsilon=self.epsilon, delta=self.delta)

    def take_share(self, share: float) -> Privacy | None:
        """A guarantee with this delta, whose `mu` is at most what a share of ``mu^2`` pays for; None if there is none.

        None also for a share so small that the rest of the budget would be rounded to the whole.

        Examples
        --------
        >>> whole = Privacy(1, 1e-6)
        >>> part = whole.take_share(0.2)
        >>> bool(0.19 < (part.mu / whole.mu) ** 2 <= 0.2)
        True
        """
        most = share_mu(self.mu, share)
        epsilon = gdp_epsilon(mu=most * (1 - _MARGIN), delta=self.delta)
        found = Privacy(epsilon, self.delta) if epsilon > 0 and share >= _LEAST_SHARE else None
        return found if found is not None and found.mu <= most else None


class LargeDeltaWarning(UserWarning):
    """A delta that is larger than one over the number of records."""


def describe_large_delta(privacy: Privacy, records: int) -> str:
    """Why a delta above one over the number of records is too large, in a sentence or two; empty if it is smaller."""
    if records <= (1 + 1e-9) / privacy.delta:  # one over the number itself is not above it, however it was rounded
        return ""
    suggested = 10.0 ** -len(str(100 * records - 1))
    return (
        f"delta {privacy.delta:.3g} is above 1/{records}, one over the number of records: publishing a few records in "
        f"full would meet such a guarantee, too. Choose a delta well below 1/{records}, such as {suggested:.0e}."
    )


def warn_large_delta(privacy: Privacy, records: int) -> None:
    """Issue a `LargeDeltaWarning` to the caller's caller if delta is above one over the number of records."""
    message = describe_large_delta(privacy, records)
    if message:
        warnings.warn(message, LargeDeltaWarning, stacklevel=3)


def check_privacy(privacy: Any) -> None:
    """Raise a `ParameterError` unless `privacy` is a `Privacy`."""
    if not isinstance(privacy, Privacy):
        raise ParameterError(f"privacy must be Privacy(epsilon, delta), got {type(privacy).__name__} instead.")


def describe_guarantee(epsilon: float, delta: float, neighbours: Neighbours, unit: Unit) -> str:
    """A guarantee in a line, for lists of facts."""
    return f"({epsilon:g}, {delta:.3g})-DP, {neighbours} neighbours, protects {unit.words}"
