"""Kernel matrices: of private records against public points, or of private records among themselves."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.checks import LARGEST, check_magnitude, check_magnitudes
from matrixdp.domain.person import Person
from matrixdp.errors import ParameterError, show
from matrixdp.noise.matrix import Covariance
from matrixdp.privacy import Neighbours
from matrixdp.queries.base import check_count
from matrixdp.queries.identity import OwnRowsQuery
from matrixdp.records import read_array
from matrixdp.sensitivity import KernelChange, KernelRowChange, RecordChange, Sensitivity, max_quadratic
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats

_MOST = 1 << 28  # entries, which are held in memory
_ROUNDING = 1e-12  # of the kernel's values; they are cut to a range that much wider
_SMALLEST = 1 / LARGEST  # halfwidth of a range
_MOST_POINTS = 1024  # whose kernel matrix is used; eigenvectors of more take long
_KNOWN = 32  # points whose nearest and farthest records give a distance that is attained
_REGULARISATION = 1e-6  # share of the mean variance that is added to all: whitening multiplies errors by 1e3 at most
_LARGEST_RATIO = 1e6  # of the precisions of the two parts of a row
_EPS = float(np.finfo(float).eps)
_METRICS = {"gaussian": "sqeuclidean", "laplacian": "cityblock"}


@builtin_kind
@dataclass(frozen=True, eq=False, repr=False)
class GramMatrix(OwnRowsQuery):
    """Values of a kernel between 0 and 1: ``exp(-|x - y|^2/(2 bandwidth^2))`` or ``exp(-|x - y|_1/bandwidth)``.

    Parameters
    ----------
    bounds : Bounds
        Of the records; features are divided by half their width before distances are taken.
    records : int
        The public number of records.
    points : array_like of shape (p, m), optional
        Public points. With them the answer has shape (records, p), and a record changes one row; without them it has
        shape (records, records), and a record changes a row and a column.
    person : Person, optional
        ``Person(column, rows=k)``, as for `Identity`: neighbours differ in the values of all rows of one person, the
        unit ``values:COLUMN`` of a ledger. The noise is about ``sqrt(k)`` times as large.
    kernel : 'gaussian' or 'laplacian'
    bandwidth : float
        In halfwidths.
    row_change : 'kernel' or 'box'
        How the change of a row against public points is bounded: by the kernel's own norm or by the range of each
        value, whichever is smaller, or by the range alone, as in releases of version 0.1. Without points it is 'box'.

    Privacy
    -------
    Replace-one neighbours. With public points the row of a record lies in a public box within [0, 1]^p. By the kernel's
    own norm its changes lie in an ellipsoid, too: ``d' K^-1 d <= 2 - 2 k_min``, K the kernel matrix of the points and
    k_min the kernel's smallest value for two records, or a smaller one for wide kernels. Noise of that shape has a
    variance that does not grow with the number of points; `make_design` uses it by default where it has less noise
    (allocation 'kernel'). Among records, ``2 (records - 1)`` entries may change by the kernel's whole range: expect
    much noise.

    Examples
    --------
    >>> from matrixdp.domain import Bounds
    >>> bounds = Bounds([0, 0], [1, 1])
    >>> GramMatrix(bounds, records=100, points=[[0.5, 0.5], [0.1, 0.9]]).shape
    (100, 2)
    """

    points: NDArray[np.float64] | None = None
    kernel: str = field(default="gaussian", kw_only=True)
    bandwidth: float = field(default=1.0, kw_only=True)
    neighbours: Neighbours = field(default=Neighbours.REPLACE, kw_only=True)
    person: Person | None = field(default=None, kw_only=True, metadata={"omit_none": True})
    row_change: str = field(default="kernel", kw_only=True, metadata={"absent": "box"})

    title = "Gram matrix"
    public_value = 1.0
    names = None  # columns are points or records

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel not in _METRICS:
            raise ParameterError(
                f"kernel must be 'gaussian' or 'laplacian', got {show(self.kernel)} instead; "
                "for another bounded kernel use Query."
            )
        object.__setattr__(self, "bandwidth", check_magnitude(self.bandwidth, "bandwidth"))
        if self.row_change not in ("kernel", "box"):
            raise ParameterError(f"row_change must be 'kernel' or 'box', got {show(self.row_change)} instead.")
        if self.points is None:
            object.__setattr__(self, "row_change", "box")
            if self.records < 2:
                raise ParameterError(f"records must be at least 2 without public points, got {self.records} instead.")
            return
        points = read_array(self.points, self.bounds.size, self.bounds.names).astype(np.float64)
        if points.ndim != 2 or points.shape[1] != self.bounds.size or not points.size or not np.isfinite(points).all():
            raise ParameterError(
                f"points must be finite, of shape (p, {self.bounds.size}), got shape {points.shape} instead."
            )
        check_magnitudes(points, "points", signed=True)
        object.__setattr__(self, "points", points)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(records, points) or (records, records)."""
        return self.records, self.records if self.points is None else len(self.points)

    @property
    def side(self) -> str:
        """Columns with public points; both without."""
        return "both" if self.points is None else "columns"

    def extent(self, directions: Floats | None) -> Floats:
        """Ones, since columns have like ranges; along other directions, how far the ellipsoid of changes reaches."""
        if directions is None or self._ellipsoid is None:
            return np.ones(self.features)
        matrix, _ = self._ellipsoid
        squares = np.einsum("ij,ij->j", directions, matrix @ directions)
        return np.asarray(np.sqrt(squares + _REGULARISATION * np.trace(matrix) / len(matrix)))

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """One row, or a row and a column, change; or those of one person."""
        low, high = self._range
        if self.points is None:
            return KernelChange(self.records, float(high[0] - low[0]) * (1 + _ROUNDING), self.rows_of_person)
        if self._ellipsoid is None:
            return self.rows_change(RecordChange(self._halfwidths, filled=False))
        # Bounds on the rounding error of a value for each point; with ``t e^-t`` at most 1/e, or its value at t > 1.
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(high > math.exp(-1), math.exp(-1), np.nan_to_num(-high * np.log(high)))
        errors = _EPS * (2 * (self.bounds.size + 8) * slope + 16 * high + self._halfwidths) + 1e-300
        # Some records close to and far from points, in halfwidths from the midpoint, of shape (q, m).
        points = self._scaled(self.points[:_KNOWN])
        farthest = np.where(points > 0, -1.0, 1.0)
        records = np.concatenate([np.clip(points, -1.0, 1.0), farthest, -farthest[:1]])
        if self.bounds.radius is not None:
            inside = np.linalg.norm(records * self.bounds.halfwidths, axis=1) <= self.bounds.radius * (1 - 1e-12)
            records = records[inside]
        matrix, error = self._ellipsoid
        return self.rows_change(KernelRowChange(self._halfwidths, matrix, errors, error, self._values(records)))

    @cached_property
    def own_covariance(self) -> Covariance | None:
        """The ellipsoid of changes, regularised; None where the box is always better or there are too many points."""
        if self._ellipsoid is None or len(self._ellipsoid[0]) < 2:
            return None
        values, vectors = np.linalg.eigh(self._ellipsoid[0])
        values = np.maximum(values, 0.0)
        return Covariance(values + _REGULARISATION * values.mean(), vectors)

    @cached_property
    def _ellipsoid(self) -> tuple[Floats, float] | None:
        """M such that changes of a row have ``d' M^-1 d <= 1``, where it is used, and the error of its entries.

        With o the midpoint, ``k_j = k(p_j, o)``, s the spread and r the range of ``k(., o)``, all of
        ``M = (K - k k')/alpha + k k'/beta`` with ``alpha s + (beta - alpha) r^2 = 1`` and ``beta >= alpha`` are valid;
        that with the smallest trace is taken.
        """
        if self.points is None or self.row_change == "box" or len(self.points) > _MOST_POINTS:
            return None
        scaled = self._scaled(self.points)
        gram = self._kernel_between(scaled, scaled)
        middle = self._kernel_between(scaled, np.zeros((1, self.bounds.size)))[:, 0]
        spread, reach = self._spread(2.0), self._spread(1.0) / 2
        rounding = _EPS * (
            (self.bounds.size + 8) * math.exp(-1) + 16
        )  # of values for pairs of points, and the midpoint
        rest, common = float((1 - middle**2).sum()), float((middle**2).sum())
        gain = common * max(spread - reach**2, 0.0) / max(rest * reach**2, common * spread / _LARGEST_RATIO**2)
        ratio = math.sqrt(max(gain, 1.0))
        alpha = 1 / (spread + (ratio - 1) * reach**2) * (1 - _ROUNDING)
        if ratio == 1.0:
            return gram / alpha, rounding / alpha
        product = np.multiply.outer(middle, middle)
        error = (4 * rounding + 8 * _EPS) * (1 + 1 / ratio) / alpha
        return (gram - product) / alpha + product / (ratio * alpha), error

    def _spread(self, steps: float) -> float:
        """``2 - 2 k``, rounded up, k the smallest value for two records (2 steps), or a record and the midpoint (1)."""
        m, half, radius = self.bounds.size, self.bounds.halfwidths, self.bounds.radius
        squares = min(float(m), max_quadratic(1 / half, half, radius).value)  # of a record, in halfwidths
        reach = steps**2 * squares if self.kernel == "gaussian" else steps * math.sqrt(m * squares)
        scale = 2 * self.bandwidth**2 if self.kernel == "gaussian" else self.bandwidth
        return min(-2 * math.expm1(-reach / scale * (1 + _ROUNDING)) * (1 + _ROUNDING), 2.0)

    @cached_property
    def magnitude(self) -> Floats:
        """Half the kernel's range, since values are measured from its middle."""
        return self._halfwidths[None, :]

    @property
    def gamma(self) -> float:
        return math.sqrt(self.shape[0] * self.shape[1])

    @cached_property
    def _halfwidths(self) -> Floats:
        """Half the kernel's range, at least 1e-60: far away it can be so small that it loses its digits."""
        low, high = self._range
        return np.maximum((high - low) / 2 * (1 + _ROUNDING), _SMALLEST)

    @cached_property
    def _range(self) -> tuple[Floats, Floats]:
        """Least and largest value of the kernel for any record, for each public point, or once for pairs of records."""
        centre = np.zeros((1, self.bounds.size)) if self.points is None else self._scaled(self.points)
        reach = 2.0 if self.points is None else 1.0  # halfwidths between two records, or from the midpoint
        nearest, farthest = np.maximum(np.abs(centre) - reach, 0.0), np.abs(centre) + reach
        if self.kernel == "gaussian":
            nearest, farthest = nearest**2, farthest**2
        low = self._profile(farthest.sum(axis=1)) * (1 - _ROUNDING)
        return low, np.minimum(self._profile(nearest.sum(axis=1)) * (1 + _ROUNDING), 1.0)

    def _scaled(self, points: Floats) -> Floats:
        return (points - self.bounds.midpoint) / self.bounds.halfwidths

    def _profile(self, distances: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):  # far away the kernel is zero
            return np.exp(-distances / (2 * self.bandwidth**2 if self.kernel == "gaussian" else self.bandwidth))

    def _kernel_between(self, left: Floats, right: Floats) -> Floats:
        """The kernel between each row of `left` and each of `right`, both in halfwidths."""
        from scipy.spatial.distance import cdist  # here, since other queries do not need it and it takes long to import

        return self._profile(cdist(left, right, metric=_METRICS[self.kernel]))

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        """Kernel values less the middle of their range."""
        if self.shape[0] * self.shape[1] > _MOST:
            raise ParameterError(
                f"a Gram matrix must have at most {_MOST:,} entries, got {self.shape[0]:,} x {self.shape[1]:,}; give "
                "fewer records, or public points (--points)."
            )
        array = read_array(data, self.bounds.size, self.bounds.names)
        check_count(len(array), self.records)
        left = self.bounds.centre(array, clip=clip, missing=missing) / self.bounds.halfwidths
        values = self._values(np.clip(left, -1.0, 1.0))  # division may have left the box
        return np.asarray((values + values.T) / 2 if self.symmetric else values)

    def _values(self, records: Floats) -> Floats:
        """Kernel values of records in halfwidths from the midpoint, less the middle of their range."""
        right = records if self.points is None else self._scaled(self.points)
        low, high = self._range
        values = self._kernel_between(records, right)
        return np.asarray(np.clip(values, low, high) - (low + high) / 2)

    @property
    def possible(self) -> tuple[Floats, Floats]:
        low, high = self._range
        return low[None, :], high[None, :]

    def finish(self, matrix: Floats) -> Floats:
        low, high = self._range
        matrix += (low + high) / 2
        return super().finish(matrix)

    @property
    def public(self) -> NDArray[np.bool_] | None:
        return np.eye(self.records, dtype=bool) if self.symmetric else None
