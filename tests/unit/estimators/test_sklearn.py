"""The estimators as scikit-learn knows them."""

import copy
import inspect
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import matrixdp as mdp
from matrixdp.adaptive import FourierFeatures, solve_regression
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

# Checks use data of their own, so all features have the same public range. They compare two fits, hence the seed, and
# use few records, hence the large epsilon. No check is declared as an expected failure.
CHECKED = {"epsilon": 1e4, "delta": 1e-6, "bounds": (-20, 20), "random_state": 0, "simulation": True}
TARGETS = {**CHECKED, "target_bounds": (-400, 400)}

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 3)) @ np.diag([2.0, 1.0, 0.5]) + [1.0, 0.0, -1.0]
Y = X @ [1.0, -2.0, 0.5] + 3 + 0.1 * RNG.normal(size=4000)
SEEDED = {"epsilon": 3.0, "delta": 1e-6, "bounds": (-10, 10), "random_state": 0, "simulation": True}
SEEDED_TARGETS = {**SEEDED, "target_bounds": (-20, 20)}
ALL = [
    PrivateCovariance(**SEEDED),
    PrivatePCA(2, **SEEDED),
    PrivateScaler(**SEEDED),
    PrivateRidge(**SEEDED_TARGETS),
    PrivateLinearRegression(**SEEDED_TARGETS),
    PrivateKernelRidge(**SEEDED_TARGETS),
]


@parametrize_with_checks(
    [
        PrivateCovariance(**CHECKED),
        PrivatePCA(**CHECKED),
        PrivateScaler(**CHECKED),
        PrivateRidge(**TARGETS),
        PrivateLinearDiscriminant(**CHECKED),
        PrivateLinearRegression(**TARGETS),
        PrivateKernelRidge(**{**TARGETS, "bounds": (-4, 4), "target_bounds": (-5, 5)}),
    ]
)
def test_scikit_learn_s_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks warn about themselves
        check(estimator)


@pytest.mark.parametrize("estimator", ALL, ids=lambda e: type(e).__name__)
class TestAll:
    def test_a_fit_says_what_it_guarantees(self, estimator):
        fitted = clone(estimator).fit(X, Y)
        assert fitted.privacy_ == mdp.Privacy(3.0, 1e-6)
        assert fitted.neighbours_ == "replace"
        assert 0.99 * fitted.privacy_.mu < fitted.mu_ <= fitted.privacy_.mu
        assert sum(step.share for step in fitted.steps_) == pytest.approx(1, rel=1e-6)
        assert fitted.simulation_

    def test_bounds_are_required(self, estimator):
        with pytest.raises(mdp.ParameterError, match="bounds must be given"):
            clone(estimator).set_params(bounds=None).fit(X, Y)

    @pytest.mark.parametrize("bounds", [3.0, (0, 1, 2), ([0, 0], [1, 1]), mdp.Bounds([0], [1]), ("a", "b")])
    def test_unfit_bounds_are_named(self, estimator, bounds):
        with pytest.raises(mdp.ParameterError, match="bounds must be"):
            clone(estimator).set_params(bounds=bounds).fit(X, Y)

    @pytest.mark.parametrize("bad", [X * np.nan, np.full(X.shape, "x"), X[0], X[:0], X[:, :0]])
    def test_bad_data_are_errors_before_the_charge(self, estimator, bad, tmp_path):
        with mdp.Ledger.create(tmp_path / "clinic.db") as ledger:
            ledger.register("clinic", mdp.Privacy(3.0, 1e-6), neighbours="replace")
            real = type(estimator)(**{**estimator.get_params(), "random_state": None, "simulation": False})
            real.set_params(ledger=str(ledger.path), dataset="clinic")
            with pytest.raises(ValueError):
                real.fit(bad, Y)
            assert ledger.history("clinic") == []

    def test_sparse_input_is_a_clear_error(self, estimator):
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            clone(estimator).fit(sparse.csr_matrix(X), Y)

    def test_copies_and_pickles_charge(self, estimator, tmp_path):
        with mdp.Ledger.create(tmp_path / "clinic.db") as ledger:
            ledger.register("clinic", mdp.Privacy(9.0, 1e-6), neighbours="replace")
            real = type(estimator)(**{**estimator.get_params(), "random_state": None, "simulation": False})
            real.set_params(ledger=str(ledger.path), dataset="clinic", epsilon=1.0)
            for copied in (real, copy.deepcopy(real), pickle.loads(pickle.dumps(real))):
                copied.fit(X, Y)
                assert not copied.simulation_
            assert len(ledger.history("clinic")) == 3
            assert all(charge.released for charge in ledger.history("clinic"))

    def test_one_feature_and_few_records(self, estimator):
        for rows, columns in ((1, 1), (300, 1), (3, 3)):
            small = clone(estimator)
            if isinstance(small, PrivatePCA):
                small.set_params(n_components=1)
            assert small.fit(X[:rows, :columns], Y[:rows]).mu_ <= small.privacy_.mu

    def test_parameters_survive_a_clone_and_a_pickle(self, estimator):
        for copied in (clone(estimator), pickle.loads(pickle.dumps(estimator)), copy.deepcopy(estimator)):
            assert copied.get_params() == estimator.get_params()
            assert copied != estimator
            assert repr(copied) == repr(estimator)

    def test_shared_parameters_are_keyword_only(self, estimator):
        parameters = inspect.signature(type(estimator)).parameters
        assert set(parameters) == set(estimator.get_params())
        positional = [p.name for p in parameters.values() if p.kind is not inspect.Parameter.KEYWORD_ONLY]
        first = {PrivatePCA: ["n_components"], PrivateRidge: ["alpha"], PrivateKernelRidge: ["alpha"]}
        assert positional == first.get(type(estimator), [])

    def test_the_warning_names_the_line_that_called_fit(self, estimator):
        real = clone(estimator).set_params(random_state=None, simulation=False)
        with pytest.warns(RepeatedFitWarning) as caught:
            real.fit(X, Y)
        assert caught[0].filename == __file__


