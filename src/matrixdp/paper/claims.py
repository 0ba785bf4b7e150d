"""Every comparative claim of the paper with its statistical test, and the table of verdicts.

A claim "A has a smaller error than B" is reproduced where the difference of the measured means has the claimed sign and
a one-sided t-test rejects its absence at `LEVEL`; where trials share their data (Exp. I) it is a paired test.
Everything else is "not reproduced". The level is small because there are many claims.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from matrixdp.display import format_number
from matrixdp.paper.experiment import Figure, read_published
from matrixdp.paper.tables import CANNOT, NOT, REPRODUCED, VERDICTS, ReportTable, Timings
from matrixdp.paper.trials import list_published
from matrixdp.types import Floats

LEVEL = 0.001
EQUIVALENCE = 0.05  # level of "comparable", whose claim is in the margin
MARGIN = 0.1  # of "comparable"
TIMES = 2.0  # what "much slower" and "much faster" mean here

Key = tuple[str, str]  # a part and a row
Values = Mapping[Key, Floats]  # errors of all trials


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
    """A test of ``factor * smaller`` being below `larger` in the mean."""
    left = factor * smaller
    if isinstance(larger, float) or paired:
        test, difference = stats.ttest_1samp, float(np.mean(larger - left))
        sides: Any = (larger - left, 0.0)
    else:
        test, difference = partial(stats.ttest_ind, equal_var=False), float(larger.mean() - left.mean())
        sides = (larger, left)
    if max(float(np.std(side)) for side in sides) <= 1e-15 * max(1.0, abs(difference)):
        return Comparison(difference, 0.0, 0.0 if difference > 0 else 1.0)
    low, high = test(*sides).confidence_interval(0.95)
    return Comparison(difference, float(high - low) / 2, float(test(*sides, alternative="greater").pvalue))


# Tests, each of the errors of the rows that a claim names


def _conclude(measured: str, p: float, level: float = LEVEL) -> Finding:
    return Finding(measured, p, REPRODUCED if p < level else NOT)


def _join_means(groups: Sequence[Any], mark: str = ", ") -> str:
    return mark.join(format_number(float(np.mean(one))) for one in groups)


def find_less(groups: Sequence[Any], *, paired: bool, factor: float = 1.0) -> Finding:
    """The first row, times `factor`, has a smaller error than each of the others, which may be numbers."""
    left, *others = groups
    found = [compare(left, right, paired=paired, factor=factor) for right in others]
    words = f"{'' if factor == 1.0 else f'{factor:.3g} x '}{_join_means([left])} against {_join_means(others)}"
    if len(found) == 1:
        words += f" (difference {format_number(found[0].difference)} ± {format_number(found[0].half)})"
    return _conclude(words, max(one.p for one in found))


def find_no_gain(groups: Sequence[Any], *, paired: bool) -> Finding:
    """No difference between two rows is found in either direction."""
    gain, loss = (find_less(pair, paired=paired) for pair in (groups, groups[::-1]))
    found = REPRODUCED in (gain.verdict, loss.verdict)
    return gain._replace(p=min(gain.p, loss.p), verdict=NOT if found else REPRODUCED)


def find_effect(groups: Sequence[Any], **_paired: bool) -> Finding:
    """At least one of the rows differs from the others (Kruskal and Wallis, whose test has no pairs)."""
    return _conclude(_join_means(groups), float(stats.kruskal(*groups).pvalue))


def find_likeness(groups: Sequence[Any], *, paired: bool) -> Finding:
    """The two best rows are within a factor ``1 + MARGIN`` of each other."""
    best, second = sorted(groups, key=np.mean)[:2]
    found = compare(second, best * (1 + MARGIN), paired=paired)
    return _conclude(_join_means([best, second], " and "), found.p, EQUIVALENCE)


def find_slower(timings: Timings, than: Sequence[str], *, sign: int) -> Finding:
    """MVG takes `TIMES` as long as each of `than` in every experiment (`sign` 1), or the reverse (-1)."""
    words, p = [], 0.0
    for name, seconds in timings.items():
        for key in than:
            ratios = np.log(seconds["mvg"]) - np.log(seconds[key])
            p = max(p, float(stats.wilcoxon(sign * ratios - math.log(TIMES), alternative="greater").pvalue))
            words.append(f"{name} {key}: {format_number(float(np.exp(np.median(-ratios))))}")
    return _conclude("ratios to MVG: " + "; ".join(words), p)


TESTS = {"less": find_less, "no gain": find_no_gain, "effect": find_effect, "likeness": find_likeness}


class Claim(NamedTuple):
    """One claim of the paper."""

    place: str  # its section
    text: str
    published: str = ""  # the paper's figures; those of its two rows by default
    rows: tuple[Key | float, ...] = ()  # parts and rows, or numbers, in the order that the test expects
    test: str = "less"  # a key of `TESTS`, 'slower' or 'faster' for times, or 'none' where no measurement can decide
    factor: float = 1.0  # of the first row
    remark: str = ""

    @property
    def keys(self) -> list[Key]:
        """Its rows without the numbers."""
        return [row for row in self.rows if isinstance(row, tuple)]

    @property
    def figures(self) -> list[Figure]:
        """The paper's figures of the two rows that it compares, or none."""
        found = [list_published(part).get(row) for part, row in self.keys if part != "runtime"]
        both = [figure for figure in found if figure is not None]
        return both if len(self.rows) == len(both) == 2 else []


