"""The questions that a release can answer, and the one table of its options. Imports nothing that is slow to import.

Options of the command line, fields of the studio's form and of its API, and the checks of a `Request` are made from
`OPTIONS`.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
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


def title_question(
    question: str,
    *,
    columns: Sequence[str] | None = None,
    target: str | None = None,
    cells: Sequence[str] | None = None,
    on: Sequence[str] | None = None,
    by: Sequence[str] | None = None,
) -> str:
    """A question with its columns, in a few words.

    Examples
    --------
    >>> title_question("regression", target="stay", on=["age", "ward"])
    'A regression of stay on age, ward'
    """
    words = [QUESTIONS[question].title, *([f"of {target}"] if target else [])]
    words += [f"of {' and '.join(cells)}"] if cells else [f"of {', '.join(columns)}"] if columns else []
    return " ".join([*words, *(f"{name} {', '.join(names)}" for name, names in (("on", on), ("by", by)) if names)])


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
            return self._parse_number(value)
        if not isinstance(value, str) or not value.isprintable() or len(value) > _LONGEST:
            raise self.error(f"must be printable text of up to {_LONGEST:,} characters, got {show(value)}.")
        if self.kind == "names":
            return split_names(value)
        return self._parse_weights(value) if self.kind == "weights" else value

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

    def _parse_number(self, value: Any) -> int | float:
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

    def _parse_weights(self, text: str) -> tuple[tuple[str, float], ...]:
        pairs = []
        for part in text.split(","):
            name, mark, value = part.rpartition("=")
            if not mark or not name.strip():
                raise self.error(f"must be NAME=NUMBER,..., got {part!r} instead.")
            try:
                pairs.append((name.strip(), float(value)))
            except ValueError:
                raise self.error(f"of {name.strip()} must be a number, got {value!r} instead.") from None
        return tuple(pairs)


OPTIONS = (
    Option("question", "choice", "What to release.", alias="query", choices=tuple(QUESTIONS), required=True),
    Option("epsilon", "number", "Privacy loss, greater than 0.", required=True, above=0),
    Option(
        "delta",
        "number",
        "Probability of a larger loss; choose it well below 1/records.",
        required=True,
        above=0,
        below=1,
    ),
    Option(
        "records",
        "integer",
        "Public number of records, or for design a guess. [default: from the schema; release also counts them]",
        at_least=1,
    ),
    Option(
        "neighbours",
        "choice",
        "Whether one record (or person) is replaced, so that their number is public, or comes and goes, so that it is "
        "private. [default: that of the ledger; without one replace, and add-remove for graphs]",
        choices=NEIGHBOURS,
    ),
    Option(
        "person",
        "name",
        "Protect each person with all their rows: the column that says whose a row is. [default: protect rows]",
        metavar="COLUMN",
    ),
    Option(
        "rows",
        "integer",
        "Let each row count, up to K rows per person. [default: each person counts once]",
        alias="rows_per_person",
        at_least=1,
        metavar="K",
    ),
    Option(
        "importance",
        "weights",
        "Weight of a feature's squared error, relative to its range; 1 for features that are not named.",
        metavar="NAME=NUMBER,...",
        at_least=1 / _LARGEST_WEIGHT,
        at_most=_LARGEST_WEIGHT,
    ),
    Option(
        "directions",
        "file",
        "Axes of the noise: the features, or those in a NPY or CSV file, chosen without looking at the data.",
        default="standard",
        metavar="standard|FILE",
    ),
    Option(
        "correlation_share",
        "number",
        "Share of the budget for an adaptive fit of the numbers, which correlations and components of --query "
        "everything are read off; 0 for none. [default: 0.2 where correlations are expected to gain by it]",
        at_least=0,
        at_most=0.9,
        questions=("everything",),
    ),
    Option(
        "shapes",
        "number",
        "Share of the budget for a histogram of each number, from which quantiles follow; 0.1 adds 5% to the noise of "
        "all else.",
        default=0.0,
        at_least=0,
        at_most=0.9,
        questions=("everything",),
    ),
    Option(
        "bins",
        "integer",
        "Measure each number also as a category of so many bins, at most 64, so that synthetic tables show curved "
        "relations; all else has more noise. 0 for none.",
        default=0,
        at_least=0,
        at_most=64,
        questions=("everything",),
    ),
    Option(
        "calibration",
        "choice",
        "How the size of the noise is determined; all but 'exact' are the paper's.",
        choices=CALIBRATIONS,
        default="exact",
    ),
    Option(
        "columns",
        "names",
        "Columns of the schema to release. [default: all]",
        metavar="NAME,...",
        questions=tuple(name for name in QUESTIONS if name not in (*GRAPHS, "counts")),
    ),
    Option(
        "by",
        "names",
        "Categories: the same for each of their levels, for the same epsilon. For everything, means, table, "
        "covariance and correlation.",
        metavar="NAME,...",
        questions=GROUPED,
    ),
    Option("cells", "names", "The two columns that --query table and counts tabulate.", metavar="ROWS,COLUMNS"),
    Option("points", "file", "Public points for --query gram: a table or a NPY file."),
    Option("kernel", "choice", "Kernel of --query gram.", choices=("gaussian", "laplacian"), default="gaussian"),
    Option("bandwidth", "number", "Bandwidth of the kernel, in units of half the width of the bounds.", default=1.0),
    Option(
        "method",
        "choice",
        "For means, covariance, correlation, components and regression: an adaptive fit, a plain release, or the "
        "one that is expected to be more accurate.",
        choices=("auto", "adaptive", "plain"),
        default="auto",
        questions=FITTED,
    ),
    Option("target", "name", "The number that --query regression explains.", metavar="NAME", questions=("regression",)),
    Option(
        "on",
        "names",
        "The columns that explain it. [default: all others]",
        metavar="NAME,...",
        questions=("regression",),
    ),
    Option(
        "missing",
        "choice",
        "Stop at empty, NaN and infinite entries, or replace them by the middle of their bounds.",
        choices=("error", "midpoint"),
        default="error",
    ),
    Option(
        "id",
        "name",
        "An id. A second run with the same id and options returns the same release at no cost.",
        alias="request",
    ),
)
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
