"""Every comparative claim of the paper with its statistical test, and the table of verdicts.

A claim "A has a smaller error than B" is reproduced where the difference of the measured means has the claimed sign and
a one-sided t-test rejects its absence at `LEVEL`; where trials share their data (Exp. I) it is a paired test.
Everything else is "not reproduced". The level is small because there are many claims.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from matrixdp.paper.experiment import Figure
from matrixdp.paper.gains import PANELS, direction_key
from matrixdp.paper.tables import CANNOT, NOT, REPRODUCED, VERDICTS, ReportTable, number
from matrixdp.paper.trials import PARTS
from matrixdp.types import Floats

LEVEL = 0.001
EQUIVALENCE = 0.05  # level of "comparable", whose claim is in the margin
MARGIN = 0.1  # of "comparable"
TIMES = 2.0  # what "much slower" and "much faster" mean here

Key = tuple[str, str]  # a part and a row


@dataclass(frozen=True, eq=False)
class Evidence:
    """Errors of all trials, by part and row, and the seconds of the runtime table."""

    values: Mapping[Key, Floats]
    timings: Mapping[str, Mapping[str, Sequence[float]]]


class Finding(NamedTuple):
    """What was measured, the test's p-value, and the verdict."""

    measured: str
    p: float
    verdict: str


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
        weights = [part**2 / (side.size - 1) for part, side in zip(parts, (left, larger), strict=True)]
        freedom = sum(parts) ** 2 / max(sum(weights), 1e-300)
    if error <= 1e-15 * max(1.0, abs(difference)):
        return Comparison(difference, 0.0, 0.0 if difference > 0 else 1.0)
    half = float(stats.t.ppf(0.975, freedom)) * error
    return Comparison(difference, half, float(stats.t.sf(difference / error, freedom)))


# Tests, each of the errors of the rows that a claim names


def _conclude(measured: str, p: float, level: float = LEVEL) -> Finding:
    return Finding(measured, p, REPRODUCED if p < level else NOT)


def find_less(groups: Sequence[Any], *, paired: bool, factor: float = 1.0) -> Finding:
    """The first row, times `factor`, has a smaller error than each of the others, which may be numbers."""
    left, *others = groups
    found = [compare(left, right, paired=paired, factor=factor) for right in others]
    words = ", ".join(number(float(np.mean(right))) for right in others)
    gap = f" (difference {number(found[0].difference)} ± {number(found[0].half)})" if len(found) == 1 else ""
    prefix = "" if factor == 1.0 else f"{factor:.3g} x "
    return _conclude(f"{prefix}{number(float(left.mean()))} against {words}{gap}", max(one.p for one in found))


def find_no_gain(groups: Sequence[Any], *, paired: bool) -> Finding:
    """No difference between two rows is found in either direction."""
    gain, loss = (find_less(pair, paired=paired) for pair in (groups, groups[::-1]))
    found = REPRODUCED in (gain.verdict, loss.verdict)
    return gain._replace(p=min(gain.p, loss.p), verdict=NOT if found else REPRODUCED)


def find_effect(groups: Sequence[Any], *, paired: bool) -> Finding:
    """At least one of the rows differs from the others (Kruskal and Wallis, who have no pairs)."""
    del paired
    return _conclude(", ".join(number(float(one.mean())) for one in groups), float(stats.kruskal(*groups).pvalue))


def find_likeness(groups: Sequence[Any], *, paired: bool) -> Finding:
    """The two best rows are within a factor ``1 + MARGIN`` of each other."""
    best, second = sorted(groups, key=lambda one: float(one.mean()))[:2]
    found = compare(second, best * (1 + MARGIN), paired=paired)
    return _conclude(f"{number(float(best.mean()))} and {number(float(second.mean()))}", found.p, EQUIVALENCE)


def find_slower(timings: Mapping[str, Mapping[str, Sequence[float]]], than: Sequence[str], *, sign: int) -> Finding:
    """MVG takes `TIMES` as long as each of `than` in every experiment (`sign` 1), or the reverse (-1)."""
    words, p = [], 0.0
    for name, seconds in timings.items():
        for key in than:
            ratios = np.log(seconds["mvg"]) - np.log(seconds[key])
            p = max(p, float(stats.wilcoxon(sign * ratios - math.log(TIMES), alternative="greater").pvalue))
            words.append(f"{name} {key}: {number(float(np.exp(np.median(-ratios))))}")
    return _conclude("ratios to MVG: " + "; ".join(words), p)


TESTS = {"less": find_less, "no gain": find_no_gain, "effect": find_effect, "likeness": find_likeness}


class Claim(NamedTuple):
    """One claim of the paper.

    Attributes
    ----------
    place, text : str
        Its section, and what it says.
    published : str
        The paper's figures; those of its two rows by default.
    test : str
        A key of `TESTS`, 'slower' or 'faster' for times, or 'none' where no measurement can decide.
    rows : tuple
        Parts and rows, or numbers, in the order that the test expects.
    factor : float
        Of the first row.
    remark : str
    """

    place: str
    text: str
    published: str
    test: str
    rows: tuple[Key | float, ...] = ()
    factor: float = 1.0
    remark: str = ""


