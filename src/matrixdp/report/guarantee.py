"""The guarantee of a release, its mechanism and its ledger: the public facts, in words and in symbols."""

import math
from dataclasses import dataclass, replace
from datetime import datetime

from matrixdp.design import Design
from matrixdp.design.explain import compare_to_limit
from matrixdp.display import format_number
from matrixdp.domain.bounds import Bounds
from matrixdp.queries import MatrixQuery, Moments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.dataset import DatasetRelease
from matrixdp.release.registered import MechanismRelease
from matrixdp.release.result import Release, StreamPart

AnyRelease = Release | MechanismRelease | AdaptiveRelease | DatasetRelease
SMALL_LOSS, MODERATE_LOSS = 1.0, 3.0  # largest epsilons of each: an even chance becomes at most 73% and 95%


@dataclass(frozen=True)
class LedgerSummary:
    """Budget of a data set, or of the allowance that paid, before and after a release, and the ledger's last entry.

    `epsilon` and `delta` are the total budget, of which `left_before` and `left_after` are left at the total's delta.
    A repeated request is not `charged` again. `unnoticed` is what could be done to the ledger's file without notice.
    `actor`, `purpose` and `time` are those of the charge, that is of the first run of a request.
    """

    dataset: str
    epsilon: float
    delta: float
    left_before: float
    left_after: float
    entry: int
    hash: str
    allowance: str | None = None
    charged: bool = True
    unnoticed: tuple[str, ...] = ()
    actor: str | None = None
    purpose: str | None = None
    time: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class MechanismFacts:
    """The public facts about a mechanism that a report shows.

    `delta` is 0 for pure differential privacy; `cost` says what the release spent, and `noise` how noise was generated.
    `warnings` are reasons not to rely on the guarantee; an `adaptive` fit learned where the data lie.
    """

    name: str
    query: MatrixQuery
    epsilon: float
    delta: float
    cost: str
    noise: str
    warnings: tuple[str, ...] = ()
    adaptive: bool = False


def read_mechanism(release: AnyRelease) -> MechanismFacts:
    """Facts about the mechanism behind a release: a design, an adaptive fit, or what a `MechanismRelease` names."""
    if isinstance(release, AdaptiveRelease):
        return _read_adaptive(release)
    if isinstance(release, MechanismRelease):
        return _read_other(release)
    facts, part, fit = _read_design(release.design), getattr(release, "part", None), getattr(release, "fit", None)
    if part is None and fit is None:
        return facts
    assert isinstance(release, Release)
    privacy = f"which is ε = {release.epsilon:.4g} at δ = {facts.delta:.3g}"
    cost = f"μ = {release.mu:.6g} of Gaussian differential privacy, {privacy}"
    start = "as part of a stream, with all its periods together, at most" if part is not None else "at most"
    return replace(facts, cost=f"{start} {cost}")


def describe_stream(part: StreamPart) -> str:
    """What the report of a part of a stream says in place of its ledger."""
    return (
        f"This is read off the stream “{part.stream}” ({part.periods}). The cost is that of all its periods together, "
        "and was due once, when the stream was opened. Error bars of different periods are correlated: read "
        "differences off the stream."
    )


def _read_design(design: Design) -> MechanismFacts:
    """Facts about the noise of a design."""
    bound = "exactly" if design.exact else "at most"
    basis = "the features themselves" if design.directions is None else "a basis of its own"
    return MechanismFacts(
        name="matrixdp",
        query=design.query,
        epsilon=design.privacy.epsilon,
        delta=design.privacy.delta,
        cost=f"{bound} μ = {design.distance:.6g} of Gaussian differential privacy, which is ε = {design.epsilon:.4g} "
        f"at δ = {design.privacy.delta:.3g}",
        noise=f"Gaussian noise from exact integer arithmetic, with the calibration “{design.calibration}”. Directions: "
        f"{basis}; allocation: {design.allocation.rule}. Relative to the range of each entry, the error is "
        f"{_compare(design.gain)} with the same noise for all features. The total squared error of this noise, in "
        f"these units, is {compare_to_limit(design)}.",
    )


