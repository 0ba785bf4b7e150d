"""The parts that all releases share: guarantee, text, notebook form, files and the JSON envelope."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from matrixdp import display
from matrixdp.answers.estimate import HIDDEN, NOISE_NOTE, Estimate, join
from matrixdp.device import is_on_device, load_cupy
from matrixdp.errors import ParameterError, show
from matrixdp.plots import MOST_SIDE, plot_matrix
from matrixdp.privacy import Neighbours, Privacy, Unit, describe_guarantee
from matrixdp.queries.base import OfQuery
from matrixdp.release.output_folder import write_file
from matrixdp.types import Floats

SIMULATION = "A simulation that protects nothing: anyone who knows the seed can subtract the noise."
COMPARISON_ONLY = "For comparison only: the noise is floating-point, and the release must not be published."
REPLACED = "Missing values, if there were any, were replaced by the middle of their bounds, which biases the numbers."
_MORE = "; more: .to_frame(), .plot()"
_ERROR_PARTS = ("value", "privacy std", "sampling std", "both")
_WITH_ERROR_PARTS = ("means", "covariance", "correlation")


class Released:
    """Base class of everything that is released: it has a guarantee, and says so wherever it is shown."""

    FORMAT: ClassVar[str]  # the name of its JSON form
    version: str
    privacy: Privacy
    neighbours: Neighbours
    unit: Unit
    mu: float | None
    simulation: bool

    @property
    def _spent(self) -> tuple[float, float]:
        """Epsilon and delta of the guarantee."""
        return self.privacy.epsilon, self.privacy.delta

    @property
    def _caveats(self) -> list[tuple[str, str]]:
        """Everything that weakens the release: in a few words, and in a sentence."""
        replaced = getattr(self, "missing", "error") == "midpoint"
        compared = [("for comparison only", COMPARISON_ONLY)] * getattr(self, "comparison_only", False)
        simulated = [("A SIMULATION THAT PROTECTS NOTHING", SIMULATION)] * self.simulation
        return compared + simulated + [("MISSING VALUES REPLACED BY THE MIDDLE OF THEIR BOUNDS", REPLACED)] * replaced

    def _guarantee(self, *more: str) -> str:
        """The guarantee in a line, with `more` of it in words, and what weakens it."""
        guarantee = describe_guarantee(*self._spent, self.neighbours, self.unit)
        return ", ".join([guarantee, *more, *(mark for mark, _ in self._caveats)])

    def to_json(self) -> str:
        """The release as JSON text, from which every bit can be restored."""
        return json.dumps(self._content(), allow_nan=False)

    def _repr_html_(self) -> str:
        title, facts, content = self._show()
        spent = [] if self.mu is None else [("spent", f"mu {self.mu:.4g} of Gaussian differential privacy")]
        guarantee = describe_guarantee(*self._spent, self.neighbours, self.unit)
        card = title, display.render_facts([("guarantee", guarantee), *spent, *facts]), *content
        return display.render_card(*card, warnings=[sentence for _, sentence in self._caveats])

    def _show(self) -> tuple[str, list[tuple[str, str]], list[str]]:
        """For a notebook: the title, facts besides the guarantee, and the rest as HTML."""
        raise NotImplementedError

    def _content(self) -> dict[str, Any]:
        """What the JSON text holds: metadata first, which every release has."""
        return {
            "format": self.FORMAT,
            "version": self.version,
            "simulation": self.simulation,
            "neighbours": str(self.neighbours),
            "unit": str(self.unit),
            "mu": self.mu,
        }

    def check_facts(self, content: Any) -> Self:
        """The release itself, if the metadata of the text that it was read from are its own."""
        facts = self.mu, str(self.neighbours)
        require((content["mu"], content["neighbours"]) == facts, "mu and neighbours must be those of its design")
        # Earlier versions wrote no unit, or that of a person for what protects their values.
        unit = Unit.parse(content.get("unit", self.unit))
        require(unit.covers(self.unit), "the unit of the text must be that of its design")
        typed = isinstance(self.version, str) and isinstance(self.simulation, bool)
        require(typed, "version must be a text, and simulation true or false")
        return self


class SavedRelease(Released):
    """A release that one JSON text holds."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a file as JSON, which `matrixdp.load` reads; the file appears when it is complete."""
        write_file(Path(path), self.to_json())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The release that `to_json` wrote; a `ParameterError` if its parts do not fit together."""
        with reading(f"text must be JSON from {cls.__name__}.to_json; matrixdp.load reads files."):
            content = json.loads(text)
        with reading(f"text must be a release as written by {cls.__name__}.to_json of this or an earlier version."):
            if content["format"] != cls.FORMAT:
                raise KeyError(content["format"])
            return cls._read(content).check_facts(content)

    @classmethod
    def _read(cls, content: Any) -> Self:
        """The release of a JSON text's content."""
        raise NotImplementedError


