"""Public classes of a classifier, and the labels of records as their positions. Errors show no private value."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from matrixdp.errors import DataError, ParameterError, show


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
        found = np.asarray(labels) if _are_alike(labels) else np.empty(0)
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


def _are_alike(labels: list[Any]) -> bool:
    texts = [isinstance(label, str) for label in labels]
    return all(texts) or (
        not any(texts) and all(isinstance(label, Real | np.bool_) and label == label for label in labels)
    )


def read_labels(y: Any) -> NDArray[Any]:
    """Labels of records in memory, of shape (n,)."""
    if y is None:
        raise DataError("the estimator requires y to be passed, but the target y is None.")
    found = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    return np.asarray(column_or_1d(found, warn=True))


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
