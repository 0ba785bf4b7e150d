"""From the options of the command line to a `Request`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from matrixdp.privacy import Privacy
from matrixdp.release.options import OPTION, require_target
from matrixdp.release.request import Request

_NAMES = {"query": "question", "rows_per_person": "rows"}


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """The options that determine a design, as they were given: lists are texts separated by commas."""

    schema: Path
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
    points: Path | None = None

    @cached_property
    def privacy(self) -> Privacy:
        """The whole budget."""
        return Privacy(self.epsilon, self.delta)

    @property
    def kind(self) -> str:
        """What the report shows."""
        return self.to_request(None).kind

    @property
    def learned(self) -> bool:
        """Whether directions are learned from the data, for a share of the budget."""
        return self.directions == "learned"

    def to_request(self, schema: Any, **more: Any) -> Request:
        """The request of these options."""
        given = {_NAMES.get(field.name, field.name): getattr(self, field.name) for field in fields(self)}
        del given["schema"]
        for name in ("columns", "by", "cells", "on", "importance"):
            given[name] = None if given[name] is None else OPTION[name].parse(given[name])
        require_target(self.query, self.target)
        return Request(schema=schema, **given, **more)
