"""What would give error bars to the numbers that noise hides: a larger epsilon, more records, fewer columns.

A forecast says it, for a table as the release describes it. Post-processing: only the release is read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.moments import LARGEST_BAR
from matrixdp.answers.table_forecast import TableForecast
from matrixdp.answers.view import LEAST_SIZE
from matrixdp.design import Design, make_design
from matrixdp.display import format_number, join_words
from matrixdp.domain.file_rules import DateRule
from matrixdp.domain.schema import TableDescription
from matrixdp.privacy import Privacy
from matrixdp.queries import TableMoments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.result import Release
from matrixdp.report.answers import NO_COST, REPLACED, Answer, Answerable
from matrixdp.report.page import write_words

_FACTORS = (1.5, 2.0, 3.0, 5.0, 10.0, 30.0)  # of epsilon
_LARGEST = 10.0  # epsilon that protects anybody
_ENOUGH = 0.5  # of the hidden numbers
_MOST_COORDINATES = 200  # of a table, for forecasts that take no more than a second


@dataclass(frozen=True)
class _Question:
    """A question that a release was asked, known by its answer."""

    key: tuple[Any, ...]
    release: Answerable = field(compare=False)
    answer: Answer = field(compare=False)


def advise(release: Answerable, answer: Answer) -> str:
    """Sentences on what would show half of the numbers of an answer that noise hides; empty if it hides none."""
    if answer.name == "quantiles" or not _pick(answer.estimate.hidden, answer).any():  # which have intervals only
        return ""
    # The numbers that are shown do not tell releases apart: noise may hide those of two alike.
    key = id(release), answer.title, answer.group, answer.estimate.rows, answer.estimate.columns
    return _advise(_Question(key, release, answer))


@lru_cache(maxsize=64)
def _advise(question: _Question) -> str:
    release, answer = question.release, question.answer
    hidden = _pick(answer.estimate.hidden, answer)
    ways, needed, people = list(_list_ways(release, answer, hidden)), 0.0, ""
    bars = answer.estimate.std[answer.estimate.reliable[:, 0], 0]
    if answer.name == "means_by_level" and isinstance(release, Release) and bars.size:
        needed, people = LEAST_SIZE * float(bars.max()) * release.records, release.design.query.count_word
    return " ".join(write_words("advice", int(hidden.sum()), hidden.size, ways, needed, people))


def _pick(numbers: NDArray[np.bool_], answer: Answer) -> NDArray[np.bool_]:
    """Each pair of columns once, and of a regression the coefficients; of other answers what may have an error bar."""
    found = answer.estimate
    if answer.name == "regression":
        return numbers[:, 0]
    if found.rows == found.columns:
        return np.asarray(numbers[np.tril_indices(len(numbers), -1)])
    first = int(answer.name == "means_by_level")  # without shares of the records, which are never hidden
    return np.asarray(numbers[:, first : 2 if answer.name == "means" else None]).ravel()


def _list_ways(release: Answerable, answer: Answer, hidden: NDArray[np.bool_]) -> Iterator[str]:
    if isinstance(release, Release) and release.fit is not None and answer.name == "correlation" and not answer.group:
        release = release.fit
    if isinstance(release, AdaptiveRelease):
        if answer.name == "correlation":
            bars = release.moment.errors.correlation_std[np.tril_indices(len(release.names), -1)]
            factor = float(np.median(bars[hidden])) / LARGEST_BAR
            if 1 < factor < _FACTORS[-1]:
                yield f"about {format_number(factor, 2)} times the epsilon or the records"
        return
    if not isinstance(release.design.query, TableMoments) or answer.again is None or release.part is not None:
        return
    query, privacy = release.design.query, release.design.privacy
    if query.layout.size > _MOST_COORDINATES:
        return
    described = _describe(release, query)

    def shows(design: Design) -> bool:
        assert answer.again is not None
        predicted = answer.again(TableForecast(design, described)).estimate
        return bool(_pick(predicted.reliable, answer)[hidden].mean() >= _ENOUGH)

    for factor in _FACTORS:
        larger = Privacy(privacy.epsilon * factor, privacy.delta)
        if shows(make_design(query, larger)):
            if larger.epsilon <= _LARGEST:
                yield f"epsilon {format_number(larger.epsilon)} in place of {format_number(privacy.epsilon)}"
            yield f"{format_number(larger.mu / privacy.mu, 2)} times the {query.count_word}"
            break
    about = {*answer.estimate.rows, *answer.estimate.columns, answer.label, answer.facts.get("target")}
    about |= set(answer.label.split(" \\ ")) | {row.partition("=")[0] for row in answer.estimate.rows}
    columns = [name for name in query.used.names if name in about]
    if len(columns) < len(query.used.names):
        kept = query.columns.pick([*query.by, *columns])
        options: dict[str, Any] = {"neighbours": query.neighbours, "person": query.person}
        if shows(make_design(TableMoments(kept, query.records, query.by, **options), privacy)):
            yield f"a release of {join_words(columns[:3]) if len(columns) <= 3 else 'these columns'} alone"


def _describe(release: Release, query: TableMoments) -> TableDescription:
    """The table as its release describes it."""
    found = release.means()
    facts = [dict(zip(found.rows, column.tolist(), strict=True)) for column in found.value.T]
    missing = {name: 1 - share for name, share in facts[2].items()} if facts else {}
    shares = {}
    for category in (*query.used.categories, *(query.columns.category(name) for name in query.by)):
        levels = np.maximum(release.means(category.name).value[:, 0], 1e-6)
        if category.missing:
            missing[category.name], levels = float(levels[-1] / levels.sum()), levels[:-1]
        shares[category.name] = dict(zip(category.level_names, (levels / levels.sum()).tolist(), strict=False))
    means, stds = facts[:2] if facts else ({}, {})
    for one in query.used.numbers:  # rounding may lead beyond what is possible
        means[one.name] = min(max(means[one.name], one.lower), one.upper)
        stds[one.name] = min(stds[one.name], (one.upper - one.lower) / 2)
    return TableDescription(means, stds, None, shares, missing)


def list_notes(release: Answerable, answer: Answer, dates: Sequence[DateRule] = ()) -> tuple[str, ...]:
    """All sentences that go with an answer, also on how those of its columns that are dates are counted."""
    caveats = [REPLACED] if getattr(release, "missing", "error") == "midpoint" else []
    if release.simulation:
        caveats.append("This is a simulation: it protects nothing.")
    ranges = [f"{note}." for note in answer.estimate.list_notes()]
    terms = {*answer.estimate.rows, *answer.estimate.columns, answer.facts.get("target")}
    counted = [f"{rule.name}: a {rule.kind}, counted in {rule.meaning}." for rule in dates if rule.name in terms]
    return (*answer.notes, *counted, *ranges, *filter(None, [advise(release, answer)]), NO_COST, *caveats)


def to_facts(release: Answerable, answer: Answer, dates: Sequence[DateRule] = ()) -> dict[str, Any]:
    """The answer as the content of a JSON document."""
    notes = list(list_notes(release, answer, dates))
    return {"title": answer.title, **answer.facts, **answer.estimate.to_dict(), "notes": notes}
