"""What ``matrixdp audit`` does: audit a design, all designs of a schema, or a Python object."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from matrixdp.audit import attack, measure
from matrixdp.audit.page import (
    Finding,
    audit_facts,
    describe_attack,
    describe_measurement,
    describe_replays,
    render_audit,
)
from matrixdp.cli.actions.design_options import DesignOptions
from matrixdp.cli.actions.output import echo_json, replace_nonfinite
from matrixdp.cli.exits import ExitCode
from matrixdp.design import Design, make_design
from matrixdp.domain.columns import Category
from matrixdp.domain.schema import Schema
from matrixdp.domain.schema_file import read_schema
from matrixdp.errors import ParameterError, show
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.release.options import GRAPHS, PER_RECORD, QUESTIONS
from matrixdp.release.output_folder import OutputFolder
from matrixdp.release.plan import make_query, make_request_design, read_matrix

_RECORDS = 8  # without --records: a pair of neighbours within a small data set is enough
_SHOWN_AS_OTHERS = ("covariance", "correlation", "components", "regression", "means", "table")


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The options of audits, apart from those of a design."""

    generate: str | None
    first: Path | None
    second: Path | None
    trials: int
    replays: int
    starts: int
    seconds: float


def run_audit(
    target: str | None, *, out: Path | None, force: bool, as_json: bool, schema: Path | None, **options: Any
) -> int:
    """Audit, print and write the results; returns the exit code."""
    chosen = AuditOptions(**{name: options.pop(name) for name in AuditOptions.__dataclass_fields__})
    with nullcontext() if out is None else OutputFolder(out, force=force) as folder:
        if target is None:
            findings = list(_audit_schema(schema, options, chosen))
        else:
            findings = [_audit_object(target, _import_object(target, "MODULE:NAME"), schema, options, chosen)]
        if folder is not None:
            _write_files(folder.path, findings)
            folder.finish()
    if as_json:
        echo_json(audit_facts(findings))
    else:
        for found in findings:
            mark = click.style("BROKEN", fg="red", bold=True) if found.broken else click.style("holds", fg="green")
            click.echo(f"{mark}  {found.subject}\n  {found.text}")
        if out is not None:
            click.echo(f"Report: {out / 'report.html'}")
    return ExitCode.EXCEEDED if any(found.broken for found in findings) else ExitCode.SUCCESS


def _audit_schema(path: Path | None, options: dict[str, Any], chosen: AuditOptions) -> Iterator[Finding]:
    """The design that the options name, or all that the schema allows."""
    if path is None:
        raise ParameterError("--schema must be given, or MODULE:NAME of a design, query, estimator or function.")
    schema, privacy = read_schema(path), _require_privacy(options)
    unbounded = options["rows_per_person"] is None and (schema.person is None or schema.person.rows is None)
    by_row = PER_RECORD if (options["person"] or schema.person) and unbounded else ()
    for query in [options["query"]] if options["query"] else _possible_queries(schema):
        if query in by_row and options["query"] is None:
            continue
        named = {**options, "query": query, "epsilon": privacy.epsilon, "delta": privacy.delta}
        if query == "counts" and options["query"] is None:
            named["cells"] = ",".join(_pairable(schema)[:2])
        if query not in ("counts", "everything", *GRAPHS) and options["query"] is None:
            named["columns"] = ",".join(_complete_numbers(schema))
        design_options = DesignOptions(schema=path, **named)
        records = None if query in GRAPHS else _RECORDS if options["records"] is None else options["records"]
        if design_options.learned:
            raise ParameterError("--directions must be standard or a file for an audit: nothing is learned.")
        request = design_options.to_request(schema)
        design = make_request_design(request, make_query(request, records))
        yield _attack(f"{query} ({path.name})", design, chosen)


def _possible_queries(schema: Schema) -> list[str]:
    """Queries that a schema allows; those that are read off the moments of numbers or of a table are left out."""
    numbers = bool(_complete_numbers(schema))
    allowed = {
        name: schema.graph is not None if name in GRAPHS else numbers
        for name in QUESTIONS
        if name not in _SHOWN_AS_OTHERS
    }
    allowed["counts"] = len(_pairable(schema)) > 1
    allowed["everything"] = schema.columns is not None
    return [name for name, possible in allowed.items() if possible]