def measure_z(smaller: Figure, larger: Figure) -> float | None:
    """Difference of the paper's own figures in standard errors; None if it does not print both intervals."""
    if not (smaller.half and larger.half):
        return None
    return (larger.mean - smaller.mean) / (math.hypot(smaller.half, larger.half) / 1.96)


def _published(claim: Claim) -> list[Figure]:
    """The paper's figures of the two rows that a claim compares, or none."""
    if claim.test not in TESTS:
        return []
    found = [PARTS[row[0]].published.get(row[1]) for row in claim.rows if isinstance(row, tuple)]
    both = [figure for figure in found if figure is not None]
    return both if len(claim.rows) == len(both) == 2 else []


# The claims, in the paper's order

_RIVALS = {
    "gaussian": "the Gaussian mechanism",
    "jl": "the JL transform",
    "laplace": "the Laplace mechanism",
    "exponential": "the Exponential mechanism",
}
_TITLES = {"exp1": "Exp. I", "exp2": "Exp. II", "exp3": "Exp. III"}


def _keys(part: str, *rows: str) -> tuple[Key, ...]:
    return tuple((part, row) for row in rows)


def _versus(part: str, own: str) -> list[Claim]:
    """MVG has a smaller error than each rival."""
    return [
        Claim(_TITLES[part], f"{own.upper()} has a smaller error than {name}", "", "less", _keys(part, own, rival))
        for rival, name in _RIVALS.items()
    ]


def claims() -> list[Claim]:
    """All claims, in the paper's order."""
    one, two, three = _TITLES.values()
    figures = PARTS["exp1"].published
    excess = figures["mvg-1"].mean / figures["non-private"].mean
    return [
        Claim(
            one,
            "MVG-1 is similar to the non-private baseline (here: its error is at most the published 1.325 times)",
            "0.01624 against 0.01226",
            "less",
            _keys("exp1", "mvg-1", "non-private"),
            1 / excess,
        ),
        Claim(
            one,
            "MVG-1 beats the random guess",
            "0.01624 against 0.03989",
            "less",
            _keys("exp1", "mvg-1", "random guess"),
            remark="So does the constant 0, which needs no data.",
        ),
        *_versus("exp1", "mvg-1"),
        Claim(
            one,
            "MVG-1 is better than the pure mechanisms by about 150% (here: by the lesser published ratio, 1.36)",
            "ratios 1.53 (Laplace), 1.36 (Exponential)",
            "less",
            _keys("exp1", "mvg-1", "laplace", "exponential"),
            1.36,
        ),
        Claim(
            one,
            "MVG-2, which pays for its directions, is better than every non-MVG method",
            "0.01643 against 0.01913, 0.01682, 0.02482, 0.02202",
            "less",
            _keys("exp1", "mvg-2", *_RIVALS),
        ),
        Claim(
            one,
            "MVG-1 is the best MVG mechanism",
            "0.01624 against 0.01643",
            "less",
            _keys("exp1", "mvg-1", "mvg-2"),
        ),
        Claim(
            two,
            "MVG has a reasonably small error of 0.2387 (here: no larger than that)",
            "0.2384 ± 0.0215 (table)",
            "less",
            (("exp2", "mvg"), 0.2387),
        ),
        *_versus("exp2", "mvg"),
        Claim(two, "MVG provides the best utility of all", "0.2384", "less", _keys("exp2", "mvg", *_RIVALS)),
        Claim(
            two,
            "The gain over the Exponential mechanism is not significant",
            "0.2384 against 0.2455",
            "no gain",
            _keys("exp2", "mvg", "exponential"),
        ),
        Claim(
            two,
            "With the form for positive semidefinite queries (the longer version), MVG beats the compared methods",
            "none in this version",
            "less",
            _keys("exp2", "mvg/theorem2-psd", *_RIVALS),
        ),
        Claim(
            three,
            "MVG has a very small RSS of 0.06657 (here: no larger than that)",
            "0.06657 ± 0.0019",
            "less",
            (("exp3", "mvg"), 0.06657),
        ),
        *_versus("exp3", "mvg"),
        Claim(
            three,
            "MVG provides the best utility of all",
            "0.06657",
            "less",
            _keys("exp3", "mvg", *_RIVALS),
            remark="All rows of the identity query are at the random guess, so no order among them means anything.",
        ),
        *_claims_on_directions(),
        Claim(
            "Runtime",
            "MVG runs much slower than the Gaussian and Laplace mechanisms (here: twice as slow in every experiment)",
            "ratios to MVG 0.003 to 0.28",
            "slower",
            _keys("runtime", "gaussian", "laplace"),
        ),
        Claim(
            "Runtime",
            "MVG runs much faster than the JL transform and the Exponential mechanism (here: twice as fast)",
            "ratios to MVG 5.3 to 1174",
            "faster",
            _keys("runtime", "jl", "exponential"),
            remark="The rivals are drawn directly here; the published times are those of other algorithms.",
        ),
        *[
            Claim(
                "Projection",
                f"MVG-1 with all features beats {_RIVALS[rival]} on ALT and Y alone",
                f"0.01624 against {figure}",
                "less",
                (("exp1", "mvg-1"), ("subspace", rival)),
            )
            for rival, figure in (("gaussian", "0.02538 ± 0.00065"), ("jl", "0.02863 ± 0.00022"))
        ],
        Claim(
            "Projection",
            "The gain over both is more than 150% (here: 1.5 times)",
            "ratios 1.56 and 1.76",
            "less",
            (("exp1", "mvg-1"), *_keys("subspace", "gaussian", "jl")),
            1.5,
        ),
    ]


