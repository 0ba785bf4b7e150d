"""The report as one HTML page: light and dark colours; its policy forbids scripts and external resources."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from matrixdp.answers.named import TOO_FEW, NamedEstimate
from matrixdp.display.html import FONT, escape_text
from matrixdp.display.numbers import format_estimate, format_number
from matrixdp.privacy import describe_large_delta
from matrixdp.report.answer_tables import AnswerTable
from matrixdp.report.content import ReportContent
from matrixdp.report.mean_plot import draw_means
from matrixdp.report.pictures import draw_correlation, draw_matrix, draw_std
from matrixdp.report.strength import name_loss
from matrixdp.report.words import (
    describe_guarantee,
    describe_ledger,
    describe_protection,
    describe_subject,
    explain_error_bars,
)

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_TABLE_COLUMNS = 10  # a wider matrix is shown as a picture only
_TABLE_ROWS = 20
_ANSWER_ROWS, _ANSWER_COLUMNS = 60, 20
_MOST_TABLES, _MOST_GROUPS = 20, 24  # of a section, and of a page
_SECTIONS = {
    "levels": "Levels of the categories",
    "means_by_level": "Means by level",
    "table": "Counts by two categories",
    "regression": "Regression",
}
_STYLE = f"""
:root{{color-scheme:light dark;--ink:#1c2330;--soft:#5b6472;--line:#d9dee6;--card:#ffffff;--page:#f4f6f9}}
@media (prefers-color-scheme:dark){{:root{{--ink:#e6e9ef;--soft:#a3acba;--line:#333b47;--card:#1a1f28;--page:#11151b}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 {FONT}}}
main{{max-width:980px;margin:0 auto;padding:32px 20px 64px}}
h1{{font-size:1.9rem;line-height:1.2;margin:0 0 .3em}}
h2{{font-size:1.2rem;margin:0 0 .6em}}
p{{margin:.4em 0 .8em}} li{{margin:.35em 0}} ul{{padding-left:1.2em;margin:.2em 0}}
.lead{{font-size:1.06rem;color:var(--soft)}}
section{{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:20px 24px;margin:18px 0}}
.scroll{{overflow-x:auto}}
table{{margin-bottom:14px;border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}}
th,td{{padding:4px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}}
th{{font-weight:600}} th[scope=row],tr th:first-child,.facts th,.facts td{{text-align:left}}
.facts td{{white-space:normal}}
.bar,.weak{{color:var(--soft)}}
h3{{font-size:1rem;margin:1.2em 0 .4em}}
.warning{{border:2px solid #c2410c;border-radius:10px;padding:12px 18px;margin:18px 0;font-weight:600}}
code{{font-size:.9em}} footer{{color:var(--soft);font-size:.9rem}}
svg{{display:block}} figure{{margin:0}}
@media (max-width:600px){{main{{padding:20px 8px}} section{{padding:14px 12px}} svg{{min-width:440px}}}}
@media print{{body{{background:#fff}} section{{break-inside:avoid}}}}
"""


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
    title, subject, mechanism = f"Private {escape_text(content.title)}", describe_subject(content), content.mechanism
    body = [
        f"<h1>{title}</h1>",
        f'<p class="lead">{escape_text(subject)}</p>',
        _render_warnings(content),
        _render_section("At a glance", _render_facts(content, subject)),
        *_render_results(content),
        _render_section("How to read it", _render_list([*explain_error_bars(content), *content.units])),
        _render_section(
            "The guarantee",
            _render_paragraphs([describe_guarantee(mechanism)]) + _render_list(describe_protection(mechanism)),
        ),
        _render_section("The ledger", _render_paragraphs(describe_ledger(content.ledger))),
        _render_section("How the noise was generated", _render_paragraphs([mechanism.noise, *content.notes])),
        _render_files(files),
        f"<footer>Made by matrixdp {escape_text(content.release.version)}.</footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _render_results(content: ReportContent) -> list[str]:
    answers = render_answers(content)
    if content.summary:
        return answers
    return [
        _render_section("The matrix", _render_figure(draw_matrix(content, inline=True))),
        _render_section("How precise it is", _render_precision(content)),
        *answers,
    ]


def _render_warnings(content: ReportContent) -> str:
    warnings = [*content.mechanism.warnings, *content.caveats]
    if content.release.simulation:
        warnings.append("Simulation. Anyone who knows the seed can repeat the noise, so this release protects nobody.")
    if (delta := _describe_delta(content)) and content.mechanism.delta:
        warnings.append(delta[0].upper() + delta[1:])
    if content.ledger is None:
        warnings.append("No ledger was used: nothing keeps the total of the privacy loss from these data.")
    return "".join(f'<p class="warning" role="note">{escape_text(warning)}</p>' for warning in warnings)


def _describe_delta(content: ReportContent) -> str:
    """Why delta is too large for the number of records; empty if it is not."""
    records = getattr(content.mechanism.query, "records", None)
    return "" if records is None else describe_large_delta(content.release.privacy, records)


def _render_facts(content: ReportContent, subject: str) -> str:
    release, mechanism = content.release, content.mechanism
    facts = {
        "Released": subject,
        "Method": "adaptive fit" if mechanism.adaptive else "",
        "Guarantee": f"{mechanism.guarantee}: {name_loss(mechanism.epsilon)}",
        "Neighbours": mechanism.query.adjacency,
        "Protects": mechanism.query.protects,
        "Spent": mechanism.cost,
        **({} if content.summary else {"Error bars": _describe_range(content)}),
        "Ledger": "none used" if content.ledger is None else f"charged to {content.ledger.dataset}",
        "Software": f"matrixdp {release.version}" + (" (simulation)" if release.simulation else ""),
    }
    rows = (_render_row(name, [escape_text(value)]) for name, value in facts.items() if value)
    return f'<table class="facts">{"".join(rows)}</table>'


def _describe_range(content: ReportContent) -> str:
    """Smallest and largest error bar, without those of entries that have no noise."""
    if content.std is None:
        return "unknown"
    noisy = content.std[np.isfinite(content.std) & (content.std > 0)]
    if not noisy.size:
        return "none"
    low, high = format_number(float(noisy.min())), format_number(float(noisy.max()))
    return low if low == high else f"{low} to {high}"


def _render_precision(content: ReportContent) -> str:
    parts = []
    if content.mean is not None:
        entries = [[_render_entry(*pair)] for pair in zip(content.mean.value, content.mean.std, strict=True)]
        table = _render_table(["feature", "mean"], content.feature_names, entries)
        parts.append(f"<p>The means, each with its error bar:</p>{table}")
    height, width = content.matrix.shape
    if width <= _TABLE_COLUMNS:
        shown = "" if height <= _TABLE_ROWS else f" (the first {_TABLE_ROWS} of {height:,} rows)"
        bars = ", each entry with its error bar" if content.std is not None else ""
        parts.append(f"<p>The matrix{bars}{shown}:</p>{_render_matrix(content)}")
    if content.std is None:
        parts.append("<p>The error bars are unknown.</p>")
    else:
        parts.append(_render_figure(draw_std(content, inline=True)))
    return "".join(parts)


def _render_matrix(content: ReportContent) -> str:
    values = content.matrix[:_TABLE_ROWS]
    std = np.zeros(values.shape) if content.std is None else content.std[:_TABLE_ROWS]
    cells = [[_render_entry(*pair) for pair in zip(*pairs, strict=True)] for pairs in zip(values, std, strict=True)]
    return _render_table(["", *content.columns], content.rows[:_TABLE_ROWS], cells)


def _render_entry(value: float, std: float) -> str:
    number, bar = format_estimate(float(value), float(std))
    return f'{number} <span class="bar">± {bar}</span>' if bar else number


def render_answers(content: ReportContent) -> list[str]:
    """Sections with the answers from the moments of a table: for all records, then for each group."""
    by: tuple[str, ...] = getattr(content.mechanism.query, "by", ())
    sections: list[str] = []
    groups: dict[tuple[str, ...], list[AnswerTable]] = {}
    for answer in content.answers:
        if answer.group:
            groups.setdefault(answer.group, []).append(answer)
    whole = [answer for answer in content.answers if not answer.group]
    by_file: dict[str, list[AnswerTable]] = {}
    for answer in whole:
        by_file.setdefault(answer.name, []).append(answer)
    notes = "".join(f'<p class="weak">{escape_text(line)}</p>' for line in content.caveats)
    for name, tables in by_file.items():
        shown = tables[:_MOST_TABLES]
        more = len(tables) - len(shown)
        body = "".join(_render_answer(table, heading=len(tables) > 1) for table in shown)
        body += f"<p>{more:,} more are in <code>{name}.csv</code>.</p>" if more else ""
        title = tables[0].title if len(tables) == 1 else _SECTIONS[name]
        sections.append(_render_section(title, notes + _render_picture(content, name, tables[0]) + body))
    for group, tables in list(groups.items())[:_MOST_GROUPS]:
        title = ", ".join(f"{name}: {level}" for name, level in zip(by, group, strict=True))
        sections.append(_render_section(title, notes + _render_group(tables)))
    if len(groups) > _MOST_GROUPS:
        rest = f"<p>{len(groups) - _MOST_GROUPS:,} more groups are in the CSV files.</p>"
        sections.append(_render_section("Other groups", rest))
    return sections


def _render_group(tables: Sequence[AnswerTable]) -> str:
    means = [table.estimate.reliable[:, 0] for table in tables if table.name == "means"]
    if means and not np.concatenate(means).any():
        return f"<p>{TOO_FEW.capitalize()} records: noise hides how many there are.</p>"
    return "".join(_render_answer(table, heading=True) for table in tables[:_MOST_TABLES])


def _render_picture(content: ReportContent, name: str, answer: AnswerTable) -> str:
    if name == "correlation" and len(answer.estimate.rows) > 1:
        return _render_figure(draw_correlation(answer, inline=True))
    if name in ("means", "groups"):
        image = draw_means(content, answer, inline=True)
        return "" if image is None else _render_figure(image)
    return ""


def _render_answer(answer: AnswerTable, *, heading: bool) -> str:
    estimate = answer.estimate
    columns = min(len(estimate.columns), _ANSWER_COLUMNS)
    rows = [
        [_render_cell(estimate, i, j) for j in range(columns)] for i in range(min(len(estimate.rows), _ANSWER_ROWS))
    ]
    title = f"<h3>{escape_text(answer.title)}</h3>" if heading else ""
    table = _render_table([answer.label, *estimate.columns[:columns]], estimate.rows[:_ANSWER_ROWS], rows)
    cut = columns < len(estimate.columns) or len(estimate.rows) > _ANSWER_ROWS
    return title + table + (f"<p>The rest is in <code>{answer.name}.csv</code>.</p>" if cut else "")


def _render_cell(estimate: NamedEstimate, i: int, j: int) -> str:
    value, std = float(estimate.value[i, j]), float(estimate.std[i, j])
    if not math.isfinite(value):
        return f'<span class="weak">{escape_text(estimate.reason(i, j))}</span>'
    cell = _render_entry(value, std)
    return f'<span class="weak">{cell}</span>' if math.isfinite(std) and abs(value) < 2 * std else cell


def _render_table(header: Sequence[str], names: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{escape_text(name)}</th>' for name in header)
    rows = "".join(_render_row(name, row) for name, row in zip(names, cells, strict=True))
    return f'<div class="scroll"><table><tr>{top}</tr>{rows}</table></div>'


def _render_row(name: str, cells: Iterable[str]) -> str:
    return f'<tr><th scope="row">{escape_text(name)}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _render_figure(image: str) -> str:
    return f'<figure class="scroll">{image}</figure>'


def _render_files(files: Sequence[str]) -> str:
    if not files:
        return ""
    items = "".join(f'<li><a href="{escape_text(name)}"><code>{escape_text(name)}</code></a></li>' for name in files)
    return _render_section("Files in this folder", f"<ul>{items}</ul>")


def _render_section(title: str, html: str) -> str:
    return f"<section><h2>{escape_text(title)}</h2>{html}</section>"


def _render_paragraphs(lines: Iterable[str]) -> str:
    return "".join(f"<p>{escape_text(line)}</p>" for line in lines)


def _render_list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape_text(line)}</li>" for line in lines) + "</ul>"
