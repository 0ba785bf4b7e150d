"""Measurements of a black box: lower confidence bounds on its epsilon and mu, and a picture of its error rates.

For any event E, (epsilon, delta)-DP says ``P(E) <= e^epsilon Q(E) + delta``, and `mu`-GDP says ``Phi^-1(P(E)) -
Phi^-1(Q(E)) <= mu``. Counting E in independent runs on both neighbours bounds both from below. The event must be chosen
before the runs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import beta

from matrixdp.checks import check_integer, check_number
from matrixdp.errors import ParameterError
from matrixdp.privacy import Privacy
from matrixdp.report.svg import Curve, Scale, draw_curves, make_image
from matrixdp.types import Floats

Statistic = Callable[[Floats], Floats]  # from outputs of shape (runs, entries) to scores of shape (runs,)
_Event = tuple[float, bool, bool]  # a cut, whether scores above it count, whether as evidence for the second data set
_HUGE = 1e100  # outputs beyond, and NaN, are replaced by this, so that squares stay finite
_CUTS = 64  # of a score, to choose an event from


@dataclass(frozen=True)
class Count:
    """The number of times that an event happened, `hits`, in a number of independent `runs`."""

    hits: int
    runs: int

    def lower(self, level: float) -> float:
        """Clopper and Pearson's lower bound on the probability; wrong with probability `level` at most."""
        return float(beta.ppf(level, self.hits, self.runs - self.hits + 1)) if self.hits else 0.0

    def upper(self, level: float) -> float:
        """Clopper and Pearson's upper bound on the probability; wrong with probability `level` at most."""
        return float(beta.isf(level, self.hits + 1, self.runs - self.hits)) if self.hits < self.runs else 1.0


def measured_epsilon(on_first: Count, on_second: Count, *, delta: float = 0.0, level: float) -> float:
    """Epsilon that a mechanism has at least, at `delta`; too large with probability `level` at most."""
    excess = on_first.lower(level / 2) - delta
    return math.log(excess / on_second.upper(level / 2)) if excess > 0 else -math.inf


def measured_mu(on_first: Count, on_second: Count, *, level: float) -> float:
    """Mu that a mechanism has at least; too large with probability `level` at most."""
    return float(ndtri(on_first.lower(level / 2)) - ndtri(on_second.upper(level / 2)))


@dataclass(frozen=True)
class Measurement:
    """Bounds that a black box's outputs on two neighbours show.

    Attributes
    ----------
    epsilon : float
        Lower confidence bound on epsilon at `delta`.
    mu : float
        Lower confidence bound on the mu of Gaussian differential privacy.
    delta, level : float
        Both bounds hold together, except with probability `level` over the runs.
    trials : int
        Runs on each data set: half of them choose the events, the others are counted.
    claim : Privacy, float or None
        The guarantee, or mu, to compare with.
    curve : float64 array of shape (cuts, 2)
        Error rates of the chosen test on the second half of the runs: false positives and false negatives.
    """

    epsilon: float
    mu: float
    delta: float
    level: float
    trials: int
    claim: Privacy | float | None = None
    curve: Floats = field(default_factory=lambda: np.empty((0, 2)), repr=False)

    @property
    def broken(self) -> bool:
        """True if the measurement contradicts the claim."""
        if isinstance(self.claim, Privacy):
            return self.epsilon > self.claim.epsilon
        return self.claim is not None and self.mu > self.claim

    def __str__(self) -> str:
        claim = ""
        if isinstance(self.claim, Privacy):
            claim = f" Claimed: ({self.claim.epsilon:g}, {self.claim.delta:g})-DP."
        elif self.claim is not None:
            claim = f" Claimed: mu {self.claim:g}."
        return (
            f"{'BROKEN: ' * self.broken}epsilon is at least {max(self.epsilon, 0.0):.4g} at delta {self.delta:g}, mu "
            f"at least {max(self.mu, 0.0):.4g}; {self.trials:,} runs on each data set, wrong with probability "
            f"{self.level:g} at most.{claim}"
        )


def measure(
    mechanism: Callable[[Any], Any],
    data: Any,
    neighbour: Any,
    *,
    trials: int = 4000,
    delta: float | None = None,
    claim: Privacy | float | None = None,
    statistic: Statistic | None = None,
    level: float = 1e-6,
) -> Measurement:
    """Lower confidence bounds on the epsilon and mu of a mechanism, from its outputs on two neighbours.

    Parameters
    ----------
    mechanism : callable
        Maps a data set to numbers, an array of the same shape in every run. Any library's; its runs must be
        independent.
    data, neighbour
        Two neighbouring data sets, made up.
    trials : int
        Runs on each data set. The first half chooses a statistic and the events, the second half is counted.
    delta : float, optional
        Of epsilon; by default that of the claim, or 0.
    claim : Privacy or float, optional
        The guarantee, or mu, that the mechanism claims.
    statistic : callable, optional
        From outputs of shape (runs, entries) to scores; by default linear and quadratic discriminants are tried.
    level : float
        Probability that either bound is too large.

    Notes
    -----
    A black box can be much worse than what is measured: only these data sets and these events are tried. With n runs no
    epsilon above about ``ln(n/ln(1/level))`` can be shown.
    """
    check_integer(trials, "trials", at_least=10)
    level = check_number(level, "level", above=0, below=1)
    if delta is None:
        delta = claim.delta if isinstance(claim, Privacy) else 0.0
    first, second = (_run(mechanism, source, trials) for source in (data, neighbour))
    if first.shape != second.shape:
        raise ParameterError("mechanism must return arrays of the same shape for both data sets.")
    half = trials // 2
    statistics = _discriminants(first[:half], second[:half]) if statistic is None else [statistic]
    bounds: dict[str, Callable[[Count, Count], float]] = {
        "epsilon": lambda p, q: measured_epsilon(p, q, delta=delta, level=level / 2),
        "mu": lambda p, q: measured_mu(p, q, level=level / 2),
    }
    found = {}
    for name, bound in bounds.items():
        test, event = _choose_event(statistics, first[:half], second[:half], bound)
        found[name] = bound(*_count_event(event, test(first[half:]), test(second[half:])))
    scores = test(first[half:]), test(second[half:])
    cuts = np.array([-math.inf, *_cut(*scores)])[:, None]
    curve = np.column_stack([(scores[1] > cuts).mean(axis=1), (scores[0] <= cuts).mean(axis=1)])
    return Measurement(found["epsilon"], found["mu"], delta, level, trials, claim, curve)


