"""Private linear discriminant analysis."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline

import matrixdp as mdp
from matrixdp.adaptive.regression import JointMoment
from matrixdp.estimators import PrivateLinearDiscriminant, PrivateScaler, RepeatedFitWarning
from matrixdp.estimators.discriminant import solve_discriminant

RNG = np.random.default_rng(0)
Y = RNG.choice([1, 5, 9], 4000, p=[0.5, 0.3, 0.2])
X = RNG.normal(size=(4000, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]) + np.outer(Y, [0.3, -0.2, 0.0])
SEEDED = {"bounds": (-8, 8), "random_state": 0, "simulation": True}


@pytest.mark.parametrize("labels", [(1, 5, 9), (1, 5)])
def test_with_a_large_epsilon_it_is_the_usual_discriminant_analysis(labels):
    rows = np.isin(Y, labels)
    exact = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(X[rows], Y[rows])
    found = PrivateLinearDiscriminant(epsilon=1e5, classes=labels, **SEEDED).fit(X[rows], Y[rows])
    assert found.classes_.tolist() == list(labels)
    assert found.predict_proba(X) == pytest.approx(exact.predict_proba(X), abs=0.01)
    assert (found.predict(X) == exact.predict(X)).mean() > 0.998
    assert found.means_ == pytest.approx(exact.means_, abs=0.01)
    assert found.priors_ == pytest.approx(exact.priors_, abs=0.001)
    assert found.covariance_ == pytest.approx(exact.covariance_, abs=0.01)
    assert found.coef_.shape == exact.coef_.shape if len(labels) == 2 else (3, 3)
    assert found.decision_function(X).shape == ((len(X),) if len(labels) == 2 else (len(X), 3))
    assert found.predict_proba(X).sum(axis=1) == pytest.approx(1)
    assert np.exp(found.predict_log_proba(X)) == pytest.approx(found.predict_proba(X))


def test_without_noise_the_solution_is_that_of_class_means_and_the_covariance_within():
    """Also where indicators of all classes are given, whose covariance is singular."""
    indicators = (Y[:, None] == [1, 5, 9]).astype(float)
    table = np.column_stack([X, indicators])
    mean, covariance = table.mean(axis=0), np.cov(table.T, bias=True)
    joint = JointMoment(mean, covariance, np.zeros(6), np.eye(6), 0.0, np.zeros(6), np.ones(6), len(X), np.inf)
    found = solve_discriminant(joint, 3)
    means = np.array([X[label == Y].mean(axis=0) for label in (1, 5, 9)])
    within = sum(np.cov(X[label == Y].T, bias=True) * (label == Y).mean() for label in (1, 5, 9))
    assert found.means == pytest.approx(means)
    assert found.covariance == pytest.approx(within)
    scores = X @ np.linalg.solve(within, means.T) - np.einsum("ij,ji->i", means, np.linalg.solve(within, means.T)) / 2
    scores += np.log(found.priors)
    ours = X @ found.coefficients.T + found.intercepts
    assert ours - ours[:, :1] == pytest.approx(scores - scores[:, :1])


def test_noise_that_hides_all_leaves_the_largest_class():
    data = load_breast_cancer()
    bounds = mdp.Bounds(np.zeros(30), data.data.max(axis=0) * 2)
    for seed in range(5):
        options = {"epsilon": 0.01, "bounds": bounds, "classes": [0, 1], "random_state": seed, "simulation": True}
        found = PrivateLinearDiscriminant(**options).fit(data.data, data.target)
        assert len(np.unique(found.predict(data.data))) == 1


def test_accuracy_on_real_data():
    data = load_breast_cancer()
    bounds = mdp.Bounds(np.zeros(30), 10.0 ** np.ceil(np.log10(data.data.max(axis=0))))
    scores = [
        PrivateLinearDiscriminant(epsilon=1.0, bounds=bounds, random_state=seed, simulation=True)
        .fit(data.data, data.target)
        .score(data.data, data.target)
        for seed in range(5)
    ]
    assert np.mean(scores) > 0.85  # the larger class alone: 0.63


def test_classes_are_public(tmp_path):
    real = PrivateLinearDiscriminant(bounds=(-8, 8))
    with mdp.Ledger.create(tmp_path / "clinic.db") as ledger:
        ledger.register("clinic", mdp.Privacy(3.0, 1e-6), neighbours="replace")
        real.set_params(ledger=str(ledger.path), dataset="clinic")
        with pytest.raises(mdp.ParameterError, match=r"classes must be given.*never taken from the data"):
            real.fit(X, Y)
        for wrong in ("ab", 3, [], [[1, 5]], [1, "5"], [None, 1], [1.0, np.nan]):
            with pytest.raises(mdp.ParameterError, match="classes must be a list of labels"):
                real.set_params(classes=wrong).fit(X, Y)
        with pytest.raises(mdp.ParameterError, match="classes must be different"):
            real.set_params(classes=[1, 5, 5]).fit(X, Y)
        with pytest.raises(mdp.ParameterError, match="classes must be at least two"):
            real.set_params(classes=[1]).fit(X, Y)
        for labels in ([1, 5], ["1", "5", "9"]):
            with pytest.raises(mdp.DataError, match="y has a label that is missing or not among the classes") as caught:
                real.set_params(classes=labels).fit(X, Y)
            assert "9" not in str(caught.value)
        for wrong in (Y.astype(str), np.where(Y == 9, np.nan, Y), [None, *Y[1:].tolist()], [{}, *Y[1:].tolist()]):
            with pytest.raises(mdp.DataError, match="y has a label"):
                real.set_params(classes=[1, 5, 9]).fit(X, wrong)
        with pytest.raises(mdp.DataError, match="same number of records"):
            real.fit(X, Y[1:])
        with pytest.raises(mdp.DataError, match="requires y"):
            real.fit(X, None)
        with pytest.raises(ValueError, match="1d array"):
            real.fit(X, np.column_stack([Y, Y]))
        with pytest.raises(mdp.ParameterError, match="bounds must be Columns"):
            real.fit("records.parquet", "y")
        assert ledger.history("clinic") == []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not real.fit(X, Y).simulation_
        assert [charge.released for charge in ledger.history("clinic")] == [True]
        with pytest.warns(RepeatedFitWarning) as repeated:
            real.fit(X, Y)
        assert repeated[0].filename == __file__


def test_classes_that_no_record_has_are_learned_as_rare():
    found = PrivateLinearDiscriminant(epsilon=50.0, classes=[1, 5, 7, 9], **SEEDED).fit(X, Y)
    assert found.priors_[2] < 0.01
    assert not (found.predict(X) == 7).any()
    assert np.isfinite(found.predict_proba(X)).all()


@pytest.mark.parametrize("labels", [["a", "b", "c"], [True, False, True], [0.5, 1.0, 2.5]])
def test_labels_of_all_kinds(labels):
    y = np.array(labels)[np.searchsorted([1, 5, 9], Y)]
    found = PrivateLinearDiscriminant(epsilon=50.0, classes=sorted(set(labels)), **SEEDED).fit(X, y)
    assert found.classes_.tolist() == sorted(set(labels))
    assert set(found.predict(X).tolist()) <= set(labels)
    for same in (y.astype(object), list(y), pd.Series(y), pd.Series(y, dtype="category")):
        again = PrivateLinearDiscriminant(epsilon=50.0, classes=sorted(set(labels)), **SEEDED).fit(X, same)
        assert np.array_equal(again.coef_, found.coef_)


def test_copies_pipelines_and_frames():
    iris = load_iris(as_frame=True)
    options = {"epsilon": 1e3, "classes": [0, 1, 2], "simulation": True, "random_state": 0}
    model = PrivateLinearDiscriminant(bounds=(0, 8), **options).fit(iris.data, iris.target)
    assert model.feature_names_in_.tolist() == list(iris.data.columns)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(iris.data), model.predict(iris.data))
    assert clone(model).get_params() == model.get_params()
    assert repr(PrivateLinearDiscriminant(classes=[0, 1])) == "PrivateLinearDiscriminant(classes=[0, 1])"
    scaler = PrivateScaler(epsilon=1e3, bounds=(0, 8), simulation=True, random_state=0)
    chain = make_pipeline(scaler, PrivateLinearDiscriminant(bounds=(-4, 4), **options))
    assert chain.fit(iris.data, iris.target).score(iris.data, iris.target) > 0.9


@pytest.mark.parametrize("labels", [(1, 5, 9), (1, 5)])
@pytest.mark.parametrize("missing", [False, True])
def test_tables_with_categories_and_missing_values(labels, missing):
    rows = np.isin(Y, labels)
    y = Y[rows]
    ward = np.where(y + RNG.normal(size=y.size) > 5, "west", "north")
    frame = pd.DataFrame(X[rows], columns=list("abc")).assign(ward=ward)
    numbers = [mdp.Number(name, -8, 8, missing) for name in "abc"]
    columns = mdp.Columns([*numbers, mdp.Category("ward", ["north", "west"])])
    options = {"bounds": columns, "classes": labels, "random_state": 0, "simulation": True}
    wide = np.column_stack([X[rows], ward == "west"])
    exact = LinearDiscriminantAnalysis(solver="lsqr").fit(wide, y)
    found = PrivateLinearDiscriminant(epsilon=1e5, **options).fit(frame, y)
    assert found.predict_proba(frame) == pytest.approx(exact.predict_proba(wide), abs=0.03)
    if missing:
        holes = frame.assign(c=frame.c.mask(RNG.random(len(y)) < 0.3))  # it says nothing about the class
        found = PrivateLinearDiscriminant(epsilon=1e5, **options).fit(holes, y)
        assert found.score(holes, y) > exact.score(wide, y) - 0.02
    rough = PrivateLinearDiscriminant(epsilon=0.05, **options).fit(frame, y)
    assert rough.score(frame, y) > 0.15