def test_the_representation_shows_what_is_not_default():
    assert repr(PrivatePCA(2, epsilon=3.0, bounds=(0, 1))) == "PrivatePCA(bounds=(0, 1), epsilon=3.0, n_components=2)"
    assert repr(PrivateRidge(0.5)) == "PrivateRidge(alpha=0.5)"
    assert repr(PrivateLinearRegression()) == "PrivateLinearRegression()"


def test_least_squares_have_no_penalty_to_set():
    with pytest.raises(ValueError, match="Invalid parameter 'alpha'"):
        PrivateLinearRegression().set_params(alpha=1.0)
    with pytest.raises(TypeError, match="directions"):
        PrivateScaler(directions="standard")


def test_text_is_not_shown_in_errors():
    table = np.full(X.shape, "0.5", dtype=object)
    table[3, 1] = "secret"
    with pytest.raises(mdp.DataError) as caught:
        PrivateCovariance(**SEEDED).fit(table)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_constant_features_are_not_blown_up():
    flat = np.column_stack([X[:, 0], np.full(len(X), 0.3)])
    assert PrivateScaler(**SEEDED).fit(flat).scale_[1] > 0.01


def test_clones_warn_that_every_fit_spends():
    real = PrivateCovariance(bounds=(-10, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        real.fit(X)
        clone(real).set_params(random_state=1, simulation=True).fit(X)
    with pytest.warns(RepeatedFitWarning, match="has a clone that is being fitted.*Every fit spends"):
        clone(real).fit(X)
    with pytest.warns(RepeatedFitWarning, match="is being fitted again"):
        real.fit(X)
    model = PrivateRidge(bounds=(-10, 10), target_bounds=(-20, 20))
    with pytest.warns(RepeatedFitWarning):
        GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=2).fit(X, Y)
    with pytest.warns(RepeatedFitWarning):
        cross_val_score(model, X, Y, cv=2)


def test_pipelines():
    scaler = PrivateScaler(**SEEDED)
    ridge = PrivateRidge(epsilon=3.0, bounds=(-8, 8), target_bounds=(-20, 20), random_state=1, simulation=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline = make_pipeline(scaler, ridge).fit(X, Y)
    assert pipeline.score(X, Y) > 0.9


def test_covariance():
    fitted = PrivateCovariance(**SEEDED).fit(X)
    truth = np.cov(X.T)
    assert np.linalg.norm(fitted.covariance_ - truth) < 0.1 * np.linalg.norm(truth)
    assert np.abs(fitted.location_ - X.mean(axis=0)).max() < 0.2
    assert np.diagonal(fitted.correlation_).tolist() == [1.0] * 3
    assert fitted.covariance_std_.shape == (3, 3)
    assert fitted.location_std_.shape == (3,)


def test_pca():
    pca = PrivatePCA(**SEEDED).fit(X)
    assert pca.components_ @ pca.components_.T == pytest.approx(np.eye(3), abs=1e-9)
    assert abs(pca.components_[0, 0]) > 0.98
    assert pca.explained_variance_ratio_.sum() == pytest.approx(1)
    assert pca.inverse_transform(pca.transform(X)) == pytest.approx(X)
    share = PrivatePCA(0.7, **SEEDED).fit(X)
    assert share.n_components_ == 1
    assert share.transform(X).shape == (4000, 1)
    assert share.get_feature_names_out().tolist() == ["privatepca0"]
    for count in (0, 4, 1.5, True, "mle"):
        with pytest.raises(mdp.ParameterError, match="n_components must be"):
            PrivatePCA(count, **SEEDED).fit(X)


def test_regression():
    model = PrivateLinearRegression(**SEEDED_TARGETS).fit(X, Y)
    assert model.coef_ == pytest.approx([1.0, -2.0, 0.5], abs=0.3)
    assert model.score(X, Y) > 0.95
    several = PrivateRidge(**SEEDED_TARGETS).fit(X, np.column_stack([Y, -Y]))
    assert several.coef_.shape == (2, 3)
    assert several.predict(X).shape == (4000, 2)
    heavy = PrivateRidge(1e9, **SEEDED_TARGETS).fit(X, Y)
    assert np.abs(heavy.coef_).max() < 0.01
    with pytest.raises(mdp.ParameterError, match="target_bounds must be given"):
        PrivateRidge(**SEEDED).fit(X, Y)
    with pytest.raises(mdp.ParameterError, match="alpha must be"):
        PrivateRidge(-1.0, **SEEDED_TARGETS).fit(X, Y)


def test_too_few_records_give_the_mean():
    model = PrivateRidge(**SEEDED_TARGETS).fit(X[:3], Y[:3])
    assert model.coef_.tolist() == [0.0, 0.0, 0.0]


def test_kernel_regression():
    points = RNG.uniform(-1, 1, (20_000, 1))
    target = np.sin(4 * points[:, 0])
    options = {**SEEDED, "bounds": (-1, 1), "target_bounds": (-1, 1), "gamma": 3.0}
    assert PrivateKernelRidge(**options).fit(points, target).score(points, target) > 0.9
    for name in ("gamma", "n_components"):
        with pytest.raises(mdp.ParameterError, match=name):
            PrivateKernelRidge(**{**options, name: 0}).fit(points, target)
    with pytest.raises(mdp.ParameterError, match="alpha"):
        PrivateKernelRidge(-1.0, **options).fit(points, target)


def test_fourier_features_approximate_the_kernel():
    features = FourierFeatures(mdp.Bounds([-1, -1], [1, 1]), gamma=0.7, count=4000, seed=0)
    made = features([[0.5, 0.2], [-0.1, 0.3]])
    assert np.abs(made).max() <= features.size
    assert made[0] @ made[1] == pytest.approx(np.exp(-0.7 * (0.36 + 0.01)), abs=0.05)


def test_scaler():
    scaler = PrivateScaler(**SEEDED).fit(X)
    scaled = scaler.transform(X)
    assert np.abs(scaled.mean(axis=0)).max() < 0.1
    assert scaled.std(axis=0) == pytest.approx(np.ones(3), abs=0.2)
    assert scaler.inverse_transform(scaled) == pytest.approx(X)
    assert scaler.bounds_.size == 3
    for wrong in (scaled[:, :2], scaled[0], [["a", "b", "c"]]):
        with pytest.raises(mdp.DataError, match=r"X must have shape \(records, 3\)") as caught:
            scaler.inverse_transform(wrong)
        assert caught.value.__context__ is None
    counted = PrivateScaler(**SEEDED, neighbours="add-remove", records=4200).fit(X)
    assert counted.var_ == pytest.approx(X.var(axis=0), rel=0.3)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_scaler_s_sensitivity_is_never_passed(neighbours):
    from matrixdp.adaptive.queries import scales_query
    from matrixdp.adaptive.scales import _LEVELS, _row, _sum_part

    query = scales_query(1, 1, mdp.Neighbours.parse(neighbours), function=partial(_row, 1))
    box = mdp.Bounds([-_LEVELS], [_LEVELS])
    grid = np.linspace(-_LEVELS, _LEVELS, 401).round()[:, None, None]
    answers = np.array([query.function(_sum_part(box, 0, [record])[1])[0] for record in grid])
    if neighbours == "replace":
        changes = np.linalg.norm(answers[:, None] - answers[None], axis=-1)
    else:
        changes = np.linalg.norm(answers, axis=-1)
    assert changes.max() <= query.sensitivity.radius
    assert changes.max() > 0.999 * query.sensitivity.radius


def test_named_bounds_choose_the_columns_of_a_table():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abc"))
    bounds = mdp.Bounds([-10] * 3, [10] * 3, names=list("abc"))
    options = {**SEEDED, "bounds": bounds}
    assert PrivateCovariance(**options).fit(table).feature_names_in_.tolist() == list("abc")
    fitted = PrivateCovariance(**options).fit(table)
    more = table[list("bac")].assign(d=1.0)
    assert np.array_equal(PrivateCovariance(**options).fit(more).covariance_, fitted.covariance_)
    scaler = PrivateScaler(**options).fit(table)
    assert np.array_equal(scaler.transform(more), scaler.transform(table))
    with pytest.raises(mdp.DataError, match="must have a column 'c'"):
        PrivateCovariance(**options).fit(table[list("ba")])


def test_mistakes_are_named():
    ridge = PrivateRidge(**SEEDED_TARGETS)
    for short in (Y[:-1], list(Y[:-1]), np.column_stack([Y, Y])[1:]):
        with pytest.raises(mdp.DataError, match="same number of records"):
            ridge.fit(X, short)
    with pytest.raises(mdp.DataError, match="one row a record"):
        ridge.fit(X[None], Y)
    with pytest.raises(mdp.ParameterError, match="target_bounds: lower must be below upper"):
        clone(ridge).set_params(target_bounds=(20, -20)).fit(X, Y)
    with pytest.raises(mdp.ParameterError, match="all lower ends before all upper ones, got a list"):
        clone(ridge).set_params(bounds=[(-10, 10)] * 3).fit(X, Y)
    for state in ("x", -1, 1.5, True, np.random.default_rng(0)):
        with pytest.raises(mdp.ParameterError, match="random_state must be"):
            clone(ridge).set_params(random_state=state).fit(X, Y)
    with pytest.raises(mdp.ParameterError, match="ledger must be left out when simulation=True"):
        clone(ridge).set_params(ledger="x.db", dataset="clinic").fit(X, Y)
    kernel = PrivateKernelRidge(**SEEDED_TARGETS)
    for name, values in {"n_components": (2.5, "2"), "feature_seed": (None, -1, 1.5), "alpha": ("a", None)}.items():
        for value in values:
            with pytest.raises(mdp.ParameterError, match=f"{name} must be"):
                clone(kernel).set_params(**{name: value}).fit(X, Y)
    pca = PrivatePCA(2, **SEEDED).fit(X)
    for wrong in (X, X[0, :2], [["a", "b"]]):
        with pytest.raises(mdp.DataError, match=r"shape \(records, 2\)"):
            pca.inverse_transform(wrong)
    moment = PrivateCovariance(**SEEDED).fit(X).moment_
    for targets in (0, 3, -1, 1.5):
        with pytest.raises(mdp.ParameterError, match="targets must be an integer from 1 to 2"):
            solve_regression(moment, targets)


@pytest.mark.parametrize("alpha", [1e100, 1e160, 1e300])
def test_a_huge_penalty_leaves_no_coefficients(alpha):
    with np.errstate(all="raise", under="ignore"):
        model = PrivateRidge(alpha, **SEEDED_TARGETS).fit(X, Y)
    assert np.abs(model.coef_).max() < 1e-50


@pytest.mark.parametrize("records", [4000, 12_000, 100_000])
def test_the_public_number_of_records_may_be_far_too_large(records):
    options = {**SEEDED, "neighbours": "add-remove", "records": records, "epsilon": 50.0}
    fitted, scaler = PrivateCovariance(**options).fit(X), PrivateScaler(**options).fit(X)
    assert np.trace(fitted.covariance_) == pytest.approx(np.trace(np.cov(X.T)), rel=0.1)
    assert scaler.var_ == pytest.approx(X.var(axis=0), rel=0.3)


def test_no_variance_is_larger_than_its_bounds_allow():
    for seed in range(20):
        options = {**SEEDED, "epsilon": 0.1, "bounds": (-1, 1), "random_state": seed}
        assert PrivatePCA(**options).fit(X[:30, :1] / 20).explained_variance_[0] <= 1 + 1e-12


@pytest.mark.parametrize(
    "data",
    [np.array([0.123, 0.456]), 0.123, [0.123, 0.456], np.array([[0.123 + 1j, 0.456]]), [[0.123 + 1j, 0.456]]],
)
def test_errors_about_shapes_and_kinds_quote_no_data(data):
    with pytest.raises(ValueError) as caught:
        PrivateCovariance(bounds=(-1, 1)).fit(data)
    assert "0.123" not in str(caught.value)
    with pytest.raises(ValueError) as caught:
        PrivateRidge(bounds=(-1, 1), target_bounds=(-1, 1)).fit(np.zeros((3, 2)), np.array([1j, 2, 0.345]))
    assert "0.345" not in str(caught.value)


@pytest.mark.parametrize("estimator", [PrivateCovariance(bounds=(-9, 9)), PrivateScaler(bounds=(-9, 9))])
def test_a_seed_alone_does_not_make_a_simulation(estimator, tmp_path):
    ledger = mdp.Ledger.create(tmp_path / "clinic.db")
    ledger.register("clinic", mdp.Privacy(2, 1e-6), neighbours="replace")
    account = {"ledger": tmp_path / "clinic.db", "dataset": "clinic"}
    for options in ({}, account):
        with pytest.raises(mdp.ParameterError, match="give simulation=True as well"):
            clone(estimator).set_params(random_state=42, **options).fit(X)
    with pytest.raises(mdp.ParameterError, match="simulation must be True or False"):
        clone(estimator).set_params(simulation=1).fit(X)
    assert ledger.history("clinic") == []
    assert clone(estimator).set_params(random_state=42, simulation=True).fit(X).simulation_
    assert clone(estimator).set_params(simulation=True).fit(X).simulation_


def test_a_password_is_not_a_parameter():
    """scikit-learn shows the parameters of an estimator, and other tools log them."""
    estimator = PrivateCovariance(bounds=(-10, 10), ledger="postgresql://ann:hunter2@127.0.0.1:1/p", dataset="clinic")
    with pytest.raises(mdp.ParameterError, match=r"ledger must be a URL without a password.*\.pgpass") as refusal:
        estimator.fit(X)
    assert "hunter2" not in str(refusal.value)
    estimator.set_params(ledger="postgresql://ann@127.0.0.1:1/p")
    with pytest.raises(mdp.LedgerError, match="the server cannot be reached"):
        estimator.fit(X)
