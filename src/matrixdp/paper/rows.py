"""Rows of a table: what to run, with which settings, and how trials are summarised."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from matrixdp.noise import Stream
from matrixdp.paper.guarantee import Guarantee, Spent

Setting = Mapping[str, Any]
NO_SETTING: tuple[Setting, ...] = ({},)


class Trial(NamedTuple):
    """One trial: an error for each way of evaluating the release, and what the release cost."""

    values: list[float]
    spent: Spent | None


Runner = Callable[[int, Stream], Trial]


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes
    ----------
    key : str
        Unique in its part.
    label : str
    group : str
        'reference', 'paper', 'calibration', 'beyond', 'registered', 'adaptive' or 'weights'.
    column : Guarantee or None
        What the table states for it; None where nothing is private.
    build : callable
        From a setting to a function of (trial, stream).
    settings : tuple of mappings
        Free parameters of the mechanism, swept; JSON values only.
    variants : tuple of str
        Names of a trial's errors: free parameters of how a release is evaluated, swept as well.
    source : str
        A hash of the code of a mechanism that is not part of matrixdp; stored trials are reused only if it is the same.
    """

    key: str
    label: str
    group: str
    column: Guarantee | None
    build: Callable[[Setting], Runner]
    settings: tuple[Setting, ...] = NO_SETTING
    variants: tuple[str, ...] = ("",)
    source: str = ""


class Summary(NamedTuple):
    """Mean and half the width of its 95% confidence interval."""

    mean: float
    half: float


def summarise(values: np.ndarray[Any, Any]) -> Summary:
    """Mean of the trials and half the width of Student's 95% interval; NaN for one trial.

    Examples
    --------
    >>> summary = summarise(np.array([1.0, 2.0, 3.0]))
    >>> summary.mean, round(summary.half, 3)
    (2.0, 2.484)
    """
    n = values.size
    if n < 2:
        return Summary(float(values.mean()), math.nan)
    quantile = float(stdtrit(n - 1, 0.975))
    return Summary(float(values.mean()), quantile * float(values.std(ddof=1)) / math.sqrt(n))
