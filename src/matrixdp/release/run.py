"""`run`: from a plan and private records to a release that was charged once."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from matrixdp.adaptive.moment import PreparedFit, prepare_fit
from matrixdp.errors import DataError, RequestPendingError
from matrixdp.ledger import Receipt
from matrixdp.ledger.request import Difference, changed_request_error
from matrixdp.mechanisms.mechanism import check_stream
from matrixdp.noise import Stream
from matrixdp.records import Blocks, as_records, is_out_of_core, read_array, require_rereadable, with_ids
from matrixdp.records.files import Files, read_graph, read_pairs
from matrixdp.records.opening import make_engine
from matrixdp.records.people import number_of_people
from matrixdp.records.records import MappedRecords, StoredRecords, count_records, order_columns
from matrixdp.records.tables import column_names, count_rows
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.charging import Account, Paid, Price, list_read_options, make_once
from matrixdp.release.dataset import DatasetRelease, write_dataset
from matrixdp.release.matrix import PrincipalDirections, learn_directions, release_design
from matrixdp.release.options import GRAPHS
from matrixdp.release.plan import Plan, make_request_design
from matrixdp.release.request import Request
from matrixdp.release.result import Release
from matrixdp.serialise import to_json_content

DIRECTIONS = "-directions"  # added to the request id of the release that learns directions


@dataclass(frozen=True, eq=False)
class Outcome:
    """A release, and whether it was charged.

    Attributes
    ----------
    release : Release, AdaptiveRelease or DatasetRelease
    plan : Plan
    receipt : Receipt or None
        Of the charge that paid for the release now; None if it was stored before, or nothing was charged.
    directions : PrincipalDirections or None
        Directions that were learned for the release.
    """

    release: Release | AdaptiveRelease | DatasetRelease
    plan: Plan
    receipt: Receipt | None = None
    directions: PrincipalDirections | None = None

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
        The folder of a noisy data set, which `plan.in_files` needs.
    force : bool
        Replace an existing folder.
    workers : int, str or distributed.Client, optional
        Who reads `Files`; as for `open_records`.
    progress : callable, optional
        Called with the number of records of each part of `Files` that was read.
    rehearse : callable, optional
        Called with a made-up release before anything is read, so that what cannot be shown fails before the charge.
    ready : callable, optional
        Called when data and parameters have been checked, before the charge.
    stream, simulation
        For simulations only, as for `release`.

    Privacy
    -------
    `plan.request.privacy` for `plan.neighbours`, all steps together. Errors in data and parameters are raised before
    anything is charged, and the charge is committed before the first random bit is drawn.
    """
    check_stream(stream, simulation=simulation)
    account = None if account is None else replace(account, request=plan.request.id)
    new = account is None or not check_budget(plan, account)
    if rehearse is not None and new:
        rehearse(plan.sample())
    data = open_data(plan, records, workers=workers, progress=progress)
    noise: dict[str, Any] = {"ready": ready, "stream": stream, "simulation": simulation}
    if plan.adaptive:
        paid = _release_fit(plan, data, account, **noise)
        return Outcome(paid.release, plan, paid.receipt)
    if plan.in_files:
        assert out is not None  # as of a data set in files
        assert plan.design is not None
        paid = write_dataset(plan.design, data, account, out, missing=plan.request.missing, force=force, **noise)
        return Outcome(paid.release, plan, paid.receipt)
    request, design, learned = plan.request, plan.design, None
    if request.learned:
        learned = _learn_directions(plan, data, account, **noise)
        design = make_request_design(request, plan.query, learned.directions)
    assert design is not None  # of a plain release
    paid = release_design(design, data, account, clip=request.clip, missing=request.missing, aims=request.aims, **noise)
    chosen = {} if plan.choice is None else {"aim": request.question, "reason": plan.choice.reason}
    return Outcome(replace(paid.release, **chosen), plan, paid.receipt, learned)


def check_budget(plan: Plan, account: Account) -> bool:
    """Whether the request was charged before; a `LedgerError` if it was not, and the budget does not cover it."""
    before = _was_charged(account)
    learned = plan.request.learned and _was_charged(account, DIRECTIONS)
    if before and plan.request.learned and not learned:  # directions would be charged before it is refused
        changed = Difference("directions", "given", "learned")
        raise changed_request_error(account.dataset, account.request, "", [changed])
    if not before:
        account.ledger.whatif(account.dataset, plan.design or plan, allowance=account.allowance)
        if plan.request.learned and not learned:
            account.ledger.whatif(account.dataset, plan, allowance=account.allowance)
    return before


