"""Estimators on tables with categories, yes/no columns and missing values."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline

import matrixdp as mdp
from matrixdp.audit import replay
from matrixdp.estimators import (
    PrivateCovariance,
    PrivateKernelRidge,
    PrivateLinearDiscriminant,
    PrivateLinearRegression,
    PrivatePCA,
    PrivateRidge,
    PrivateScaler,
    RepeatedFitWarning,
)
from matrixdp.records.expanded_columns import ExpandedColumns

RNG = np.random.default_rng(0)
N = 1500
AGE = RNG.uniform(20, 80, N)
SMOKER = RNG.random(N) < 0.3
WARD = RNG.choice(["north", "south", "west"], N, p=[0.5, 0.3, 0.2])
BMI = np.clip(20 + 0.1 * AGE + 2 * SMOKER + RNG.normal(0, 3, N), 10, 60)
FRAME = pd.DataFrame({"age": AGE, "bmi": BMI, "ward": WARD, "smoker": SMOKER})
HOLES = FRAME.assign(bmi=FRAME.bmi.mask(RNG.random(N) < 0.2))
Y = 3 + 0.5 * AGE - BMI + 4 * (WARD == "south") - 2 * SMOKER + RNG.normal(0, 3, N)
LABELS = np.where(Y > 20, "high", np.where(Y > 5, "middle", "low"))


def describe(*, missing):
    return mdp.Columns(
        [
            mdp.Number("age", 0, 100),
            mdp.Number("bmi", 10, 60, missing=missing),
            mdp.Category("ward", ["north", "south", "west"]),
            mdp.YesNo("smoker"),
        ]
    )


COMPLETE, MISSING = describe(missing=False), describe(missing=True)
SEEDED = {"epsilon": 1e4, "random_state": 0, "simulation": True}
TARGET = {"target_bounds": (-60, 60)}
CLASSES = {"classes": ["high", "low", "middle"]}
EXPANDED = FRAME.assign(south=WARD == "south", west=WARD == "west", yes=SMOKER)[["age", "bmi", "south", "west", "yes"]]
EXPANDED = EXPANDED.astype(float)
ALL = [
    (PrivateCovariance(**SEEDED), None),
    (PrivatePCA(2, **SEEDED), None),
    (PrivateRidge(**SEEDED, **TARGET), Y),
    (PrivateLinearRegression(**SEEDED, **TARGET), Y),
    (PrivateLinearDiscriminant(**SEEDED, **CLASSES), LABELS),
]
EACH = pytest.mark.parametrize(("estimator", "y"), ALL, ids=lambda value: type(value).__name__)
BOTH = pytest.mark.parametrize(("columns", "frame"), [(COMPLETE, FRAME), (MISSING, HOLES)], ids=["complete", "missing"])


def learned(estimator):
    return {name: value for name, value in vars(estimator).items() if isinstance(value, np.ndarray)}


def assert_same(first, second):
    assert learned(first).keys() == learned(second).keys()
    for name, value in learned(first).items():
        assert np.array_equal(value, getattr(second, name)), name


def fit(estimator, columns, frame, y):
    """Fit with every warning as an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return clone(estimator).set_params(bounds=columns).fit(frame, y)


def one_hot(frame, columns):
    """The sparse matrix that the documents describe."""
    found = []
    for column in columns:
        values = frame[column.name]
        if isinstance(column, mdp.Number):
            found.append(values.to_numpy(float)[:, None])
        else:
            values = values.map({True: "yes", False: "no"}) if column.name == "smoker" else values
            found.append((values.to_numpy()[:, None] == np.array(column.level_names)).astype(float))
    return sparse.csr_matrix(np.hstack(found))


@BOTH
@EACH
def test_frames_arrays_and_sparse_matrices_give_the_same_bits(estimator, y, columns, frame):
    expected = fit(estimator, columns, frame, y)
    tables = [
        frame.assign(unused=1)[["unused", "smoker", "ward", "bmi", "age"]],
        frame.assign(ward=frame.ward.astype("category"), smoker=frame.smoker.map({True: "Y", False: "n"})),
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
        frame.to_numpy(object),
        one_hot(frame, columns),
        sparse.csc_array(one_hot(frame, columns)),
    ]
    for table in tables:
        found = fit(estimator, columns, table, y)
        assert_same(found, expected)
        for name in ("transform", "predict", "predict_proba"):
            if hasattr(found, name):
                assert np.array_equal(getattr(found, name)(table), getattr(expected, name)(frame)), name


