"""Which method a command uses: an adaptive fit or a plain release, and why. Reads no private data."""

from __future__ import annotations

from matrixdp.adaptive.method import MethodChoice
from matrixdp.cli.actions.design_options import DesignOptions
from matrixdp.cli.actions.person_options import find_person
from matrixdp.cli.actions.schema_file import MAX_SIDE, Schema
from matrixdp.cli.actions.table_query import choose_columns, choose_numbers, split_names
from matrixdp.domain.bounds import Bounds
from matrixdp.errors import ParameterError, show
from matrixdp.release.covariance_release import AIMS, choose_for
from matrixdp.queries.checks import parse_records

_PLAIN_OPTIONS = {"importance": None, "directions": "standard", "calibration": "exact"}


def choose_method_for(
    options: DesignOptions, schema: Schema, records: int | None, missing: str = "error"
) -> MethodChoice | None:
    """The method for the options and why; None for a query that has only one.

    Raises a `ParameterError` for --method, --target and --on where they do not fit the query.
    """
    _check_model_options(options, schema)
    if options.query not in AIMS:
        if options.method != "auto":
            raise ParameterError(f"--method must be left out for --query {options.query}; it is for {', '.join(AIMS)}.")
        return None
    records = parse_records(records)
    reason = _find_need_of_plain(options, schema, missing)
    if reason and options.method == "adaptive":
        raise ParameterError(f"--method must be auto or plain here. {reason}")
    if reason:
        return MethodChoice("plain", reason)
    features = len(choose_numbers(options, schema).numbers)
    person, mu = find_person(options, schema), options.privacy.mu
    return choose_for(options.query, options.method, features=features, records=records, mu=mu, person=person)


def find_bounds(options: DesignOptions, schema: Schema) -> Bounds:
    """Bounds of the numbers that an adaptive fit uses; the target of a regression is the last one."""
    bounds = schema.bounds(choose_numbers(options, schema))
    if bounds.size > MAX_SIDE:
        raise ParameterError(
            f"--query {options.query} must have at most {MAX_SIDE:,} columns, got {bounds.size:,} instead; the matrix "
            f"is held in memory. Choose some with --columns, or remove columns from {schema.path}."
        )
    return bounds if options.target is None else bounds.move_last(options.target)


def parse_features(options: DesignOptions) -> list[str] | None:
    """The columns that explain the target of a regression; None for all others."""
    return split_names(options.on)


def _find_need_of_plain(options: DesignOptions, schema: Schema, missing: str) -> str:
    """Why only a plain release can answer, in a sentence; empty if an adaptive fit can as well."""
    if options.by is not None:
        return "Groups (--by) are released together, by a plain release of the moments of each."
    columns = choose_columns(options, schema)
    if columns.categories and options.query not in ("covariance", "correlation"):
        return "The table has categories, which a plain release of its moments can use."
    if any(column.missing for column in columns):
        return "The table has missing values, which a plain release of its moments can use."
    if missing != "error":
        return "Missing values are replaced by the middle of their bounds, which only a plain release does."
    for name, default in _PLAIN_OPTIONS.items():
        if getattr(options, name) != default:
            return f"--{name} shapes the noise of a plain release."
    return ""


def _check_model_options(options: DesignOptions, schema: Schema) -> None:
    """Raise unless --target and --on are there for a regression, and only then."""
    if options.query != "regression":
        for name in ("target", "on"):
            if getattr(options, name) is not None:
                raise ParameterError(f"--{name} must be left out for --query {options.query}; it is for regression.")
        return
    if options.target is None:
        raise ParameterError("--target must be given for --query regression: the number that is explained.")
    columns = choose_columns(options, schema)
    schema.choose([options.target], "--target")
    features = parse_features(options) or [name for name in columns.names if name != options.target]
    if not features or options.target in features:
        raise ParameterError("--on must name at least one column, and not the --target.")
    if options.target not in [column.name for column in columns.numbers]:
        raise ParameterError(f"--target must be a column of numbers, got {show(options.target)} instead.")
