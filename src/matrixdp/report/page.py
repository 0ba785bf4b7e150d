"""Pages: what stands on one, as data, and the one template that writes it.

Releases, noisy data sets, audits and the reproduction of the paper are all pages of titled sections, and a section is a
list of blocks. A page needs no script and no other file; its policy forbids both. All text is escaped by the template;
only tables, pictures and styles are markup already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from matrixdp.display import Shown, choose_decimals, escape_text, make_visible, write_table
from matrixdp.errors import MissingExtraError, install_hint
from matrixdp.report.shading import shade_entries
from matrixdp.report.stylesheet import write_page_style
from matrixdp.types import Floats


@dataclass(frozen=True)
class Block:
    """A part of a section; `content` is what the template expects of a block of this `kind`."""

    kind: str
    content: Any
    label: str = ""


@dataclass(frozen=True)
class Section:
    """A titled card; `kind` is a class of the stylesheet, and `fold` hides the content until it is opened."""

    title: str
    blocks: Sequence[Block]
    kind: str = ""
    anchor: str = ""
    fold: bool = False


@dataclass(frozen=True, kw_only=True)
class Page:
    """A whole page.

    Attributes
    ----------
    title, heading : str
        In the browser's bar, and on the page.
    kicker : str
        A line above the heading.
    facts : sequence of (name, words)
        Below the heading; facts without words are left out.
    warnings : sequence of str
        Sentences that no reader may miss.
    banner : str
        A mark above everything else.
    sections : sequence of Section
    contents : bool
        Whether links to the sections that have an anchor stand above them.
    footer, style : str
        The style is CSS after that of all pages.
    """

    title: str
    heading: str
    sections: Sequence[Section]
    kicker: str = ""
    facts: Sequence[tuple[str, str]] = ()
    warnings: Sequence[str] = ()
    banner: str = ""
    contents: bool = False
    footer: str = ""
    style: str = ""


def say(*lines: str) -> Block:
    """Paragraphs."""
    return Block("paragraphs", lines)


def note(lines: Iterable[str]) -> Block:
    """Remarks beside a table, in a softer colour."""
    return Block("notes", list(lines))


def list_items(lines: Iterable[str]) -> Block:
    """One item a line."""
    return Block("list", list(lines))


def list_facts(facts: Iterable[tuple[str, str]]) -> Block:
    """Names and what is to be said of each; facts without words are left out."""
    return Block("facts", [(name, words) for name, words in facts if words])


def fold(title: str, *blocks: Block) -> Block:
    """What only some readers need; open on paper."""
    return Block("fold", blocks, title)


def show_picture(svg: str, label: str = "") -> Block:
    """A picture; one with a label is too detailed for a narrow screen, where it scrolls under that label."""
    return Block("figure", svg, label)


def show_numbers(numbers: Shown, label: str, **options: Any) -> Block:
    """A table with the same decimals in each column, in which uncertain numbers fade.

    Parameters
    ----------
    numbers : Shown
    label : str
        What a screen reader calls the table.
    **options
        Of `matrixdp.display.write_table`.
    """
    text, decimals = options.get("text"), []
    for j in range(len(numbers.columns)):
        kept = [i for i in range(len(numbers.rows)) if text is None or not text(i, j)]
        std = None if numbers.std is None else numbers.std[kept, j]
        decimals.append(choose_decimals(numbers.value[kept, j], std))
    return Block("table", write_table(numbers, kind="numbers", decimals=decimals, **options), label)


def show_matrix(
    numbers: Shown,
    label: str,
    meaning: str,
    *,
    shown: Floats | None = None,
    counts: bool = False,
    plain_rows: int = 0,
    **options: Any,
) -> list[Block]:
    """A legend, and a matrix with a colour for each entry and the same decimals in all of them.

    Parameters
    ----------
    numbers : Shown
    label, meaning : str
        What a screen reader calls the table, and what the colours show.
    shown : float64 array of the shape of the table, optional
        The numbers that the colours show, as shares.
    counts : bool
        Whether colours are sequential.
    plain_rows : int
        Number of last rows without colours.
    **options
        Of `matrixdp.display.write_table`.
    """
    value, std = numbers.value, numbers.std
    inner = (slice(len(value) - plain_rows), slice(None))
    if options.get("totals"):
        inner = (slice(-1), slice(-1))
    bars, shares = (None if array is None else array[inner] for array in (std, shown))
    shading = shade_entries(value[inner], bars, shown=shares, counts=counts)
    decimals = [choose_decimals(value, std, counts=counts)] * value.shape[1]
    table = write_table(numbers, kind="numbers matrix", decimals=decimals, colour=shading.attributes, **options)
    return [Block("legend", shading.list_legend(meaning)), Block("table", table, label)]


def render_page(page: Page) -> str:
    """The page as an HTML document."""
    return str(_load_template().render(page=page, style=write_page_style() + page.style)).lstrip()


@lru_cache(maxsize=1)
def _load_template() -> Any:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise MissingExtraError(f"reports need Jinja. {install_hint('cli')}") from None
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: make_visible(value) if type(value) is str else value,
    )
    environment.filters["together"] = lambda line: Markup(escape_text(line).replace(" ± ", "&nbsp;±&nbsp;"))  # noqa: S704
    return environment.get_template("page.html")