class MatrixRelease(OfQuery, SavedRelease):
    """A release of one matrix, which answers a query."""

    matrix: Floats
    std: Floats | None

    @property
    def entry_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the rows and columns of the matrix: those of the query where they fit, or numbers."""
        query, shape = self.query, self.matrix.shape
        if shape == query.shape:
            return query.entry_names
        names = query.names
        rows, columns = (names if names and len(names) == size else tuple(map(str, range(size))) for size in shape)
        return rows, columns

    def to_frame(self, *, long: bool = False, level: float = 0.95) -> Any:
        """The matrix as a pandas data frame with names.

        Parameters
        ----------
        long : bool
            One row for each entry: row, column, value, std, low and high.
        level : float
            Probability that the number without noise is between `low` and `high`.
        """
        return self._numbers().to_frame(long=long, level=level)

    def plot(self, *, ax: Any = None, title: str = "") -> Any:
        """Heat map of the matrix; returns matplotlib axes.

        Entries within two error bars of zero fade. Colours show entries relative to the largest value possible.
        """
        query, shown = self.query, self._numbers(MOST_SIDE, MOST_SIDE)
        same = self.matrix.shape == query.shape
        scale = np.broadcast_to(query.scale, query.shape) if same else np.ones(self.matrix.shape)
        shade = shown.value / scale[:MOST_SIDE, :MOST_SIDE]
        legend = "share of the largest value possible" if same else "value"
        return plot_matrix(shown, shade=shade, legend=legend, title=title, ax=ax)

    def _numbers(self, height: int | None = None, width: int | None = None) -> display.Numbers:
        """The matrix, or its first rows and columns, with its error bars and all its names."""
        return display.Numbers(to_host(self.matrix[:height, :width]), self.std, *self.entry_names)

    @property
    def _title(self) -> str:
        return f"Private {self.query.title}, {' × '.join(f'{size:,}' for size in self.matrix.shape)}"

    def _show(self) -> tuple[str, list[tuple[str, str]], list[str]]:
        part = self._numbers(display.MOST_ROWS, display.MOST_COLUMNS)
        note = (NOISE_NOTE if part.std is not None else "error bars unknown") + _MORE
        return self._title, [], [part.render(), display.render_note(note)]


class Answering:
    """The answers that a release gives about its columns, whichever way it was made."""

    method: ClassVar[str]
    reason: str
    means: Callable[..., Estimate]
    correlation: Callable[..., Estimate]
    _sampling_std: Callable[[str], Floats]  # the error of the records as a sample: (m,) for means, otherwise (m, m)

    def synthetic(self, rows: int | None = None, *, tables: int | None = None, seed: int = 0) -> Any:
        """A `ParameterError`; releases of the moments of a table have synthetic tables."""
        raise ParameterError("a synthetic table follows from a release of TableMoments (question 'everything') alone.")

    def error_parts(self, kind: str = "means") -> Estimate:
        """Each number with the error that privacy causes, the error of the records as a sample, and both together.

        A number that noise hides has an interval and no errors.

        For an adaptive release, sampling errors are those of records like the ones that its error bars are simulated
        with. For a plain release, which must be of moments, they are those of Gaussian records. Where k rows of a
        person count, they are those of a sample of records/k people, the fewest possible: rows of one person may all
        be the same.

        Parameters
        ----------
        kind : 'means', 'covariance' or 'correlation'

        Examples
        --------
        >>> import matrixdp as mdp
        >>> data = np.random.default_rng(0).normal(size=(2000, 3))
        >>> bounds = mdp.Bounds([-5] * 3, [5] * 3, names=["a", "b", "c"])
        >>> released = mdp.release_table(data, bounds, mdp.Privacy(1, 1e-6), question="covariance")
        >>> 0.015 < released.error_parts("means")["a", "sampling std"] < 0.04
        True
        """
        if kind not in _WITH_ERROR_PARTS:
            raise ParameterError(f"kind must be one of {', '.join(_WITH_ERROR_PARTS)}, got {show(kind)} instead.")
        sampling = self._sampling_std(kind)
        found: Estimate = getattr(self, kind)()
        rows = found.rows
        if kind == "means":
            names, places, sampling = rows, (np.arange(len(rows)), np.zeros(len(rows), int)), sampling[:, None]
        else:
            places = np.tril_indices(len(rows), -1 if kind == "correlation" else 0)
            names = tuple(rows[i] if i == j else f"{rows[i]}, {rows[j]}" for i, j in np.transpose(places))
        value = found._each(lambda array: array[places][:, None], rows=names, columns=_ERROR_PARTS[:1])
        privacy, sample = value.std[:, 0], sampling[places]
        bars = np.column_stack([privacy, sample, np.hypot(privacy, sample)])
        bars[~value.reliable[:, 0]] = np.nan  # errors of a guess say nothing
        errors = Estimate(bars, np.full_like(bars, np.nan), names, _ERROR_PARTS[1:], reasons=HIDDEN)
        return join((value, errors), names, _ERROR_PARTS, 1)

    def _show_answers(self, *, correlation: bool) -> list[str]:
        """For a notebook: tables of means and perhaps correlations as HTML."""
        tables = [self.means().render("Means"), *([self.correlation().render("Correlation")] if correlation else [])]
        return [*tables, display.render_note(f"{NOISE_NOTE}{_MORE}, .correlation(), .regression()")]

    def _show_method(self) -> list[tuple[str, str]]:
        return [("method", f"{self.method}: {self.reason}")] if self.reason else []


def require(holds: Any, rule: str) -> None:
    """Raise a `ParameterError` unless a rule holds that every text keeps which was not altered."""
    if not holds:
        raise ParameterError(f"{rule}; the text was altered.")


@contextmanager
def reading(message: str) -> Iterator[None]:
    """Raise a `ParameterError` with this message for whatever goes wrong in reading a text that may be altered."""
    try:
        with np.errstate(all="ignore"):
            yield
    except ParameterError as error:
        raise ParameterError(f"{message.rstrip('.')}: {error}", parameter=error.parameter) from None
    except Exception:
        raise ParameterError(message) from None


def to_host(matrix: Any) -> Floats:
    """A matrix in the memory of the host."""
    return np.asarray(load_cupy().asnumpy(matrix) if is_on_device(matrix) else matrix)
