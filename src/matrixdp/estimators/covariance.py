"""Private mean, covariance and correlation, principal components, and scales of features."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from matrixdp.adaptive.moment import PrivateMoment, check_count, principal_components
from matrixdp.adaptive.scales import Scales, prepare_scales
from matrixdp.answers.moments import correlation_from_covariance
from matrixdp.domain.bounds import Bounds
from matrixdp.estimators.base import MomentEstimator, PrivateEstimator
from matrixdp.estimators.inputs import check_transformed
from matrixdp.records import with_ids
from matrixdp.release.charging import release_fit
from matrixdp.types import Floats


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateCovariance(MomentEstimator):
    """Private covariance and mean, with noise along learned directions.

    Parameters and guarantee are those of `MomentEstimator` and `PrivateEstimator`. The function behind it is
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

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(5000, 3))
    >>> estimator = PrivateCovariance(epsilon=1, delta=1e-6, bounds=(-6, 6), random_state=0, simulation=True).fit(X)
    >>> estimator.covariance_.shape, estimator.mu_ <= estimator.privacy_.mu
    ((3, 3), True)
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Spend the budget on the records X, of shape (n, m)."""
        self.__dict__.pop("moment_", None)  # of an earlier fit
        moment = self._moment = self._fit_features(X, "covariance")
        if isinstance(moment, PrivateMoment):
            self.moment_ = moment
        self.location_, self.covariance_ = moment.mean, moment.covariance
        self.correlation_ = np.clip(correlation_from_covariance(moment.covariance, undefined=0.0), -1.0, 1.0)
        return self

    location_std_ = property(attrgetter("_moment.errors.mean_std"), doc="Error bar of each mean, of shape (m,).")
    covariance_std_ = property(attrgetter("_moment.errors.covariance_std"), doc="Of each covariance, of shape (m, m).")
    correlation_std_ = property(attrgetter("_moment.errors.correlation_std"), doc="Of each correlation, (m, m).")


@dataclass(eq=False, repr=False)
class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MomentEstimator):  # type: ignore[misc]
    """Private principal components, with noise along learned directions.

    Other parameters and the guarantee are those of `MomentEstimator` and `PrivateEstimator`; what `transform` returns
    is as private as the records that it is given. The functions behind it are `private_moment` and
    `principal_components` in `matrixdp.adaptive`.

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
        moment = self._fit_features(X, "components", lambda size: check_count(self.n_components, size))
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

    _n_features_out = property(attrgetter("n_components_"))


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Standardise features with their private means and standard deviations.

    Parameters and guarantee are those of `PrivateEstimator`; what `transform` returns is as private as the records that
    it is given. The function behind it is `matrixdp.adaptive.private_scales`.

    Attributes
    ----------
    mean_, var_, scale_ : float64 arrays of shape (m,)
        `scale_` is the square root of the variance, or of the standard deviation of its noise if that is larger.
    bounds_ : Bounds
        Bounds of the transformed features, for the next private step of a pipeline.

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
        options, account = self._start_fit()
        prepared = prepare_scales(X if ids is None else with_ids(X, ids), bounds, **options)
        scales: Scales = release_fit(prepared, **account)
        self._set_guarantee(scales.spending, scales.spending.steps)
        self.mean_, self.var_ = scales.mean, scales.variance
        self.scale_ = np.sqrt(np.maximum(scales.variance, scales.variance_std))
        self.bounds_ = Bounds((bounds.lower - self.mean_) / self.scale_, (bounds.upper - self.mean_) / self.scale_)
        return self

    def transform(self, X: Any) -> Floats:
        """Scaled records, of the shape (n, m) of X."""
        check_is_fitted(self)
        return np.asarray((self._validate_features(X, reset=False) - self.mean_) / self.scale_)

    def inverse_transform(self, X: Any) -> Floats:
        """Records of shape (n, m) from scaled ones."""
        check_is_fitted(self)
        return np.asarray(check_transformed(X, self.mean_.size) * self.scale_ + self.mean_)
