"""Each method of the comparison as one function of data, budget and seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.accuracy_data import DataSet
from matrixdp import Moments, Privacy, SecondMoment, Stream, make_design
from matrixdp.adaptive import PrivateMoment
from matrixdp.adaptive.shrinkage import nearest_of_same_trace
from matrixdp.answers.psd import nearest_psd
from matrixdp.baselines import registered_mechanisms, release_mechanism
from matrixdp.baselines.covariances import SharedBudget
from matrixdp.design import isotropic
from matrixdp.estimators import PrivateCovariance, PrivateLinearRegression, PrivatePCA
from matrixdp.gdp import gdp_epsilon
from matrixdp.types import Floats

OURS = "matrixdp"
LIBRARIES = ("OpenDP", "diffprivlib")
_MEAN_SHARE = 0.2
_MOMENT_PEERS = ("SeparateCov", "AdaptiveCov", "CoinPress")
Method = Callable[[DataSet, Privacy, int], Floats]


def covariance_methods() -> dict[str, Method]:
    """Second moments of the scaled records about the midpoint."""
    return {
        "Analyze Gauss": lambda data, privacy, seed: nearest_psd(_peer("Analyze Gauss", data, privacy, seed)),
        **{name: partial(_peer, name) for name in _MOMENT_PEERS + _registered("second-moment")},
        OURS: lambda data, privacy, seed: _our_fit(data, privacy, seed).second_moment,
    }


def centred_methods() -> dict[str, Method]:
    """Covariances of the scaled records about their mean; the peers' are made positive semidefinite as well as ours."""
    return {
        **_of_centred(nearest_of_same_trace),
        OURS: lambda data, privacy, seed: _our_fit(data, privacy, seed).covariance,
    }


def component_methods() -> dict[str, Method]:
    """All principal directions of the scaled records about their mean, one a row, the largest first."""
    methods = _of_centred(_rows)
    for name in _registered("components"):
        methods[name] = lambda data, privacy, seed, name=name: _peer(name, data, privacy, seed).T
    if _opendp() is not None:
        methods["OpenDP"] = _opendp_components
    if _diffprivlib() is not None:
        methods["diffprivlib"] = _diffprivlib_components
    methods[OURS] = _our_components
    return methods


def regression_methods() -> dict[str, Method]:
    """Intercept and coefficients for scaled records, the target last, of shape (m,)."""
    methods: dict[str, Method] = {
        name: lambda data, privacy, seed, name=name: _peer(name, data, privacy, seed)[:, 0]
        for name in ("AdaSSP", *_registered("regression"))
    }
    methods["joint moment"] = _joint_regression
    if _diffprivlib() is not None:
        methods["diffprivlib"] = _diffprivlib_regression
    methods[OURS] = _our_regression
    return methods


def _registered(task: str) -> tuple[str, ...]:
    """Names of the mechanisms for a task that a plugin has registered."""
    return tuple(mechanism.name for mechanism in registered_mechanisms(task) if not mechanism.builtin)


def _peer(name: str, data: DataSet, privacy: Privacy, seed: int) -> Floats:
    """The result of a registered mechanism on the second moment of the scaled records."""
    query = SecondMoment(data.unit, len(data.records))
    return release_mechanism(name, query, privacy, data.scaled, stream=Stream(seed=seed), simulation=True).matrix


def _options(data: DataSet, privacy: Privacy, seed: int) -> dict[str, Any]:
    seeded = {"random_state": seed, "simulation": True}
    return {"epsilon": privacy.epsilon, "delta": privacy.delta, "bounds": data.unit, **seeded}


def _our_fit(data: DataSet, privacy: Privacy, seed: int) -> PrivateMoment:
    return PrivateCovariance(**_options(data, privacy, seed)).fit(data.scaled).moment_


def _our_components(data: DataSet, privacy: Privacy, seed: int) -> Floats:
    return np.asarray(PrivatePCA(**_options(data, privacy, seed)).fit(data.scaled).components_)