def _claims_on_directions() -> list[Claim]:
    """Claims that the paper makes of a figure, so that it prints no numbers."""
    place, none = "Directions", "figure only"
    rows = {
        panel: _keys("directions", *(direction_key(panel, "theorem2", name, 1.0) for name in sets))
        for panel, sets in PANELS.items()
    }
    listed = []
    for panel, title in _TITLES.items():
        names, last = list(PANELS[panel]), None if panel == "exp3" else -1  # i.i.d. noise, in Exp. III alone
        text = f"{title}: direction {names[0]} is better than {'; '.join(names[1:last])}"
        listed.append(Claim(place, text, none, "less", rows[panel][:last]))
    for panel, title in _TITLES.items():
        text, remark = (
            f"{title}: the choice of directions has an effect",
            "An effect, not the claimed order: see above.",
        )
        listed.append(Claim(place, text, none, "effect", rows[panel], remark=remark))
    text = "Exp. III: directional noise is much better than i.i.d. noise (here: half the error)"
    listed.append(Claim(place, text, none, "less", (rows["exp3"][0], rows["exp3"][-1]), 2.0))
    for panel in ("exp1", "exp2"):
        text = f"{_TITLES[panel]}: several directions have comparable performance (here: the two best within 10%)"
        listed.append(Claim(place, text, none, "likeness", rows[panel][:-1]))
    text = "Directional noise is robust to the choice of directions"
    remark = "A conclusion from the claims above, not a measurement."
    return [*listed, Claim(place, text, "none", "none", remark=remark)]


MODES = ("printed", "exact", "fair")
_EXACT = {"mvg": "mvg/exact", "mvg-1": "mvg-1/exact", "mvg-2": "mvg-2/exact", "mvg/theorem2-psd": "mvg/exact"}
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


def resolve(key: Key, mode: str) -> Key:
    """The row that a mode compares where a claim names a row.

    Examples
    --------
    >>> resolve(("exp2", "gaussian"), "fair")
    ('exp2', 'gaussian/exact')
    >>> resolve(("directions", "exp1/theorem2/i.i.d./1"), "exact")
    ('directions', 'exp1/exact/i.i.d./1')
    """
    part, row = key
    if part == "directions" and mode != "printed":
        return part, row.replace("/theorem2/", "/exact/")
    names: dict[str, str] = {"printed": {}, "exact": _EXACT, "fair": _FAIR}[mode]
    return part, names.get(row, row)


def _paired(part: str, row: str) -> bool:
    """Whether the trials of a row have the splits of Exp. I, which are the same for all rows."""
    return part in ("exp1", "subspace") or row.startswith("exp1/")


def judge(claim: Claim, evidence: Evidence, mode: str = "printed") -> Finding:
    """Test a claim on what was measured, with the calibrations of a mode."""
    keys = [row for row in claim.rows if isinstance(row, tuple)]
    if claim.test == "none":
        return Finding("", math.nan, CANNOT)
    if claim.test in ("slower", "faster"):
        return find_slower(evidence.timings, [row for _, row in keys], sign=1 if claim.test == "slower" else -1)
    groups = [evidence.values[resolve(row, mode)] if isinstance(row, tuple) else row for row in claim.rows]
    options: dict[str, Any] = {"factor": claim.factor} if claim.factor != 1.0 else {}
    return TESTS[claim.test](groups, paired=all(_paired(*key) for key in keys), **options)


def tabulate_claims(evidence: Evidence, *, simulated: bool) -> ReportTable:
    """All claims with their verdicts."""
    rows = [_list_claim(i, claim, evidence) for i, claim in enumerate(claims(), 1)]
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


def _list_claim(i: int, claim: Claim, evidence: Evidence) -> dict[str, Any]:
    figures = _published(claim)
    printed = " against ".join(f"{one.mean:.4g} ± {one.half:.3g}" for one in figures)
    facts = {
        "number": i,
        "place": claim.place,
        "claim": claim.text,
        "remark": claim.remark,
        "published": claim.published or printed,
        "z": measure_z(*figures) if figures else None,
    }
    for mode in MODES:
        found = judge(claim, evidence, mode)
        facts |= {mode: found.measured, f"{mode}_p": found.p, f"{mode}_verdict": found.verdict}
    return facts


def count_verdicts(table: ReportTable) -> dict[str, dict[str, int]]:
    """How many claims got each verdict, by mode."""
    found = {mode: [row[f"{mode}_verdict"] for row in table.rows] for mode in MODES}
    return {mode: {verdict: given.count(verdict) for verdict in VERDICTS} for mode, given in found.items()}
