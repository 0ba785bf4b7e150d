"""The page of a release: what was asked and found, the numbers, and what it protects."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.answers.moments import ALL
from matrixdp.display import format_number, say_parts
from matrixdp.domain.columns import Number
from matrixdp.domain.file_rules import DateRule
from matrixdp.privacy import describe_large_delta
from matrixdp.queries import ContingencyTable, GramMatrix, Identity, MatrixQuery, Moments, TableMoments
from matrixdp.queries.base import BoundedQuery
from matrixdp.release.options import MATRICES
from matrixdp.release.result import Release
from matrixdp.report.advice import advise
from matrixdp.report.answers import Answer, add_totals, as_answerable
from matrixdp.report.charts import draw_charts
from matrixdp.report.content import ReportContent, list_columns, list_numbers, write_day
from matrixdp.report.dates import show_dates
from matrixdp.report.findings import describe_matrix, list_findings
from matrixdp.report.guarantee import describe_odds, name_loss
from matrixdp.report.page import Block, Page, Section, fold, note, say, show_matrix, show_numbers, write_words
from matrixdp.report.pictures import choose_look, describe_part, draw_matrix
from matrixdp.report.provenance import cite, list_provenance
from matrixdp.report.svg import STRIP, draw_strip

DATASET_PAGE = "_report.html"  # readers of data sets skip names that begin with an underscore
_ROWS, _COLUMNS, _RECORDS = 60, 20, 24  # of a table, and rows of a noisy data set
_WIDE, _WIDEST = ("matrix", "counts", *MATRICES), 12  # matrices that are shown as pictures, from so many columns on
_NOTED = ("regression", "quantiles", "histogram")  # whose notes say more than how to read any number
_BOUNDED = 12  # columns whose bounds are named
_KINDS = (ContingencyTable, Moments, TableMoments, Identity, GramMatrix)  # that the template tells apart
_MOST_TABLES, _MOST_GROUPS, _MOST_FILES = 20, 24, 20  # of a section, of a page, and links
_ORIGIN = {"Purpose": "purpose", "Asked by": "asked_by", "Approved by": "approved_by", "Contact": "contact"}
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
    ledger, release, query, findings = content.ledger, content.release, content.query, list_findings(content)
    privacy, loss = release.privacy, name_loss(release.privacy.epsilon)
    kind = next((one.__name__ for one in _KINDS if isinstance(query, one)), "")
    shown = [answer.estimate for answer in content.answers]
    marks = any(one.plausible.any() for one in shown), any((one.ranged & ~one.plausible).any() for one in shown)
    explained = [*write_words("error_bars", content, kind, isinstance(release, Release), *marks), *content.units]
    explained += write_words("findings") if findings else []
    records = getattr(query, "records", None)
    delta = "" if records is None else describe_large_delta(privacy, records)
    part = getattr(release, "part", None)
    warned = (content, delta[:1].upper() + delta[1:], ledger or part)
    paid = ("The ledger", "ledger") if part is None else ("The stream", "stream")
    formal = [line.split(": ", 1) for line in write_words("symbols", content, kind)]
    odds = describe_odds(privacy.epsilon, privacy.delta, query.protects)
    guarantee = [
        say(*write_words("guarantee", query, loss)),
        Block("list", write_words("protection", query)),
        fold("The same in symbols", Block("symbols", [("", *pair)[-2:] for pair in formal])),
    ]
    links, more = [Block("files", files[:_MOST_FILES])], len(files) - _MOST_FILES
    if more > 0:
        links.append(say(f"… and {more:,} more."))
    origin = list_provenance(content)
    text, bibtex = cite(origin)
    return Page(
        title=f"{content.heading} – {content.table}" if content.table else content.heading,
        heading=content.heading,
        kicker=" · ".join(filter(None, ["Differentially private release", write_day(content.released)])),
        facts=[
            ("Shows", " ".join(write_words("subject", content, kind))),
            ("Columns", " ".join(write_words("columns", query, content.variables))),
            ("Data set", content.table),
            ("Method", "adaptive fit" if content.adaptive else ""),
            ("Protects", query.protects),
            ("Privacy", f"ε = {privacy.epsilon:g}, δ = {privacy.delta:.3g}: {loss}. {odds}"),
            *((name, origin.get(key, "")) for name, key in _ORIGIN.items()),
        ],
        warnings=write_words("warnings", *warned),
        sections=[
            *([] if release.simulation else [Section("How to cite it", [say(text), Block("data", bibtex)], fold=True)]),
            *([Section("Findings", [say(*findings)], "findings")] if findings else []),
            *_show_results(content),
            *([Section("What would help", [Block("list", help_)])] if (help_ := list_advice(content)) else []),
            Section("How to read it", [Block("list", explained)]),
            Section("The guarantee", guarantee),
            Section(paid[0], [say(*write_words(paid[1], part or ledger))]),
            Section("How the noise was generated", [say(*write_words("noise", content), *content.notes)], fold=True),
            *([Section("Files in this folder", links)] if files else []),
        ],
        footer=f"Made by matrixdp {release.version}.",
    ).render()


def list_main_blocks(content: ReportContent) -> list[Block]:
    """The findings of a release, and its first table, for a page about several releases."""
    first = next(iter(_show_results(content)), None)
    return [say(*list_findings(content)), *(() if first is None else first.blocks)]


# Answers


def _show_results(content: ReportContent) -> list[Section]:
    """Sections with the answers: for all records, with how values were treated, then for each group."""
    by_file: dict[str, list[Answer]] = {}
    groups: dict[tuple[str, ...], list[Answer]] = {}
    for answer in content.answers:
        place = groups.setdefault(answer.group, []) if answer.group else by_file.setdefault(answer.name, [])
        place.append(answer)
    if "averages" in by_file:  # a single row is mostly noise
        by_file = {"averages": by_file.pop("averages"), **by_file}
    with_means = next((name for name, one in by_file.items() if one[0].list_means() is not None), None)
    sections: list[Section] = []
    for name, tables in by_file.items():
        blocks = _show_tables(content, tables, name)
        if name == with_means and list_columns(content.query):
            blocks.append(note([STRIP]))
        if not sections:
            blocks.append(note(_describe_treatment(content)))
        title = tables[0].title if len(tables) == 1 else _SECTIONS[name]
        sections.append(Section(title, blocks, fold=name == "rows" and "averages" in by_file))
    by: tuple[str, ...] = getattr(content.query, "by", ())
    for group, tables in list(groups.items())[:_MOST_GROUPS]:
        title = ", ".join(f"{name}: {level}" for name, level in zip(by, group, strict=True))
        sections.append(Section(title, _show_tables(content, tables, ""), fold=True))
    if len(groups) > _MOST_GROUPS:
        rest = say(f"{len(groups) - _MOST_GROUPS:,} more groups are in the CSV files.")
        sections.append(Section("Other groups", [rest]))
    return sections


def _show_tables(content: ReportContent, tables: Sequence[Answer], name: str) -> list[Block]:
    """Tables of one kind with their charts, and with titles if there are several."""
    blocks: list[Block] = []
    for answer in tables[:_MOST_TABLES]:
        blocks += [Block("heading", answer.title)] if len(tables) > 1 or answer.group else []
        drawn = answer.name == "means_by_level" and any(one.name == "levels" for one in content.answers)
        charts = [] if answer.group else draw_charts(answer, content.dates, skip=int(drawn))  # shares are drawn once
        if answer.name == "counts" and isinstance(content.release, Release) and len(answer.estimate.rows) < _ROWS:
            answer = replace(answer, estimate=add_totals(content.release) or answer.estimate)
        shown = show_answer(content.query, answer, content.dates, content.variables)
        notes = [note(answer.notes)] if answer.name in _NOTED else []
        if answer.name == "histogram":
            blocks += [*charts, *notes, fold("As a table", *shown)]
        else:
            charts = [fold("As a picture", *charts)] if len(tables) > 1 < len(charts) - 1 else charts
            blocks += [*shown, *notes, *charts]
    more = len(tables) - _MOST_TABLES
    return [*blocks, Block("rest", f"{more:,} more are in", f"{name}.csv")] if more > 0 and name else blocks


def show_answer(
    query: MatrixQuery,
    answer: Answer,
    dates: Sequence[DateRule] = (),
    variables: tuple[str, str] = ("", ""),
    *,
    whole: bool = False,
) -> list[Block]:
    """The numbers of an answer to a query: in colours if they are a matrix, and as a picture if that is wide.

    Means have a strip that shows where they lie between their bounds, and those of `dates` are dates. `variables` are
    those of the rows and columns of counts. A long table is cut and a wide matrix drawn, unless `whole` is asked for.
    """
    estimate, name, look = answer.estimate, answer.name, choose_look(answer, query.count_word)
    if name in _WIDE and len(estimate.columns) > _WIDEST and not whole:
        return _show_picture(answer, query)
    rows, _, columns = answer.label.partition(" \\ ")
    options: dict[str, Any] = {"corner": variables if name == "counts" else (rows, columns)}
    part = estimate if whole or name == "noise" else estimate.cut(_RECORDS if name == "rows" else _ROWS, _COLUMNS)
    cut = say_parts(part, estimate)
    if look is None:
        height, width = part.value.shape
        options |= {"fades": answer.fades[:height, :width], "below": _draw_strips(query, answer, part)}
        blocks = [show_numbers(part, answer.title, text=show_dates(answer, dates), **options)]
    else:
        options["totals"] = not cut and estimate.rows[-1] == ALL == estimate.columns[-1]
        blocks = show_matrix(part, answer.title, look._replace(plain_rows=0) if cut else look, **options)
    return [*blocks, say(f"These are the first {cut}; the files have all.")] if cut else blocks


def _show_picture(answer: Answer, query: MatrixQuery) -> list[Block]:
    """A wide matrix: a heat map, and the range of its error bars."""
    words = " ".join(describe_matrix(query, answer))
    picture, std = draw_matrix(answer, words, query.count_word, inline=True), answer.estimate.bars
    blocks = [Block("figure", picture, f"Heat map: {answer.title}{describe_part(answer.estimate)}")]
    noisy = std[np.isfinite(std) & (std > 0)]
    if not noisy.size:
        return blocks
    low, high = (format_number(float(end)) for end in (noisy.min(), noisy.max()))
    return [*blocks, say(f"All error bars are {low}." if low == high else f"The error bars are from {low} to {high}.")]


def _draw_strips(query: MatrixQuery, answer: Answer, part: Estimate) -> list[list[str]] | None:
    """Where means lie between the bounds of their columns; None if there are no means."""
    names, known = answer.list_means(), {one.name: one for one in list_columns(query)}
    if names is None or answer.name == "histogram":
        return None
    places = zip(names, part.value.tolist(), *(end.tolist() for end in part.interval()), strict=False)
    return [
        [draw_strip(known[name], *ends) if name in known else "" for name, *ends in zip(*line, strict=False)]
        for line in places
    ]


def list_advice(content: ReportContent) -> list[str]:
    """What would show numbers that noise hides: one item for each kind of answer."""
    release = as_answerable(content.release)
    answers = {answer.name: answer for answer in reversed(content.answers) if not answer.group}
    found = {one.title: "" if release is None else advise(release, one) for one in reversed(answers.values())}
    return [f"{title}: {words}" for title, words in found.items() if words]


def _describe_treatment(content: ReportContent) -> list[str]:
    """Sentences on clipping and missing values, as far as the release says what was done."""
    query, numbers = content.query, tuple[Number, ...]()
    bounded, table = isinstance(query, BoundedQuery) or query.unit in ("edge", "node"), isinstance(query, TableMoments)
    if isinstance(query, TableMoments) or (isinstance(query, BoundedQuery) and query.bounds.names):
        numbers = list_numbers(query)
    found = list(content.caveats)
    if isinstance(query, TableMoments) and any(column.missing for column in query.columns):
        found = [*write_words("observed", query), *found]
    elif not found and (table or bounded):
        found = write_words("refused")
    if not (numbers or bounded):
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