@EACH
def test_a_fit_says_what_it_guarantees_and_what_its_features_are(estimator, y):
    for columns, frame in ((COMPLETE, FRAME), (MISSING, HOLES)):
        found = fit(estimator, columns, frame, y)
        assert found.privacy_ == mdp.Privacy(1e4, 1e-6)
        assert 0.99 * found.privacy_.mu < found.mu_ <= found.privacy_.mu
        assert sum(step.share for step in found.steps_) == pytest.approx(1, rel=1e-6)
        assert (found.simulation_, found.neighbours_, found.n_features_in_) == (True, "replace", 4)
        assert found.feature_names_in_.tolist() == ["age", "bmi", "ward", "smoker"]
        assert hasattr(found, "release_") == (columns is MISSING)
        names = found.expanded_names_.tolist()
        if y is None:
            assert names == ["age", "bmi", "ward=north", "ward=south", "ward=west", "smoker=no", "smoker=yes"]
        else:
            assert names == ["age", "bmi", "ward=south", "ward=west", "smoker=yes"]


def test_coefficients_are_those_without_privacy():
    for columns in (COMPLETE, MISSING):
        least = fit(PrivateLinearRegression(**{**SEEDED, "epsilon": 1e5}, **TARGET), columns, FRAME, Y)
        exact = LinearRegression().fit(EXPANDED, Y)
        assert least.coef_ == pytest.approx(exact.coef_, abs=0.06)
        assert least.intercept_ == pytest.approx(exact.intercept_, abs=0.5)
        assert least.predict(FRAME) == pytest.approx(exact.predict(EXPANDED), abs=0.2)
        ridge = fit(PrivateRidge(500.0, **{**SEEDED, "epsilon": 1e5}, **TARGET), columns, FRAME, Y)
        assert ridge.coef_ == pytest.approx(Ridge(500.0).fit(EXPANDED, Y).coef_, abs=0.06)
        two = fit(PrivateRidge(**SEEDED, **TARGET), columns, FRAME, np.column_stack([Y, -Y]))
        assert two.coef_.shape == (2, 5)
        assert two.predict(FRAME).shape == (N, 2)
        assert two.coef_[0] == pytest.approx(-two.coef_[1], abs=0.2)


def test_covariances_over_the_pairs_that_are_there_are_those_of_pandas():
    found = fit(PrivateCovariance(**SEEDED), MISSING, HOLES, None)
    wide = HOLES.assign(
        **{f"ward={level}": level == WARD for level in ("north", "south", "west")}, no=~SMOKER, yes=SMOKER
    )
    wide = wide.drop(columns=["ward", "smoker"]).astype(float)
    scale = np.sqrt(np.diagonal(wide.cov()))
    assert np.abs(found.covariance_ - wide.cov().to_numpy()).max() < 0.01 * np.multiply.outer(scale, scale).max()
    assert found.correlation_ == pytest.approx(wide.corr().to_numpy(), abs=0.02)
    assert found.location_ == pytest.approx(wide.mean().to_numpy(), abs=0.05)
    assert (found.covariance_std_ > 0).all()
    assert np.linalg.eigvalsh(found.covariance_)[0] > -1e-9
    assert found.release_.means()["bmi", "mean"] == pytest.approx(HOLES.bmi.mean(), abs=0.05)


@BOTH
def test_components_explain_the_variance(columns, frame):
    pca = fit(PrivatePCA(2, **SEEDED), columns, frame, None)
    assert pca.transform(frame).shape == (N, 2)
    assert pca.components_.shape == (2, 7)
    assert abs(pca.components_[0, 0]) > 0.99
    assert pca.get_feature_names_out().tolist() == ["privatepca0", "privatepca1"]
    assert pca.set_output(transform="pandas").transform(frame).columns.tolist() == ["privatepca0", "privatepca1"]
    with pytest.raises(mdp.ParameterError, match="n_components must be an integer from 1 to 7"):
        fit(PrivatePCA(8, **SEEDED), columns, frame, None)


