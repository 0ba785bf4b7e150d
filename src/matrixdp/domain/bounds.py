"""The public domain of a record: a box, optionally intersected with a ball about its midpoint.

Bounds are public, given by the caller and never taken from the data. Records are clipped to the domain and rounded to a
grid of integers whose ends are the bounds themselves, so that no rounding leaves the domain. Arithmetic is vectorised
so that the bits of each row's result depend on that row alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matrixdp.checks import LARGEST, check_magnitude, check_magnitudes, to_floats
from matrixdp.display import format_number, render_card, render_note, render_table, short_repr
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats

_COLUMNS = 4096  # summed at a time
_INNER = 8192  # length of an inner loop
_EPS = float(np.finfo(float).eps)


@builtin_kind
@dataclass(frozen=True, eq=False)
class Bounds:
    """A public interval for each feature, and optionally an L2 radius about the midpoint.

    Parameters
    ----------
    lower, upper : array_like of shape (m,), or one number for all names
        Finite, `lower` below `upper`, in the units of the data.
    names : sequence of str, optional
        Names of the features, by which the columns of a table are selected.
    radius : float, optional
        Clipping norm: records are scaled into the ball of this radius about the midpoint, in the units of the data.
        With many features, a radius well below the distance to the corners of the box improves accuracy most.

    Privacy
    -------
    Bounds must be chosen without looking at the data.

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

    __repr__ = short_repr

    def __init__(
        self, lower: ArrayLike, upper: ArrayLike, names: Sequence[str] | None = None, radius: float | None = None
    ) -> None:
        if isinstance(names, str):
            raise ParameterError(f"names must be a sequence of strings, one per feature, got {show(names)} instead.")
        object.__setattr__(self, "names", None if names is None else tuple(names))
        object.__setattr__(self, "lower", _limits(lower, "lower", self.names))
        object.__setattr__(self, "upper", _limits(upper, "upper", self.names))
        object.__setattr__(self, "radius", None if radius is None else check_magnitude(radius, "radius"))
        if self.lower.shape != self.upper.shape:
            raise ParameterError(
                f"lower and upper must have the same length, got {self.lower.size} and {self.upper.size} instead."
            )
        inverted = np.flatnonzero(~(self.lower < self.upper))
        if inverted.size:
            i = int(inverted[0])
            raise ParameterError(
                f"lower must be below upper, got {self.lower[i]:g} and {self.upper[i]:g} for {self.label(i)} instead.",
                parameter="upper",
            )
        sizes = np.abs([self.lower / 2, self.upper / 2, self.upper / 2 - self.lower / 2])
        if sizes.max() > LARGEST or sizes[2].min() < 1 / LARGEST:
            raise ParameterError(
                f"bounds must be at most {LARGEST:g}, and at least {1 / LARGEST:g} apart; change the units.",
                parameter="upper",
            )
        if self.names is not None:
            kinds = {type(name).__name__ for name in self.names}
            if len(self.names) != self.size or kinds != {"str"}:
                found = f"{len(self.names)} of type {', '.join(sorted(kinds))}"
                raise ParameterError(f"names must be {self.size} strings, one per feature, got {found} instead.")
            if len(set(self.names)) != self.size:
                raise ParameterError("names must be unique.")

    @classmethod
    def from_dict(cls, features: Mapping[str, tuple[float, float]], radius: float | None = None) -> Bounds:
        """Return bounds from a dictionary of names and pairs (lower, upper).

        Examples
        --------
        >>> Bounds.from_dict({"age": (0, 100), "weight": (30, 200)}).upper.tolist()
        [100.0, 200.0]
        """
        try:
            lower, upper = zip(*features.values(), strict=True)
        except (AttributeError, TypeError, ValueError):
            raise ParameterError("features must map each name to a pair (lower, upper).") from None
        return cls(lower, upper, tuple(features), radius)

    @cached_property
    def size(self) -> int:
        """Number of features m."""
        return int(self.lower.size)

    @cached_property
    def midpoint(self) -> NDArray[np.float64]:
        """Midpoint of the box, of shape (m,)."""
        return self.lower + (self.upper - self.lower) / 2

    @cached_property
    def halfwidths(self) -> NDArray[np.float64]:
        """Distance from the midpoint to the bounds, of shape (m,), rounded up."""
        return np.maximum(_subtract_up(self.upper, self.midpoint), _subtract_up(self.midpoint, self.lower))

    def label(self, i: int) -> str:
        """Return the name of feature `i`, or ``feature i`` if the features have no names."""
        return self.names[i] if self.names else f"feature {i}"

    def reach(self, directions: Floats | None = None) -> Floats:
        """Return the largest distance from the midpoint along each direction (by default each axis), of shape (m,)."""
        extent = self.halfwidths if directions is None else np.abs(directions).T @ self.halfwidths
        return np.minimum(extent, math.inf if self.radius is None else self.radius)

    def steps(self, levels: int) -> NDArray[np.float64]:
        """Return the size of one grid step of each feature, in the units of the data, of shape (m,)."""
        return np.asarray(self.halfwidths / levels)

    def checked(self, records: ArrayLike, *, clip: bool, missing: str) -> NDArray[np.generic]:
        """Return the records as a finite array of shape (n, m), not yet clipped.

        Raises a `DataError` for entries that are not finite if `missing` is 'error' (otherwise they become the
        midpoint), and for records outside of the box unless `clip`.
        """
        array = _as_table(self, records, missing)
        if not np.isfinite(array).all():
            if missing == "error":
                i = int(np.flatnonzero(~np.isfinite(array).all(axis=0))[0])
                name = f"column {self.names[i]!r}" if self.names else self.label(i)
                raise DataError(
                    f"records must be finite, but {name} has an empty, NaN or infinite entry. Drop such records, fill "
                    "them in, or declare that values may be missing: Number(..., missing=True) in Columns, missing = "
                    "true in a schema. (The release of a design can also put the midpoint of the bounds in their "
                    "place: missing='midpoint', or --missing midpoint.)"
                )
            array = np.where(np.isfinite(array), array, self.midpoint)
        if not clip and not np.array_equal(np.clip(array, self.lower, self.upper), array):
            raise DataError("records must be within their bounds when clip=False; use clip=True to clip them.")
        return array

    def centre(self, records: ArrayLike, *, clip: bool = True, missing: str = "error") -> NDArray[np.float64]:
        """Return the records clipped to the domain, minus the midpoint, of shape (n, m)."""
        array = self.checked(records, clip=clip, missing=missing)
        out: Floats = np.subtract(np.clip(array, self.lower, self.upper), self.midpoint)
        if self.radius is None:
            return out
        lengths = np.sqrt(square_lengths(out)) * (1 + _length_slack(self))
        return np.multiply(out, _ball_factor(self, lengths)[:, None])

    def move_last(self, name: str) -> Bounds:
        """The same bounds with the feature of this name as the last one."""
        if self.names is None or name not in self.names:
            raise ParameterError(f"bounds must have a feature of the name {show(name)}.")
        place = self.names.index(name)
        order = [*(i for i in range(self.size) if i != place), place]
        return Bounds(self.lower[order], self.upper[order], [self.names[i] for i in order], self.radius)

    def _repr_html_(self) -> str:
        ends = zip(self.lower.tolist(), self.upper.tolist(), strict=True)
        rows = [(self.label(i), *(format_number(x, 6) for x in pair)) for i, pair in enumerate(ends)]
        note = "" if self.radius is None else render_note(f"records are scaled into the radius {self.radius:g}")
        return render_card("Public bounds", render_table(("", "lower", "upper"), rows), note)

    def quantise(
        self,
        records: ArrayLike,
        levels: int,
        *,
        out: NDArray[np.float64] | None = None,
        clip: bool = True,
        missing: str = "error",
    ) -> NDArray[np.float64]:
        """Return the records clipped to the domain and rounded to a grid, of shape (n, m).

        Grid values are integers from -levels, the lower bound, to levels, the upper bound. `out`, for the result, must
        not share memory with `records`. Errors are those of `checked`: that there is one is private.

        Privacy
        -------
        Each record is mapped independently of the others, and the result times `steps(levels)` is in the box and in
        the ball.
        """
        array = _as_table(self, records, missing)
        out = np.empty(array.shape) if out is None else out
        assert not np.may_share_memory(array, out)  # the records are read again below
        rescale(array, self.midpoint, levels / self.halfwidths, out)  # each bound is a whole number
        inside = clip and out.size and -levels <= out.min() and out.max() <= levels  # false if there is a NaN
        if not inside:
            finite = self.checked(array, clip=clip, missing=missing)
            if finite is not array:
                rescale(finite, self.midpoint, levels / self.halfwidths, out)
            np.clip(out, -levels, levels, out=out)
        return np.rint(out, out=out) if self.radius is None else round_into_ball(self, out, levels)


