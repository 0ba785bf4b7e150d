"""Private means and variances of all features, from one release."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.moment import public_records
from matrixdp.adaptive.queries import read_scales, scales_query, scales_row
from matrixdp.adaptive.records import read_people
from matrixdp.design import isotropic, make_design
from matrixdp.display import short_repr
from matrixdp.domain.bounds import Bounds, check_bounds
from matrixdp.domain.person import Person
from matrixdp.errors import DataError, ParameterError
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.queries.sums import rows_by_count
from matrixdp.records import Records, as_records, split_rows, to_array
from matrixdp.types import Floats

_LEVELS = 1 << 15  # half the number of grid steps
_MOST_RECORDS = 1 << 32  # their sums of squares fit into 64 bits


@dataclass(frozen=True, eq=False)
class Scales:
    """Private mean and variance of each feature in the data's units, and their privacy cost.

    Attributes
    ----------
    mean, variance : float64 arrays of shape (m,)
    variance_std : float64 array of shape (m,)
        Standard deviation of the noise in the mean of the squares.
    spending : FitBudget
    """

    mean: Floats
    variance: Floats
    variance_std: Floats
    spending: FitBudget

    __repr__ = short_repr


def private_scales(
    data: Any,
    bounds: Bounds,
    privacy: Privacy,
    *,
    records: int | None = None,
    neighbours: str = Neighbours.REPLACE,
    person: str | Person | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
) -> Scales:
    """Mean and variance of each feature, from one noisy sum of values and squares.

    Parameters are those of `matrixdp.adaptive.private_moment`.

    Privacy
    -------
    `scales_query` bounds what one record or one person can change.

    Examples
    --------
    >>> data = np.random.default_rng(0).normal(size=(20000, 2))
    >>> scales = private_scales(data, Bounds([-5, -5], [5, 5]), Privacy(1, 1e-6))
    >>> bool((np.abs(scales.variance - 1) < 0.2).all())
    True
    """
    options: dict[str, Any] = {"neighbours": neighbours, "person": person, "stream": stream, "simulation": simulation}
    return prepare_scales(data, bounds, privacy, records=records, **options).fit()


@dataclass(frozen=True, eq=False)
class PreparedScales:
    """Sums whose data and parameters have been checked, and which have not spent anything yet. Private."""

    totals: NDArray[Any]
    query: MatrixQuery
    bounds: Bounds
    budget: FitBudget
    public: int

    @property
    def description(self) -> dict[str, Any]:
        """What is fitted, for the ledger."""
        return {"query": "scales", "shape": [1, 2 * self.bounds.size + 1], "records": self.public}

    def fit(self) -> Scales:
        """Spend the budget. Whatever pays for it must have been charged before."""
        released = self.budget.release("scales", self.query, self.totals, share=1.0)
        public_number = self.budget.neighbours is Neighbours.REPLACE
        row = released.matrix[0], released.std[0]
        mean, square, _, std = read_scales(*row, self.public, public_number=public_number)
        half = self.bounds.halfwidths
        variance, error = np.maximum(square - mean**2, 0.0), np.full(half.size, std)
        return Scales(self.bounds.midpoint + half * mean, variance * half**2, error * half**2, self.budget)


def prepare_scales(
    data: Any, bounds: Bounds, privacy: Privacy, *, records: int | None = None, **options: Any
) -> PreparedScales:
    """Check data and parameters of `private_scales`; raises every error that they can have."""
    check_bounds(bounds)
    budget = FitBudget(privacy, **options)
    with np.errstate(all="ignore"):  # a warning would reveal something about private data
        totals = _sum_rows(data, bounds, budget.person)
    public = public_records(records, int(totals[0]), budget.neighbours)
    query = scales_query(bounds.size, public, budget.neighbours, budget.person, partial(_row, public))
    make_design(query, privacy, allocation=isotropic())  # raises before the charge
    return PreparedScales(totals, query, bounds, budget, public)


def _sum_rows(data: Any, bounds: Bounds, person: Person | None) -> NDArray[Any]:
    """Sums over people of the means over their rows, each rounded once; a record is a person with one row."""
    if person is not None and person.rows is not None:
        raise ParameterError("person must count once here, got rows instead. Give the name of the column alone.")
    parts: Records = as_records(data).select(bounds.names)
    if person is not None:
        parts, _ = read_people(data, bounds, person, whole=False)
    found: dict[int, NDArray[Any]] = {1: np.zeros(1 + 2 * bounds.size, np.int64)}
    for part in parts.map(partial(_sum_part, bounds)):
        for count, totals in part.items():
            found[count] = found.get(count, 0) + totals
    if sum(int(totals[0]) for totals in found.values()) > _MOST_RECORDS:
        raise DataError(f"data must have at most {_MOST_RECORDS:,} records, whose sums of squares fit into 64 bits.")
    if person is None:
        return found[1]
    means = [[Fraction(int(total), count) for total in totals] for count, totals in found.items()]
    return np.array([float(sum(column)) for column in zip(*means, strict=True)])


def _sum_part(bounds: Bounds, _: int, blocks: Iterable[Any]) -> dict[int, NDArray[np.int64]]:
    """Number of rows, and exact sums of values and squares on the grid, (1 + 2m,), by a person's number of rows."""
    found: dict[int, NDArray[np.int64]] = {}
    for block in blocks:
        data, counts = split_rows(block)
        array = np.asarray(to_array(data, bounds.size, bounds.names))
        for count, rows in [(1, slice(None))] if counts is None else rows_by_count(counts):
            steps = bounds.quantise(array[rows], _LEVELS).astype(np.int64)
            totals = np.concatenate([[len(steps)], steps.sum(axis=0), np.square(steps).sum(axis=0)])
            found[count] = found.get(count, 0) + totals
    return found


def _row(records: int, totals: NDArray[Any]) -> Floats:
    """Row of `scales_query` from the number of records and sums of values and squares on the grid."""
    count, values, squares = np.split(totals.astype(np.float64), [1, 1 + len(totals) // 2])
    moment = np.diag(np.append(count, squares / _LEVELS**2))
    moment[0, 1:] = values / _LEVELS
    return scales_row(moment / records)[None]