def test_a_missing_number_is_predicted_from_as_the_private_mean():
    model = fit(PrivateLinearRegression(**SEEDED, **TARGET), MISSING, HOLES, Y)
    assert np.isfinite(model.predict(HOLES)).all()
    one = FRAME[:1].assign(bmi=np.nan)
    mean = model.release_.means()["bmi", "mean"]
    assert model.predict(one) == pytest.approx(model.predict(one.assign(bmi=mean)))


def test_columns_of_plain_numbers_are_bounds_with_names():
    table = FRAME[["age", "bmi"]]
    columns = mdp.Columns.from_dict({"age": (0, 100), "bmi": (10, 60)})
    for estimator, y in (*ALL, (PrivateScaler(**SEEDED), None), (PrivateKernelRidge(**SEEDED, **TARGET), Y)):
        if type(estimator) is not PrivateLinearDiscriminant:
            assert_same(fit(estimator, columns, table, y), fit(estimator, columns.bounds, table, y))


def test_estimators_of_numbers_alone_say_so():
    for estimator in (PrivateScaler(**SEEDED), PrivateKernelRidge(**SEEDED, **TARGET)):
        with pytest.raises(mdp.ParameterError, match="must be of numbers that are never missing"):
            fit(estimator, COMPLETE, FRAME, Y)


def test_sparse_input_without_columns_names_the_remedy():
    for estimator, y in ALL:
        with pytest.raises(TypeError, match=r"X is sparse.*toarray.*bounds=Columns"):
            fit(estimator, (0, 100), one_hot(FRAME, COMPLETE), y)


def replaced(**values):
    frame = FRAME.astype({"smoker": object, "ward": object})
    for name, value in values.items():
        frame.loc[7, name] = value
    return frame


