"""From trials to a verdict: the tests behind the table of claims.

A claim "A has a smaller error than B" is reproduced where the difference of the measured means has the claimed sign and
a one-sided t-test rejects its absence at `LEVEL`; where trials share their data (Exp. I) it is a paired test.
Everything else is "not reproduced". The level is small since there are many claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from matrixdp.paper.report_table import number
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
    """What was measured, the test's p-value, the verdict, and why, where it is not plain."""

    measured: str
    p: float
    verdict: str
    why: str = ""


Check = Callable[[Evidence, Callable[[Key], Key]], Finding]


class Comparison(NamedTuple):
    """Difference of two means, half its 95% interval, one-sided p-value that it is not positive."""

    difference: float
    half: float
    p: float


def compare(smaller: Floats, larger: Floats | float, *, paired: bool, factor: float = 1.0) -> Comparison:
    """Evidence that ``factor * smaller`` lies below `larger` in the mean.

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
    """`smaller` is about as good as `larger`: an admission, reproduced where no difference is found either way."""

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
    """No measurement can settle it."""
    return lambda _evidence, _resolve: Finding("", math.nan, CANNOT, why)


def published_z(smaller: Any, larger: Any) -> float | None:
    """How many standard errors the paper's own figures are apart; None where it prints no interval."""
    spread = math.hypot(smaller.half, larger.half) / 1.96
    return None if spread == 0 else (larger.mean - smaller.mean) / spread


def _paired(part: str, key: str = "") -> bool:
    """Whether the trials of rows share their data, split by split."""
    return part in ("exp1", "subspace") or key.startswith("exp1/")
