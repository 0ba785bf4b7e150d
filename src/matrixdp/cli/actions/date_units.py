"""What the numbers of columns of dates and times count, and their means as dates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from matrixdp.domain.file_rules import FileRules
from matrixdp.queries import TableMoments
from matrixdp.report.content import ReportContent
from matrixdp.report.dates import show_date


def add_dates(content: ReportContent, rules: FileRules) -> ReportContent:
    """The content with a sentence for each column of dates or times, and its mean as a date where it was released."""
    query = content.mechanism.query
    names = query.columns.names if isinstance(query, TableMoments) else query.names or ()
    means = dict(_find_means(content))
    dates, found = [], []
    for rule in rules.dates:
        if rule.name in names:
            shown = show_date(rule, *means.get(rule.name, (float("nan"), 0.0)))
            ending = f"; its mean is {shown}" if shown else ""
            found.append(f"{rule.name}: a {rule.kind}, shown in {rule.meaning}{ending}.")
            dates.append(rule)
    return replace(content, units=tuple(found), dates=tuple(dates))


def _find_means(content: ReportContent) -> Iterator[tuple[str, tuple[float, float]]]:
    """Means of all records with their standard deviations, by name."""
    for answer in content.answers:
        estimate = answer.estimate
        if answer.name == "means" and not answer.group:
            place = estimate.columns.index("mean")
            for name, value, std in zip(estimate.rows, estimate.value[:, place], estimate.std[:, place], strict=True):
                yield name, (float(value), float(std))
    if content.mean is not None:
        for name, value, std in zip(
            content.feature_names, content.mean.value[:, 0], content.mean.std[:, 0], strict=True
        ):
            yield name, (float(value), float(std))
