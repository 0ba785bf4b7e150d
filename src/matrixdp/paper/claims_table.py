"""The table of claims: MVG as printed, MVG with the exact calibration, and both MVG and its rivals with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matrixdp.paper.claim_checks import CANNOT, EQUIVALENCE, LEVEL, NOT, REPRODUCED, Evidence, Finding, Key
from matrixdp.paper.claims import Claim, claims
from matrixdp.paper.report_table import ReportTable

MODES = ("printed", "exact", "fair")
_EXACT = {
    "mvg": "mvg/exact",
    "mvg-1": "mvg-1/exact",
    "mvg-2": "mvg-2/exact",
    "mvg/theorem2-psd": "mvg/exact",
}
_FAIR = {**_EXACT, "gaussian": "gaussian/exact", "jl": "jl/exact"}

_COLUMNS = {
    "number": "#",
    "place": "Where",
    "claim": "Claim",
    "published": "Published",
    "z": "z",
    "printed_verdict": "MVG as printed",
    "exact_verdict": "MVG exact",
    "fair_verdict": "MVG and rivals exact",
}
_DETAILS = {"claim": "remark", "printed_verdict": "printed", "exact_verdict": "exact", "fair_verdict": "fair"}


def resolver(mode: str) -> Callable[[Key], Key]:
    """A function from the row that a claim names to the row that a mode compares.

    Examples
    --------
    >>> resolver("fair")(("exp2", "gaussian"))
    ('exp2', 'gaussian/exact')
    >>> resolver("exact")(("directions", "exp1/theorem2/i.i.d./1"))
    ('directions', 'exp1/exact/i.i.d./1')
    """
    names = {"printed": {}, "exact": _EXACT, "fair": _FAIR}[mode]

    def resolve(key: Key) -> Key:
        part, row = key
        if part == "directions" and mode != "printed":
            return part, row.replace("/theorem2/", "/exact/")
        return part, names.get(row, row)

    return resolve


def table(evidence: Evidence, *, simulated: bool) -> ReportTable:
    """All claims with their verdicts."""
    rows = [_row(i, claim, evidence) for i, claim in enumerate(claims(), 1)]
    trials = next(iter(evidence.values.values())).size
    notes = (
        f"{trials} trials. A claim is reproduced where a one-sided t-test (paired where trials share their data; "
        f"Kruskal and Wallis for “has an effect”, Wilcoxon for times) holds at level {LEVEL:g}, "
        f"and for “comparable” at {EQUIVALENCE:g}.",
        "“MVG as printed”: MVG with the noise that Theorem 2 requires, rivals as published. “MVG exact”: the exact "
        "calibration against the same rivals. “MVG and rivals exact”: Gaussian and JL have it as well. Claims on "
        "directions are tested at epsilon = 1.",
        "“z”: how many standard errors apart the paper's own two figures are, from its intervals; "
        "below 2, its claim is not significant by its own figures.",
    )
    return ReportTable("claims", "The paper's comparative claims", _COLUMNS, rows, notes, simulated, details=_DETAILS)


def count(table: ReportTable) -> dict[str, dict[str, int]]:
    """How many claims got each verdict, by mode."""
    counts: dict[str, dict[str, int]] = {}
    for mode in MODES:
        verdicts = [row[f"{mode}_verdict"] for row in table.rows]
        counts[mode] = {verdict: verdicts.count(verdict) for verdict in (REPRODUCED, NOT, CANNOT)}
    return counts


def _row(i: int, claim: Claim, evidence: Evidence) -> dict[str, Any]:
    found: dict[str, Finding] = {mode: claim.check(evidence, resolver(mode)) for mode in MODES}
    return {
        "number": i,
        "place": claim.place,
        "claim": claim.text,
        "remark": found["printed"].why or claim.remark,
        "published": claim.published,
        "z": claim.z,
        "printed": found["printed"].measured,
        "printed_p": found["printed"].p,
        "printed_verdict": found["printed"].verdict,
        "exact": found["exact"].measured,
        "exact_p": found["exact"].p,
        "exact_verdict": found["exact"].verdict,
        "fair": found["fair"].measured,
        "fair_p": found["fair"].p,
        "fair_verdict": found["fair"].verdict,
    }
