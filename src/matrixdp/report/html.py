"""The report as one HTML page: what was asked and found, the numbers, and what the release protects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matrixdp.display import escape_text, format_number, join_words
from matrixdp.privacy import describe_large_delta
from matrixdp.queries import Identity, TableMoments
from matrixdp.queries.base import BoundedQuery
from matrixdp.release.dataset import DatasetRelease
from matrixdp.release.result import Release
from matrixdp.report.answer_sections import render_answers
from matrixdp.report.content import ReportContent
from matrixdp.report.count_totals import add_totals
from matrixdp.report.finding_words import EXPLANATION
from matrixdp.report.findings import average_columns, list_findings
from matrixdp.report.ledger_summary import LedgerSummary
from matrixdp.report.mechanism_facts import AnyRelease, MechanismFacts
from matrixdp.report.number_tables import NumberTable, never_fades, render_matrix, render_numbers, tabulate
from matrixdp.report.page import (
    render_document,
    render_figure,
    render_files,
    render_fold,
    render_heading,
    render_list,
    render_notes,
    render_paragraphs,
    render_section,
    render_warnings,
)
from matrixdp.report.pictures import describe_part, draw_matrix, draw_std, name_colours, relate
from matrixdp.report.strength import name_loss
from matrixdp.report.strips import STRIP, draw_strip
from matrixdp.report.treatment import describe_treatment
from matrixdp.report.words import (
    describe_formally,
    describe_guarantee,
    describe_ledger,
    describe_protection,
    describe_subject,
    explain_error_bars,
)

_TABLE_COLUMNS = 12  # a wider matrix is shown as a picture
_TABLE_ROWS = 24
_NAMED = 16  # columns that the top of the page names


def render_page(content: ReportContent, *, files: Sequence[str] = ()) -> str:
    """The report as an HTML document.

    Parameters
    ----------
    content : ReportContent
    files : sequence of str
        Names of the files in the folder of the report, for links.

    Privacy
    -------
    Made from the release and public facts only.
    """
    title, mechanism, findings = f"Private {content.title}", content.mechanism, list_findings(content)
    explained = [*explain_error_bars(content), *content.units]
    if findings and content.std is not None:
        explained.append(EXPLANATION)
    noise = render_paragraphs([mechanism.noise, *content.notes])
    body = [
        render_heading(title, _list_origin(content), _list_facts(content)),
        render_warnings(list_warnings(mechanism, content.release, content.ledger, content.caveats)),
        render_section("Findings", render_paragraphs(findings), kind="findings") if findings else "",
        *_render_results(content),
        render_section("How to read it", render_list(explained)),
        render_section("The guarantee", render_guarantee(mechanism)),
        render_section("The ledger", render_paragraphs(describe_ledger(content.ledger))),
        render_fold("How the noise was generated", noise, card=True),
        render_section("Files in this folder", render_files(files)) if files else "",
        f"<footer>Made by matrixdp {escape_text(content.release.version)}.</footer>",
    ]
    return render_document(f"{title} – {content.table}" if content.table else title, "".join(body))


def _list_origin(content: ReportContent) -> str:
    return " · ".join(filter(None, ["Differentially private release", content.written]))


def _list_facts(content: ReportContent) -> list[tuple[str, str]]:
    mechanism, ledger = content.mechanism, content.ledger
    return [
        ("Asked", describe_subject(content)),
        ("Columns", _list_columns(content)),
        ("Table", content.table),
        ("Method", "adaptive fit" if mechanism.adaptive else ""),
        ("Privacy", f"{name_loss(mechanism.epsilon)}; protects {mechanism.query.protects}"),
        ("Ledger", "none used" if ledger is None else f"charged to {ledger.allowance or ledger.dataset}"),
    ]


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


def list_warnings(
    mechanism: MechanismFacts,
    release: AnyRelease | DatasetRelease,
    ledger: LedgerSummary | None,
    caveats: Sequence[str] = (),
) -> list[str]:
    """What no reader of a release may miss."""
    warnings = [*mechanism.warnings, *caveats]
    if release.simulation:
        warnings.append("Simulation. Anyone who knows the seed can repeat the noise, so this release protects nobody.")
    records = getattr(mechanism.query, "records", None)
    if mechanism.delta and records is not None and (delta := describe_large_delta(release.privacy, records)):
        warnings.append(delta[0].upper() + delta[1:])
    if ledger is None:
        warnings.append("No ledger was used: nothing keeps the total of the privacy loss from these data.")
    return warnings


def render_guarantee(mechanism: MechanismFacts) -> str:
    """The guarantee in words, with its formula in a fold."""
    formal = "".join(
        f"<p>{escape_text(name)}: {escape_text(words)}</p>" if name else f'<p class="formula">{escape_text(words)}</p>'
        for name, words in describe_formally(mechanism)
    )
    words = render_paragraphs([describe_guarantee(mechanism)]) + render_list(describe_protection(mechanism))
    return words + render_fold("The same in symbols", formal)


def _render_results(content: ReportContent) -> list[str]:
    """The numbers, each section with how values were treated."""
    answers = render_answers(content)
    if content.summary:
        return answers
    wide = content.matrix.shape[1] > _TABLE_COLUMNS
    title = content.title[:1].upper() + content.title[1:] + (describe_part(content) if wide else "")
    means = _render_means(content)
    return [
        render_section(title, _render_main(content)),
        *([] if content.answers or not means else [render_section("Means", means)]),
        *answers,
    ]


def _render_main(content: ReportContent) -> str:
    """The matrix: as a table if it is narrow, otherwise as a picture."""
    notes = render_notes(describe_treatment(content))
    width = content.matrix.shape[1]
    averages = average_columns(content)
    before = ""
    unknown = "" if content.std is not None else "<p>The error bars are unknown.</p>"
    if averages is not None:
        title = render_paragraphs([f"Averages over all {len(content.matrix):,} rows:"])
        before = title + render_numbers(tabulate(averages, "Averages", fades=never_fades))
    if width <= _TABLE_COLUMNS:
        table = _render_table(content)
        if averages is not None:
            table = render_fold("Single rows, each with noise of its own", table)
        return before + unknown + table + notes
    label = f"Heat map of the {content.title}"
    picture = render_figure(draw_matrix(content, " ".join(list_findings(content)), inline=True), label)
    return before + unknown + picture + _render_bars(content) + notes


def _render_table(content: ReportContent) -> str:
    totals = add_totals(content.release) if isinstance(content.release, Release) and content.counts else None
    height = len(content.rows)
    if totals is not None and height <= _TABLE_ROWS:
        table = tabulate(totals, f"The {content.title}", corner=content.variables, totals=True)
    else:
        rows = slice(None, _TABLE_ROWS)
        table = NumberTable(
            value=content.matrix[rows],
            std=None if content.std is None else np.asarray(content.std[rows]),
            rows=content.rows[rows],
            columns=content.columns,
            label=f"The {content.title}",
            corner=content.variables,
        )
    relative = not (content.counts or content.kind == "correlation")
    shown = relate(content.matrix, content.scale)[: len(table.rows)] if relative else None
    if isinstance(
        content.mechanism.query, Identity
    ):  # a row is one record, and mostly noise: there is nothing to be loud about
        matrix = render_numbers(table)
    else:
        matrix = render_matrix(table, name_colours(content), shown=shown, counts=content.counts)
    cut = [f"These are the first {_TABLE_ROWS} of {height:,} rows; the files have all."] if height > _TABLE_ROWS else []
    return matrix + render_paragraphs(cut)


def _render_bars(content: ReportContent) -> str:
    """The error bars of a matrix that is shown as a picture, in words and in a fold."""
    if content.std is None:
        return ""
    noisy = np.asarray(content.std)[np.isfinite(content.std) & (np.asarray(content.std) > 0)]
    if not noisy.size:
        return ""
    low, high = format_number(float(noisy.min())), format_number(float(noisy.max()))
    words = f"All error bars are {low}." if low == high else f"The error bars are from {low} to {high}."
    if low == high:
        return render_paragraphs([words])
    image = render_figure(draw_std(content, inline=True), "Heat map of the error bars")
    return render_paragraphs([words]) + render_fold("The error bars as a picture", image)


def _render_means(content: ReportContent) -> str:
    if content.mean is None or not content.numbers:
        return ""
    mean = content.mean

    def strip(i: int, j: int) -> str:  # noqa: ARG001
        return draw_strip(content.numbers[i], float(mean.value[i, 0]), float(mean.std[i, 0]))

    table = NumberTable(
        value=mean.value,
        std=mean.std,
        rows=content.feature_names,
        columns=("mean",),
        label="Means",
        corner=("column", ""),
        fades=never_fades,
        below=strip,
    )
    return render_numbers(table) + render_notes([STRIP])
