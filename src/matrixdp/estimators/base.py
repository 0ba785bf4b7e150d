"""Base classes of the estimators: parameters, input validation, fits, and the guarantee that a fit reports."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from matrixdp.adaptive.budget import FitBudget, Step
from matrixdp.adaptive.moment import PrivateMoment, prepare_fit, public_records
from matrixdp.checks import check_flag, check_integer
from matrixdp.design import make_design
from matrixdp.device import is_on_device, load_cupy, to_device_array
from matrixdp.display import render_card, render_facts
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.columns import Column, Columns
from matrixdp.domain.person import Person
from matrixdp.errors import MissingExtraError, ParameterError, install_hint, show
from matrixdp.estimators import inputs
from matrixdp.estimators.table_fit import TableFit
from matrixdp.ledger.location import PostgresURL, parse_location
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy, describe_guarantee
from matrixdp.queries import TableMoments
from matrixdp.records import Blocks, Records, as_records, choose_columns, require_rereadable, with_ids
from matrixdp.records.expanded_columns import ExpandedColumns, ExpandedRecords, expand_block, read_table
from matrixdp.records.people import number_of_people
from matrixdp.records.records import MappedRecords, count_records
from matrixdp.release.charging import release_fit
from matrixdp.release.released import SIMULATION
from matrixdp.release.result import Release
from matrixdp.types import Floats

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import validate_data
except ImportError:
    raise MissingExtraError(f"the estimators need scikit-learn. {install_hint('estimators')}") from None

from matrixdp.estimators.search import RepeatedFitWarning, announce_search, list_calls  # which needs scikit-learn

_OUTSIDE = "X must be in memory to be transformed or predicted from; give it batch by batch."


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
    costs ``n k + 1`` budgets (`search_cost`). It issues one `RepeatedFitWarning` with the total, and if the ledger
    cannot pay it, raises a `BudgetExceededError` before the first charge. Outside of a search and a simulation, fitting
    a clone or fitting again issues the warning, too. Anything else that is computed from private records, such as a
    score or the best setting of a grid, has no guarantee.
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
        # A search clones its estimator once before its first fit, and fits clones of that clone.
        copy._announced = getattr(self, "_announced", False) or announce_search(self)
        return copy

    def _start_fit(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments that all fits have in common, and what pays for one; warns about a second one."""
        stream, ledger = self._seeded_stream(), self.ledger
        location = None if ledger is None else parse_location(ledger)  # and no open one: copies charge the same
        if isinstance(location, PostgresURL) and location.has_password:
            raise ParameterError(
                "ledger must be a URL without a password, because scikit-learn shows the parameters of an estimator. "
                "Put the password into ~/.pgpass or PGPASSWORD."
            )
        again = not getattr(self, "simulation_", True)
        alone = getattr(self, "_cloned", False) and not getattr(self, "_announced", False)
        if not self.simulation and (again or alone):
            what = "is being fitted again" if again else "has a clone that is being fitted, as in a grid search"
            warnings.warn(
                f"{type(self).__name__} {what}. Every fit spends its whole budget again, and scores on private records "
                "have no guarantee at all; fit once, or compare settings with simulation=True on data that need none.",
                RepeatedFitWarning,
                stacklevel=len(list_calls()),
            )
        self._announced = False  # for clones of what was fitted, such as the best estimator of a search
        options = {name: getattr(self, name) for name in ("records", "neighbours", "person", "simulation")}
        account = {"ledger": ledger, "dataset": self.dataset, "allowance": self.allowance}
        return {"privacy": Privacy(self.epsilon, self.delta), "stream": stream, **options}, account

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

    def _repr_html_inner(self) -> str:
        """scikit-learn's own display, and what a fit spent below."""
        own, privacy = str(super()._repr_html_inner()), getattr(self, "privacy_", None)
        if privacy is None:
            return own
        guarantee = describe_guarantee(privacy.epsilon, privacy.delta, self.neighbours_, self.unit_)
        facts = [("guarantee", guarantee), ("spent", f"mu {self.mu_:.4g} of Gaussian differential privacy")]
        return own + render_card("", render_facts(facts), warnings=[SIMULATION] if self.simulation_ else [])

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | ({"text/html": self._repr_html_inner()} if "text/html" in bundle else {})

    def _set_guarantee(self, spent: PrivateMoment | FitBudget | Release, steps: tuple[Step, ...]) -> None:
        self.privacy_, self.neighbours_, self.mu_ = spent.privacy, spent.neighbours, spent.mu
        self.unit_, self.steps_, self.simulation_ = spent.unit, steps, spent.simulation

    def _validate_features(self, X: Any, *, reset: bool = True) -> Any:
        """Validated features; errors show no private value.

        A fit does not look for NaN and infinities here: they are found when the records are rounded to their grid.
        """
        box = self._box()
        if is_on_device(X) and reset:  # where a fit sums them
            array = to_device_array(X)
            if array.ndim != 2 or array.dtype.kind not in "biuf":
                raise inputs.NotNumbersError("X must be an array of real numbers of shape (records, features).")
            self._set_features(array.shape[1], None)
            return array
        if is_on_device(X):
            X = load_cupy().asnumpy(to_device_array(X))
        if inputs.is_read_in_parts(X):
            if not reset:
                raise ParameterError(_OUTSIDE)
            if not isinstance(box, Bounds):
                raise ParameterError("bounds must be Bounds(lower, upper, names=...) for records outside of memory.")
            self._set_features(box.size, box.names)
            return require_rereadable(as_records(X))
        if hasattr(X, "toarray"):
            raise inputs.NotNumbersError(inputs.SPARSE)
        if self.person is not None and self.person in getattr(X, "columns", ()):
            X = X.drop(columns=self.person) if hasattr(X, "iloc") else X.drop(self.person)
        if isinstance(box, Bounds) and box.names is not None and hasattr(X, "columns"):
            X = X[choose_columns(list(X.columns), box.size, box.names)]
        inputs.check_array(X)
        X = inputs.to_numbers(np.asarray(X) if isinstance(X, np.memmap) else X)
        # Where the number of records is private, there may be none: an error would reveal it at no cost.
        least = 0 if reset and Neighbours.parse(self.neighbours) is Neighbours.ADD_REMOVE else 1
        options = {"reset": reset, "ensure_all_finite": not reset, "ensure_min_samples": least}
        try:
            with np.errstate(all="ignore"):  # a warning would reveal something about private data
                return validate_data(self, X, dtype=np.float64, **options)
        except ValueError as error:
            quotes = any(mark in str(error) for mark in ("could not convert", "array=", "["))
            if "feature names" in str(error) or not quotes:  # all others may quote the data
                raise
        except (TypeError, OverflowError):
            pass
        raise inputs.NotNumbersError(inputs.NOT_NUMBERS)

    def _read_ids(self, X: Any) -> Any:
        """The ids of the rows of X in memory; None without a person, and where X is read in parts."""
        if self.person is None or inputs.is_read_in_parts(X):
            return None
        if self.person not in getattr(X, "columns", ()):
            raise ParameterError(
                f"X must be a data frame with the column {show(self.person)} of ids, or files with it."
            )
        return X[self.person]

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
        return inputs.parse_bounds(self._box(), self.n_features_in_, "bounds")


