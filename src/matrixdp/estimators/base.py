"""What all estimators have in common: parameters, bounds, the guarantee after a fit, and a word about repeated fits."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np

from matrixdp.adaptive.budget import Step
from matrixdp.adaptive.moment import PrivateMoment, private_moment
from matrixdp.domain.bounds import Bounds
from matrixdp.errors import DataError, MissingExtraError, ParameterError, show
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.records import Records, as_records, choose_columns, is_out_of_core, require_rereadable
from matrixdp.types import Floats

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import validate_data
except ImportError:
    raise MissingExtraError(
        "scikit-learn must be installed for the estimators: pip install 'matrixdp[estimators]'."
    ) from None


class RepeatedFitWarning(UserWarning):
    """A clone, or the same estimator once more, is being fitted: each fit spends its whole budget.

    And scores on private records are private: no budget covers them.
    """


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """Parameters and attributes of every estimator here.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of one fit.
    bounds : Bounds or pair (lower, upper)
        Public range of each feature; two numbers stand for all features. Required, never taken from the data. With
        names, the columns of a data frame are chosen by them.
    neighbours : 'replace' or 'add-remove'
    records : int, optional
        The public number of records, for add-remove neighbours.
    directions : 'learned', 'standard' or array_like of shape (m, m)
    ledger : path, optional
        Where each fit is charged, before its first random bit. By path, so that clones, copies and pickles charge, too.
    dataset : str, optional
        Name of the data set in the ledger.
    random_state : int, RandomState or None
        For simulations only: whoever knows the seed can subtract the noise, so nothing is protected or charged.

    Attributes
    ----------
    privacy_ : Privacy
        The guarantee.
    neighbours_ : Neighbours
    mu_ : float
        What was spent, as Gaussian differential privacy.
    steps_ : tuple of Step
        What each step spent.
    simulation_ : bool

    Privacy
    -------
    One fit is `privacy_`-private for `neighbours_`. Fits add up: a grid search over n settings and k folds costs
    ``n k + 1`` budgets, and fitting a clone, or fitting again, warns about it outside of a simulation
    (`RepeatedFitWarning`). What else is computed from private records, such as a score or the best of a grid, has no
    guarantee.
    """

    epsilon: float
    delta: float
    bounds: Any
    neighbours: str
    records: int | None
    directions: Any
    ledger: Any
    dataset: str | None
    random_state: Any
    privacy_: Privacy
    neighbours_: Neighbours
    mu_: float
    steps_: tuple[Step, ...]
    simulation_: bool

    def __sklearn_clone__(self) -> Self:
        copy: Self = super().__sklearn_clone__()
        copy._cloned = True
        return copy

    def _moment(self, records: Floats | Records, bounds: Bounds, aim: str) -> PrivateMoment:
        """The private moment that an estimator is made from; sets the guarantee's attributes."""
        simulation, stream = self._stream()
        self._warn(simulation)
        moment = private_moment(
            records,
            bounds,
            Privacy(self.epsilon, self.delta),
            aim=aim,
            directions=self.directions,
            records=self.records,
            neighbours=self.neighbours,
            ledger=self.ledger,
            dataset=self.dataset,
            stream=stream,
            simulation=simulation,
        )
        self.privacy_, self.neighbours_, self.mu_ = moment.privacy, moment.neighbours, moment.mu
        self.steps_, self.simulation_ = moment.steps, moment.simulation
        return moment

    def _stream(self) -> tuple[bool, Stream | None]:
        state = self.random_state
        if state is None:
            return False, None
        if isinstance(state, np.random.RandomState):
            state = int(state.randint(2**31 - 1))
        if isinstance(state, bool) or not isinstance(state, int | np.integer) or state < 0:
            raise ParameterError(
                f"random_state must be a non-negative integer, a RandomState or None, got {show(state)} instead."
            )
        if self.ledger is not None:
            raise ParameterError(
                "ledger must be left out when random_state is given: that is a simulation, which protects nothing and "
                "costs nothing."
            )
        return True, Stream(seed=int(state))

    def _warn(self, simulation: bool) -> None:
        again = not getattr(self, "simulation_", True)
        if (again or getattr(self, "_cloned", False)) and not simulation:
            what = "is being fitted again" if again else "has a clone that is being fitted, as in a grid search"
            warnings.warn(
                f"{type(self).__name__} {what}. Every fit spends its whole budget again, and scores on private records "
                "have no guarantee at all; fit once, or compare settings with random_state on data that need none.",
                RepeatedFitWarning,
                stacklevel=4,
            )

    def _features(self, X: Any, **options: Any) -> Any:
        """Checked features; sparse input, text, NaN and infinities are errors, which show no private value.

        Records of a fit are looked at once: NaN and infinities are found when they are put on their grid.
        """
        if elsewhere(X):
            return self._outside(X, reset=options.get("reset", True))
        if isinstance(self.bounds, Bounds) and self.bounds.names is not None and hasattr(X, "columns"):
            X = X[choose_columns(list(X.columns), self.bounds.size, self.bounds.names)]
        _check_kind(X, dimensions=2)
        _check_kind(options.get("y"))
        _check_lengths(X, options.get("y"))
        try:
            return validate_data(
                self,
                np.asarray(X) if isinstance(X, np.memmap) else X,
                dtype=np.float64,
                ensure_all_finite=not options.get("reset", True),
                **options,
            )
        except ValueError as error:
            quotes = any(mark in str(error) for mark in ("could not convert", "array=", "["))
            if "feature names" in str(error) or not quotes:  # all others may quote the data
                raise
        raise DataError("records must be real numbers; encode text and categories first.")

    def _outside(self, X: Any, *, reset: bool) -> Records:
        """Records outside of memory, whose features are those of the bounds."""
        if not reset:
            raise ParameterError("X must be in memory to be transformed or predicted from; give it batch by batch.")
        if not isinstance(self.bounds, Bounds):
            raise ParameterError("bounds must be Bounds(lower, upper, names=...) for records outside of memory.")
        self.n_features_in_ = self.bounds.size
        if self.bounds.names is not None:
            self.feature_names_in_ = np.array(self.bounds.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return require_rereadable(as_records(X))

    def _feature_bounds(self) -> Bounds:
        return as_bounds(self.bounds, self.n_features_in_, "bounds")


def elsewhere(X: Any) -> bool:
    """Whether records are to be read in parts; a memory map is an array here, unless it comes by `open_records`."""
    return is_out_of_core(X) and not isinstance(X, np.memmap)


def _check_kind(values: Any, *, dimensions: int | None = None) -> None:
    """scikit-learn's own errors for these cases quote the data."""
    if values is None or hasattr(values, "toarray"):  # sparse input has an error of its own
        return
    found = values if hasattr(values, "ndim") else np.asarray(values, dtype=object)
    if dimensions is not None and found.ndim != dimensions:
        remedy = (
            "Reshape your data: X.reshape(-1, 1) if it has a single feature, X.reshape(1, -1) if it is a single record."
            if found.ndim < dimensions
            else "Give one row a record, with one number a feature."
        )
        raise DataError(f"Expected {dimensions}D array, got {found.ndim}D array instead. {remedy}")
    if isinstance(found, np.ndarray) and (
        found.dtype.kind == "c" or (found.dtype.kind == "O" and any(isinstance(value, complex) for value in found.flat))
    ):
        raise DataError("Complex data not supported: records must be real numbers.")


def _check_lengths(X: Any, y: Any) -> None:
    """How many there are may be private, and is not said."""
    first, second = ((len(v),) if isinstance(v, list | tuple) else getattr(v, "shape", ())[:1] for v in (X, y))
    if first and second and first != second:
        raise DataError("X and y must have the same number of records, one row of X to each of y.")


def as_bounds(bounds: Any, size: int, name: str) -> Bounds:
    """Bounds of `size` features from bounds or a pair of numbers or vectors.

    Examples
    --------
    >>> as_bounds((0, 10), 2, "bounds").upper.tolist()
    [10.0, 10.0]
    """
    if bounds is None:
        raise ParameterError(
            f"{name} must be given, as Bounds(lower, upper) or a pair (lower, upper): "
            "they are public and never taken from the data."
        )
    if not isinstance(bounds, Bounds):
        try:
            lower, upper = (np.broadcast_to(np.asarray(side, np.float64), (size,)) for side in bounds)
        except (TypeError, ValueError):
            raise ParameterError(
                f"{name} must be Bounds(lower, upper) or a pair (lower, upper) of numbers or of vectors of length "
                f"{size}, all lower ends before all upper ones, got {show(bounds)} instead."
            ) from None
        try:
            return Bounds(lower, upper)
        except ParameterError as error:
            message = f"{name}: {error}"
        raise ParameterError(message)
    if bounds.size != size:
        raise ParameterError(f"{name} must be for {size} features, as the data have, got {bounds.size} instead.")
    return bounds
