"""Sizes of benchmarks: in full, or the smallest that still run every line.

``MATRIXDP_BENCHMARKS=smallest`` chooses the smallest. Their figures mean nothing; a test runs them, so that a benchmark
that no longer fits the package is noticed.
"""

from __future__ import annotations

import os
from typing import TypeVar

_T = TypeVar("_T")
_SMALLEST = os.environ.get("MATRIXDP_BENCHMARKS") == "smallest"


def size(full: _T, smallest: _T) -> _T:
    """`full`, or `smallest` if the smallest form was asked for."""
    return smallest if _SMALLEST else full


def few(items: list[_T]) -> list[_T]:
    """`items`, or the first of them if the smallest form was asked for."""
    return size(items, items[:1])
