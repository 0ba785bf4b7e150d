"""Simulations: a release beside the numbers without privacy, and all mechanisms for one query side by side."""

import csv
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from matrixdp.checks import check_integer, to_floats
from matrixdp.design import make_design
from matrixdp.display import format_number, format_table, load_pandas, render_card, render_facts, render_table
from matrixdp.domain.bounds import Bounds
from matrixdp.errors import ParameterError, show
from matrixdp.intervals import interval
from matrixdp.noise import Stream
from matrixdp.plots import open_axes, plot_bars
from matrixdp.privacy import Privacy
from matrixdp.queries import Identity, MatrixQuery, SecondMoment
from matrixdp.release.registered import MechanismRelease, check_arguments, registered_mechanisms
from matrixdp.types import Floats

SIMULATED = "Simulated releases, which protect nothing."
NOT_PRIVATE = "Not private: the errors are of true values. Use it with data that need no protection."
_ANSWERS = ("matrix", "means", "covariance", "correlation")
_TASKS = ("records", "second-moment")  # of mechanisms that estimate the entries of an answer
_HEAD = ("mechanism", "epsilon", "delta", "noise std", "error", "exact noise")
_LATEX = {ord("_"): r"\_", ord("%"): r"\%", ord("#"): r"\#"}
_CALIBRATIONS = {
    "exact": "matrixdp",
    "theorem2": "MVG, as printed",
    "theorem2-corrected": "MVG, corrected",
    "theorem2-psd": "MVG, longer version",
}


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

    def _repr_html_(self) -> str:
        share = f"{self.coverage:.0%} of the entries with noise, {self.level:.0%} expected"
        facts = [("root mean square error", format_number(self.rmse, 4)), ("within error bars", share)]
        return render_card("Simulation beside the truth", render_facts(facts), warnings=[NOT_PRIVATE])


@dataclass(frozen=True)
class MechanismErrors:
    """The errors of one mechanism for a query, over simulated releases.

    Attributes
    ----------
    name : str
    epsilon, delta : float
        The guarantee that the releases have, which can be stronger than the budget.
    std : float
        Root mean square of the standard deviations of the noise; NaN where the mechanism does not state them.
    error, half : float
        Mean over the trials of the root mean square error of an entry, and half of its 95% interval (Student).
    exact : bool
        Whether the noise is exact; otherwise it is floating-point, and for comparison only.
    """

    name: str
    epsilon: float
    delta: float
    std: float
    error: float
    half: float
    exact: bool


