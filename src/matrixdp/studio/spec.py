"""What an analyst asks for: a release in the terms of the command line."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from matrixdp.cli.options import CALIBRATIONS, METHODS, NEIGHBOURS, QUERIES
from matrixdp.cli.query_options import QueryOptions
from matrixdp.errors import ParameterError, show
from matrixdp.release.options import parse_options

if TYPE_CHECKING:
    from matrixdp.release.request import Request

_CHOICES = {
    "query": QUERIES,
    "neighbours": (None, *NEIGHBOURS),
    "directions": ("standard", "learned"),  # no files: the server's are not the analyst's
    "calibration": CALIBRATIONS,
    "kernel": ("gaussian", "laplacian"),
    "method": METHODS,
    "missing": ("error", "midpoint"),
}
_LONGEST = 20_000  # characters of a text, such as a list of columns


@dataclass(frozen=True, kw_only=True)
class ReleaseSpec(QueryOptions):
    """A release in the terms of ``matrixdp release``, whose options of the same names explain the fields."""

    missing: str = "error"
    allowance: str | None = None

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """A request from JSON content or from the fields of a form, in which empty texts are left out.

        Raises a `ParameterError` that names the first mistake.
        """
        known = {field.name: str(field.type) for field in fields(cls)}
        for name in values:
            if name not in known:
                raise ParameterError(f"{show(name)} is not an option of a release; those are {', '.join(known)}.")
        given = {name: value for name, value in values.items() if value not in (None, "")}
        for name in ("query", "epsilon", "delta"):
            if name not in given:
                raise ParameterError(f"{name} must be given.")
        return cls(**{name: _parse(name, known[name], value) for name, value in given.items()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """A request from its stored text."""
        return cls(**json.loads(text))

    def to_mapping(self) -> dict[str, Any]:
        """All fields that differ from their defaults."""
        defaults = {field.name: field.default for field in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != defaults[name]}

    def to_json(self) -> str:
        """The request as text, to be stored."""
        return json.dumps(self.to_mapping(), allow_nan=False, sort_keys=True)

    def to_request(self, schema: Any, request_id: str | None = None) -> Request:
        """The request of a release of a table with this schema."""
        from matrixdp.release.request import Request  # imports NumPy, which is slow

        given = {name: value for name, value in self.to_mapping().items() if name != "allowance"}
        return Request(schema=schema, **parse_options(given), id=request_id)

    def to_arguments(self) -> list[str]:
        """The options of ``matrixdp release`` that ask for the same, without schema, ledger, data set and folder.

        Examples
        --------
        >>> ReleaseSpec(query="covariance", epsilon=1.0, delta=1e-6, columns="age,bmi").to_arguments()
        ['--query', 'covariance', '--epsilon', '1', '--delta', '1e-06', '--columns', 'age,bmi']
        """
        found = self.to_mapping()
        names = [field.name for field in fields(self) if field.name in found]
        return [word for name in names for word in (f"--{name.replace('_', '-')}", _write(found[name]))]


def _write(value: Any) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _parse(name: str, kind: str, value: Any) -> Any:
    """One field, as the type that its annotation names."""
    if "float" in kind or "int" in kind:
        return _parse_number(name, value, whole="int" in kind)
    if not isinstance(value, str) or not value.isprintable() or len(value) > _LONGEST:
        raise ParameterError(f"{name} must be printable text of up to {_LONGEST:,} characters, got {show(value)}.")
    if name in _CHOICES and value not in _CHOICES[name]:
        known = ", ".join(choice for choice in _CHOICES[name] if choice is not None)
        raise ParameterError(f"{name} must be one of {known}, got {show(value)} instead.")
    return value


def _parse_number(name: str, value: Any, *, whole: bool) -> int | float:
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        number = int(value) if whole and not isinstance(value, float) else float(value)
        if not math.isfinite(number) or (whole and number != int(number)) or abs(number) > 1e15:
            raise ValueError
    except (ValueError, OverflowError):
        raise ParameterError(f"{name} must be a {'whole ' * whole}number, got {show(value)} instead.") from None
    return int(number) if whole else number
