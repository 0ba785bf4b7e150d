"""Requests, charges and states in words, for pages."""

from __future__ import annotations

import re
from collections.abc import Iterable

from matrixdp.studio.requests import Status
from matrixdp.studio.spec import ReleaseSpec

# What can be designed on the page, with what it answers.
QUERIES = {
    "everything": ("Everything", "means, shares, tables and correlations of all chosen columns, in one release"),
    "means": ("Means", "means of numbers and shares of levels"),
    "correlation": ("Correlations", "of columns of numbers"),
    "covariance": ("Covariances", "of columns of numbers, in their units"),
    "regression": ("A regression", "of one number on other columns"),
    "components": ("Principal components", "of standardised numbers"),
    "table": ("A table of counts", "by two categories"),
    "moments": ("Means and second moments", "the matrix itself, for your own analysis"),
    "second-moment": ("Second moments", "the matrix itself, about the middle of the bounds"),
    "adjacency": ("Adjacency matrix", "of a graph"),
    "laplacian": ("Laplacian", "of a graph"),
}
GRAPH_QUERIES = ("adjacency", "laplacian")
NUMBER_QUERIES = ("correlation", "covariance", "components", "moments", "second-moment")
GROUPED_QUERIES = ("everything", "means", "correlation", "covariance", "table")

# The label, the style of its tag, and what happens next.
STATES = {
    Status.PENDING: ("Waits for a curator", "warn", "A curator approves or refuses it. Nothing is spent so far."),
    Status.REFUSED: ("Refused", "bad", "Nothing was spent. Change the design and ask again."),
    Status.APPROVED: ("Approved", "live", "It waits for its turn and is then released by itself."),
    Status.RUNNING: ("Being released", "live", "The table is read, the ledger charged, and noise added."),
    Status.RELEASED: ("Released", "good", "The result and its report can be read."),
    Status.FAILED: ("Failed", "bad", "A curator can approve it again; it is charged at most once."),
}


def name_query(spec: ReleaseSpec) -> str:
    """What is asked for, in a few words.

    Examples
    --------
    >>> name_query(ReleaseSpec(query="regression", epsilon=1.0, delta=1e-6, target="bmi", on="age,ward"))
    'A regression of bmi on age, ward'
    >>> name_query(ReleaseSpec(query="means", epsilon=1.0, delta=1e-6, by="ward"))
    'Means by ward'
    """
    name = QUERIES.get(spec.query, (spec.query.capitalize(), ""))[0]
    if spec.query == "regression":
        name += f" of {spec.target}" + (f" on {_list(spec.on)}" if spec.on else "")
    if spec.cells:
        name += f" of {_list(spec.cells).replace(', ', ' and ', 1)}"
    return name + (f" by {_list(spec.by)}" if spec.by else "")


def write_plainly(message: str) -> str:
    """An error of the command line for a page, which has fields in place of options.

    Examples
    --------
    >>> write_plainly("--columns must name each column once, as in --columns age,bmi.")
    'columns must name each column once, as in columns age,bmi.'
    """
    return re.sub(r"(?<!\S)--(?=[a-z])|(?<=\()--(?=[a-z])", "", message)


def find_field(message: str, fields: Iterable[str]) -> str:
    """The field of a form that an error is about: the first of `fields` that it names; ``"form"`` if it names none.

    Examples
    --------
    >>> find_field("epsilon must be greater than 0.", ["delta", "epsilon"])
    'epsilon'
    >>> find_field("clinic.toml: --by must name other columns.", ["columns", "by"])
    'by'
    """
    places = {name: _find_name(message, name) for name in fields}
    found = [(place, name) for name, place in places.items() if place is not None]
    return min(found)[1] if found else "form"


def _find_name(message: str, name: str) -> int | None:
    """Where a message names an option, or begins with a parameter."""
    option = re.search(rf"--{re.escape(name)}\b", message)
    if option:
        return option.start()
    return 0 if re.match(rf"{re.escape(name)}\b", message) else None


def _list(names: str | None) -> str:
    return ", ".join(name.strip() for name in (names or "").split(","))
