"""`run`: from a plan and private records to a release that was charged once; `release_table`, which plans and runs."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np

from matrixdp.adaptive.moment import prepare_fit
from matrixdp.domain import Bounds, Person, as_schema
from matrixdp.errors import DataError, ParameterError
from matrixdp.ledger import Ledger, Receipt
from matrixdp.mechanisms.mechanism import check_stream
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy, check_privacy, warn_large_delta
from matrixdp.records import as_records, is_out_of_core, make_engine, open_records, read_array, require_rereadable
from matrixdp.records.files import Files, read_edges
from matrixdp.records.people import number_of_people
from matrixdp.records.records import Blocks, MappedRecords, StoredRecords, count_records, order_columns
from matrixdp.records.tables import column_names, count_rows
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.charging import Account, Paid, Price, list_read_options, make_once, open_account
from matrixdp.release.dataset import DatasetRelease, write_dataset
from matrixdp.release.options import GRAPHS
from matrixdp.release.plan import Plan, plan
from matrixdp.release.request import Request
from matrixdp.release.result import Release, release_design
from matrixdp.serialise import to_json_content


@dataclass(frozen=True, eq=False)
class Outcome:
    """A release, and whether it was charged.

    Attributes
    ----------
    release : Release, AdaptiveRelease or DatasetRelease
    plan : Plan
    receipt : Receipt or None
        Of the charge that paid for the release now; None if it was stored before, or nothing was charged.
    """

    release: Release | AdaptiveRelease | DatasetRelease
    plan: Plan
    receipt: Receipt | None = None

    @property
    def charged(self) -> bool:
        """Whether the release was charged now; a request that is repeated is charged once."""
        return self.receipt is not None


def run(
    plan: Plan,
    records: Any,
    account: Account | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    workers: Any = None,
    progress: Callable[[int], object] | None = None,
    rehearse: Callable[[Release | AdaptiveRelease], object] | None = None,
    ready: Callable[[], object] | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
) -> Outcome:
    """Read private records, charge the account, draw noise, and return the release.

    Parameters
    ----------
    plan : Plan
    records : Files, or what the query takes
        `Files` are opened as the question needs them.
    account : Account, optional
        What pays, under the id of the request. Without one, nothing keeps the total that is spent.
    out : path, optional
        The folder of a noisy data set, which `plan.in_files` needs; with `force`, an existing one is replaced.
    workers : int, str or distributed.Client, optional
        Who reads `Files`; as for `open_records`.
    progress : callable, optional
        Called with the number of records of each part of `Files` that was read.
    rehearse : callable, optional
        Called with a made-up release before anything is read, so that what cannot be shown fails before the charge.
    ready : callable, optional
        Called when data and parameters have been checked, before the charge.

    Privacy
    -------
    `plan.request.privacy` for `plan.neighbours`, all steps together. Errors in data and parameters are raised before
    anything is charged, and the charge is committed before the first random bit is drawn.
    """
    check_stream(stream, simulation=simulation)
    account = None if account is None else replace(account, request=plan.request.id)
    new = account is None or not account.was_charged()
    if account is not None and new:  # refused before anything is read, if the budget does not cover it
        account.ledger.whatif(account.dataset, plan, allowance=account.allowance)
    if rehearse is not None and new:
        rehearse(plan.sample())
    data = open_data(plan, records, workers=workers, progress=progress)
    noise: dict[str, Any] = {"stream": stream, "simulation": simulation}
    request, design, fit = plan.request, plan.design, plan.beside
    if design is None:
        released, receipt = _run_fit(plan, data, account, ready, **noise)
    elif plan.in_files:
        assert out is not None  # as of a data set in files
        options: dict[str, Any] = {"missing": request.missing, "force": force, "ready": ready}
        released, receipt = write_dataset(design, data, account, out, **options, **noise)
    else:
        options = {"clip": request.clip, "missing": request.missing, "aims": request.aims, "ready": ready}
        if fit is not None:
            options["price"] = {"event": plan.event, "description": plan.description}
            options["beside"] = partial(_prepare_fit, fit, _order_columns(plan.query.read_names, fit, data), **noise)
        released, receipt = release_design(design, data, account, **options, **noise)
        if plan.choice is not None:
            released = replace(released, aim=request.question, reason=plan.choice.reason)
    return Outcome(released, plan, receipt)


def open_data(plan: Plan, records: Any, *, workers: Any = None, progress: Callable[[int], object] | None = None) -> Any:
    """The private data as the query of a plan takes them; `Files` must have its columns."""
    if not isinstance(records, Files):
        return records
    request, query = plan.request, plan.query
    nodes = () if request.schema.graph is None or request.question not in GRAPHS else request.schema.graph.nodes
    if nodes and {"source", "target"} <= set(records.column_names()):
        graph = read_edges(records, nodes)
        return Blocks(lambda: (graph,), records.read_options)
    ids = () if query.person is None else (query.person.column,)
    names = request.parse_cells() if request.question == "counts" else query.read_names
    records.require([*names, *ids])
    data = StoredRecords(records, make_engine(workers), progress=progress)
    return data.select((*names, *ids), texts=(*names, *ids)) if request.question == "counts" else data


def count_units(request: Request, records: Any) -> int:
    """The public number of people where each counts once, otherwise that of the records.

    Raises a `DataError` if there are none.
    """
    rows: int
    in_files = isinstance(records, Files)
    if in_files:
        rows = records.count()
    elif is_out_of_core(records):
        one_column = request.choose_columns().names[:1]
        rows = sum(require_rereadable(as_records(records)).select(one_column, texts=one_column).map(count_records))
    else:
        rows = count_rows(records)
    if rows == 0:
        raise DataError(f"{records.place} has no records." if in_files else "data must have at least one record.")
    if not request.counts_people:
        return rows
    assert request.whose is not None  # as people count
    if in_files:
        records.require([request.whose.column])
        records = StoredRecords(records, make_engine(None))
    return number_of_people(as_records(records), request.whose, rows=rows)


def _run_fit(plan: Plan, data: Any, account: Account | None, ready: Any, **noise: Any) -> Paid:
    """Charge and make the adaptive fit of a plan."""
    request, bounds = plan.request, plan.bounds
    data = _order_columns(request.choose_columns().names, plan, data)

    def find_price() -> Price:
        options = {
            "method": "adaptive",
            "aim": request.question,
            "target": bounds.names[-1] if plan.targets and bounds.names is not None else None,
            "bounds": to_json_content(bounds),
            "records": plan.records,
            "neighbours": str(plan.neighbours),
            "person": to_json_content(plan.query.person),
            "epsilon": request.privacy.epsilon,
            "delta": request.privacy.delta,
            "clip": True,
            "missing": "error",
            "reading": list_read_options(data),
            **request.aims,
        }
        return Price(plan.event, plan.neighbours, plan.unit, plan.description, options)

    return make_once(
        account,
        find_price,
        read=AdaptiveRelease.from_json,  # the ledger has compared its description
        prepare=lambda: _prepare_fit(plan, data, **noise),
        make=lambda fit, _: fit(),
        ready=ready,
    )


def _prepare_fit(plan: Plan, data: Any, **noise: Any) -> Callable[[], AdaptiveRelease]:
    """Read the data of an adaptive fit and check all that can fail, before the function that is returned fits."""
    assert plan.choice is not None  # of an adaptive fit
    asked: dict[str, Any] = {"records": plan.records, "neighbours": plan.neighbours, "person": plan.query.person}
    asked |= {"aim": plan.recipe, "targets": plan.targets}
    prepared = prepare_fit(data, plan.bounds, plan.request.privacy, **asked, **noise)
    question, reason = plan.request.question, plan.choice.reason
    return lambda: AdaptiveRelease(prepared.fit(), question, reason)


def _order_columns(names: Sequence[str], plan: Plan, data: Any) -> Any:
    """Data whose columns have no names, in the order of the fit, which has the target of a regression last.

    `names` are those of all columns of the data.
    """
    order = [names.index(name) for name in plan.bounds.names or names]
    if order == list(range(len(names))):
        return data
    if is_out_of_core(data):
        return MappedRecords(as_records(data), partial(order_columns, order, len(names)), named=True)
    return data if column_names(data) is not None else np.asarray(data, object)[:, order]


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
    if privacy is not None:
        check_privacy(privacy)
        if epsilon is not None or delta is not None:
            message = "epsilon and delta must be left out with privacy, which has both."
            raise ParameterError(message, parameter="epsilon")
    elif epsilon is None or delta is None:
        raise ParameterError("privacy must be given, as Privacy(epsilon, delta), or epsilon and delta.")
    else:
        privacy = Privacy(epsilon, delta)
    schema = Bounds(*schema) if isinstance(schema, tuple) and len(schema) == 2 else schema
    named = not isinstance(schema, Bounds) or schema.names is not None
    parsed = as_schema(schema if named else replace(schema, names=tuple(map(str, range(schema.size)))))
    if isinstance(person := options.get("person"), Person):
        options |= {"person": person.column, "rows": person.rows}
    _check_names(options)
    asked = Request(
        schema=parsed, question=question, epsilon=privacy.epsilon, delta=privacy.delta, id=request, **options
    )
    account = open_account(ledger, dataset, request, allowance, stream=stream, simulation=simulation)
    if is_out_of_core(data):
        data = open_records(data, workers=workers, rules=parsed.rules)
    elif not named:
        data = read_array(data, len(parsed.require_columns().names))
    made = plan(asked, lambda: count_units(asked, data))
    if made.in_files:
        raise ParameterError("«question» identity of so many records is released as files: use release_dataset.")
    if not simulation and made.records is not None:
        warn_large_delta(privacy, made.records)
    if not named and made.adaptive and not made.targets:  # a target is found by its number
        query: Any = made.query
        made = replace(made, query=replace(query, bounds=replace(made.bounds, names=None)))
    released = run(made, data, account, stream=stream, simulation=simulation).release
    assert not isinstance(released, DatasetRelease)
    return released


def _check_names(options: Iterable[str]) -> None:
    """Raise a `TypeError`, as of any function, for an option that no request has."""
    known = [field.name for field in fields(Request)]
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"Did you mean {near[0]!r}?" if near else "The docstring lists them."
            raise TypeError(f"release_table() got an unexpected keyword argument {name!r}. {hint}")
