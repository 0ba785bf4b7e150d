"""`release_table`: one function for what can be asked of a table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from matrixdp.domain.bounds import Bounds
from matrixdp.domain.columns import Columns, Number
from matrixdp.domain.person import Person
from matrixdp.domain.schema import Schema
from matrixdp.domain.schema_file import read_schema
from matrixdp.errors import ParameterError
from matrixdp.ledger import Ledger
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy, check_privacy, warn_large_delta
from matrixdp.queries import Moments
from matrixdp.records import is_out_of_core, open_records, read_array
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.charging import open_account
from matrixdp.release.dataset import DatasetRelease
from matrixdp.release.plan import Plan, plan
from matrixdp.release.request import Request
from matrixdp.release.result import Release
from matrixdp.release.run import count_units, run


def release_table(
    data: Any,
    schema: Any,
    privacy: Privacy | None = None,
    *,
    question: str = "everything",
    epsilon: float | None = None,
    delta: float | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    request: str | None = None,
    allowance: str | None = None,
    workers: Any = None,
    stream: Stream | None = None,
    simulation: bool = False,
    **options: Any,
) -> Release | AdaptiveRelease:
    """Release what a question needs of a table of private records, by the method that suits it best.

    Parameters
    ----------
    data : array, pandas, polars or Arrow table of shape (n, m), or what open_records takes
        Values outside their bounds are moved to them. Files are read as the schema says.
    schema : Bounds, pair (lower, upper), Columns, dict, Schema, or path of a schema file
        What is public about the columns; never taken from the data. A pair has two sequences of bounds; a dict is that
        of `Columns.from_dict`.
    privacy : Privacy, optional
        The whole budget; or give `epsilon` and `delta`.
    question : str
        What the release should be most accurate for: 'everything', 'means', 'table', 'covariance', 'correlation',
        'components', 'regression', or another one of `matrixdp.release.options.QUESTIONS`.
    epsilon, delta : float, optional
    ledger, dataset, request, allowance
        What the release is charged to, as for `Design.release`. A request id that was used before returns the stored
        release without a charge, if all options are the same.
    workers : int, str or distributed.Client, optional
        Who reads files, as for `open_records`.
    stream, simulation
        For simulations only, as for `Design.release`.
    **options
        Further fields of `matrixdp.release.request.Request`: `columns`, `by`, `cells`, `target`, `on`, `records`,
        `neighbours`, `person`, `method` ('auto', 'adaptive' or 'plain'), `importance`, `missing`, and others.

    Returns
    -------
    Release or AdaptiveRelease
        Both have `means`, `table`, `covariance`, `correlation`, `components`, `regression` and `save`.

    Privacy
    -------
    The budget for the given neighbours, all steps together. The method depends on public numbers alone. Errors in data
    and parameters are raised before anything is charged, and the charge is committed before the first random bit is
    drawn.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> data = rng.normal(size=(4000, 1)) * [1.0, 0.9, 0.1] + 0.3 * rng.normal(size=(4000, 3))
    >>> bounds = Bounds([-5, -5, -5], [5, 5, 5], names=["a", "b", "c"])
    >>> released = release_table(data, bounds, epsilon=1, delta=1e-6, question="correlation")
    >>> released.method, released.correlation()["a", "b"] > 0.8
    ('adaptive', True)
    >>> table = {"age": [30, 41, 52, 67] * 500, "smoker": [True, False, False, True] * 500}
    >>> released = release_table(table, {"age": (18, 90), "smoker": bool}, Privacy(1, 1e-6))
    >>> abs(released.means(by="smoker")["yes", "age"] - 48.5) < 3
    True
    """
    budget = _parse_privacy(privacy, epsilon, delta)
    parsed, named = _parse_schema(schema)
    if isinstance(person := options.get("person"), Person):
        options |= {"person": person.column, "rows": person.rows}
    asked = Request(schema=parsed, question=question, epsilon=budget.epsilon, delta=budget.delta, id=request, **options)
    account = open_account(ledger, dataset, request, allowance, stream=stream, simulation=simulation)
    opened = _open(data, parsed, named, workers)
    made = plan(asked, lambda: count_units(asked, opened))
    if made.in_files:
        raise ParameterError("«question» identity of so many records is released as files: use release_dataset.")
    if not simulation and made.records is not None:
        warn_large_delta(budget, made.records)
    outcome = run(made if named else _without_names(made), opened, account, stream=stream, simulation=simulation)
    assert not isinstance(outcome.release, DatasetRelease)
    return outcome.release


def _parse_privacy(privacy: Any, epsilon: float | None, delta: float | None) -> Privacy:
    if privacy is None:
        if epsilon is None or delta is None:
            raise ParameterError("privacy must be given, as Privacy(epsilon, delta), or epsilon and delta.")
        return Privacy(epsilon, delta)
    check_privacy(privacy)
    if epsilon is not None or delta is not None:
        raise ParameterError("epsilon and delta must be left out with privacy, which has both.", parameter="epsilon")
    return privacy  # type: ignore[no-any-return]


def _parse_schema(schema: Any) -> tuple[Schema, bool]:
    """The schema, and whether its columns have names of their own; otherwise they are numbered."""
    if isinstance(schema, str | os.PathLike):
        return read_schema(Path(schema)), True
    if isinstance(schema, Schema):
        return schema, True
    if isinstance(schema, Mapping):
        return Schema(Columns.from_dict(schema), path=Path("columns")), True
    if isinstance(schema, Columns):
        return Schema(schema, path=Path("columns")), True
    if isinstance(schema, tuple) and len(schema) == 2:
        schema = Bounds(*schema)
    if not isinstance(schema, Bounds):
        raise ParameterError(
            "schema must be Bounds, a pair (lower, upper), Columns, a dict, a Schema or the path of a schema file: "
            f"what the values can be, never taken from the data. Got {type(schema).__name__} instead.",
            parameter="schema",
        )
    names = schema.names or tuple(map(str, range(schema.size)))
    limits = zip(names, schema.lower.tolist(), schema.upper.tolist(), strict=True)
    columns = Columns([Number(*one) for one in limits])
    return Schema(columns, radius=schema.radius, path=Path("bounds")), schema.names is not None


def _open(data: Any, schema: Schema, named: bool, workers: Any) -> Any:
    """The data: files opened as the schema says; columns without names in memory by their positions."""
    if is_out_of_core(data):
        return open_records(data, workers=workers, rules=schema.rules)
    return data if named else read_array(data, len(schema.require_columns().names))


def _without_names(made: Plan) -> Plan:
    """The plan of a fit of columns without names; with a target they are numbered."""
    if not made.adaptive or made.targets:
        return made
    query = made.query
    assert isinstance(query, Moments)
    return replace(made, query=replace(query, bounds=replace(query.bounds, names=None)))
