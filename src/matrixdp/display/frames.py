"""Arrays with names and error bars as pandas data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from matrixdp.checks import check_number
from matrixdp.errors import MissingExtraError, install_hint
from matrixdp.types import Floats


def load_pandas() -> Any:
    """The module pandas, or a `MissingExtraError`."""
    try:
        import pandas
    except ImportError:
        raise MissingExtraError(f"data frames need pandas. {install_hint('plot')}") from None
    return pandas


def interval(value: Floats, std: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Bounds that contain the number without noise with probability `level`, for normal noise."""
    reach = float(ndtri((1 + check_number(level, "level", above=0, below=1)) / 2)) * std
    return value - reach, value + reach


def make_frame(value: Floats, rows: Sequence[str], columns: Sequence[str]) -> Any:
    """A matrix as a data frame of the same shape."""
    return load_pandas().DataFrame(np.array(value), index=list(rows), columns=list(columns))


def make_bars_frame(value: Floats, std: Floats | None, names: Sequence[str], level: float = 0.95) -> Any:
    """A vector as a data frame with the columns value, std, low and high, one row a name."""
    return load_pandas().DataFrame(_bars(value, std, level), index=list(names))


def make_long_frame(
    value: Floats, std: Floats | None, rows: Sequence[str], columns: Sequence[str], level: float = 0.95
) -> Any:
    """A matrix as a data frame with one row an entry: row, column, value, std, low and high."""
    entries = {"row": np.repeat(list(rows), len(columns)), "column": np.tile(list(columns), len(rows))}
    flat = None if std is None else np.ravel(np.broadcast_to(std, np.shape(value)))
    return load_pandas().DataFrame({**entries, **_bars(np.ravel(value), flat, level)})


def _bars(value: Floats, std: Floats | None, level: float) -> dict[str, Floats]:
    std = np.full(np.shape(value), np.nan) if std is None else np.asarray(std)
    low, high = interval(np.asarray(value), std, level)
    return {"value": np.array(value), "std": np.array(std), "low": low, "high": high}
