"""``matrixdp audit``: look for neighbours that exceed a claim, of a design, all designs of a schema, or an object."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matrixdp.cli.exits import ExitCode
from matrixdp.cli.options import PATH, Command, design_options, echo_json, json_option, split_request, write_json
from matrixdp.errors import ParameterError, join_names, show
from matrixdp.release.options import GRAPHS, PER_RECORD
from matrixdp.release.output_folder import OutputFolder

if TYPE_CHECKING:
    from matrixdp.audit.page import Finding
    from matrixdp.design import Design
    from matrixdp.domain.schema import Schema
    from matrixdp.privacy import Privacy

_RECORDS = 8  # without --records: a pair of neighbours within a small data set is enough


@click.command(
    cls=Command,
    example="matrixdp audit --schema schema.toml --query covariance --epsilon 1 --delta 1e-6 --out audit/\n"
    "matrixdp audit study:histogram --epsilon 1 --delta 1e-6 --generate study:random_record --out audit/",
)
@click.argument("target", required=False, metavar="[MODULE:NAME]")
@design_options
@click.option("--generate", metavar="MODULE:NAME", help="Function that returns one record, for a query of your own.")
@click.option("--first", type=PATH, help="NPY or CSV file with the data set on which a function is measured.")
@click.option("--second", type=PATH, help="NPY or CSV file with its neighbour.")
@click.option("--trials", type=int, default=4000, help="Runs of a function on each data set.")
@click.option("--replays", type=int, default=50, help="Fits of an estimator to replay.")
@click.option("--starts", type=int, default=16, help="Families of neighbours to search.")
@click.option("--seconds", type=float, default=30.0, help="Stop an attack after this time.")
@click.option("--out", type=PATH, help="Folder to write: report.html, audit.json and pictures.")
@click.option("--force", is_flag=True, help="Replace an existing folder.")
@json_option
def audit(target: str | None, out: Path | None, force: bool, as_json: bool, **options: Any) -> int:
    """Look for neighbouring data sets that exceed a claim. Reads no private data.

    The options of design name a design; --schema alone, all designs for its columns. MODULE:NAME is a design, a query,
    an estimator, or a function from data to numbers. The exit code is 1 if a claim does not hold.
    """
    from matrixdp.audit.page import audit_facts, render_audit

    with nullcontext() if out is None else OutputFolder(out, force=force) as folder:
        findings = list(_audit_schema(**options)) if target is None else [_audit_object(target, options)]
        if folder is not None:
            facts = f"{write_json(audit_facts(findings))}\n"
            (folder.path / "audit.json").write_text(facts, encoding="utf-8")
            (folder.path / "report.html").write_text(render_audit(findings), encoding="utf-8")
            for found in findings:
                if found.picture:
                    (folder.path / "tradeoff.svg").write_text(found.picture, encoding="utf-8")
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


for _parameter in audit.params:
    _parameter.required = False  # a Python object needs none of the options of design


def _audit_schema(schema: Schema | None, **options: Any) -> Iterator[Finding]:
    """The design that the options name, or all that the schema allows."""
    from matrixdp.release.plan import make_query, make_request_design
    from matrixdp.release.request import Request

    if schema is None:
        raise ParameterError("--schema must be given, or MODULE:NAME of a design, query, estimator or function.")
    _require_privacy(options)
    asked, limits = split_request(options)
    whose = asked["person"] or schema.person
    bounded = asked["rows_per_person"] or (schema.person and schema.person.rows)
    for query in [{}] if asked["query"] else _list_queries(schema, per_record=bool(bounded or not whose)):
        request = Request.parse(schema, asked | query)
        records = None if request.question in GRAPHS else request.records or _RECORDS
        design = make_request_design(request, make_query(request, records))
        yield _attack(f"{request.question} ({schema.path.name})", design, limits)


def _list_queries(schema: Schema, *, per_record: bool) -> Iterator[dict[str, str]]:
    """Each query that the schema allows, of as many columns as it can have; some need a bound on rows per person."""
    from matrixdp.domain import Category

    if schema.columns is not None:
        yield {"query": "everything"}
        numbers = join_names(one.name for one in schema.columns.numbers if not one.missing)
        for name in ("moments", "second-moment", *(PER_RECORD if per_record else ())) if numbers else ():
            yield {"query": name, "columns": numbers}
        known = [one for one in schema.columns.categories if isinstance(one, Category) and not one.other]
        pairs = [one.name for one in known if not one.missing]
        if len(pairs) > 1:
            yield {"query": "counts", "cells": join_names(pairs[:2])}
    if schema.graph is not None:
        yield from ({"query": name} for name in GRAPHS)


def _audit_object(name: str, options: dict[str, Any]) -> Finding:
    """Audit the Python object of a name, according to what it is."""
    from matrixdp.audit import measure
    from matrixdp.audit.page import describe_measurement, describe_replays
    from matrixdp.design import Design, make_design
    from matrixdp.queries import MatrixQuery
    from matrixdp.release.plan import read_matrix

    thing = _import_object(name, "MODULE:NAME")
    if isinstance(thing, MatrixQuery):
        thing = make_design(thing, _require_privacy(options))
    if isinstance(thing, Design):
        return _attack(name, thing, options)
    if hasattr(thing, "fit") and hasattr(thing, "get_params"):
        from matrixdp.audit.estimators import replay_estimator  # needs scikit-learn

        if isinstance(thing, type):  # for features from -1 to 1
            privacy, known = _require_privacy(options), thing().get_params(deep=False)
            bounds = {key: (-1, 1) for key in ("bounds", "target_bounds") if key in known}
            thing = thing(epsilon=privacy.epsilon, delta=privacy.delta, **bounds)
        tally = replay_estimator(thing, replays=options["replays"], seconds=options["seconds"])
        return describe_replays(name, tally)
    if callable(thing):
        if options["first"] is None or options["second"] is None:
            raise ParameterError("--first and --second must name files with two neighbouring data sets for a function.")
        data, neighbour = (read_matrix(options[key], key) for key in ("first", "second"))
        found = measure(thing, data, neighbour, trials=options["trials"], claim=_require_privacy(options))
        return describe_measurement(name, found)
    raise ParameterError(
        f"MODULE:NAME must be a design, a query, an estimator or a function, got {type(thing).__name__} instead."
    )


def _attack(name: str, design: Design, options: dict[str, Any]) -> Finding:
    """Attack a design; that of an object with neighbours within the bounds of a schema, if it is given."""
    from matrixdp.audit import attack
    from matrixdp.audit.page import describe_attack

    limits: dict[str, Any] = {key: options.get(key) for key in ("records", "starts", "seconds")}
    schema = options.get("schema")
    generate = None if options["generate"] is None else _import_object(options["generate"], "--generate")
    bounds = None if schema is None or generate is not None else schema.number_bounds()
    return describe_attack(name, attack(design, generate=generate, bounds=bounds, **limits))


def _require_privacy(options: dict[str, Any]) -> Privacy:
    from matrixdp.privacy import Privacy

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
