"""Base class of the estimators: parameters, input validation, and the guarantee that a fit reports."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.checks import check_flag, check_integer
from matrixdp.device import is_on_device, load_cupy, to_device_array
from matrixdp.display import render_card, render_facts
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.columns import Columns
from matrixdp.errors import MissingExtraError, ParameterError, install_hint, show
from matrixdp.estimators.inputs import (
    NOT_NUMBERS,
    SPARSE,
    NotNumbersError,
    check_array,
    check_same_length,
    is_read_in_parts,
    parse_bounds,
    to_numbers,
)
from matrixdp.estimators.table_fit import TableFit
from matrixdp.ledger.location import PostgresURL, parse_location
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy, describe_guarantee
from matrixdp.records import Records, as_records, choose_columns, require_rereadable
from matrixdp.release.notebook import SIMULATION

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import validate_data
except ImportError:
    raise MissingExtraError(f"the estimators need scikit-learn. {install_hint('estimators')}") from None


class RepeatedFitWarning(UserWarning):
    """A clone is being fitted, or an estimator is being fitted again: each fit spends its whole budget.

    Scores on private records are not private either: no budget covers them.
    """


@dataclass(kw_only=True, eq=False, repr=False)  # scikit-learn reads the parameters from the generated __init__
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """Base class of all estimators.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of one fit.
    bounds : Bounds or pair (lower, upper)
        Public range of each feature; a pair of numbers applies to every feature. Required, never taken from the data.
        Bounds with names select the columns of a data frame. `Columns` describe a table, with categories and missing
        values where the estimator takes them.
    neighbours : 'replace' or 'add-remove'
    records : int, optional
        The public number of records, for add-remove neighbours; with a `person`, that of people.
    person : str, optional
        The column of X that says whose row it is, if people may have several rows. Each person then counts once, and a
        fit protects all rows of one person. X is a data frame, or what `open_records` takes.
    ledger : path or URL, optional
        The ledger to which each fit is charged, before its first random bit. It is a path so that clones, copies and
        pickles are charged, too; or a ``postgresql://`` URL without a password, which scikit-learn would show.
    dataset : str, optional
        Name of the data set in the ledger.
    allowance : str, optional
        The allowance of the data set that pays for each fit. Without one, what is not allotted pays for it.
    random_state : int, RandomState or None
        Seed of a simulation; an error without ``simulation=True``. Anyone who knows the seed can subtract the noise.
    simulation : bool
        Whether the fit is an experiment that protects nothing and is not charged.

    Attributes
    ----------
    privacy_ : Privacy
        The guarantee.
    neighbours_ : Neighbours
    unit_ : Unit
        What a fit protects: one record, or one person with all their rows.
    mu_ : float
        The budget spent, as Gaussian differential privacy.
    steps_ : tuple of Step
        The budget spent by each step.
    simulation_ : bool

    Notes
    -----
    **Privacy.** One fit is `privacy_`-private for `neighbours_`. Fits add up: a grid search over n settings and k folds
    costs ``n k + 1`` budgets, and outside of a simulation, fitting a clone or fitting again issues a
    `RepeatedFitWarning`. Anything else that is computed from private records, such as a score or the best setting of a
    grid, has no guarantee.
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    bounds: Any = None
    neighbours: str = "replace"
    records: int | None = None
    person: str | None = None
    ledger: Any = None
    dataset: str | None = None
    allowance: str | None = None
    random_state: Any = None
    simulation: bool = False

    def __sklearn_clone__(self) -> Self:
        copy: Self = super().__sklearn_clone__()
        copy._cloned = True
        return copy

    def _fit_options(self) -> dict[str, Any]:
        """Arguments that `prepare_fit` and `prepare_scales` have in common."""
        stream = self._seeded_stream()
        return {
            "privacy": Privacy(self.epsilon, self.delta),
            "records": self.records,
            "neighbours": self.neighbours,
            "person": self.person,
            "stream": stream,
            "simulation": self.simulation,
        }

    def _account_options(self) -> dict[str, Any]:
        """What pays for a fit."""
        return {"ledger": self._require_no_password(), "dataset": self.dataset, "allowance": self.allowance}

    def _require_no_password(self) -> Any:
        """The ledger; a `ParameterError` if it is a text with a password, which scikit-learn would show."""
        if isinstance(self.ledger, str):
            location = parse_location(self.ledger)
            if isinstance(location, PostgresURL) and location.has_password:
                raise ParameterError(
                    "ledger must be a URL without a password, because scikit-learn shows the parameters of an "
                    "estimator. Put the password into ~/.pgpass or PGPASSWORD."
                )
        return self.ledger

    def _seeded_stream(self) -> Stream | None:
        """The stream of a simulation with a seed; None for a stream that is keyed from the operating system."""
        state, simulation = self.random_state, check_flag(self.simulation, "simulation")
        if simulation and self.ledger is not None:
            raise ParameterError(
                "ledger must be left out when simulation=True: a simulation protects nothing and costs nothing."
            )
        if state is None:
            return None
        if isinstance(state, np.random.RandomState):
            state = int(state.randint(2**31 - 1))
        rule = "a non-negative integer, a RandomState or None"
        seed = check_integer(state, "random_state", at_least=0, rule=rule)
        if not simulation:
            raise ParameterError(
                "random_state must be left out of a fit that protects data: anyone who knows the seed can subtract "
                "the noise. For an experiment that protects nothing, give simulation=True as well."
            )
        return Stream(seed=seed)

    def _warn_if_repeated(self) -> None:
        """Warn about a second fit, or the fit of a clone. For methods that `fit` calls."""
        again = not getattr(self, "simulation_", True)
        if not self.simulation and (again or getattr(self, "_cloned", False)):
            what = "is being fitted again" if again else "has a clone that is being fitted, as in a grid search"
            warnings.warn(
                f"{type(self).__name__} {what}. Every fit spends its whole budget again, and scores on private records "
                "have no guarantee at all; fit once, or compare settings with simulation=True on data that need none.",
                RepeatedFitWarning,
                stacklevel=4,  # the caller of `fit`
            )

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._render_guarantee()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = str(super()._repr_html_inner()) + self._render_guarantee()
        return bundle

    def _render_guarantee(self) -> str:
        """What a fit spent, below scikit-learn's own display; empty before."""
        privacy: Privacy | None = getattr(self, "privacy_", None)
        if privacy is None:
            return ""
        guarantee = describe_guarantee(privacy.epsilon, privacy.delta, self.neighbours_, self.unit_)
        facts = [("guarantee", guarantee), ("spent", f"mu {self.mu_:.4g} of Gaussian differential privacy")]
        return render_card("", render_facts(facts), warnings=[SIMULATION] if self.simulation_ else [])

    def _set_guarantee(self, spent: PrivateMoment | FitBudget | TableFit) -> None:
        self.privacy_, self.neighbours_, self.mu_ = spent.privacy, spent.neighbours, spent.mu
        self.unit_, self.steps_, self.simulation_ = spent.unit, spent.steps, spent.simulation

    def _validate_features(self, X: Any, **options: Any) -> Any:
        """Validated features; sparse input, text, NaN and infinities are errors, which show no private value.

        A fit does not look for NaN and infinities here: they are found when the records are rounded to their grid.
        """
        box = self._box()
        if is_on_device(X):
            if options.get("reset", True):
                return self._validate_on_device(X, options)
            X = load_cupy().asnumpy(to_device_array(X))
        if is_read_in_parts(X):
            return self._validate_parts(X, reset=options.get("reset", True))
        if hasattr(X, "toarray"):
            raise NotNumbersError(SPARSE)
        if self.person is not None and self.person in getattr(X, "columns", ()):
            X = X.drop(columns=self.person) if hasattr(X, "iloc") else X.drop(self.person)
        if isinstance(box, Bounds) and box.names is not None and hasattr(X, "columns"):
            X = X[choose_columns(list(X.columns), box.size, box.names)]
        check_array(X, dimensions=2)
        check_array(options.get("y"))
        check_same_length(X, options.get("y"))
        X = to_numbers(np.asarray(X) if isinstance(X, np.memmap) else X)
        if "y" in options:
            options["y"] = to_numbers(options["y"])
        finite = not options.get("reset", True)
        try:
            with np.errstate(all="ignore"):  # a warning would reveal something about private data
                return validate_data(self, X, dtype=np.float64, ensure_all_finite=finite, **options)
        except ValueError as error:
            quotes = any(mark in str(error) for mark in ("could not convert", "array=", "["))
            if "feature names" in str(error) or not quotes:  # all others may quote the data
                raise
        except (TypeError, OverflowError):
            pass
        raise NotNumbersError(NOT_NUMBERS)

    def _validate_on_device(self, X: Any, options: dict[str, Any]) -> Any:
        """Features, and targets if there are any, on a GPU, where a fit sums them."""
        array = to_device_array(X)
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise NotNumbersError("X must be an array of real numbers of shape (records, features).")
        self._set_features(array.shape[1], None)
        if "y" not in options:
            return array
        y = options["y"]
        targets = to_device_array(y) if is_on_device(y) else load_cupy().asarray(to_numbers(y))
        if targets.ndim not in (1, 2) or targets.dtype.kind not in "biuf":
            raise NotNumbersError("y must be an array of real numbers of shape (records,) or (records, targets).")
        check_same_length(array, targets)
        return array, targets

    def _read_ids(self, X: Any) -> Any:
        """The ids of the rows of X in memory; None without a person, and where X is read in parts."""
        if self.person is None or is_read_in_parts(X):
            return None
        if self.person not in getattr(X, "columns", ()):
            raise ParameterError(
                f"X must be a data frame with the column {show(self.person)} of ids, or files with it."
            )
        return X[self.person]

    def _validate_parts(self, X: Any, *, reset: bool) -> Records:
        """Records that are read in parts; their features are those of the bounds."""
        if not reset:
            raise ParameterError("X must be in memory to be transformed or predicted from; give it batch by batch.")
        box = self._box()
        if not isinstance(box, Bounds):
            raise ParameterError("bounds must be Bounds(lower, upper, names=...) for records outside of memory.")
        self._set_features(box.size, box.names)
        return require_rereadable(as_records(X))

    def _set_features(self, count: int, names: Sequence[str] | None) -> None:
        self.n_features_in_ = count
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    @property
    def _table_columns(self) -> Columns | None:
        """The description of a table with categories or missing values; None for numbers alone."""
        found = self.bounds
        plain = not isinstance(found, Columns) or not (found.categories or any(one.missing for one in found.numbers))
        return None if plain else found

    def _box(self) -> Any:
        """The bounds, also where they are given as columns of numbers."""
        if self._table_columns is not None:
            raise ParameterError(
                f"bounds of {type(self).__name__} must be of numbers that are never missing; it takes no categories. "
                "Leave such columns out, or use PrivateCovariance, PrivatePCA, PrivateRidge, PrivateLinearRegression "
                "or PrivateLinearDiscriminant."
            )
        return self.bounds.bounds if isinstance(self.bounds, Columns) else self.bounds

    def _feature_bounds(self) -> Bounds:
        return parse_bounds(self._box(), self.n_features_in_, "bounds")
