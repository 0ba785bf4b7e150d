"""Time of private fits relative to scikit-learn's estimators without privacy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from benchmarks.sizes import size
from benchmarks.timing import compare, row
from matrixdp.estimators import PrivateCovariance, PrivatePCA, PrivateRidge

RECORDS, FEATURES = size((10**5, 50), (2000, 5))
ROUNDS = 21


def run() -> list[dict[str, str]]:
    """Rows of the table."""
    rng = np.random.default_rng(0)
    shape = rng.normal(size=(FEATURES, FEATURES)) / np.sqrt(FEATURES) * np.linspace(0.2, 2, FEATURES)
    X = rng.normal(size=(RECORDS, FEATURES)) @ shape
    y = X @ rng.normal(size=FEATURES) / 3 + rng.normal(size=RECORDS)
    box: dict[str, Any] = {"bounds": (-8, 10)}  # the data are off-centre
    return [
        fit("covariance", lambda: PrivateCovariance(**box).fit(X), lambda: EmpiricalCovariance().fit(X)),
        fit("PCA, 5 components", lambda: PrivatePCA(5, **box).fit(X), lambda: PCA(5).fit(X)),
        fit("ridge", lambda: PrivateRidge(**box, target_bounds=(-20, 25)).fit(X, y), lambda: Ridge().fit(X, y)),
    ]


def fit(name: str, ours: Callable[[], Any], peer: Callable[[], Any]) -> dict[str, str]:
    what = f"{name} of 10^5 records of 50 features, against scikit-learn's"
    return row(what, *compare(ours, peer, rounds=ROUNDS), "at most 3", slower=True)
