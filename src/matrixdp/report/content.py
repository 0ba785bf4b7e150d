"""What a report shows: the released matrix itself, or a covariance or correlation that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.domain.columns import Number
from matrixdp.domain.file_rules import DateRule
from matrixdp.errors import ParameterError, show
from matrixdp.queries import ContingencyTable, MatrixQuery, Moments, TableMoments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.result import Release
from matrixdp.report.answer_tables import MODELS, SUMMARIES, AnswerTable, make_answers
from matrixdp.report.ledger_summary import LedgerSummary
from matrixdp.report.mechanism_facts import AnyRelease, MechanismFacts, read_mechanism
from matrixdp.report.model_tables import make_model
from matrixdp.types import Floats

KINDS = ("matrix", "covariance", "correlation", *SUMMARIES)
_TITLES = {
    "means": "means",
    "everything": "summary of a table",
    "components": "principal components",
    "regression": "regression",
}
REPLACED = (
    "Missing values, if there were any, were replaced by the middle of their bounds (except in columns with missing = "
    "true), as --missing midpoint asks. This biases means, standard deviations, covariances and correlations, and no "
    "error bar shows it. Without this bias: describe such columns with missing = true."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportContent:
    """A matrix to show, with its error bars, its names and its origin. Made by `make_content`.

    Attributes
    ----------
    title : str
        What is shown, such as "covariance".
    matrix : float64 array of shape (rows, columns)
    std : float64 array of the same shape, or None
        Standard deviation of the noise in each entry; None if it is unknown.
    rows, columns : tuples of str
        Names of the rows and columns.
    scale : float64 array, broadcastable to the shape
        Largest absolute value that each entry can have; pictures show entries relative to it.
    release : Release, MechanismRelease or AdaptiveRelease
    mechanism : MechanismFacts
    kind : one of KINDS
    mean : Estimate, optional
        Means of the features, where they follow from the release.
    ledger : LedgerSummary, optional
    notes : tuple of str
        Further sentences on how the noise was generated.
    units : tuple of str
        Sentences on what the numbers of a column count.
    dates : tuple of DateRule
        Columns whose means are shown as dates or times.
    answers : tuple of AnswerTable
        What else follows from the release. For most kinds they are shown in place of the matrix.
    table : str
        What the table is called that was asked; empty if that is unknown.
    written : str
        When the report was written; empty if that is unknown.
    variables : tuple of str
        What the rows and the columns of a table of counts are; empty if that is unknown.
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
    answers: tuple[AnswerTable, ...] = ()
    table: str = ""
    written: str = ""
    variables: tuple[str, str] = ("", "")

    @property
    def summary(self) -> bool:
        """Whether answers are shown in place of the matrix."""
        return self.kind in SUMMARIES

    @property
    def caveats(self) -> tuple[str, ...]:
        """What readers of the numbers must know besides their error bars."""
        query = self.mechanism.query
        replaceable = not isinstance(query, TableMoments) or any(not one.missing for one in query.used.numbers)
        return (REPLACED,) if getattr(self.release, "missing", "error") == "midpoint" and replaceable else ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """The caveats, and what the numbers count."""
        return self.caveats + self.units

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
        if not isinstance(query, Moments):
            return ()
        bounds = query.bounds
        names = bounds.names or tuple(f"x{i}" for i in range(bounds.size))
        limits = zip(names, bounds.lower.tolist(), bounds.upper.tolist(), strict=True)
        return tuple(Number(*one) for one in limits)

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


def make_content(
    release: AnyRelease,
    kind: str = "matrix",
    *,
    ledger: LedgerSummary | None = None,
    notes: tuple[str, ...] = (),
    target: str | None = None,
    on: Sequence[str] | None = None,
) -> ReportContent:
    """The release, or the covariance or correlation that follows from released moments, ready to be shown.

    Parameters
    ----------
    release : Release, MechanismRelease or AdaptiveRelease
    kind : 'matrix', 'covariance', 'correlation', 'means', 'table', 'everything', 'components' or 'regression'
        Covariances and correlations are for a `Release` of moments or an `AdaptiveRelease`, 'table' and 'everything'
        for the moments of a table, and the others for either.
    ledger : LedgerSummary, optional
        If the release was charged to a ledger.
    notes : tuple of str, optional
        Further sentences on how the noise was generated.
    target : str, optional
        The number that a regression explains.
    on : sequence of str, optional
        The columns that explain it; by default all others.

    Privacy
    -------
    Post-processing: uses no privacy budget.
    """
    if kind not in KINDS:
        raise ParameterError(f"kind must be one of {', '.join(KINDS)}, got {show(kind)} instead.")
    mechanism = read_mechanism(release)
    if isinstance(release, AdaptiveRelease):
        return _show_fit(release, mechanism, kind, ledger, notes, (target, on))
    query = mechanism.query
    own_shape = release.matrix.shape == query.shape
    rows, columns = query.entry_names if own_shape else _name_entries(release.matrix, query)
    content = ReportContent(
        title=query.title if own_shape else f"output of {mechanism.name}",
        matrix=release.matrix,
        std=release.std,
        rows=rows,
        columns=columns,
        scale=query.scale if own_shape else np.full((1, 1), np.abs(release.matrix).max() or 1.0),
        release=release,
        mechanism=mechanism,
        mean=release.mean() if isinstance(release, Release) and isinstance(query, Moments) else None,
        ledger=ledger,
        notes=notes,
    )
    if kind == "matrix":
        return content
    if isinstance(query, TableMoments):
        return _show_answers(content, kind, (target, on))
    return _show_estimate(content, kind)


