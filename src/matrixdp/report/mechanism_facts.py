"""What a report says about the mechanism behind a release: the only module that reads a release's design."""

from __future__ import annotations

from dataclasses import dataclass

from matrixdp.design import Design
from matrixdp.design.explain import compare_to_limit
from matrixdp.display import format_number
from matrixdp.domain.bounds import Bounds
from matrixdp.queries import MatrixQuery, Moments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.result import Release

AnyRelease = Release | MechanismRelease | AdaptiveRelease


@dataclass(frozen=True, kw_only=True)
class MechanismFacts:
    """The public facts about a mechanism that a report shows.

    Attributes
    ----------
    name : str
    query : MatrixQuery
    epsilon, delta : float
        The guarantee; `delta` is 0 for pure differential privacy.
    cost : str
        What the release spent, in words.
    noise : str
        How the noise was generated, in a sentence or two.
    clips : bool
        Whether values outside the bounds are known to have been moved to the bounds.
    warnings : tuple of str
        Reasons not to rely on the guarantee.
    adaptive : bool
        Whether the result is from a fit that learned where the data lie.
    """

    name: str
    query: MatrixQuery
    epsilon: float
    delta: float
    cost: str
    noise: str
    clips: bool = False
    warnings: tuple[str, ...] = ()
    adaptive: bool = False

    @property
    def guarantee(self) -> str:
        """The guarantee in the usual notation."""
        numbers = f"({self.epsilon:g}, {self.delta:.3g})" if self.delta else f"{self.epsilon:g}"
        return f"{numbers}-differential privacy"


def read_mechanism(release: AnyRelease) -> MechanismFacts:
    """Facts about the mechanism behind a release: a design, an adaptive fit, or what a `MechanismRelease` names."""
    if isinstance(release, AdaptiveRelease):
        return _read_adaptive(release)
    return read_design(release.design) if isinstance(release, Release) else _read_other(release)


def read_design(design: Design) -> MechanismFacts:
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
        f"{_compare(design.gain)} with the same noise for all features. {_limit(design)}",
        clips=True,
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
        clips=True,
        adaptive=True,
    )


def _limit(design: Design) -> str:
    return f"The total squared error of this noise, in these units, is {compare_to_limit(design)}."


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
