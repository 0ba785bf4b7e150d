"""Numbers and labels as short text, for pictures, pages and terminals."""

from __future__ import annotations

import math


def format_number(value: float, digits: int = 3) -> str:
    """A number with at most `digits` significant digits, as short as possible; a dash for NaN.

    Examples
    --------
    >>> format_number(1234567.0), format_number(0.04999), format_number(-12.0), format_number(0.0)
    ('1.23e6', '0.05', '-12', '0')
    """
    if math.isnan(value):
        return "–"
    written = f"{value:.{digits}g}"
    if "e" in written:
        mantissa, exponent = written.split("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{value:.0f}" if -4 <= int(exponent) < digits + 1 and abs(value) >= 1 else f"{mantissa}e{int(exponent)}"
    return written.rstrip("0").rstrip(".") if "." in written else written


def format_estimate(value: float, std: float) -> tuple[str, str]:
    """A number and its error bar, both rounded to the second digit of the error bar.

    Examples
    --------
    >>> format_estimate(12.3456, 0.0312), format_estimate(158.2, 34.0), format_estimate(1.0, 0.0)
    (('12.346', '0.031'), ('158', '34'), ('1', ''))
    >>> format_estimate(-0.001, 0.12)  # no negative zero
    ('0.00', '0.12')
    """
    if not 0 < std < math.inf or math.isnan(value):
        return format_number(value, 4), ""
    places = 1 - math.floor(math.log10(std))
    if not -3 < places < 7 or abs(value) >= 1e7:
        return format_number(value, 4), format_number(std, 2)
    return f"{round(value, places) + 0.0:.{max(places, 0)}f}", f"{round(std, places):.{max(places, 0)}f}"


def make_visible(text: str, *, keep: str = "") -> str:
    r"""Text with control characters, and other characters that are not printable, as visible escapes.

    They could send commands to a terminal or make an SVG image invalid. Characters in `keep` stay as they are.

    Examples
    --------
    >>> make_visible("age\x1b[31m\n")
    'age\\x1b[31m\\n'
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode("ascii") for char in text
    )


def shorten(label: str, length: int) -> str:
    """A label of at most `length` characters, with an ellipsis where it was cut."""
    return label if len(label) <= length else label[: length - 1] + "…"
