"""The findings of a release in two or three sentences: only what its error bars support."""

from __future__ import annotations

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.display import choose_decimals, format_number, join_estimate, join_words
from matrixdp.queries import Identity
from matrixdp.release.result import Release
from matrixdp.report.answer_findings import read_answers
from matrixdp.report.certainty import find_limit
from matrixdp.report.content import ReportContent
from matrixdp.report.finding_words import (
    NAMED,
    compare_pairs,
    describe_counts,
    say_means,
    say_weak,
    say_which,
)

_MOST = 3  # sentences


def list_findings(content: ReportContent) -> list[str]:
    """The findings as sentences."""
    with np.errstate(all="ignore"):
        if content.summary:
            return read_answers(content)[:_MOST]
        if content.std is None:
            return ["The mechanism does not say how large its noise is, so no number can be told from noise."]
        if content.kind in ("covariance", "correlation"):
            return compare_pairs(content.matrix, content.std, content.rows, content.kind)
        if content.counts:
            names, word = (content.rows, content.columns), content.mechanism.query.count_word
            return describe_counts(content.matrix, content.std, names, word, content.variables)
        if (averages := average_columns(content)) is not None:
            return _say_averages(content, averages)
        return _describe_means(content) + _describe_entries(content)


def _describe_means(content: ReportContent) -> list[str]:
    if content.mean is None:
        return []
    widths = [one.upper - one.lower for one in content.numbers]
    return say_means(content.mean.value[:, 0], content.mean.std[:, 0], widths)


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


def _say_averages(content: ReportContent, averages: Estimate) -> list[str]:
    """The averages of the columns of a noisy data set, in which each row has noise of its own."""
    few = list(zip(averages.rows, averages.value[:, 0], averages.std[:, 0], strict=True))[:NAMED]
    shown = [f"{name} {join_estimate(float(value), float(std))}" for name, value, std in few]
    scale = np.broadcast_to(content.scale, content.matrix.shape)[0]
    ratios = np.asarray(content.std)[0] / np.where(scale > 0, scale, np.nan)
    low, high = (format_number(float(ratio), 2) for ratio in (np.nanmin(ratios), np.nanmax(ratios)))
    size = low if low == high else f"{low} to {high}"
    return [
        f"A single row says little: the noise of an entry is {size} times the largest value that its column can have.",
        f"Averages over all {len(content.matrix):,} rows are far more precise: {join_words(shown)}"
        + (", and others below." if len(averages.rows) > NAMED else "."),
    ]


def _describe_entries(content: ReportContent) -> list[str]:
    """How many entries of another matrix stand out; those below the diagonal of a symmetric one are not counted."""
    std = np.asarray(content.std)
    kept = np.ones(content.matrix.shape, bool)
    if content.mechanism.query.symmetric and content.square:
        kept = np.triu(kept)
    kept &= std > 0
    numbers, bars = content.matrix[kept], std[kept]
    if not numbers.size:
        return []
    stand_out = np.abs(numbers) > find_limit(numbers.size) * bars
    shown = []
    if content.mean is None:  # of moments, the means were named
        places, decimals = np.argwhere(kept), choose_decimals(content.matrix, std)
        order = [k for k in np.argsort(-np.abs(numbers)).tolist() if stand_out[k]][:NAMED]
        for k in order:
            i, j = places[k].tolist()
            number = join_estimate(float(numbers[k]), float(bars[k]), decimals)
            shown.append(f"{content.rows[i]} and {content.columns[j]} ({number})")
    return say_which(shown, int(stand_out.sum()), int(numbers.size), "entry") + say_weak(numbers, bars, "entry")
