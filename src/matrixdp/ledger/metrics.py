"""The state of a ledger, shown: HTML for notebooks, the text format of Prometheus, and budgets that run low."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from matrixdp.display import render_card, render_facts, render_note, render_table
from matrixdp.errors import MatrixDPError, ParameterError, show
from matrixdp.ledger.values import Allowance, Remaining, Summary

if TYPE_CHECKING:
    from matrixdp.ledger.ledger import Ledger

_THRESHOLD = re.compile(r"([0-9]{0,9}\.?[0-9]{1,18}(?:[eE]-?[0-9]{1,3})?)(%?)")

_HEAD = ("", "protects", "neighbours", "total", "spent", "left", "delta", "charges", "without a release")

_EMPTY = "no data set is registered"
_NOTE = (
    "Total, spent and left are epsilons at the delta of the data set. Spent and left do not sum to the total: the "
    "squares of mu add up. What is allotted to allowances is not left."
)


def render_ledger(ledger: Ledger) -> str:
    """Data sets with what is spent and left of their totals; the reason, if the ledger cannot be read."""
    try:
        found, head = ledger.summaries(), ledger.head
    except MatrixDPError as error:
        return render_card("Ledger", render_facts([("place", str(ledger.path))]), warnings=[str(error)])
    facts = [("place", str(ledger.path)), ("last entry", f"{head.entry}, hash {head.hash[:16]}…")]
    restored = [one.registration.dataset for one in found if one.restored_from is not None]
    marks = [f"Restored from a backup; settle {', '.join(restored)} before the next charge."] if restored else []
    rows = [
        (
            *(s.registration.dataset, str(s.registration.unit), str(s.registration.neighbours)),
            *(f"{epsilon:.4g}" for epsilon in (s.registration.privacy.epsilon, s.spent_epsilon, s.left.epsilon)),
            *(f"{s.registration.privacy.delta:.3g}", f"{s.counts.charges:,}", f"{s.counts.unfinished:,}"),
        )
        for s in found
    ]
    shown = (render_table(_HEAD, rows, texts=3), render_note(_NOTE)) if found else (render_note(_EMPTY), "")
    return render_card("Ledger", render_facts(facts), *shown, warnings=marks)


def parse_threshold(text: str) -> tuple[float, bool]:
    """A threshold of `find_low`: an epsilon, or a share of the total such as "10%", and whether it is a share."""
    found = _THRESHOLD.fullmatch(text)
    value = float(found[1]) if found else math.nan
    if found is None or not 0 < value < math.inf or (found[2] and value > 100):
        raise ParameterError(
            f"the threshold must be a positive epsilon, or a share of up to 100%, got {show(text)} instead."
        )
    return (value / 100, True) if found[2] else (value, False)


def render_metrics(summaries: Sequence[Summary], entries: int, now: datetime) -> str:
    """The state of a ledger with so many entries in the text format of Prometheus; ages are those at `now`."""
    datasets = [({"dataset": s.registration.dataset}, s) for s in summaries]
    information = [
        ({**labels, "neighbours": s.registration.neighbours, "unit": str(s.registration.unit)}, 1)
        for labels, s in datasets
    ]
    allowances = [
        ({"dataset": a.dataset, "allowance": a.name}, a) for s in summaries for a in s.allowances if not a.returned
    ]
    families: list[tuple[str, str, Sequence[tuple[dict[str, str], float | None]]]] = [
        ("entries_total", "Entries of the ledger.", [({}, entries)]),
        ("dataset_info", "What the releases of a data set protect.", information),
        *((name, text, [(labels, get(s, now)) for labels, s in datasets]) for name, text, get in _DATASET_METRICS),
        *((name, text, [(labels, get(a)) for labels, a in allowances]) for name, text, get in _ALLOWANCE_METRICS),
    ]
    lines: list[str] = []
    for name, text, samples in families:
        lines += describe_metric(f"ledger_{name}", "counter" if name.endswith("_total") else "gauge", text)
        lines += [write_sample(f"ledger_{name}", labels, value) for labels, value in samples if value is not None]
    return "\n".join(lines) + "\n"


def describe_metric(name: str, kind: str, text: str) -> tuple[str, str]:
    """The two lines before the samples of a metric."""
    return f"# HELP matrixdp_{name} {text}", f"# TYPE matrixdp_{name} {kind}"


def write_sample(name: str, labels: dict[str, str], value: float) -> str:
    """The line of one sample; backslashes, quotes and line feeds in labels are escaped."""
    escapes = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    parts = ",".join(f'{label}="{one.translate(escapes)}"' for label, one in labels.items())
    number = repr(value) if math.isfinite(value) else "+Inf"
    return f"matrixdp_{name}{f'{{{parts}}}' if parts else ''} {number}"


def find_low(summaries: Iterable[Summary], threshold: tuple[float, bool]) -> list[str]:
    """Messages about data sets and allowances with less than the threshold of `parse_threshold` left.

    A data set counts with all that is not spent, whether it is allotted or not; a returned allowance does not count.
    """
    parts: list[tuple[str, Remaining, float, float]] = []
    for summary in summaries:
        dataset, reserve = summary.registration.dataset, summary.registration.reserve
        parts.append((repr(dataset), summary.unspent, summary.total_mu, reserve.epsilon))
        parts += [
            (f"the allowance {found.name!r} of {dataset!r}", found.left, found.mu, found.epsilon)
            for found in summary.allowances
            if not found.returned
        ]
    messages, (limit, relative) = [], threshold
    for name, left, mu, epsilon in parts:
        # Where there is no Gaussian account, the reserve's epsilon counts.
        share = (left.mu / mu) ** 2 if mu else left.reserve.epsilon / epsilon
        has = left.epsilon + left.reserve.epsilon
        if relative and share < limit:
            messages.append(f"{name} has {share * 100:.4g}% of its budget left, less than {limit * 100:.4g}%.")
        elif not relative and has < limit:
            messages.append(f"{name} has epsilon {has:.4g} left, less than {limit:.4g}.")
    return messages


def measure_age(time: str | None, now: datetime) -> float | None:
    """Seconds since `time`; 0 if the clock was set back since."""
    return None if time is None else max(0.0, (now - datetime.fromisoformat(time)).total_seconds())


_DATASET_METRICS: tuple[tuple[str, str, Callable[[Summary, datetime], float | None]], ...] = (
    ("budget_epsilon", "Total epsilon.", lambda s, _: s.registration.privacy.epsilon),
    ("budget_delta", "Total delta.", lambda s, _: s.registration.privacy.delta),
    ("budget_mu_squared", "Total mu^2 of Gaussian events.", lambda s, _: s.total_mu**2),
    ("spent_epsilon", "Epsilon of a total as large as what is spent.", lambda s, _: s.spent_epsilon),
    ("spent_mu_squared", "Sum of mu^2 that is spent.", lambda s, _: s.spent_mu**2),
    ("unspent_epsilon", "Epsilon that is not spent, allotted or not.", lambda s, _: s.unspent.epsilon),
    ("unspent_mu_squared", "Sum of mu^2 that is not spent.", lambda s, _: s.unspent.mu**2),
    ("left_epsilon", "Epsilon that is neither spent nor allotted.", lambda s, _: s.left.epsilon),
    ("left_mu_squared", "Sum of mu^2 that is neither spent nor allotted.", lambda s, _: s.left.mu**2),
    ("reserve_unspent_epsilon", "Unspent epsilon of the reserve.", lambda s, _: s.unspent.reserve.epsilon),
    ("reserve_unspent_delta", "Unspent delta of the reserve.", lambda s, _: s.unspent.reserve.delta),
    ("charges_total", "Charges.", lambda s, _: s.counts.charges),
    ("unfinished_charges", "Charges without a stored release.", lambda s, _: s.counts.unfinished),
    ("unsettled", "Whether a restored ledger awaits what was spent.", lambda s, _: int(s.restored_from is not None)),
    ("last_charge_age_seconds", "Time since the last charge.", lambda s, now: measure_age(s.counts.last_charge, now)),
    (
        "oldest_unfinished_charge_age_seconds",
        "Time since the first of the charges without a stored release.",
        lambda s, now: measure_age(s.counts.oldest_unfinished, now),
    ),
)
_ALLOWANCE_METRICS: tuple[tuple[str, str, Callable[[Allowance], float]], ...] = (
    ("allowance_epsilon", "Size of the allowance.", lambda a: a.epsilon),
    ("allowance_left_epsilon", "Epsilon left of the allowance.", lambda a: a.left.epsilon),
)
