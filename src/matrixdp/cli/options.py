"""Options that several commands have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

# Help pages need these names without importing the modules that define them; a test checks that they agree.
QUERIES = (
    "everything",
    "means",
    "table",
    "moments",
    "covariance",
    "correlation",
    "components",
    "regression",
    "second-moment",
    "identity",
    "gram",
    "adjacency",
    "laplacian",
    "counts",
)
METHODS = ("auto", "adaptive", "plain")
CALIBRATIONS = ("exact", "theorem2", "theorem2-corrected", "theorem2-psd")
NEIGHBOURS = ("replace", "add-remove")
UNITS = ("record", "person", "edge", "node")
PATH = click.Path(path_type=Path)


class LedgerType(click.Path):
    """The path of a ledger, or the URL of one in PostgreSQL, which is shown without its password."""

    name = "ledger"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A path, or a `PostgresURL`."""
        if isinstance(value, str) and value.lower().startswith(("postgres:", "postgresql:")):
            from matrixdp.ledger.location import parse_location  # imports NumPy, which is slow

            return parse_location(value)
        return super().convert(value, param, ctx)


LEDGER = LedgerType(path_type=Path)


def combine_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """One decorator that adds several options to a command, listed in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def split_options(values: dict[str, Any], kind: type[T]) -> tuple[T, dict[str, Any]]:
    """An instance of the dataclass `kind`, made from the values that are its fields, and the other values."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    own = {name: value for name, value in values.items() if name in names}
    return kind(**own), {name: value for name, value in values.items() if name not in names}


def _parse_delimiter(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    return "\t" if value in ("tab", "\\t") else value


def name_option(flag: str, **attributes: Any) -> Callable[[F], F]:
    """An option whose value a ledger can store: printable text, so that bytes that are not UTF-8 are refused."""

    def check(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
        if value is not None and (not value or not value.isprintable()):
            raise click.BadParameter("it must be printable text in UTF-8, and not empty.", context, parameter)
        return value

    return click.option(flag, callback=check, **attributes)


author_options = combine_options(
    name_option("--actor", help="Who does this; recorded in the ledger. [default: user@host]"),
    name_option("--purpose", help="What it is for; recorded in the ledger."),
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
delimiter_option = click.option(
    "--delimiter",
    callback=_parse_delimiter,
    help="Column separator of CSV files: one character, or 'tab'. [default: the one in the line of column names]",
)
epsilon_option = click.option("--epsilon", type=float, required=True, help="Privacy loss, greater than 0.")
delta_option = click.option(
    "--delta", type=float, required=True, help="Probability of a larger loss; choose it well below 1/records."
)
method_options = combine_options(
    click.option(
        "--method",
        type=click.Choice(METHODS),
        default="auto",
        show_default=True,
        help="For means, covariance, correlation, components and regression: an adaptive fit, a plain release, or the "
        "one that is expected to be more accurate.",
    ),
    click.option("--target", metavar="NAME", help="The number that --query regression explains."),
    click.option("--on", metavar="NAME,...", help="The columns that explain it. [default: all others]"),
)
design_options = combine_options(
    click.option("--schema", type=PATH, required=True, help="TOML file with what is public about the data."),
    click.option("--query", type=click.Choice(QUERIES), required=True, help="What to release."),
    epsilon_option,
    delta_option,
    click.option(
        "--records",
        type=int,
        help="Public number of records. [default: from the schema; release can also count the rows]",
    ),
    click.option(
        "--neighbours",
        type=click.Choice(NEIGHBOURS),
        help="Whether one record (or person) is replaced, or comes and goes. [default: replace; add-remove for graphs]",
    ),
    name_option(
        "--person",
        metavar="COLUMN",
        help="Protect each person with all their rows: the column that says whose a row is. [default: protect rows]",
    ),
    click.option(
        "--rows-per-person",
        type=int,
        metavar="K",
        help="Let each row count, up to K rows a person. [default: each person counts once]",
    ),
    click.option(
        "--importance",
        metavar="NAME=NUMBER,...",
        help="Weight of a feature's squared error, relative to its range; 1 for features that are not named.",
    ),
    click.option(
        "--directions",
        default="standard",
        show_default=True,
        metavar="standard|learned|FILE",
        help="Axes of the noise: the features; principal directions, learned privately in the units of the data (for "
        "features with similar ranges); or a NPY or CSV file.",
    ),
    click.option(
        "--directions-share",
        type=float,
        default=0.2,
        show_default=True,
        help="Share of the budget that is spent on learning directions.",
    ),
    click.option(
        "--calibration",
        type=click.Choice(CALIBRATIONS),
        default="exact",
        show_default=True,
        help="How the size of the noise is determined; all but 'exact' are the paper's.",
    ),
    click.option("--columns", metavar="NAME,...", help="Columns of the schema to release. [default: all]"),
    click.option(
        "--by",
        metavar="NAME,...",
        help="Categories: the same for each of their levels, for the same epsilon. For everything, means, table, "
        "covariance and correlation.",
    ),
    click.option("--cells", metavar="ROWS,COLUMNS", help="The two columns that --query table and counts tabulate."),
    click.option("--points", type=PATH, help="Public points for --query gram: a table or a NPY file."),
    click.option(
        "--kernel",
        type=click.Choice(("gaussian", "laplacian")),
        default="gaussian",
        show_default=True,
        help="Kernel of --query gram.",
    ),
    click.option(
        "--bandwidth",
        type=float,
        default=1.0,
        show_default=True,
        help="Bandwidth of the kernel, in units of half the width of the bounds.",
    ),
)
