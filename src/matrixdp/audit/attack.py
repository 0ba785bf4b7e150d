"""Attacks on a design: neighbouring data sets whose answers are as far apart as possible, before noise."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.audit.domains import BoxDomain, RecordDomain, find_domain
from matrixdp.audit.families import Domain
from matrixdp.audit.pair_search import PairSearch
from matrixdp.checks import check_integer
from matrixdp.design import Design
from matrixdp.display.short_repr import short_repr
from matrixdp.domain import Bounds
from matrixdp.errors import ParameterError
from matrixdp.gdp import gdp_epsilon
from matrixdp.mechanisms.mechanism import prepare, round_answer

SLACK = 1e-12  # relative; rounding of the measured distance itself
_COUNT = 4  # records of a data set where the query does not say how many


@dataclass(frozen=True, eq=False)
class Attack:
    """The worst pair of neighbours that an attack found. Nothing in it is private: all data are made up.

    Attributes
    ----------
    design : Design
    data, neighbour : array, or what the query takes
        The worst pair.
    distance : float
        How far their answers are apart, in standard deviations of the noise: the norm of the difference of the
        integers before noise, times ``2^-bits``.
    pairs : int
        Number of pairs that were compared.
    refused : int
        Number of data sets for which the query raised an error. An error is visible, so it can reveal a record.
    refusal : str
        The first such error.
    """

    design: Design
    data: Any
    neighbour: Any
    distance: float
    pairs: int
    refused: int = 0
    refusal: str = ""

    __repr__ = short_repr

    @property
    def claim(self) -> float:
        """Distance that the design claims no pair to exceed."""
        return self.design.distance

    @property
    def ratio(self) -> float:
        """Distance found over the distance claimed."""
        if self.distance == 0:
            return 0.0
        return self.distance / self.claim if self.claim else math.inf

    @property
    def broken(self) -> bool:
        """Whether the pair is farther apart than the design claims for any pair, so that its claim is false."""
        return self.ratio > 1 + SLACK

    @property
    def epsilon(self) -> float:
        """Epsilon, at the design's delta, that a release has at least."""
        return gdp_epsilon(mu=self.distance, delta=self.design.privacy.delta) if self.distance > 0 else 0.0

    def __str__(self) -> str:
        verdict = "BROKEN: neighbours are farther apart than claimed" if self.broken else "no pair exceeds the claim"
        refused = f"; {self.refused:,} data sets raised an error ({self.refusal})" if self.refused else ""
        return (
            f"{type(self.design.query).__name__}: {verdict}. Distance {self.distance:.6g} found, "
            f"{self.claim:.6g} claimed, ratio {self.ratio:.6f}, {self.pairs:,} pairs{refused}."
        )


def attack(
    design: Design,
    *,
    generate: Callable[[np.random.Generator], Any] | None = None,
    bounds: Bounds | None = None,
    records: int | None = None,
    domain: Domain | None = None,
    starts: int = 8,
    seconds: float = math.inf,
    seed: int = 0,
) -> Attack:
    """Search for neighbours whose answers are farther apart than a design claims.

    Parameters
    ----------
    design : Design
        For any query. Build it for few records: a pair within a small data set is enough, and faster.
    generate : callable, optional
        ``generate(rng)`` returns one record, for queries whose records are not numbers in bounds. The data set is an
        array if records are arrays or numbers, otherwise a list.
    bounds : Bounds, optional
        For a function of your own on records of shape (n, m): the box to search, with records outside of it.
    records : int, optional
        Number of records of a data set, for `generate` and `bounds`; by default 4.
    domain : Domain, optional
        The data sets to search, in place of the above.
    starts : int
        Number of families of neighbours to search.
    seconds : float
        Stop after this time.
    seed : int

    Returns
    -------
    Attack
        The worst pair. If it is `broken`, the design's claim is false; if not, nothing is proved.

    Privacy
    -------
    Looks at made-up data only and draws no noise.

    Examples
    --------
    >>> from matrixdp import Bounds, Moments, Privacy, make_design
    >>> found = attack(make_design(Moments(Bounds([0, 0], [1, 1]), 3), Privacy(1, 1e-6)))
    >>> found.broken, found.ratio > 0.9
    (False, True)
    """
    if not isinstance(design, Design):
        raise ParameterError(f"design must be a Design, got {type(design).__name__} instead.")
    check_integer(starts, "starts", at_least=1)
    domain = domain or _choose_domain(design, generate, bounds, records)
    rng, search, end = np.random.default_rng(seed), PairSearch(design), time.monotonic() + seconds
    for _ in range(starts):
        search.run(domain.family(rng), rng)
        if time.monotonic() > end:
            break
    if search.worst is None:
        raise ParameterError(f"no pair of data sets could be evaluated. The first error was {search.refusal}")
    return Attack(design, *search.worst_pair(), search.pairs, search.refused, search.refusal)


def _choose_domain(
    design: Design,
    generate: Callable[[np.random.Generator], Any] | None,
    bounds: Bounds | None,
    records: int | None,
) -> Domain:
    if generate is None and bounds is None:
        return find_domain(design.query)
    count = _COUNT if records is None else check_integer(records, "records", at_least=1)
    if generate is not None:
        return RecordDomain(generate, count, design.neighbours)
    assert bounds is not None
    return BoxDomain.of(bounds, count, design.neighbours)


def distance_between(design: Design, data: Any, neighbour: Any) -> float:
    """How far the answers of two data sets are apart, in standard deviations of the noise, from exact integers.

    Parameters
    ----------
    design : Design
    data, neighbour
        Data sets that the query takes.

    Privacy
    -------
    Private for private data: an audit's data are made up.

    Examples
    --------
    >>> from matrixdp import Bounds, Identity, Privacy, make_design
    >>> design = make_design(Identity(Bounds([0], [1]), 1), Privacy(1, 1e-6))
    >>> round(distance_between(design, [[0.0]], [[1.0]]) / design.distance, 9)
    1.0
    """
    first, second = (
        round_answer(design, prepare(design, source, clip=True, missing="error")).ravel().tolist()
        for source in (data, neighbour)
    )
    squares = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
    return math.sqrt(squares) * 2.0**-design.grid.bits
