"""The palette: readable text on every surface and every cell, light and dark, and no colour outside of it."""

import re
from importlib.resources import files

import numpy as np
import pytest

from matrixdp.report.svg import (
    DARK,
    DOUBTFUL,
    FADED,
    LIGHT,
    write_page_style,
    write_picture_style,
)

TEXTS = ("ink", "soft", "link", "alert", "good")  # colours of text on a page or a card
MARKS = ("mark", "other", "third")  # colours of lines and dots
HUES = ("positive", "negative", "count")  # colours of cells
TEXT, GRAPHIC = 4.5, 3.0  # least contrast that WCAG 2.2 AA asks for
COLOUR_BLIND = {  # what is seen of linear RGB: Machado, Oliveira and Fernandes, 2009
    "protanopia": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deuteranopia": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "tritanopia": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}


def channels(colour):
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def mix(colour, other, share):
    """What a cell looks like with `share` of its hue over the card, as ``color-mix`` and ``fill-opacity`` paint it."""
    parts = (a * share + b * (1 - share) for a, b in zip(channels(colour), channels(other), strict=True))
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def linear(colour):
    return np.array([c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels(colour)])


def contrast(one, other):
    high, low = sorted((float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def to_lab(light):
    """CIE Lab of linear RGB, in which a distance of about 2 can just be seen."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(light, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_is_readable_on_every_surface(palette):
    for name in TEXTS:
        for surface in ("page", "card"):
            assert contrast(palette[name], palette[surface]) >= TEXT, (name, surface)
    assert contrast(palette["soft"], palette["fixed"]) >= TEXT
    assert contrast(palette["ink"], palette["fixed"]) >= TEXT
    assert contrast(palette["card"], palette["alert"]) >= TEXT  # the mark of simulated data


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_is_readable_on_cells_of_any_strength(palette):
    for hue in HUES:
        for share in (0.0, FADED, DOUBTFUL, 0.5, 1.0):
            assert contrast(palette["ink"], mix(palette[hue], palette["card"], share)) >= TEXT, (hue, share)
        assert contrast(palette["soft"], mix(palette[hue], palette["card"], FADED)) >= TEXT, hue


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_marks_are_visible_and_hues_differ_for_the_colour_blind(palette):
    for name in MARKS:
        assert contrast(palette[name], palette["card"]) >= GRAPHIC, name
    for seen in (np.eye(3), *COLOUR_BLIND.values()):
        shades = (mix(palette[name], palette["card"], 0.6) for name in ("positive", "negative"))
        first, second = (to_lab(seen @ linear(shade)) for shade in shades)
        assert np.linalg.norm(first - second) > 20


def test_the_palettes_have_the_same_names_and_nothing_else_has_colours():
    assert LIGHT.keys() == DARK.keys()
    for name, own in (("page.css", {"font"}), ("answers.css", {"s"}), ("picture.css", set())):
        text = files("matrixdp.report").joinpath("styles", name).read_text(encoding="utf-8")
        assert set(re.findall(r"#[0-9a-fA-F]{3,8}\b", text)) <= {"#fff"}  # paper
        assert set(re.findall(r"var\(--(\w+)\)", text)) - LIGHT.keys() == own


def test_styles_ask_for_nothing_and_pictures_need_no_variables():
    for style in (write_page_style(), write_picture_style()):
        assert not re.search(r"url\(|@import|</", style)
        assert "@media screen and (prefers-color-scheme:dark)" in style
    assert "var(" not in write_picture_style()