@dataclass(frozen=True)
class MechanismTable:
    """All mechanisms that answer a query, the smallest error first, and why the others are left out.

    Attributes
    ----------
    title : str
        The query and the budget.
    rows : tuple of MechanismErrors
    left_out : mapping from str to str
        The reason, by mechanism.
    """

    title: str
    rows: tuple[MechanismErrors, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        notes = [f"  left out: {name}, {reason}" for name, reason in self.left_out.items()]
        return "\n".join([self.title, format_table(_HEAD, self._cells()), *notes])

    def _cells(self, plus_minus: str = " ± ") -> list[list[str]]:
        lines = []
        for one in self.rows:
            numbers = one.epsilon, one.delta, one.std, one.error, one.half
            *guarantee, error, half = map(format_number, numbers)
            lines.append([one.name, *guarantee, error + plus_minus + half, "yes" if one.exact else "no"])
        return lines

    def to_frame(self) -> Any:
        """A pandas data frame with the attributes of `MechanismErrors` as columns."""
        return load_pandas().DataFrame([vars(one) for one in self.rows])

    def to_csv(self) -> str:
        """Comma-separated values with the attributes of `MechanismErrors` as columns."""
        out = io.StringIO()
        writer = csv.DictWriter(out, [one.name for one in fields(MechanismErrors)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(vars(one) for one in self.rows)
        return out.getvalue()

    def to_latex(self) -> str:
        """A LaTeX table, for the package booktabs."""
        head, *lines = (" & ".join(line).translate(_LATEX) + r" \\" for line in (_HEAD, *self._cells(r" $\pm$ ")))
        rules = [r"\begin{tabular}{lrrrrl}", r"\toprule", head, r"\midrule"]
        return "\n".join([*rules, *lines, r"\bottomrule", r"\end{tabular}", ""])

    def plot(self, *, ax: Any = None) -> Any:
        """The errors with their intervals, on a logarithmic scale. Returns matplotlib axes."""
        error, half = (np.array([getattr(one, name) for one in self.rows]) for name in ("error", "half"))
        low = np.maximum(error - half, error / 100)
        ax = open_axes(ax, 8.0, 1.0 + 0.3 * len(self.rows))
        ax = plot_bars(error, (low, error + half), [one.name for one in self.rows], ax=ax)
        ax.set_title(self.title, loc="left", fontsize="small")
        ax.set_xscale("log")
        ax.set_xlabel("root mean square error of an entry, simulated")
        return ax

    def _repr_html_(self) -> str:
        return render_card(self.title, render_table(_HEAD, self._cells()), warnings=[SIMULATED])


@overload
def compare(what: Any, beside: Privacy, *, data: Any = None, trials: int = 20) -> MechanismTable: ...


@overload
def compare(what: Any, beside: ArrayLike, *, answer: str | None = None, level: float = 0.95) -> Comparison: ...


def compare(
    what: Any, beside: Any, *, answer: str | None = None, level: float = 0.95, data: Any = None, trials: int = 20
) -> Comparison | MechanismTable:
    """All mechanisms for a query in one table, or a simulated release beside the numbers without privacy.

    Parameters
    ----------
    what : MatrixQuery, array_like of shape (records, features), or a release made with simulation=True
        A query is answered by `make_design`, by the paper's calibrations, and by every registered mechanism that takes
        it. An array of records stands for their second moment, in bounds that are the records' own ranges.
    beside : Privacy for a query or records; for a release an array_like of the shape of the answer
        The budget; or the true numbers, such as a data frame in the order of the answer's rows and columns.
    answer : 'matrix', 'means', 'covariance' or 'correlation', optional
        What of a release is compared: by default the released matrix, or the covariance where there is none.
    level : float
        Probability that an error bar of a release is made for.
    data : array_like, optional
        Records for a query, which need no protection; by default drawn uniformly from its bounds.
    trials : int
        Simulated releases of each mechanism, from the seeds 0, 1, ....

    Raises
    ------
    ParameterError
        If a release is no simulation: the errors of a real release reveal the true numbers.

    Privacy
    -------
    None: the result shows true numbers, or errors on them. For experiments on data that need no protection.

    Examples
    --------
    >>> query = SecondMoment(Bounds([-1] * 3, [1] * 3), records=100)
    >>> table = compare(query, Privacy(1, 1e-5))
    >>> [one.name for one in table.rows[:3]]  # with few features pure mechanisms are good
    ['Laplace', 'exponential', 'matrixdp']
    """
    if isinstance(what, list | np.ndarray):
        data = to_floats(what, "what")
        if data.ndim != 2:
            raise ParameterError(f"what must be records of shape (records, features), got {data.shape} instead.")
        what = SecondMoment(Bounds(data.min(axis=0), data.max(axis=0)), len(data))
    if isinstance(what, MatrixQuery):
        return _compare_mechanisms(what, beside, data, trials)
    return _compare_release(what, beside, answer, level)


def _compare_mechanisms(query: MatrixQuery, privacy: Privacy, data: Any, trials: int) -> MechanismTable:
    """Simulated releases of every mechanism, in the order of their errors."""
    check_arguments(query, privacy)
    check_integer(trials, "trials", at_least=2, rule="an integer of at least 2, since an error bar needs two trials")
    if data is None:
        bounds = getattr(query, "bounds", None)
        if bounds is None:
            raise ParameterError(f"data must be given for {type(query).__name__}, which has no bounds to take it from.")
        records = getattr(query, "records", query.shape[0])
        data = np.random.default_rng(0).uniform(bounds.lower, bounds.upper, (records, bounds.size))
    truth = query.finish(query.evaluate(data, clip=True, missing="error"))
    makers: dict[str, Callable[..., MechanismRelease]] = {
        name: partial(_release_design, name, calibration) for calibration, name in _CALIBRATIONS.items()
    }
    makers |= {one.name: one.function for task in _TASKS for one in registered_mechanisms(task)}
    found, left_out = [], {}
    for name, make in makers.items():
        try:
            first, *others = (make(query, privacy, data, stream=Stream(seed=i), simulation=True) for i in range(trials))
        except ParameterError as error:
            left_out[name] = str(error).partition(", got")[0]
            continue
        if first.matrix.shape != truth.shape or (isinstance(query, Identity) and first.std is None):
            left_out[name] = "its result is no estimate of the entries"
            continue
        errors = [float(np.sqrt(np.mean((one.matrix - truth) ** 2))) for one in (first, *others)]
        half = float(stdtrit(trials - 1, 0.975) * np.std(errors, ddof=1) / math.sqrt(trials))
        std = float("nan") if first.std is None else float(np.sqrt(np.mean(first.std**2)))
        mean, exact = float(np.mean(errors)), not first.comparison_only
        found.append(MechanismErrors(name, first.epsilon, first.delta, std, mean, half, exact))
    title = f"{query.subject}; {privacy}; {trials} simulated releases each"
    return MechanismTable(title, tuple(sorted(found, key=lambda one: one.error)), left_out)


def _release_design(
    name: str, calibration: str, query: MatrixQuery, privacy: Privacy, data: Any, **noise: Any
) -> MechanismRelease:
    design = make_design(query, privacy, calibration=calibration)
    return MechanismRelease.from_release(name, design.release(data, **noise))


def _compare_release(release: Any, non_private: Any, answer: str | None, level: float) -> Comparison:
    if getattr(release, "simulation", None) is not True:
        raise ParameterError(
            "release must be a simulation, made with simulation=True from data that need no protection: the comparison "
            "with the true numbers reveals them."
        )
    answer = answer or ("matrix" if hasattr(release, "matrix") else "covariance")
    if answer not in _ANSWERS or not hasattr(release, answer):
        known = ", ".join(name for name in _ANSWERS if hasattr(release, name))
        raise ParameterError(f"answer must be one of {known} for this release, got {show(answer)} instead.")
    found = release._numbers() if answer == "matrix" else getattr(release, answer)()
    value, std, true = found.value, found.bars, to_floats(non_private, "non_private")
    if true.shape != value.shape and true.shape != (*value.shape, 1) and (*true.shape, 1) != value.shape:
        raise ParameterError(f"non_private must have the shape {value.shape} of the answer, got {true.shape} instead.")
    true = true.reshape(value.shape)
    i, j = np.indices(value.shape).reshape(2, -1)
    if found.rows == found.columns and np.array_equal(value, value.T, equal_nan=True) and np.allclose(true, true.T):
        i, j = np.triu_indices(len(value))
    interval(np.zeros(1), np.ones(1), level)  # checks the level
    names = tuple(found.rows[k] for k in i), tuple(found.columns[k] for k in j)
    return Comparison(*names, true[i, j], value[i, j], std[i, j], level)


def _mean_of_known(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else float("nan")
