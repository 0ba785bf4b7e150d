"""Sentences on numbers with error bars: only what the error bars support.

A number is named only if noise alone would lift none of those that it was chosen from as far from zero in 95 of 100
releases: the limit in error bars grows with their number (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matrixdp.display import CERTAIN, choose_decimals, format_number, join_estimate, join_words
from matrixdp.report.certainty import find_limit
from matrixdp.types import Floats

NAMED = 3  # numbers that a sentence names
EXPLANATION = (
    "The findings name a number only if noise alone would lift none of those that it was chosen from as far from zero "
    "in 95 of 100 releases."
)


def compare_pairs(value: Floats, std: Floats, names: Sequence[str], word: str) -> list[str]:
    """Which of the numbers above the diagonal stand out, and how many noise hides."""
    above = np.triu_indices(len(names), 1)
    numbers, bars = value[above], np.asarray(std)[above]
    total, known = numbers.size, np.isfinite(numbers)
    if not total:
        return []
    stand_out = known & (np.abs(numbers) > find_limit(total) * bars)
    size = np.abs(numbers) if word == "correlation" else np.abs(numbers) / bars
    order = [k for k in np.argsort(-np.where(stand_out, size, -1.0)).tolist() if stand_out[k]]
    decimals = choose_decimals(value, std)
    pairs = [(names[above[0][k]], names[above[1][k]], float(numbers[k]), float(bars[k])) for k in order[:NAMED]]
    shown = [f"{one} and {other} ({join_estimate(number, bar, decimals)})" for one, other, number, bar in pairs]
    return say_which(shown, len(order), total, word) + say_weak(numbers, bars, word)


def say_which(shown: Sequence[str], count: int, total: int, word: str) -> list[str]:
    """How many numbers stand out, and the first of them."""
    many = _plural(word)
    if not count:
        subject = f"The only {word} does not stand" if total == 1 else f"None of the {total:,} {many} stands"
        return [f"{subject} out from the noise."]
    if count < total:
        amount = f"{count:,} of {total:,} {many}"
    else:
        amount = {1: f"The only {word}", 2: f"Both {many}"}.get(total, f"All {total:,} {many}")
    listing = "" if not shown else ": " if count <= len(shown) else "; the largest released are "
    return [f"{amount} {'stands' if count == 1 else 'stand'} out from the noise{listing}{join_words(shown)}."]


def say_weak(numbers: Floats, bars: Floats, word: str) -> list[str]:
    """How many numbers may be noise alone or are hidden; nothing if none are."""
    weak = int((np.abs(numbers) < CERTAIN * bars).sum())
    hidden = int((~np.isfinite(numbers)).sum())
    parts = []
    if weak:
        verb = "is" if weak == 1 else "are"
        parts.append(
            f"{weak:,} of {numbers.size:,} {_plural(word)} {verb} within two error bars of zero and may be noise alone"
        )
    if hidden:
        parts.append(f"{hidden:,} {'is' if hidden == 1 else 'are'} hidden by noise altogether")
    return [f"{'; '.join(parts)}."] if parts else []


def describe_counts(
    value: Floats,
    std: Floats,
    names: tuple[Sequence[str], Sequence[str]],
    word: str,
    variables: tuple[str, str] = ("", ""),
) -> list[str]:
    """The largest count, and how many cells may be empty.

    Parameters
    ----------
    value, std : float64 arrays of shape (rows, columns)
    names : tuple of two sequences of str
        Of the rows and of the columns.
    word : str
        What is counted, such as "records".
    variables : tuple of two str
        What the rows and the columns are.
    """
    place = divmod(int(np.nanargmax(value)), value.shape[1])
    number, bar = float(value[place]), float(std[place])
    found = []
    if number > find_limit(value.size) * bar:
        shown = join_estimate(number, bar, choose_decimals(value, std, counts=True))
        cell = [f"{kind} {levels[k]}".strip() for kind, levels, k in zip(variables, names, place, strict=True)]
        found.append(f"The largest released count is that of {' with '.join(cell)}: {shown} {word}.")
    return found + say_weak(value.ravel(), np.asarray(std).ravel(), "count")


def say_means(value: Floats, std: Floats, widths: Sequence[float]) -> list[str]:
    """How precise means are, as shares of the ranges of their columns."""
    shares = (np.asarray(std) / np.asarray(widths))[np.isfinite(value)]
    if not shares.size:
        return ["Noise hides all means."]
    low, high = (f"{format_number(100 * float(share), 2)}%" for share in (shares.min(), shares.max()))
    if len(value) == 1:
        return [f"The error bar of the mean is {high} of the range between its bounds."]
    size = low if low == high else f"{low} to {high}"
    return [f"The error bars of the {len(value):,} means are {size} of the ranges between their bounds."]


def _plural(word: str) -> str:
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
