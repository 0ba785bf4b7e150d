"""Every comparative claim of the paper with its statistical test, and the table of verdicts.

A claim "A has a smaller error than B" is reproduced where the difference of the measured means has the claimed sign and
a one-sided t-test rejects its absence at `LEVEL`; where trials share their data (Exp. I) it is a paired test.
Everything else is "not reproduced". The level is small because there are many claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from matrixdp.paper.gains import PANELS, direction_key
from matrixdp.paper.published import COMPONENT, COVARIANCE, REGRESSION, SUBSPACE, Figure
from matrixdp.paper.tables import ReportTable, number
from matrixdp.types import Floats

LEVEL = 0.001
EQUIVALENCE = 0.05  # level of "comparable", whose claim is in the margin
REPRODUCED, NOT, CANNOT = "reproduced", "not reproduced", "cannot be"

Key = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Errors of all trials, by part and row, and the seconds of the runtime table."""

    values: Mapping[Key, Floats]
    timings: Mapping[str, Mapping[str, Sequence[float]]]


class Finding(NamedTuple):
    """What was measured, the test's p-value, the verdict, and the reason where it is not obvious."""

    measured: str
    p: float
    verdict: str
    why: str = ""


Check = Callable[[Evidence, Callable[[Key], Key]], Finding]


class Comparison(NamedTuple):
    """Difference of two means, half the width of its 95% interval, and the one-sided p-value of its absence."""

    difference: float
    half: float
    p: float


def compare(smaller: Floats, larger: Floats | float, *, paired: bool, factor: float = 1.0) -> Comparison:
    """Test whether ``factor * smaller`` is below `larger` in the mean.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> compare(rng.normal(0, 1, 50), rng.normal(3, 1, 50), paired=False).p < 1e-6
    True
    """
    left = factor * smaller
    if isinstance(larger, float):
        left, larger, paired = np.zeros_like(left), larger - left, True
    difference = float(larger.mean() - left.mean())
    if paired:
        gaps = larger - left
        error, freedom = float(gaps.std(ddof=1)) / math.sqrt(gaps.size), gaps.size - 1.0
    else:
        parts = [float(side.var(ddof=1)) / side.size for side in (left, larger)]
        error = math.sqrt(sum(parts))
        freedom = sum(parts) ** 2 / max(
            sum(part**2 / (side.size - 1) for part, side in zip(parts, (left, larger), strict=True)), 1e-300
        )
    if error <= 1e-15 * max(1.0, abs(difference)):
        return Comparison(difference, 0.0, 0.0 if difference > 0 else 1.0)
    return Comparison(
        difference, float(stats.t.ppf(0.975, freedom)) * error, float(stats.t.sf(difference / error, freedom))
    )


def judge(comparisons: Sequence[Comparison]) -> tuple[float, str]:
    """The largest p-value, and "reproduced" if every comparison holds at `LEVEL`.

    Examples
    --------
    >>> judge([Comparison(0.1, 0.01, 1e-9), Comparison(0.1, 0.2, 0.2)])
    (0.2, 'not reproduced')
    """
    worst = max(one.p for one in comparisons)
    return worst, REPRODUCED if worst < LEVEL else NOT


def less(part: str, smaller: str, *larger: str | Key | float, factor: float = 1.0) -> Check:
    """`smaller` has a smaller error than each of `larger` (in the same part, or given with its part)."""

    def check(evidence: Evidence, resolve: Callable[[Key], Key]) -> Finding:
        left = evidence.values[resolve((part, smaller))]
        found, words = [], []
        for other in larger:
            key = None if isinstance(other, float) else other if isinstance(other, tuple) else (part, other)
            right = float(other) if isinstance(other, float) else evidence.values[resolve(key)] if key else 0.0
            shared = key is not None and _paired(part, smaller) and _paired(*key)
            found.append(compare(left, right, paired=shared, factor=factor))
            words.append(number(float(np.mean(right))))
        p, verdict = judge(found)
        gap = f" (difference {number(found[0].difference)} ± {number(found[0].half)})" if len(found) == 1 else ""
        prefix = "" if factor == 1.0 else f"{factor:.3g} x "
        return Finding(f"{prefix}{number(float(left.mean()))} against {', '.join(words)}{gap}", p, verdict)

    return check


