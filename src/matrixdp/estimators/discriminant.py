"""Private linear discriminant analysis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from matrixdp.adaptive.discriminant import LinearDiscriminant, solve_discriminant
from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.adaptive.regression import joint_moment
from matrixdp.checks import check_flag
from matrixdp.domain.columns import Category, Columns, Level
from matrixdp.errors import ParameterError
from matrixdp.estimators.class_labels import encode_labels, parse_classes, read_labels
from matrixdp.estimators.inputs import (
    check_same_length,
    check_targets_apart,
    is_read_in_parts,
    joint_bounds,
    parse_target_names,
    unused_name,
)
from matrixdp.estimators.moment_estimator import MomentEstimator
from matrixdp.records.expanded_columns import ExpandedColumns
from matrixdp.types import Floats

_MEAN_SHARE = 0.05  # of the constant in the moments of a table: the classes have means of their own


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearDiscriminant(ClassifierMixin, MomentEstimator):  # type: ignore[misc]
    """Private linear discriminant analysis (LDA), a classifier, from one private moment of features and classes.

    Parameters that are not listed here are those of `MomentEstimator` and `PrivateEstimator`. The functions behind it
    are `private_moment` and `matrixdp.adaptive.discriminant.solve_discriminant`.

    Parameters
    ----------
    classes : sequence of labels
        All labels that y may have: public, never taken from the data. A label that is not among them is an error. Only
        with ``simulation=True`` they may be left out.

    Attributes
    ----------
    classes_ : array of shape (classes,)
        In ascending order.
    coef_ : float64 array of shape (classes, m), or (1, m) for two classes
    intercept_ : float64 array of shape (classes,), or (1,)
    means_ : float64 array of shape (classes, m)
    covariance_ : float64 array of shape (m, m)
        Within the classes, over N; positive semidefinite.
    priors_ : float64 array of shape (classes,)
        Shares of the classes.
    expanded_names_, release_
        For tables, as in `MomentEstimator`; the first level of a category is the reference. A missing number is
        replaced by the private mean in predictions.

    Notes
    -----
    **Privacy.** See `PrivateEstimator`; a record is a row of X with its label in y. Predictions use public numbers and
    the records that they are made for.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 5000)
    >>> X = rng.normal(size=(5000, 3)) + 2 * y[:, None]
    >>> seeded = {"random_state": 0, "simulation": True}
    >>> model = PrivateLinearDiscriminant(bounds=(-6, 8), classes=[0, 1], **seeded).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    classes: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Spend the budget on features X, of shape (n, m), and labels y, of shape (n,).

        For records outside of memory, X is their location and y the name of the column of labels; bounds are `Columns`.
        """
        features, ids = self._expanded(reference=True), self._read_ids(X)
        if features is None and not is_read_in_parts(X):
            X = self._validate_features(X)
            labels = read_labels(y)
            check_same_length(X, labels)
            classes = self._parse_classes(labels)
            target = self._class_column("class", range(len(classes)))
            indicators = target.apply({"class": encode_labels(labels, classes)}, np.asarray, fill=None)
            box = joint_bounds(self._feature_bounds(), target.bounds)
            moment = self._fit_moment(np.column_stack([X, indicators]), box, "regression", ids=ids, targets=0)
            found = _solve(moment, X.shape[1])
        else:
            features = features or ExpandedColumns(self._require_columns(), reference=True)
            classes, target, values = self._read_table_labels(X, y, features.columns)
            if self._is_expanded(features):
                records = self._read_expanded(X, [features, target], values)
                box = joint_bounds(features.bounds, target.bounds)
                moment = self._fit_moment(records, box, "regression", features, targets=0)
                found = _solve(moment, len(features.names))
            else:
                m, column = len(features.names), target.columns.columns[0]
                importance = {column.name: max(1.0, len(features.columns.names) / 4)}
                shares = {"importance": importance, "mean_share": _MEAN_SHARE}
                fit = self._fit_table(X, features, [column], values, **shares)
                found = solve_discriminant(fit.joint, m, fit.mean_std[m:])
        self._set_discriminant(classes, found)
        return self

    def _parse_classes(self, labels: NDArray[Any]) -> NDArray[Any]:
        return parse_classes(self.classes, labels, simulation=check_flag(self.simulation, "simulation"))

    @staticmethod
    def _class_column(name: str, levels: Sequence[Level]) -> ExpandedColumns:
        """Indicators of the classes; of the second one alone if there are two."""
        return ExpandedColumns(Columns([Category(name, levels)]), reference=len(levels) == 2)

    def _require_columns(self) -> Columns:
        if not isinstance(self.bounds, Columns):
            raise ParameterError("bounds must be Columns([...]) for records outside of memory.")
        return self.bounds

    def _read_table_labels(
        self, X: Any, y: Any, columns: Columns
    ) -> tuple[NDArray[Any], ExpandedColumns, dict[str, Any] | None]:
        """Classes, their column, and its values unless they are outside of memory."""
        if is_read_in_parts(X):
            names = parse_target_names(y)
            if len(names) > 1:
                raise ParameterError(f"y must be the name of one column of labels, got {len(names)} instead.")
            check_targets_apart(columns.names, names)
            classes = parse_classes(self.classes, None, simulation=False)
            return classes, self._class_column(names[0], classes.tolist()), None
        labels = read_labels(y)
        check_same_length(X, labels)
        classes = self._parse_classes(labels)
        name = unused_name("class", columns.names)
        return classes, self._class_column(name, range(len(classes))), {name: encode_labels(labels, classes)}

    def _set_discriminant(self, classes: NDArray[Any], found: LinearDiscriminant) -> None:
        self.classes_, self.priors_ = classes, found.priors
        self.means_, self.covariance_ = found.means, found.covariance
        self.coef_, self.intercept_ = found.coefficients, found.intercepts
        if len(classes) == 2:
            self.coef_, self.intercept_ = np.diff(self.coef_, axis=0), np.diff(self.intercept_)

    def decision_function(self, X: Any) -> Floats:
        """Scores of shape (n, classes): logarithms of probabilities up to a constant.

        For two classes of shape (n,), the logarithm of the ratio of both, positive for the second.
        """
        check_is_fitted(self)
        scores = self._apply(X, lambda records: np.asarray(records @ self.coef_.T + self.intercept_))
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each record, of shape (n,)."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, of shape (n, classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            second = expit(scores)
            return np.column_stack([1 - second, second])
        return np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities of the classes, of shape (n, classes)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


def _solve(moment: PrivateMoment, features: int) -> LinearDiscriminant:
    joint = replace(joint_moment(moment), sample_size=math.inf)
    fitted = moment.fitted
    return solve_discriminant(joint, features, fitted.mean_std[features:], learned=fitted.learned)
