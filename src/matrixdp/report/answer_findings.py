"""Findings from the answers of a release: groups, correlations, tables, components and regressions.

Differences between two numbers are compared with the sum of their error bars, which holds however their noise is
related.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from matrixdp.answers.cross_tables import ALL
from matrixdp.answers.estimate import Estimate
from matrixdp.display import choose_decimals, join_estimate, join_words
from matrixdp.report.answer_tables import AnswerTable
from matrixdp.report.certainty import find_limit
from matrixdp.report.content import ReportContent
from matrixdp.report.finding_words import NAMED, compare_pairs, describe_counts, say_means


def read_answers(content: ReportContent) -> list[str]:
    """One finding from each kind of answer, the most telling ones first."""
    whole = {answer.name: answer for answer in reversed(content.answers) if not answer.group}
    readers: dict[str, Callable[[AnswerTable, ReportContent], list[str]]] = {
        "regression": _read_regression,
        "components": _read_components,
        "groups": _read_groups,
        "correlation": lambda answer, _: compare_pairs(
            answer.estimate.value, answer.estimate.std, answer.estimate.rows, "correlation"
        ),
        "table": _read_table,
        "means": _read_means,
        "levels": _read_levels,
    }
    found = [reader(whole[name], content) for name, reader in readers.items() if name in whole]
    if len(found) == 1:
        return found[0]
    return [sentences[0] for sentences in found if sentences]


def _read_table(answer: AnswerTable, content: ReportContent) -> list[str]:
    estimate = answer.estimate
    inner = tuple(
        slice(None, -1 if names and names[-1] == ALL else None) for names in (estimate.rows, estimate.columns)
    )
    one, _, other = answer.label.partition(" \\ ")
    rows, columns = estimate.rows[inner[0]], estimate.columns[inner[1]]
    if not np.isfinite(estimate.value[inner]).any():
        return []
    word = content.mechanism.query.count_word
    return describe_counts(estimate.value[inner], estimate.std[inner], (rows, columns), word, (one, other))


def _read_means(answer: AnswerTable, content: ReportContent) -> list[str]:
    estimate, numbers = answer.estimate, content.numbers
    place = estimate.columns.index("mean")
    return say_means(estimate.value[:, place], estimate.std[:, place], [one.upper - one.lower for one in numbers])


def _read_levels(answer: AnswerTable, content: ReportContent) -> list[str]:  # noqa: ARG001
    estimate, name = answer.estimate, answer.label
    if not np.isfinite(estimate.value).any():
        return []
    first = int(np.nanargmax(estimate.value[:, 0]))
    number, bar = float(estimate.value[first, 0]), float(estimate.std[first, 0])
    if not number > find_limit(len(estimate.rows)) * bar:
        return []
    shown = join_estimate(number, bar, choose_decimals(estimate.value, estimate.std))
    return [f"The largest released share of {name} is that of {estimate.rows[first]}: {shown}."]


def _read_groups(answer: AnswerTable, content: ReportContent) -> list[str]:
    """The mean that differs most between two groups, in error bars."""
    estimate = answer.estimate
    names = [one.name for one in content.numbers if one.name in estimate.columns]
    limit = find_limit(max(1, len(names) * math.comb(len(estimate.rows), 2)))
    best: tuple[float, str] = (0.0, "")
    for name in names:
        j = estimate.columns.index(name)
        value, std = estimate.value[:, j], estimate.std[:, j]
        known = np.isfinite(value)
        if known.sum() < 2:
            continue
        high, low = int(np.nanargmax(value)), int(np.nanargmin(value))
        apart = float((value[high] - value[low]) / (std[high] + std[low]))
        if apart > max(best[0], limit):
            decimals = choose_decimals(value, std)
            shown = [
                f"{join_estimate(float(value[k]), float(std[k]), decimals)} in {estimate.rows[k]}" for k in (high, low)
            ]
            best = (
                apart,
                f"The mean of {name} differs between groups by more than noise can explain: {join_words(shown)}.",
            )
    found = [best[1] or "No mean differs between groups by more than noise can explain."] if names else []
    return found + _say_small(estimate, names)


def _say_small(estimate: Estimate, names: Sequence[str]) -> list[str]:
    columns = [estimate.columns.index(name) for name in names]
    small = int((~np.isfinite(estimate.value[:, columns])).all(axis=1).sum()) if columns else 0
    if not small:
        return []
    return [
        f"{small:,} of {len(estimate.rows):,} groups {'has' if small == 1 else 'have'} too few records for any mean."
    ]


def _read_components(answer: AnswerTable, content: ReportContent) -> list[str]:  # noqa: ARG001
    """How much the first component explains, and the columns that it consists of."""
    estimate = answer.estimate
    names, value, std = estimate.rows[:-1], estimate.value, estimate.std
    found = []
    if np.isfinite(value[-1, 0]):
        share, bar = 100 * value[-1, 0] / len(names), 100 * std[-1, 0] / len(names)
        shown = join_estimate(float(share), float(bar))
        sentence = f"The first component explains {shown}% of the variance of the {len(names):,} standardised columns"
        chosen = np.abs(value[:-1, 0]) > find_limit(len(names)) * std[:-1, 0]
        order = [k for k in np.argsort(-np.abs(value[:-1, 0])).tolist() if chosen[k]][:NAMED]
        decimals = choose_decimals(value[:-1], std[:-1])
        loadings = [f"{names[k]} ({join_estimate(float(value[k, 0]), float(std[k, 0]), decimals)})" for k in order]
        found.append(sentence + (f"; its largest loadings are {join_words(loadings)}." if loadings else "."))
    hidden = int((~np.isfinite(value[-1])).sum())
    if hidden:
        verb = "component is" if hidden == 1 else "components are"
        found.append(f"{hidden:,} {verb} not shown, since noise mixes them with others.")
    return found


def _read_regression(answer: AnswerTable, content: ReportContent) -> list[str]:  # noqa: ARG001
    """Coefficients that differ from zero by more than noise and sampling error together."""
    estimate = answer.estimate
    value, std = estimate.value[1:, 0], np.hypot(estimate.std[1:, 0], estimate.value[1:, 1])
    names = estimate.rows[1:]
    if not len(names):
        return []
    chosen = np.abs(value) > find_limit(len(names)) * std
    order = [k for k in np.argsort(-np.abs(value) / std).tolist() if chosen[k]]
    shown = [f"{names[k]} ({join_estimate(float(value[k]), float(std[k]))})" for k in order[:NAMED]]
    amount = f"{len(order):,} of {len(names):,} coefficients" if len(names) > 1 else "The coefficient"
    if not order:
        subject = (
            f"None of the {len(names):,} coefficients differs" if len(names) > 1 else "The coefficient does not differ"
        )
        return [f"{subject} from zero by more than noise and sampling error can explain."]
    verb = "differs" if len(order) == 1 else "differ"
    rest = ", most clearly " if len(order) > len(shown) else ": "
    return [f"{amount} {verb} from zero by more than noise and sampling error can explain{rest}{join_words(shown)}."]
