"""The content of a report: the released matrix itself, or a covariance, correlation or answers that follow from it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from matrixdp.answers.estimate import Estimate, settle
from matrixdp.display import Numbers
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.columns import Number
from matrixdp.domain.file_rules import DateRule
from matrixdp.errors import ParameterError, show
from matrixdp.queries import ContingencyTable, Identity, Moments, TableMoments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.dataset import DatasetRelease
from matrixdp.release.result import Release
from matrixdp.report.answers import MODELS, REPLACED, SUMMARIES, Answer, make_answers
from matrixdp.report.guarantee import AnyRelease, LedgerSummary, MechanismFacts, read_mechanism
from matrixdp.types import Floats

KINDS = ("matrix", "covariance", "correlation", *SUMMARIES)
_FITTED = ("means", "covariance", "correlation", *MODELS)  # kinds of an adaptive release
_TITLES = {"everything": "summary of a table", "components": "principal components"}


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportContent:
    """A matrix to show, with its error bars, its names and its origin. Made by `make_content`.

    The title says what is shown, such as "covariance". `matrix` and `std` have shape (rows, columns); the standard
    deviations of the noise are None if they are unknown. Pictures show entries relative to `scale`, the largest
    absolute value that each can have. `mean` has means of the features where they follow from the release, and
    `answers` what else does; for most kinds these are shown in place of the matrix. `notes` say how the noise was
    generated, and `units` what the numbers of a column count; the means of `dates` are shown as dates or times.
    `question` is what was asked, in words, `table` the data set, `released` the time of the charge, and `contact` who
    answers questions; they and the `variables` of the rows and columns of counts are empty if they are unknown.
    """

    title: str
    matrix: Floats
    std: Floats | None
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    scale: Floats
    release: AnyRelease
    mechanism: MechanismFacts
    kind: str = "matrix"
    mean: Estimate | None = None
    ledger: LedgerSummary | None = None
    notes: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    dates: tuple[DateRule, ...] = ()
    answers: tuple[Answer, ...] = ()
    table: str = ""
    question: str = ""
    released: datetime | None = None
    contact: str = ""
    variables: tuple[str, str] = ("", "")
    main: Numbers | None = None

    @property
    def heading(self) -> str:
        """What was asked or, where that is unknown, what is shown."""
        return self.question or self.title[:1].upper() + self.title[1:]

    @property
    def date(self) -> str:
        """The day of the release, as in "16 November 2026"."""
        return write_day(self.released)

    @cached_property
    def text(self) -> str:
        """The contents of ``release.json``."""
        return self.release.to_json()

    @cached_property
    def sha256(self) -> str:
        """The hash of ``release.json``."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def summary(self) -> bool:
        """Whether answers are shown in place of the matrix."""
        return self.kind in SUMMARIES or self.in_files

    @property
    def in_files(self) -> bool:
        """Whether it is a noisy data set in files, which are not read."""
        return isinstance(self.release, DatasetRelease)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What readers of the numbers must know besides their error bars."""
        query = self.mechanism.query
        replaceable = not isinstance(query, TableMoments) or any(not one.missing for one in query.used.numbers)
        return (REPLACED,) if getattr(self.release, "missing", "error") == "midpoint" and replaceable else ()

    @property
    def counts(self) -> bool:
        """Whether the matrix is a table of counts."""
        return isinstance(self.mechanism.query, ContingencyTable) and self.matrix.shape == self.mechanism.query.shape

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The columns of numbers with their bounds, where means follow from the release."""
        query = self.mechanism.query
        if isinstance(query, TableMoments):
            return query.used.numbers
        return list_numbers(query.bounds) if isinstance(query, Moments) else ()

    @property
    def entries(self) -> Numbers:
        """The matrix with its error bars and names."""
        if self.main is not None:
            return self.main
        query = self.mechanism.query
        if self.std is None or self.matrix.shape != query.shape or isinstance(query, Identity):
            return Numbers(self.matrix, self.std, self.rows, self.columns)
        return settle(self.matrix, np.asarray(self.std), self.rows, self.columns, query.possible)

    @property
    def relative(self) -> bool:
        """Whether colours show entries relative to the largest value that each can have."""
        return not (self.counts or self.kind == "correlation")

    @property
    def square(self) -> bool:
        """Whether rows and columns are the same things."""
        return self.rows == self.columns

    @property
    def row_names(self) -> tuple[str, ...] | None:
        """Names of the rows, or None if they are only numbered."""
        return self.rows if self.square or not self.rows[0].isdigit() else None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features that `mean` is of."""
        return self.columns[1:] if self.kind == "matrix" else self.columns


def write_day(time: datetime | None) -> str:
    """The day of a time in words; empty if it is unknown."""
    return "" if time is None else f"{time.day} {time:%B %Y}"


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
    mechanism = read_mechanism(release)
    query = mechanism.query
    _check_kind(release, mechanism, kind)
    origin: dict[str, Any] = {"release": release, "mechanism": mechanism, "ledger": ledger, "notes": notes}
    if isinstance(release, DatasetRelease):
        return _describe_dataset(**origin)
    if isinstance(release, AdaptiveRelease):
        shown = _show_square(release.covariance(), "covariance", release.moment.bounds)
    else:
        own, (rows, columns) = release.matrix.shape == query.shape, release.entry_names
        scale = query.scale if own else np.full((1, 1), np.abs(release.matrix).max() or 1.0)
        shown = {"matrix": release.matrix, "std": release.std, "rows": rows, "columns": columns, "scale": scale}
    means = isinstance(release, AdaptiveRelease) or (isinstance(release, Release) and isinstance(query, Moments))
    content = ReportContent(
        title=_TITLES.get(kind, kind),
        **shown,
        kind=kind,
        mean=release.means().column("mean") if means else None,  # type: ignore[union-attr]
        **origin,
    )
    if kind == "matrix":
        return replace(content, title=query.title if own else f"output of {mechanism.name}")
    assert isinstance(release, Release | AdaptiveRelease)
    answers = make_answers(release, kind, target, on)
    if kind == "table":
        assert isinstance(query, TableMoments)
        title = f"table of {' and '.join(column.name for column in query.used.categories)}"
        return replace(content, title=title, answers=answers)
    if kind in SUMMARIES:
        return replace(content, answers=answers)
    main = next(answer for answer in answers if answer.name == kind).estimate
    assert isinstance(query, Moments | TableMoments)  # otherwise there is no covariance
    bounds = release.moment.bounds if isinstance(release, AdaptiveRelease) else query.number_bounds
    others = tuple(answer for answer in answers if answer.estimate is not main)
    return replace(content, **_show_square(main, kind, bounds), answers=others)


def _describe_dataset(release: DatasetRelease, mechanism: MechanismFacts, **origin: Any) -> ReportContent:
    """Standard deviations of the noise of a row and of the average of all rows, beside the largest value."""
    query = mechanism.query
    height, width = query.shape
    largest = np.broadcast_to(query.scale, query.shape)[0]
    value = np.column_stack([release.std, release.std / np.sqrt(height), largest])
    names, heads = query.names or tuple(f"x{i}" for i in range(width)), ("row", "average of rows", "largest value")
    noise = Estimate(value, np.zeros_like(value), names, heads)
    return ReportContent(
        title="noisy data set",
        matrix=np.broadcast_to(np.nan, query.shape),
        std=None,
        rows=(),
        columns=names,
        scale=query.scale,
        release=release,
        mechanism=mechanism,
        answers=(Answer("Standard deviation of the noise", "column", noise, name="noise"),),
        **origin,
    )


def _check_kind(release: AnyRelease, mechanism: MechanismFacts, kind: str) -> None:
    """Raise a `ParameterError` if a report of this kind does not follow from the release."""
    if kind not in KINDS:
        raise ParameterError(f"kind must be one of {', '.join(KINDS)}, got {show(kind)} instead.")
    if isinstance(release, AdaptiveRelease):
        if kind not in _FITTED:
            rule = f"{', '.join(_FITTED[:-1])} or {_FITTED[-1]} for an adaptive release"
            raise ParameterError(f"kind must be {rule}, got {show(kind)} instead.")
    elif kind != "matrix" and not isinstance(release, Release):
        raise ParameterError(f"kind must be 'matrix' for a release of {mechanism.name}, got {show(kind)} instead.")
    elif kind in SUMMARIES and not isinstance(mechanism.query, TableMoments):
        raise ParameterError(f"kind {show(kind)} is for the moments of a table, got {mechanism.query.title}.")


def _show_square(estimate: Estimate, kind: str, bounds: Bounds | None) -> dict[str, Any]:
    """A covariance or correlation in place of the released moments."""
    half = np.ones(1) if kind == "correlation" or bounds is None else bounds.halfwidths
    names = {"rows": estimate.rows, "columns": estimate.columns}
    shown = {"matrix": estimate.value, "std": estimate.std, "main": estimate}
    return {**shown, **names, "scale": np.multiply.outer(half, half)}


def list_numbers(bounds: Bounds) -> tuple[Number, ...]:
    """The columns of numbers that bounds are of."""
    names = bounds.names or tuple(f"x{i}" for i in range(bounds.size))
    return tuple(Number(*one) for one in zip(names, bounds.lower.tolist(), bounds.upper.tolist(), strict=True))
