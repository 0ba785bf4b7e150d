"""The best setting and variant of each row, by the mean error over the trials, as the paper reports it.

The choice uses the test error, so it is optimistic, and on private data it would cost budget; the paper says so in a
footnote, and the report repeats it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matrixdp.paper.cells import CellResult, part_rows
from matrixdp.paper.rows import Row, Summary, summarise
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class Best:
    """The best setting and variant of a row.

    Attributes
    ----------
    row : Row
    setting : str
        The setting and variant as text.
    values : float64 array of shape (trials,)
    epsilon : float or None
        What it cost at the column's delta.
    tried : int
        Number of settings times variants.
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


def select_best(part: str, results: Sequence[CellResult]) -> dict[str, Best]:
    """The best setting and variant of each row of a part, by key."""
    found: dict[str, Best] = {}
    for result in results:
        row = part_rows(part)[result.cell.row]
        best = best_variant(row, result)
        known = found.get(row.key)
        if known is None or best.values.mean() < known.values.mean():
            found[row.key] = best
    return found


def best_variant(row: Row, result: CellResult) -> Best:
    """The best variant of the trials at one setting."""
    means = result.values.mean(axis=0)
    index = int(means.argmin())
    words = [*(f"{name} {_value(value)}" for name, value in row.settings[result.cell.setting].items())]
    words += [row.variants[index]] if row.variants[index] else []
    return Best(row, ", ".join(words), result.values[:, index], result.epsilon, len(row.settings) * len(row.variants))


def _value(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
