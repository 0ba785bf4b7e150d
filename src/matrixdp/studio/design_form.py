"""The form of the design page: from its fields to a request, with every mistake beside its field.

Columns are given by their numbers in the schema, so that no name has to be quoted in a form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlencode

from matrixdp.domain.columns import Columns
from matrixdp.domain.schema import Schema
from matrixdp.errors import MatrixDPError, ParameterError, show
from matrixdp.ledger import Registration
from matrixdp.privacy import Neighbours
from matrixdp.studio.forecasts import Forecaster
from matrixdp.studio.spec import ReleaseSpec
from matrixdp.studio.wording import (
    GRAPH_QUERIES,
    GROUPED_QUERIES,
    NUMBER_QUERIES,
    QUERIES,
    find_field,
    write_plainly,
)

WEIGHTS = {"1": "usual", "4": "more", "16": "most", "0.25": "less"}
_FIELDS = ("query", "columns", "by", "cells", "target", "records", "epsilon", "delta", "method", "allowance")
_ALIASES = {"on": "columns", "importance": "columns", "share": "epsilon"}


class FormData(Protocol):
    """The fields of a form or of a query string."""

    def get(self, key: str, default: str, /) -> object:
        """The last value of a field."""

    def getlist(self, key: Any, /) -> Sequence[object]:
        """All values of a field."""


@dataclass(frozen=True)
class DesignForm:
    """The fields of the design page, as they were sent, and what follows from them.

    Attributes
    ----------
    query, epsilon, delta, records, method, allowance : str
    chosen, by : tuple of int
        Numbers of the columns that are released, and of those that make groups.
    weights : mapping of int to str
        Importance of a column, where it is not 1.
    target, table_rows, table_columns : str
        Numbers of the column that a regression explains, and of the two that a table counts.
    entry, first, second : str
        The entry that is followed, and the two features of the ellipse.
    wanted : str
        The error that is wanted.
    """

    query: str
    epsilon: str
    delta: str
    records: str
    method: str
    allowance: str
    chosen: tuple[int, ...]
    by: tuple[int, ...]
    weights: Mapping[int, str]
    target: str
    table_rows: str
    table_columns: str
    entry: str
    first: str
    second: str
    wanted: str

    @classmethod
    def read(cls, form: FormData, schema: Schema, registration: Registration) -> DesignForm:
        """The form as it was sent; what is missing has a useful default."""
        columns = list(schema.columns or ())
        sent = _text(form, "query") in QUERIES
        everything = tuple(range(len(columns)))
        fallback = "everything" if schema.columns is not None else "adjacency"
        weights = {i: _text(form, f"weight{i}") for i in everything if _text(form, f"weight{i}") not in ("", "1")}
        return cls(
            query=_text(form, "query") if sent else fallback,
            epsilon=_text(form, "epsilon") or f"{min(1.0, registration.privacy.epsilon):.3g}",
            delta=_text(form, "delta") or f"{registration.privacy.delta:g}",
            records=_text(form, "records") or ("" if sent else str(schema.records or "")),
            method=_text(form, "method") or "auto",
            allowance=_text(form, "allowance"),
            chosen=_numbers(form, "column", len(columns)) if sent else everything,
            by=_numbers(form, "by", len(columns)),
            weights=weights,
            target=_text(form, "target"),
            table_rows=_text(form, "table_rows"),
            table_columns=_text(form, "table_columns"),
            entry=_text(form, "entry"),
            first=_text(form, "first"),
            second=_text(form, "second"),
            wanted=_text(form, "wanted"),
        )

    def make_spec(
        self, forecaster: Forecaster, registration: Registration
    ) -> tuple[ReleaseSpec | None, dict[str, str]]:
        """The request, or None and the mistakes by field."""
        try:
            spec = ReleaseSpec.from_mapping(self._collect(forecaster.schema, registration))
            plan = forecaster.plan(spec)
        except MatrixDPError as error:
            return None, {_find_field(error): write_plainly(str(error))}
        if plan.unit != registration.unit:
            return None, {
                "form": f"the data set protects {registration.unit.words}, and this release would protect "
                f"{plan.unit.words}. A curator changes the schema, or registers another data set."
            }
        return spec, {}

    def _collect(self, schema: Schema, registration: Registration) -> dict[str, object]:
        found: dict[str, object] = {
            "query": self.query,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "allowance": self.allowance,
        }
        if self.query in GRAPH_QUERIES:
            return found
        found["records"] = self.records
        if registration.neighbours is not Neighbours.REPLACE:
            found["neighbours"] = str(registration.neighbours)
        columns = schema.require_columns()
        if self.query in ("means", "correlation", "covariance", "components", "regression"):
            found["method"] = self.method
        return found | self._choose(columns)

    def _choose(self, columns: Columns) -> dict[str, object]:
        """Columns, groups and weights, as texts separated by commas."""
        names = columns.names
        by = [names[i] for i in self.by] if self.query in GROUPED_QUERIES else []
        numbers = {column.name for column in columns.numbers}
        chosen = [names[i] for i in self.chosen if names[i] not in by]
        if self.query in NUMBER_QUERIES:
            chosen = [name for name in chosen if name in numbers]
        found: dict[str, object] = {"by": _join(by)} if by else {}
        if self.query == "table":
            pair = [_find_name(text, names, "cells") for text in (self.table_rows, self.table_columns)]
            return found | {"cells": _join(pair)}
        if self.query == "regression":
            target = _find_name(self.target, names, "target")
            chosen = [name for name in chosen if name != target]
            found |= {"target": target, "on": _join(chosen)}
        elif {*chosen, *by} != set(names):
            found["columns"] = _join(chosen)
        if not chosen:
            raise ParameterError(f"--columns must name at least one column{_describe_need(self.query)}.")
        weights = [(name, self.weights.get(names.index(name), "1")) for name in chosen]
        if not {weight for _, weight in weights} <= set(WEIGHTS):
            raise ParameterError(f"--importance must be one of {', '.join(WEIGHTS)}.")
        weighed = [f"{name}={weight}" for name, weight in weights if weight != "1"]
        return found | ({"importance": _join(weighed)} if weighed else {})


def write_address(spec: ReleaseSpec, schema: Schema, dataset: str, table: str) -> str:
    """The address of the design page with the form filled for a request."""
    names = () if schema.columns is None else schema.columns.names
    by, on = (_split(text, names) for text in (spec.by, spec.on))
    chosen = on if spec.query == "regression" and on else _split(spec.columns, names) or range(len(names))
    given = [("dataset", dataset), ("table", table), ("query", spec.query)]
    given += [("epsilon", f"{spec.epsilon:g}"), ("delta", f"{spec.delta:g}"), ("method", spec.method)]
    given += [("records", str(spec.records or "")), ("allowance", spec.allowance or "")]
    given += [("column", str(i)) for i in chosen] + [("by", str(i)) for i in by]
    given += [("target", str(i)) for i in _split(spec.target, names)]
    pair = _split(spec.cells, names)
    given += [(name, str(i)) for name, i in zip(("table_rows", "table_columns"), pair, strict=False)]
    for part in (spec.importance or "").split(","):
        name, _, weight = part.rpartition("=")
        given += [(f"weight{i}", weight) for i in _split(name, names) if weight in WEIGHTS]
    return f"/design?{urlencode(given)}"


def _split(text: str | None, names: Sequence[str]) -> list[int]:
    """Numbers of the columns that a text names, in its order."""
    given = [] if text is None else [name.strip() for name in text.split(",")]
    return [names.index(name) for name in given if name in names]


def _describe_need(query: str) -> str:
    return " of numbers" if query in NUMBER_QUERIES else ""


def _find_field(error: MatrixDPError) -> str:
    known = (*_FIELDS, *_ALIASES)
    parameter = getattr(error, "parameter", "").replace("question", "query")
    field = parameter if parameter in known else find_field(str(error), known)
    return _ALIASES.get(field, field)


def _find_name(text: str, names: Sequence[str], option: str) -> str:
    """The name of a column by its number."""
    if not text.isdecimal() or int(text) >= len(names):
        raise ParameterError(f"--{option} must be chosen.")
    return names[int(text)]


def _join(names: Sequence[str]) -> str:
    """Names as one text; those that could not be separated again are refused."""
    for name in names:
        if "," in name or name != name.strip():
            raise ParameterError(
                f"--columns: {show(name)} has a comma or a space at its ends, so that it cannot be named apart from "
                "others. Choose all columns, without groups and weights for it, or rename it in the table."
            )
    return ",".join(names)


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value.strip()[:200] if isinstance(value, str) else ""


def _numbers(form: FormData, name: str, most: int) -> tuple[int, ...]:
    """Numbers of columns, each once, in the order of the schema."""
    found = {int(value) for value in form.getlist(name) if isinstance(value, str) and value.isdecimal()}
    return tuple(sorted(i for i in found if i < most))
