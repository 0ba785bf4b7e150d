"""Where the numbers of a release come from: for the head of its report, the files beside it, and citations."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from matrixdp.report.content import ReportContent, write_day

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
    """A purpose as it was given, and who approved the request; empty where the ledger has none."""
    given, mark, who = (purpose or "").rpartition(_APPROVED)
    return (given, who[:-1]) if mark and who.endswith(")") else (purpose or "", "")


def list_provenance(content: ReportContent) -> dict[str, Any]:
    """The origin of the numbers of a release, as far as it is known; the names are those of ``provenance.json``.

    `sha256` is the hash of the file of the release: ``sha256sum release.json`` prints it.
    """
    ledger = content.ledger
    purpose, approver = split_approval(None if ledger is None else ledger.purpose)
    facts = {
        "question": content.heading,
        "dataset": content.table,
        "epsilon": content.release.privacy.epsilon,
        "delta": content.release.privacy.delta,
        "protects": content.query.protects,
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


def read_provenance(path: Path) -> dict[str, Any]:
    """The origin of a release from its ``provenance.json``."""
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {name: value for name, value in facts.items() if name != "format"}


def cite(facts: Mapping[str, Any]) -> tuple[str, str]:
    """How to cite a release of this provenance: as a text, and in BibTeX."""
    title = ", from ".join(filter(None, (facts["question"], facts.get("dataset"))))
    kind = f"Differentially private release, made with matrixdp {facts['version']}"
    guarantee = f"Epsilon {facts['epsilon']:g}, delta {facts['delta']:.3g}, protects {facts['protects']}"
    note = f"{guarantee}. SHA-256: {facts['sha256']}"
    entries = {"title": f"{{{title.translate(_TEX)}}}", "howpublished": kind, "note": note.translate(_TEX)}
    released = datetime.fromisoformat(facts["released"]) if "released" in facts else None
    if released is not None:
        entries |= {"year": f"{released:%Y}", "month": f"{released:%m}"}
    lines = "".join(f"  {name} = {{{words}}},\n" for name, words in entries.items())
    text = ". ".join(filter(None, (title, write_day(released), kind, note)))
    return f"{text}.", f"@misc{{matrixdp-{facts['sha256'][:12]},\n{lines}}}"
