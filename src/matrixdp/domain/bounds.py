"""The public domain of a record: a box, perhaps with a ball about its midpoint.

Bounds are public knowledge, given by the caller and never taken from the data. Records are moved into the domain and
put on a grid of integers whose ends are the bounds themselves, so that no rounding can leave the domain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matrixdp.domain.row_arithmetic import Rescaling, square_lengths
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.serialise import plain
from matrixdp.types import Floats

_EPS = float(np.finfo(float).eps)
MISSING = ("error", "midpoint")
_LARGEST = 1e60  # so that no product of two records overflows or vanishes


@plain
@dataclass(frozen=True, eq=False)
class Bounds:
    """A public box for each feature, and optionally an L2 radius about its midpoint.

    Parameters
    ----------
    lower, upper : array_like of shape (m,), or one number for all names
        Finite, `lower` below `upper`, in the units of the data.
    names : sequence of str, optional
        Names of the features; columns of a data frame are chosen by them.
    radius : float, optional
        Records are moved into the ball of this radius about the midpoint, in the units of the data. A radius well
        below the corner of the box is the largest gain in accuracy that there is for many features.

    Privacy
    -------
    Must be chosen without looking at the data.

    Examples
    --------
    >>> bounds = Bounds([0, 100], [20, 300], names=["age", "weight"])
    >>> bounds.midpoint.tolist(), bounds.halfwidths.tolist()
    ([10.0, 200.0], [10.0, 100.0])
    >>> bounds.quantise([[20, 200]], levels=8).tolist()
    [[8.0, 0.0]]
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    names: tuple[str, ...] | None = None
    radius: float | None = None

    def __init__(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        names: Sequence[str] | None = None,
        radius: float | None = None,
    ) -> None:
        if isinstance(names, str):
            raise ParameterError(f"names must be a sequence of strings, one a feature, got {show(names)} instead.")
        object.__setattr__(self, "names", None if names is None else tuple(names))
        object.__setattr__(self, "lower", _limits(lower, "lower", self.names))
        object.__setattr__(self, "upper", _limits(upper, "upper", self.names))
        object.__setattr__(self, "radius", None if radius is None else float(radius))
        self._check()

    @classmethod
    def of(cls, features: Mapping[str, tuple[float, float]], radius: float | None = None) -> Bounds:
        """Bounds from pairs (lower, upper) by name.

        Examples
        --------
        >>> Bounds.of({"age": (0, 100), "weight": (30, 200)}).upper.tolist()
        [100.0, 200.0]
        """
        try:
            lower, upper = zip(*features.values(), strict=True)
        except (AttributeError, TypeError, ValueError):
            raise ParameterError("features must map each name to a pair (lower, upper).") from None
        return cls(lower, upper, tuple(features), radius)

    def _check(self) -> None:
        if self.lower.shape != self.upper.shape:
            raise ParameterError(
                f"lower and upper must have the same length, got {self.lower.size} and {self.upper.size} instead."
            )
        inverted = np.flatnonzero(~(self.lower < self.upper))
        if inverted.size:
            i = int(inverted[0])
            raise ParameterError(
                f"lower must be below upper, got {self.lower[i]:g} and {self.upper[i]:g} for {self.label(i)} instead."
            )
        sizes = np.abs([self.lower / 2, self.upper / 2, self.upper / 2 - self.lower / 2])
        if sizes.max() > _LARGEST or sizes[2].min() < 1 / _LARGEST:
            raise ParameterError(f"bounds must be at most {_LARGEST:g}, and {1 / _LARGEST:g} apart; change the units.")
        if self.names is not None:
            kinds = {type(name).__name__ for name in self.names}
            if len(self.names) != self.size or kinds != {"str"}:
                found = f"{len(self.names)} of type {', '.join(sorted(kinds))}"
                raise ParameterError(f"names must be {self.size} strings, one a feature, got {found} instead.")
            if len(set(self.names)) != self.size:
                raise ParameterError("names must differ from each other.")
        if self.radius is not None and not 1 / _LARGEST <= self.radius <= _LARGEST:
            raise ParameterError(
                f"radius must be from {1 / _LARGEST:g} to {_LARGEST:g}, got {show(self.radius)} instead."
            )

    @property
    def size(self) -> int:
        """Number of features m."""
        return int(self.lower.size)

    @cached_property
    def midpoint(self) -> NDArray[np.float64]:
        """Middle of the box, of shape (m,)."""
        return self.lower + (self.upper - self.lower) / 2

    @cached_property
    def halfwidths(self) -> NDArray[np.float64]:
        """Distance from the midpoint to the bounds, of shape (m,), rounded up."""
        return np.maximum(_subtract_up(self.upper, self.midpoint), _subtract_up(self.midpoint, self.lower))

    def label(self, i: int) -> str:
        """Name of feature `i`, or its number."""
        return self.names[i] if self.names else f"feature {i}"

    def index(self, feature: str | int) -> int:
        """Number of the feature that a name or a number means."""
        if isinstance(feature, str):
            if self.names is None or feature not in self.names:
                known = ", ".join(self.names or ()) or "none (bounds were given without names)"
                raise ParameterError(
                    f"feature names must be among the bounds' names ({known}), got {show(feature)} instead."
                )
            return self.names.index(feature)
        if isinstance(feature, bool) or not isinstance(feature, int | np.integer) or not 0 <= feature < self.size:
            raise ParameterError(
                f"a feature must be a name or a number from 0 to {self.size - 1}, got {show(feature)} instead."
            )
        return int(feature)

    def reach(self, directions: Floats | None = None) -> Floats:
        """How far the domain extends from its midpoint along each direction, of shape (m,)."""
        extent = self.halfwidths if directions is None else np.abs(directions).T @ self.halfwidths
        return np.minimum(extent, math.inf if self.radius is None else self.radius)

    def steps(self, levels: int) -> NDArray[np.float64]:
        """Size of one grid step of each feature, of shape (m,)."""
        return np.asarray(self.halfwidths / levels)

    def centre(self, records: ArrayLike, *, clip: bool = True, missing: str = "error") -> NDArray[np.float64]:
        """Records moved into the domain, less the midpoint, of shape (n, m)."""
        array = self.checked(records, clip=clip, missing=missing)
        out: NDArray[np.float64] = np.subtract(np.clip(array, self.lower, self.upper), self.midpoint)
        if self.radius is None:
            return out
        lengths = np.sqrt(square_lengths(out)) * (1 + self._slack)
        return np.multiply(out, self._into_ball(lengths)[:, None])

    def quantise(
        self,
        records: ArrayLike,
        levels: int,
        *,
        out: NDArray[np.float64] | None = None,
        clip: bool = True,
        missing: str = "error",
    ) -> NDArray[np.float64]:
        """Records on a grid of whole numbers from -levels to levels, which stand for the bounds.

        Parameters
        ----------
        records : array_like of shape (n, m)
            Finite numbers.
        levels : int
            Half the number of steps of the grid.
        out : float64 array of shape (n, m), optional
            Where to put the result; memory of its own, since the records may be looked at again.
        clip : bool
            Move records that lie outside into the domain. Otherwise they are an error, which shows that there was
            one: such an error message is itself private.
        missing : 'error' or 'midpoint'
            What NaN and infinities are.

        Privacy
        -------
        Each record is mapped on its own, and the result times `steps(levels)` lies in the box and in the ball.
        """
        array = self._table(records, missing)
        out = np.empty(array.shape) if out is None else out
        assert not np.may_share_memory(array, out)
        _to_grid(self, levels)(array, out)
        inside = clip and out.size and -levels <= out.min() and out.max() <= levels  # NaN is not
        if not inside:
            settled = self.checked(array, clip=clip, missing=missing)
            if settled is not array:
                _to_grid(self, levels)(settled, out)
            np.clip(out, -levels, levels, out=out)
        if self.radius is None:
            return np.rint(out, out=out)
        lengths = self._grid_lengths(out, levels)
        near = np.flatnonzero(lengths + float(np.linalg.norm(self.steps(levels))) > self.radius)
        # Rounding to nearest may leave the ball, rounding towards zero cannot; far inside either will do.
        factor = np.minimum(self._into_ball(lengths[near]), 1 - 4 * _EPS)
        near_sphere = np.trunc(out[near] * factor[:, None])
        np.rint(out, out=out)
        out[near] = near_sphere
        return out

    @property
    def _slack(self) -> float:
        return (self.size + 16) * _EPS  # bounds the relative error of a norm

    def _grid_lengths(self, grid: NDArray[np.float64], levels: int) -> NDArray[np.float64]:
        """Length of each row in the data's units, of shape (n,), rounded up."""
        steps = self.steps(levels)
        if (steps == steps[0]).all():
            lengths = steps[0] * np.sqrt(square_lengths(grid))
        else:
            lengths = np.sqrt(square_lengths(grid, steps**2))
        return np.asarray(lengths * (1 + self._slack))

    def _into_ball(self, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
        """Factor that moves a row of each length, rounded up, into the ball; rounded so that the result lies inside."""
        assert self.radius is not None
        factor = self.radius / np.maximum(lengths, self.radius) * (1 - self._slack)
        return np.where(lengths > self.radius, factor, 1.0)

    def checked(self, records: ArrayLike, *, clip: bool, missing: str) -> NDArray[np.generic]:
        """Records as an array of shape (n, m), finite, and within the bounds unless they may be moved there."""
        array = self._table(records, missing)
        if not _all_finite(array):
            if missing == "error":
                i = int(np.flatnonzero(~np.isfinite(array).all(axis=0))[0])
                name = f"column {self.names[i]!r}" if self.names else self.label(i)
                raise DataError(
                    f"records must be finite, but {name} has an empty, NaN or infinite entry. Drop such records or "
                    "fill them in. (A release can put them in the middle of their bounds: missing='midpoint', or "
                    "--missing midpoint.)"
                )
            array = np.where(np.isfinite(array), array, self.midpoint)
        if not clip and not np.array_equal(np.clip(array, self.lower, self.upper), array):
            raise DataError("records must lie within their bounds when clip=False; say clip=True to move them there.")
        return array

    def _table(self, records: ArrayLike, missing: str) -> NDArray[np.generic]:
        """Records as an array of real numbers of shape (n, m)."""
        check_missing(missing)
        array = np.asarray(records)
        if array.dtype.kind not in "biuf":
            raise DataError(f"records must be real numbers, got an array of {array.dtype} instead.")
        if array.dtype.kind == "f" and array.dtype.itemsize > 8:  # one wide number must not widen the others
            array = array.astype(np.float64)
        if array.ndim != 2 or array.shape[1] != self.size:
            raise DataError(f"records must have shape (records, {self.size}), got {array.shape} instead.")
        return array


def check_bounds(bounds: Any) -> None:
    """Raise a `ParameterError` unless `bounds` are `Bounds`."""
    if not isinstance(bounds, Bounds):
        raise ParameterError(
            f"bounds must be Bounds(lower, upper), got {type(bounds).__name__} instead; "
            "they are public and never taken from the data."
        )


def check_missing(missing: str) -> None:
    """An error unless `missing` says what NaN and infinities are."""
    if not isinstance(missing, str) or missing not in MISSING:
        raise ParameterError(f"missing must be 'error' or 'midpoint', got {show(missing)} instead.")


def _subtract_up(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """``a - b``, rounded up where it is not a float."""
    difference = a - b
    shifted = a - difference
    error = (a - (difference + shifted)) + (shifted - b)  # exact (Knuth)
    return np.where(error > 0, np.nextafter(difference, np.inf), difference)


@lru_cache(maxsize=16)
def _to_grid(bounds: Bounds, levels: int) -> Rescaling:
    return Rescaling(bounds.midpoint, levels / bounds.halfwidths)


def _all_finite(array: NDArray[np.generic]) -> bool:
    """Whether all entries are finite; a sum of squares, which BLAS is quick at, can only err by overflow."""
    if array.dtype.kind != "f":
        return True
    if array.flags.forc and array.dtype.char in "fd":
        flat = array.reshape(-1, order="A")
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would speak of private data
            if np.isfinite(np.dot(flat, flat)):
                return True
    return bool(np.isfinite(array).all())


def _limits(values: ArrayLike, name: str, names: tuple[str, ...] | None) -> NDArray[np.float64]:
    if values is None:
        raise ParameterError(f"{name} must be given: bounds are public and never taken from the data.")
    try:
        array = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a vector of numbers, one a feature.") from None
    if array.ndim == 0 and names:
        array = np.full(len(names), array)
    if array.ndim != 1 or not array.size:
        raise ParameterError(f"{name} must be a vector of numbers, one a feature, got shape {array.shape} instead.")
    if not np.isfinite(array).all():
        i = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ParameterError(f"{name} must be finite, got {array[i]} for feature {i} instead.")
    array.flags.writeable = False
    return array
