"""Private principal components."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from matrixdp.adaptive.components import check_count, principal_components
from matrixdp.errors import DataError
from matrixdp.estimators.base import PrivateEstimator
from matrixdp.types import Floats


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Private principal components, with noise along learned directions.

    Parameters
    ----------
    n_components : int, float or None
        How many, the share of the variance that they must have, or all.

    Other parameters are those of `PrivateEstimator`. The pure functions are `private_moment` and
    `principal_components`.

    Attributes
    ----------
    components_ : float64 array of shape (n_components_, m)
    explained_variance_, explained_variance_ratio_ : float64 arrays of shape (n_components_,)
    mean_ : float64 array of shape (m,)
    n_components_ : int

    Privacy
    -------
    See `PrivateEstimator`. `transform` is a function of public numbers and of the record that it is given: what it
    returns is as private as that record.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(5000, 3)) * [3.0, 1.0, 1.0]
    >>> pca = PrivatePCA(1, epsilon=1, delta=1e-6, bounds=(-12, 12), random_state=0).fit(X)
    >>> bool(abs(pca.components_[0, 0]) > 0.95)
    True
    """

    def __init__(
        self,
        n_components: int | float | None = None,
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
        self.n_components = n_components
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
        check_count(self.n_components, self.n_features_in_)
        moment = self._moment(X, self._feature_bounds(), "components")
        found = principal_components(moment, self.n_components)
        self.mean_, self.components_ = moment.mean, found.components
        self.explained_variance_, self.explained_variance_ratio_ = found.variances, found.ratios
        self.n_components_ = len(found.components)
        return self

    def transform(self, X: Any) -> Floats:
        """Records X of shape (n, m) along the components, of shape (n, n_components_)."""
        check_is_fitted(self)
        X = self._features(X, reset=False)
        return np.asarray((X - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:
        """Records of shape (n, m) from their coordinates, of shape (n, n_components_)."""
        check_is_fitted(self)
        try:
            found = np.asarray(X, np.float64)
        except (TypeError, ValueError):
            found = np.empty(0)
        if found.ndim != 2 or found.shape[1] != self.n_components_:
            raise DataError(f"X must be numbers of shape (records, {self.n_components_}), one column a component.")
        return np.asarray(found @ self.components_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_
