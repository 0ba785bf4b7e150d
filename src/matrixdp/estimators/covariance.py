"""Private mean, covariance and correlation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.answers.moments import correlation_from_covariance
from matrixdp.estimators.moment_estimator import MomentEstimator
from matrixdp.estimators.table_fit import TableFit
from matrixdp.types import Floats


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateCovariance(MomentEstimator):
    """Private covariance and mean, with noise along learned directions.

    Parameters are those of `MomentEstimator` and `PrivateEstimator`. The function behind it is
    `matrixdp.adaptive.private_moment`.

    Attributes
    ----------
    covariance_ : float64 array of shape (m, m)
        About the mean, over N; positive semidefinite.
    location_ : float64 array of shape (m,)
    correlation_ : float64 array of shape (m, m)
        Zero for features whose private variance is zero.
    covariance_std_, location_std_, correlation_std_ : float64 arrays
        Error bars for noise, clipping and shrinkage together, computed at the first access: 1.96 of them should cover
        95% of the errors against the same records without privacy. Those of the noise alone for tables whose numbers
        may be missing.
    moment_ : PrivateMoment
        Not for tables whose numbers may be missing: they have `release_`.
    expanded_names_, release_
        For tables, as in `MomentEstimator`; a category has an indicator for each level.

    Notes
    -----
    **Privacy.** See `PrivateEstimator`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(5000, 3))
    >>> estimator = PrivateCovariance(epsilon=1, delta=1e-6, bounds=(-6, 6), random_state=0, simulation=True).fit(X)
    >>> estimator.covariance_.shape, estimator.mu_ <= estimator.privacy_.mu
    ((3, 3), True)
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Spend the budget on the records X, of shape (n, m)."""
        moment: PrivateMoment | TableFit
        features, ids = self._expanded(reference=False), self._read_ids(X)
        self.__dict__.pop("moment_", None)  # of an earlier fit
        if features is None:
            X = self._validate_features(X)
            moment = self.moment_ = self._fit_moment(X, self._feature_bounds(), "covariance", ids=ids)
        elif self._is_expanded(features):
            records = self._read_expanded(X, [features])
            moment = self.moment_ = self._fit_moment(records, features.bounds, "covariance", features)
        else:
            moment = self._fit_table(X, features)
        self._moment = moment
        self.location_, self.covariance_ = moment.mean, moment.covariance
        self.correlation_ = np.clip(correlation_from_covariance(moment.covariance, undefined=0.0), -1.0, 1.0)
        return self

    @property
    def location_std_(self) -> Floats:
        """Error bar of each mean, of shape (m,)."""
        return self._moment.errors.mean_std

    @property
    def covariance_std_(self) -> Floats:
        """Error bar of each covariance, of shape (m, m)."""
        return self._moment.errors.covariance_std

    @property
    def correlation_std_(self) -> Floats:
        """Error bar of each correlation, of shape (m, m)."""
        return self._moment.errors.correlation_std
