"""What a release is read as: the released matrix itself, or a covariance or correlation that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrixdp.answers.moments import Estimate
from matrixdp.errors import ParameterError, show
from matrixdp.queries import Adjacency, ContingencyTable, GramMatrix, Identity, Laplacian, Moments, SecondMoment
from matrixdp.release import Release
from matrixdp.types import Floats

RESULTS = ("matrix", "covariance", "correlation")
_TITLES = {
    Moments: "mean and second moment",
    SecondMoment: "second moment",
    Identity: "data set",
    GramMatrix: "Gram matrix",
    Adjacency: "adjacency matrix",
    Laplacian: "graph Laplacian",
    ContingencyTable: "table of counts",
}


@dataclass(frozen=True)
class LedgerState:
    """What a ledger said before and after a release."""

    path: str
    dataset: str
    epsilon: float
    delta: float
    left_before: float
    left_after: float
    entry: int
    hash: str


@dataclass(frozen=True, eq=False)
class Result:
    """A matrix to show, with its error bars, its names and where it came from.

    Attributes
    ----------
    title : str
    matrix, std : float64 arrays of the same shape
        `std` is the standard deviation of the noise.
    rows, columns : names, one a row or column
    scale : float64 array, broadcastable to the shape
        The largest absolute value that each entry can have; pictures show entries relative to it.
    release : Release
    kind : str
        One of `RESULTS`.
    mean : Estimate, optional
        Of the features, where the release has it.
    ledger : LedgerState, optional
    notes : further sentences on how the noise was made
    """

    title: str
    matrix: Floats
    std: Floats
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    scale: Floats
    release: Release
    kind: str = "matrix"
    mean: Estimate | None = None
    ledger: LedgerState | None = None
    notes: tuple[str, ...] = ()

    @property
    def square(self) -> bool:
        """Whether rows and columns are the same things."""
        return self.rows == self.columns


def make_result(
    release: Release, kind: str = "matrix", *, ledger: LedgerState | None = None, notes: tuple[str, ...] = ()
) -> Result:
    """The release, or the covariance or correlation that follows from moments, ready to be shown.

    Parameters
    ----------
    release : Release
    kind : 'matrix', 'covariance' or 'correlation'
    ledger : LedgerState, optional
        What the ledger said, if one was used.
    notes : sentences, optional
        For the report, on how the noise was made.

    Privacy
    -------
    Post-processing: costs nothing.
    """
    if kind not in RESULTS:
        raise ParameterError(f"kind must be one of {', '.join(RESULTS)}, got {show(kind)} instead.")
    query = release.design.query
    mean = release.mean() if isinstance(query, Moments) else None
    rows, columns = entry_names(release)
    if kind == "matrix":
        title = _TITLES.get(type(query), "matrix")
        scale = np.asarray(query.magnitude)
        if isinstance(query, Identity):
            scale = np.maximum(np.abs(query.bounds.lower), np.abs(query.bounds.upper))[None, :]
        return Result(title, release.matrix, release.std, rows, columns, scale, release, kind, mean, ledger, notes)
    estimate = release.covariance() if kind == "covariance" else release.correlation()
    assert isinstance(query, Moments)
    halfwidths = query.bounds.halfwidths
    scale = np.multiply.outer(halfwidths, halfwidths) if kind == "covariance" else np.ones((1, 1))
    names = columns[1:]
    return Result(kind, estimate.value, estimate.std, names, names, scale, release, kind, mean, ledger, notes)


def entry_names(release: Release) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the released matrix's rows and columns."""
    query = release.design.query
    height, width = query.shape
    if isinstance(query, ContingencyTable):
        return tuple(map(str, query.rows)), tuple(map(str, query.columns))
    names = query.names or tuple(f"x{i}" for i in range(query.features))
    if isinstance(query, Moments):
        names = ("1", *names)
    if query.symmetric and len(names) == width:
        return names, names
    if query.side == "rows":
        return names, tuple(map(str, range(width)))
    return tuple(map(str, range(height))), names