def no_gain(part: str, smaller: str, larger: str) -> Check:
    """`smaller` is about as good as `larger`: reproduced if no difference is found in either direction."""

    def check(evidence: Evidence, resolve: Callable[[Key], Key]) -> Finding:
        gain, loss = (less(part, *pair)(evidence, resolve) for pair in ((smaller, larger), (larger, smaller)))
        found = REPRODUCED in (gain.verdict, loss.verdict)
        return gain._replace(p=min(gain.p, loss.p), verdict=NOT if found else REPRODUCED)

    return check


def differ(part: str, keys: Sequence[str]) -> Check:
    """At least one of the rows differs from the others (Kruskal and Wallis)."""

    def check(evidence: Evidence, resolve: Callable[[Key], Key]) -> Finding:
        groups = [evidence.values[resolve((part, key))] for key in keys]
        p = float(stats.kruskal(*groups).pvalue)
        means = ", ".join(number(float(group.mean())) for group in groups)
        return Finding(means, p, REPRODUCED if p < LEVEL else NOT)

    return check


def comparable(part: str, keys: Sequence[str], *, within: float = 0.1) -> Check:
    """The two best rows are within a factor ``1 + within`` of each other."""

    def check(evidence: Evidence, resolve: Callable[[Key], Key]) -> Finding:
        groups = sorted((evidence.values[resolve((part, key))] for key in keys), key=lambda group: float(group.mean()))
        best, second = groups[:2]
        found = compare(second, best * (1 + within), paired=_paired(part, keys[0]))
        words = f"{number(float(best.mean()))} and {number(float(second.mean()))}"
        return Finding(words, found.p, REPRODUCED if found.p < EQUIVALENCE else NOT)

    return check


def slower(than: Sequence[str], *, times: float = 2.0, faster: bool = False) -> Check:
    """MVG takes at least `times` as long as each of `than` in every experiment, or (`faster`) the reverse."""

    def check(evidence: Evidence, _resolve: Callable[[Key], Key]) -> Finding:
        words, p = [], 0.0
        for name, timings in evidence.timings.items():
            own = np.log(timings["mvg"])
            for key in than:
                other = np.log(timings[key])
                gap = (other - own if faster else own - other) - math.log(times)
                p = max(p, float(stats.wilcoxon(gap, alternative="greater").pvalue))
                words.append(f"{name} {key}: {number(float(np.exp(np.median(other - own))))}")
        why = "The rivals are drawn directly here; the published times are those of other algorithms." if faster else ""
        return Finding("ratios to MVG: " + "; ".join(words), p, REPRODUCED if p < LEVEL else NOT, why)

    return check


def cannot(why: str) -> Check:
    """A claim that no measurement can decide."""
    return lambda _evidence, _resolve: Finding("", math.nan, CANNOT, why)


def published_z(smaller: Any, larger: Any) -> float | None:
    """Difference of the paper's own figures in standard errors; None if it prints no interval."""
    spread = math.hypot(smaller.half, larger.half) / 1.96
    return None if spread == 0 else (larger.mean - smaller.mean) / spread


def _paired(part: str, key: str = "") -> bool:
    """Whether the trials of rows share their data, split by split."""
    return part in ("exp1", "subspace") or key.startswith("exp1/")


class Claim(NamedTuple):
    """One claim: its section, text and published figures, and how it is checked."""

    place: str
    text: str
    published: str
    check: Check
    z: float | None = None
    remark: str = ""


def claims() -> list[Claim]:
    """All claims, in the paper's order."""
    return [*_regression(), *_component(), *_covariance(), *_directions(), *_runtime(), *_subspace()]


