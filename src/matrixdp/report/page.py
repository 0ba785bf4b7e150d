"""The frame and the parts of every page: releases, audits and the reproduction of the paper.

A page needs no script and no other file; its policy forbids both. Arguments named `html` and `svg` are markup, all
others are text and are escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matrixdp.display import escape_text
from matrixdp.report.stylesheet import write_page_style

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def render_document(title: str, html: str, style: str = "") -> str:
    """A whole page; `html` is what stands on it, `style` is CSS of its own after that of all pages."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape_text(title)}</title><style>{write_page_style()}{style}</style></head>"
        f"<body><main>{html}</main></body></html>\n"
    )


def render_heading(title: str, kicker: str = "", facts: Iterable[tuple[str, str]] = ()) -> str:
    """The title, a line above it, and facts below."""
    above = f'<p class="kicker">{escape_text(kicker)}</p>' if kicker else ""
    return f"<header>{above}<h1>{escape_text(title)}</h1>{render_facts(facts)}</header>"


def render_facts(facts: Iterable[tuple[str, str]]) -> str:
    """Names and what is to be said of each; facts without words are left out."""
    listed = "".join(f"<dt>{escape_text(name)}</dt><dd>{escape_text(words)}</dd>" for name, words in facts if words)
    return f'<dl class="facts">{listed}</dl>' if listed else ""


def render_section(title: str, html: str, *, kind: str = "", anchor: str = "") -> str:
    """A titled card; `kind` is a class of the stylesheet."""
    mark = (f' class="{kind}"' if kind else "") + (f' id="{escape_text(anchor)}"' if anchor else "")
    return f"<section{mark}><h2>{escape_text(title)}</h2>{html}</section>"


def render_fold(title: str, html: str, *, card: bool = False) -> str:
    """What only some readers need; open on paper."""
    mark = ' class="card"' if card else ""
    return f"<details{mark}><summary>{escape_text(title)}</summary>{html}</details>"


def render_warnings(lines: Iterable[str]) -> str:
    """Sentences that no reader may miss."""
    return "".join(f'<p class="warning">{escape_text(line)}</p>' for line in lines)


def render_paragraphs(lines: Iterable[str]) -> str:
    """One paragraph a line."""
    return "".join(f"<p>{_keep_together(line)}</p>" for line in lines)


def render_notes(lines: Iterable[str]) -> str:
    """Remarks beside a table, in a softer colour."""
    found = render_paragraphs(lines)
    return f'<div class="notes">{found}</div>' if found else ""


def render_list(lines: Iterable[str]) -> str:
    """One item a line."""
    return "<ul>" + "".join(f"<li>{escape_text(line)}</li>" for line in lines) + "</ul>"


def render_scroll(html: str, label: str, *, wide: bool = False) -> str:
    """What may be wider than the page: it scrolls, also by keyboard."""
    kind = "scroll wide" if wide else "scroll"
    return f'<div class="{kind}" role="group" tabindex="0" aria-label="{escape_text(label)}">{html}</div>'


def render_figure(svg: str, label: str = "") -> str:
    """A picture; one with a label is too detailed for a narrow screen, where it scrolls under that label."""
    return f"<figure>{render_scroll(svg, label, wide=True) if label else svg}</figure>"


def render_files(files: Sequence[str]) -> str:
    """Links to the files beside the page."""
    items = "".join(f'<li><a href="{escape_text(name)}"><code>{escape_text(name)}</code></a></li>' for name in files)
    return f"<ul>{items}</ul>"


def _keep_together(line: str) -> str:
    """Text in which no line ends between a number and its error bar."""
    return escape_text(line).replace(" ± ", "&nbsp;±&nbsp;")
