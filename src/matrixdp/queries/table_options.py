"""Checks and defaults of the options of moments of a table: groups, importance of columns, share of the constant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from matrixdp.checks import check_number
from matrixdp.domain.columns import Columns
from matrixdp.errors import ParameterError, show

OBSERVED_SHARE = 0.125  # of the indicator of a number that may be missing, relative to its value
_LEAST_CONSTANT = 0.01  # squared length of the constant, relative to all columns
_MOST_WEIGHT = 1e6


def default_share(columns: Columns, weight_of: Mapping[str, float], *, grouped: bool) -> float:
    """The share of the constant where it is not given.

    Covariances of n columns want a constant whose squared length is that of all columns over ``sqrt(8 n)``. The sum
    over the k levels of a category is the constant, with a k-th of the category's squared length. With groups, means
    are as important as covariances, and the constant stays as it is.
    """
    numbers = [weight_of.get(one.name, 1.0) * (1 + OBSERVED_SHARE * one.missing) for one in columns.numbers]
    categories = [(weight_of.get(one.name, 1.0), len(one.level_names)) for one in columns.categories]
    rest = sum(numbers) + sum(weight for weight, _ in categories)
    constant = rest / math.sqrt(8 * len(columns.columns))
    if not grouped:
        constant = max(constant - sum(weight / width for weight, width in categories), _LEAST_CONSTANT * rest)
    return constant / (constant + rest)


def check_groups(columns: Columns, by: Any) -> tuple[str, ...]:
    """Names of the columns of the groups, each a category without missing values."""
    if not isinstance(by, Iterable) or isinstance(by, Mapping | bytes):
        raise ParameterError(f"«by» must be names of columns, got {show(by)} instead.")
    names = (by,) if isinstance(by, str) else tuple(by)
    if not all(isinstance(name, str) for name in names):
        raise ParameterError("«by» must be names of columns.")
    if len(set(names)) != len(names):
        raise ParameterError("«by» must name each column once.")
    for name in names:
        if columns.category(name).missing:
            raise ParameterError(
                f"«by» must name columns without missing values, and {name!r} may be missing. Give its missing values "
                "a level of their own in the data, or do not group by it."
            )
    return names


def check_importance(columns: Columns, importance: Any) -> tuple[tuple[str, float], ...]:
    """Pairs of names of columns and their weights."""
    try:
        pairs = tuple((name, weight) for name, weight in (dict(importance)).items())
    except (TypeError, ValueError):
        raise ParameterError(
            f"importance must map names of columns to weights, got {show(importance)} instead."
        ) from None
    for name, weight in pairs:
        if not isinstance(name, str) or name not in columns.names:
            known = ", ".join(columns.names[:20])
            raise ParameterError(f"importance must be of columns among {known}, got {show(name)} instead.")
        check_number(weight, f"importance of {name!r}", at_least=1 / _MOST_WEIGHT, at_most=_MOST_WEIGHT)
    return tuple((name, float(weight)) for name, weight in pairs)
