"""A search over settings announces its whole cost, and is refused before it charges; one fit chooses at no cost."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    LeaveOneOut,
    PredefinedSplit,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline

import matrixdp as mdp
from matrixdp.adaptive.regression import JointMoment
from matrixdp.estimators import (
    PrivateLinearDiscriminant,
    PrivatePCA,
    PrivateRidge,
    PrivateScaler,
    RepeatedFitWarning,
    search_cost,
)
from matrixdp.gdp import compose_mu

RNG = np.random.default_rng(5)
X = RNG.normal(size=(1200, 3)).clip(-4, 4)
Y = X @ [1.0, -1.0, 0.5] + RNG.normal(size=1200)
BOUNDS = {"bounds": (-4, 4), "target_bounds": (-15, 15)}
SEEDED = {"random_state": 0, "simulation": True}
ALPHAS = [0.1, 10.0, 1000.0]


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "ledger.db"
    with mdp.Ledger.create(path) as book:
        book.register("data", mdp.Privacy(2, 1e-6), neighbours="replace")
    return path


def charges(path):
    with mdp.Ledger.open(path) as book:
        return len(book.history("data"))


def ridge(ledger=None, **options):
    paid = {} if ledger is None else {"ledger": str(ledger), "dataset": "data"}
    return PrivateRidge(epsilon=0.3, delta=1e-6, **BOUNDS, **paid, **options)


def test_a_search_is_refused_before_the_first_charge(ledger):
    search = GridSearchCV(ridge(ledger), {"alpha": [*ALPHAS, 1.0, 2.0, 3.0]}, cv=10, error_score="raise")
    with pytest.raises(mdp.BudgetExceededError, match=r"fit private estimators 61 times.*Nothing was charged"):
        search.fit(X, Y)
    assert charges(ledger) == 0


def test_a_search_whose_cost_is_not_known_is_refused(ledger):
    search = HalvingGridSearchCV(ridge(ledger), {"alpha": ALPHAS}, cv=2)
    with pytest.raises(mdp.ParameterError, match="got HalvingGridSearchCV instead"):
        search.fit(X, Y)
    assert charges(ledger) == 0


def test_a_search_with_an_open_ledger_says_what_to_give_instead(ledger):
    with mdp.Ledger.open(ledger) as book, pytest.raises(mdp.ParameterError, match="must be the path of a ledger"):
        GridSearchCV(PrivateRidge(ledger=book, dataset="data", **BOUNDS), {"alpha": ALPHAS}, cv=2).fit(X, Y)
    with pytest.raises(mdp.ParameterError, match="must be the path of a ledger, got int instead"):
        mdp.Ledger.open(5)


def test_a_search_that_can_be_paid_warns_once_with_the_total(ledger):
    search = GridSearchCV(ridge(ledger), {"alpha": ALPHAS}, cv=2)
    cost = search_cost(search)
    with pytest.warns(RepeatedFitWarning) as caught:
        search.fit(X, Y)
    assert len([one for one in caught if one.category is RepeatedFitWarning]) == 1
    assert f"epsilon {cost.epsilon:.3g}" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert charges(ledger) == cost.fits == 7
    with mdp.Ledger.open(ledger) as book:
        spent = compose_mu(charge.event.mu for charge in book.history("data"))
    assert spent == pytest.approx(cost.mu, rel=1e-12)
    with pytest.warns(RepeatedFitWarning, match="has a clone"):  # what a search announced, it announced for itself
        clone(search.best_estimator_).fit(X, Y)
    again = GridSearchCV(search.best_estimator_, {"alpha": ALPHAS}, cv=20)
    with pytest.raises(mdp.BudgetExceededError, match="61 times"):
        again.fit(X, Y)


def test_steps_of_a_pipeline_are_added_up(ledger):
    paid = {"ledger": str(ledger), "dataset": "data"}
    steps = make_pipeline(PrivateScaler(epsilon=0.2, bounds=(-4, 4), **paid), ridge(ledger))
    assert search_cost(GridSearchCV(steps, {"privateridge__alpha": ALPHAS}, cv=2)).fits == 14
    search = GridSearchCV(steps, {"privateridge__alpha": ALPHAS}, cv=20)
    with pytest.raises(mdp.BudgetExceededError, match="122 times"):
        search.fit(X, Y)
    assert charges(ledger) == 0


def test_the_cost_counts_folds_settings_and_the_last_fit():
    model = PrivateLinearDiscriminant(epsilon=0.5, bounds=(-4, 4), classes=[0, 1])
    labels = (Y > 0).astype(int)
    grid = {"epsilon": [0.1, 0.5]}
    budgets = [mdp.Privacy(epsilon, 1e-6).mu for epsilon in (0.1, 0.5)]
    found = search_cost(GridSearchCV(model, grid, cv=StratifiedKFold(4)), X, labels)
    assert found.fits == 9
    assert found.mu == pytest.approx(compose_mu([*budgets * 4, budgets[1]]))
    assert search_cost(GridSearchCV(model, grid, cv=LeaveOneOut(), refit=False), X[:7], labels[:7]).fits == 14
    assert search_cost(RandomizedSearchCV(model, {"shrinkage": [0.1, 0.2, 0.3]}, n_iter=2, cv=3)).fits == 7
    assert search_cost(GridSearchCV(clone(model).set_params(simulation=True), grid)).fits == 0
    with pytest.raises(mdp.ParameterError, match="depend on chance"):
        search_cost(RandomizedSearchCV(model, grid, n_iter=2))
    with pytest.raises(mdp.ParameterError, match="GridSearchCV"):
        search_cost(model)


def test_simulations_are_searched_without_a_word():
    """One setting is enough to see it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GridSearchCV(ridge(**SEEDED), {"alpha": [1.0]}, cv=2, refit=False).fit(X[:300], Y[:300])


