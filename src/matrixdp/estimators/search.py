"""What a search over settings costs, before its first fit: each fit of a private estimator spends its whole budget."""

import copy
import sys
import warnings
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import sklearn
from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV, ParameterGrid, ParameterSampler, RandomizedSearchCV, check_cv

from matrixdp.errors import BudgetExceededError, ParameterError
from matrixdp.gdp import compose_mu, gdp_epsilon
from matrixdp.ledger import Gaussian, Ledger
from matrixdp.privacy import Neighbours, Privacy, Unit


class RepeatedFitWarning(UserWarning):
    """A search or a clone is being fitted, or an estimator is being fitted again: each fit spends its whole budget.

    Scores on private records are not private either: no budget covers them.
    """


@dataclass(frozen=True)
class SearchCost:
    """Number of fits of private estimators in a search, and what they spend together, as mu and (epsilon, delta)."""

    fits: int
    mu: float
    epsilon: float
    delta: float


def search_cost(search: Any, X: Any = None, y: Any = None, groups: Any = None) -> SearchCost:
    """What fitting a `GridSearchCV` or `RandomizedSearchCV` will spend on private estimators; nothing is fitted.

    Parameters
    ----------
    search : GridSearchCV or RandomizedSearchCV
        Its estimator may be a pipeline with private steps. Simulations cost nothing.
    X, y, groups : optional
        As for ``search.fit``, where the number of folds depends on them.

    Privacy
    -------
    Covers the fits and not the scores: which setting is best is a function of private records without a guarantee.
    """
    return _add_up([fit for fits in _list_fits(search, X, y, groups).values() for fit in fits])


def _add_up(fits: list[Any]) -> SearchCost:
    delta = min((fit.delta for fit in fits), default=1e-6)
    mu = compose_mu(Privacy(fit.epsilon, fit.delta).mu for fit in fits)
    return SearchCost(len(fits), mu, gdp_epsilon(mu=mu, delta=delta) if mu > 0 else 0.0, delta)


def _list_fits(search: Any, X: Any, y: Any, groups: Any) -> dict[tuple[Any, ...], list[Any]]:
    """The private estimators that a search fits, one for each fit, by the ledger, data set and allowance that pay."""
    if isinstance(search, GridSearchCV):
        candidates = list(ParameterGrid(search.param_grid))
    elif isinstance(search, RandomizedSearchCV):
        candidates = list(ParameterSampler(search.param_distributions, search.n_iter, random_state=0))
        if any(name.rpartition("__")[2] in ("epsilon", "delta") for one in candidates for name in one):
            raise ParameterError("param_distributions must not have epsilon or delta: the cost would depend on chance.")
    else:
        raise ParameterError(
            f"search must be a GridSearchCV or RandomizedSearchCV, got {type(search).__name__} instead: what others "
            "cost is not known before their first fit."
        )
    folds = check_cv(search.cv, y, classifier=is_classifier(search.estimator)).get_n_splits(X, y, groups)
    found: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    last: list[Any] = []
    for candidate in candidates:
        parts = _private_parts(copy.deepcopy(search.estimator).set_params(**candidate))
        last = max(last, parts, key=lambda some: _add_up(some).mu)  # the dearest may be fitted once more
        for part in parts * folds:
            found[part.ledger, part.dataset, part.allowance].append(part)
    for part in last if search.refit else ():
        found[part.ledger, part.dataset, part.allowance].append(part)
    return found


def _private_parts(estimator: Any) -> list[Any]:
    """The private estimators that a fit of an estimator or a pipeline fits, without simulations."""
    parts = [estimator, *estimator.get_params(deep=True).values()]
    return [part for part in parts if hasattr(part, "_start_fit") and not part.simulation]


def announce_search(estimator: Any) -> bool:
    """True if a search that is about to be fitted clones the estimator; its cost is checked and announced before."""
    # scikit-learn tells an estimator nothing of the search that fits it.
    calls = list_calls(str(Path(sklearn.__file__).parent))
    runs = [one for one in calls[:-1] if one.f_code.co_name == "fit"]
    fits = [one for one in runs if hasattr(one.f_locals.get("self"), "_run_search")]
    if not fits or estimator.simulation or any(one.f_code.co_name == "_fit_and_score" for one in calls):
        return False
    values = fits[-1].f_locals
    search = values["self"]
    if _private_parts(search.estimator)[:1] != [estimator]:
        return True  # one of several steps of a pipeline, of which the first announces
    spending = _list_fits(search, values.get("X"), values.get("y"), values.get("params", {}).get("groups"))
    name, cost = type(search).__name__, _add_up([fit for some in spending.values() for fit in some])
    for (ledger, dataset, allowance), some in spending.items():
        if ledger is None or dataset is None:
            continue
        first, event = some[0], Gaussian(_add_up(some).mu)
        unit = Unit() if first.person is None else Unit("person", first.person)
        wanted: Any = SimpleNamespace(event=event, neighbours=Neighbours.parse(first.neighbours), unit=unit)
        with Ledger.open(ledger) as book:
            try:
                book.whatif(dataset, wanted, allowance=allowance)
            except BudgetExceededError as error:
                raise BudgetExceededError(
                    f"{name} would fit private estimators {cost.fits} times. Nothing was charged. {error}\n"
                    "Search fewer settings or folds, lower epsilon, or give all alphas or shrinkages to one fit, which "
                    "chooses at no further cost."
                ) from None
    warnings.warn(
        f"{name} fits private estimators {cost.fits} times, and each fit spends its whole budget: "
        f"epsilon {cost.epsilon:.3g} at delta {cost.delta:.3g} (mu {cost.mu:.4g}) in all. "
        "Scores on private records have no guarantee at all. PrivateRidge(alphas=...) and "
        "PrivateLinearDiscriminant(shrinkage=[...]) choose in one fit.",
        RepeatedFitWarning,
        stacklevel=len(calls),
    )
    return True


def list_calls(*packages: str) -> list[FrameType]:
    """The calls from the caller of this function up to the code that called this package, or one of others."""
    calls: list[FrameType] = [sys._getframe(1)]
    while calls[-1].f_code.co_filename.startswith((str(Path(__file__).parent), *packages)) and calls[-1].f_back:
        calls.append(calls[-1].f_back)
    return calls