def _was_charged(account: Account, suffix: str = "") -> bool:
    """Whether a request is stored or pending; the release compares its options, and waits for it."""
    try:
        request = account.request
        return request is not None and account.ledger.stored(account.dataset, request + suffix) is not None
    except RequestPendingError:
        return True


def open_data(plan: Plan, records: Any, *, workers: Any = None, progress: Callable[[int], object] | None = None) -> Any:
    """The private data as the query of a plan takes them; `Files` must have its columns."""
    if not isinstance(records, Files):
        return records
    data: Any
    request, query = plan.request, plan.query
    ids = () if query.person is None else (query.person.column,)
    if request.question in GRAPHS:
        assert request.schema.graph is not None  # otherwise there is no query
        data = read_graph(records, request.schema.graph.nodes)
    elif request.question == "counts":
        cells = request.parse_cells()
        data = read_pairs(records, {name: request.schema.pair_levels(name) for name in cells})
        if ids:
            (found,) = records.read_columns(ids, as_text=True)
            data = with_ids(data, list(found))
    else:
        records.require([*query.read_names, *ids])
        return StoredRecords(records, make_engine(workers), progress=progress)
    blocks = as_records(data)
    assert isinstance(blocks, Blocks)  # they are in memory
    return replace(blocks, read_options=records.read_options)


def count_units(request: Request, records: Any) -> int:
    """The public number of people where each counts once, otherwise that of the records.

    Raises a `DataError` if there are none.
    """
    rows = records.count() if isinstance(records, Files) else count_rows_of(records, request)
    if rows == 0:
        found = f"{records.place} has no records." if isinstance(records, Files) else ""
        raise DataError(found or "data must have at least one record.")
    if not request.counts_people:
        return rows
    whose = request.whose
    assert whose is not None  # as people count
    if isinstance(records, Files):
        records.require([whose.column])
        records = StoredRecords(records, make_engine(None))
    return number_of_people(as_records(records), whose, rows=rows)


def count_rows_of(data: Any, request: Request) -> int:
    """The number of records in memory, or in parts, of which one column is read."""
    if not is_out_of_core(data):
        return count_rows(data)
    columns = request.choose_columns().names
    return sum(require_rereadable(as_records(data)).select(columns[:1]).map(count_records))


def _release_fit(plan: Plan, data: Any, account: Account | None, ready: Any, **noise: Any) -> Paid:
    """Charge and make the adaptive fit of a plan."""
    assert plan.choice is not None  # of an adaptive fit
    choice, request, bounds, data = plan.choice, plan.request, plan.bounds, _order_columns(plan, data)
    asked: dict[str, Any] = {"records": plan.records, "neighbours": plan.neighbours, "person": plan.query.person}

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

    def prepare() -> PreparedFit:
        return prepare_fit(data, bounds, request.privacy, aim=plan.recipe, targets=plan.targets, **asked, **noise)

    return make_once(
        account,
        find_price,
        read=lambda text, _: AdaptiveRelease.from_json(text),  # the ledger has compared its description
        prepare=prepare,
        make=lambda prepared, _: AdaptiveRelease(prepared.fit(), choice, request.question),
        ready=ready,
    )


def _order_columns(plan: Plan, data: Any) -> Any:
    """Data whose columns have no names, in the order of the fit, which has the target of a regression last."""
    names = plan.request.choose_columns().names
    order = [names.index(name) for name in plan.bounds.names or ()]
    if order == sorted(order):
        return data
    if is_out_of_core(data):
        return MappedRecords(as_records(data), partial(order_columns, order), named=True)
    return data if column_names(data) is not None else read_array(data, len(names))[:, order]


def _learn_directions(plan: Plan, data: Any, account: Account | None, **noise: Any) -> PrincipalDirections:
    """Private principal directions, for their share of the budget."""
    request, query = plan.request, plan.query
    if account is not None and account.request is not None:
        account = replace(account, request=account.request + DIRECTIONS)
    return learn_directions(
        data,
        query.bounds,  # type: ignore[attr-defined]
        request.privacy,
        account,
        records=plan.records or 0,
        share=request.directions_share,
        missing=request.missing,
        **noise,
    )
