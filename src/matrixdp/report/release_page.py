"""The page of a release: what was asked and found, the numbers, and what it protects."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.answers.moments import ALL
from matrixdp.display import Numbers, format_number, join_words
from matrixdp.domain.columns import Number
from matrixdp.domain.file_rules import DateRule
from matrixdp.privacy import describe_large_delta
from matrixdp.queries import ContingencyTable, GramMatrix, Identity, MatrixQuery, Moments, TableMoments
from matrixdp.queries.base import BoundedQuery
from matrixdp.release.registered import MechanismRelease
from matrixdp.release.result import Release
from matrixdp.report.advice import advise
from matrixdp.report.answers import Answer, add_totals, answer_matrix, as_answerable
from matrixdp.report.charts import draw_answer
from matrixdp.report.content import ReportContent, list_numbers
from matrixdp.report.dates import show_dates
from matrixdp.report.findings import EXPLANATION, average_columns, compare_pairs, list_findings
from matrixdp.report.guarantee import describe_odds, describe_stream, name_loss, name_privacy
from matrixdp.report.page import (
    Block,
    Page,
    Section,
    fold,
    load_template,
    note,
    render_page,
    say,
    show_matrix,
    show_numbers,
)
from matrixdp.report.pictures import describe_part, draw_matrix, draw_numbers, draw_std, name_colours
from matrixdp.report.provenance import cite, list_provenance
from matrixdp.report.svg import STRIP, draw_strip

DATASET_PAGE = "_report.html"  # readers of data sets skip names that begin with an underscore
_TABLE_ROWS, _TABLE_COLUMNS = 24, 12  # of a matrix; a wider one is shown as a picture
_ROWS, _COLUMNS = 60, 20  # of a table of answers
_NAMED = 16  # columns that the top of the page names
_BOUNDED = 12  # columns whose bounds are named
_KINDS = (ContingencyTable, Moments, TableMoments, Identity, GramMatrix)  # that the template tells apart
_MOST_TABLES, _MOST_GROUPS, _MOST_FILES = 20, 24, 20  # of a section, of a page, and links
_ORIGIN = {"Purpose": "purpose", "Asked by": "asked_by", "Approved by": "approved_by", "Contact": "contact"}
_CHARTED = ("regression", "groups", "means_by_level", "levels", "histogram")
_SECTIONS = {
    "histogram": "Histograms of the numbers",
    "levels": "Levels of the categories",
    "means_by_level": "Means by level",
    "table": "Counts by two categories",
    "regression": "Regression",
}


def render_release(content: ReportContent, *, files: Sequence[str] = ()) -> str:
    """The report on a release as an HTML document, with links to files of its folder.

    Privacy
    -------
    Made from the release and public facts only.
    """
    mechanism, ledger, release, findings = content.mechanism, content.ledger, content.release, list_findings(content)
    query, loss, kind = mechanism.query, name_loss(mechanism.epsilon), name_kind(mechanism.query)
    shown = [answer.estimate for answer in content.answers] + ([] if content.summary else [content.entries])
    ranges = [one.plausible for one in shown], [one.ranged & ~one.plausible for one in shown]
    marks = [bool(any(part.any() for part in parts)) for parts in ranges]
    explained = [*write_words("error_bars", content, kind, isinstance(release, Release), *marks), *content.units]
    if findings and content.std is not None:
        explained.append(EXPLANATION)
    records = getattr(query, "records", None)
    delta = describe_large_delta(release.privacy, records) if mechanism.delta and records is not None else ""
    part = getattr(release, "part", None)
    warned = (mechanism, release.simulation, delta[:1].upper() + delta[1:], ledger or part, content.caveats)
    paid = Section("The ledger", [say(*write_words("ledger", ledger))])
    if part is not None:
        paid = Section("The stream", [say(describe_stream(part))])
    symbols = [line.split(": ", 1) for line in write_words("symbols", mechanism, kind)]
    formal = Block("symbols", [pair if len(pair) == 2 else ("", *pair) for pair in symbols])
    odds = describe_odds(mechanism.epsilon, mechanism.delta, query.protects)
    guarantee = [
        say(*write_words("guarantee", mechanism, loss)),
        Block("list", write_words("protection", query)),
        fold("The same in symbols", formal),
    ]
    links, more = [Block("files", files[:_MOST_FILES])], len(files) - _MOST_FILES
    if more > 0:
        links.append(say(f"… and {more:,} more."))
    origin = list_provenance(content)
    text, bibtex = cite(origin)
    citable = not release.simulation and not mechanism.warnings
    page = Page(
        title=f"{content.heading} – {content.table}" if content.table else content.heading,
        heading=content.heading,
        kicker=" · ".join(filter(None, ["Differentially private release", content.date])),
        facts=[
            ("Shows", " ".join(write_words("subject", content, kind))),
            ("Columns", _list_columns(content)),
            ("Data set", content.table),
            ("Method", "adaptive fit" if mechanism.adaptive else ""),
            ("Protects", query.protects),
            ("Privacy", f"{name_privacy(mechanism)}: {loss}. {odds}"),
            *((name, origin.get(key, "")) for name, key in _ORIGIN.items()),
        ],
        warnings=write_words("warnings", *warned),
        sections=[
            *([Section("How to cite it", [say(text), Block("data", bibtex)], fold=True)] if citable else []),
            *([Section("Findings", [say(*findings)], "findings")] if findings else []),
            *_show_results(content),
            *([Section("What would help", [Block("list", help_)])] if (help_ := list_advice(content)) else []),
            Section("How to read it", [Block("list", explained)]),
            Section("The guarantee", guarantee),
            paid,
            Section("How the noise was generated", [say(mechanism.noise, *content.notes)], fold=True),
            *([Section("Files in this folder", links)] if files else []),
        ],
        footer=f"Made by matrixdp {release.version}.",
    )
    return render_page(page)


def list_main_blocks(content: ReportContent) -> list[Block]:
    """The findings of a release, and its first table, for a page about several releases."""
    first = next(iter(_show_results(content)), None)
    return [say(*list_findings(content)), *(() if first is None else first.blocks)]


def _list_columns(content: ReportContent) -> str:
    """The columns of the data that were asked about, and by what they are grouped."""
    query = content.mechanism.query
    if any(content.variables):
        return join_words([name for name in content.variables if name])
    names: Sequence[str] = ()
    if isinstance(query, TableMoments):
        names = query.used.names
    elif isinstance(query, BoundedQuery):
        names = query.bounds.names or ()
    shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")
    by = query.by if isinstance(query, TableMoments) else ()
    return f"{shown}; grouped by {join_words(by)}" if by else shown


# The matrix


def _show_results(content: ReportContent) -> list[Section]:
    """The numbers, each section with how values were treated."""
    answers = _show_answers(content)
    if content.summary:
        return answers
    wide = content.matrix.shape[1] > _TABLE_COLUMNS
    title = content.title[:1].upper() + content.title[1:] + (describe_part(content.entries) if wide else "")
    sections = [Section(title, _show_main(content, wide=wide))]
    if content.mean is not None and content.numbers and not content.answers:
        mean = replace(content.mean, rows=tuple(one.name for one in content.numbers))
        means = Answer("Means", "column", mean, name="means")
        sections.append(Section("Means", [_show_means(content, means), note([STRIP])]))
    return [*sections, *answers]


def _show_main(content: ReportContent, *, wide: bool) -> list[Block]:
    """The matrix: as a table if it is narrow, otherwise as a picture."""
    averages = average_columns(content)
    blocks: list[Block] = []
    if averages is not None:
        blocks.append(say(f"Averages over all {len(content.matrix):,} rows:"))
        blocks.append(show_numbers(averages, "Averages", fades=False))
    if content.std is None:
        blocks.append(say("The error bars are unknown."))
    if wide:
        picture = draw_matrix(content, " ".join(list_findings(content)), inline=True)
        blocks.append(Block("figure", picture, f"Heat map of the {content.title}"))
        std = np.zeros(0) if content.std is None else np.asarray(content.std)
        noisy = std[np.isfinite(std) & (std > 0)]
        low, high = (format_number(float(end)) for end in (noisy.min(initial=np.inf), noisy.max(initial=0.0)))
        if noisy.size:
            same = f"All error bars are {low}."
            blocks.append(say(same if low == high else f"The error bars are from {low} to {high}."))
        if noisy.size and low != high:
            image = Block("figure", draw_std(content, inline=True), "Heat map of the error bars")
            blocks.append(fold("The error bars as a picture", image))
    elif averages is not None:
        blocks.append(fold("Single rows, each with noise of its own", *_show_table(content)))
    else:
        blocks += _show_table(content)
    return [*blocks, note(_describe_treatment(content))]


def _show_table(content: ReportContent) -> list[Block]:
    totals = add_totals(content.release) if isinstance(content.release, Release) and content.counts else None
    height = len(content.rows)
    table: Numbers = content.entries.cut(_TABLE_ROWS, _TABLE_COLUMNS)
    options: dict[str, Any] = {"corner": content.variables}
    if totals is not None and height <= _TABLE_ROWS:
        table, options["totals"] = totals, True
    label = f"The {content.title}"
    if isinstance(content.mechanism.query, Identity):  # a row is one record, and mostly noise
        blocks = [show_numbers(table, label, **options)]
    else:
        shown = table.value / content.scale[:_TABLE_ROWS, :_TABLE_COLUMNS] if content.relative else None
        blocks = show_matrix(table, label, name_colours(content), shown=shown, counts=content.counts, **options)
    if height > _TABLE_ROWS:
        blocks.append(say(f"These are the first {_TABLE_ROWS} of {height:,} rows; the files have all."))
    return blocks


def _show_means(content: ReportContent, answer: Answer) -> Block:
    """A table in which means have a strip that shows where they lie between their bounds, and do not fade."""
    part, known = answer.estimate, {one.name: one for one in content.numbers}
    numbers = [[known.get(name) for name in line] for line in answer.list_means() or ()]
    below = [
        ["" if one is None else draw_strip(one, *places) for one, *places in zip(*line, strict=True)]
        for line in zip(numbers, part.value.tolist(), *(end.tolist() for end in part.interval()), strict=True)
    ]
    text = show_dates(answer, content.dates)
    return show_numbers(part, answer.title, corner=(answer.label, ""), below=below, text=text, fades=answer.fades)


# Answers


def _show_answers(content: ReportContent) -> list[Section]:
    """Sections with the answers from a release: for all records, then for each group."""
    by_file: dict[str, list[Answer]] = {}
    groups: dict[tuple[str, ...], list[Answer]] = {}
    for answer in content.answers:
        place = groups.setdefault(answer.group, []) if answer.group else by_file.setdefault(answer.name, [])
        place.append(answer)
    with_means = next((name for name, one in by_file.items() if one[0].list_means() is not None), None)
    treatment = note(_describe_treatment(content) if content.summary else ())
    sections: list[Section] = []
    for name, tables in by_file.items():
        blocks = _show_tables(content, tables, name)
        if name == with_means and content.numbers:
            blocks.append(note([STRIP]))
        title = tables[0].title if len(tables) == 1 else _SECTIONS[name]
        sections.append(Section(title, blocks if sections else [*blocks, treatment]))
    by: tuple[str, ...] = getattr(content.mechanism.query, "by", ())
    for group, tables in list(groups.items())[:_MOST_GROUPS]:
        title = ", ".join(f"{name}: {level}" for name, level in zip(by, group, strict=True))
        sections.append(Section(title, _show_tables(content, tables, ""), fold=True))
    if len(groups) > _MOST_GROUPS:
        rest = say(f"{len(groups) - _MOST_GROUPS:,} more groups are in the CSV files.")
        sections.append(Section("Other groups", [rest]))
    return sections


def _show_tables(content: ReportContent, tables: Sequence[Answer], name: str) -> list[Block]:
    """Tables of one kind, with titles if there are several."""
    blocks: list[Block] = []
    for answer in tables[:_MOST_TABLES]:
        blocks += [Block("heading", answer.title)] if len(tables) > 1 or answer.group else []
        blocks += _show_answer(content, answer)
    more = len(tables) - _MOST_TABLES
    return [*blocks, Block("rest", f"{more:,} more are in", f"{name}.csv")] if more > 0 and name else blocks


def _show_answer(content: ReportContent, answer: Answer) -> list[Block]:
    estimate, label, name = answer.estimate, answer.title, answer.name
    if name == "correlation" and len(estimate.rows) > _TABLE_COLUMNS:
        words = " ".join(compare_pairs(estimate, "correlation"))
        return [Block("figure", draw_numbers(estimate, "Correlation", "correlation", words, inline=True), label)]
    part = estimate if content.in_files else estimate.cut(_ROWS, _COLUMNS)
    cut = part.value.shape != estimate.value.shape
    if name == "correlation":
        shown = show_matrix(part, label, "correlation")
    elif name == "components":
        shown = show_matrix(part, label, "loading", plain_rows=0 if cut else 1)
    elif name == "table":
        rows, _, columns = answer.label.partition(" \\ ")
        totals = not cut and estimate.rows[-1] == ALL == estimate.columns[-1]
        meaning = f"number of {content.mechanism.query.count_word}"
        shown = show_matrix(part, label, meaning, counts=True, corner=(rows, columns), totals=totals)
    elif name == "histogram":
        text = show_dates(answer, content.dates)
        table = show_numbers(estimate, label, corner=(answer.label, ""), text=text)
        return [*_show_chart(content, answer), note(answer.notes), fold("As a table", table)]
    elif answer.list_means() is not None:
        shown = [_show_means(content, replace(answer, estimate=part))]
        shown += [note(answer.notes)] if name == "quantiles" else []
    else:
        shown = [
            show_numbers(part, label, corner=(answer.label, "")),
            note(answer.notes if name == "regression" else ()),
        ]
    shown += _show_chart(content, answer)
    return [*shown, Block("rest", "The rest is in", f"{name}.csv")] if cut else shown


def _show_chart(content: ReportContent, answer: Answer) -> list[Block]:
    """The numbers of an answer for all records as dots with intervals, where its table does not show them."""
    release = as_answerable(content.release)
    if release is None or answer.group or answer.name not in _CHARTED:
        return []
    drawn = answer.name == "means_by_level" and any(one.name == "levels" for one in content.answers)
    charts = draw_answer(release, answer, content.dates, skip=int(drawn))  # the shares are drawn with the levels
    figures = [Block("figure", chart.svg, chart.summary if chart.wide else "") for chart in charts]
    several = sum(one.name == answer.name and not one.group for one in content.answers) > 1 < len(figures)
    figures += [note([charts[0].caption])] if charts else []
    return [fold("As a picture", *figures)] if several else figures


def list_advice(content: ReportContent) -> list[str]:
    """What would show numbers that noise hides: one item for each kind of answer."""
    release = as_answerable(content.release)
    answers = {answer.name: answer for answer in reversed(content.answers) if not answer.group}
    if isinstance(content.main, Estimate) and content.kind not in answers:
        again, title = partial(answer_matrix, kind=content.kind), content.title.capitalize()
        answers[content.kind] = Answer(title, "column", content.main, name=content.kind, again=again)
    found = {one.title: "" if release is None else advise(release, one) for one in reversed(answers.values())}
    return [f"{title}: {words}" for title, words in found.items() if words]


# Words, from passages of ``templates/words.txt``


def write_words(passage: str, *facts: Any) -> list[str]:
    """The lines of a passage, a macro of the template."""
    return [line for line in getattr(load_template("words.txt").module, passage)(*facts).splitlines() if line]


def name_kind(query: MatrixQuery) -> str:
    """The class of a query as the template names it; empty for others."""
    return next((one.__name__ for one in _KINDS if isinstance(query, one)), "")


def _describe_treatment(content: ReportContent) -> list[str]:
    """Sentences on clipping and missing values, as far as the release says what was done."""
    query, numbers = content.mechanism.query, tuple[Number, ...]()
    clips = not isinstance(content.release, MechanismRelease)  # of other mechanisms it is not known
    bounded, table = isinstance(query, BoundedQuery) or query.unit in ("edge", "node"), isinstance(query, TableMoments)
    if isinstance(query, TableMoments):
        numbers = query.used.numbers
    elif isinstance(query, BoundedQuery) and query.bounds.names:
        numbers = list_numbers(query.bounds)
    found = list(content.caveats)
    if isinstance(query, TableMoments) and any(column.missing for column in query.columns):
        found = [*write_words("observed", query), *found]
    elif not found and (table or (clips and bounded)):
        found = write_words("refused")
    if not clips or not (numbers or bounded):
        return found
    return [*write_words("clipping", query, _list_bounds(numbers, content.dates)), *found]


def _list_bounds(numbers: Sequence[Number], dates: Sequence[DateRule]) -> str:
    rules = {rule.name: rule for rule in dates}
    if len({(one.lower, one.upper) for one in numbers}) == 1 < len(numbers) and not rules:
        return f"{format_number(numbers[0].lower, 6)} to {format_number(numbers[0].upper, 6)} in all columns"
    shown = []
    for one in numbers[:_BOUNDED]:
        rule = rules.get(one.name)
        low, high = ((rule and rule.show(end)) or format_number(end, 6) for end in (one.lower, one.upper))
        shown.append(f"{one.name} {low} to {high}")
    more = len(numbers) - len(shown)
    return ", ".join(shown) + (f", and {more:,} more" if more else "")
