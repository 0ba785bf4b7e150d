"""The sections of a report with answers: for all records, then for each group in a fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matrixdp.answers.cross_tables import ALL
from matrixdp.answers.estimate import TOO_FEW, Estimate
from matrixdp.display import escape_text
from matrixdp.domain.columns import Number
from matrixdp.report.answer_tables import BY_COLUMN, AnswerTable
from matrixdp.report.content import ReportContent
from matrixdp.report.dates import show_dates
from matrixdp.report.finding_words import compare_pairs
from matrixdp.report.number_tables import render_matrix, render_numbers, tabulate
from matrixdp.report.page import render_figure, render_fold, render_notes, render_section
from matrixdp.report.pictures import draw_correlation
from matrixdp.report.strips import STRIP, draw_strip
from matrixdp.report.treatment import describe_treatment

_ROWS, _COLUMNS = 60, 20  # of a table
_MATRIX = 12  # columns of a correlation that is shown as a table
_MOST_TABLES, _MOST_GROUPS = 20, 24  # of a section, and of a page
_SECTIONS = {
    "levels": "Levels of the categories",
    "means_by_level": "Means by level",
    "table": "Counts by two categories",
    "regression": "Regression",
}


def render_answers(content: ReportContent) -> list[str]:
    """Sections with the answers from a release: for all records, then for each group."""
    by: tuple[str, ...] = getattr(content.mechanism.query, "by", ())
    notes = render_notes(describe_treatment(content) if content.summary else ())
    sections: list[str] = []
    by_file: dict[str, list[AnswerTable]] = {}
    groups: dict[tuple[str, ...], list[AnswerTable]] = {}
    for answer in content.answers:
        if answer.group:
            groups.setdefault(answer.group, []).append(answer)
        else:
            by_file.setdefault(answer.name, []).append(answer)
    with_means = next((name for name in by_file if name in ("means", *BY_COLUMN)), None)
    for number, (name, tables) in enumerate(by_file.items()):
        more = len(tables) - _MOST_TABLES
        body = "".join(_render_answer(content, one, heading=len(tables) > 1) for one in tables[:_MOST_TABLES])
        body += f"<p>{more:,} more are in <code>{name}.csv</code>.</p>" if more > 0 else ""
        title = tables[0].title if len(tables) == 1 else _SECTIONS[name]
        strips = render_notes([STRIP]) if name == with_means and content.numbers else ""
        sections.append(render_section(title, body + strips + ("" if number else notes)))
    for group, tables in list(groups.items())[:_MOST_GROUPS]:
        title = ", ".join(f"{name}: {level}" for name, level in zip(by, group, strict=True))
        sections.append(render_fold(title, _render_group(content, tables), card=True))
    if len(groups) > _MOST_GROUPS:
        rest = f"<p>{len(groups) - _MOST_GROUPS:,} more groups are in the CSV files.</p>"
        sections.append(render_section("Other groups", rest))
    return sections


def _render_group(content: ReportContent, tables: Sequence[AnswerTable]) -> str:
    means = [table.estimate.reliable[:, 0] for table in tables if table.name == "means"]
    if means and not np.concatenate(means).any():
        return f"<p>{TOO_FEW.capitalize()} records: noise hides how many there are.</p>"
    return "".join(_render_answer(content, table, heading=True) for table in tables[:_MOST_TABLES])


def _render_answer(content: ReportContent, answer: AnswerTable, *, heading: bool) -> str:
    title = f"<h3>{escape_text(answer.title)}</h3>" if heading else ""
    return title + _render_numbers(content, answer)


def _render_numbers(content: ReportContent, answer: AnswerTable) -> str:
    estimate, label = answer.estimate, answer.title
    if answer.name == "correlation" and len(estimate.rows) > _MATRIX:
        words = " ".join(compare_pairs(estimate.value, estimate.std, estimate.rows, "correlation"))
        return render_figure(draw_correlation(answer, words, inline=True), label)
    part = _cut(estimate)
    cut = part is not estimate
    rest = f"<p>The rest is in <code>{answer.name}.csv</code>.</p>" if cut else ""
    if answer.name == "correlation":
        return render_matrix(tabulate(part, label), "correlation") + rest
    if answer.name == "components":
        return render_matrix(tabulate(part, label), "loading", plain_rows=0 if cut else 1) + rest
    if answer.name == "table":
        rows, _, columns = answer.label.partition(" \\ ")
        totals = not cut and estimate.rows[-1] == ALL == estimate.columns[-1]
        table = tabulate(part, label, corner=(rows, columns), totals=totals)
        return render_matrix(table, f"number of {content.mechanism.query.count_word}", counts=True) + rest
    return _render_plain(content, answer, part) + rest


def _render_plain(content: ReportContent, answer: AnswerTable, part: Estimate) -> str:
    """A table of different quantities; means have a strip that shows where they lie between their bounds."""
    by_column, numbers = answer.name in BY_COLUMN, {one.name: one for one in content.numbers}
    has_means = by_column or answer.name == "means"

    def find_number(i: int, j: int) -> Number | None:
        name = part.columns[j] if by_column else part.rows[i]
        return numbers.get(name) if has_means and (by_column or part.columns[j] == "mean") else None

    def strip(i: int, j: int) -> str:
        number = find_number(i, j)
        return "" if number is None else draw_strip(number, float(part.value[i, j]), float(part.std[i, j]))

    options: dict[str, object] = {"corner": (answer.label, "")}
    if has_means:
        options |= {
            "below": strip,
            "text": show_dates(part, content.dates, by_column=by_column),
            "fades": lambda i, j: find_number(i, j) is None,
        }
    return render_numbers(tabulate(part, answer.title, **options))


def _cut(estimate: Estimate) -> Estimate:
    """The part of a large table that a page shows."""
    height, width = estimate.value.shape
    if height <= _ROWS and width <= _COLUMNS:
        return estimate
    place = (slice(None, _ROWS), slice(None, _COLUMNS))
    reasons = None if estimate.reasons is None else estimate.reasons[place]
    rows, columns = estimate.rows[:_ROWS], estimate.columns[:_COLUMNS]
    return Estimate(estimate.value[place], estimate.std[place], rows, columns, reasons)
