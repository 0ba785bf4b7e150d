"""Pictures of answers, for reports and the studio alike. Each stands beside a table with the same numbers."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any, NamedTuple

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.display import join_cells, make_visible, shorten
from matrixdp.domain.file_rules import DateRule
from matrixdp.intervals import Pair
from matrixdp.report.answers import Answer
from matrixdp.report.dates import list_parts, show_date, show_dates
from matrixdp.report.page import Block, note
from matrixdp.report.svg import Area, Drawing, Scale, element, make_image, text

_MOST_BARS, _MOST_PANELS = 66, 13
_LABEL = 24  # characters of a name
_WIDTH = 320.0  # of an axis in pixels
_LINE = 24.0  # pixels from one dot to the next
_LETTER = 6.6  # mean width of a letter
_COEFFICIENT = "coefficient over half the length of its interval"
_BESIDE = "the table has the same numbers."


class Chart(NamedTuple):
    """A picture, what it shows in words for those who do not see it, and how to read it."""

    drawing: Drawing
    summary: str
    caption: str = ""

    @property
    def svg(self) -> str:
        """The picture for a page, which has its styles."""
        return make_image([self.drawing], self.summary, inline=True)


def draw_charts(answer: Answer, dates: Sequence[DateRule] = (), *, skip: int = 0) -> list[Block]:
    """The pictures of an answer, and how to read them, for a page."""
    charts = draw_answer(answer, dates, skip=skip)
    return [*(Block("figure", chart.svg) for chart in charts), *(note([chart.caption]) for chart in charts[:1])]


def draw_answer(answer: Answer, dates: Sequence[DateRule] = (), *, skip: int = 0) -> tuple[Chart, ...]:
    """The pictures of an answer; none where they would be too large to read. Means of `dates` are shown as dates.

    The first columns of a table by level may be skipped.
    """
    estimate, kind, charts = answer.estimate, answer.name, tuple[Chart, ...]()
    if kind in ("means_by_level", "groups", "levels"):
        rules = {rule.name: rule for rule in dates}
        more = len(estimate.columns) - _MOST_PANELS
        caption = "Bars: 95% intervals." + f" {more:,} more columns are in the table alone." * (more > 0)
        for one in estimate.columns[skip:_MOST_PANELS]:
            axis = make_visible(shorten(one, 40))
            charts += _draw_dots(one, caption, axis, estimate.column(one), rule=rules.get(one))
    if kind == "histogram":  # a bar to each bin
        ends = [row[:2] for row in show_dates(answer, [rule for rule in dates if rule.name == answer.label]) or ()]
        shares = replace(estimate.column("share"), rows=tuple(" to ".join(dict.fromkeys(pair)) for pair in ends))
        return _draw_dots(answer.title, "Bars: 95% intervals.", f"share of the values of {answer.label}", shares)
    if kind == "regression" and "coefficient" in estimate.columns:
        estimate = estimate.cut(slice(1, None), slice(None))  # without the intercept
        low, high = estimate.value[:, -2:].T  # of noise and sampling together
        caption = "A bar that reaches zero: the coefficient may be nothing but noise and sampling error."
        caption += " Orange: a plausible range." * bool(estimate.plausible[:, 0].any())
        # in units of half the length of their intervals, so that columns with different units share an axis
        name, found, unit = _COEFFICIENT, estimate.column("coefficient"), (high - low) / 2
        return _draw_dots(answer.title, caption, name, found, unit, guide=0.0, ends=(low, high))
    return charts


def _draw_dots(
    title: str,
    caption: str,
    name: str,
    found: Estimate,
    unit: Any = 1.0,
    guide: float | None = None,
    ends: Pair | None = None,
    rule: DateRule | None = None,
) -> tuple[Chart, ...]:
    """The numbers of a column as dots on an axis in units of `unit`, with their intervals; no chart of too many.

    The intervals may be others, between `ends`. Plausible ranges have another colour. A line marks the `guide`. With a
    `rule`, the numbers are dates or times.
    """
    ends = ends or (found.interval()[0][:, 0], found.interval()[1][:, 0])
    with np.errstate(all="ignore"):
        places = np.stack([one / unit for one in (found.value[:, 0], *ends)], axis=1)
        shown = np.flatnonzero(np.isfinite(places.sum(axis=1))).tolist()
    words = join_cells(found) if rule is None else [[show_date(rule, *line[0])] for line in list_parts(found)]
    if not 0 < len(shown) <= _MOST_BARS:
        return ()
    reach = [*places[shown, 1:].ravel().tolist(), *([] if guide is None else [guide])]
    room = 0.05 * (max(reach) - min(reach)) or 1.0
    scale = Scale(min(reach) - room, max(reach) + room, label=None if rule is None else rule.show)
    if not scale.high - scale.low > 1e-300:  # numbers too close to be told apart
        return ()
    labels = [make_visible(found.rows[i]) for i in shown]
    left = 14 + _LETTER * min(_LABEL, max(map(len, labels)))
    area = Area(scale, Scale(len(shown) - 0.5, -0.5), left, 6.0, _WIDTH, _LINE * len(shown))
    elements = area.axes((name, ""), (scale.ticks(4 if rule is None else 2), ()))
    if guide is not None:
        x = float(area.across(guide))
        elements.append(element("line", x1=x, x2=x, y1=area.top, y2=area.top + area.height, class_="p-guide"))
    for row, (i, label) in enumerate(zip(shown, labels, strict=True)):
        y, kind = float(area.up(row)), "p-other" if found.plausible[i, 0] else "p-mark"
        middle, low, high = area.across(places[i]).tolist()
        tip = element("title", escape(f"{label}: {words[i][0]}")) if words[i][0] else ""
        elements.append(text(left - 8, y + 4, shorten(label, _LABEL), text_anchor="end"))
        elements.append(element("line", x1=low, x2=high, y1=y, y2=y, class_=kind, stroke_width=3, stroke_opacity=0.55))
        elements.append(element("circle", tip, cx=middle, cy=y, r=4.5, class_=kind))
    drawing = Drawing(tuple(elements), left + _WIDTH + 24, area.top + area.height + 48)
    return (Chart(drawing, f"{title} with error bars; {_BESIDE}", caption),)
