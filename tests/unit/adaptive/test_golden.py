"""Golden tables: errors of seeded fits on data that ship with scikit-learn; they change with the accuracy."""

import numpy as np
import pytest
from sklearn import datasets

import matrixdp as mdp
from matrixdp.estimators import PrivateCovariance, PrivateLinearRegression, PrivatePCA

SEEDS = range(8)
BOX = mdp.Bounds(np.zeros(30), [
    30, 40, 200, 3000, 0.2, 0.4, 0.5, 0.3, 0.4, 0.1, 3, 5, 30, 600, 0.04, 0.2, 0.4, 0.06, 0.08, 0.03,
    40, 50, 300, 5000, 0.3, 1.1, 1.3, 0.3, 0.7, 0.3,
])  # fmt: skip
CANCER = (datasets.load_breast_cancer().data - BOX.midpoint) / BOX.halfwidths
DIABETES = datasets.load_diabetes(scaled=False)


def mean_error(error):
    return float(np.mean([error(seed) for seed in SEEDS]))


@pytest.mark.parametrize(
    ("epsilon", "expected", "about_mean"), [(0.5, 0.122, 0.616), (1.0, 0.0806, 0.398), (3.0, 0.0352, 0.193)]
)
def test_covariance_of_the_breast_cancer_data(epsilon, expected, about_mean):
    truths = {"second_moment": CANCER.T @ CANCER / len(CANCER), "covariance": np.cov(CANCER.T, bias=True)}
    options = {"epsilon": epsilon, "delta": 1e-6, "bounds": (-1, 1)}
    moments = [PrivateCovariance(**options, random_state=seed, simulation=True).fit(CANCER).moment_ for seed in SEEDS]
    errors = {
        name: np.mean([np.linalg.norm(getattr(moment, name) - truth) for moment in moments]) / np.linalg.norm(truth)
        for name, truth in truths.items()
    }
    assert errors["second_moment"] == pytest.approx(expected, rel=0.1)
    assert errors["covariance"] == pytest.approx(about_mean, rel=0.1)


@pytest.mark.parametrize(("epsilon", "expected"), [(1.0, 0.116), (3.0, 0.015)])
def test_components_of_the_breast_cancer_data(epsilon, expected):
    covariance = np.cov(CANCER.T)

    def lost(seed):
        rows = (
            PrivatePCA(5, epsilon=epsilon, delta=1e-6, bounds=(-1, 1), random_state=seed, simulation=True)
            .fit(CANCER)
            .components_
        )
        best = np.linalg.eigvalsh(covariance)[-5:].sum()
        return (best - np.trace(rows @ covariance @ rows.T)) / np.trace(covariance)

    assert mean_error(lost) == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(("epsilon", "expected"), [(1.0, 0.785), (3.0, 0.723)])
def test_regression_of_the_diabetes_data(epsilon, expected):
    box = mdp.Bounds([10, 1, 10, 60, 90, 40, 20, 2, 3, 50], [80, 2, 50, 140, 310, 250, 100, 10, 7, 130])

    def unexplained(seed):
        options = {"epsilon": epsilon, "delta": 1e-6, "bounds": box, "target_bounds": (0, 400), "random_state": seed}
        model = PrivateLinearRegression(**options, simulation=True).fit(DIABETES.data, DIABETES.target)
        return np.sqrt(1 - model.score(DIABETES.data, DIABETES.target))

    assert mean_error(unexplained) == pytest.approx(expected, rel=0.05)
