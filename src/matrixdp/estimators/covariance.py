"""Private mean, covariance and correlation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.estimators.base import PrivateEstimator
from matrixdp.types import Floats


class PrivateCovariance(PrivateEstimator):
    """Private covariance and mean, with noise along learned directions.

    Parameters are those of `PrivateEstimator`. The pure function is `matrixdp.estimators.private_moment`.

    Attributes
    ----------
    covariance_ : float64 array of shape (m, m)
        About the mean, over N; positive semidefinite.
    location_ : float64 array of shape (m,)
    correlation_ : float64 array of shape (m, m)
    covariance_std_, location_std_ : float64 arrays
        Error bars: standard deviations of the noise, before shrinkage and to first order. They do not speak of
        sampling, nor of what clipping does.
    moment_ : PrivateMoment

    Privacy
    -------
    See `PrivateEstimator`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(5000, 3))
    >>> estimator = PrivateCovariance(epsilon=1, delta=1e-6, bounds=(-6, 6), random_state=0).fit(X)
    >>> estimator.covariance_.shape, estimator.mu_ <= estimator.privacy_.mu
    ((3, 3), True)
    """

    moment_: PrivateMoment

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Any = None,
        neighbours: str = "replace",
        records: int | None = None,
        directions: Any = "learned",
        ledger: Any = None,
        dataset: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.neighbours = neighbours
        self.records = records
        self.directions = directions
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Spend the budget on the records X, of shape (n, m)."""
        X = self._features(X)
        moment = self._moment(X, self._feature_bounds(), "covariance")
        self.moment_ = moment
        self.location_, self.location_std_ = moment.mean, moment.mean_std
        self.covariance_, self.covariance_std_ = moment.covariance, moment.covariance_std
        self.correlation_ = correlation(moment.covariance)
        return self


def correlation(covariance: Floats) -> Floats:
    """Correlations of shape (m, m); zero where a variance is zero.

    Examples
    --------
    >>> correlation(np.array([[4.0, 2.0], [2.0, 4.0]])).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    std = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    inverse = np.divide(1.0, std, out=np.zeros_like(std), where=std > 0)
    result = np.clip(covariance * np.multiply.outer(inverse, inverse), -1.0, 1.0)
    np.fill_diagonal(result, 1.0)
    return np.asarray(result)
