"""Exact audits of fits: the transcript of a fit on one data set, replayed on a neighbour."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.audit.attack import SLACK
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
    """One release of a fit.

    Attributes
    ----------
    query : str
    shape : tuple of int
    distance : float
        How far the answers of the two data sets are apart, in standard deviations of the noise.
    claim : float
        Distance that the release's design claims.
    loss : float
        Logarithm of how much likelier the noisy answer is under the data than under the neighbour.
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
        reach the result, or decide what is released, other than through noisy answers. Results that cannot be pickled
        are not compared.
    """

    steps: tuple[ReplayStep, ...]
    claim: float
    difference: str = ""

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
        verdict = "BROKEN" if self.broken else "within its claim"
        more = f" Different: {self.difference}." if self.difference else ""
        return (
            f"{verdict}: {len(self.steps)} releases, together {self.distance:.6g} apart; their designs claim "
            f"{self.spent:.6g}, the fit claims {self.claim:.6g}, ratio {self.ratio:.6f}.{more}"
        )


def replay(
    fit: Callable[[Any], Any],
    data: Any,
    neighbour: Any,
    *,
    claim: float | Privacy | None = None,
    seed: int = 0,
) -> Replay:
    """Run a fit on `data`, and again on `neighbour` with the same noisy answers.

    Parameters
    ----------
    fit : callable
        Of one data set; everything that it releases must go through this library, in the calling thread.
    data, neighbour
        Two data sets that the guarantee calls neighbours: made up, since nothing here is protected.
    claim : float or Privacy, optional
        `mu`, or the guarantee, of the whole fit; by default that of what `fit` returns: `mu` of a
        release, `privacy` or `privacy_` of anything else.
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

    Examples
    --------
    >>> from matrixdp import Bounds
    >>> from matrixdp.adaptive import private_moment
    >>> data = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    >>> neighbour = data.copy()
    >>> neighbour[0] = 1.0
    >>> replay(lambda x: private_moment(x, Bounds([-1, -1], [1, 1]), Privacy(1, 1e-6)), data, neighbour).broken
    False
    """
    transcript = _Transcript(Stream(seed=seed))
    with intercept_releases(transcript.record):
        first = fit(data)
    again = _Replayed(transcript.releases)
    difference = ""
    try:
        with intercept_releases(again.answer):
            second = fit(neighbour)
    except _DivergedError as error:
        difference = str(error)
    else:
        difference = _compare(len(again.steps), len(transcript.releases), first, second)
    return Replay(tuple(again.steps), _parse_claim(claim, first), difference)


class _DivergedError(MatrixDPError):
    """The two fits release different things."""


@dataclass
class _Release:
    """A design, its integers before noise, its noisy answer, and the integers drawn for it, if they are known."""

    design: Design
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
    """Draws simulated noise and keeps each release."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.releases: list[_Release] = []

    def record(self, design: Design, prepared: NDArray[Any]) -> Floats:
        integers = round_answer(design, prepared).copy()
        if design.entrywise:
            noisy, drawn = add_noise(design, prepared, self._stream), None
        else:
            drawn = draw_noise(design, integers.shape, self._stream)
            noisy = unwhiten(design, integers + drawn)
        self.releases.append(_Release(design, integers, noisy.copy(), drawn))
        return noisy


class _Replayed:
    """Answers with the noisy answers of a transcript, and measures how far its own would be from them."""

    def __init__(self, releases: list[_Release]) -> None:
        self._releases = releases
        self.steps: list[ReplayStep] = []

    def answer(self, design: Design, prepared: NDArray[Any]) -> Floats:
        number = len(self.steps)
        if number == len(self._releases):
            raise _DivergedError(f"there are more than {number} releases")
        recorded = self._releases[number]
        if not _same_design(design, recorded.design):
            raise _DivergedError(f"release {number + 1} has another design")
        change = ((round_answer(design, prepared) - recorded.integers) * 2.0**-design.grid.bits).ravel()
        distance = float(np.linalg.norm(change))
        loss = distance**2 / 2 - float(change @ recorded.noise())
        self.steps.append(ReplayStep(type(design.query).__name__, design.query.shape, distance, design.distance, loss))
        return recorded.noisy.copy()


def _same_design(one: Design, other: Design) -> bool:
    return (
        type(one.query) is type(other.query)
        and one.query.shape == other.query.shape
        and one.grid == other.grid
        and one.flat == other.flat
        and all(
            np.array_equal(mine.variances, theirs.variances)
            for mine, theirs in ((one.rowcov, other.rowcov), (one.colcov, other.colcov))
        )
    )


def _compare(found: int, expected: int, first: Any, second: Any) -> str:
    """The difference between two fits with the same noisy answers, in words."""
    if found != expected:
        return f"there are {found} releases instead of {expected}"
    try:
        same = pickle.dumps(first) == pickle.dumps(second)
    except Exception:  # what cannot be pickled cannot be compared
        return ""
    return "" if same else "the result, given the same noisy answers"


def _parse_claim(claim: float | Privacy | None, result: Any) -> float:
    if claim is None and isinstance(result, Guaranteed):
        claim = result.mu
    if claim is None:
        claim = getattr(result, "privacy_", None) or getattr(result, "privacy", None)
    if isinstance(claim, Privacy):
        return claim.mu
    if claim is None:
        raise ParameterError("claim must be given, mu or Privacy: what the fit returns does not say its guarantee.")
    return check_number(claim, "claim", above=0)