def test_one_fit_chooses_among_penalties(ledger):
    fitted = ridge(ledger, alphas=ALPHAS).fit(X, Y)
    assert fitted.alpha_ in ALPHAS
    assert charges(ledger) == 1
    same = ridge(**{**SEEDED, "alphas": [10.0]}).fit(X, Y)
    alone = PrivateRidge(10.0, epsilon=0.3, delta=1e-6, **BOUNDS, **SEEDED).fit(X, Y)
    assert (same.coef_ == alone.coef_).all()
    assert (same.coef_std_ == alone.coef_std_).all()
    assert ridge(**SEEDED).fit(X, Y).alpha_ == 1.0


def test_the_choice_follows_what_helps():
    """Few records of features that are nearly the same need a penalty; clear effects are not to be shrunk."""
    assert PrivateRidge(alphas=[1e-6, 1e6], epsilon=3, **BOUNDS, **SEEDED).fit(X, Y).alpha_ == 1e-6
    gram = 0.1 * (np.ones((6, 6)) + 0.01 * np.eye(6))
    slopes = np.full(6, 1 / 6)
    cross = gram @ slopes
    covariance = np.block([[gram, cross[:, None]], [cross[None], np.array([[0.3]])]])
    zero, one = np.zeros(7), np.ones(7)
    moments = [(zero, covariance)] * 60
    joint = JointMoment(zero, covariance, zero, np.eye(7), 1e-9, zero, one, 40, np.inf, draws=lambda: moments)
    assert joint.choose(6, [0.0, 0.1, 1e6]) == 1


@pytest.mark.parametrize("alphas", [[], 3.0, "12", [-1.0], [float("nan")], None])
def test_penalties_that_are_not_numbers_are_refused_before_the_charge(ledger, alphas):
    if alphas is None:
        model = PrivateLinearDiscriminant(
            bounds=(-4, 4), classes=[0, 1], shrinkage=[1.0], ledger=ledger, dataset="data"
        )
        with pytest.raises(mdp.ParameterError, match="shrinkage must be"):
            model.fit(X, (Y > 0).astype(int))
    else:
        with pytest.raises(mdp.ParameterError, match="alphas must"):
            ridge(ledger, alphas=alphas).fit(X, Y)
        with pytest.raises(mdp.ParameterError, match=r"alpha must be a number .*see alphas"):
            ridge(ledger, alpha=[1.0, 2.0]).fit(X, Y)
    assert charges(ledger) == 0


def test_shrinkage_of_classes_is_chosen_in_one_fit():
    labels = (Y > 0).astype(int)
    options = {"bounds": (-4, 4), "classes": [0, 1], **SEEDED}
    plain = PrivateLinearDiscriminant(**options).fit(X, labels)
    chosen = PrivateLinearDiscriminant(shrinkage=[0.0, 0.2, 0.9], **options).fit(X, labels)
    strong = PrivateLinearDiscriminant(shrinkage=0.9, **options).fit(X, labels)
    assert plain.shrinkage_ == 0.0
    assert chosen.shrinkage_ in (0.0, 0.2, 0.9)
    assert chosen.score(X, labels) > 0.75
    assert np.linalg.norm(strong.coef_) < 0.5 * np.linalg.norm(plain.coef_)
    assert (np.diagonal(strong.covariance_) > 5 * np.diagonal(plain.covariance_)).all()


def test_choices_work_in_a_pipeline_that_is_scored_on_other_records():
    model = make_pipeline(
        PrivateScaler(bounds=(-4, 4), **SEEDED),
        PrivatePCA(0.9, bounds=(-4, 4), **SEEDED),
        PrivateRidge(bounds=(-4, 4), target_bounds=(-15, 15), alphas=ALPHAS, **SEEDED),
    )
    held = PredefinedSplit(np.where(np.arange(len(X)) < 900, -1, 0))
    assert cross_val_score(model, X, Y, cv=held)[0] > 0.4


def test_a_real_table():
    data = load_diabetes(scaled=False)
    bounds = mdp.Bounds(data.data.min(axis=0) - 1, data.data.max(axis=0) + 1)
    model = PrivateRidge(epsilon=5, bounds=bounds, target_bounds=(0, 400), alphas=np.geomspace(0.1, 1e4, 6), **SEEDED)
    assert model.fit(data.data, data.target).score(data.data, data.target) > 0.2
