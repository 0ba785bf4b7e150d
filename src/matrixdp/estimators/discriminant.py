"""Private linear discriminant analysis."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from matrixdp.adaptive.regression import JointMoment
from matrixdp.adaptive.shrinkage import nearest_of_same_trace
from matrixdp.checks import check_flag
from matrixdp.domain.columns import Category, Columns, Level
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.estimators import inputs
from matrixdp.estimators.base import MomentEstimator
from matrixdp.estimators.table_fit import joint_of
from matrixdp.records.expanded_columns import ExpandedColumns
from matrixdp.types import Floats

_LEAST = 1e-6  # of the share of variance that is within the classes
_MEAN_SHARE = 0.05  # of the constant in the moments of a table: the classes have means of their own


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearDiscriminant(ClassifierMixin, MomentEstimator):  # type: ignore[misc]
    """Private linear discriminant analysis (LDA), a classifier, from one private moment of features and classes.

    Other parameters and the guarantee are those of `MomentEstimator` and `PrivateEstimator`; a record is a row of X
    with its label in y. The functions behind it are `private_moment` and `solve_discriminant`.

    Parameters
    ----------
    classes : sequence of labels
        All labels that y may have: public, never taken from the data. A label that is not among them is an error. Only
        with ``simulation=True`` they may be left out.
    shrinkage : float or sequence of float, optional
        From 0 to less than 1: the covariance within the classes is ``C + shrinkage/(1 - shrinkage) diag(S)``, S the
        covariance of all records. Of several, the fit chooses one as in `PrivateRidge`, at no further cost.

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
    shrinkage_ : float
        The shrinkage that was used.
    expanded_names_, release_
        For tables, as in `MomentEstimator`; the first level of a category is the reference. A missing number is
        replaced by the private mean in predictions.

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
    shrinkage: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Spend the budget on features X, of shape (n, m), and labels y, of shape (n,).

        For records outside of memory, X is their location and y the name of the column of labels; bounds are `Columns`.
        """
        given = 0.0 if self.shrinkage is None else self.shrinkage
        shrinkages = inputs.parse_candidates([given] if isinstance(given, Real) else given, "shrinkage", below=1)
        features, ids, codes = self._expanded(reference=True), self._read_ids(X), None
        levels: Sequence[Level]
        if inputs.is_read_in_parts(X):
            if not isinstance(self.bounds, Columns):
                raise ParameterError("bounds must be Columns([...]) for records outside of memory.")
            features = features or ExpandedColumns(self.bounds, reference=True)
            (name,) = inputs.parse_target_names(y, one="column of labels")
            classes = parse_classes(self.classes, None, simulation=False)
            levels = classes.tolist()
        else:
            X = self._validate_features(X) if features is None else X
            if y is None:
                raise DataError("the estimator requires y to be passed, but the target y is None.")
            labels = column_or_1d(np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y), warn=True)
            inputs.check_same_length(X, labels)
            classes = parse_classes(self.classes, labels, simulation=check_flag(self.simulation, "simulation"))
            name = inputs.unused_name("class", () if features is None else features.columns.names)
            levels, codes = range(len(classes)), encode_labels(labels, classes)[:, None]
        # Of two classes, the indicator of the second one is enough.
        target = ExpandedColumns(Columns([Category(name, levels)]), reference=len(levels) == 2)
        shares: dict[str, Any] = {}
        if features is not None:
            importance = (name, max(1.0, len(features.columns.names) / 4))
            shares = {"importance": (importance,), "mean_share": _MEAN_SHARE}
        moment = self._fit_joint(X, "regression", features, target, codes, ids=ids, **shares)
        joint = replace(joint_of(moment), sample_size=math.inf)
        m = self.n_features_in_ if features is None else len(features.names)
        # In the units of a ridge penalty, which `JointMoment.penalty` divides again.
        own = np.maximum(np.diagonal(joint.covariance)[:m], 0.0) * joint.half[:m] ** 2 * joint.records
        penalties = [own * (one / (1 - one)) for one in shrinkages]
        place = joint.choose(m, penalties) if len(penalties) > 1 else 0
        self.shrinkage_ = shrinkages[place]
        found = solve_discriminant(joint, m, penalties[place])
        self.classes_, self.priors_ = classes, found.priors
        self.means_, self.covariance_ = found.means, found.covariance
        self.coef_, self.intercept_ = found.coefficients, found.intercepts
        if len(classes) == 2:
            self.coef_, self.intercept_ = np.diff(self.coef_, axis=0), np.diff(self.intercept_)
        return self

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
        if scores.ndim > 1:
            return np.asarray(softmax(scores, axis=1))
        second = expit(scores)
        return np.column_stack([1 - second, second])

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities of the classes, of shape (n, classes)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


class LinearDiscriminant(NamedTuple):
    """Scores ``coefficients @ x + intercepts`` of the classes, and what they follow from; all in the data's units."""

    coefficients: Floats  # of shape (classes, m)
    intercepts: Floats  # of shape (classes,)
    means: Floats  # of shape (classes, m)
    covariance: Floats  # of shape (m, m), within the classes; positive semidefinite
    priors: Floats  # of shape (classes,)


