"""The guarantee of a release, its mechanism and its ledger: the public facts, in words and in symbols."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from matrixdp.design.explain import compare_to_limit
from matrixdp.display import format_number
from matrixdp.domain.bounds import Bounds
from matrixdp.queries import MatrixQuery, Moments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.dataset import DatasetRelease
from matrixdp.release.registered import MechanismRelease
from matrixdp.release.result import Release

AnyRelease = Release | MechanismRelease | AdaptiveRelease | DatasetRelease
SMALL_LOSS, MODERATE_LOSS = 1.0, 3.0  # largest epsilons of each: an even chance becomes at most 73% and 95%


@dataclass(frozen=True)
class LedgerSummary:
    """Budget of a data set, or of the allowance that paid, before and after a release, and the ledger's last entry."""

    dataset: str
    epsilon: float  # the total budget
    delta: float
    left_before: float  # epsilon at the total's delta
    left_after: float
    entry: int
    hash: str
    allowance: str | None = None
    charged: bool = True  # not for a repeated request
    unnoticed: tuple[str, ...] = ()  # what could be done to the ledger's file without notice
    actor: str | None = None  # of the charge, that is of the first run of a request, as the next two
    purpose: str | None = None
    time: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class MechanismFacts:
    """The public facts about a mechanism that a report shows."""

    name: str = "matrixdp"
    query: MatrixQuery
    epsilon: float
    delta: float  # 0 for pure differential privacy
    cost: str  # what the release spent
    noise: str  # how it was generated
    warnings: tuple[str, ...] = ()  # reasons not to rely on the guarantee
    adaptive: bool = False  # a fit that learned where the data lie


def read_mechanism(release: AnyRelease) -> MechanismFacts:
    """Facts about the mechanism behind a release: a design, an adaptive fit, or what a `MechanismRelease` names."""
    if isinstance(release, MechanismRelease):
        return _read_other(release)
    facts: dict[str, Any] = {"epsilon": release.privacy.epsilon, "delta": release.privacy.delta}
    if isinstance(release, AdaptiveRelease):
        moment = release.moment
        bounds = Bounds(moment.bounds.lower, moment.bounds.upper, names=release.names)
        steps = ", ".join(f"{step.name} {step.share:.1%}" for step in release.steps)
        return MechanismFacts(
            query=Moments.for_covariance(bounds, release.records, neighbours=release.neighbours, person=moment.person),
            cost=f"at most μ = {release.mu:.6g} of Gaussian differential privacy, all steps together",
            noise=f"By an adaptive fit. {release.reason} Gaussian noise from exact integer arithmetic was added in "
            f"every step; the budget was shared as follows: {steps}.",
            adaptive=True,
            **facts,
        )
    design, gain = release.design, release.design.gain
    spent = release if isinstance(release, Release) else design
    bound = "exactly" if design.exact and getattr(release, "fit", None) is None else "at most"
    if getattr(release, "part", None) is not None:
        bound = "as part of a stream, with all its periods together, at most"
    basis = "the features themselves" if design.directions is None else "a basis of its own"
    ratio, word = (gain, "smaller") if gain > 1 else (1 / gain, "larger")
    compared = "the same as" if abs(gain - 1) < 0.005 else f"{format_number(ratio)} times {word} than"
    return MechanismFacts(
        query=design.query,
        cost=f"{bound} {say_cost(release.mu, spent.epsilon, design.privacy.delta)}",
        noise=f"Gaussian noise from exact integer arithmetic, with the calibration “{design.calibration}”. Directions: "
        f"{basis}; allocation: {design.allocation.rule}. Relative to the range of each entry, the error is "
        f"{compared} with the same noise for all features. The total "
        f"squared error of this noise, in these units, is {compare_to_limit(design)}.",
        **facts,
    )


def say_cost(mu: float | None, epsilon: float, delta: float) -> str:
    """What was spent; without delta if it is 0, and without mu for other guarantees than Gaussian ones."""
    spent = f"ε = {epsilon:.4g}" + (f" at δ = {delta:.3g}" if delta else "")
    return spent if mu is None else f"μ = {mu:.6g} of Gaussian differential privacy, which is {spent}"


def _read_other(release: MechanismRelease) -> MechanismFacts:
    numbers = ", ".join(f"{name} = {format_number(float(value), 4)}" for name, value in release.parameters.items())
    warning = (
        "For comparison only: do not publish this release. Its noise is floating-point, and the low bits of its "
        "numbers can reveal the true answer."
    )
    return MechanismFacts(
        name=release.mechanism,
        query=release.query,
        epsilon=release.epsilon,
        delta=release.delta,
        cost=say_cost(release.mu, release.epsilon, release.delta),
        noise=f"Noise of the mechanism “{release.mechanism}”" + (f", with {numbers}." if numbers else "."),
        warnings=(warning,) if release.comparison_only else (),
    )


def name_loss(epsilon: float) -> str:
    """The size of a privacy loss: small up to epsilon 1, moderate up to 3, large beyond, where protection is weak."""
    if epsilon <= SMALL_LOSS:
        return "small privacy loss"
    return "moderate privacy loss" if epsilon <= MODERATE_LOSS else "large privacy loss, weak protection"


def describe_odds(epsilon: float, delta: float, unit: str = "one record") -> str:
    """What a guarantee allows, as a factor on odds."""
    factor = f"10^{math.ceil(epsilon / math.log(10))}"  # rounded up, as the chance is
    if epsilon <= math.log(1e6):
        digits = 2 - math.floor(math.log10(math.exp(epsilon)))
        factor = f"{math.ceil(math.exp(epsilon) * 10.0**digits) / 10.0**digits:,.{max(digits, 0)}f}"
    exception = f", except with probability {delta:.3g}" if delta else ""
    chance = 1 / (1 + math.exp(-epsilon))
    even = f"at most {math.ceil(chance * 1000) / 10:.1f}%" if chance < 0.999 else "nearly certain"
    return (
        f"It changes the odds of any conclusion about {unit} by at most a factor of {factor}{exception}: "
        f"an even chance becomes {even}."
    )
