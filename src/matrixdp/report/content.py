"""What a release is read as: the released matrix itself, or a covariance or correlation that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrixdp.answers.moments import Estimate
from matrixdp.errors import ParameterError, show
from matrixdp.release import Release
from matrixdp.types import Floats

RESULTS = ("matrix", "covariance", "correlation")


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
    mean = release.mean() if query.moment_bounds is not None else None
    rows, columns = query.entry_names
    if kind == "matrix":
        title, scale = query.title, query.scale
        return Result(title, release.matrix, release.std, rows, columns, scale, release, kind, mean, ledger, notes)
    estimate = release.covariance() if kind == "covariance" else release.correlation()
    assert query.moment_bounds is not None
    halfwidths = query.moment_bounds.halfwidths
    scale = np.multiply.outer(halfwidths, halfwidths) if kind == "covariance" else np.ones((1, 1))
    names = columns[1:]
    return Result(kind, estimate.value, estimate.std, names, names, scale, release, kind, mean, ledger, notes)
