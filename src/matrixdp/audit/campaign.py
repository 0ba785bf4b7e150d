"""A campaign: attacks on random designs of all queries, replays of all fits, and the broken variants."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, cycle

import numpy as np

from matrixdp.audit.attack import attack
from matrixdp.audit.broken import BROKEN
from matrixdp.audit.random_cases import FITS, QUERIES, FitCase, random_design, random_fit
from matrixdp.audit.replay import replay


@dataclass
class Tally:
    """Designs attacked or fits replayed, their pairs of data sets, the largest ratio to a claim, and seeds above it."""

    audits: int = 0
    pairs: int = 0
    worst: float = 0.0
    broken: list[int] = field(default_factory=list)
    skipped: int = 0  # parts of results and designs that could not be compared

    def add(self, pairs: int, ratio: float, *, broken: bool, seed: int, skipped: int = 0) -> None:
        """Count one audit."""
        self.audits += 1
        self.pairs += pairs
        self.skipped += skipped
        self.worst = max(self.worst, ratio)
        if broken:
            self.broken.append(seed)


def attack_designs(*, pairs: int, seconds: float = math.inf, seed: int = 0, starts: int = 4) -> dict[str, Tally]:
    """Attack random designs, each query in turn, until `pairs` pairs were compared or time is up."""

    def audit(name: str, number: int, tally: Tally) -> None:
        design, domain = random_design(name, np.random.default_rng(number))
        found = attack(design, domain=domain, starts=starts, seed=number)
        tally.add(found.pairs, found.ratio, broken=found.broken, seed=number)

    return _run(tuple(QUERIES), audit, "pairs", pairs, seconds, seed)


def replay_fits(
    *,
    replays: int,
    seconds: float = math.inf,
    seed: int = 0,
    names: Sequence[str] = FITS,
    choose: Callable[[str, np.random.Generator], FitCase] = random_fit,
) -> dict[str, Tally]:
    """Replay random fits, each kind in turn, until `replays` were run or time is up."""

    def audit(name: str, number: int, tally: Tally) -> None:
        case = choose(name, np.random.default_rng(number))
        found = replay(case.fit, case.data, case.neighbour, seed=number)
        tally.add(1, found.ratio, broken=found.broken, seed=number, skipped=len(found.skipped))

    return _run(names, audit, "audits", replays, seconds, seed)


def _run(
    names: Sequence[str], audit: Callable[[str, int, Tally], None], unit: str, most: int, seconds: float, seed: int
) -> dict[str, Tally]:
    """Audit each name in turn, at least once; the audit of number n can be repeated from its seed alone."""
    tallies, end = {name: Tally() for name in names}, time.monotonic() + seconds
    for done, (number, name) in enumerate(zip(count(seed), cycle(names)), 1):
        audit(name, number, tallies[name])
        enough = sum(getattr(tally, unit) for tally in tallies.values()) >= most
        if done >= len(names) and (enough or time.monotonic() > end):
            break
    return tallies


def try_broken() -> Iterator[tuple[str, bool]]:
    """Every broken variant, and whether it is caught."""
    for name, caught in BROKEN.items():
        yield name, caught()
