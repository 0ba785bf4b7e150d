"""`release_table`: one function for what can be asked of a table."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person
from matrixdp.domain.schema import Schema
from matrixdp.domain.schema_file import as_schema
from matrixdp.errors import ParameterError
from matrixdp.ledger import Ledger
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy, check_privacy, warn_large_delta
from matrixdp.records import is_out_of_core, open_records, read_array
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.charging import open_account
from matrixdp.release.dataset import DatasetRelease
from matrixdp.release.plan import plan
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
    if is_out_of_core(data):
        data = open_records(data, workers=workers, rules=parsed.rules)
    elif not named:
        data = read_array(data, len(parsed.require_columns().names))
    made = plan(asked, lambda: count_units(asked, data))
    if made.in_files:
        raise ParameterError("«question» identity of so many records is released as files: use release_dataset.")
    if not simulation and made.records is not None:
        warn_large_delta(budget, made.records)
    if not named and made.adaptive and not made.targets:  # a target is found by its number
        query: Any = made.query
        made = replace(made, query=replace(query, bounds=replace(made.bounds, names=None)))
    outcome = run(made, data, account, stream=stream, simulation=simulation)
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
    if isinstance(schema, tuple) and len(schema) == 2:
        schema = Bounds(*schema)
    if isinstance(schema, Bounds) and schema.names is None:
        return as_schema(replace(schema, names=tuple(map(str, range(schema.size))))), False
    return as_schema(schema), True
