"""Private means and standard deviations of features, all at once."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from matrixdp.adaptive.scales import private_scales
from matrixdp.domain.bounds import Bounds
from matrixdp.errors import ParameterError
from matrixdp.estimators.base import PrivateEstimator
from matrixdp.privacy import Privacy
from matrixdp.types import Floats


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
