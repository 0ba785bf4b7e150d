"""The findings of a release in two or three sentences: only what its error bars support.

A number is named only if noise alone would lift none of those that it was chosen from as far from zero in 95 of 100
releases: the limit in error bars grows with their number (Bonferroni). Differences between two numbers are compared
with the sum of their error bars, which holds however their noise is related.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.answers.moments import ALL
from matrixdp.display import (
    Numbers,
    choose_decimals,
    find_firm,
    find_weak,
    format_cells,
    format_number,
    join_estimate,
    join_words,
)
from matrixdp.domain.columns import Number
from matrixdp.queries import Identity
from matrixdp.release.result import Release
from matrixdp.report.answers import Answer
from matrixdp.report.content import ReportContent
from matrixdp.types import Floats

_MOST = 3  # sentences
_NAMED = 3  # numbers that a sentence names
EXPLANATION = (
    "The findings name a number only if noise alone would lift none of those that it was chosen from as far from zero "
    "in 95 of 100 releases."
)


def list_findings(content: ReportContent) -> list[str]:
    """The findings as sentences."""
    with np.errstate(all="ignore"):
        if content.summary:
            return _read_answers(content)[:_MOST]
        if content.std is None:
            return ["The mechanism does not say how large its noise is, so no number can be told from noise."]
        if content.kind in ("covariance", "correlation"):
            return compare_pairs(content.entries, content.kind)
        if content.counts:
            return describe_counts(content.entries, content.mechanism.query.count_word, content.variables)
        if (averages := average_columns(content)) is not None:
            return _say_averages(content, averages)
        means = [] if content.mean is None else say_means(content.mean, content.numbers)
        return means + _describe_entries(content)


def average_columns(content: ReportContent) -> Estimate | None:
    """Averages over the rows of a noisy data set, of shape (columns, 1); None where its rows are not independent.

    The noise of different rows is independent, so its standard deviation falls with the root of their number.
    """
    release = content.release
    if not (isinstance(release, Release) and isinstance(release.design.query, Identity) and content.kind == "matrix"):
        return None
    if release.design.flat or release.design.rowcov.directions is not None or content.std is None:
        return None
    count = len(content.matrix)
    value, std = content.matrix.mean(axis=0), np.sqrt(np.square(content.std).sum(axis=0)) / count
    return Estimate(value[:, None], std[:, None], content.columns, ("average",))


# Numbers that stand out


def _make_writer(numbers: Numbers, *, counts: bool = False) -> Callable[[Any, Any], str]:
    """A function that writes the number in a row and a column as its table shows it."""
    decimals = [choose_decimals(numbers.value, numbers.std, counts=counts)]

    def write(row: Any, column: Any) -> str:
        ((cell,),) = format_cells(numbers.pick(int(row), int(column)), decimals, digits=None, commas=True)
        return " ".join(filter(None, cell))

    return write


def _name_largest(
    names: Any, value: Floats, std: Floats, write: Callable[[int], str], *, by_bar: bool = False
) -> tuple[list[str], int]:
    """The first few of n numbers that stand out, the largest first or, `by_bar`, the clearest, and how many do.

    A name is a string, or several that are joined by "and".
    """
    chosen = find_firm(value, std, value.size)
    size = np.abs(value) / std if by_bar else np.abs(value)
    order = [k for k in np.argsort(-np.where(chosen, size, -1.0)).tolist() if chosen[k]]
    firm = [names[k] if isinstance(names[k], str) else " and ".join(names[k]) for k in order[:_NAMED]]
    return [f"{name} ({write(k)})" for name, k in zip(firm, order, strict=False)], len(order)


def _find_largest(numbers: Numbers, *, counts: bool = False) -> tuple[tuple[int, int], str] | None:
    """Place and text of the largest number of a table; None if it may be noise alone."""
    value, std = numbers.value, numbers.bars
    if not np.isfinite(value + std).any():
        return None
    place = divmod(int(np.nanargmax(np.where(np.isfinite(std), value, np.nan))), value.shape[1])
    if not (value[place] > 0 and find_firm(value, std, value.size)[place]):
        return None
    return place, _make_writer(numbers, counts=counts)(*place)


def compare_pairs(numbers: Numbers, word: str) -> list[str]:
    """Which of the numbers above the diagonal stand out, and how many noise hides."""
    above = np.triu_indices(len(numbers.rows), 1)
    value, bars = numbers.value[above], numbers.bars[above]
    if not value.size:
        return []
    pairs, write = np.array(numbers.rows, object)[np.stack(above, axis=1)], _make_writer(numbers)
    places = list(zip(*above, strict=True))
    shown, count = _name_largest(pairs, value, bars, lambda k: write(*places[k]), by_bar=word != "correlation")
    return _say_which(shown, count, value.size, word) + _say_weak(value, bars, word)


def describe_counts(numbers: Numbers, word: str, variables: tuple[str, str] = ("", "")) -> list[str]:
    """The largest count, and how many cells may be empty; `variables` are what is counted by, and `word` what is."""
    found = []
    if largest := _find_largest(numbers, counts=True):
        place, shown = largest
        names = zip(variables, (numbers.rows, numbers.columns), place, strict=True)
        cell = [f"{kind} {levels[k]}".strip() for kind, levels, k in names]
        found.append(f"The largest released count is that of {' with '.join(cell)}: {shown} {word}.")
    return found + _say_weak(numbers.value.ravel(), numbers.bars.ravel(), "count")


def say_means(means: Estimate, numbers: Sequence[Number]) -> list[str]:
    """How precise means are, as shares of the ranges of their columns."""
    widths = np.array([one.upper - one.lower for one in numbers])
    shares = (means.std[:, 0] / widths)[means.reliable[:, 0]]
    if not shares.size:
        return ["Noise hides all means."]
    size = _say_range([f"{format_number(100 * float(share), 2)}%" for share in (shares.min(), shares.max())])
    if len(widths) == 1:
        return [f"The error bar of the mean is {size} of the range between its bounds."]
    return [f"The error bars of the {len(widths):,} means are {size} of the ranges between their bounds."]


def _say_averages(content: ReportContent, averages: Estimate) -> list[str]:
    """The averages of the columns of a noisy data set, in which each row has noise of its own."""
    few = list(zip(averages.rows, averages.value[:, 0], averages.std[:, 0], strict=True))[:_NAMED]
    shown = [f"{name} {join_estimate(float(value), float(std))}" for name, value, std in few]
    scale = np.broadcast_to(content.scale, content.matrix.shape)[0]
    ratios = np.asarray(content.std)[0] / np.where(scale > 0, scale, np.nan)
    size = _say_range([format_number(float(ratio), 2) for ratio in (np.nanmin(ratios), np.nanmax(ratios))])
    return [
        f"A single row says little: the noise of an entry is {size} times the largest value that its column can have.",
        f"Averages over all {len(content.matrix):,} rows are far more precise: {join_words(shown)}"
        + (", and others below." if len(averages.rows) > _NAMED else "."),
    ]


def _describe_entries(content: ReportContent) -> list[str]:
    """How many entries of another matrix stand out; those below the diagonal of a symmetric one are not counted."""
    write, std = _make_writer(content.entries), np.asarray(content.std)
    kept = np.ones(content.matrix.shape, bool)
    if content.mechanism.query.symmetric and content.square:
        kept = np.triu(kept)
    kept &= std > 0
    numbers, bars, (first, second) = content.matrix[kept], std[kept], np.nonzero(kept)
    if not numbers.size:
        return []
    names = np.stack([np.array(content.rows, object)[first], np.array(content.columns, object)[second]], axis=1)
    shown, count = _name_largest(names, numbers, bars, lambda k: write(first[k], second[k]))
    named = shown if content.mean is None else []  # of moments, the means were named
    return _say_which(named, count, int(numbers.size), "entry") + _say_weak(numbers, bars, "entry")


def _say_which(shown: Sequence[str], count: int, total: int, word: str) -> list[str]:
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


def _say_weak(numbers: Floats, bars: Floats, word: str) -> list[str]:
    """How many numbers may be noise alone or are hidden; nothing if none are."""
    weak, hidden = int(find_weak(numbers, bars).sum()), int((~np.isfinite(numbers + bars)).sum())
    parts = []
    if weak:
        verb = "is" if weak == 1 else "are"
        parts.append(
            f"{weak:,} of {numbers.size:,} {_plural(word)} {verb} within two error bars of zero and may be noise alone"
        )
    if hidden:
        parts.append(f"{hidden:,} {'is' if hidden == 1 else 'are'} hidden by noise")
    return [f"{'; '.join(parts)}."] if parts else []


def _say_range(ends: Sequence[str]) -> str:
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _plural(word: str) -> str:
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


# Answers


def _read_answers(content: ReportContent) -> list[str]:
    """One finding from each kind of answer, the most telling ones first."""
    whole = {answer.name: answer for answer in reversed(content.answers) if not answer.group}
    found = [reader(whole[name], content) for name, reader in _READERS.items() if name in whole]
    return found[0] if len(found) == 1 else [sentences[0] for sentences in found if sentences]


def _read_table(answer: Answer, content: ReportContent) -> list[str]:
    estimate = answer.estimate
    inner = estimate.cut(*(len(names) - (names[-1:] == (ALL,)) for names in (estimate.rows, estimate.columns)))
    if not np.isfinite(inner.value).any():
        return []
    one, _, other = answer.label.partition(" \\ ")
    return describe_counts(inner, content.mechanism.query.count_word, (one, other))


def _read_levels(answer: Answer, _content: ReportContent) -> list[str]:
    largest = _find_largest(answer.estimate)
    if largest is None:
        return []
    level = answer.estimate.rows[largest[0][0]]
    return [f"The largest released share of {answer.label} is that of {level}: {largest[1]}."]


def _read_groups(answer: Answer, content: ReportContent) -> list[str]:
    """The mean that differs most between two groups, in error bars."""
    estimate = answer.estimate
    names = [one.name for one in content.numbers if one.name in estimate.columns]
    among = len(names) * math.comb(len(estimate.rows), 2)
    best: tuple[float, str] = (0.0, "No mean differs between groups by more than noise can explain.")
    for name in names:
        j = estimate.columns.index(name)
        std = estimate.std[:, j]
        value = np.where(estimate.reliable[:, j], estimate.value[:, j], np.nan)
        if np.isfinite(value).sum() < 2:
            continue
        ends = int(np.nanargmax(value)), int(np.nanargmin(value))
        difference, bar = value[ends[0]] - value[ends[1]], std[list(ends)].sum()
        apart = float(difference / bar)
        if apart > best[0] and find_firm(difference, bar, among):
            write = _make_writer(estimate.column(name))
            shown = [f"{write(k, 0)} in {estimate.rows[k]}" for k in ends]
            words = f"The mean of {name} differs between groups by more than noise can explain: {join_words(shown)}."
            best = (apart, words)
    columns = [estimate.columns.index(name) for name in names]
    small = int((~estimate.reliable[:, columns]).all(axis=1).sum()) if columns else 0
    verb = "has" if small == 1 else "have"
    few = f"{small:,} of {len(estimate.rows):,} groups {verb} so few records that no mean stands out from noise."
    return [best[1]] * bool(names) + [few] * bool(small)


def _read_components(answer: Answer, _content: ReportContent) -> list[str]:
    """How much the first component explains, and the columns that it consists of."""
    names, value, std = answer.estimate.rows[:-1], answer.estimate.value, answer.estimate.std
    found = []
    if np.isfinite(std[-1, 0]):
        share, bar = (float(100 * part[-1, 0] / len(names)) for part in (value, std))
        shown = join_estimate(share, bar)
        sentence = f"The first component explains {shown}% of the variance of the {len(names):,} standardised columns"
        write = _make_writer(answer.estimate.cut(len(names), len(std[0])))
        loadings, _ = _name_largest(names, value[:-1, 0], std[:-1, 0], lambda k: write(k, 0))
        found.append(sentence + (f"; its largest loadings are {join_words(loadings)}." if loadings else "."))
    hidden = int((~np.isfinite(std[-1])).sum())
    if hidden:
        verb = "component has" if hidden == 1 else "components have"
        found.append(f"{hidden:,} {verb} plausible ranges only, since noise mixes them with others.")
    return found


def _read_regression(answer: Answer, _content: ReportContent) -> list[str]:
    """Coefficients that differ from zero by more than noise and sampling error together."""
    estimate = answer.estimate
    value, std, names = estimate.value[1:, 0], np.hypot(estimate.std[1:, 0], estimate.value[1:, 1]), estimate.rows[1:]
    if not names:
        return []
    shown, count = _name_largest(
        names, value, std, lambda k: join_estimate(float(value[k]), float(std[k])), by_bar=True
    )
    if not count:
        many = f"None of the {len(names):,} coefficients differs"
        subject = many if len(names) > 1 else "The coefficient does not differ"
        return [f"{subject} from zero by more than noise and sampling error can explain."]
    amount = f"{count:,} of {len(names):,} coefficients" if len(names) > 1 else "The coefficient"
    verb = "differs" if count == 1 else "differ"
    rest = ", most clearly " if count > len(shown) else ": "
    return [f"{amount} {verb} from zero by more than noise and sampling error can explain{rest}{join_words(shown)}."]


def _read_noise(answer: Answer, content: ReportContent) -> list[str]:
    """The noise of a row and of the average of all rows of a noisy data set, as shares of the largest values."""
    value = answer.estimate.value
    ratios = np.nanmax(value[:, :2] / np.where(value[:, 2:] > 0, value[:, 2:], np.nan), axis=0)
    row, average = (format_number(float(ratio), 2) for ratio in ratios)
    return [
        f"A single row says little: its noise is up to {row} times the largest value that a column can have.",
        f"The noise of an average over all {len(content.matrix):,} rows is at most {average} times that value.",
    ]


_READERS: dict[str, Callable[[Answer, ReportContent], list[str]]] = {
    "regression": _read_regression,
    "components": _read_components,
    "groups": _read_groups,
    "correlation": lambda answer, _: compare_pairs(answer.estimate, "correlation"),
    "table": _read_table,
    "means": lambda answer, content: say_means(answer.estimate, content.numbers),
    "levels": _read_levels,
    "noise": _read_noise,
}