def _run(mechanism: Callable[[Any], Any], data: Any, trials: int) -> Floats:
    """Outputs of independent runs, of shape (trials, entries)."""
    outputs = [np.asarray(mechanism(data), np.float64).ravel() for _ in range(trials)]
    if len({output.size for output in outputs}) > 1:
        raise ParameterError("mechanism must return an array of the same shape in every run.")
    return np.nan_to_num(np.clip(np.array(outputs), -_HUGE, _HUGE), nan=-_HUGE)


def _discriminants(first: Floats, second: Floats) -> list[Statistic]:
    """Scores that are larger on the first data set: linear with all covariances, entry by entry, and quadratic."""
    with np.errstate(all="ignore"):
        centre, spread = (first.mean(axis=0) + second.mean(axis=0)) / 2, (first.std(axis=0) + second.std(axis=0)) / 2
    spread = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
    a, b = ((np.nan_to_num(x) - centre) / spread for x in (first, second))
    gap = a.mean(axis=0) - b.mean(axis=0)
    weights = [(1, gap), (2, 1 / np.maximum(b.var(axis=0), 1e-12) - 1 / np.maximum(a.var(axis=0), 1e-12))]
    if a.shape[1] <= min(len(a) // 4, 500):
        pooled = (np.cov(a.T) + np.cov(b.T)).reshape(len(gap), len(gap)) / 2
        weights.insert(0, (1, np.linalg.pinv(pooled + 1e-12 * np.eye(len(gap)), hermitian=True) @ gap))
    return [lambda x, k=power, w=weight: ((x - centre) / spread) ** k @ w for power, weight in weights]  # type: ignore[misc]


def _count_event(event: _Event, first: Floats, second: Floats) -> tuple[Count, Count]:
    """How often an event happened on the data set that it is evidence for, and on the other one."""
    cut, above, swapped = event
    hits = [
        Count(int(np.count_nonzero(scores > cut if above else scores <= cut)), len(scores))
        for scores in (first, second)
    ]
    return (hits[1], hits[0]) if swapped else (hits[0], hits[1])


def _choose_event(
    statistics: Sequence[Statistic], first: Floats, second: Floats, bound: Callable[[Count, Count], float]
) -> tuple[Statistic, _Event]:
    """The statistic and event with the largest bound on these runs."""
    scored = [(statistic, statistic(first), statistic(second)) for statistic in statistics]
    kinds = ((True, False), (False, True), (True, True), (False, False))
    events = ((*one, (float(cut), *kind)) for one in scored for cut in _cut(*one[1:]) for kind in kinds)
    statistic, _, _, event = max(events, key=lambda one: bound(*_count_event(one[3], one[1], one[2])))
    return statistic, event


def _cut(first: Floats, second: Floats) -> Floats:
    """Quantiles of the scores on both data sets together."""
    return np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, _CUTS)))


def tradeoff(claim: Privacy | float, alpha: Floats) -> Floats:
    """Least false negative rate that a guarantee allows at each false positive rate.

    Parameters
    ----------
    claim : Privacy or float
        (epsilon, delta), or mu.
    alpha : float64 array of shape (n,)
        Between 0 and 1.
    """
    if not isinstance(claim, Privacy):
        return np.asarray(ndtr(-ndtri(alpha) - claim))
    growth = math.exp(min(claim.epsilon, 700.0))
    lines = [1 - claim.delta - growth * alpha, (1 - claim.delta - alpha) / growth]
    return np.maximum(np.maximum(*lines), 0.0)


def draw_tradeoff(measured: Measurement, *, inline: bool = False) -> str:
    """SVG of the error rates of the best test that was found, and of the least that the claim allows.

    With `inline`, it is for an HTML page that has the styles.
    """
    alpha = np.concatenate([np.logspace(-4, -2, 40), np.linspace(0.01, 1, 100)])
    curves = [
        Curve(measured.curve.T, "measured", "p-other"),
        Curve(np.array([[0.0, 1.0], [1.0, 0.0]]), "no information", "p-grey", dashed=True),
    ]
    if measured.claim is not None:
        points = np.stack([alpha, tradeoff(measured.claim, alpha)])
        curves.insert(0, Curve(points, "claimed: no test may be below", "p-mark"))
    names, scale, ticks = ("false positive rate", "false negative rate"), Scale(0.0, 1.0), (0.2, 0.4, 0.6, 0.8)
    drawing = draw_curves(curves, scale, scale, names, size=(320.0, 320.0), ticks=(ticks, ticks))
    return make_image([drawing], "Trade-off curve, claimed and measured", str(measured), inline=inline)
