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
from matrixdp.errors import ParameterError, show
from matrixdp.release.options import GRAPHS, PER_RECORD, QUESTIONS
from matrixdp.release.output_folder import OutputFolder

if TYPE_CHECKING:
    from matrixdp.audit.page import Finding
    from matrixdp.design import Design
    from matrixdp.privacy import Privacy

_RECORDS = 8  # without --records: a pair of neighbours within a small data set is enough
_SHOWN_AS_OTHERS = ("covariance", "correlation", "components", "regression", "means", "table")


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
def audit(target: str | None, schema: Path | None, out: Path | None, force: bool, as_json: bool, **options: Any) -> int:
    """Look for neighbouring data sets that exceed a claim. Reads no private data.

    The options of design name a design; --schema alone, all designs for its columns. MODULE:NAME is a design, a query,
    an estimator, or a function from data to numbers. The exit code is 1 if a claim does not hold.
    """
    from matrixdp.audit.page import audit_facts, render_audit

    asked, chosen = split_request(options)
    with nullcontext() if out is None else OutputFolder(out, force=force) as folder:
        if target is None:
            findings = list(_audit_schema(schema, asked, chosen))
        else:
            findings = [_audit_object(target, _import_object(target, "MODULE:NAME"), schema, asked, chosen)]
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


def _audit_schema(path: Path | None, asked: dict[str, Any], chosen: dict[str, Any]) -> Iterator[Finding]:
    """The design that the asked name, or all that the schema allows."""
    from matrixdp.domain import Category, read_schema
    from matrixdp.release.plan import make_query, make_request_design
    from matrixdp.release.request import Request

    if path is None:
        raise ParameterError("--schema must be given, or MODULE:NAME of a design, query, estimator or function.")
    schema, privacy = read_schema(path), _require_privacy(asked)
    numbers = () if schema.columns is None else [one.name for one in schema.columns.numbers if not one.missing]
    categories = () if schema.columns is None else schema.columns.categories
    pairs = [one.name for one in categories if isinstance(one, Category) and not (one.other or one.missing)]
    possible = {name: bool(numbers) for name in QUESTIONS if name not in _SHOWN_AS_OTHERS}
    possible |= dict.fromkeys(GRAPHS, schema.graph is not None)
    possible |= {"counts": len(pairs) > 1, "everything": schema.columns is not None}
    unbounded = asked["rows_per_person"] is None and (schema.person is None or schema.person.rows is None)
    if (asked["person"] or schema.person) and unbounded:
        possible |= dict.fromkeys(PER_RECORD, False)
    for query in [asked["query"]] if asked["query"] else [name for name, can in possible.items() if can]:
        named = {**asked, "query": query, "epsilon": privacy.epsilon, "delta": privacy.delta}
        if asked["query"] is None and query == "counts":
            named["cells"] = ",".join(pairs[:2])
        elif asked["query"] is None and query not in ("everything", *GRAPHS):
            named["columns"] = ",".join(numbers)
        request = Request.parse(schema, named)
        records = None if query in GRAPHS else _RECORDS if asked["records"] is None else asked["records"]
        design = make_request_design(request, make_query(request, records))
        yield _attack(f"{query} ({path.name})", design, chosen)


def _audit_object(name: str, thing: Any, schema: Path | None, asked: dict[str, Any], chosen: dict[str, Any]) -> Finding:
    """Audit a Python object, according to what it is."""
    from matrixdp.audit import measure
    from matrixdp.audit.page import describe_measurement, describe_replays
    from matrixdp.design import Design, make_design
    from matrixdp.queries import MatrixQuery
    from matrixdp.release.plan import read_matrix

    if isinstance(thing, Design):
        return _attack(name, thing, chosen, schema, asked["records"])
    if isinstance(thing, MatrixQuery):
        return _attack(name, make_design(thing, _require_privacy(asked)), chosen, schema, asked["records"])
    if hasattr(thing, "fit") and hasattr(thing, "get_params"):
        from matrixdp.audit.estimators import replay_estimator  # needs scikit-learn

        if isinstance(thing, type):  # for features from -1 to 1
            privacy, options = _require_privacy(asked), {"bounds": (-1, 1)}
            if "target_bounds" in thing().get_params(deep=False):
                options["target_bounds"] = (-1, 1)
            thing = thing(epsilon=privacy.epsilon, delta=privacy.delta, **options)
        tally = replay_estimator(thing, replays=chosen["replays"], seconds=chosen["seconds"])
        return describe_replays(name, tally)
    if callable(thing):
        if chosen["first"] is None or chosen["second"] is None:
            raise ParameterError("--first and --second must name files with two neighbouring data sets for a function.")
        data, neighbour = read_matrix(chosen["first"], "first"), read_matrix(chosen["second"], "second")
        found = measure(thing, data, neighbour, trials=chosen["trials"], claim=_require_privacy(asked))
        return describe_measurement(name, found)
    raise ParameterError(
        f"MODULE:NAME must be a design, a query, an estimator or a function, got {type(thing).__name__} instead."
    )


def _attack(
    name: str, design: Design, chosen: dict[str, Any], schema: Path | None = None, records: int | None = None
) -> Finding:
    from matrixdp.audit import attack
    from matrixdp.audit.page import describe_attack
    from matrixdp.domain.schema_file import read_schema

    generate = None if chosen["generate"] is None else _import_object(chosen["generate"], "--generate")
    bounds = None if schema is None or generate is not None else read_schema(schema).number_bounds()
    limits = {"starts": chosen["starts"], "seconds": chosen["seconds"]}
    return describe_attack(name, attack(design, generate=generate, bounds=bounds, records=records, **limits))


def _require_privacy(asked: dict[str, Any]) -> Privacy:
    from matrixdp.privacy import Privacy

    if asked["epsilon"] is None or asked["delta"] is None:
        raise ParameterError("--epsilon and --delta must be given: the guarantee to audit.")
    return Privacy(asked["epsilon"], asked["delta"])


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
