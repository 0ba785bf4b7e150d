"""Private principal components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from matrixdp.adaptive.components import check_count, principal_components
from matrixdp.estimators.inputs import check_transformed
from matrixdp.estimators.moment_estimator import MomentEstimator
from matrixdp.types import Floats


@dataclass(eq=False, repr=False)
class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MomentEstimator):  # type: ignore[misc]
    """Private principal components, with noise along learned directions.

    Parameters that are not listed here are those of `MomentEstimator` and `PrivateEstimator`. The functions behind it
    are `private_moment` and `principal_components` in `matrixdp.adaptive`.

    Parameters
    ----------
    n_components : int, float or None
        Their number, the share of the variance that they must explain, or None for all.

    Attributes
    ----------
    components_ : float64 array of shape (n_components_, m)
    explained_variance_, explained_variance_ratio_ : float64 arrays of shape (n_components_,)
    explained_variance_std_ : float64 array of shape (n_components_,)
        Error bars for noise, clipping and shrinkage together, computed at the first access.
    mean_ : float64 array of shape (m,)
    n_components_ : int
    expanded_names_, release_
        For tables, as in `MomentEstimator`; a category has an indicator for each level. A missing number is replaced
        by the private mean in `transform`.

    Notes
    -----
    **Privacy.** See `PrivateEstimator`. `transform` uses public numbers and the records that it is given: its result is
    as private as those records.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(5000, 3)) * [3.0, 1.0, 1.0]
    >>> pca = PrivatePCA(1, epsilon=1, delta=1e-6, bounds=(-12, 12), random_state=0, simulation=True).fit(X)
    >>> bool(abs(pca.components_[0, 0]) > 0.95)
    True
    """

    n_components: int | float | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Spend the budget on the records X, of shape (n, m)."""
        moment: Any
        features, ids = self._expanded(reference=False), self._read_ids(X)
        if features is None:
            X = self._validate_features(X)
            check_count(self.n_components, self.n_features_in_)
            moment = self._fit_moment(X, self._feature_bounds(), "components", ids=ids)
        else:
            check_count(self.n_components, len(features.names))
            if self._is_expanded(features):
                records = self._read_expanded(X, [features])
                moment = self._fit_moment(records, features.bounds, "components", features)
            else:
                moment = self._fit_table(X, features)
        found = principal_components(moment, self.n_components)
        self._moment, self.mean_, self.components_ = moment, moment.mean, found.components
        self.explained_variance_, self.explained_variance_ratio_ = found.variances, found.ratios
        self.n_components_ = len(found.components)
        return self

    def transform(self, X: Any) -> Floats:
        """Records X of shape (n, m) along the components, of shape (n, n_components_)."""
        check_is_fitted(self)
        return self._apply(X, lambda records: np.asarray((records - self.mean_) @ self.components_.T))

    def inverse_transform(self, X: Any) -> Floats:
        """Records of shape (n, m) from their coordinates, of shape (n, n_components_)."""
        check_is_fitted(self)
        return np.asarray(check_transformed(X, self.n_components_) @ self.components_ + self.mean_)

    @property
    def explained_variance_std_(self) -> Floats:
        """Error bar of each explained variance, of shape (n_components_,)."""
        return np.asarray(self._moment.errors.eigenvalue_std[: self.n_components_])

    @property
    def _n_features_out(self) -> int:
        return self.n_components_