MISTAKES = {
    "an unknown level": (replaced(ward="secret"), "not among its levels"),
    "a missing level": (replaced(ward=None), "column 'ward' has a missing value"),
    "a missing number": (replaced(age=np.nan), "missing|NaN"),
    "text among numbers": (FRAME.astype({"age": object}).assign(age="secret"), "column 'age' must hold numbers"),
    "neither yes nor no": (replaced(smoker="secret"), "for other words use a category"),
    "no such column": (FRAME.drop(columns="ward"), "must have a column 'ward'"),
    "no records": (FRAME[:0], "at least one record"),
    "too few columns": (FRAME.to_numpy(object)[:, :3], "must have 4 columns"),
    "a narrow sparse matrix": (one_hot(FRAME, COMPLETE)[:, :-1], "a sparse X must have 7 columns"),
    "two levels": (sparse.csr_matrix(np.ones((N, 7))), "at most one level"),
    "half a level": (one_hot(FRAME, COMPLETE) * 0.5, "must be 0 or 1"),
    "no level": (one_hot(FRAME, COMPLETE) * 0.0, "column 'ward' has a missing value"),
    "complex numbers": (one_hot(FRAME, COMPLETE).astype(complex), "must hold real numbers"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("missing", [False, True])
def test_mistakes_are_named_before_the_charge_and_show_no_value(mistake, missing, tmp_path):
    table, message = MISTAKES[mistake]
    with mdp.Ledger.create(tmp_path / "clinic.db") as ledger:
        ledger.register("clinic", mdp.Privacy(9.0, 1e-6), neighbours="replace")
        account = {"ledger": str(ledger.path), "dataset": "clinic", "bounds": describe(missing=missing)}
        for estimator, y in ALL:
            real = type(estimator)(**{**estimator.get_params(), **account, "random_state": None, "simulation": False})
            targets = y if y is None else y[: table.shape[0]]
            with pytest.raises(ValueError, match=message) as caught:
                real.set_params(epsilon=1.0).fit(table, targets)
            assert "secret" not in str(caught.value)
        assert ledger.history("clinic") == []


def test_mistakes_in_targets_are_named():
    ridge = PrivateRidge(**SEEDED, **TARGET)
    holes = Y.copy()
    holes[3] = np.nan
    for columns in (COMPLETE, MISSING):
        for wrong, message in (
            (Y[:-1], "same number"),
            (None, "requires y"),
            (holes, "y contains NaN"),
            (Y.astype(str), "real numbers"),
            (Y[:, None, None], "y must be a vector"),
        ):
            with pytest.raises(mdp.DataError, match=message):
                fit(ridge, columns, FRAME, wrong)
        with pytest.raises(mdp.ParameterError, match="target_bounds must be given"):
            fit(clone(ridge).set_params(target_bounds=None), columns, FRAME, Y)
        with pytest.raises(mdp.ParameterError, match="records must be given for add-remove"):
            fit(clone(ridge).set_params(neighbours="add-remove"), columns, FRAME, Y)
    with pytest.raises(mdp.ParameterError, match="at least one number, or a category of two levels"):
        fit(ridge, mdp.Columns([mdp.Category("ward", ["north"])]), FRAME, Y)
    with pytest.raises(mdp.ParameterError, match="ledger must be the path"):
        PrivateRidge(bounds=MISSING, ledger=3, dataset="clinic", **TARGET).fit(HOLES, Y)


@BOTH
@EACH
def test_a_fit_is_charged_once_and_by_its_copies(estimator, y, columns, frame, tmp_path):
    with mdp.Ledger.create(tmp_path / "clinic.db") as ledger:
        ledger.register("clinic", mdp.Privacy(9.0, 1e-6), neighbours="replace")
        account = {"ledger": str(ledger.path), "dataset": "clinic", "bounds": columns, "epsilon": 1.0}
        real = type(estimator)(**{**estimator.get_params(), **account, "random_state": None, "simulation": False})
        for copied in (real, copy.deepcopy(real), pickle.loads(pickle.dumps(real))):
            assert not copied.fit(frame, y).simulation_
        assert [charge.released for charge in ledger.history("clinic")] == [True] * 3
        with pytest.warns(RepeatedFitWarning) as caught:
            real.fit(frame, y)
        assert caught[0].filename == __file__
        real.set_params(epsilon=50.0)
        with pytest.warns(RepeatedFitWarning), pytest.raises(mdp.BudgetExceededError):
            real.fit(frame, y)


@BOTH
@EACH
def test_add_remove_neighbours(estimator, y, columns, frame):
    found = fit(clone(estimator).set_params(neighbours="add-remove", records=N + 100), columns, frame, y)
    assert found.neighbours_ == "add-remove"
    if isinstance(found, PrivateRidge):
        assert found.coef_ == pytest.approx(LinearRegression().fit(EXPANDED, Y).coef_, abs=0.3)


@BOTH
@EACH
def test_a_fitted_estimator_can_be_stored(estimator, y, columns, frame):
    found = fit(estimator, columns, frame, y)
    again = pickle.loads(pickle.dumps(found))
    assert_same(found, again)
    if hasattr(found, "predict"):
        assert np.array_equal(found.predict(frame), again.predict(frame))


@BOTH
@EACH
def test_files_have_the_same_bits(estimator, y, columns, frame, tmp_path):
    table = frame if y is None else frame.assign(y=y)
    for part in (0, 1):
        rows = slice(part * N // 2, (part + 1) * N // 2)
        pq.write_table(pa.Table.from_pandas(table[rows], preserve_index=False), tmp_path / f"{part}.parquet")
    found = fit(estimator, columns, str(tmp_path / "*.parquet"), None if y is None else "y")
    assert_same(found, fit(estimator, columns, frame, y))
    if y is not None:
        with pytest.raises(mdp.ParameterError, match="y must not be among the features"):
            fit(estimator, columns, str(tmp_path / "*.parquet"), "age")
    if hasattr(found, "predict"):
        with pytest.raises(mdp.ParameterError, match="X must be in memory"):
            found.predict(str(tmp_path / "*.parquet"))


def test_a_second_fit_of_another_kind_leaves_nothing_behind():
    model = PrivateCovariance(**SEEDED)
    model.set_params(bounds=MISSING).fit(HOLES)
    model.set_params(bounds=(0, 100)).fit(FRAME[["age", "bmi"]])
    assert not hasattr(model, "expanded_names_")
    assert not hasattr(model, "release_")
    model.set_params(bounds=MISSING).fit(HOLES)
    assert not hasattr(model, "moment_")


def test_other_levels_and_missing_levels():
    columns = mdp.Columns([mdp.Number("age", 0, 100), mdp.Category("ward", ["north"], other=True, missing=True)])
    frame = FRAME.assign(ward=FRAME.ward.mask(FRAME.ward == "west"))
    model = fit(PrivateLinearRegression(**SEEDED, **TARGET), columns, frame, Y)
    assert model.expanded_names_.tolist() == ["age", "ward=other", "ward=missing"]
    levels = frame.ward.map({"north": 0, "south": 1}).fillna(2).astype(int).to_numpy()
    table = sparse.csr_matrix(np.column_stack([AGE, np.eye(3)[levels]]))
    assert_same(fit(PrivateLinearRegression(**SEEDED, **TARGET), columns, table, Y), model)
    table = sparse.csr_matrix(np.column_stack([AGE, np.eye(3)[levels] * [1, 1, 0]]))  # no level: missing
    assert np.array_equal(model.predict(table), model.predict(frame))


def test_a_pipeline_ends_with_a_table():
    model = make_pipeline(PrivateLinearRegression(bounds=COMPLETE, **SEEDED, **TARGET)).fit(FRAME, Y)
    assert model.score(FRAME, Y) > 0.8


@BOTH
@EACH
def test_only_noisy_answers_of_neighbours_reach_a_fit(estimator, y, columns, frame):
    """One record changes all of its values at once, and a value becomes missing where it may be."""
    other = frame[:200].copy()
    other.loc[0, ["age", "bmi"]] = [100.0, 10.0 if columns is COMPLETE else np.nan]
    other.loc[0, ["ward", "smoker"]] = ["west" if frame.ward[0] != "west" else "north", not frame.smoker[0]]
    changed = None if y is None else np.concatenate([[-60.0] if y is Y else ["low"], y[1:200]])
    options = {**estimator.get_params(), "epsilon": 1.0, "random_state": None, "simulation": False, "bounds": columns}

    def fit_real(data, **more):
        return type(estimator)(**{**options, **more}).fit(*data)

    first, second = (frame[:200], None if y is None else y[:200]), (other, changed)
    found = replay(fit_real, first, second)
    assert not found.broken, found
    assert 0.05 < found.ratio <= 1
    assert replay(fit_real, first, second, claim=found.distance * 0.9).broken

    def fit_to_the_data(data):
        seen = data[0].age.max()
        return fit_real(data, bounds=mdp.Columns([mdp.Number("age", 0, seen), *columns.columns[1:]]))

    assert replay(fit_to_the_data, first, second, claim=mdp.Privacy(1.0, 1e-6).mu).broken


def test_a_record_is_expanded_on_its_own():
    features = ExpandedColumns(COMPLETE, reference=True)
    whole = features.apply(FRAME, np.asarray, fill=None)
    assert np.array_equal(whole, EXPANDED.to_numpy())
    for row in (0, 7, 1499):
        assert np.array_equal(features.apply(FRAME[row : row + 1], np.asarray, fill=None)[0], whole[row])
    assert features.names == ("age", "bmi", "ward=south", "ward=west", "smoker=yes")
    assert features.bounds.lower.tolist() == [0, 10, -1, -1, 0]
    assert features.bounds.upper.tolist() == [100, 60, 1, 1, 1]


@pytest.mark.parametrize("kind", [PrivateCovariance, PrivatePCA, PrivateRidge, PrivateLinearDiscriminant])
def test_names_can_be_completed_for_tables(kind):
    columns = mdp.Columns([mdp.Number("a", 0, 1, missing=True), mdp.Category("g", ["x", "y"])])
    assert "fit" in dir(kind(bounds=columns))