def check_bounds(bounds: Any) -> None:
    """Raise a `ParameterError` unless `bounds` are `Bounds`."""
    if not isinstance(bounds, Bounds):
        raise ParameterError(
            f"bounds must be Bounds(lower, upper), got {type(bounds).__name__} instead; "
            "bounds are public and never taken from the data."
        )


def check_centre(centre: ArrayLike, bounds: Bounds) -> NDArray[np.float64]:
    """A public point as floats, or a `ParameterError` if it is not one of the space of the records."""
    array = to_floats(centre, "centre")
    if array.shape != (bounds.size,) or not np.isfinite(array).all():
        raise ParameterError(f"centre must be {bounds.size} finite numbers, got shape {array.shape} instead.")
    check_magnitudes(array, "centre", signed=True)
    return array


def _subtract_up(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``a - b``, rounded up."""
    difference = a - b
    shifted = a - difference
    error = (a - (difference + shifted)) + (shifted - b)  # exact (Knuth)
    return np.where(error > 0, np.nextafter(difference, np.inf), difference)


def _limits(values: ArrayLike, name: str, names: tuple[str, ...] | None) -> NDArray[np.float64]:
    if values is None:
        raise ParameterError(f"{name} must be given: bounds are public and never taken from the data.")
    array = to_floats(values, name)
    if array.ndim == 0 and names:
        array = np.full(len(names), array)
    if array.ndim != 1 or not array.size:
        raise ParameterError(f"{name} must be a vector of numbers, one per feature, got shape {array.shape} instead.")
    if not np.isfinite(array).all():
        i = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ParameterError(f"{name} must be finite, got {array[i]} for feature {i} instead.")
    array.flags.writeable = False
    return array


def check_missing(missing: str) -> None:
    """Raise a `ParameterError` unless `missing` is 'error' or 'midpoint'."""
    if not isinstance(missing, str) or missing not in ("error", "midpoint"):
        raise ParameterError(f"missing must be 'error' or 'midpoint', got {show(missing)} instead.")


def round_into_ball(bounds: Bounds, out: Floats, levels: int) -> Floats:
    """Scale rows on the grid of `levels` into the ball and round them, in place."""
    assert bounds.radius is not None
    steps = bounds.steps(levels)
    equal = bool((steps == steps[0]).all())
    lengths = steps[0] * np.sqrt(square_lengths(out)) if equal else np.sqrt(square_lengths(out, steps**2))
    lengths = lengths * (1 + _length_slack(bounds))  # in the units of the data, rounded up
    near = np.flatnonzero(lengths + float(np.linalg.norm(steps)) > bounds.radius)
    # Rounding to nearest may leave the ball and rounding towards zero cannot; well inside, both stay in it.
    factor = np.minimum(_ball_factor(bounds, lengths[near]), 1 - 4 * _EPS)
    near_sphere = np.trunc(out[near] * factor[:, None])
    np.rint(out, out=out)
    out[near] = near_sphere
    return out


def _length_slack(bounds: Bounds) -> float:  # bound on the relative error of the length of a record
    return (bounds.size + 16) * _EPS


def _ball_factor(bounds: Bounds, lengths: Floats) -> Floats:
    """The factor that scales a row of each length into the ball, rounded down; `lengths` are rounded up."""
    assert bounds.radius is not None
    factor = bounds.radius / np.maximum(lengths, bounds.radius) * (1 - _length_slack(bounds))
    return np.where(lengths > bounds.radius, factor, 1.0)


def _as_table(bounds: Bounds, records: ArrayLike, missing: str) -> NDArray[np.generic]:
    """The records as an array of real numbers of shape (n, m)."""
    check_missing(missing)
    array = np.asarray(records)
    if array.dtype.kind not in "biuf":
        raise DataError(f"records must be real numbers, got an array of {array.dtype} instead.")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:  # one long double must not change the other records
        array = array.astype(np.float64)
    if array.ndim != 2 or array.shape[1] != bounds.size:
        raise DataError(f"records must have shape (records, {bounds.size}), got {array.shape} instead.")
    return array


def square_lengths(rows: Floats, weights: Floats | None = None, out: Floats | None = None) -> Floats:
    """Return the sum of the squares of each row, of shape (n,), optionally with a weight for each column.

    Columns are summed in pieces: beyond 8,192 columns, NumPy adds up a single row in another order than several rows,
    so that the bits would depend on the other rows.
    """
    out = np.empty(len(rows)) if out is None else out
    for start in range(0, rows.shape[1], _COLUMNS):
        piece, target = rows[:, start : start + _COLUMNS], out if start == 0 else None
        if weights is None:
            squares = np.einsum("ij,ij->i", piece, piece, out=target)
        else:
            squares = np.einsum("ij,ij,j->i", piece, piece, weights[start : start + _COLUMNS], out=target)
        if start:
            out += squares
    return out


def rescale(array: NDArray[np.generic], shift: Floats, factor: Floats, out: Floats) -> None:
    """Fill `out` with ``(array - shift) * factor``, for arrays of shape (n, m).

    Short rows are joined into longer ones, since NumPy's inner loop runs along a row. Values that overflow become
    infinite, and the caller must clip them.
    """
    rows, size = array.shape
    tiles = max(_INNER // size, 1) if array.flags.c_contiguous and out.flags.c_contiguous else 1
    whole = rows - rows % tiles
    with np.errstate(over="ignore"):
        for some, times in ((slice(whole), tiles), (slice(whole, rows), 1)):
            wide = out[some].reshape(-1, times * size)  # a view
            np.subtract(array[some].reshape(wide.shape), np.tile(shift, times), out=wide)
            np.multiply(wide, np.tile(factor, times), out=wide)
