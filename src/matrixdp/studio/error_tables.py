"""Predicted errors as tables: the standard deviations of the privacy noise in what a release answers. Reads no data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.answers.table_forecast import TableForecast
from matrixdp.display import has_equal_rows
from matrixdp.errors import ParameterError
from matrixdp.queries import TableMoments
from matrixdp.release.plan import Plan
from matrixdp.report.answers import make_answers
from matrixdp.report.forecast import predict_std
from matrixdp.types import Floats

TYPICAL, LARGEST = "typical", "largest"
MOST_CORRELATED = 40  # numbers of a table with categories whose correlations are predicted within a page's time
_DESCRIBED = (
    "For data as the schema expects (expected_mean, expected_std, expected_missing, expected_shares, "
    "expected_correlation), or as tables usually are."
)


@dataclass(frozen=True, eq=False)
class ErrorTable:
    """Predicted standard deviations of the privacy noise in a table of answers.

    Attributes
    ----------
    title : str
    std : float64 array of shape (rows, columns)
        0 where an answer is public, NaN where noise would hide it.
    rows, columns : tuple of str
    comparable : bool
        Whether all entries have the same unit, so that their median means something.
    note : str
        What the prediction assumes; empty if nothing.
    """

    title: str
    std: Floats
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    comparable: bool
    note: str = ""

    def read(self, entry: str) -> float:
        """The error of one entry, as ``"row,column"``, or of the ``"typical"`` (median) or ``"largest"`` one.

        Infinite where noise would hide it.
        """
        if entry in (TYPICAL, LARGEST):
            noisy = self.std[self.std != 0]
            if not noisy.size:
                return 0.0
            found = float(np.median(noisy) if entry == TYPICAL else noisy.max())
        else:
            row, column = self.find(entry)
            found = float(self.std[row, column])
        return found if np.isfinite(found) else float("inf")

    def find(self, entry: str) -> tuple[int, int]:
        """Row and column of an entry, or a `ParameterError`."""
        row, _, column = entry.partition(",")
        if row.isdecimal() and column.isdecimal() and int(row) < len(self.rows) and int(column) < len(self.columns):
            return int(row), int(column)
        raise ParameterError("entry must be 'typical', 'largest', or the row and column of a number.")

    def choose(self, entry: str) -> str:
        """The entry, if the table has it and it means something there; otherwise the default."""
        if entry in (TYPICAL, LARGEST):
            return entry if self.comparable else self.default_entry
        try:
            self.find(entry)
        except ParameterError:
            return self.default_entry
        return entry

    @property
    def default_entry(self) -> str:
        """The entry that is followed unless another one is chosen.

        The largest one, or the median if noise hides that; the first one that has noise if entries have other units.
        """
        if self.comparable:
            return LARGEST if np.isfinite(self.read(LARGEST)) else TYPICAL
        noisy = np.argwhere(self.std != 0)
        row, column = noisy[0] if len(noisy) else (0, 0)
        return f"{row},{column}"


def predict_tables(plan: Plan) -> Iterator[ErrorTable]:
    """The tables that describe a plain release best, and that take little time."""
    request, query = plan.request, plan.query
    if isinstance(query, TableMoments):
        with np.errstate(all="ignore"):
            yield from _predict_table_answers(plan, query)
        return
    std, rows, columns = predict_std(plan)
    if has_equal_rows(std):
        std, rows = std[:1], ("every row",)
    follows = request.kind != "matrix"
    title = request.kind.capitalize() if follows else f"Entries of the {query.title}"
    scale_free = request.kind == "correlation" or request.question in ("adjacency", "laplacian", "counts")
    yield ErrorTable(title, std, tuple(rows), tuple(columns), scale_free, _DESCRIBED if follows else "")


def _predict_table_answers(plan: Plan, query: TableMoments) -> Iterator[ErrorTable]:
    assert plan.design is not None  # of a plain release
    numbers, request = len(query.used.numbers), plan.request
    forecast = TableForecast(plan.design, request.schema.guesses)
    if request.question == "table":
        first = make_answers(forecast, "table", groups=False)[0]
        yield ErrorTable(first.title, first.estimate.std, first.estimate.rows, first.estimate.columns, True)
        return
    few = numbers <= MOST_CORRELATED
    if request.question == "covariance" and few:
        yield _name_table("Covariance", forecast.covariance(), comparable=False)
    elif request.question not in ("means", "covariance") and numbers > 1 and few:
        yield _name_table("Correlation", forecast.correlation(), comparable=True)
    if numbers:
        yield _name_table("Means", forecast.means(), comparable=False, columns=1)
    if request.question in ("means", "everything"):
        for column in query.used.categories:
            yield _name_table(f"Shares of the levels of {column.name}", forecast.shares(column.name), comparable=True)


def _name_table(title: str, found: Estimate, *, comparable: bool, columns: int | None = None) -> ErrorTable:
    return ErrorTable(title, found.std[:, :columns], found.rows, found.columns[:columns], comparable, _DESCRIBED)
