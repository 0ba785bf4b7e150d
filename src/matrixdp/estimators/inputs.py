"""Checks of the records, bounds and target names that estimators are given. Their errors show no private value."""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from matrixdp.checks import check_number
from matrixdp.device import is_on_device, load_cupy, to_device_array
from matrixdp.domain.bounds import Bounds
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.records import is_out_of_core, read_numbers
from matrixdp.types import Floats


def is_read_in_parts(X: Any) -> bool:
    """Whether records are read in parts. A memory map is an ordinary array here, unless `open_records` opened it."""
    return is_out_of_core(X) and not isinstance(X, np.memmap)


def check_array(X: Any) -> None:
    """Raise a `DataError` for complex numbers or no table of two dimensions; scikit-learn's errors quote the data."""
    if X is None:  # scikit-learn rejects it itself
        return
    found = X if hasattr(X, "ndim") else np.asarray(X, dtype=object)
    if found.ndim != 2:
        remedy = (
            "Reshape your data: X.reshape(-1, 1) if it has a single feature, X.reshape(1, -1) if it is a single record."
            if found.ndim < 2
            else "Give one row a record, with one number a feature."
        )
        raise DataError(f"Expected 2D array, got {found.ndim}D array instead. {remedy}")
    if isinstance(found, np.ndarray) and (
        found.dtype.kind == "c" or (found.dtype.kind == "O" and any(isinstance(value, complex) for value in found.flat))
    ):
        raise DataError("Complex data not supported: records must be real numbers.")


class NotNumbersError(DataError, TypeError):
    """Records that are not numbers. Also a `TypeError`, as scikit-learn's own estimators raise."""


NOT_NUMBERS = (
    "records must be real numbers: every entry of the argument must be converted from a string, a category, a dict or "
    "a missing value to a number first."
)

SPARSE = (
    "X is sparse, and its bounds are those of dense features. Convert it first (X.toarray()), or, if it has indicators "
    "of categories, describe it by bounds=Columns([Category(...), ...])."
)


def to_numbers(values: Any) -> Any:
    """Arrays and sequences as `release` reads them; data frames are left to scikit-learn."""
    if values is None or hasattr(values, "columns"):
        return values
    with np.errstate(all="ignore"):  # a warning would reveal something about private data
        found = read_numbers(values)
    if found.dtype.kind not in "biuf":
        raise NotNumbersError(NOT_NUMBERS)
    return found


def check_same_length(X: Any, y: Any) -> None:
    """Raise a `DataError` if X and y differ in length. It does not state the lengths, which may be private."""
    first, second = ((len(v),) if isinstance(v, list | tuple) else getattr(v, "shape", ())[:1] for v in (X, y))
    if first and second and first != second:
        raise DataError("X and y must have the same number of records, one row of X to each of y.")


def check_transformed(X: Any, columns: int) -> Floats:
    """Transformed records X as a float64 array of shape (records, columns), for an inverse transform."""
    try:
        found = np.asarray(X, np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 2 or found.shape[1] != columns:
        raise DataError(f"X must have shape (records, {columns}) and hold real numbers.")
    return found


def parse_bounds(bounds: Any, size: int, name: str) -> Bounds:
    """Bounds of `size` features, from `Bounds` or from a pair of numbers or vectors."""
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
            raise error.within(name) from None
    if bounds.size != size:
        raise ParameterError(f"{name} must be for {size} features, as the data have, got {bounds.size} instead.")
    return bounds


def parse_candidates(values: Any, name: str, *, below: float = math.inf) -> list[float]:
    """Numbers that are not negative and smaller than `below`, one or more, among which a fit chooses."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError(f"{name} must be a sequence of numbers, got {show(values)} instead.", parameter=name)
    found = [check_number(value, name, at_least=0, below=below) for value in values]
    if not found:
        raise ParameterError(f"{name} must have at least one number, got none instead.", parameter=name)
    return found


def parse_target_names(y: Any, *, one: str = "") -> tuple[str, ...]:
    """Names of the target columns, where records are read in parts; where there must be one, `one` says of what."""
    names = (y,) if isinstance(y, str) else tuple(y) if isinstance(y, list | tuple) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise ParameterError("y must be the name of the target's column, or a list of names, as X is not in memory.")
    if one and len(names) > 1:
        raise ParameterError(f"y must be the name of one {one}, got {len(names)} instead.")
    return names


def read_targets(y: Any, X: Any) -> Any:
    """Targets in memory as an array of shape (n,) or (n, targets), on the device of the features X."""
    if y is None:
        raise DataError("the estimator requires y to be passed, but the target y is None.")
    check_same_length(X, y)
    if is_on_device(X):
        targets = to_device_array(y) if is_on_device(y) else load_cupy().asarray(to_numbers(y))
        if targets.ndim not in (1, 2) or targets.dtype.kind not in "biuf":
            raise NotNumbersError("y must be an array of real numbers of shape (records,) or (records, targets).")
        return targets
    found = to_numbers(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if found.ndim not in (1, 2) or 0 in found.shape[1:]:
        raise DataError("y must be a vector, or a table with one column for each target.")
    if not np.isfinite(found).all():
        raise DataError("y contains NaN or infinity. Drop such records, or replace them first.")
    return np.asarray(found)


def unused_name(name: str, used: Collection[str]) -> str:
    """The name, with quotes added until it is not among those that are used."""
    while name in used:
        name += "'"
    return name


def joint_bounds(features: Bounds, targets: Bounds, target_names: tuple[str, ...] | None = None) -> Bounds:
    """Bounds of the features followed by the targets, with names if `target_names` are given, and without a radius."""
    lower = np.concatenate([features.lower, targets.lower])
    upper = np.concatenate([features.upper, targets.upper])
    if target_names is None:
        return Bounds(lower, upper)
    if features.names is None:
        raise ParameterError("bounds must have names, by which the columns of X and y are found.")
    check_targets_apart(features.names, target_names)
    return Bounds(lower, upper, (*features.names, *target_names))


def check_targets_apart(features: Sequence[str], targets: Sequence[str]) -> None:
    """Raise a `ParameterError` if a target is among the features."""
    both = [name for name in targets if name in features]
    if both:
        raise ParameterError(f"y must not be among the features, but {both[0]!r} is; leave it out of the bounds.")
