"""The look of every page and picture: one palette, light and dark, and the stylesheet that uses it.

Colours follow the reader's colour scheme; paper is always light. A coloured cell is the colour of the page with a share
of one hue over it, so that text of one colour is readable on all of them (`tests/unit/report/test_stylesheet.py`).
"""

from collections.abc import Mapping
from importlib.resources import files

from matrixdp.display import FONT

_COLOURS = {  # light and dark
    "page": ("#f5f6f8", "#0f1318"),
    "card": ("#ffffff", "#181d25"),
    "ink": ("#18202c", "#eceff3"),
    "soft": ("#525c6a", "#a9b3c0"),
    "line": ("#d5dae1", "#39424e"),
    "link": ("#0a58a8", "#82bcff"),
    "alert": ("#a83a00", "#ff9c66"),
    "good": ("#12703a", "#5fd08b"),
    "mark": ("#1b6cb0", "#6db3f2"),
    "other": ("#b3500a", "#f2995a"),
    "third": ("#8a4fa8", "#c79be8"),
    "positive": ("#f09a56", "#96490f"),
    "negative": ("#79b4e8", "#1d62a0"),
    "count": ("#6cc4ae", "#1a6f5e"),
    "fixed": ("#e6e9ed", "#2b323c"),
}
LIGHT: Mapping[str, str] = {name: light for name, (light, _) in _COLOURS.items()}
DARK: Mapping[str, str] = {name: dark for name, (_, dark) in _COLOURS.items()}
WEAKEST = 0.14  # share of its hue that the palest certain entry has
DOUBTFUL = 0.30  # the most that an entry has that may be chance among so many
FADED = 0.08  # and the most that an entry has that may be noise alone


def _read(name: str) -> str:
    return files("matrixdp.report").joinpath("styles", name).read_text(encoding="utf-8")


def _list_variables(palette: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in palette.items())


def write_page_style() -> str:
    """The stylesheet of a page."""
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{_list_variables(DARK)}}}}}"
    root = f":root{{color-scheme:light dark;--font:{FONT};{_list_variables(LIGHT)}}}"
    return f"{root}\n{dark}\n{_read('picture.css')}{_read('page.css')}"


def write_picture_style() -> str:
    """The style of a picture in a file of its own, with its colours written out: many programs know no variables."""
    light = dark = f"{_read('picture.css')}svg{{background:var(--card)}}"
    for name in LIGHT:
        light, dark = light.replace(f"var(--{name})", LIGHT[name]), dark.replace(f"var(--{name})", DARK[name])
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}"
