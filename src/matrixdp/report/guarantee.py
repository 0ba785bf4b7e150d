"""The guarantee of a release, its mechanism and its ledger: the public facts, in words and in symbols."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matrixdp.design import Design
from matrixdp.design.explain import compare_to_limit
from matrixdp.display import format_number
from matrixdp.domain.bounds import Bounds
from matrixdp.privacy import Neighbours, describe_large_delta
from matrixdp.queries import GramMatrix, Identity, MatrixQuery, Moments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.dataset import DatasetRelease
from matrixdp.release.registered import MechanismRelease
from matrixdp.release.result import Release

AnyRelease = Release | MechanismRelease | AdaptiveRelease
SMALL_LOSS, MODERATE_LOSS = 1.0, 3.0  # largest epsilons of each: an even chance becomes at most 73% and 95%

_LEARNED = {
    "small privacy loss": "learns little about",
    "moderate privacy loss": "can learn something about",
    "large privacy loss, weak protection": "may find out",
}

_SAME_ROWS = (
    "tables of the same rows that differ in the values of all rows of one person (replace-one); the number of rows is "
    "public, and which of them belong to the same person is not protected"
)
# By unit, and whether neighbours are 'replace': completes "can hardly tell whether ...".
_UNCERTAINTY = {
    ("record", True): "any one record is as it is or completely different",
    ("record", False): "any one record is in the data or not",
    ("person", True): "all rows of any one person are as they are or completely different",
    ("person", False): "any one person is in the data, with all their rows, or not",
    ("edge", True): "any one edge is in the graph or not",
    ("edge", False): "any one edge is in the graph or not",
    ("node", True): "any one node has the edges that it has or completely different ones",
    ("node", False): "any one node has all its edges or none",
}
_ADJACENCY = {
    ("record", True): "data sets of the same size that differ in one record (replace-one); the number of records is "
    "public",
    ("record", False): "data sets of which one has one record more (add-remove); the number of records is private, too",
    ("person", True): "data sets of equally many people that differ in all rows of one (replace-one); {public}",
    ("person", False): "data sets of which one has one person more (add-remove); the number of people is private, too",
    ("edge", True): "graphs on the same nodes that differ in one edge (it comes, goes or changes its weight)",
    ("edge", False): "graphs on the same nodes that differ in one edge (it comes, goes or changes its weight)",
    ("node", True): "graphs on the same nodes, which are public, that differ in the edges of one node (they are "
    "replaced by others)",
    ("node", False): "graphs on the same nodes, which are public, that differ in the edges of one node (they all come "
    "or go)",
}


@dataclass(frozen=True)
class LedgerSummary:
    """Budget of a data set, or of its allowance, before and after a release, and the ledger's last entry.

    Attributes
    ----------
    path, dataset : str
    epsilon, delta : float
        The total budget of the data set.
    left_before, left_after : float
        Epsilon left at the total's delta.
    entry : int
    hash : str
        Number and hash of the last entry.
    allowance : str, optional
        The allowance that paid; the budget is then that of the allowance.
    charged : bool
        Whether this run charged the release; a repeated request is not charged again.
    unnoticed : tuple of str
        What could be done to the ledger's file without being noticed.
    """

    path: str
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


def describe_guarantee(mechanism: MechanismFacts) -> str:
    """How much the release may reveal, by the strength of its guarantee."""
    loss = name_loss(mechanism.epsilon)
    return (
        f"{loss[0].upper()}{loss[1:]}: someone who sees this release {_LEARNED[loss]} whether "
        f"{describe_uncertainty(mechanism.query)}, whatever else they know. "
        f"{describe_odds(mechanism.epsilon, mechanism.delta, mechanism.query.protects)}"
    )


def describe_formally(mechanism: MechanismFacts) -> list[tuple[str, str]]:
    """The guarantee in symbols: facts with their names, and formulas without."""
    slack = " + δ" if mechanism.delta else ""
    value = f"with ε = {mechanism.epsilon:g}" + (f" and δ = {mechanism.delta:.3g}" if mechanism.delta else "")
    facts = [
        ("Guarantee", f"{mechanism.guarantee}: for all neighbours D and D′ and every set S of results,"),
        ("", f"Pr[M(D) ∈ S] ≤ exp(ε) Pr[M(D′) ∈ S]{slack}, {value}"),
        ("Neighbours", describe_adjacency(mechanism.query)),
        ("Spent", mechanism.cost),
    ]
    if "μ" in mechanism.cost:
        facts.append(("", "δ(ε) = Φ(−ε/μ + μ/2) − exp(ε) Φ(−ε/μ − μ/2), with the normal distribution function Φ"))
    return facts


def describe_protection(mechanism: MechanismFacts) -> list[str]:
    """What is protected and what is not."""
    query, unit = mechanism.query, mechanism.query.protects
    values = ", with all its values together" if query.unit in ("record", "edge") else ""
    return [
        f"Protected: {unit}{values}, even against someone who knows all the others.",
        f"Not protected: what many people have in common. A pattern that is in the data with or without {unit} can be "
        "learned from this release; that is its purpose.",
        _describe_repetition(query),
        "Public, and therefore not protected: the names of rows and columns, the bounds, the number of "
        f"{query.count_word} where it is declared public, and how the noise was generated. The bounds must not have "
        "been taken from the data.",
        "Every further release from the same data adds to the privacy loss. A ledger keeps the total.",
    ]


def _describe_repetition(query: MatrixQuery) -> str:
    """What the guarantee says about somebody who is in the data several times."""
    match query.unit:
        case "person":
            return (
                "Protected as well: people who appear in the data more than once, however often. A person who has "
                "several ids is protected as several people."
            )
        case "node":
            return "Protected as well: nodes with many edges. Public, however: which nodes there are."
        case "edge":
            return (
                "Not protected either: several edges at once. The guarantee is for one edge; for k of them, such as "
                "all those of one node, it is about k times weaker."
            )
    return (
        f"Not protected either: people who appear in the data more than once. The guarantee is for {query.protects}; "
        "for k of them at once it is about k times weaker."
    )


def describe_ledger(ledger: LedgerSummary | None) -> list[str]:
    """What the ledger recorded, or that there is none."""
    if ledger is None:
        return [
            "No ledger was used. The guarantee above is for this release alone; nothing keeps the total of this and "
            "other releases from the same data."
        ]
    target = (
        f"“{ledger.dataset}”" if ledger.allowance is None else f"“{ledger.allowance}”, a part of “{ledger.dataset}”,"
    )
    return [
        f"Charged to {target} before any noise was drawn. Of its total budget (ε = {ledger.epsilon:g} at "
        f"δ = {ledger.delta:.3g}), ε = {ledger.left_before:.4g} was left before this release and "
        f"ε = {ledger.left_after:.4g} is left after it.",
        f"When this page was written, the last entry of the ledger was number {ledger.entry} (hash "
        f"{ledger.hash[:16]}…). Keep the number and the full hash elsewhere (matrixdp ledger verify prints them): they "
        "show later whether an earlier entry was altered.",
        *(
            f"The ledger's file system does not show {what}. An anchor would: matrixdp release --anchor-to FILE."
            for what in ledger.unnoticed
        ),
    ]


def describe_uncertainty(query: MatrixQuery) -> str:
    """Return what an adversary cannot tell, to complete "can hardly tell whether ..."."""
    return _UNCERTAINTY[query.unit, query.neighbours is Neighbours.REPLACE]


def describe_adjacency(query: MatrixQuery) -> str:
    """Return the pairs of data sets that the guarantee compares, in words."""
    if query.person is not None and isinstance(query, Identity | GramMatrix):
        return _SAME_ROWS
    public = "the number of people is public" if query.public_number else "the number of rows is private"
    return _ADJACENCY[query.unit, query.neighbours is Neighbours.REPLACE].format(public=public)


def list_warnings(
    mechanism: MechanismFacts,
    release: AnyRelease | DatasetRelease,
    ledger: LedgerSummary | None,
    caveats: Sequence[str] = (),
) -> list[str]:
    """Sentences that no reader of a release may miss."""
    warnings = [*mechanism.warnings, *caveats]
    if release.simulation:
        warnings.append("Simulation. Anyone who knows the seed can repeat the noise, so this release protects nobody.")
    records = getattr(mechanism.query, "records", None)
    if mechanism.delta and records is not None and (delta := describe_large_delta(release.privacy, records)):
        warnings.append(delta[0].upper() + delta[1:])
    if ledger is None:
        warnings.append("No ledger was used: nothing keeps the total of the privacy loss from these data.")
    return warnings