def _read_adaptive(release: AdaptiveRelease) -> MechanismFacts:
    moment = release.moment
    bounds = Bounds(moment.bounds.lower, moment.bounds.upper, names=release.names)
    steps = ", ".join(f"{step.name} {step.share:.1%}" for step in release.steps)
    return MechanismFacts(
        name="matrixdp",
        query=Moments.for_covariance(bounds, release.records, neighbours=release.neighbours, person=moment.person),
        epsilon=release.privacy.epsilon,
        delta=release.privacy.delta,
        cost=f"at most μ = {release.mu:.6g} of Gaussian differential privacy, all steps together",
        noise=f"By an adaptive fit. {release.reason} Gaussian noise from exact integer arithmetic was added in every "
        f"step; the budget was shared as follows: {steps}.",
        adaptive=True,
    )


def _compare(gain: float) -> str:
    if abs(gain - 1) < 0.005:
        return "the same as"
    return f"{format_number(gain)} times smaller than" if gain > 1 else f"{format_number(1 / gain)} times larger than"


def _read_other(release: MechanismRelease) -> MechanismFacts:
    numbers = ", ".join(f"{name} = {format_number(float(value), 4)}" for name, value in release.parameters.items())
    cost = f"ε = {release.epsilon:.4g}" + (f" at δ = {release.delta:.3g}" if release.delta else "")
    warning = (
        "For comparison only: do not publish this release. Its noise is floating-point, and the low bits of its "
        "numbers can reveal the true answer."
    )
    return MechanismFacts(
        name=release.mechanism,
        query=release.query,
        epsilon=release.epsilon,
        delta=release.delta,
        cost=cost if release.mu is None else f"μ = {release.mu:.6g} of Gaussian differential privacy, which is {cost}",
        noise=f"Noise of the mechanism “{release.mechanism}”" + (f", with {numbers}." if numbers else "."),
        warnings=(warning,) if release.comparison_only else (),
    )


def name_privacy(facts: MechanismFacts) -> str:
    """The guarantee in symbols, as in "ε = 1, δ = 1e-06"; without delta if it is 0."""
    return f"ε = {facts.epsilon:g}" + (f", δ = {facts.delta:.3g}" if facts.delta else "")


def name_loss(epsilon: float) -> str:
    """The size of a privacy loss: small up to epsilon 1, moderate up to 3, large beyond, where protection is weak.

    Examples
    --------
    >>> name_loss(1.0), name_loss(2.0), name_loss(20.0)
    ('small privacy loss', 'moderate privacy loss', 'large privacy loss, weak protection')
    """
    if epsilon <= SMALL_LOSS:
        return "small privacy loss"
    return "moderate privacy loss" if epsilon <= MODERATE_LOSS else "large privacy loss, weak protection"


def describe_odds(epsilon: float, delta: float, unit: str = "one record") -> str:
    """What a guarantee allows, as a factor on odds.

    Examples
    --------
    >>> describe_odds(1.0, 1e-6).partition(": ")[0]
    'It changes the odds of any conclusion about one record by at most a factor of 2.72, except with probability 1e-06'
    >>> describe_odds(1.0, 1e-6).partition(": ")[2]
    'an even chance becomes at most 73.2%.'
    """
    exception = f", except with probability {delta:.3g}" if delta else ""
    chance = 1 / (1 + math.exp(-epsilon))
    even = f"at most {math.ceil(chance * 1000) / 10:.1f}%" if chance < 0.999 else "nearly certain"
    return (
        f"It changes the odds of any conclusion about {unit} by at most a factor of {_round_up(epsilon)}{exception}: "
        f"an even chance becomes {even}."
    )


def _round_up(epsilon: float) -> str:
    """``e^epsilon`` with three digits, rounded up; above a million by its order of magnitude."""
    if epsilon > math.log(1e6):
        return f"10^{math.ceil(epsilon / math.log(10))}"
    factor = math.exp(epsilon)
    digits = 2 - math.floor(math.log10(factor))
    return f"{math.ceil(factor * 10.0**digits) / 10.0**digits:,.{max(digits, 0)}f}"
