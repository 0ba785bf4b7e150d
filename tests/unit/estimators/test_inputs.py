"""Estimators read what a release reads, and refuse what it refuses, without a warning about private values."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import matrixdp as mdp
from matrixdp.estimators import PrivateCovariance, PrivateKernelRidge, PrivatePCA, PrivateRidge, PrivateScaler

SEEDED = {"epsilon": 5.0, "bounds": (-10, 10), "random_state": 0, "simulation": True}
TARGETS = {**SEEDED, "target_bounds": (-10, 10)}
ESTIMATORS = [
    PrivateCovariance(**SEEDED),
    PrivatePCA(1, **SEEDED),
    PrivateScaler(**SEEDED),
    PrivateRidge(**TARGETS),
    PrivateKernelRidge(**TARGETS, n_components=3),
]
X = np.random.default_rng(0).normal(size=(60, 2))
Y = X[:, 0] * 2


def fit(estimator, features, targets=Y):
    """Fit with every warning as an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return type(estimator)(**estimator.get_params()).fit(features, targets)


def learned(estimator):
    """All arrays that a fit learns."""
    return {name: value for name, value in vars(estimator).items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
class TestInputs:
    def test_masked_entries_are_missing(self, estimator):
        masked = np.ma.array(X, mask=np.zeros(X.shape, bool))
        assert_same(fit(estimator, masked), fit(estimator, X))
        masked[3, 1] = np.ma.masked
        with pytest.raises(mdp.DataError, match="NaN"):
            fit(estimator, masked)

    @pytest.mark.parametrize("huge", [10**400, np.longdouble("1e400"), 2**1024])
    @pytest.mark.parametrize("sign", [1, -1])
    def test_numbers_beyond_floats_are_clipped(self, estimator, huge, sign):
        wide = X.astype(object)
        wide[5, 0] = huge * sign
        clipped = X.copy()
        clipped[5, 0] = 1e300 * sign
        expected = fit(estimator, clipped)
        assert_same(fit(estimator, wide), expected)
        assert_same(fit(estimator, wide.tolist()), expected)

    def test_long_doubles(self, estimator):
        wide = X.astype(np.longdouble)
        assert_same(fit(estimator, wide), fit(estimator, X))
        wide[0, 0] = np.longdouble("1e4000")
        clipped = X.copy()
        clipped[0, 0] = 1e300
        assert_same(fit(estimator, wide), fit(estimator, clipped))

    @pytest.mark.parametrize("value", ["secret", {"secret": 1}, pd.NA, None, b"secret", pd.Timestamp("2020-01-01")])
    def test_other_values_are_named_without_showing_them(self, estimator, value):
        wrong = X.astype(object)
        wrong[2, 1] = value
        for table in (wrong, wrong.tolist(), pd.DataFrame(wrong)):
            with pytest.raises(mdp.DataError) as caught:
                fit(estimator, table)
            assert "secret" not in str(caught.value)
            assert caught.value.__context__ is None or "secret" not in str(caught.value.__context__)

    def test_missing_values_of_frames_are_named(self, estimator):
        for frame in (
            pd.DataFrame(X, columns=["a", "b"]).convert_dtypes().mask(X > 2),
            pd.DataFrame(X, columns=["a", "b"]).mask(X > 2),
            pl.DataFrame({"a": [None, *X[1:, 0]], "b": X[:, 1]}),
        ):
            with pytest.raises(mdp.DataError, match=r"NaN|number"):
                fit(estimator, frame)

    def test_a_fitted_estimator_reads_the_same(self, estimator):
        fitted = fit(estimator, X)
        for name in ("transform", "predict"):
            if hasattr(fitted, name):
                for wrong in ([["a", "b"]], [[{}, 1.0]], np.ma.array([[1.0, 2.0]], mask=[[True, False]])):
                    with pytest.raises(ValueError, match=r"number|NaN"):
                        getattr(fitted, name)(wrong)


def assert_same(first, second):
    assert learned(first).keys() == learned(second).keys()
    for name, value in learned(first).items():
        assert np.array_equal(value, getattr(second, name)), name


@pytest.mark.parametrize("value", ["secret", {}, pd.NA, None])
def test_targets_are_read_like_features(value):
    ridge = PrivateRidge(**TARGETS)
    wrong = Y.astype(object)
    wrong[0] = value
    with pytest.raises(mdp.DataError):
        fit(ridge, X, wrong)
    wrong[0] = 10**400
    clipped = Y.copy()
    clipped[0] = 1e300
    assert_same(fit(ridge, X, wrong), fit(ridge, X, clipped))
    with pytest.raises(ValueError, match="y contains NaN"):  # of scikit-learn
        fit(ridge, X, np.ma.array(Y, mask=Y > 1))
