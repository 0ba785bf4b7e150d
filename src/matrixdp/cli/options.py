"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

QUERIES = (
    "moments",
    "covariance",
    "correlation",
    "second-moment",
    "identity",
    "gram",
    "adjacency",
    "laplacian",
    "counts",
)
CALIBRATIONS = ("exact", "theorem2", "theorem2-corrected", "theorem2-psd")
PATH = click.Path(path_type=Path)

_DESIGN_NAMES = {
    "schema",
    "query",
    "epsilon",
    "delta",
    "records",
    "neighbours",
    "importance",
    "directions",
    "directions_share",
    "calibration",
    "cells",
    "points",
    "kernel",
    "bandwidth",
}

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
delimiter_option = click.option(
    "--delimiter", help="What separates the columns of a CSV file: one character, or 'tab'. A comma by default."
)
epsilon_option = click.option("--epsilon", type=float, required=True, help="Privacy loss, greater than 0.")
delta_option = click.option(
    "--delta", type=float, required=True, help="Probability of a larger loss, well below one over the records."
)

_DESIGN = (
    click.option("--schema", type=PATH, required=True, help="What is public about the data: a TOML file."),
    click.option("--query", type=click.Choice(QUERIES), required=True, help="What to release."),
    epsilon_option,
    delta_option,
    click.option(
        "--records", type=int, help="The public number of records. [default: the schema's; a release can count]"
    ),
    click.option(
        "--neighbours",
        type=click.Choice(("replace", "add-remove")),
        help="What one person may change. [default: replace; add-remove for graphs]",
    ),
    click.option(
        "--importance",
        metavar="NAME=NUMBER,...",
        help="How much a feature's squared error, relative to its range, counts; 1 for the others.",
    ),
    click.option(
        "--directions",
        default="standard",
        show_default=True,
        metavar="standard|learned|FILE",
        help="Axes of the noise: the features, private principal directions (in the data's units: for features of like "
        "ranges), or a NPY or CSV file.",
    ),
    click.option(
        "--directions-share",
        type=float,
        default=0.2,
        show_default=True,
        help="Share of the budget for directions that are learned.",
    ),
    click.option(
        "--calibration",
        type=click.Choice(CALIBRATIONS),
        default="exact",
        show_default=True,
        help="How the noise is sized; the others are the paper's.",
    ),
    click.option("--cells", metavar="ROWS,COLUMNS", help="The two columns of --query counts."),
    click.option("--points", type=PATH, help="Public points of --query gram: a table or a NPY file."),
    click.option(
        "--kernel",
        type=click.Choice(("gaussian", "laplacian")),
        default="gaussian",
        show_default=True,
        help="Kernel of --query gram.",
    ),
    click.option(
        "--bandwidth", type=float, default=1.0, show_default=True, help="Of the kernel, in halves of the bounds' width."
    ),
)


def design_options(function: F) -> F:
    """All options that a design is made from."""
    for option in reversed(_DESIGN):
        function = option(function)
    return function


def split_options(values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of a design, and the rest."""
    names = [name for name in values if name in _DESIGN_NAMES]
    return {name: values[name] for name in names}, {name: values[name] for name in values if name not in names}


def parse_delimiter(value: str | None) -> str | None:
    """The character that is meant."""
    return "\t" if value in ("tab", "\\t") else value