@cache
def claims() -> list[Claim]:
    """All claims, in the paper's order."""
    found = []
    for facts in read_published()["claim"]:
        rows = (tuple(row.split(": ", 1)) if isinstance(row, str) else row for row in facts.get("rows", ()))
        found.append(Claim(**{**facts, "rows": tuple(rows)}))
    return found


def measure_z(smaller: Figure, larger: Figure) -> float | None:
    """Difference of the paper's own figures in standard errors; None if it does not print both intervals."""
    if not (smaller.half and larger.half):
        return None
    return (larger.mean - smaller.mean) / (math.hypot(smaller.half, larger.half) / 1.96)


_EXACT = {"mvg": "mvg/exact", "mvg-1": "mvg-1/exact", "mvg-2": "mvg-2/exact", "mvg/theorem2-psd": "mvg/exact"}
# The rows that stand in for those that a claim names, by mode.
_FAIR = {**_EXACT, "gaussian": "gaussian/exact", "jl": "jl/exact"}
MODES: dict[str, dict[str, str]] = {"printed": {}, "exact": _EXACT, "fair": _FAIR}
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
    """The row that a mode compares where a claim names a row."""
    part, row = key
    if part == "directions" and mode != "printed":
        return part, row.replace("/theorem2/", "/exact/")
    return part, MODES[mode].get(row, row)


def judge(claim: Claim, values: Values, timings: Timings, mode: str = "printed") -> Finding:
    """Test a claim on what was measured, with the calibrations of a mode."""
    if claim.test == "none":
        return Finding("", math.nan, CANNOT)
    if claim.test in ("slower", "faster"):
        return find_slower(timings, [row for _, row in claim.keys], sign=1 if claim.test == "slower" else -1)
    groups = [values[resolve(row, mode)] if isinstance(row, tuple) else row for row in claim.rows]
    options: dict[str, Any] = {"factor": claim.factor} if claim.factor != 1.0 else {}
    # Trials of Exp. I have the same splits in all rows.
    paired = all(part in ("exp1", "subspace") or row.startswith("exp1/") for part, row in claim.keys)
    return TESTS[claim.test](groups, paired=paired, **options)


def tabulate_claims(values: Values, timings: Timings, *, simulated: bool) -> ReportTable:
    """All claims with their verdicts."""
    rows = []
    for i, claim in enumerate(claims(), 1):
        figures = claim.figures
        printed = claim.published or " against ".join(f"{one.mean:.4g} ± {one.half:.3g}" for one in figures)
        facts = {"number": i, "place": claim.place, "claim": claim.text, "remark": claim.remark, "published": printed}
        facts["z"] = measure_z(*figures) if figures else None
        for mode in MODES:
            found = judge(claim, values, timings, mode)
            facts |= {mode: found.measured, f"{mode}_p": found.p, f"{mode}_verdict": found.verdict}
        rows.append(facts)
    trials = next(iter(values.values())).size
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
    found = {mode: [row[f"{mode}_verdict"] for row in table.rows] for mode in MODES}
    return {mode: {verdict: given.count(verdict) for verdict in VERDICTS} for mode, given in found.items()}
