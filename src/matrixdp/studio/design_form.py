"""The form of the design page: from its fields to a request, with every mistake beside its field.

Columns are given by their numbers in the schema, so that no name has to be quoted in a form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol
from urllib.parse import urlencode

from matrixdp.domain.columns import Columns
from matrixdp.domain.schema import Schema
from matrixdp.errors import MatrixDPError, ParameterError, show
from matrixdp.ledger import Registration
from matrixdp.privacy import Neighbours
from matrixdp.release.options import FITTED, GRAPHS, GROUPED
from matrixdp.studio.forecasts import Forecaster
from matrixdp.studio.refusals import place_error
from matrixdp.studio.spec import ReleaseSpec

FIELDS = ("query", "columns", "by", "cells", "target", "records", "epsilon", "delta", "method", "allowance", "form")
NUMBERS_ONLY = ("correlation", "covariance", "components", "moments", "second-moment")
_TABLES = ("everything", "means", "correlation", "covariance", "regression", "components", "table")
OFFERED = (*_TABLES, "moments", "second-moment", *GRAPHS)  # the API takes all questions
WEIGHTS = {"1": "usual", "4": "more", "16": "most", "0.25": "less"}
_PLACES = {"question": "query", "on": "columns", "importance": "columns"}  # fields of options that have none


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
    allowance: str = ""
    chosen: tuple[int, ...] = ()
    by: tuple[int, ...] = ()
    weights: Mapping[int, str] = field(default_factory=dict)
    target: str = ""
    table_rows: str = ""
    table_columns: str = ""
    entry: str = ""
    first: str = ""
    second: str = ""
    wanted: str = ""

    @classmethod
    def read(cls, form: FormData, schema: Schema, registration: Registration) -> DesignForm:
        """The form as it was sent; what is missing has a useful default."""
        everything = range(len(list(schema.columns or ())))
        sent = _text(form, "query") in OFFERED
        usual = {
            "query": "everything" if schema.columns is not None else "adjacency",
            "epsilon": f"{min(1.0, registration.privacy.epsilon):.3g}",
            "delta": f"{registration.privacy.delta:g}",
            "records": "" if sent else str(schema.records or ""),
            "method": "auto",
        }
        texts = [one.name for one in fields(cls) if one.type == "str" and (sent or one.name != "query")]
        given = {name: value for name in texts if (value := _text(form, name))}
        weights = {i: _text(form, f"weight{i}") or "1" for i in everything}
        return cls(
            **usual | given,
            chosen=_numbers(form, "column", everything) if sent else tuple(everything),
            by=_numbers(form, "by", everything),
            weights={i: weight for i, weight in weights.items() if weight != "1"},
        )

    def make_spec(
        self, forecaster: Forecaster, registration: Registration
    ) -> tuple[ReleaseSpec | None, dict[str, str]]:
        """The request, or None and the mistakes by field."""
        try:
            spec = ReleaseSpec.from_mapping(self._collect(forecaster.schema, registration))
            plan = forecaster.plan(spec)
        except MatrixDPError as error:
            return None, place_error(error, FIELDS, _PLACES)
        if plan.unit != registration.unit:
            return None, {
                "form": f"the data set protects {registration.unit.words}, and this release would protect "
                f"{plan.unit.words}. A curator changes the schema, or registers another data set."
            }
        return spec, {}

    def _collect(self, schema: Schema, registration: Registration) -> dict[str, object]:
        """The options of the request by name; lists are texts separated by commas."""
        names = ("query", "epsilon", "delta", "allowance")
        found: dict[str, object] = {name: getattr(self, name) for name in names}
        if self.query in GRAPHS:
            return found
        found["records"] = self.records
        if registration.neighbours is not Neighbours.REPLACE:
            found["neighbours"] = str(registration.neighbours)
        if self.query in FITTED:
            found["method"] = self.method
        return found | self._choose(schema.require_columns())

    def _choose(self, columns: Columns) -> dict[str, object]:
        """Columns, groups and weights."""
        names = columns.names
        by = [names[i] for i in self.by] if self.query in GROUPED else []
        numbers = {column.name for column in columns.numbers}
        chosen = [names[i] for i in self.chosen if names[i] not in by]
        if self.query in NUMBERS_ONLY:
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
            need = " of numbers" if self.query in NUMBERS_ONLY else ""
            raise ParameterError(f"«columns» must name at least one column{need}.")
        weights = [(name, self.weights.get(names.index(name), "1")) for name in chosen]
        if not {weight for _, weight in weights} <= set(WEIGHTS):
            raise ParameterError(f"«importance» must be one of {', '.join(WEIGHTS)}.")
        weighed = [f"{name}={weight}" for name, weight in weights if weight != "1"]
        return found | ({"importance": _join(weighed)} if weighed else {})


def write_address(spec: ReleaseSpec, schema: Schema, dataset: str, table: str) -> str:
    """The address of the design page with the form filled for a request."""
    names = () if schema.columns is None else schema.columns.names

    def find(wanted: Sequence[str] | None) -> list[int]:
        return [names.index(name) for name in wanted or () if name in names]

    chosen = find(spec.on) or find(spec.columns) or range(len(names))
    given = [("dataset", dataset), ("table", table), ("query", spec.question)]
    given += [("epsilon", f"{spec.epsilon:g}"), ("delta", f"{spec.delta:g}"), ("method", spec.method)]
    given += [("records", str(spec.records or "")), ("allowance", spec.allowance or "")]
    given += [("column", str(i)) for i in chosen] + [("by", str(i)) for i in find(spec.by)]
    given += [("target", str(i)) for i in find([spec.target or ""])]
    given += [(name, str(i)) for name, i in zip(("table_rows", "table_columns"), find(spec.cells), strict=False)]
    weights = [(name, f"{weight:g}") for name, weight in spec.importance or ()]
    given += [(f"weight{i}", weight) for name, weight in weights if weight in WEIGHTS for i in find([name])]
    return f"/design?{urlencode(given)}"


def _find_name(text: str, names: Sequence[str], option: str) -> str:
    """The name of a column by its number."""
    if not text.isdecimal() or int(text) >= len(names):
        raise ParameterError(f"«{option}» must be chosen.")
    return names[int(text)]


def _join(names: Sequence[str]) -> str:
    """Names as one text; those that could not be separated again are refused."""
    for name in names:
        if "," in name or name != name.strip():
            raise ParameterError(
                f"«columns»: {show(name)} has a comma or a space at its ends, so that it cannot be named apart from "
                "others. Choose all columns, without groups and weights for it, or rename it in the table."
            )
    return ",".join(names)


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value.strip()[:200] if isinstance(value, str) else ""


def _numbers(form: FormData, name: str, known: range) -> tuple[int, ...]:
    """Numbers of columns, each once, in the order of the schema."""
    found = {int(value) for value in form.getlist(name) if isinstance(value, str) and value.isdecimal()}
    return tuple(sorted(found & set(known)))
