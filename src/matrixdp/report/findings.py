"""The findings of a release in two or three sentences: only what its error bars support.

A number is named only if noise alone would lift none of those that it was chosen from as far from zero in 95 of 100
releases: the limit in error bars grows with their number (Bonferroni). Differences between two numbers are compared
with the sum of their error bars, which holds however their noise is related. Numbers are written as in their tables.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.estimate import Estimate
from matrixdp.answers.moments import ALL
from matrixdp.display import Numbers, choose_decimals, find_firm, find_weak, format_cells, format_number
from matrixdp.domain.columns import Number
from matrixdp.queries import MatrixQuery
from matrixdp.release.options import MATRICES
from matrixdp.report.answers import Answer
from matrixdp.report.content import ReportContent, list_columns
from matrixdp.report.page import write_words
from matrixdp.types import Floats

_MOST = 3  # sentences
_NAMED = 3  # numbers that a sentence names


def list_findings(content: ReportContent) -> list[str]:
    """The findings as sentences: all of the matrix or the only answer, and else the first of each kind of answer."""
    whole, main = {answer.name: answer for answer in reversed(content.answers) if not answer.group}, content.main
    with np.errstate(all="ignore"):
        first = [] if main is None else _MAIN.get(main.name, _read_matrix)(main, content)
        others = [name for name in _READERS if name in whole and whole[name] is not main]
        read = [_READERS[name](whole[name], content) for name in others]
    others = read[0] if len(read) == 1 and main is None else [sentences[0] for sentences in read if sentences]
    return [*first, *others][:_MOST]


# Numbers that stand out


def _write(numbers: Numbers, row: int, column: int, *, counts: bool = False) -> str:
    """The number in a row and a column as its table shows it."""
    decimals = [choose_decimals(numbers.value, numbers.std, counts=counts)]
    ((cell,),) = format_cells(numbers.pick(row, column), decimals, digits=None, commas=True)
    return " ".join(filter(None, cell))


def _name_largest(
    value: Floats, std: Floats, describe: Callable[[int], tuple[str, str]], *, by_bar: bool = False
) -> tuple[list[str], int]:
    """The first few of n numbers that stand out, the largest first or, `by_bar`, the clearest, and how many do.

    `describe` gives the name and the text of the number at a place.
    """
    chosen, size = find_firm(value, std, value.size), np.abs(value) / std if by_bar else np.abs(value)
    order = [k for k in np.argsort(-np.where(chosen, size, -1.0)).tolist() if chosen[k]]
    return ["{} ({})".format(*describe(k)) for k in order[:_NAMED]], len(order)


def _find_largest(numbers: Numbers, *, counts: bool = False) -> tuple[tuple[int, int], str] | None:
    """Place and text of the largest number of a table; None if it may be noise alone."""
    value, std = numbers.value, numbers.bars
    if not np.isfinite(value + std).any():
        return None
    place = divmod(int(np.nanargmax(np.where(np.isfinite(std), value, np.nan))), value.shape[1])
    if not (value[place] > 0 and find_firm(value, std, value.size)[place]):
        return None
    return place, _write(numbers, *place, counts=counts)


def describe_entries(
    numbers: Numbers, word: str, kept: NDArray[np.bool_] | None = None, *, named: bool = True
) -> list[str]:
    """How many numbers stand out, which are the largest, and how many noise hides.

    The numbers are those at some places, by default above the diagonal. The clearest covariances are named in place of
    the largest ones, since they have different units.
    """
    kept = np.triu(np.ones(numbers.value.shape, bool), 1) if kept is None else kept
    value, bars, places = numbers.value[kept], numbers.bars[kept], np.argwhere(kept)
    if not value.size:
        return []

    def describe(k: int) -> tuple[str, str]:
        i, j = places[k].tolist()
        return f"{numbers.rows[i]} and {numbers.columns[j]}", _write(numbers, i, j)

    shown, count = _name_largest(value, bars, describe, by_bar=word == "covariance")
    return write_words("entries", word, value.size, count, shown if named else [], *_count_weak(value, bars))


def describe_counts(numbers: Numbers, word: str, variables: tuple[str, str] = ("", "")) -> list[str]:
    """The largest count, and how many cells may be empty; `variables` are what is counted by, and `word` what is."""
    cell, largest = "", _find_largest(numbers, counts=True)
    if largest:
        names = zip(variables, (numbers.rows, numbers.columns), largest[0], strict=True)
        cell = " with ".join(f"{kind} {levels[k]}".strip() for kind, levels, k in names)
    weak = _count_weak(numbers.value, numbers.bars)
    return write_words("largest_count", cell, largest and largest[1], word, numbers.value.size, *weak)


def say_means(means: Estimate, numbers: Sequence[Number]) -> list[str]:
    """How precise means are, as shares of the ranges of their columns."""
    widths = np.array([one.upper - one.lower for one in numbers])
    shares = 100 * (means.std[:, 0] / widths)[means.reliable[:, 0]]
    return write_words("means", _say_range(shares, "%") if shares.size else "", len(widths))


def _count_weak(numbers: Floats, bars: Floats) -> tuple[int, int]:
    """How many numbers may be noise alone, and how many are hidden."""
    return int(find_weak(numbers, bars).sum()), int((~np.isfinite(numbers + bars)).sum())


def _say_range(numbers: Floats, unit: str = "") -> str:
    low, high = (format_number(float(end), 2) + unit for end in (np.nanmin(numbers), np.nanmax(numbers)))
    return low if low == high else f"{low} to {high}"


def describe_matrix(query: MatrixQuery, answer: Answer, *, named: bool = True) -> list[str]:
    """How many entries stand out; those below the diagonal of a symmetric matrix are not counted."""
    found = answer.estimate
    if answer.name in MATRICES:
        return describe_entries(found, answer.name)
    kept = np.triu(found.bars > 0) if query.symmetric and found.rows == found.columns else np.asarray(found.bars > 0)
    return describe_entries(found, "entry", kept, named=named)


def _read_matrix(answer: Answer, content: ReportContent) -> list[str]:
    means = any(one.name == "means" for one in content.answers)  # of moments, which have sentences of their own
    return describe_matrix(content.query, answer, named=not means)


def _read_rows(answer: Answer, content: ReportContent) -> list[str]:
    """The noise of a row of a noisy data set, and the averages of its columns."""
    largest = np.asarray(answer.scale)[0]
    size = _say_range(answer.estimate.std[0] / np.where(largest > 0, largest, np.nan))
    averages = next((one.estimate for one in content.answers if one.name == "averages"), None)
    names = () if averages is None else averages.rows
    shown = [] if averages is None else [f"{name} {_write(averages, k, 0)}" for k, name in enumerate(names[:_NAMED])]
    return write_words("rows", size, len(answer.estimate.rows), shown, len(names) > _NAMED)


def _read_table(answer: Answer, content: ReportContent) -> list[str]:
    estimate = answer.estimate
    inner = estimate.cut(*(len(names) - (names[-1:] == (ALL,)) for names in (estimate.rows, estimate.columns)))
    if not np.isfinite(inner.value).any():
        return []
    one, _, other = answer.label.partition(" \\ ")
    variables = content.variables if answer.name == "counts" else (one, other)
    return describe_counts(inner, content.query.count_word, variables)


def _read_levels(answer: Answer, _content: ReportContent) -> list[str]:
    if (largest := _find_largest(answer.estimate)) is None:
        return []
    level = answer.estimate.rows[largest[0][0]]
    return [f"The largest released share of {answer.label} is that of {level}: {largest[1]}."]


def _read_groups(answer: Answer, content: ReportContent) -> list[str]:
    """The mean that differs most between two groups, in error bars."""
    estimate = answer.estimate
    names = [one.name for one in list_columns(content.query) if one.name in estimate.columns]
    if not names:
        return []
    among = len(names) * math.comb(len(estimate.rows), 2)
    best, most, shown = 0.0, "", list[str]()
    for name in names:
        one = estimate.column(name)
        value = np.where(one.reliable, one.value, np.nan)[:, 0]
        if np.isfinite(value).sum() < 2:
            continue
        ends = int(np.nanargmax(value)), int(np.nanargmin(value))
        difference, bar = value[ends[0]] - value[ends[1]], one.std[list(ends), 0].sum()
        if difference > best * bar and find_firm(difference, bar, among):
            best, most = float(difference / bar), name
            shown = [f"{_write(one, k, 0)} in {estimate.rows[k]}" for k in ends]
    hidden = ~estimate.reliable[:, [estimate.columns.index(name) for name in names]]
    return write_words("groups", most, shown, int(hidden.all(axis=1).sum()), len(estimate.rows))


def _read_components(answer: Answer, _content: ReportContent) -> list[str]:
    """How much the first component explains, and the columns that it consists of."""
    estimate, names, share, largest = answer.estimate, answer.estimate.rows[:-1], "", list[str]()
    loadings, last = estimate.cut(len(names), len(estimate.columns)), len(names)
    if np.isfinite(estimate.std[last, 0]):
        share = _write(estimate.pick(last, 0).scale(100 / len(names)), 0, 0)
        value, std = loadings.value[:, 0], loadings.std[:, 0]
        largest, _ = _name_largest(value, std, lambda k: (names[k], _write(loadings, k, 0)))
    return write_words("components", share, len(names), largest, int((~np.isfinite(estimate.std[last])).sum()))


def _read_regression(answer: Answer, _content: ReportContent) -> list[str]:
    """Coefficients that differ from zero by more than noise and sampling error together."""
    estimate, names = answer.estimate, answer.estimate.rows[1:]
    if not names:
        return []
    terms, value = estimate.cut(len(names) + 1, 1), estimate.value[1:, 0]
    std = np.hypot(estimate.std[1:, 0], estimate.value[1:, 1])
    shown, count = _name_largest(value, std, lambda k: (names[k], _write(terms, k + 1, 0)), by_bar=True)
    return write_words("regression", count, len(names), shown)


def _read_noise(answer: Answer, content: ReportContent) -> list[str]:
    """The noise of a row and of the average of all rows of a noisy data set, as shares of the largest values."""
    value = answer.estimate.value
    ratios = np.nanmax(value[:, :2] / np.where(value[:, 2:] > 0, value[:, 2:], np.nan), axis=0)
    return write_words("row_noise", *(format_number(float(ratio), 2) for ratio in ratios), content.shape[0])


Reader = Callable[[Answer, ReportContent], list[str]]
_MAIN: dict[str, Reader] = {"counts": _read_table, "rows": _read_rows}  # of other matrices, their entries
_READERS: dict[str, Reader] = {  # the most telling ones first
    "regression": _read_regression,
    "components": _read_components,
    "groups": _read_groups,
    "correlation": _read_matrix,
    "table": _read_table,
    "means": lambda answer, content: say_means(answer.estimate, list_columns(content.query)),
    "levels": _read_levels,
    "noise": _read_noise,
}
