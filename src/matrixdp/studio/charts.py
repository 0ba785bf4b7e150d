"""Predicted errors as tables, and pictures of forecasts, by the functions that reports use."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from markupsafe import Markup

from matrixdp.design import Design
from matrixdp.design.explain import describe_numbers, outline_ellipse, pair_covariance
from matrixdp.display import Numbers, format_number, make_visible, shorten
from matrixdp.report.charts import Chart
from matrixdp.report.page import render_blocks, show_matrix, show_numbers
from matrixdp.report.pictures import Look
from matrixdp.report.svg import Curve, Scale, draw_curves, round_up
from matrixdp.types import Floats

TYPICAL, LARGEST = "typical", "largest"  # entries besides single ones: the median, and the largest error
_MOST_ENTRIES = 400  # that a page offers to follow
_LABEL = 24  # characters of a name
_SIZE = (360.0, 220.0)
_EPSILON_TICKS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def write_error(error: float, sign: str = "") -> str:
    """An error as short text."""
    return f"{sign}{format_number(error)}" if math.isfinite(error) else "hidden by noise"


# Forecasts


@dataclass(frozen=True, eq=False)
class ErrorTable:
    """Predicted standard deviations of the privacy noise in a table of answers, of shape (rows, columns).

    `std` is 0 where an answer is public, NaN where noise would hide it. Entries that are `comparable` have the same
    unit, so that their median means something. `note` says what the prediction assumes.
    """

    title: str
    std: Floats
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    comparable: bool
    note: str = ""

    @cached_property
    def entries(self) -> dict[str, tuple[str, float]]:
        """Names and errors of what can be followed: the largest error, the median, and ``"row,column"``."""
        places, found = np.argwhere(self.std != 0), {}
        noisy = self.std[self.std != 0]
        if self.comparable:
            found[LARGEST] = "the least precise entry", float(noisy.max(initial=0.0))
            found[TYPICAL] = "a typical entry (median)", float(np.median(noisy)) if noisy.size else 0.0
        symmetric = self.rows == self.columns
        single = [(i, j) for i, j in places.tolist() if not symmetric or i <= j]
        for i, j in single[:_MOST_ENTRIES] or [(0, 0)]:
            pair = f"{self.rows[i]} (variance)" if symmetric and i == j else f"{self.rows[i]} and {self.columns[j]}"
            found[f"{i},{j}"] = self.rows[i] if len(self.columns) == 1 else pair, float(self.std[i, j])
        return found

    def read(self, entry: str) -> float:
        """The error of an entry; infinite where noise would hide it, or if there is none."""
        _, error = self.entries.get(entry, ("", math.inf))
        return error if math.isfinite(error) else math.inf

    def choose(self, entry: str = "") -> str:
        """The entry, if the table has it; otherwise the first one that noise does not hide."""
        if entry in self.entries:
            return entry
        return next((one for one in self.entries if self.read(one) < math.inf), next(iter(self.entries)))

    @property
    def hint(self) -> str:
        """The note, and what empty places mean."""
        seen = np.isfinite(self.std[self.std != 0])
        if seen.all():
            return self.note
        return ("Empty: hidden by noise. " if seen.any() else "Noise hides all of these numbers. ") + self.note

    @cached_property
    def equal(self) -> str | None:
        """The error, if there are several and all are the same; None otherwise."""
        noisy = self.std[self.std != 0]
        several = len(self.columns) == 1 and noisy.size > 1 and bool(np.isfinite(noisy).all())
        same = several and np.ptp(noisy) <= 1e-9 * noisy.max()
        return write_error(float(noisy.max()), "± ") if same else None

    @cached_property
    def html(self) -> Markup:
        """The errors as a table, in colours where they can be compared, as reports have it."""
        errors = np.array([[float(f"{error:.3g}") for error in row] for row in self.std])
        errors = np.where(np.isfinite(errors), errors, np.nan)
        numbers = Numbers(errors, None, self.rows, self.columns, unknown="hidden by noise")
        if self.comparable and len(self.columns) > 1:
            blocks = show_matrix(numbers, self.title, Look("predicted error", counts=True))
        else:  # entries have different units
            blocks = [show_numbers(numbers, self.title)]
        return Markup(render_blocks(blocks))  # noqa: S704 (its template escapes all names)


def draw_curve(
    plain: Sequence[tuple[float, float]], epsilon: float, here: float | None, wanted: float | None, *, adaptive: bool
) -> Chart:
    """Error against epsilon, both on logarithmic scales, for a plain release; dashed if it is in place of a fit.

    A rule marks `epsilon`, and a point the error `here`, if it is known; another rule marks the error that is wanted.
    """
    line = np.array([pair for pair in plain if 0 < pair[1] < math.inf]).reshape(-1, 2).T
    here = here if here is not None and 0 < here < math.inf else None
    seen = [*line[1], *([here] if here else [])]
    x = Scale(_EPSILON_TICKS[0], _EPSILON_TICKS[-1], log=True)
    y = Scale(min(seen) / 1.2, max(seen) * 1.2, log=True) if seen else Scale(0.1, 1.0, log=True)
    curves = [Curve(line, dashed=adaptive)] if line.size else []
    if x.low <= epsilon <= x.high:
        curves.append(Curve(np.array([[epsilon, epsilon], [y.low, y.high]]), kind="p-other", dashed=True))
        if here:
            words = f"epsilon {format_number(epsilon)}: error {format_number(here)}"
            dot = np.array([[epsilon], [here]])
            curves.append(Curve(dot, kind="p-other", halves=np.zeros(1), scattered=True, words=words))
    if wanted is not None and y.low < wanted < y.high:
        curves.append(Curve(np.array([[x.low, x.high], [wanted, wanted]]), kind="p-other", dashed=True))
    drawing = draw_curves(curves, x, y, ("epsilon", "error"), size=_SIZE, ticks=(_EPSILON_TICKS, y.ticks()))
    caption = "The vertical line is your epsilon."
    if adaptive:
        caption = "Dashed: a plain release of the same numbers. " + "Point: the adaptive fit, typical data." * bool(
            here
        )
    summary = "Predicted error against epsilon, both on logarithmic scales; errors fall as epsilon grows"
    return Chart(drawing, summary, caption)


def draw_ellipse(design: Design, names: Sequence[str], pair: tuple[int, int]) -> Chart | None:
    """The noise of two features, of which the curve holds 95 %; None if there are no two `names`. Axes are alike."""
    if len(names) < 2:
        return None
    points = outline_ellipse(pair_covariance(design, *pair))
    reach = round_up(float(np.abs(points).max()))  # so that a smaller ellipse looks smaller
    scale, subject = Scale(-reach, reach), describe_numbers(design)
    first, second = (f"noise in {subject}{make_visible(shorten(names[i], _LABEL))}" for i in pair)
    drawing = draw_curves([Curve(points, fill=0.15)], scale, scale, (first, second), size=_SIZE)
    return Chart(drawing, "An ellipse that contains the noise of two numbers with 95 percent probability")
