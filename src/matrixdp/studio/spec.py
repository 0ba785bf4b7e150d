"""What an analyst asks for: a `Request` that can be stored, compared, and written as JSON, a command line or Python."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from matrixdp.release.options import OPTION, QUESTIONS, Option, name_option, parse_options
from matrixdp.release.request import Request

_ALLOWANCE = Option(name="allowance", kind="name", help="The allowance that pays; without one, what is not allotted.")
_AXES = ("standard", "learned")  # no files: the server's are not the analyst's
_ALLOWED = tuple(name for name in OPTION if name not in ("points", "id"))
_JSON_TYPES = {"number": "number", "integer": "integer"}  # of kinds of options; others are texts


@dataclass(frozen=True, kw_only=True)
class ReleaseSpec(Request):
    """A request for a release before a schema is added to it, and the allowance that would pay for it."""

    schema: Any = field(default=None, compare=False)
    allowance: str | None = None

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """A request from JSON content or from the fields of a form, in which empty texts are left out.

        Raises a `ParameterError` that names the first mistake.
        """
        given = dict(values)
        allowance = given.pop("allowance", None) or None
        found = parse_options(given, allowed=_ALLOWED)
        if found.get("directions", _AXES[0]) not in _AXES:
            raise OPTION["directions"].error(f"must be one of {', '.join(_AXES)}.")
        return cls(**found, allowance=allowance and _ALLOWANCE.parse(allowance))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """A request from its stored text."""
        return cls.from_mapping(json.loads(text))

    def to_mapping(self) -> dict[str, Any]:
        """All options that differ from their defaults, by their names in JSON."""
        found = {name.replace("-", "_"): value for name, value in self.to_options().items()}
        return found if self.allowance is None else {**found, "allowance": self.allowance}

    def to_json(self) -> str:
        """The request as text, to be stored."""
        return json.dumps(self.to_mapping(), allow_nan=False, sort_keys=True)

    @property
    def title(self) -> str:
        """What is asked for, in a few words.

        Examples
        --------
        >>> asked = {"query": "regression", "epsilon": 1, "delta": 1e-6, "target": "bmi", "on": "age,ward"}
        >>> ReleaseSpec.from_mapping(asked).title
        'A regression of bmi on age, ward'
        """
        words = [QUESTIONS[self.question].title]
        words += [f"of {self.target}"] if self.target else []
        words += [f"of {' and '.join(self.cells)}"] if self.cells else []
        words += [f"{name} {', '.join(names)}" for name in ("on", "by") if (names := getattr(self, name))]
        return " ".join(words)

    def write_command(self, schema: str) -> str:
        """The command ``matrixdp design`` for a request; `schema` is the name of a file."""
        return _break_lines(["matrixdp", "design", "--schema", schema, *self._list_words("missing")])

    def write_release_command(self, schema: str, table: str, dataset: str) -> str:
        """The command ``matrixdp release`` for a request."""
        file = f"./{table}" if table.startswith("-") else table
        words = ["matrixdp", "release", file, "--schema", schema, *self._list_words()]
        words += [] if self.allowance is None else ["--allowance", self.allowance]
        return _break_lines([*words, "--ledger", "ledger.db", "--dataset", dataset, "--out", "out"])

    def write_python(self, schema: str, table: str, dataset: str, *, adaptive: bool) -> str:
        """Python code that plans the same release and predicts its errors; lines that make it are commented out."""
        usual = {one.name: one.default for one in fields(Request) if one.name != "schema"}
        given = [(name, getattr(self, name)) for name, value in usual.items() if getattr(self, name) != value]
        account = f"ledger, {dataset!r}" + ("" if self.allowance is None else f", allowance={self.allowance!r}")
        predicted = "planned.design.explain())  # no data so far"
        if adaptive:
            predicted = "forecast_fit(planned).typical.correlation_std)  # by simulation, no data so far"
        lines = [
            "import matrixdp as mdp",
            "from matrixdp.domain.schema_file import read_schema",
            "from matrixdp.records.files import open_files",
            "from matrixdp.release.charging import Account",
            "from matrixdp.release.plan import plan",
            "from matrixdp.release.request import Request",
            "from matrixdp.release.run import run",
            *["from matrixdp.report.forecast import forecast_fit"] * adaptive,
            "",
            f"schema = read_schema({schema!r})",
            "request = Request(",
            "    schema=schema,",
            *[f"    {name}={value!r}," for name, value in given],
            ")",
            "planned = plan(request)",
            f"print({predicted}",
            '# with mdp.Ledger.open("ledger.db") as ledger:',
            f"#     outcome = run(planned, open_files({table!r}, rules=schema.rules), Account({account}))",
        ]
        return "\n".join(lines) + "\n"

    def _list_words(self, *left_out: str) -> list[str]:
        """The options of a command that asks for the same, without schema, ledger, data set and folder."""
        given = [(name, value) for name, value in self.to_options().items() if name not in left_out]
        return [word for name, value in given for word in (f"--{name}", _write(value))]


def describe_options() -> dict[str, Any]:
    """The options of a release as properties of JSON Schema."""
    found = {}
    for option in [*(OPTION[name] for name in _ALLOWED), _ALLOWANCE]:
        choices = _AXES if option.name == "directions" else option.choices
        facts = {"type": _JSON_TYPES.get(option.kind, "string"), "description": option.help, "default": option.default}
        found[name_option(option.name)] = {**facts, **({"enum": list(choices)} if choices else {})}
    return found


def _write(value: Any) -> str:
    return value if isinstance(value, str) else repr(value).removesuffix(".0")


def _break_lines(words: list[str]) -> str:
    """A command line with one option a line, for shells."""
    lines: list[list[str]] = [[]]
    for word in words:
        if word.startswith("--") and len(lines[-1]) > 1 and word != "--schema":
            lines.append([])
        lines[-1].append(word)
    return " \\\n  ".join(shlex.join(line) for line in lines)
