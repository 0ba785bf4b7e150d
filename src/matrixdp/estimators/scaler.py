"""Private means and standard deviations of features, all at once."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from matrixdp.bounds import Bounds
from matrixdp.design import isotropic, make_design
from matrixdp.errors import DataError, ParameterError
from matrixdp.estimators.ball import sure_count
from matrixdp.estimators.base import PrivateEstimator
from matrixdp.estimators.moment import check_privacy, public_records
from matrixdp.estimators.spending import Spending, charged
from matrixdp.noise import Stream
from matrixdp.noise.covariance import Floats
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import Query
from matrixdp.queries.domain import check_bounds
from matrixdp.queries.table import as_parts, as_records
from matrixdp.sensitivity import FrobeniusBall

_LEVELS = 1 << 15  # half the steps of the grid
_MOST = 1 << 32  # records: their sums of squares fit into 64 bits
_WEIGHT = 1.66  # of the squares beside the values; up to 1.665 they cost nothing
_ROUNDING = 1 + 1e-12  # on the sensitivity, for the floats of its own formula
_FLOAT_ERROR = 8 * float(np.finfo(float).eps)  # exact sums, and five operations


@dataclass(frozen=True, eq=False)
class Scales:
    """Private mean and variance of each feature, of shape (m,), in the data's units, and what they cost.

    `variance_std` is the standard deviation of the noise in the mean of the squares.
    """

    mean: Floats
    variance: Floats
    variance_std: Floats
    spending: Spending


def private_scales(
    data: Any,
    bounds: Bounds,
    privacy: Privacy,
    *,
    records: int | None = None,
    neighbours: str = Neighbours.REPLACE,
    ledger: str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
) -> Scales:
    """Mean and variance of each feature, from one noisy sum of values and squares.

    Parameters are those of `matrixdp.estimators.private_moment`.

    Privacy
    -------
    A feature z in [-1, 1] enters as ``(z, b (z^2 - 1/2))``. Between two values its change has the square
    ``d^2 (1 + b^2 s^2)``, ``d = z - z'``, ``s = z + z'``, ``|s| <= 2 - |d|``: at most 4, as for z alone, when ``b^2 <=
    (2 + d)/(d^2 (2 - d))`` for all d, which is 2.77. So ``2 sqrt(m)/N`` bounds the change of the answer between
    replaced records. A record that comes or goes adds ``1 + b^2/4`` a feature, and 1 for the count, at most.

    Examples
    --------
    >>> data = np.random.default_rng(0).normal(size=(20000, 2))
    >>> scales = private_scales(data, Bounds([-5, -5], [5, 5]), Privacy(1, 1e-6))
    >>> bool((np.abs(scales.variance - 1) < 0.2).all())
    True
    """
    check_bounds(bounds)
    check_privacy(privacy)
    spending = Spending(privacy, Neighbours.parse(neighbours), stream, simulation)
    parts = as_parts(data).select(bounds.names)
    with np.errstate(all="ignore"):  # a warning would speak of private data
        totals = sum(parts.map(_TotalTask(bounds)), _Totals.none(bounds.size))
    if totals.count > _MOST:
        raise DataError(f"data must have at most {_MOST:,} records, whose sums of squares fit into 64 bits.")
    public = public_records(records, totals.count, spending.neighbours)
    description = {"query": "scales", "shape": [1, 2 * bounds.size + 1], "records": public}
    query = _query(bounds.size, public, spending.neighbours)
    make_design(query, privacy, allocation=isotropic())  # an error comes before the charge
    charge = charged(spending, description, ledger=ledger, dataset=dataset)
    with charge:
        noisy = spending.release("scales", query, totals, share=1.0)
    return _scales(noisy.matrix[0], noisy.std[0], bounds, spending, public)


def _query(size: int, records: int, neighbours: Neighbours) -> Query:
    square = 4 * size if neighbours is Neighbours.REPLACE else 1 + size * (1 + _WEIGHT**2 / 4)
    return Query(
        (1, 2 * size + 1),
        FrobeniusBall(math.sqrt(square) / records * _ROUNDING),
        bound=4.0,
        function=_Sums(records),
        neighbours=neighbours,
        relative_error=_FLOAT_ERROR,
    )


@dataclass(frozen=True)
class _Sums:
    """Count, sums of values and weighted sums of squares less their middle, over the public number of records."""

    records: int

    def __call__(self, totals: _Totals) -> Floats:
        centred = totals.squares.astype(np.float64) / _LEVELS**2 - totals.count / 2
        parts = [np.array([float(totals.count)]), totals.values / _LEVELS, _WEIGHT * centred]
        return (np.concatenate(parts) / self.records)[None]


@dataclass(frozen=True, eq=False)
class _Totals:
    """Number of records on their grid, and exact sums of values and squares, int64 arrays of shape (m,)."""

    count: int
    values: NDArray[np.int64]
    squares: NDArray[np.int64]

    @classmethod
    def none(cls, size: int) -> _Totals:
        return cls(0, np.zeros(size, np.int64), np.zeros(size, np.int64))

    def __add__(self, other: _Totals) -> _Totals:
        return _Totals(self.count + other.count, self.values + other.values, self.squares + other.squares)


@dataclass(frozen=True, eq=False)
class _TotalTask:
    bounds: Bounds

    def __call__(self, number: int, blocks: Iterable[Any]) -> _Totals:
        total = _Totals.none(self.bounds.size)
        for block in blocks:
            array = as_records(block, self.bounds.size, self.bounds.names)
            steps = self.bounds.quantise(array, _LEVELS).astype(np.int64)
            total += _Totals(len(steps), steps.sum(axis=0), np.square(steps).sum(axis=0))
        return total


def _scales(noisy: Floats, std: Floats, bounds: Bounds, spending: Spending, public: int) -> Scales:
    size = bounds.size
    count = 1.0 if spending.neighbours is Neighbours.REPLACE else sure_count(float(noisy[0]), float(std[0]), public)
    mean = np.clip(noisy[1 : size + 1] / count, -1.0, 1.0)
    second = np.clip(noisy[size + 1 :] / _WEIGHT / count + 0.5, 0.0, 1.0)
    variance = np.maximum(second - mean**2, 0.0)
    half = bounds.halfwidths
    variance_std = std[size + 1 :] / _WEIGHT / count
    return Scales(bounds.midpoint + half * mean, variance * half**2, variance_std * half**2, spending)


class PrivateScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Features less their private mean, over their private standard deviation.

    Parameters are those of `PrivateEstimator`, but for `directions`. The pure function is `private_scales`.

    Attributes
    ----------
    mean_, var_, scale_ : float64 arrays of shape (m,)
        The scale is the root of the variance, or of the standard deviation of its noise if that is larger.
    bounds_ : Bounds
        Of the transformed features, for the next private step of a pipeline.

    Privacy
    -------
    See `PrivateEstimator`. `transform` is a function of public numbers and of the record that it is given: what it
    returns is as private as that record.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(5000, 2)) + 3
    >>> scaler = PrivateScaler(bounds=(-2, 8), random_state=0).fit(X)
    >>> bool(np.abs(scaler.transform(X).mean(axis=0)).max() < 0.2)
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Any = None,
        neighbours: str = "replace",
        records: int | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.neighbours = neighbours
        self.records = records
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Spend the budget on the records X, of shape (n, m)."""
        X = self._features(X)
        bounds = self._feature_bounds()
        simulation, stream = self._stream()
        self._warn(simulation)
        privacy = Privacy(self.epsilon, self.delta)
        options = {"records": self.records, "neighbours": self.neighbours, "ledger": self.ledger}
        scales = private_scales(
            X, bounds, privacy, dataset=self.dataset, stream=stream, simulation=simulation, **options
        )
        spending = scales.spending
        self.privacy_, self.neighbours_, self.mu_ = privacy, spending.neighbours, spending.mu
        self.steps_, self.simulation_ = spending.steps, simulation
        self.mean_, self.var_ = scales.mean, scales.variance
        self.scale_ = np.sqrt(np.maximum(scales.variance, scales.variance_std))
        self.bounds_ = Bounds((bounds.lower - self.mean_) / self.scale_, (bounds.upper - self.mean_) / self.scale_)
        return self

    def transform(self, X: Any) -> Floats:
        """Scaled records, of the shape (n, m) of X."""
        check_is_fitted(self)
        return np.asarray((self._features(X, reset=False) - self.mean_) / self.scale_)

    def inverse_transform(self, X: Any) -> Floats:
        """Records of shape (n, m) from scaled ones."""
        check_is_fitted(self)
        X = np.asarray(X, np.float64)
        if X.ndim != 2 or X.shape[1] != self.mean_.size:
            raise ParameterError(f"X must have shape (records, {self.mean_.size}), got {X.shape} instead.")
        return np.asarray(X * self.scale_ + self.mean_)
