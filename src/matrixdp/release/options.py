"""The questions that a release can answer, and its options. Imports nothing that is slow to import.

Options of the command line, fields of the studio's form and of its API, and the checks of a `Request` are made from
the fields of `Asked`.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from matrixdp.errors import ParameterError, join_names, show

if TYPE_CHECKING:
    from matrixdp.ledger import Charge

_NAMED = 4  # columns in the title of a question
_NAME = re.compile(r'\s*(?:"((?:[^"]|"")+)"\s*|([^,]*)),')  # in a list of names, quoted or not


@dataclass(frozen=True)
class Question:
    """Something that can be asked of a table, with its words on a form."""

    title: str
    hint: str


QUESTIONS = {
    "everything": Question(
        "Everything", "means, shares, tables and correlations of all chosen columns, in one release"
    ),
    "means": Question("Means", "means of numbers and shares of levels, of all records or by group"),
    "table": Question("A table of counts", "by two categories"),
    "moments": Question("Means and second moments", "the matrix itself, for your own analysis"),
    "covariance": Question("Covariances", "of columns of numbers, in their units"),
    "correlation": Question("Correlations", "of columns of numbers"),
    "components": Question("Principal components", "of standardised numbers"),
    "regression": Question("A regression", "of one number on other columns"),
    "second-moment": Question("Second moments", "the matrix itself, about the middle of the bounds"),
    "identity": Question("A noisy data set", "every record with noise"),
    "gram": Question("A kernel matrix", "of similarities between records"),
    "adjacency": Question("Adjacency matrix", "of a graph"),
    "laplacian": Question("Laplacian", "of a graph"),
    "counts": Question("Counts", "of pairs of two categories"),
}


def title_question(question: str, **named: Any) -> str:
    """A question with its `columns`, `target`, `cells`, `on` and `by`: 'A regression of stay on age, ward'."""
    target, cells, columns = map(named.get, ("target", "cells", "columns"))
    words = [QUESTIONS[question].title, *([f"of {target}"] if target else [])]
    words += [f"of {' and '.join(cells)}"] if cells else [f"of {', '.join(columns)}"] if columns else []
    return " ".join([*words, *(f"{name} {', '.join(named[name])}" for name in ("on", "by") if named.get(name))])


SUMMARIES = ("means", "table", "everything")  # always answered by the moments of a table
MATRICES = ("covariance", "correlation")
MODELS = ("components", "regression")
GRAPHS = ("adjacency", "laplacian")
ANSWERED = (*SUMMARIES, *MATRICES, *MODELS)  # by what follows from the moments of a table
GROUPED = (*SUMMARIES, *MATRICES)  # can be asked for each level of some categories
FITTED = ("means", "covariance", "correlation", "components", "regression")  # an adaptive fit can answer, too
PER_RECORD = ("identity", "gram")  # whose answers have a row for each record
STREAMED = tuple(name for name in QUESTIONS if name not in (*GRAPHS, *PER_RECORD, "counts"))  # sums over records
CALIBRATIONS = ("exact", "theorem2", "theorem2-corrected", "theorem2-psd")
NEIGHBOURS = ("replace", "add-remove")
MOST_STEPS = 36_500  # of a stream
MOST_STORED = 10**6  # entries of a release that the ledger stores, so that it can be requested again
_LONGEST = 20_000  # characters of a text, such as a list of columns
_LARGEST_WEIGHT = 1e12


def title_charge(charge: "Charge") -> str:
    """The question that a charge paid for, in a few words."""
    options = charge.options or {}
    query = options.get("query")
    query, listed = (query, query.get("columns")) if isinstance(query, dict) else ({}, None)
    if "stream" in charge.description:
        return f"Stream {charge.description['stream']}, every {charge.description['every']}"
    if "aim" not in options:
        return str(charge.description.get("query", "a release"))
    by = query.get("by", ())
    names = [one["name"] for one in listed["columns"] if one["name"] not in by] if isinstance(listed, dict) else []
    asked = {name: options.get(name) for name in ("target", "cells", "on")}
    some = len(names) <= _NAMED and options["aim"] in (*MATRICES, "means", "components")
    return title_question(options["aim"], columns=names if some else (), **asked, by=by)


@dataclass(frozen=True)
class Option:
    """One option of a request: the field `name` of `Request`.

    Its `kind` is 'number', 'integer', 'choice' (of `choices`), 'name', 'names' (separated by commas), 'weights'
    (``NAME=NUMBER,...``), 'text' or 'file'. `alias` is its name on the command line and in JSON, if it has another;
    `metavar` stands for its value in help; `questions` are those that take it, by default all. The last four are limits
    of a number.
    """

    name: str
    kind: str
    help: str
    _: KW_ONLY
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    alias: str = ""
    metavar: str = ""
    questions: tuple[str, ...] = ()
    at_least: float = -math.inf
    at_most: float = math.inf
    above: float = -math.inf
    below: float = math.inf

    def parse(self, value: Any) -> Any:
        """The value of a field of `Request`, from a text or from JSON; a `ParameterError` names the option."""
        if self.kind in ("number", "integer"):
            whole = self.kind == "integer"
            try:
                if isinstance(value, bool) or not isinstance(value, int | float | str):
                    raise ValueError
                number = int(value) if whole and not isinstance(value, float) else float(value)
                if not math.isfinite(number) or (whole and number != int(number)) or abs(number) > 1e15:
                    raise ValueError
            except (ValueError, OverflowError):
                raise self.error(f"must be a {'whole ' * whole}number, got {show(value)} instead.") from None
            return int(number) if whole else number
        if not isinstance(value, str) or not value.isprintable() or len(value) > _LONGEST:
            raise self.error(f"must be printable text of up to {_LONGEST:,} characters, got {show(value)}.")
        if self.kind != "weights":
            return split_names(value) if self.kind == "names" else value
        pairs = []
        for part in value.split(","):
            name, mark, weight = part.rpartition("=")
            if not mark or not name.strip():
                raise self.error(f"must be NAME=NUMBER,..., got {part!r} instead.")
            try:
                pairs.append((name.strip(), float(weight)))
            except ValueError:
                raise self.error(f"of {name.strip()} must be a number, got {weight!r} instead.") from None
        return tuple(pairs)

    def write(self, value: Any) -> str:
        """The text that `parse` reads as `value`."""
        if self.kind == "names":
            return join_names(value)
        if self.kind == "weights":
            return ",".join(f"{name}={_write_number(weight)}" for name, weight in value)
        return _write_number(value) if isinstance(value, float) else str(value)

    def error(self, message: str) -> ParameterError:
        """An error about this option; `message` follows its name."""
        return ParameterError(f"«{self.name}» {message}")


def _ask(kind: str, help: str, **rest: Any) -> Any:  # noqa: A002
    """A field of `Asked`, which has no default if it is required."""
    option = Option("", kind, help, **rest)
    default: dict[str, Any] = {} if option.required else {"default": option.default}
    return field(**default, metadata={"option": option})


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """The options of a request: its fields, each with how it is read, checked and explained."""

    question: str = _ask("choice", "What to release.", alias="query", choices=tuple(QUESTIONS), required=True)
    epsilon: float = _ask("number", "Privacy loss, greater than 0.", required=True, above=0)
    delta: float = _ask(
        "number", "Probability of a larger loss; choose it well below 1/records.", required=True, above=0, below=1
    )
    records: int | None = _ask(
        "integer",
        "Public number of records, or for design a guess. [default: from the schema; release also counts them]",
        at_least=1,
    )
    neighbours: str | None = _ask(
        "choice",
        "Whether one record (or person) is replaced, so that their number is public, or comes and goes, so that it is "
        "private. [default: that of the ledger; without one replace, and add-remove for graphs]",
        choices=NEIGHBOURS,
    )
    person: str | None = _ask(
        "name",
        "Protect each person with all their rows: the column that says whose a row is. [default: protect rows]",
        metavar="COLUMN",
    )
    rows: int | None = _ask(
        "integer",
        "Let each row count, up to K rows per person. [default: each person counts once]",
        alias="rows_per_person",
        at_least=1,
        metavar="K",
    )
    importance: Any = _ask(  # noqa: RUF009
        "weights",
        "Weight of a feature's squared error, relative to its range; 1 for features that are not named.",
        metavar="NAME=NUMBER,...",
        at_least=1 / _LARGEST_WEIGHT,
        at_most=_LARGEST_WEIGHT,
    )
    directions: Any = _ask(  # noqa: RUF009
        "file",
        "Axes of the noise: the features, or those in a NPY or CSV file, chosen without looking at the data.",
        default="standard",
        metavar="standard|FILE",
    )
    correlation_share: float | None = _ask(
        "number",
        "Share of the budget for an adaptive fit of the numbers, which correlations and components of --query "
        "everything are read off; 0 for none. [default: 0.2 where correlations are expected to gain by it]",
        at_least=0,
        at_most=0.9,
        questions=("everything",),
    )
    shapes: float = _ask(
        "number",
        "Share of the budget for a histogram of each number, from which quantiles follow; 0.1 adds 5% to the noise of "
        "all else.",
        default=0.0,
        at_least=0,
        at_most=0.9,
        questions=("everything",),
    )
    bins: int = _ask(
        "integer",
        "Measure each number also as a category of so many bins, at most 64, so that synthetic tables show curved "
        "relations; all else has more noise. 0 for none.",
        default=0,
        at_least=0,
        at_most=64,
        questions=("everything",),
    )
    calibration: str = _ask(
        "choice",
        "How the size of the noise is determined; all but 'exact' are the paper's.",
        choices=CALIBRATIONS,
        default="exact",
    )
    columns: Sequence[str] | None = _ask(
        "names",
        "Columns of the schema to release. [default: all]",
        metavar="NAME,...",
        questions=tuple(name for name in QUESTIONS if name not in (*GRAPHS, "counts")),
    )
    by: Sequence[str] | None = _ask(
        "names",
        "Categories: the same for each of their levels, for the same epsilon. For everything, means, table, "
        "covariance and correlation.",
        metavar="NAME,...",
        questions=GROUPED,
    )
    cells: Sequence[str] | None = _ask(
        "names", "The two columns that --query table and counts tabulate.", metavar="ROWS,COLUMNS"
    )
    points: Any = _ask("file", "Public points for --query gram: a table or a NPY file.")  # noqa: RUF009
    kernel: str = _ask("choice", "Kernel of --query gram.", choices=("gaussian", "laplacian"), default="gaussian")
    bandwidth: float = _ask("number", "Bandwidth of the kernel, in units of half the width of the bounds.", default=1.0)
    method: str = _ask(
        "choice",
        "For means, covariance, correlation, components and regression: an adaptive fit, a plain release, or the "
        "one that is expected to be more accurate.",
        choices=("auto", "adaptive", "plain"),
        default="auto",
        questions=FITTED,
    )
    target: str | None = _ask(
        "name", "The number that --query regression explains.", metavar="NAME", questions=("regression",)
    )
    on: Sequence[str] | None = _ask(
        "names", "The columns that explain it. [default: all others]", metavar="NAME,...", questions=("regression",)
    )
    missing: str = _ask(
        "choice",
        "Stop at empty, NaN and infinite entries, or replace them by the middle of their bounds.",
        choices=("error", "midpoint"),
        default="error",
    )
    id: str | None = _ask(
        "name", "An id. A second run with the same id and options returns the same release at no cost.", alias="request"
    )

    def to_options(self) -> dict[str, Any]:
        """All fields that differ from their defaults, as texts and numbers, by their names in JSON."""
        given = {option: getattr(self, option.name) for option in OPTIONS}
        return {
            json_name(option.name): value if isinstance(value, int | float) else option.write(value)
            for option, value in given.items()
            if value is not option.default and value != option.default
        }

    @property
    def title(self) -> str:
        """What is asked for, in a few words."""
        return title_question(self.question, target=self.target, cells=self.cells, on=self.on, by=self.by)

    @property
    def standard(self) -> bool:
        """Whether the axes of the noise are the features."""
        return isinstance(self.directions, str) and self.directions == "standard"

    @property
    def kind(self) -> str:
        """What is shown: the released 'matrix', or what the question names if it follows from the matrix."""
        return self.question if self.question in ANSWERED else "matrix"

    @property
    def aims(self) -> dict[str, str | list[str]]:
        """What is computed from the released matrix, for the ledger; empty for the matrix itself."""
        if self.kind == "matrix":
            return {}
        aims = {"aim": self.question, "target": self.target, "on": None if self.on is None else list(self.on)}
        return {name: value for name, value in aims.items() if value is not None}


OPTIONS: tuple[Option, ...] = tuple(replace(one.metadata["option"], name=one.name) for one in fields(Asked))
OPTION = {option.name: option for option in OPTIONS}
STREAM_OPTIONS = (  # further ones of a stream, the arguments of `make_stream`
    Option(
        "every",
        "choice",
        "Length of a step, by which steps are named, as in 2031-w05; with 'step' they have any names.",
        choices=("hour", "day", "night", "week", "month", "year", "step"),
        default="week",
    ),
    Option(
        "when",
        "name",
        "Column of dates: a step takes the rows dated within its period, so that one growing file can be published "
        "again and again. [default: each file must have new records only]",
        metavar="COLUMN",
    ),
    Option("delay", "text", "How long after its end a period waits for late rows. [default: not]", metavar="'3 days'"),
    Option(
        "aim",
        "choice",
        "What has the least noise: periods and totals, each relative to the best possible; totals, which needs --last; "
        "or single periods.",
        choices=("both", "total", "period"),
        default="both",
    ),
    Option("last", "integer", "Number of steps. [default: no end]", at_least=1, at_most=MOST_STEPS, metavar="N"),
    Option(
        "steps",
        "integer",
        "With --person: in how many steps a person counts at most; with 1, in their first step only.",
        at_least=1,
        at_most=MOST_STEPS,
        metavar="K",
    ),
    Option(
        "apart",
        "integer",
        "With --steps: how many steps apart those of a person are at least.",
        default=1,
        at_least=1,
        at_most=MOST_STEPS,
        metavar="N",
    ),
)
STREAM_OPTION = {option.name: option for option in STREAM_OPTIONS}


def parse_options(values: Mapping[str, Any], *, allowed: Iterable[str] = tuple(OPTION)) -> dict[str, Any]:
    """Fields of a `Request`, from texts or JSON content by the names of the command line; empty texts are left out.

    Raises a `ParameterError` for the first mistake; `allowed` are the fields that may be given.
    """
    known = {json_name(option.name): option for option in OPTIONS if option.name in set(allowed)}
    for name in values:
        if name not in known:
            raise ParameterError(f"{show(name)} is not an option of a release; those are {', '.join(known)}.")
    given = {known[name].name: value for name, value in values.items() if value not in (None, "")}
    for option in known.values():
        if option.required and option.name not in given:
            raise option.error("must be given.")
    if given.get("question") == "regression" and given.get("target") is None:
        raise ParameterError("«target» must be given for «question» regression: the number that is explained.")
    return {name: OPTION[name].parse(value) for name, value in given.items()}


def json_name(name: str) -> str:
    """The name of an option in JSON, by its name in a `Request`: 'query' for 'question'."""
    return OPTION[name].alias or name if name in OPTION else name


def name_flag(name: str) -> str:
    """An option as it is written on the command line, by its name in a `Request` or in JSON."""
    return f"--{json_name(name).replace('_', '-')}"


def split_names(text: str) -> tuple[str, ...]:
    """Names that are separated by commas; one in double quotes may contain commas, and begin or end with spaces.

    >>> split_names('age, "weight, kg"," height"')
    ('age', 'weight, kg', ' height')
    """
    return tuple(quoted.replace('""', '"') or plain.strip() for quoted, plain in _NAME.findall(f"{text},"))


def _write_number(value: float) -> str:
    return repr(value).removesuffix(".0")
