"""Data sets of the ledger: budgets, allowances, history, gauges, and the tables that belong to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from matrixdp.errors import ParameterError, show
from matrixdp.ledger import Allowance, Charge, Event, Gaussian, Ledger, Summary
from matrixdp.ledger.location import Location
from matrixdp.privacy import Privacy
from matrixdp.studio.refusals import NotFoundError
from matrixdp.studio.roles import Viewer
from matrixdp.studio.state import State, insert
from matrixdp.studio.tables import TableFolder

_TIMEOUT = 10.0  # seconds to wait for another process that writes the ledger


@dataclass(frozen=True)
class Dataset:
    """A data set of the ledger.

    Attributes
    ----------
    name : str
    summary : matrixdp.ledger.Summary
        Its total, what is spent and left, and its allowances.
    tables : tuple of str
        The tables that are released as this data set.
    """

    name: str
    summary: Summary
    tables: tuple[str, ...]


class DatasetBook:
    """Reads data sets from the ledger, and registers them."""

    def __init__(self, ledger: Location, state: State, tables: TableFolder) -> None:
        self._location, self._state, self._tables = ledger, state, tables

    @contextmanager
    def open_ledger(self, viewer: Viewer | None = None, purpose: str | None = None) -> Iterator[Ledger]:
        """The ledger, in which `viewer` writes."""
        actor = None if viewer is None else viewer.name
        with Ledger.open(self._location, timeout=_TIMEOUT, actor=actor, purpose=purpose) as ledger:
            yield ledger

    def list_all(self) -> list[Dataset]:
        """All data sets, in the order in which they were registered."""
        with self.open_ledger() as ledger:
            summaries = ledger.summaries()
        tables = self._tables_by_dataset()
        names = [summary.registration.dataset for summary in summaries]
        return [Dataset(name, found, tuple(tables.get(name, ()))) for name, found in zip(names, summaries, strict=True)]

    def get(self, name: str) -> Dataset:
        """One data set, or a `NotFoundError`."""
        for dataset in self.list_all():
            if dataset.name == name:
                return dataset
        raise NotFoundError(f"there is no data set {show(name)} in the ledger.")

    def history(self, name: str) -> list[Charge]:
        """The charges to a data set, in order: what was released, when, by whom and what for."""
        self.get(name)
        with self.open_ledger() as ledger:
            return ledger.history(name)

    def register(
        self,
        viewer: Viewer,
        name: str,
        table: str,
        *,
        epsilon: float,
        delta: float,
        neighbours: str = "replace",
        unit: str = "record",
    ) -> Dataset:
        """Register a data set with its total, which cannot be changed later, and say that `table` is released as it.

        Registering it again with the same values only adds the table. `unit` is as for `Ledger.register`: ``"record"``,
        ``"person:COLUMN"``, ``"edge"`` or ``"node"``.
        """
        self._tables.path(table)
        if "/" in name or name in (".", ".."):
            raise ParameterError("name must not contain a slash: it is a part of addresses.", parameter="name")
        privacy = Privacy(epsilon, delta)
        with self.open_ledger(viewer) as ledger:
            ledger.register(name, privacy, neighbours=neighbours, unit=unit)
        self.add_table(name, table)
        return self.get(name)

    def add_table(self, name: str, table: str) -> None:
        """Say that a table is released as a data set that is registered, and charged to its total."""
        self._tables.path(table)
        self.get(name)
        with self._state.writing() as connection:
            insert(connection, "dataset_tables", dataset=name, table_name=table)

    def require_table(self, name: str, table: str) -> None:
        """Raise a `NotFoundError` unless the table is released as this data set."""
        if table not in self._tables_by_dataset().get(name, ()):
            raise NotFoundError(f"{show(table)} is not a table of the data set {show(name)}.")

    def allow(
        self, viewer: Viewer, name: str, allowance: str, *, epsilon: float | None = None, share: str | None = None
    ) -> Allowance:
        """Set a part of a data set's total apart, as an epsilon or as a share such as ``"1/4"``."""
        if (epsilon is None) == (share is None):
            raise ParameterError(
                "epsilon or share must be given, and not both: the size of the allowance.", parameter="epsilon"
            )
        with self.open_ledger(viewer) as ledger:
            return ledger.allow(name, allowance, epsilon=epsilon, share=share)

    def return_allowance(self, viewer: Viewer, name: str, allowance: str) -> Allowance:
        """End an allowance; what it has not spent is available to all again."""
        with self.open_ledger(viewer) as ledger:
            return ledger.return_allowance(name, allowance)

    def _tables_by_dataset(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for row in self._state.select("SELECT * FROM dataset_tables ORDER BY dataset, table_name"):
            found.setdefault(row["dataset"], []).append(row["table_name"])
        return found


@dataclass(frozen=True)
class Gauge:
    """Shares of a total, from 0 to 1: what is spent, what is allotted and not spent, and what a release would take."""

    spent: float
    allotted: float = 0.0
    next: float = 0.0

    @property
    def left(self) -> float:
        """The rest."""
        return max(0.0, 1.0 - self.spent - self.allotted - self.next)


def measure_dataset(summary: Summary, event: Event | None = None) -> Gauge:
    """The gauge of a data set, with a release that would be charged to what is not allotted."""
    total = summary.total_mu
    unspent, free = (_share(found.mu, total) for found in (summary.unspent, summary.left))
    return Gauge(1 - unspent, unspent - free, min(free, _measure(event, total)))


def measure_allowance(allowance: Allowance, event: Event | None = None) -> Gauge:
    """The gauge of an allowance, with a release that would be charged to it."""
    left = _share(allowance.left.mu, allowance.mu)
    return Gauge(1 - left, 0.0, min(left, _measure(event, allowance.mu)))


def _measure(event: Event | None, total: float) -> float:
    return _share(event.mu, total) if isinstance(event, Gaussian) else 0.0


def _share(mu: float, total: float) -> float:
    return min(1.0, (mu / total) ** 2) if total > 0 else 0.0
