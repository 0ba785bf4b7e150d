"""The best setting and reading of each row, by its mean over the trials, as the paper reports it.

The choice looks at the test error, so it is optimistic, and where it is made on private data it would have to be paid
for; the paper says so itself in a footnote, and the report repeats it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matrixdp.paper.points import Result, part_rows
from matrixdp.paper.rows import Row, Summary, summarise
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class Best:
    """The best of what was tried for a row.

    Attributes
    ----------
    row : Row
    setting : str
        In words.
    values : float64 array of shape (trials,)
    epsilon : float or None
        What it really cost at the column's delta.
    tried : int
        Number of settings times readings.
    """

    row: Row
    setting: str
    values: Floats
    epsilon: float | None
    tried: int

    @property
    def summary(self) -> Summary:
        """Mean and half its interval."""
        return summarise(self.values)


def select_best(part: str, results: Sequence[Result]) -> dict[str, Best]:
    """The best of each row of a part, by key."""
    found: dict[str, Best] = {}
    for result in results:
        row = part_rows(part)[result.point.row]
        best = best_reading(row, result)
        known = found.get(row.key)
        if known is None or best.values.mean() < known.values.mean():
            found[row.key] = best
    return found


def best_reading(row: Row, result: Result) -> Best:
    """The best reading of the trials at one setting."""
    means = result.values.mean(axis=0)
    index = int(means.argmin())
    words = [*(f"{name} {_value(value)}" for name, value in row.settings[result.point.setting].items())]
    words += [row.readings[index]] if row.readings[index] else []
    return Best(row, ", ".join(words), result.values[:, index], result.epsilon, len(row.settings) * len(row.readings))


def _value(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
