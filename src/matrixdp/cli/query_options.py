"""Options that a command and a request in the studio have in common. Imports nothing that is slow to import."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class QueryOptions:
    """What is released and with which guarantee, in the terms of the command line, whose help explains the fields.

    Lists are texts separated by commas: ``columns="age,bmi"``, ``importance="alt=4,bmi=2"``.
    """

    query: str
    epsilon: float
    delta: float
    records: int | None = None
    neighbours: str | None = None
    person: str | None = None
    rows_per_person: int | None = None
    importance: str | None = None
    directions: str = "standard"
    directions_share: float = 0.2
    calibration: str = "exact"
    cells: str | None = None
    columns: str | None = None
    by: str | None = None
    kernel: str = "gaussian"
    bandwidth: float = 1.0
    method: str = "auto"
    target: str | None = None
    on: str | None = None
