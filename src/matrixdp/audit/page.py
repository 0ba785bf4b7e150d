"""The result of audits as one HTML page and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from matrixdp.audit.attack import Attack
from matrixdp.audit.measure import Measurement
from matrixdp.audit.tally import Tally
from matrixdp.audit.tradeoff import draw_tradeoff
from matrixdp.display.html import FONT
from matrixdp.privacy import Privacy
from matrixdp.records import Records
from matrixdp.version import __version__

_LARGEST = 400  # entries of a data set that a report shows
_STYLE = f"""
:root{{color-scheme:light dark}} body{{margin:0 auto;max-width:920px;padding:28px 18px;font:16px/1.5 {FONT}}}
section{{border:1px solid #8886;border-radius:10px;padding:14px 22px;margin:16px 0}} h2{{margin:.2em 0}}
.broken{{border:2px solid #c2410c}} pre{{overflow-x:auto;font-size:.85rem}}
"""
_LIMITS = (
    "An audit that finds nothing is no proof: it tries the data sets and events that it can think of. "
    "A pair above its claim proves the claim wrong; so does a replayed fit that is above its claim or differs in more "
    "than its noisy answers. A measured bound is wrong with the stated probability at most. "
    "All data of an audit are made up or given for it; nothing in this report is protected."
)


@dataclass(frozen=True)
class Finding:
    """The result of one audit.

    Attributes
    ----------
    subject : str
        What was audited.
    broken : bool
        Whether its claim does not hold.
    text : str
        The result in one or two sentences.
    facts : dict
        The result as JSON.
    picture : str
        SVG, or an empty string.
    """

    subject: str
    broken: bool
    text: str
    facts: dict[str, Any]
    picture: str = ""


def describe_attack(subject: str, found: Attack) -> Finding:
    """An attack, with the worst pair if it is small."""
    facts = {
        "kind": "attack",
        "claim": found.claim,
        "distance": found.distance,
        "ratio": found.ratio,
        "pairs": found.pairs,
        "refused": found.refused,
        "data": _show_data(found.data),
        "neighbour": _show_data(found.neighbour),
    }
    return Finding(subject, found.broken, str(found), facts)


def describe_replays(subject: str, tally: Tally) -> Finding:
    """Replays of one kind of fit."""
    verdict = f"BROKEN in {len(tally.broken)} of them" if tally.broken else "none above its claim"
    text = f"{tally.audits:,} fits replayed on neighbours: {verdict}; worst ratio {tally.worst:.6f}."
    facts = {"kind": "replay", "replays": tally.audits, "ratio": tally.worst, "seeds": tally.broken}
    return Finding(subject, bool(tally.broken), text, facts)


def describe_measurement(subject: str, found: Measurement) -> Finding:
    """A measurement, with its trade-off curve."""
    claim = found.claim
    facts = {
        "kind": "measurement",
        "epsilon_at_least": found.epsilon,
        "mu_at_least": found.mu,
        "delta": found.delta,
        "level": found.level,
        "trials": found.trials,
        "claim": {"epsilon": claim.epsilon, "delta": claim.delta} if isinstance(claim, Privacy) else claim,
    }
    return Finding(subject, found.broken, str(found), facts, draw_tradeoff(found))


def audit_facts(findings: Sequence[Finding]) -> dict[str, Any]:
    """All findings as JSON content."""
    results = [{"subject": found.subject, "broken": found.broken, **found.facts} for found in findings]
    return {"format": "matrixdp audit 1", "version": __version__, "broken": _any_broken(findings), "results": results}


def render_audit(findings: Sequence[Finding]) -> str:
    """All findings as an HTML document without scripts or external resources."""
    verdict = "At least one claim does not hold." if _any_broken(findings) else "No claim was found to be exceeded."
    sections = "".join(map(_render_finding, findings))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Privacy audit</title><style>{_STYLE}</style></head><body><h1>Privacy audit</h1><p>{verdict}</p>"
        f"{sections}<section><h2>What this shows, and what it does not</h2><p>{_LIMITS}</p></section>"
        f"<footer>Made by matrixdp {__version__}.</footer></body></html>\n"
    )


def _render_finding(found: Finding) -> str:
    rows = "".join(f"{name}: {value}\n" for name, value in found.facts.items() if value is not None)
    kind = ' class="broken"' if found.broken else ""
    return (
        f"<section{kind}><h2>{escape(found.subject)}</h2><p>{escape(found.text)}</p>{found.picture}"
        f"<pre>{escape(rows)}</pre></section>"
    )


def _any_broken(findings: Sequence[Finding]) -> bool:
    return any(found.broken for found in findings)


def _show_data(data: Any) -> Any:
    """A small data set as JSON content, with the ids of people if it has any; None for a large one."""
    if isinstance(data, Records):  # one block, as `with_ids` makes it
        (block,) = (found for part in data.map(lambda _, blocks: list(blocks)) for found in part)
        shown = _show_data(block.data)
        return None if shown is None else {"ids": np.asarray(block.ids).tolist(), "rows": shown}
    if isinstance(data, np.ndarray):
        return data.tolist() if data.size <= _LARGEST else None
    return [list(row) if isinstance(row, tuple) else str(row) for row in data] if len(data) <= _LARGEST else None
