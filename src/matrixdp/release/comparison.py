"""A simulated release beside the numbers without privacy: how large the errors are, and whether error bars hold."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.checks import to_floats
from matrixdp.display import format_number, load_pandas, render_card, render_facts, render_table
from matrixdp.errors import ParameterError, show
from matrixdp.intervals import interval
from matrixdp.plots import BLUE, GREY, ORANGE, open_axes
from matrixdp.types import Floats

NOT_PRIVATE = "Not private: this table shows true values. Use it with data that need no protection."
_ANSWERS = ("matrix", "means", "covariance", "correlation")


@dataclass(frozen=True, eq=False)
class Comparison:
    """True and released numbers, one an entry; each pair of a symmetric matrix once. Nothing in it is private.

    Attributes
    ----------
    rows, columns : tuples of str, of length k
        Names of the row and column of each entry.
    true, released : float64 arrays of shape (k,)
    std : float64 array of shape (k,)
        Error bars of the release; NaN where they are unknown.
    level : float
        Probability that an error bar is made for.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    true: Floats
    released: Floats
    std: Floats
    level: float = 0.95

    @property
    def error(self) -> Floats:
        """Released less true numbers, of shape (k,)."""
        return self.released - self.true

    @property
    def covered(self) -> Floats:
        """1 where the true number is within the error bar, 0 where it is not, NaN where there is no noise; (k,)."""
        low, high = interval(self.released, self.std, self.level)
        inside = ((low <= self.true) & (self.true <= high)).astype(float)
        return np.where((self.std > 0) & np.isfinite(self.released), inside, np.nan)

    @property
    def coverage(self) -> float:
        """Share of the entries with noise that their error bars cover; NaN if there are none."""
        return _mean_of_known(self.covered)

    @property
    def rmse(self) -> float:
        """Root mean square error over the entries that were released."""
        return math.sqrt(_mean_of_known(self.error**2))

    def to_frame(self) -> Any:
        """A pandas data frame with row, column, true, released, error, std, low, high and covered."""
        low, high = interval(self.released, self.std, self.level)
        columns = {"row": list(self.rows), "column": list(self.columns), "true": self.true, "released": self.released}
        bars = {"error": self.error, "std": self.std, "low": low, "high": high, "covered": self.covered}
        return load_pandas().DataFrame({**columns, **bars})

    def plot(self, *, ax: Any = None) -> Any:
        """Released against true numbers, with error bars; orange where they do not cover. Returns matplotlib axes."""
        ax = open_axes(ax)
        low, high = interval(self.released, np.nan_to_num(self.std), self.level)
        missed = self.covered == 0
        for chosen, ink, name in ((~missed, BLUE, "covered"), (missed, ORANGE, "not covered")):
            if chosen.any():
                reach = np.stack([self.released - low, high - self.released])[:, chosen]
                style = {"fmt": "o", "markersize": 4, "capsize": 2, "color": ink, "label": name}
                ax.errorbar(self.true[chosen], self.released[chosen], yerr=reach, **style)
        ends = [float(np.nanmin(self.true)), float(np.nanmax(self.true))]
        ax.plot(ends, ends, color=GREY, linewidth=0.8, zorder=0)
        ax.set_xlabel("true number (not private)")
        ax.set_ylabel(f"released number, bars of {self.level:.0%}")
        ax.set_title("simulation", loc="left")
        ax.legend(frameon=False)
        return ax

    def _repr_html_(self) -> str:
        facts = [
            ("root mean square error", format_number(self.rmse, 4)),
            ("within error bars", f"{self.coverage:.0%} of the entries with noise, {self.level:.0%} expected"),
        ]
        columns = zip(self.true, self.released, self.error, self.std, strict=True)
        numbers = [[format_number(float(x), 4) for x in row] for row in columns]
        marks = [{1.0: "yes", 0.0: "NO"}.get(float(x), "") for x in self.covered]
        rows = [
            (f"{row} × {column}" if column else row, *values, mark)
            for row, column, values, mark in zip(self.rows, self.columns, numbers, marks, strict=True)
        ]
        table = render_table(("", "true", "released", "error", "std", "covered"), rows)
        return render_card("Simulation beside the truth", render_facts(facts), table, warnings=[NOT_PRIVATE])


def compare(release: Any, non_private: ArrayLike, *, answer: str | None = None, level: float = 0.95) -> Comparison:
    """A simulated release beside the numbers that would have been released without privacy.

    Parameters
    ----------
    release : Release, MechanismRelease or another release, made with simulation=True
    non_private : array_like of the shape of the answer
        The true numbers; a data frame in the order of the answer's rows and columns.
    answer : 'matrix', 'means', 'covariance' or 'correlation', optional
        What is compared: by default the released matrix, or the covariance where there is none.
    level : float
        Probability that an error bar is made for.

    Raises
    ------
    ParameterError
        Unless the release is a simulation: the errors of a real release reveal the true numbers.

    Privacy
    -------
    None: the result shows true numbers. For experiments on data that need no protection.
    """
    if getattr(release, "simulation", None) is not True:
        raise ParameterError(
            "release must be a simulation: beside true numbers, a release of private data protects nothing. Make it "
            "from data that need no protection, with simulation=True."
        )
    answer = answer or ("matrix" if hasattr(release, "matrix") else "covariance")
    if answer not in _ANSWERS or not hasattr(release, answer):
        known = ", ".join(name for name in _ANSWERS if hasattr(release, name))
        raise ParameterError(f"answer must be one of {known} for this release, got {show(answer)} instead.")
    found = release._numbers() if answer == "matrix" else getattr(release, answer)()
    value, std, rows, columns = found.value, found.std, found.rows, found.columns
    std = np.broadcast_to(np.nan if std is None else std, value.shape)
    true = to_floats(non_private, "non_private")
    if true.shape != value.shape and true.shape != (*value.shape, 1) and (*true.shape, 1) != value.shape:
        raise ParameterError(f"non_private must have the shape {value.shape} of the answer, got {true.shape} instead.")
    true = true.reshape(value.shape)
    height, width = value.shape
    i, j = np.indices((height, width)).reshape(2, -1)
    if rows == columns and np.array_equal(value, value.T, equal_nan=True) and np.allclose(true, true.T):
        i, j = np.triu_indices(height)
    names = tuple(rows[k] for k in i), tuple(columns[k] for k in j)
    interval(np.zeros(1), np.ones(1), level)  # checks the level
    return Comparison(*names, true[i, j], value[i, j], std[i, j], level)


def _mean_of_known(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else float("nan")
