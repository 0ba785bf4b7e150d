"""Pages: what stands on one, as data, and the templates that write it.

Releases, noisy data sets, audits and the reproduction of the paper are all pages of titled sections, and a section is a
list of blocks. A page needs no script and no other file; its policy forbids both. All text is escaped by the template;
only tables, pictures and styles are markup already.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from matrixdp.design.explain import compare_to_limit
from matrixdp.display import Numbers, format_number, join_words, make_visible, write_table
from matrixdp.errors import MissingExtraError, install_hint
from matrixdp.report.pictures import Look, shade_entries
from matrixdp.report.svg import write_page_style


@dataclass(frozen=True)
class Block:
    """A part of a section."""

    kind: str
    content: Any  # what the template expects of a block of this kind
    label: str = ""  # a figure with a label is too detailed for a narrow screen, where it scrolls under it


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
    """A whole page."""

    title: str  # in the browser's bar
    heading: str  # on the page
    sections: Sequence[Section]
    kicker: str = ""  # above the heading
    facts: Sequence[tuple[str, str]] = ()  # names and words below it; without words they are left out
    warnings: Sequence[str] = ()  # sentences that no reader may miss
    banner: str = ""  # a mark above everything else
    contents: bool = False  # links to the sections that have an anchor stand above them
    footer: str = ""
    style: str = ""  # CSS after that of all pages

    def render(self) -> str:
        """The page as an HTML document."""
        return str(load_template("page.html").render(page=self, style=write_page_style() + self.style)).lstrip()


@dataclass(frozen=True)
class WordTable:
    """Words and numbers under named columns, for a block "words"."""

    name: str  # of its files
    title: str
    columns: Mapping[str, str]  # from a column's key to its heading
    rows: list[dict[str, Any]]  # a key `group` that is not a column divides them into groups
    notes: tuple[str, ...] = ()
    simulated: bool = False  # whether any of it comes from simulated data
    groups: Mapping[str, str] = field(default_factory=dict)  # from a value of `group` to its heading
    details: Mapping[str, str] = field(default_factory=dict)  # from a column to the key of small print, in HTML only
    mark: ClassVar[str] = ""  # what stands above a table of simulated data
    verdicts: ClassVar[Sequence[str]] = ()

    def list_groups(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Title and rows of each group; one group without a title if there are none."""
        if not self.groups:
            return [("", self.rows)]
        return [
            (self.groups.get(str(one), str(one)), list(rows))
            for one, rows in groupby(self.rows, lambda row: row["group"])
        ]


def say(*lines: str) -> Block:
    """Paragraphs."""
    return Block("paragraphs", lines)


def note(lines: Iterable[str]) -> Block:
    """Remarks beside a table, in a softer colour."""
    return Block("notes", list(lines))


def fold(title: str, *blocks: Block) -> Block:
    """What only some readers need; open on paper."""
    return Block("fold", blocks, title)


def show_numbers(numbers: Numbers, label: str, **options: Any) -> Block:
    """A table with the same decimals in each column, in which uncertain numbers fade.

    A screen reader calls it `label`; options are those of `matrixdp.display.write_table`.
    """
    return Block("table", write_table(numbers, kind="numbers", align="columns", **options), label)


def show_matrix(numbers: Numbers, label: str, look: Look, **options: Any) -> list[Block]:
    """A legend, and a matrix with a colour for each entry and the same decimals in all of them.

    A screen reader calls the table `label`; options are those of `matrixdp.display.write_table`.
    """
    height, width = numbers.value.shape
    totals = bool(options.get("totals"))
    inner = slice(height - look.plain_rows - totals), slice(width - totals)
    bars, shares = (None if array is None else array[inner] for array in (numbers.std, look.shown))
    shading = shade_entries(numbers.value[inner], bars, shown=shares, counts=look.counts)
    options |= {"kind": "numbers matrix", "align": "table", "counts": look.counts}
    table = write_table(numbers, colour=shading.attributes(height, width), **options)
    return [Block("legend", shading.list_legend(look.meaning)), Block("table", table, label)]


def render_blocks(blocks: Iterable[Block]) -> str:
    """Blocks as HTML, for another page, which has ``answers.css`` and ``picture.css``."""
    return "".join(map(load_template("blocks.html").module.show, blocks))


def write_words(passage: str, *facts: Any) -> list[str]:
    """The lines of a passage, a macro of ``templates/words.txt``."""
    return [line for line in getattr(load_template("words.txt").module, passage)(*facts).splitlines() if line]


@lru_cache
def load_template(name: str) -> Any:
    """A template of this package; all text is escaped in one that is HTML."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise MissingExtraError(f"reports need Jinja. {install_hint('cli')}") from None

    def clean(value: Any) -> Any:
        return make_visible(value) if type(value) is str and not value.isprintable() else value

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=name.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=clean,
    )
    environment.filters["together"] = lambda line: Markup(escape(clean(line)).replace(" ± ", "&nbsp;±&nbsp;"))  # noqa: S704
    environment.filters |= {"form": format, "number": format_number, "words": join_words, "limit": compare_to_limit}
    return environment.get_template(name)