def solve_discriminant(joint: JointMoment, features: int, alpha: float | Floats = 0.0) -> LinearDiscriminant:
    """Linear discriminant analysis by regression of the indicators of the classes on the features; post-processing.

    B, the coefficients of that regression, is a posterior mean, so that directions that noise hides get no weight; with
    P the shares of the classes, M their means about the overall mean and S the covariance, ``S^-1 M = B P^-1``. That
    within the classes is ``W = S - M P M'``, hence ``W^-1 M = S^-1 M (I - P M' S^-1 M)^-1`` (docs/adaptive.md). The
    last columns of `joint` are the indicators of all classes, or of the second class where there are two. `alpha` is a
    penalty of that regression, by which S grows.
    """
    m, half = features, joint.half[:features]
    scale = joint.half[m:, None]
    shares, slopes = joint.location[m:], np.array([one for one, _ in joint.regress(m, alpha=alpha)]) * scale
    cross = joint.covariance[m:, :m] * scale * joint.learned
    stds = joint.mean_std[m:] * joint.half[m:]
    if len(shares) == 1:
        shares = np.array([1 - shares[0], shares[0]])
        slopes, cross, stds = np.vstack([-slopes, slopes]), np.vstack([-cross, cross]), np.tile(stds, 2)
    floor = np.maximum(stds, 0.5 / joint.records)
    priors = np.maximum(shares, floor)
    priors = priors / priors.sum()
    divide = priors / (priors**2 + stds**2)  # one over a share, smaller where noise hides it
    total = nearest_of_same_trace(joint.covariance[:m, :m]) + joint.penalty(m, alpha)
    directions = slopes * divide[:, None]
    root = np.sqrt(priors)
    sizes = np.multiply.outer(root, root)
    explained = directions @ total @ directions.T * sizes
    noise = np.sqrt(m) * joint.noise_std * (directions @ joint.noise_shape[:m, :m] @ directions.T) * sizes
    values, vectors = np.linalg.eigh(np.eye(len(root)) - explained + noise)
    inverse = (vectors / np.clip(values, _LEAST, 1.0)) @ vectors.T
    coefficients = (inverse * root / root[:, None]) @ directions
    lengths = np.diagonal(inverse - np.eye(len(root))) / priors
    apart = cross * divide[:, None]
    means = joint.mean[:m] + apart
    covariance = nearest_of_same_trace(total - (apart.T * priors) @ apart)
    coefficients = coefficients / half
    intercepts = np.log(priors) - lengths / 2 - coefficients @ joint.location[:m]
    units = np.multiply.outer(half, half)
    return LinearDiscriminant(coefficients, intercepts, joint.middle[:m] + half * means, covariance * units, priors)


def parse_classes(classes: Any, y: Any, *, simulation: bool) -> NDArray[Any]:
    """The public classes in ascending order; only in a simulation they may be taken from the labels y."""
    if classes is None:
        if not simulation:
            raise ParameterError(
                "classes must be given, as a list of all labels that y may have: they are public and never taken from "
                "the data. Only with simulation=True they are those of y."
            )
        check_classification_targets(y)
        found = np.unique(y)
    else:
        labels = list(classes) if isinstance(classes, Iterable) and not isinstance(classes, str | bytes) else []
        texts = [isinstance(label, str) for label in labels]
        numbers = (isinstance(label, Real | np.bool_) and label == label for label in labels)
        found = np.asarray(labels) if all(texts) or (not any(texts) and all(numbers)) else np.empty(0)
        if found.ndim != 1 or not len(found):
            raise ParameterError(
                f"classes must be a list of labels, all texts or all numbers, got {show(classes)} instead."
            )
        if len(np.unique(found)) != len(found):
            raise ParameterError("classes must be different from each other; one is given twice.")
        found = np.sort(found)
    if len(found) < 2:
        raise ParameterError(f"classes must be at least two, got {len(found)} class instead.")
    return np.asarray(found)


def encode_labels(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Position of each label among the classes, of shape (n,)."""
    known = {label: code for code, label in enumerate(classes.tolist())}
    try:
        found = np.array([known.get(label, -1) for label in y.tolist()], np.intp)
    except TypeError:  # a label that cannot be hashed
        found = np.array([-1])
    if (found < 0).any():
        raise DataError(
            "y has a label that is missing or not among the classes. Add it to classes, or leave such records out."
        )
    return found
