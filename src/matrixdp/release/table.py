"""One entry point for means, covariances, correlations, components and regressions of private records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from matrixdp.adaptive.method import MethodChoice
from matrixdp.adaptive.moment import prepare_fit
from matrixdp.design import make_design
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.columns import Columns, Number
from matrixdp.domain.person import Person
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.ledger import Gaussian, Ledger
from matrixdp.mechanisms.mechanism import check_stream
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy, check_privacy, warn_large_delta
from matrixdp.queries import Moments, TableMoments
from matrixdp.queries.base import parse_records
from matrixdp.records import as_records, is_out_of_core, read_array, require_rereadable
from matrixdp.records.people import number_of_people
from matrixdp.records.records import ColumnOrder, MappedRecords
from matrixdp.records.tables import column_names, count_rows
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.charging import Price, digest, list_read_options, make_once, open_account
from matrixdp.release.covariance_release import CovarianceRelease, check_aim, check_method, choose_for, find_recipe
from matrixdp.release.plain_release import PlainRelease
from matrixdp.release.reading import read_release
from matrixdp.release.run import release_design
from matrixdp.serialise import to_json_content

MEAN_SHARE = 0.5  # of the budget of a plain release for means


def release_covariance(
    data: Any,
    columns: Bounds | Columns,
    privacy: Privacy,
    *,
    aim: str = "covariance",
    method: str = "auto",
    target: str | None = None,
    records: int | None = None,
    neighbours: str = Neighbours.REPLACE,
    person: str | Person | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    request: str | None = None,
    allowance: str | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
) -> CovarianceRelease:
    """Release mean and covariance of private records, by the method that suits them best.

    Parameters
    ----------
    data : array, pandas, polars or Arrow table of shape (n, m), or what open_records takes
        Values outside the bounds are moved to them.
    columns : Bounds or Columns
        What is public about the columns; never taken from the data. With categories or missing values, the release is
        a plain one of `TableMoments`.
    privacy : Privacy
        The whole budget.
    aim : 'means', 'covariance', 'correlation', 'components' or 'regression'
        What the release should be most accurate for; it answers all of them.
    method : 'auto', 'adaptive' or 'plain'
        'adaptive' learns where the data lie with a part of the budget; 'plain' adds noise to the moments. 'auto' uses
        the one that is expected to be more accurate, by a public rule; the result says which, and why.
    target : str, optional
        For ``aim='regression'``: the number that the regression explains. An adaptive release then has it as the last
        column; where noise hides all else, it measures the target's mean alone, and every prediction is that mean.
    records : int, optional
        Public number of records; required for add-remove neighbours. Otherwise they are counted.
    neighbours : 'replace' or 'add-remove'
    person : str or Person, optional
        The column that says whose each row is, if people may have several rows: all rows of a person are protected
        together. Each person counts once, and `records` is the number of people. With ``Person(column, rows=k)`` each
        row counts, at most k a person; `records` is then required, a public constant near the number of rows that
        count.
    ledger, dataset, request, allowance
        What the release is charged to, as for `matrixdp.release.release`. A request id that was used before returns
        the stored release without a charge, if all options are the same and the same method is used.
    stream, simulation
        For simulations only, as for `matrixdp.release.release`.

    Privacy
    -------
    `privacy` for the given neighbours, all steps together. The method depends on public numbers alone. Errors in data
    and parameters are raised before anything is charged, and the charge is committed before the first random bit is
    drawn.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> data = rng.normal(size=(4000, 1)) * [1.0, 0.9, 0.1] + 0.3 * rng.normal(size=(4000, 3))
    >>> bounds = Bounds([-5, -5, -5], [5, 5, 5], names=["a", "b", "c"])
    >>> released = release_covariance(data, bounds, Privacy(1, 1e-6), aim="correlation")
    >>> released.method, released.correlation()["a", "b"] > 0.8
    ('adaptive', True)
    """
    check_aim(aim)
    check_method(method)
    check_privacy(privacy)
    check_stream(stream, simulation=simulation)
    parsed = Neighbours.parse(neighbours)
    table, bounds = _parse_columns(columns)
    who = Person.parse(person)
    _check_target(target, aim, table)
    named = bounds is None or bounds.names is not None
    public = _find_records(records, data, parsed, table.numbers[0].name if named else None, who)
    choice = _choose(table, bounds, who, aim, method, public, privacy.mu)
    if not simulation:
        warn_large_delta(privacy, public)
    account: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "request": request, "allowance": allowance}
    noise: dict[str, Any] = {"stream": stream, "simulation": simulation}
    if choice.method == "plain":
        share = MEAN_SHARE if aim == "means" else None
        query = TableMoments(table, public, neighbours=parsed, mean_share=share, person=who)
        values = data if named or bounds is None else _as_array(data, bounds)
        options = {"aim": aim, "target": target}
        paying = open_account(ledger, dataset, request, allowance, simulation=simulation)
        paid = release_design(make_design(query, privacy), values, paying, aims=options, **noise)
        return PlainRelease(paid.release, choice, aim)
    assert bounds is not None
    fit: dict[str, Any] = {"aim": aim, "choice": choice, "records": public, "neighbours": parsed, "person": who}
    if target is not None:
        data, bounds = _move_last(data, bounds, target)
    return release_adaptive(data, bounds, privacy, targets=int(target is not None), **fit, **account, **noise)


def release_adaptive(
    data: Any,
    bounds: Bounds,
    privacy: Privacy,
    *,
    aim: str,
    choice: MethodChoice,
    records: int,
    neighbours: Neighbours,
    person: Person | None = None,
    targets: int = 0,
    options: Mapping[str, Any] = MappingProxyType({}),
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    request: str | None = None,
    allowance: str | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
) -> AdaptiveRelease:
    """Check, look for the stored release of an earlier request, charge, fit, and store the release.

    Parameters and privacy are those of `release_covariance`; `targets` is the number of last columns that the release
    may be limited to, if it is for a regression of which noise hides all but their means; `options` are further public
    options, which a repeat of the request must have again.
    """
    account = open_account(ledger, dataset, request, allowance, simulation=simulation)
    query = Moments(bounds, records, neighbours=neighbours, person=person)  # for the same neighbours, of the same unit

    def find_price() -> Price:
        description = describe_adaptive(bounds, privacy, aim, records, neighbours, targets, person)
        found = {
            "method": "adaptive",
            "aim": aim,
            "target": bounds.names[-1] if targets and bounds.names is not None else None,
            "bounds": to_json_content(bounds),
            "records": records,
            "neighbours": str(neighbours),
            "person": to_json_content(person),
            "epsilon": privacy.epsilon,
            "delta": privacy.delta,
            "clip": True,
            "missing": "error",
            "reading": list_read_options(data),
            **options,
        }
        return Price(Gaussian(privacy.mu), query.neighbours, query.protected_unit, description, found)

    fit: dict[str, Any] = {"records": records, "neighbours": neighbours, "person": person}
    fit |= {"stream": stream, "simulation": simulation}
    paid = make_once(
        account,
        find_price,
        read=_read_stored,
        prepare=lambda: prepare_fit(data, bounds, privacy, aim=find_recipe(aim), targets=targets, **fit),
        make=lambda prepared, _: AdaptiveRelease(prepared.fit(), choice, aim),
    )
    released: AdaptiveRelease = paid.release
    return released


def describe_adaptive(
    bounds: Bounds,
    privacy: Privacy,
    aim: str,
    records: int,
    neighbours: Neighbours,
    targets: int = 0,
    person: Person | None = None,
) -> dict[str, Any]:
    """What an adaptive release was asked for, for the ledger, with a hash of all its inputs."""
    who = () if person is None else (person,)  # as before there were people in such a release
    return {
        "query": "covariance",
        "method": "adaptive",
        "aim": aim,
        "shape": [bounds.size, bounds.size],
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "inputs": digest((bounds, privacy, aim, records, str(neighbours), targets, *who)),
    }


def _read_stored(text: str) -> AdaptiveRelease:
    found = read_release(text)
    assert isinstance(found, AdaptiveRelease)  # the ledger has compared its description
    return found


def _parse_columns(columns: Any) -> tuple[Columns, Bounds | None]:
    """The columns as those of a table, and their bounds if they are numbers that are never missing."""
    if isinstance(columns, Bounds):
        names = columns.names or tuple(map(str, range(columns.size)))
        limits = zip(names, columns.lower.tolist(), columns.upper.tolist(), strict=True)
        return Columns([Number(*one) for one in limits]), columns
    if not isinstance(columns, Columns):
        hint = " Columns.from_dict takes a dict." if isinstance(columns, dict) else ""
        raise ParameterError(
            "columns must be Bounds or Columns, which say what the values can be and are never taken from the data, "
            f"got {type(columns).__name__} instead.{hint}"
        )
    if not columns.numbers:
        raise ParameterError(
            "columns must have at least one column of numbers; for tables of categories use TableMoments."
        )
    complete = not columns.categories and not any(column.missing for column in columns)
    return columns, columns.bounds if complete else None


def _choose(
    table: Columns, bounds: Bounds | None, person: Person | None, aim: str, method: str, records: int, mu: float
) -> MethodChoice:
    if bounds is not None:
        return choose_for(aim, method, features=bounds.size, records=records, mu=mu, person=person)
    what = "categories" if table.categories else "missing values"
    reason = f"The table has {what}, which a plain release of its moments can use."
    if method == "adaptive":
        raise ParameterError(f"method must be 'auto' or 'plain' here. {reason}")
    return MethodChoice("plain", reason)


def _find_records(
    records: int | None, data: Any, neighbours: Neighbours, column: str | None, person: Person | None
) -> int:
    """The public number of records: as given or, where it is public, as counted; in files by one `column`."""
    if records is not None:
        return parse_records(records)
    if person is not None and person.rows is not None:
        raise ParameterError("records must be given for rows of a person that count: their true number is private.")
    if neighbours is not Neighbours.REPLACE:
        raise ParameterError("records must be given for add-remove neighbours: their true number is private.")
    if is_out_of_core(data):
        parts = require_rereadable(as_records(data)).select(None if column is None else [column])
        found = sum(parts.map(_CountRows()))
    else:
        found = count_rows(data)
    if found < 1:
        raise DataError("data must have at least one record.")
    return found if person is None else number_of_people(as_records(data), person, rows=found)


class _CountRows:
    """Task that counts the records of a part."""

    def __call__(self, number: int, blocks: Iterable[Any]) -> int:
        return sum(map(count_rows, blocks))


def _as_array(data: Any, bounds: Bounds) -> Any:
    """Data of columns without names, by their positions."""
    if is_out_of_core(data):
        raise ParameterError("bounds must have names for a plain release of records outside of memory.")
    return read_array(data, bounds.size)


def _check_target(target: str | None, aim: str, table: Columns) -> None:
    if target is None:
        return
    if aim != "regression":
        raise ParameterError(f"target must be left out for aim={aim!r}; it is the number that a regression explains.")
    names = [column.name for column in table.numbers]
    if target not in names:
        raise ParameterError(f"target must be one of {', '.join(names)}, got {show(target)} instead.")


def _move_last(data: Any, bounds: Bounds, target: str) -> tuple[Any, Bounds]:
    """Data and bounds with the target as the last column; columns without names are known by their positions."""
    names = bounds.names or tuple(map(str, range(bounds.size)))
    moved = Bounds(bounds.lower, bounds.upper, names, bounds.radius).move_last(target)
    order = [names.index(name) for name in moved.names or ()]
    if is_out_of_core(data):
        if bounds.names is None:
            raise ParameterError("bounds must have names for a target of records outside of memory.")
        return MappedRecords(as_records(data), ColumnOrder(tuple(order)), named=True), moved
    if bounds.names is not None and column_names(data) is not None:
        return data, moved
    return read_array(data, bounds.size)[:, order], moved