def _versus(place: str, part: str, own: str, rivals: dict[str, str], figures: dict[str, Figure]) -> list[Claim]:
    """MVG has a smaller error than each rival."""
    listed = []
    for rival, name in rivals.items():
        a, b = figures[own], figures[rival]
        text = f"{own.upper()} has a smaller error than {name}"
        printed = f"{a.mean:.4g} ± {a.half:.3g} against {b.mean:.4g} ± {b.half:.3g}"
        listed.append(Claim(place, text, printed, less(part, own, rival), published_z(a, b)))
    return listed


_RIVALS = {
    "gaussian": "the Gaussian mechanism",
    "jl": "the JL transform",
    "laplace": "the Laplace mechanism",
    "exponential": "the Exponential mechanism",
}
_ALL = tuple(_RIVALS)


def _regression() -> list[Claim]:
    place, figures = "Exp. I", REGRESSION
    excess = figures["mvg-1"].mean / figures["non-private"].mean
    z = published_z(figures["mvg-1"], figures["mvg-2"])
    return [
        Claim(
            place,
            "MVG-1 is similar to the non-private baseline (here: its error is at most the published 1.325 times)",
            "0.01624 against 0.01226",
            less("exp1", "mvg-1", "non-private", factor=1 / excess),
        ),
        Claim(
            place,
            "MVG-1 beats the random guess",
            "0.01624 against 0.03989",
            less("exp1", "mvg-1", "random guess"),
            remark="So does the constant 0, which needs no data.",
        ),
        *_versus(place, "exp1", "mvg-1", _RIVALS, figures),
        Claim(
            place,
            "MVG-1 is better than the pure mechanisms by about 150% (here: by the lesser published ratio, 1.36)",
            "ratios 1.53 (Laplace), 1.36 (Exponential)",
            less("exp1", "mvg-1", "laplace", "exponential", factor=1.36),
        ),
        Claim(
            place,
            "MVG-2, which pays for its directions, is better than every non-MVG method",
            "0.01643 against 0.01913, 0.01682, 0.02482, 0.02202",
            less("exp1", "mvg-2", *_ALL),
        ),
        Claim(place, "MVG-1 is the best MVG mechanism", "0.01624 against 0.01643", less("exp1", "mvg-1", "mvg-2"), z),
    ]


def _component() -> list[Claim]:
    place, figures = "Exp. II", COMPONENT
    z = published_z(figures["mvg"], figures["exponential"])
    return [
        Claim(
            place,
            "MVG has a reasonably small error of 0.2387 (here: no larger than that)",
            "0.2384 ± 0.0215 (table)",
            less("exp2", "mvg", 0.2387),
        ),
        *_versus(place, "exp2", "mvg", _RIVALS, figures),
        Claim(place, "MVG provides the best utility of all", "0.2384", less("exp2", "mvg", *_ALL)),
        Claim(
            place,
            "The gain over the Exponential mechanism is not significant",
            "0.2384 against 0.2455",
            no_gain("exp2", "mvg", "exponential"),
            z,
        ),
        Claim(
            place,
            "With the form for positive semidefinite queries (the longer version), MVG beats the compared methods",
            "none in this version",
            less("exp2", "mvg/theorem2-psd", *_ALL),
        ),
    ]


def _covariance() -> list[Claim]:
    place, figures = "Exp. III", COVARIANCE
    return [
        Claim(
            place,
            "MVG has a very small RSS of 0.06657 (here: no larger than that)",
            "0.06657 ± 0.0019",
            less("exp3", "mvg", 0.06657),
        ),
        *_versus(place, "exp3", "mvg", _RIVALS, figures),
        Claim(
            place,
            "MVG provides the best utility of all",
            "0.06657",
            less("exp3", "mvg", *_ALL),
            remark="All rows of the identity query are at the random guess, so no order among them means anything.",
        ),
    ]