def _show_fit(
    release: AdaptiveRelease,
    mechanism: MechanismFacts,
    kind: str,
    ledger: LedgerSummary | None,
    notes: tuple[str, ...],
    regression: tuple[str | None, Sequence[str] | None],
) -> ReportContent:
    """What follows from an adaptive fit."""
    if kind not in ("means", "covariance", "correlation", *MODELS):
        raise ParameterError(
            f"kind must be means, covariance, correlation, components or regression for an adaptive release, got "
            f"{show(kind)} instead."
        )
    shown = release.correlation() if kind == "correlation" else release.covariance()
    answers: tuple[AnswerTable, ...] = ()
    if kind == "means":
        answers = (AnswerTable("means", "Means", "column", release.means()),)
    elif kind in MODELS:
        answers = make_model(release, kind, *regression)
    half, means = release.moment.bounds.halfwidths, release.means()
    return ReportContent(
        title=_TITLES.get(kind, kind),
        matrix=shown.value,
        std=shown.std,
        rows=shown.rows,
        columns=shown.columns,
        scale=np.ones((1, 1)) if kind == "correlation" else np.multiply.outer(half, half),
        release=release,
        mechanism=mechanism,
        kind=kind,
        mean=Estimate(means.value[:, :1], means.std[:, :1], means.rows, means.columns[:1]),
        ledger=ledger,
        notes=notes,
        answers=answers,
    )


def _show_answers(
    content: ReportContent, kind: str, regression: tuple[str | None, Sequence[str] | None]
) -> ReportContent:
    """What follows from the moments of a table; a covariance or correlation in place of the released moments."""
    release, query = content.release, content.mechanism.query
    if not isinstance(release, Release):
        raise ParameterError(f"kind must be 'matrix' for a release of {content.mechanism.name}, got {show(kind)}.")
    assert isinstance(query, TableMoments)
    answers = make_model(release, kind, *regression) if kind in MODELS else make_answers(release, kind)
    if kind in SUMMARIES:
        title = _TITLES.get(kind) or f"table of {' and '.join(column.name for column in query.used.categories)}"
        return replace(content, title=title, kind=kind, answers=answers)
    main = next(answer for answer in answers if answer.name == kind)
    names = main.estimate.rows
    bounds = query.used.bounds
    assert bounds is not None  # otherwise there is no covariance
    scale = np.multiply.outer(bounds.halfwidths, bounds.halfwidths) if kind == "covariance" else np.ones((1, 1))
    return replace(
        content,
        title=kind,
        matrix=main.estimate.value,
        std=main.estimate.std,
        rows=names,
        columns=names,
        scale=scale,
        kind=kind,
        answers=tuple(answer for answer in answers if answer is not main),
    )


def _show_estimate(content: ReportContent, kind: str) -> ReportContent:
    """The covariance or correlation in place of the released moments."""
    release = content.release
    if not isinstance(release, Release):
        raise ParameterError(
            f"kind must be 'matrix' for a release of {content.mechanism.name}, got {show(kind)} instead."
        )
    if kind in SUMMARIES:
        raise ParameterError(f"kind {show(kind)} is for the moments of a table, got {content.mechanism.query.title}.")
    estimate = release.covariance() if kind == "covariance" else release.correlation()
    query = content.mechanism.query
    assert isinstance(query, Moments)  # otherwise the line above raises
    ranges = np.multiply.outer(query.bounds.halfwidths, query.bounds.halfwidths)
    names = content.columns[1:]
    return replace(
        content,
        title=kind,
        matrix=estimate.value,
        std=estimate.std,
        rows=names,
        columns=names,
        scale=ranges if kind == "covariance" else np.ones((1, 1)),
        kind=kind,
    )


def _name_entries(matrix: Floats, query: MatrixQuery) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names for a matrix of another shape than the query's: those of the features where they fit, or numbers."""
    rows, columns = (
        query.names if query.names is not None and len(query.names) == size else tuple(map(str, range(size)))
        for size in matrix.shape
    )
    return rows, columns


def has_equal_rows(std: Floats) -> bool:
    """Whether an array repeats one row without storing it again, so that showing the first row is enough."""
    return std.strides[0] == 0
