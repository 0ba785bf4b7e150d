"""The content of a report: the released matrix, or answers that follow from it, and their origin."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from hashlib import sha256

import numpy as np

from matrixdp.answers.estimate import Estimate, settle
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.columns import Number
from matrixdp.domain.file_rules import DateRule
from matrixdp.errors import ParameterError, show
from matrixdp.queries import ContingencyTable, Identity, MatrixQuery, Moments, TableMoments
from matrixdp.queries.base import BoundedQuery
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.dataset import DatasetRelease
from matrixdp.release.result import Release
from matrixdp.report.answers import MODELS, REPLACED, SUMMARIES, Answer, make_answers

AnyRelease = Release | AdaptiveRelease | DatasetRelease
KINDS = ("matrix", "covariance", "correlation", *SUMMARIES)
_FITTED = ("means", "covariance", "correlation", *MODELS)  # kinds of an adaptive release
_TITLES = {"everything": "summary of a table", "components": "principal components"}


@dataclass(frozen=True)
class LedgerSummary:
    """Budget of a data set, or of the allowance that paid, before and after a release, and the ledger's last entry."""

    dataset: str
    epsilon: float  # the total budget
    delta: float
    left_before: float  # epsilon at the total's delta
    left_after: float
    entry: int
    hash: str
    allowance: str | None = None
    charged: bool = True  # not for a repeated request
    unnoticed: tuple[str, ...] = ()  # what could be done to the ledger's file without notice
    actor: str | None = None  # of the charge, that is of the first run of a request, as the next two
    purpose: str | None = None
    time: datetime | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportContent:
    """Answers to show, and their origin, as far as it is known. Made by `make_content`."""

    title: str  # what is shown, such as "covariance"
    release: AnyRelease
    answers: tuple[Answer, ...]  # the main one first, if a matrix is shown
    kind: str = "matrix"
    ledger: LedgerSummary | None = None
    notes: tuple[str, ...] = ()  # how the noise was generated
    units: tuple[str, ...] = ()  # what the numbers of a column count
    dates: tuple[DateRule, ...] = ()  # whose means are shown as dates or times
    table: str = ""  # the data set
    question: str = ""  # what was asked, in words
    released: datetime | None = None  # the time of the charge
    contact: str = ""  # who answers questions
    variables: tuple[str, str] = ("", "")  # of the rows and columns of counts

    @cached_property
    def query(self) -> MatrixQuery:
        """What the release answers."""
        return find_query(self.release)

    @property
    def adaptive(self) -> bool:
        """Whether a fit learned where the data lie."""
        return isinstance(self.release, AdaptiveRelease)

    @property
    def heading(self) -> str:
        """What was asked or, where that is unknown, what is shown."""
        return self.question or self.title[:1].upper() + self.title[1:]

    @cached_property
    def text(self) -> str:
        """The contents of ``release.json``."""
        return self.release.to_json()

    @cached_property
    def sha256(self) -> str:
        """The hash of ``release.json``."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def main(self) -> Answer | None:
        """The matrix; None where other answers are shown in its place."""
        return None if self.kind in SUMMARIES or self.in_files else self.answers[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix, or of the release that other answers follow from."""
        if self.main is not None:
            return len(self.main.estimate.rows), len(self.main.estimate.columns)
        if isinstance(self.release, AdaptiveRelease):
            return len(self.release.names), len(self.release.names)
        return self.query.shape

    @property
    def in_files(self) -> bool:
        """Whether it is a noisy data set in files, which are not read."""
        return isinstance(self.release, DatasetRelease)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What readers of the numbers must know besides their error bars."""
        query = self.query
        replaceable = not isinstance(query, TableMoments) or any(not one.missing for one in query.used.numbers)
        return (REPLACED,) if getattr(self.release, "missing", "error") == "midpoint" and replaceable else ()


def write_day(time: datetime | None) -> str:
    """The day of a time in words; empty if it is unknown."""
    return "" if time is None else f"{time.day} {time:%B %Y}"


def find_query(release: AnyRelease) -> MatrixQuery:
    """What a release answers; of an adaptive fit, the mean and second moment of its columns."""
    if not isinstance(release, AdaptiveRelease):
        query: MatrixQuery = release.query
        return query
    moment = release.moment
    bounds = Bounds(moment.bounds.lower, moment.bounds.upper, names=release.names)
    return Moments.for_covariance(bounds, release.records, neighbours=release.neighbours, person=moment.person)


def make_content(
    release: AnyRelease,
    kind: str = "matrix",
    *,
    ledger: LedgerSummary | None = None,
    notes: tuple[str, ...] = (),
    target: str | None = None,
    on: Sequence[str] | None = None,
) -> ReportContent:
    """The release, or what follows from released moments, ready to be shown; `kind` is one of `KINDS`.

    Covariances and correlations are for a `Release` of moments or an `AdaptiveRelease`, 'table' and 'everything' for
    the moments of a table, 'matrix' for all but fits, and the others for the moments of a table or a fit. `notes` are
    further sentences on how the noise was generated; `target` and `on` are the columns of a regression.

    Privacy
    -------
    Post-processing: uses no privacy budget.
    """
    _check_kind(release, kind)
    query, title = find_query(release), _TITLES.get(kind, kind)
    answers: tuple[Answer, ...]
    if isinstance(release, DatasetRelease):
        title, answers = "noisy data set", (_describe_noise(release, query),)
    elif kind == "matrix":
        assert isinstance(release, Release)  # as was checked
        title = query.title
        answers = tuple(_list_matrices(release, query, title))
    else:
        assert isinstance(release, Release | AdaptiveRelease)  # as was checked
        found = make_answers(release, kind, target, on)
        answers = tuple(sorted(found, key=lambda one: one.name != kind or one.group != ()))  # the main one first
        if kind == "table" and isinstance(query, TableMoments):
            title = f"table of {' and '.join(column.name for column in query.used.categories)}"
    content = ReportContent(title=title, release=release, answers=answers, kind=kind, ledger=ledger, notes=notes)
    if content.main is None or not isinstance(query, Moments) or not isinstance(release, Release | AdaptiveRelease):
        return content
    names = tuple(one.name for one in list_columns(query))
    means = Answer("Means", "column", replace(release.means().column("mean"), rows=names), name="means")
    return replace(content, answers=(*answers, means))


def _list_matrices(release: Release, query: MatrixQuery, title: str) -> Iterator[Answer]:
    """The released matrix and, of a noisy data set, the averages of its columns, of shape (columns, 1).

    The noise of different rows is independent, so the error bar of an average falls with the root of their number.
    There are no averages where rows are not independent.
    """
    matrix, std, (rows, columns) = release.matrix, release.std, release.entry_names
    name = "counts" if isinstance(query, ContingencyTable) else "rows" if isinstance(query, Identity) else "matrix"
    estimate = Estimate(matrix, std, rows, columns)
    if name != "rows":  # whose error bars may be stored once
        estimate = replace(settle(matrix, std, rows, columns, query.possible), std=std)
    scale = np.broadcast_to(query.scale, matrix.shape)
    yield Answer(title[:1].upper() + title[1:], "", estimate, name=name, scale=scale)
    if name == "rows" and not release.design.flat and release.design.rowcov.directions is None:
        value, bars = matrix.mean(axis=0), np.sqrt(np.square(std).sum(axis=0)) / len(matrix)
        averages = Estimate(value[:, None], bars[:, None], columns, ("average",))
        yield Answer(f"Averages over all {len(matrix):,} rows", "column", averages, name="averages")


def _describe_noise(release: DatasetRelease, query: MatrixQuery) -> Answer:
    """Standard deviations of the noise of a row and of the average of all rows, beside the largest value."""
    height, width = query.shape
    value = np.column_stack([release.std, release.std / np.sqrt(height), np.broadcast_to(query.scale, query.shape)[0]])
    names = query.names or tuple(f"x{i}" for i in range(width))
    noise = Estimate(value, np.zeros_like(value), names, ("row", "average of rows", "largest value"))
    return Answer("Standard deviation of the noise", "column", noise, name="noise")


def _check_kind(release: AnyRelease, kind: str) -> None:
    """Raise a `ParameterError` if a report of this kind does not follow from the release."""
    if not isinstance(release, AnyRelease):
        raise ParameterError("a report is of a design, an adaptive fit or a data set; print shows other releases.")
    if kind not in KINDS:
        raise ParameterError(f"kind must be one of {', '.join(KINDS)}, got {show(kind)} instead.")
    if isinstance(release, AdaptiveRelease):
        if kind not in _FITTED:
            rule = f"{', '.join(_FITTED[:-1])} or {_FITTED[-1]} for an adaptive release"
            raise ParameterError(f"kind must be {rule}, got {show(kind)} instead.")
    elif kind != "matrix" and not isinstance(release, Release):
        raise ParameterError(f"kind must be 'matrix' for a noisy data set, got {show(kind)} instead.")
    elif kind in SUMMARIES and not isinstance(release.query, TableMoments):
        raise ParameterError(f"kind {show(kind)} is for the moments of a table, got {release.query.title}.")


def list_columns(query: MatrixQuery) -> tuple[Number, ...]:
    """The columns of numbers with their bounds, where means follow from the answer to a query."""
    return list_numbers(query) if isinstance(query, TableMoments | Moments | Identity) else ()


def list_numbers(query: TableMoments | BoundedQuery) -> tuple[Number, ...]:
    """The columns of numbers that a query is of, with their bounds."""
    if isinstance(query, TableMoments):
        return query.used.numbers
    bounds = query.bounds
    names = bounds.names or tuple(f"x{i}" for i in range(bounds.size))
    return tuple(Number(*one) for one in zip(names, bounds.lower.tolist(), bounds.upper.tolist(), strict=True))
