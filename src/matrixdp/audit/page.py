"""The result of audits as one HTML page and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.audit.attack import Attack
from matrixdp.audit.measure import Measurement, draw_tradeoff
from matrixdp.audit.replay import Tally
from matrixdp.privacy import Privacy
from matrixdp.records import Records
from matrixdp.report.page import Block, Page, Section, fold, say
from matrixdp.version import __version__

_LARGEST = 400  # entries of a data set that a report shows
_NAMES = {  # of facts, for readers
    "claim": "Claimed",
    "distance": "Found",
    "ratio": "Found over claimed",
    "pairs": "Pairs of neighbours tried",
    "refused": "Pairs refused by the query",
    "replays": "Fits replayed",
    "seeds": "Seeds of broken fits",
    "skipped": "Parts of results that could not be compared",
    "epsilon_at_least": "Epsilon is at least",
    "mu_at_least": "Mu is at least",
    "delta": "Delta",
    "level": "Probability that the bound is wrong",
    "trials": "Runs on each data set",
}
_FOLDED = {"data": "The data set of the worst pair", "neighbour": "Its neighbour"}
_LIMITS = (
    "An audit that finds nothing is no proof: it tries the data sets and events that it can think of. "
    "A pair above its claim proves the claim wrong; so does a replayed fit that is above its claim or differs in more "
    "than its noisy answers. A measured bound is wrong with the stated probability at most. "
    "All data of an audit are made up or given for it; nothing in this report is protected."
)


@dataclass(frozen=True)
class Finding:
    """The result of one audit, in a sentence or two and as JSON; `picture` is SVG for a file, `inline` for a page."""

    subject: str
    broken: bool
    text: str
    facts: dict[str, Any]
    picture: str = ""
    inline: str = ""


def describe_attack(subject: str, found: Attack) -> Finding:
    """An attack, with the worst pair if it is small."""
    numbers = {name: getattr(found, name) for name in ("claim", "distance", "ratio", "pairs", "refused")}
    facts = {"kind": "attack", **numbers, "data": _show_data(found.data), "neighbour": _show_data(found.neighbour)}
    return Finding(subject, found.broken, str(found), facts)


def describe_replays(subject: str, tally: Tally) -> Finding:
    """Replays of one kind of fit."""
    verdict = f"BROKEN in {len(tally.broken)} of them" if tally.broken else "none above its claim"
    skipped = f" {tally.skipped:,} parts of results could NOT be compared." if tally.skipped else ""
    text = f"{tally.audits:,} fits replayed on neighbours: {verdict}; worst ratio {tally.worst:.6f}.{skipped}"
    numbers = {"replays": tally.audits, "ratio": tally.worst, "seeds": tally.broken, "skipped": tally.skipped}
    return Finding(subject, bool(tally.broken), text, {"kind": "replay", **numbers})


def describe_measurement(subject: str, found: Measurement) -> Finding:
    """A measurement, with its trade-off curve."""
    claim: Any = found.claim
    claim = {"epsilon": claim.epsilon, "delta": claim.delta} if isinstance(claim, Privacy) else claim
    bounds = {"epsilon_at_least": found.epsilon, "mu_at_least": found.mu}
    facts = {name: getattr(found, name) for name in ("delta", "level", "trials")}
    facts = {"kind": "measurement", **bounds, **facts, "claim": claim}
    return Finding(subject, found.broken, str(found), facts, draw_tradeoff(found), draw_tradeoff(found, inline=True))


def audit_facts(findings: Sequence[Finding]) -> dict[str, Any]:
    """All findings as JSON content."""
    results = [{"subject": found.subject, "broken": found.broken, **found.facts} for found in findings]
    broken = any(found.broken for found in findings)
    return {"format": "matrixdp audit 1", "version": __version__, "broken": broken, "results": results}


def render_audit(findings: Sequence[Finding]) -> str:
    """All findings as an HTML document without scripts or external resources."""
    broken = [found.subject for found in findings if found.broken]
    verdict = "No claim was found to be exceeded."
    if broken:
        verb = "does" if len(broken) == 1 else "do"
        verdict = f"{len(broken):,} of {len(findings):,} claims {verb} not hold: {', '.join(broken)}."
    page = Page(
        title="Privacy audit",
        heading="Privacy audit",
        kicker=f"{len(findings):,} subject{'s' * (len(findings) != 1)} audited",
        sections=[
            Section("Findings", [say(verdict)], "findings"),
            *map(_show_finding, findings),
            Section("What this shows, and what it does not", [say(_LIMITS)]),
        ],
        footer=f"Made by matrixdp {__version__}.",
    )
    return page.render()


def _show_finding(found: Finding) -> Section:
    """The result in words, the picture, the numbers, and the data that prove it in a fold."""
    known = {name: value for name, value in found.facts.items() if value is not None}
    blocks = [
        say(found.text),
        *([Block("figure", found.inline)] if found.inline else []),
        Block("facts", [(title, _show(known[name])) for name, title in _NAMES.items() if known.get(name) is not None]),
        *(fold(title, Block("data", str(known[name]))) for name, title in _FOLDED.items() if name in known),
    ]
    return Section(found.subject, blocks, "broken" if found.broken else "")


def _show(value: Any) -> str:
    """A fact as text; an empty list is none."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_show(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:.6g}" if isinstance(value, float) else f"{value:,}"


def _show_data(data: Any) -> Any:
    """A small data set as JSON content, with the ids of people if it has any; None for a large one."""
    if isinstance(data, Records):  # one block, as `with_ids` makes it
        (block,) = (found for part in data.map(lambda _, blocks: list(blocks)) for found in part)
        shown = _show_data(block.data)
        return None if shown is None else {"ids": np.asarray(block.ids).tolist(), "rows": shown}
    if isinstance(data, np.ndarray):
        return data.tolist() if data.size <= _LARGEST else None
    return [list(row) if isinstance(row, tuple) else str(row) for row in data] if len(data) <= _LARGEST else None
