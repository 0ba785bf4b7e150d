"""A penalty chosen in one private fit, beside a grid search whose fits divide the same budget.

``python -m benchmarks.choosing [--group design|"held out"|fresh] [--task regression classes components]
[--epsilon 1] [--trials 3]``

The criterion was chosen on the group "design"; report on the others. Needs the extra ``accuracy``. 70% of the records
of each real table are fitted, the others tested. Regression has the table's last number as its target, classes are
whether that number is above its median, and errors are relative to the variance of the target, or shares of wrong
labels. The grid search has three folds; its scores are exact functions of the records, which no budget covers, so it is
given more than any private search could have. "best" looks at the test records. Components: the share of variance of
the test records that ``PrivatePCA(0.9)`` keeps, and the number of components beside that without privacy.
"""

import argparse
import itertools
import warnings
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from benchmarks.generalisation_data import Member, members
from benchmarks.sizes import size
from matrixdp import Bounds, Privacy
from matrixdp.estimators import PrivateLinearDiscriminant, PrivatePCA, PrivateRidge
from matrixdp.types import Floats

DELTA, FOLDS, SHARE = 1e-6, 3, 0.9
GRIDS = {
    "regression": ("alpha", "alphas", [0.1, 1.0, 10.0, 100.0, 1e3, 1e4]),
    "classes": ("shrinkage",) * 2 + ([0.0, 0.05, 0.2, 0.5, 0.8],),
}
LEAST = 200  # records of a table


def split(data: Any, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Features and targets of the records to fit, and of those to test."""
    order = np.random.default_rng(seed).permutation(len(data.records))
    first = order[: int(0.7 * len(order))]
    last = order[len(first) :]
    return data.records[first, :-1], data.records[first, -1], data.records[last, :-1], data.records[last, -1]


def measure(member: Member, task: str, epsilon: float, seed: int) -> dict[str, float]:
    """Errors on the test records by method, or numbers of components."""
    data = member.data
    bounds = Bounds(data.bounds.lower[:-1], data.bounds.upper[:-1])
    X, y, X_test, y_test = split(data, seed)
    common: dict[str, Any] = {"delta": DELTA, "bounds": bounds, "random_state": seed, "simulation": True}
    if task == "components":
        found, exact = PrivatePCA(SHARE, epsilon=epsilon, **common).fit(X), PCA(SHARE, svd_solver="full").fit(X)
        about = X_test - X_test.mean(axis=0)
        kept = [float(np.linalg.norm(about @ one.components_.T)) for one in (found, exact)]
        total = float(np.linalg.norm(about))
        more = found.n_components_ - exact.n_components_
        return {"private share": (kept[0] / total) ** 2, "exact share": (kept[1] / total) ** 2, "more": float(more)}
    name, plural, grid = GRIDS[task]
    if task == "classes":
        middle = np.median(data.records[:, -1])
        y, y_test = (y > middle).astype(int), (y_test > middle).astype(int)
        kind: Any = PrivateLinearDiscriminant
        common["classes"] = [0, 1]
    else:
        kind, common["target_bounds"] = PrivateRidge, (data.bounds.lower[-1], data.bounds.upper[-1])
    part = Privacy(epsilon, DELTA).take_share(1 / (len(grid) * FOLDS + 1))
    errors = {"default": 1 - kind(epsilon=epsilon, **common).fit(X, y).score(X_test, y_test)}
    errors["one fit"] = 1 - kind(epsilon=epsilon, **{plural: grid}, **common).fit(X, y).score(X_test, y_test)
    errors["best"] = min(
        1 - kind(epsilon=epsilon, **{name: one}, **common).fit(X, y).score(X_test, y_test) for one in grid
    )
    if part is not None:
        search = GridSearchCV(kind(epsilon=part.epsilon, **common), {name: grid}, cv=FOLDS).fit(X, y)
        errors["grid search"] = 1 - search.score(X_test, y_test)
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--group", default="held out")
    parser.add_argument("--task", nargs="+", default=["regression", "classes", "components"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--trials", type=int, default=size(3, 1))
    options = parser.parse_args()
    groups = ["held out", "fresh"] if options.group == "held out" else [options.group]
    every = [one for group in groups for one in members(group) if size(one.kind == "real", True)]
    chosen = [one for one in every if len(one.data.records) >= LEAST and one.data.bounds.size > 2]
    for task, epsilon in itertools.product(options.task, options.epsilon):
        rows = []
        for member in chosen:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = [measure(member, task, epsilon, seed) for seed in range(options.trials)]
            rows.append({name: float(np.mean([one[name] for one in found])) for name in found[0]})
            print(f"  {member.data.name:24}", *(f"{name} {value:.4f}  " for name, value in rows[-1].items()))
        print(f"{task}, epsilon {epsilon:g}, {len(rows)} tables")
        for name in rows[0]:
            values = np.array([row.get(name, np.nan) for row in rows])
            worse = ""
            if "one fit" in rows[0] and name != "one fit":
                own = np.array([row["one fit"] for row in rows])
                better, equal = (own < values - 1e-9).sum(), (np.abs(own - values) <= 1e-9).sum()
                ratio = np.exp(np.nanmean(np.log(np.maximum(own, 1e-9) / np.maximum(values, 1e-9))))
                worse = f"  one fit over it: {ratio:.3f}, less error in {better}, equal in {equal}"
            print(f"  {name:14} mean {np.nanmean(values):.4f}  median {np.nanmedian(values):.4f}{worse}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
