"""Where the numbers of a release come from: for the head of its report, the files beside it, and citations."""

import json
from typing import Any

from matrixdp.report.content import ReportContent

PROVENANCE = "provenance.json"
_FORMAT = "matrixdp provenance 1"
_APPROVED = " (approved by "  # in the purpose of a charge
_TEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


def note_approval(purpose: str, who: str) -> str:
    """A purpose for the ledger, with who approved the request."""
    return f"{purpose}{_APPROVED}{who})"


def split_approval(purpose: str | None) -> tuple[str, str]:
    """A purpose as it was given, and who approved the request; empty where the ledger has none.

    Examples
    --------
    >>> split_approval(note_approval("annual report (draft)", "carol")), split_approval("annual report")
    (('annual report (draft)', 'carol'), ('annual report', ''))
    """
    given, mark, who = (purpose or "").rpartition(_APPROVED)
    return (given, who[:-1]) if mark and who.endswith(")") else (purpose or "", "")


def list_provenance(content: ReportContent) -> dict[str, Any]:
    """The origin of the numbers of a release, as far as it is known; the names are those of ``provenance.json``.

    `sha256` is the hash of the file of the release: ``sha256sum release.json`` prints it.
    """
    mechanism, ledger = content.mechanism, content.ledger
    purpose, approver = split_approval(None if ledger is None else ledger.purpose)
    facts = {
        "question": content.heading,
        "dataset": content.table,
        "epsilon": mechanism.epsilon,
        "delta": mechanism.delta,
        "protects": mechanism.query.protects,
        "released": "" if content.released is None else content.released.isoformat(timespec="seconds"),
        "purpose": purpose,
        "asked_by": None if ledger is None else ledger.actor,
        "approved_by": approver,
        "contact": content.contact,
        "simulation": content.release.simulation or None,
        "version": content.release.version,
        "sha256": content.sha256,
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}


def write_provenance(content: ReportContent) -> str:
    """The contents of ``provenance.json``."""
    return json.dumps({"format": _FORMAT, **list_provenance(content)}, indent=1, ensure_ascii=False) + "\n"


def cite(content: ReportContent) -> tuple[str, str]:
    """How to cite a release: as a text, and in BibTeX."""
    mechanism, version = content.mechanism, f"matrixdp {content.release.version}"
    title = f"{content.heading}, from {content.table}" if content.table else content.heading
    kind = f"Differentially private release, made with {version}"
    delta = f", delta {mechanism.delta:.3g}" if mechanism.delta else ""
    note = f"Epsilon {mechanism.epsilon:g}{delta}, protects {mechanism.query.protects}. SHA-256: {content.sha256}"
    entries = {"title": f"{{{title.translate(_TEX)}}}", "howpublished": kind, "note": note.translate(_TEX)}
    if content.released is not None:
        entries |= {"year": f"{content.released:%Y}", "month": f"{content.released:%m}"}
    lines = "".join(f"  {name} = {{{words}}},\n" for name, words in entries.items())
    text = ". ".join(filter(None, (title, content.date, kind, note)))
    return f"{text}.", f"@misc{{matrixdp-{content.sha256[:12]},\n{lines}}}"