def _our_regression(data: DataSet, privacy: Privacy, seed: int) -> Floats:
    options = {**_options(data, privacy, seed), "bounds": (-1, 1), "target_bounds": (-1, 1)}
    model = PrivateLinearRegression(**options).fit(data.scaled[:, :-1], data.scaled[:, -1])
    return np.concatenate([[model.intercept_], model.coef_])


def _rows(covariance: Floats) -> Floats:
    return np.asarray(np.linalg.eigh(covariance)[1][:, ::-1].T)


def _of_centred(function: Callable[[Floats], Floats]) -> dict[str, Method]:
    """A function of the peers' covariances about the mean."""
    methods: dict[str, Method] = {
        "Analyze Gauss": lambda data, privacy, seed: function(_gauss_covariance(data, privacy, seed))
    }
    for name in _MOMENT_PEERS + _registered("second-moment"):
        methods[name] = lambda data, privacy, seed, name=name: function(_centred(name, data, privacy, seed))
    return methods


def _gauss_covariance(data: DataSet, privacy: Privacy, seed: int) -> Floats:
    design = make_design(Moments(data.unit, len(data.records)), privacy, allocation=isotropic())
    return design.release(data.scaled, stream=Stream(seed=seed), simulation=True).covariance().value


def _centred(name: str, data: DataSet, privacy: Privacy, seed: int) -> Floats:
    """A peer's second moment, less that of a mean released with a fifth of the budget."""
    records = data.scaled
    n, d = records.shape
    budget = SharedBudget(privacy, Stream(seed=seed + 10**6), True)
    mean, _ = budget.vector(records.mean(axis=0), 2 * math.sqrt(d) / n, 1.0 + 1e-9, _MEAN_SHARE)
    rest = privacy.mu * math.sqrt(1 - _MEAN_SHARE)
    left = Privacy(gdp_epsilon(mu=rest, delta=privacy.delta), privacy.delta)
    return _peer(name, data, left, seed) - np.multiply.outer(mean, mean)


def _joint_regression(data: DataSet, privacy: Privacy, seed: int) -> Floats:
    """One noisy moment of everything, and a ridge of the noise's spectral size."""
    records = np.column_stack([np.ones(len(data.records)), data.scaled])
    d = records.shape[1] - 1
    noisy, std = SharedBudget(privacy, Stream(seed=seed), True).second_moment(records, math.sqrt(d + 1), 1.0)
    noisy[0, 0] = 1.0
    ridge = std * math.sqrt(2 * d) * np.eye(d)
    return np.asarray(np.linalg.solve(nearest_psd(noisy)[:d, :d] + ridge, noisy[:d, d]))


def _opendp() -> Any:
    try:
        import opendp.prelude as dp
        import randomgen  # noqa: F401
        from opendp.extras.sklearn import decomposition
    except ImportError:
        return None
    dp.enable_features("honest-but-curious", "contrib", "floating-point")
    return decomposition


def _opendp_components(data: DataSet, privacy: Privacy, seed: int) -> Floats:  # noqa: ARG001  (it takes no seed)
    n, d = data.records.shape
    model = _opendp().PCA(epsilon=privacy.epsilon, row_norm=math.sqrt(d), n_samples=n, n_features=d)
    return np.asarray(model.fit(data.scaled.copy()).components_)


def _diffprivlib() -> Any:
    try:
        from diffprivlib import models
    except ImportError:
        return None
    return models


def _diffprivlib_components(data: DataSet, privacy: Privacy, seed: int) -> Floats:
    d = data.records.shape[1]
    k = min(5, d - 1)
    model = _diffprivlib().PCA(
        k, epsilon=privacy.epsilon, data_norm=math.sqrt(d), bounds=(-np.ones(d), np.ones(d)), random_state=seed
    )
    return np.asarray(model.fit(data.scaled).components_)


def _diffprivlib_regression(data: DataSet, privacy: Privacy, seed: int) -> Floats:
    d = data.records.shape[1] - 1
    model = _diffprivlib().LinearRegression(
        epsilon=privacy.epsilon, bounds_X=(-np.ones(d), np.ones(d)), bounds_y=(-1, 1), random_state=seed
    )
    model.fit(data.scaled[:, :-1], data.scaled[:, -1])
    return np.concatenate([[float(model.intercept_)], np.ravel(model.coef_)])
