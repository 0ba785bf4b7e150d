"""Rows of a table in the order of their groups, and within a group in the order of one code."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.integer[Any]]
_SMALL = 1 << 16  # codes below are sorted in linear time


def code_type(count: int) -> type[np.integer[Any]]:
    """A small type of integers for codes from 0 to `count` - 1, whose sums and products are less than `count`."""
    return np.uint16 if count < _SMALL else np.intp


class SortedRows:
    """The order of some rows by group and by a code.

    Parameters
    ----------
    groups : integer array of shape (rows,), optional
        The group of each row; by default all are in group 0.
    codes : integer array of shape (rows,), optional
        By default all are 0.
    count, size : int
        Numbers of groups and of codes.
    """

    def __init__(self, groups: Codes | None, codes: Codes | None, count: int, size: int) -> None:
        self.groups, self._count, self._size = groups, count, size
        self._key = groups if codes is None else join_codes(groups, codes, count, size)

    @cached_property
    def order(self) -> NDArray[np.intp] | None:
        """Where the sorted rows were before, of shape (rows,); None if they need no sorting."""
        key = self._key
        if key is None or key.dtype.itemsize <= 2:
            return None if key is None else np.argsort(key, kind="stable")
        low = np.argsort((key % _SMALL).astype(np.uint16), kind="stable")  # digit by digit, each in linear time
        high = key.take(low) // _SMALL
        return low.take(np.argsort(high.astype(code_type(self._count * self._size // _SMALL + 1)), kind="stable"))

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """Number of rows in each group with each code, of shape (count * size,)."""
        assert self._key is not None
        return np.bincount(self._key, minlength=self._count * self._size)

    def runs(self, rows: int) -> Iterator[tuple[int, int, int]]:
        """Each group that has rows with its first place and the place after its last."""
        if self.groups is None:
            yield 0, 0, rows
            return
        ends = self.sizes.reshape(self._count, self._size).sum(axis=1).cumsum()
        first = 0
        for group in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
            yield group, first, int(ends[group])
            first = int(ends[group])


def join_codes(groups: Codes | None, codes: Codes, count: int, size: int) -> Codes:
    """``groups * size + codes``, one code for both, of shape (rows,)."""
    if groups is None:
        return codes
    kind = code_type(count * size)
    joined = groups.astype(kind)
    joined *= kind(size)
    joined += codes.astype(kind, copy=False)
    return joined