def _directions() -> list[Claim]:
    listed = []
    titles = {"exp1": "Exp. I", "exp2": "Exp. II", "exp3": "Exp. III"}
    keys = {panel: [direction_key(panel, "theorem2", name, 1.0) for name in sets] for panel, sets in PANELS.items()}
    for panel, title in titles.items():
        names = list(PANELS[panel])
        rest = keys[panel][1:] if panel == "exp3" else keys[panel][1:-1]
        others = names[1:] if panel == "exp3" else names[1:-1]
        text = f"{title}: direction {names[0]} is better than {'; '.join(others)}"
        listed.append(Claim("Directions", text, "figure only", less("directions", keys[panel][0], *rest)))
    for panel, title in titles.items():
        text = f"{title}: the choice of directions has an effect"
        remark = "An effect, not the claimed order: see above."
        check = differ("directions", keys[panel])
        listed.append(Claim("Directions", text, "figure only", check, remark=remark))
    text = "Exp. III: directional noise is much better than i.i.d. noise (here: half the error)"
    listed.append(
        Claim("Directions", text, "figure only", less("directions", keys["exp3"][0], keys["exp3"][-1], factor=2.0))
    )
    for panel in ("exp1", "exp2"):
        text = f"{titles[panel]}: several directions have comparable performance (here: the two best within 10%)"
        listed.append(Claim("Directions", text, "figure only", comparable("directions", keys[panel][:-1])))
    robust = cannot("A conclusion from the claims above, not a measurement.")
    listed.append(Claim("Directions", "Directional noise is robust to the choice of directions", "none", robust))
    return listed


def _runtime() -> list[Claim]:
    return [
        Claim(
            "Runtime",
            "MVG runs much slower than the Gaussian and Laplace mechanisms (here: twice as slow in every experiment)",
            "ratios to MVG 0.003 to 0.28",
            slower(("gaussian", "laplace")),
        ),
        Claim(
            "Runtime",
            "MVG runs much faster than the JL transform and the Exponential mechanism (here: twice as fast)",
            "ratios to MVG 5.3 to 1174",
            slower(("jl", "exponential"), faster=True),
        ),
    ]


def _subspace() -> list[Claim]:
    own = SUBSPACE["mvg-1"]
    listed = []
    for rival in ("gaussian", "jl"):
        figure = SUBSPACE[rival]
        listed.append(
            Claim(
                "Projection",
                f"MVG-1 with all features beats {_RIVALS[rival]} on ALT and Y alone",
                f"{own.mean:.4g} against {figure.mean:.4g} ± {figure.half:.3g}",
                less("exp1", "mvg-1", ("subspace", rival)),
                published_z(own, figure),
            )
        )
    text = "The gain over both is more than 150% (here: 1.5 times)"
    both = less("exp1", "mvg-1", ("subspace", "gaussian"), ("subspace", "jl"), factor=1.5)
    listed.append(Claim("Projection", text, "ratios 1.56 and 1.76", both))
    return listed


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


def tabulate_claims(evidence: Evidence, *, simulated: bool) -> ReportTable:
    """All claims with their verdicts."""
    rows = [_judge_claim(i, claim, evidence) for i, claim in enumerate(claims(), 1)]
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


def count_verdicts(table: ReportTable) -> dict[str, dict[str, int]]:
    """How many claims got each verdict, by mode."""
    counts: dict[str, dict[str, int]] = {}
    for mode in MODES:
        verdicts = [row[f"{mode}_verdict"] for row in table.rows]
        counts[mode] = {verdict: verdicts.count(verdict) for verdict in (REPRODUCED, NOT, CANNOT)}
    return counts


def _judge_claim(i: int, claim: Claim, evidence: Evidence) -> dict[str, Any]:
    found: dict[str, Finding] = {mode: claim.check(evidence, resolver(mode)) for mode in MODES}
    facts = {
        "number": i,
        "place": claim.place,
        "claim": claim.text,
        "remark": found["printed"].why or claim.remark,
        "published": claim.published,
        "z": claim.z,
    }
    for mode, one in found.items():
        facts |= {mode: one.measured, f"{mode}_p": one.p, f"{mode}_verdict": one.verdict}
    return facts
