"""The privacy budget of one fit: charged as a whole, then shared among the steps."""

import math
from dataclasses import dataclass, field
from typing import Any

from matrixdp.design import Design, isotropic, make_design
from matrixdp.domain.person import Person, find_unit
from matrixdp.errors import ParameterError
from matrixdp.gdp import compose_mu
from matrixdp.mechanisms.mechanism import NoisyAnswer, check_stream, measure
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy, Unit, check_privacy
from matrixdp.queries import MatrixQuery
from matrixdp.serialise import builtin_kind

_ROUNDING = 1e-12  # relative reduction of each share, so that shares which sum to one in floats stay within the total


@builtin_kind
@dataclass(frozen=True)
class Step:
    """Privacy cost of one step of a fit.

    `mu` is its Gaussian differential privacy, `share` that of the fit's ``mu^2``, and `releases` the number of noisy
    numbers or matrices that it released.
    """

    name: str
    mu: float
    share: float
    releases: int


@dataclass
class FitBudget:
    """The budget of one fit of any number of steps, and what they have spent; `stream` is for simulations only.

    Privacy
    -------
    Every release goes through `matrixdp.mechanisms.mechanism.measure` with a share of ``mu^2``; a share that would
    exceed the total raises before anything is drawn. Gaussian releases compose to the root of the sum of squares, also
    when each is designed after the results of earlier ones are known.
    """

    privacy: Privacy
    neighbours: Neighbours = Neighbours.REPLACE
    stream: Stream | None = None
    simulation: bool = False
    person: Person | None = field(default=None, kw_only=True)
    _releases: list[tuple[str, float, float]] = field(default_factory=list)
    _latest: Design | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        self.neighbours, self.person = Neighbours.parse(self.neighbours), Person.parse(self.person)
        check_stream(self.stream, simulation=self.simulation)

    @property
    def unit(self) -> Unit:
        """What the fit protects."""
        return find_unit(self.person)

    @property
    def public_number(self) -> bool:
        """Whether the number of records is public: of records, or of people who count once each."""
        return self.neighbours is Neighbours.REPLACE and (self.person is None or self.person.rows is None)

    @property
    def remaining(self) -> float:
        """Share of ``mu^2`` that is not spent yet."""
        return 1.0 - math.fsum(share for _, share, _ in self._releases)

    @property
    def mu(self) -> float:
        """Gaussian differential privacy of all releases so far, rounded up."""
        return compose_mu(mu for _, _, mu in self._releases)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Cost of each step, in order."""
        mus: dict[str, list[float]] = {}
        for name, _, mu in self._releases:
            mus.setdefault(name, []).append(mu)
        costs = {name: compose_mu(spent) for name, spent in mus.items()}
        return tuple(Step(name, mu, (mu / self.privacy.mu) ** 2, len(mus[name])) for name, mu in costs.items())

    def release(
        self, name: str, query: MatrixQuery, data: Any, *, share: float, structured: bool = False
    ) -> NoisyAnswer:
        """Release `query` for a `share` of the total, with isotropic noise; if `structured`, that of `make_design`."""
        if query.neighbours is not self.neighbours:
            raise ParameterError("a fit's queries must all be for the same neighbours.")
        if query.person != self.person:
            raise ParameterError("a fit's queries must all protect the same person.")
        if not 0 < share <= self.remaining:
            raise ParameterError(f"share must be greater than 0 and at most {self.remaining:g}, got {share!r} instead.")
        design, part = self._latest, share * (1 - _ROUNDING)
        if design is None or design.query is not query or design.share != part:  # counts repeat the same query
            allocation = "uniform" if structured else isotropic()  # uniform noise is exact on the diagonal of a moment
            design = self._latest = make_design(query, self.privacy, allocation=allocation, share=part)
        self._releases.append((name, share, design.distance))
        return measure(design, data, stream=self.stream, simulation=self.simulation)
