"""Private means and standard deviations of features, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from matrixdp.adaptive.scales import Scales, prepare_scales
from matrixdp.domain.bounds import Bounds
from matrixdp.estimators.base import PrivateEstimator
from matrixdp.estimators.inputs import check_transformed
from matrixdp.records import Records, with_ids
from matrixdp.release.charging import release_fit
from matrixdp.types import Floats


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Standardise features with their private means and standard deviations.

    Parameters are those of `PrivateEstimator`. The function behind it is `matrixdp.adaptive.private_scales`.

    Attributes
    ----------
    mean_, var_, scale_ : float64 arrays of shape (m,)
        `scale_` is the square root of the variance, or of the standard deviation of its noise if that is larger.
    bounds_ : Bounds
        Bounds of the transformed features, for the next private step of a pipeline.

    Notes
    -----
    **Privacy.** See `PrivateEstimator`. `transform` uses public numbers and the records that it is given: its result is
    as private as those records.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(5000, 2)) + 3
    >>> scaler = PrivateScaler(bounds=(-2, 8), random_state=0, simulation=True).fit(X)
    >>> bool(np.abs(scaler.transform(X).mean(axis=0)).max() < 0.2)
    True
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Spend the budget on the records X, of shape (n, m)."""
        ids = self._read_ids(X)
        X = self._validate_features(X)
        bounds = self._feature_bounds()
        scales = self._fit_scales(X if ids is None else with_ids(X, ids), bounds)
        self.mean_, self.var_ = scales.mean, scales.variance
        self.scale_ = np.sqrt(np.maximum(scales.variance, scales.variance_std))
        self.bounds_ = Bounds((bounds.lower - self.mean_) / self.scale_, (bounds.upper - self.mean_) / self.scale_)
        return self

    def _fit_scales(self, records: Floats | Records, bounds: Bounds) -> Scales:
        """Spend the budget on private means and variances, and set the attributes of the guarantee."""
        options, account = self._fit_options(), self._account_options()
        self._warn_if_repeated()
        scales: Scales = release_fit(prepare_scales(records, bounds, **options), **account)
        self._set_guarantee(scales.spending, scales.spending.steps)
        return scales

    def transform(self, X: Any) -> Floats:
        """Scaled records, of the shape (n, m) of X."""
        check_is_fitted(self)
        return np.asarray((self._validate_features(X, reset=False) - self.mean_) / self.scale_)

    def inverse_transform(self, X: Any) -> Floats:
        """Records of shape (n, m) from scaled ones."""
        check_is_fitted(self)
        return np.asarray(check_transformed(X, self.mean_.size) * self.scale_ + self.mean_)
