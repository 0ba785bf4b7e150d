"""How releases show themselves in notebooks: HTML, data frames and plots."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.answers.estimate import NOISE_NOTE, Estimate
from matrixdp.device import is_on_device, load_cupy
from matrixdp.display import (
    MOST_COLUMNS,
    MOST_ROWS,
    Numbers,
    format_number,
    make_frame,
    render_card,
    render_facts,
    render_note,
    render_numbers,
    render_table,
)
from matrixdp.errors import ParameterError
from matrixdp.plots import MOST_SIDE, plot_matrix
from matrixdp.privacy import describe_guarantee
from matrixdp.queries import MatrixQuery, Moments, TableMoments
from matrixdp.types import Floats

SIMULATION = "A simulation that protects nothing: anyone who knows the seed can subtract the noise."
COMPARISON_ONLY = "For comparison only: the noise is floating-point, and the release must not be published."
REPLACED = "Missing values, if there were any, were replaced by the middle of their bounds, which biases the numbers."


class ShownRelease:
    """Base class of releases, for notebooks.

    A release has `privacy`, `neighbours`, `unit`, `mu` and `simulation`, and either a `matrix` with its `std`, which
    answers a query, or the methods `means`, `covariance` and `correlation`.
    """

    def to_frame(self, *, long: bool = False, level: float = 0.95) -> Any:
        """The released matrix as a pandas data frame with names; the covariance, where there is no matrix.

        Parameters
        ----------
        long : bool
            One row for each entry: row, column, value, std, low and high.
        level : float
            Probability that the number without noise is between `low` and `high`.
        """
        if not hasattr(self, "matrix"):
            return _call(self, "covariance").to_frame(long=long, level=level)
        return make_frame(_name_matrix(self), long=long, level=level)

    def plot(self, *, ax: Any = None, title: str = "") -> Any:
        """Heat map of the released matrix, or of the correlation, where there is no matrix; returns matplotlib axes.

        Entries within two error bars of zero fade. Colours show entries relative to the largest value possible.
        """
        if not hasattr(self, "matrix"):
            return _call(self, "correlation").plot(ax=ax, title=title)
        query = find_query(self)
        shown = _name_matrix(self, MOST_SIDE, MOST_SIDE)
        same = query is not None and self.matrix.shape == query.shape
        scale = np.broadcast_to(query.scale, query.shape) if same and query is not None else np.ones(self.matrix.shape)
        shade = shown.value / scale[:MOST_SIDE, :MOST_SIDE]
        legend = "share of the largest value possible" if same else "value"
        return plot_matrix(shown, shade=shade, legend=legend, title=title, ax=ax)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a file as JSON, which `matrixdp.load` reads; the file appears when it is complete."""
        place = Path(path)
        draft = place.with_name(f".{uuid.uuid4().hex}")
        try:
            draft.write_text(self.to_json(), encoding="utf-8")
            draft.replace(place)
        except OSError as error:
            raise ParameterError(f"path: {place} cannot be written: {error.strerror or error}.") from None
        finally:
            draft.unlink(missing_ok=True)

    def to_json(self) -> str:
        """The release as JSON text."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        tables, note = _render_content(self)
        mu, reason = getattr(self, "mu", None), getattr(self, "reason", "")
        facts = [("guarantee", _guarantee(self))]
        facts += [] if mu is None else [("spent", f"mu {mu:.4g} of Gaussian differential privacy")]
        facts += [("method", f"{getattr(self, 'method', '')}: {reason}")] if reason else []
        return render_card(_title(self), render_facts(facts), *tables, render_note(note), warnings=_warnings(self))


def render_dataset(release: Any) -> str:
    """A noisy data set as HTML: where it is, its guarantee, and the noise of each column beside its largest value."""
    query = release.design.query
    names = query.names or tuple(f"x{i}" for i in range(query.shape[1]))
    largest = np.broadcast_to(query.scale, query.shape)[0]
    rows = [
        (name, format_number(std), format_number(float(most), 6))
        for name, std, most in zip(names, release.std.tolist(), largest, strict=True)
    ]
    facts = [
        ("guarantee", _guarantee(release)),
        ("spent", f"mu {release.mu:.4g} of Gaussian differential privacy"),
        ("folder", str(release.path)),
        ("files", f"{len(release.files):,} in Parquet, with the records in their order"),
    ]
    shape = " × ".join(f"{size:,}" for size in query.shape)
    table = render_table(("column", "std of the noise", "largest value possible"), rows)
    note = render_note("the noise of each row hides that row: use averages over many rows")
    return render_card(f"Noisy data set, {shape}", render_facts(facts), table, note, warnings=_warnings(release))


def find_query(release: Any) -> MatrixQuery | None:
    """The query that a release answers, if it has one."""
    query = getattr(release, "query", None) or getattr(getattr(release, "design", None), "query", None)
    return query if isinstance(query, MatrixQuery) else None


def name_entries(release: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the rows and columns of a release's matrix: those of the query where they fit, or numbers."""
    query, shape = find_query(release), release.matrix.shape
    if query is not None and shape == query.shape:
        return query.entry_names
    names = query.names if query is not None else None
    rows, columns = (names if names and len(names) == size else tuple(map(str, range(size))) for size in shape)
    return rows, columns


def _name_matrix(release: Any, height: int | None = None, width: int | None = None) -> Numbers:
    """The matrix of a release, or its first rows and columns, with its error bars and all its names."""
    part = to_host(release.matrix[:height, :width])
    return Numbers(part, getattr(release, "std", None), *name_entries(release))


def to_host(matrix: Any) -> Floats:
    """A matrix in the memory of the host."""
    return np.asarray(load_cupy().asnumpy(matrix) if is_on_device(matrix) else matrix)


def _call(release: Any, answer: str) -> Estimate:
    found: Estimate = getattr(release, answer)()
    return found


def _title(release: Any) -> str:
    query = find_query(release)
    if query is None:
        return "Private mean and covariance"
    shape = " × ".join(f"{size:,}" for size in release.matrix.shape)
    name = getattr(release, "mechanism", "")
    return f"Private {query.title}, {shape}" + (f", by {name}" if name else "")


def _guarantee(release: Any) -> str:
    epsilon, delta = getattr(release, "epsilon", None), getattr(release, "delta", None)
    if epsilon is None or delta is None:
        epsilon, delta = release.privacy.epsilon, release.privacy.delta
    return describe_guarantee(epsilon, delta, release.neighbours, release.unit)


def _warnings(release: Any) -> list[str]:
    found = [SIMULATION] if getattr(release, "simulation", False) else []
    found += [COMPARISON_ONLY] if getattr(release, "comparison_only", False) else []
    return found + ([REPLACED] if getattr(release, "missing", "error") == "midpoint" else [])


def _render_content(release: Any) -> tuple[list[str], str]:
    """Tables of what the release says, and a note on how to read them."""
    query, more = find_query(release), "; more: .to_frame(), .plot()"
    if query is None or (hasattr(release, "means") and isinstance(query, Moments | TableMoments)):
        tables = [_call(release, "means").render("Means")]
        tables += [] if isinstance(query, TableMoments) else [_call(release, "correlation").render("Correlation")]
        return tables, NOISE_NOTE + more + ", .correlation(), .regression()"
    part = _name_matrix(release, MOST_ROWS, MOST_COLUMNS)
    return [render_numbers(part)], (NOISE_NOTE if part.std is not None else "error bars unknown") + more