def _complete_numbers(schema: Schema) -> list[str]:
    """Columns of numbers that are not missing."""
    return [] if schema.columns is None else [one.name for one in schema.columns.numbers if not one.missing]


def _pairable(schema: Schema) -> list[str]:
    """Categories that --query counts can use."""
    categories = () if schema.columns is None else schema.columns.categories
    return [one.name for one in categories if isinstance(one, Category) and not (one.other or one.missing)]


def _audit_object(name: str, thing: Any, schema: Path | None, options: dict[str, Any], chosen: AuditOptions) -> Finding:
    """Audit a Python object, according to what it is."""
    if isinstance(thing, Design):
        return _attack(name, thing, chosen, schema, options["records"])
    if isinstance(thing, MatrixQuery):
        return _attack(name, make_design(thing, _require_privacy(options)), chosen, schema, options["records"])
    if hasattr(thing, "fit") and hasattr(thing, "get_params"):
        return _replay(name, _make_estimator(thing, options) if isinstance(thing, type) else thing, chosen)
    if callable(thing):
        return _measure(name, thing, options, chosen)
    raise ParameterError(
        f"MODULE:NAME must be a design, a query, an estimator or a function, got {type(thing).__name__} instead."
    )


def _attack(
    name: str, design: Design, chosen: AuditOptions, schema: Path | None = None, records: int | None = None
) -> Finding:
    generate = None if chosen.generate is None else _import_object(chosen.generate, "--generate")
    bounds = None if schema is None or generate is not None else read_schema(schema).number_bounds()
    found = attack(
        design, generate=generate, bounds=bounds, records=records, starts=chosen.starts, seconds=chosen.seconds
    )
    return describe_attack(name, found)


def _replay(name: str, estimator: Any, chosen: AuditOptions) -> Finding:
    from matrixdp.audit.campaign import replay_fits  # needs scikit-learn
    from matrixdp.audit.random_cases import estimator_case

    limits: dict[str, Any] = {"replays": chosen.replays, "seconds": chosen.seconds}
    tallies = replay_fits(**limits, names=[name], choose=lambda _, rng: estimator_case(estimator, rng))
    return describe_replays(name, tallies[name])


def _make_estimator(kind: Any, options: dict[str, Any]) -> Any:
    """An estimator of the class with the budget of the options, for features from -1 to 1."""
    privacy = _require_privacy(options)
    known = kind().get_params(deep=False)
    targets = {"target_bounds": (-1, 1)} if "target_bounds" in known else {}
    return kind(epsilon=privacy.epsilon, delta=privacy.delta, bounds=(-1, 1), **targets)


def _measure(name: str, function: Callable[[Any], Any], options: dict[str, Any], chosen: AuditOptions) -> Finding:
    if chosen.first is None or chosen.second is None:
        raise ParameterError("--first and --second must name files with two neighbouring data sets for a function.")
    data, neighbour = read_matrix(chosen.first, "first"), read_matrix(chosen.second, "second")
    found = measure(function, data, neighbour, trials=chosen.trials, claim=_require_privacy(options))
    return describe_measurement(name, found)


def _require_privacy(options: dict[str, Any]) -> Privacy:
    if options["epsilon"] is None or options["delta"] is None:
        raise ParameterError("--epsilon and --delta must be given: the guarantee to audit.")
    return Privacy(options["epsilon"], options["delta"])


def _import_object(path: str, option: str) -> Any:
    """The object that ``module:name`` names, from the current folder or PYTHONPATH."""
    module, mark, name = path.partition(":")
    if not (mark and module and name):
        raise ParameterError(f"{option} must be module:name, got {show(path)} instead.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ParameterError(
            f"{option} {show(path)} cannot be imported: {error}. Run from its folder, or put the folder on PYTHONPATH."
        ) from None


def _write_files(folder: Path, findings: list[Finding]) -> None:
    (folder / "report.html").write_text(render_audit(findings), encoding="utf-8")
    facts = json.dumps(replace_nonfinite(audit_facts(findings)), indent=2, allow_nan=False)
    (folder / "audit.json").write_text(facts + "\n", encoding="utf-8")
    for found in findings:
        if found.picture:
            (folder / "tradeoff.svg").write_text(found.picture, encoding="utf-8")
