"""Numbers and error bars with the same decimals wherever they stand in one table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.display.numbers import format_estimate, format_number
from matrixdp.types import Floats

_WIDEST = 2  # powers of ten between error bars that are written with the same decimals
_MOST = 8  # decimals
_LARGEST = 1e9
_COUNT = 0.5  # error bars of counts without decimals


def choose_decimals(value: Floats, std: Floats | None, *, counts: bool = False) -> int | None:
    """Decimals for a table or one of its columns; None where its error bars are too different for that.

    The smallest error bar keeps at least one digit, and two where all are of the same size. Counts have none.

    Examples
    --------
    >>> value = np.array([48.0, 23.0])
    >>> choose_decimals(value, np.array([0.080, 0.053])), choose_decimals(value, np.array([20.0, 3.0]))
    (3, 0)
    """
    if std is None:
        return _choose_without_bars(value)
    found = np.asarray(std)[np.isfinite(value) & np.isfinite(std) & (np.asarray(std) > 0)]
    if not found.size and not counts:
        return _choose_without_bars(value)
    if not found.size or float(np.abs(value[np.isfinite(value)]).max(initial=0.0)) >= _LARGEST:
        return None
    places = 1 - np.floor(np.log10(found))
    low, high = int(places.min()), int(places.max())
    if high - low > _WIDEST or high > _MOST:
        return None
    return 0 if counts and found.min() >= _COUNT else max(high if high == low else high - 1, 0)


def _choose_without_bars(value: Floats) -> int | None:
    """Decimals for numbers without error bars: three digits of those that are alike; None for whole numbers."""
    finite = np.abs(value[np.isfinite(value) & (value != 0)])
    return None if (finite == np.round(finite)).all() else choose_decimals(finite, finite / 10)


def write_estimate(value: float, std: float, decimals: int | None) -> tuple[str, str]:
    """A number and its error bar, which is empty where there is none.

    Examples
    --------
    >>> write_estimate(12345.678, 0.25, 1), write_estimate(1.0, 0.0, 3), write_estimate(-0.0004, 0.12, 2)
    (('12,345.7', '0.2'), ('1', ''), ('0.00', '0.12'))
    """
    if not 0 < std < math.inf or math.isnan(value):
        whole = math.isfinite(value) and value == round(value) and abs(value) < _LARGEST
        if whole or decimals is None or not math.isfinite(value):
            return f"{value:,.0f}" if whole else format_number(value, 4), ""
        return f"{round(value, decimals) + 0.0:,.{decimals}f}", ""
    if decimals is None:
        places = 1 - math.floor(math.log10(std))
        if places > _MOST or abs(value) >= _LARGEST or std >= _LARGEST:
            return format_estimate(value, std)
        value, std, decimals = round(value, places), round(std, places), max(places, 0)
    return f"{round(value, decimals) + 0.0:,.{decimals}f}", f"{round(std, decimals):,.{decimals}f}"


def align_rows(estimate: Estimate, spreads: Sequence[int]) -> Callable[[int, int], str]:
    """Texts for a table in which each row has one unit; an empty text where there is nothing to go by.

    A row has as many decimals as show three digits of the root of the squares of its standard deviations, which are in
    the columns `spreads`.

    Examples
    --------
    >>> table = Estimate(np.array([[170.3241, 0.8032, 0.43]]), np.zeros((1, 3)), ("size",), ("value", "a", "b"))
    >>> [align_rows(table, (1, 2))(0, column) for column in range(3)]
    ['170.324', '0.803', '0.430']
    """

    def write(i: int, j: int) -> str:
        value, spread = float(estimate.value[i, j]), math.hypot(*np.nan_to_num(estimate.value[i, list(spreads)]))
        if not 0 < spread < _LARGEST or not abs(value) < _LARGEST:
            return ""
        places = 2 - math.floor(math.log10(spread))
        return f"{round(value, places) + 0.0:.{max(places, 0)}f}" if places <= _MOST else ""

    return write


def join_estimate(value: float, std: float, decimals: int | None = None) -> str:
    """A number and its error bar in one text.

    Examples
    --------
    >>> join_estimate(0.481, 0.08, 3)
    '0.481 ± 0.080'
    """
    number, bar = write_estimate(value, std, decimals)
    return f"{number} ± {bar}" if bar else number
