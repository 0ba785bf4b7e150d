"""A request as Python code and as a command line, which make the same design. Both are tested by running them."""

from __future__ import annotations

import shlex
from dataclasses import replace

from matrixdp.adaptive.forecast import Description
from matrixdp.design import Design
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.columns import Category, Column, Columns, Number
from matrixdp.domain.schema import Schema
from matrixdp.privacy import Neighbours
from matrixdp.queries import Adjacency, Laplacian, MatrixQuery, Moments, SecondMoment, TableMoments
from matrixdp.release.adaptive_release import find_recipe
from matrixdp.release.plan import Plan
from matrixdp.report.forecast import describe_data
from matrixdp.studio.spec import ReleaseSpec


def write_command(spec: ReleaseSpec, schema: Schema) -> str:
    """The command ``matrixdp design`` for a request."""
    options = replace(spec, missing="error", allowance=None).to_arguments()
    return _break_lines(["matrixdp", "design", "--schema", schema.path.name, *options])


def write_release_command(spec: ReleaseSpec, schema: Schema, table: str, dataset: str, ledger: str) -> str:
    """The command ``matrixdp release`` for a request."""
    file = f"./{table}" if table.startswith("-") else table
    words = ["matrixdp", "release", file, "--schema", schema.path.name, *spec.to_arguments()]
    return _break_lines([*words, "--ledger", ledger, "--dataset", dataset, "--out", "out"])


def write_python(spec: ReleaseSpec, schema: Schema, plan: Plan, *, table: str, dataset: str) -> str | None:
    """Python code that makes the same design, or forecasts the same fit; None for queries that need more than that."""
    data, name = repr(table), repr(dataset)
    account = f'ledger="ledger.db", dataset={name}' + (f", allowance={spec.allowance!r}" if spec.allowance else "")
    privacy = f"privacy = mdp.Privacy(epsilon={spec.epsilon!r}, delta={spec.delta!r})"
    if plan.design is None:
        return _write_fit(spec, schema, plan, privacy, data, account)
    if spec.directions != "standard" or spec.calibration != "exact":
        return None
    query = _write_query(plan.design.query)
    if query is None:
        return None
    options = "" if isinstance(plan.design.query, TableMoments) else _write_allocation(plan.design)
    lines = [
        "import matrixdp as mdp",
        "",
        *query,
        privacy,
        f"design = mdp.make_design(query, privacy{options})",
        "print(design.explain())  # no data so far",
    ]
    if schema.graph is None:
        lines.append(f"# release = design.release(mdp.open_records({data}), {account})")
    else:
        lines.append(f"# release = design.release(adjacency_matrix, {account})")
    return "\n".join(lines) + "\n"


def _write_fit(spec: ReleaseSpec, schema: Schema, plan: Plan, privacy: str, data: str, account: str) -> str:
    bounds, person = plan.bounds, plan.query.person
    who = "" if plan.neighbours is Neighbours.REPLACE else f', neighbours="{plan.neighbours}"'
    who += "" if person is None else f", person=mdp.{person!r}"
    description = _write_description(describe_data(schema, bounds))
    lines = [
        "import matrixdp as mdp",
        "from matrixdp.adaptive import Description, forecast",
        "",
        *_write_bounds(bounds),
        privacy,
        f"expected = {description}",
        f'found = forecast(bounds, {plan.records}, privacy, description=expected, aim="{find_recipe(spec.query)}"'
        f"{who})",
        "print(found.typical.correlation_std)  # by simulation, no data so far",
        f'# release = mdp.release_table(mdp.open_records({data}), bounds, privacy, aim="{spec.query}", '
        f"records={plan.records}{who}, {account})",
    ]
    return "\n".join(lines) + "\n"


def _write_description(description: Description) -> str:
    spread, position = (_shorten(values) for values in (description.spread, description.position))
    return f"Description(spread={spread}, position={position}, correlation={description.correlation!r})"


def _shorten(values: object) -> str:
    """One number for all features if they are equal, or a list."""
    found = [float(value) for value in values]  # type: ignore[attr-defined]
    return repr(found[0]) if len(set(found)) == 1 else repr(found)


def _write_query(query: MatrixQuery) -> list[str] | None:
    """Lines that assign `query`; None for one that has no short form."""
    if isinstance(query, TableMoments):
        given = [f"columns, records={query.records}"]
        given += [f"by={list(query.by)!r}"] if query.by else []
        given += _write_who(query)
        given.append(f"mean_share={query.mean_share!r}")
        given += [f"importance={query.importance!r}"] if query.importance else []
        return [*_write_columns(query.columns), f"query = mdp.TableMoments({', '.join(given)})"]
    if isinstance(query, Moments):
        given = [f"bounds, records={query.records}", *_write_who(query), f"mean_share={query.mean_share!r}"]
        return [*_write_bounds(query.bounds), f"query = mdp.Moments({', '.join(given)})"]
    if isinstance(query, SecondMoment):
        given = [f"bounds, records={query.records}", *_write_who(query)]
        return [*_write_bounds(query.bounds), f"query = mdp.SecondMoment({', '.join(given)})"]
    if isinstance(query, Adjacency | Laplacian):
        given = [f"{query.nodes}, {query.weight!r}", f"node_names={query.node_names!r}"]
        given += [f'neighbours="{query.neighbours}"', f"unit={query.unit!r}"]
        given += [] if query.max_degree is None else [f"max_degree={query.max_degree!r}"]
        return [f"query = mdp.{type(query).__name__}({', '.join(given)})"]
    return None


def _write_who(query: TableMoments | Moments | SecondMoment) -> list[str]:
    found = [] if query.neighbours is Neighbours.REPLACE else [f'neighbours="{query.neighbours}"']
    if query.person is not None:
        found.append(f"person=mdp.{query.person!r}")
    return found


def _write_columns(columns: Columns) -> list[str]:
    return ["columns = mdp.Columns([", *(f"    {_write_column(column)}," for column in columns), "])"]


def _write_column(column: Column) -> str:
    flags = "".join(f", {flag}=True" for flag in ("other", "missing") if getattr(column, flag, False))
    if isinstance(column, Number):
        return f"mdp.Number({column.name!r}, {column.lower!r}, {column.upper!r}{flags})"
    if isinstance(column, Category):
        return f"mdp.Category({column.name!r}, {list(column.levels)!r}{flags})"
    return f"mdp.YesNo({column.name!r}{flags})"


def _write_bounds(bounds: Bounds) -> list[str]:
    names = bounds.names or tuple(map(str, range(bounds.size)))
    pairs = zip(names, bounds.lower.tolist(), bounds.upper.tolist(), strict=True)
    radius = "" if bounds.radius is None else f", radius={bounds.radius!r}"
    return [
        "bounds = mdp.Bounds.from_dict({",
        *(f"    {name!r}: ({lower!r}, {upper!r})," for name, lower, upper in pairs),
        "}" + radius + ")",
    ]


def _write_allocation(design: Design) -> str:
    fields = dict(design.allocation.to_fields()) if hasattr(design.allocation, "to_fields") else {}
    if fields.get("rule") != "optimal" or fields.get("values") is None:
        return ""
    return f", allocation=mdp.allocations.optimal({list(map(float, fields['values']))!r})"


def _break_lines(words: list[str]) -> str:
    """A command line with one option a line, for shells."""
    lines: list[list[str]] = [[]]
    for word in words:
        if word.startswith("--") and len(lines[-1]) > 1 and word != "--schema":
            lines.append([])
        lines[-1].append(word)
    return " \\\n  ".join(shlex.join(line) for line in lines)