@dataclass(kw_only=True, eq=False, repr=False)
class MomentEstimator(PrivateEstimator):
    """Base class of the estimators that are computed from one private moment.

    Other parameters and the guarantee are those of `PrivateEstimator`.

    With ``bounds=Columns(...)`` the features are the numbers of a table and an indicator for each level of a category.
    If numbers may be missing, the moment is one release of `TableMoments`, and means and covariances are those of the
    records that have the values.

    Parameters
    ----------
    directions : 'learned', 'standard' or array_like of shape (m, m)
        Along which the final noise is shaped; a matrix has orthonormal columns, for features scaled to [-1, 1]. Not
        used where numbers may be missing.

    Attributes
    ----------
    expanded_names_ : array of str
        Names of the features of a fit to a table: those of numbers, and "column=level".
    release_ : Release
        The moments of a table whose numbers may be missing, from which further answers follow at no cost.
    """

    directions: Any = "learned"

    def _expanded(self, *, reference: bool) -> ExpandedColumns | None:
        """The features of a table with categories or missing values; None for numbers alone."""
        return None if self._table_columns is None else ExpandedColumns(self._table_columns, reference)

    def _fit_features(self, X: Any, aim: str, check: Callable[[int], Any] | None = None) -> PrivateMoment | TableFit:
        """Spend the budget on a moment of the features alone; `check` is called with their number before."""
        features, ids = self._expanded(reference=False), self._read_ids(X)
        X = self._validate_features(X) if features is None else X
        if check is not None:
            check(self.n_features_in_ if features is None else len(features.names))
        return self._fit_joint(X, aim, features, ids=ids)

    def _fit_joint(
        self,
        X: Any,
        aim: str,
        features: ExpandedColumns | None,
        last: ExpandedColumns | None = None,
        values: Any = None,
        *,
        ids: Any = None,
        targets: int = 0,
        **design: Any,
    ) -> PrivateMoment | TableFit:
        """Spend the budget on one moment of the features, and perhaps of the columns `last` that follow them.

        Without `features`, X holds validated numbers; a table is expanded, and fitted like numbers. Where its numbers
        may be missing, or people have several rows, it is one release of `TableMoments`, with the options `design`.
        `values`, of shape (n, columns), has the columns `last`, unless X is outside of memory; `targets` of them are
        predicted.
        """
        columns = () if last is None else tuple(last.columns)
        names, outside = tuple(column.name for column in columns), values is None
        table = {} if outside else dict(zip(names, values.T, strict=True))
        if features is None:
            box = self._feature_bounds()
            bounds = box if last is None else inputs.joint_bounds(box, last.bounds, names if outside else None)
            if last is not None and last.columns.categories:
                values = expand_block((last,), table)
            X = X if outside else np.column_stack([X, values])
            return self._fit_moment(X, bounds, aim, ids=ids, targets=targets)
        if outside:
            inputs.check_targets_apart(features.columns.names, names)
        if self.person is not None or any(number.missing for number in features.columns.numbers):
            return self._fit_table(X, features, columns, table, **design)
        parts = (features,) if last is None else (features, last)
        bounds = features.bounds if last is None else inputs.joint_bounds(features.bounds, last.bounds)
        records: Records
        if inputs.is_read_in_parts(X):
            records = MappedRecords(_select(X, Columns((*features.columns, *columns))), partial(expand_block, parts))
        else:
            records = Blocks(ExpandedRecords({**read_table(X, features.columns), **table}, parts).blocks)
        return self._fit_moment(records, bounds, aim, features, targets=targets)

    def _fit_moment(
        self,
        records: Floats | Records,
        bounds: Bounds,
        aim: str,
        features: ExpandedColumns | None = None,
        ids: Any = None,
        targets: int = 1,
    ) -> PrivateMoment:
        """Spend the budget on a private moment of expanded records, and set the attributes of the guarantee."""
        records = records if ids is None else with_ids(records, ids)
        options, account = self._start_fit()
        prepared = prepare_fit(records, bounds, aim=aim, targets=targets, directions=self.directions, **options)
        prepared.warn()
        moment: PrivateMoment = release_fit(prepared, **account)
        self._set_guarantee(moment, moment.steps)
        self._set_expanded(features)
        self.__dict__.pop("release_", None)  # of an earlier fit
        return moment

    def _fit_table(
        self, X: Any, features: ExpandedColumns, last: tuple[Column, ...], values: Mapping[str, Any], **design: Any
    ) -> TableFit:
        """Spend the budget on one release of `TableMoments`, with options `design`, and set the guarantee."""
        columns, who = Columns((*features.columns, *last)), Person.parse(self.person)
        data: Any
        if inputs.is_read_in_parts(X):
            data = _select(X, columns, self.person)
            found = sum(data.map(count_records))
        else:
            ids = {} if self.person is None else {self.person: self._read_ids(X)}
            data = {**read_table(X, features.columns), **values, **ids}
            found = len(data[columns.names[0]])
        options, account = self._start_fit()
        if who is not None:
            found = number_of_people(as_records(data), who, rows=found)
        neighbours = Neighbours.parse(options["neighbours"])
        records = public_records(options["records"], found, neighbours)
        query = TableMoments(columns, records, neighbours=neighbours, person=who, **design)
        noise = {name: options[name] for name in ("stream", "simulation")}
        release = make_design(query, options["privacy"]).release(data, **account, **noise)
        fit = TableFit(release, features, tuple(column.name for column in last))
        share = (release.mu / release.privacy.mu) ** 2
        self._set_guarantee(release, (Step("moments of the table", release.mu, share, 1),))
        self._set_expanded(features, fit.mean)
        self.release_ = release
        return fit

    def _set_expanded(self, features: ExpandedColumns | None, fill: Floats | None = None) -> None:
        self._features, self._fill = features, fill
        if features is None:
            self.__dict__.pop("expanded_names_", None)  # of an earlier fit
            return
        self._set_features(len(features.columns.names), features.columns.names)
        self.expanded_names_ = np.array(features.names, dtype=object)

    def _apply(self, X: Any, function: Callable[[Floats], Floats]) -> Floats:
        """Result of a function on records X, with the features that the fit had."""
        features = self._features
        if features is None:
            return function(self._validate_features(X, reset=False))
        if inputs.is_read_in_parts(X):
            raise ParameterError(_OUTSIDE)
        return features.apply(X, function, fill=self._fill)


def _select(X: Any, columns: Columns, person: str | None = None) -> Records:
    """The described columns of records outside of memory, and the ids of people."""
    ids = () if person is None else (person,)
    texts = (*(column.name for column in columns.categories), *ids)
    return require_rereadable(as_records(X)).select((*columns.names, *ids), texts=texts)
