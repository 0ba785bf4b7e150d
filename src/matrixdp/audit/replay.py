"""Exact audits of fits: the transcript of a fit on one data set, replayed on a neighbour."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.audit.attack import SLACK, Attack
from matrixdp.audit.snapshot import Snapshot, compare_snapshots, take_snapshot
from matrixdp.checks import check_number
from matrixdp.design import Design
from matrixdp.errors import MatrixDPError, ParameterError
from matrixdp.gdp import compose_mu
from matrixdp.mechanisms.mechanism import add_noise, draw_noise, intercept_releases, round_answer, unwhiten
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.release.result import Guaranteed
from matrixdp.types import Floats


@dataclass(frozen=True)
class ReplayStep:
    """One release of a fit: the `query` and its `shape`, how far the answers of the two data sets are apart, and more.

    `distance` is in standard deviations of the noise, `claim` is the distance that the release's design claims, and
    `loss` the logarithm of how much likelier the noisy answer is under the data than under the neighbour.
    """

    query: str
    shape: tuple[int, int]
    distance: float
    claim: float
    loss: float


@dataclass(frozen=True)
class Replay:
    """The distance of a transcript under two neighbours. Contains no result of the fit.

    Attributes
    ----------
    steps : tuple of ReplayStep
        Every release, in order.
    claim : float
        The `mu` that the whole fit is charged with.
    difference : str
        What differs between the fits although their transcripts are the same, or an empty string: private data then
        reach the result, a warning or an error, or decide what is released, other than through noisy answers.
    skipped : tuple of str
        Parts of the result or of a design that could not be compared, such as open files and generators. A leak there
        is not noticed: a fit should return nothing of the kind.
    """

    steps: tuple[ReplayStep, ...]
    claim: float
    difference: str = ""
    skipped: tuple[str, ...] = ()

    @property
    def distance(self) -> float:
        """Root of the sum of all squared distances."""
        return math.hypot(*(step.distance for step in self.steps))

    @property
    def loss(self) -> float:
        """Privacy loss of the transcript: by Neyman and Pearson the best statistic to tell the data sets apart."""
        return math.fsum(step.loss for step in self.steps)

    @property
    def spent(self) -> float:
        """The `mu` that the designs of all releases claim together."""
        return compose_mu(step.claim for step in self.steps)

    @property
    def ratio(self) -> float:
        """Distance found, or `mu` of all designs if that is larger than the claim, over the claim."""
        excess = self.spent if self.spent > self.claim * (1 + SLACK) else 0.0
        return max(self.distance, excess) / self.claim

    @property
    def broken(self) -> bool:
        """True if a step or the whole exceeds its claim, or the fits differ in more than their noisy answers."""
        return (
            bool(self.difference)
            or self.ratio > 1 + SLACK
            or any(step.distance > step.claim * (1 + SLACK) for step in self.steps)
        )

    def __str__(self) -> str:
        more = f" Different: {self.difference}." if self.difference else ""
        if self.skipped:
            more += f" NOT compared: {', '.join(self.skipped[:5])}{', ...' if len(self.skipped) > 5 else ''}."
        return (
            f"{'BROKEN' if self.broken else 'within its claim'}: {len(self.steps)} releases, together "
            f"{self.distance:.6g} apart; their designs claim {self.spent:.6g}, the fit claims {self.claim:.6g}, "
            f"ratio {self.ratio:.6f}.{more}"
        )


@dataclass
class Tally:
    """Designs attacked or fits replayed, their pairs of data sets, the largest ratio to a claim, and seeds above it."""

    audits: int = 0
    pairs: int = 0
    worst: float = 0.0
    broken: list[int] = field(default_factory=list)
    skipped: int = 0  # parts of results and designs that could not be compared

    def add(self, found: Attack | Replay, seed: int) -> None:
        """Count the audit that was made from this seed."""
        self.audits += 1
        self.pairs += found.pairs if isinstance(found, Attack) else 1
        self.skipped += 0 if isinstance(found, Attack) else len(found.skipped)
        self.worst = max(self.worst, found.ratio)
        if found.broken:
            self.broken.append(seed)


def replay(
    fit: Callable[[Any], Any], data: Any, neighbour: Any, *, claim: float | Privacy | None = None, seed: int = 0
) -> Replay:
    """Run a fit on `data`, and again on `neighbour` with the same noisy answers.

    Parameters
    ----------
    fit : callable
        Of one data set; everything that it releases must go through this library, in the calling thread.
    data, neighbour
        Two data sets that the guarantee calls neighbours: made up, since nothing here is protected.
    claim : float or Privacy, optional
        `mu`, or the guarantee, of the whole fit; by default that of what `fit` returns: `mu` of a release, `privacy` or
        `privacy_` of anything else, or of its `release` or `spending`.
    seed : int
        Of the simulated noise.

    Returns
    -------
    Replay
        Adaptive composition of Gaussian releases is `mu`-GDP if no transcript is more than `mu` apart under any two
        neighbours. So one replay above its claim shows that the accounting is wrong; one below it proves nothing.

    Privacy
    -------
    Everything released meanwhile is marked as a simulation; a ledger raises an error.
    """
    transcript = _Transcript(Stream(seed=seed))

    def run(answer: Callable[[Design, NDArray[Any]], Floats], source: Any) -> tuple[Any, Snapshot, list[Any]]:
        """The result of the fit, a snapshot of it and of its warnings, and these."""
        with intercept_releases(answer), warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            result = fit(source)
        return result, take_snapshot((result, [(one.category, str(one.message)) for one in issued])), issued

    first, expected, issued = run(transcript.record, data)
    try:
        found = run(transcript.answer, neighbour)[1]
    except Exception as error:
        difference = f"the fit of the neighbour raises {type(error).__name__}"
    else:
        difference = transcript.compare(expected, found)
    for one in issued:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    difference = transcript.difference or difference
    return Replay(tuple(transcript.steps), _parse_claim(claim, first), difference, tuple(transcript.skipped))


class _DivergedError(MatrixDPError):
    """The two fits release different things."""


@dataclass
class _Release:
    """A design as it was, its integers before noise, its noisy answer, and the integers drawn for it, if known."""

    design: Design
    plan: Snapshot
    integers: NDArray[np.int64]
    noisy: Floats
    drawn: NDArray[np.int64] | None = None

    def noise(self) -> Floats:
        """The noise, in standard deviations, of shape (entries,)."""
        unit = 2.0**-self.design.grid.bits
        if self.drawn is not None:
            return np.asarray((self.drawn + 0.5) * unit).ravel()
        return np.asarray((self.design.noise.whiten(self.noisy) - self.integers * unit).ravel())


class _Transcript:
    """Releases of a fit with simulated noise, and how far the answers of a second fit would be from them."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.releases: list[_Release] = []
        self.steps: list[ReplayStep] = []
        self.skipped: list[str] = []
        self.difference = ""  # stays, also if the fit ignores the error

    def record(self, design: Design, prepared: NDArray[Any]) -> Floats:
        """Draw simulated noise, and keep the release."""
        plan = take_snapshot(design)
        integers = round_answer(design, prepared).copy()
        if design.entrywise:
            noisy, drawn = add_noise(design, prepared, self._stream), None
        else:
            drawn = draw_noise(design, integers.shape, self._stream)
            noisy = unwhiten(design, integers + drawn)
        self.releases.append(_Release(design, plan, integers, noisy, drawn))
        return noisy.copy()  # as in `answer`, so that both fits get arrays with memory of their own

    def answer(self, design: Design, prepared: NDArray[Any]) -> Floats:
        """The noisy answer that was recorded, after measuring how far this one is from it."""
        number = len(self.steps)
        if number == len(self.releases):
            self.diverge(f"there are more than {number} releases")
        recorded = self.releases[number]
        place, skipped = compare_snapshots(recorded.plan, take_snapshot(design))
        self.skipped += [f"{one} of the design of release {number + 1}" for one in skipped]
        if place:
            self.diverge(f"release {number + 1} has another design, in {place}")
        integers = round_answer(design, prepared)
        if recorded.drawn is not None:
            unwhiten(design, integers + recorded.drawn)  # not used; designs then store what those of the transcript do
        change = ((integers - recorded.integers) * 2.0**-design.grid.bits).ravel()
        distance = float(np.linalg.norm(change))
        loss = distance**2 / 2 - float(change @ recorded.noise())
        self.steps.append(ReplayStep(type(design.query).__name__, design.query.shape, distance, design.distance, loss))
        return recorded.noisy.copy()

    def diverge(self, difference: str) -> None:
        self.difference = self.difference or difference
        raise _DivergedError(difference)

    def compare(self, expected: Snapshot, found: Snapshot) -> str:
        """The difference between two fits with the same noisy answers, in words."""
        if len(self.steps) != len(self.releases):
            return f"there are {len(self.steps)} releases instead of {len(self.releases)}"
        place, skipped = compare_snapshots(expected, found)
        self.skipped += [f"{one[3:]} of the result" for one in skipped]
        if not place:
            return ""
        what = f"the result{f', in {place[3:]},' * bool(place[3:])}" if place.startswith("[0]") else "the warnings"
        return f"{what} given the same noisy answers"


def _parse_claim(claim: float | Privacy | None, result: Any) -> float:
    for holder in (result, getattr(result, "release", None), getattr(result, "spending", None)):
        names = ("mu",) if isinstance(holder, Guaranteed) else ("privacy_", "privacy")
        known = [getattr(holder, name) for name in names if getattr(holder, name, None) is not None]
        claim = next(iter(known), None) if claim is None else claim
    if isinstance(claim, Privacy):
        return claim.mu
    if claim is None:
        raise ParameterError("claim must be given, mu or Privacy: what the fit returns does not say its guarantee.")
    return check_number(claim, "claim", above=0)
