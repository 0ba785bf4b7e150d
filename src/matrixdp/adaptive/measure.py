"""Measurements of records for shares of a budget: of private ones by releases, of simulated ones in arrays."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.coordinates import LEVELS, Coordinates
from matrixdp.adaptive.noisy_moment import NoisyMoment, ball_noise, box_noise, read_ball, read_box
from matrixdp.adaptive.queries import ball_query, box_query, count_query, excess_query
from matrixdp.adaptive.records import PrivateRecords
from matrixdp.design import isotropic, make_design
from matrixdp.domain.person import Person
from matrixdp.privacy import Neighbours
from matrixdp.types import Floats


class Measurements(ABC):
    """Noisy answers about records in [-1, 1]^d, or in other public coordinates; all that a strategy of a fit sees.

    `size` is d, `public` the public number of records, which `public_number` says is their number, not only about it.
    `mu` is that of the whole fit for one row that counts: where k rows of a person count, the noise is k times that of
    one record. `levels` is half the number of grid steps of the records.
    """

    def __init__(self, size: int, public: int, mu: float, *, public_number: bool, levels: int) -> None:
        self.size, self.public, self.mu = size, public, mu
        self.public_number, self.levels = public_number, levels

    @property
    @abstractmethod
    def remaining(self) -> float:
        """Share of the budget, as ``mu^2``, that is not spent yet."""

    @property
    def reach(self) -> float:
        """The public number of records times the mu that remains."""
        return self.public * self.mu * math.sqrt(self.remaining)

    @abstractmethod
    def transform(self, coordinates: Coordinates) -> Measurements:
        """Measurements of the same records in public coordinates, from the same budget."""

    @abstractmethod
    def counter(self, name: str, cuts: Sequence[float], share: float) -> Callable[[float], float]:
        """Function that returns the noisy number of records longer than one of the cut-offs; each call spends `share`.

        The standard deviation of the noise is ``1/(mu sqrt(share))``.
        """

    @abstractmethod
    def excess(self, name: str, radius: float, limit: float, share: float) -> tuple[float, float]:
        """Noisy mean of ``min(max(l^2 - radius^2, 0), limit)`` over lengths l, and its standard deviation."""

    @abstractmethod
    def ball(self, name: str, radius: float, ratio: float, share: float) -> NoisyMoment:
        """Noisy moment of records clipped to a ball; `ratio` as for `ball_query`."""

    @abstractmethod
    def box(self, name: str, ratio: float, share: float, last: int = 0) -> NoisyMoment:
        """Noisy moment of records in their box, none of them clipped, or of their `last` features; see `box_query`."""


class PrivateMeasurements(Measurements):
    """Measurements of private records.

    Privacy
    -------
    Reads the records through `budget.release` alone: every answer has its share of the budget, and whatever is chosen
    in between is a function of earlier noisy answers.
    """

    def __init__(self, records: PrivateRecords, budget: FitBudget, public: int) -> None:
        size, mu = records.shape[1], budget.effective_mu
        super().__init__(size, public, mu, public_number=budget.public_number, levels=records.levels)
        self.records, self.budget = records, budget
        self._kind = public, budget.neighbours, budget.person

    @property
    def remaining(self) -> float:
        """Share of the budget that is not spent yet."""
        return self.budget.remaining

    def transform(self, coordinates: Coordinates) -> PrivateMeasurements:
        """The same records in public coordinates."""
        return PrivateMeasurements(self.records.transform(coordinates), self.budget, self.public)

    def counter(self, name: str, cuts: Sequence[float], share: float) -> Callable[[float], float]:
        """Noisy counts, from one pass over records outside of memory."""
        query, above = count_query(*self._kind), self.records.counter(cuts)
        return lambda cut: float(self.budget.release(name, query, above(cut), share=share).matrix[0, 0])

    def excess(self, name: str, radius: float, limit: float, share: float) -> tuple[float, float]:
        """Noisy mean excess and its standard deviation."""
        query = excess_query(limit, *self._kind)
        released = self.budget.release(name, query, self.records.excess(radius, limit), share=share)
        return float(released.matrix[0, 0]), float(released.std[0, 0])

    def ball(self, name: str, radius: float, ratio: float, share: float) -> NoisyMoment:
        """Noisy moment in a ball; where the number of records is public, the trace is measured twice at no cost."""
        public, neighbours, person = self._kind
        query = ball_query(self.size, radius, public, neighbours, ratio, person)
        return read_ball(self.budget.release(name, query, self.records, share=share), public)

    def box(self, name: str, ratio: float, share: float, last: int = 0) -> NoisyMoment:
        """Noisy moment of the box, with the noise of "Squares beside a moment" in docs/mathematics.md."""
        public, neighbours, person = self._kind
        query = box_query(last or self.size, public, neighbours, ratio, person)
        return read_box(self.budget.release(name, query, self.records, share=share, structured=True), public)


def check_designs(budget: FitBudget, size: int, public: int) -> None:
    """Raise the errors that designs of a fit can have, before it is charged: likeliest with the whole budget."""
    kind = budget.neighbours, budget.person
    for query in (count_query(public, *kind), ball_query(size, 1.0, public, kind[0], person=kind[1])):
        make_design(query, budget.privacy, allocation=isotropic())
    make_design(box_query(size, public, kind[0], 1 / 8, kind[1]), budget.privacy, allocation="uniform")


@dataclass(frozen=True, eq=False)
class SimulatedRecords:
    """Public records in [-1, 1]^d, of shape (n, d), with their moment of (1, x) and their lengths."""

    array: Floats
    second: Floats
    lengths: Floats

    @classmethod
    def of(cls, array: Floats) -> SimulatedRecords:
        """Records with what every fit of them needs."""
        mean = array.mean(axis=0)
        second = np.block([[np.ones((1, 1)), mean[None]], [mean[:, None], array.T @ array / len(array)]])
        return cls(array, second, np.sqrt(np.einsum("ij,ij->i", array, array)))

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """Mean and covariance, over n, of shape (d,) and (d, d)."""
        mean = self.second[0, 1:]
        return mean, self.second[1:, 1:] - np.multiply.outer(mean, mean)


class SimulatedMeasurements(Measurements):
    """Measurements of simulated records, with noise from a public generator: the same laws, in plain arrays.

    With fewer records than the public number, each counts as several: the noise is that of the public number.
    """

    def __init__(
        self,
        records: SimulatedRecords,
        public: int,
        mu: float,
        neighbours: Neighbours,
        rng: np.random.Generator,
        person: Person | None = None,
    ) -> None:
        known = neighbours is Neighbours.REPLACE and (person is None or person.rows is None)
        super().__init__(records.array.shape[1], public, mu, public_number=known, levels=LEVELS)
        self.records, self.neighbours, self.rng = records, neighbours, rng
        self.lengths, self.coordinates = records.lengths, Coordinates.of(np.eye(self.size), np.zeros(self.size))
        self._spent: list[float] = []

    @property
    def remaining(self) -> float:
        """Share of the budget that is not spent yet."""
        return 1.0 - math.fsum(self._spent)

    def _spend(self, share: float) -> float:
        """The public number of records times the mu of a share, which is spent."""
        self._spent.append(share)
        return self.public * self.mu * math.sqrt(share)

    def transform(self, coordinates: Coordinates) -> SimulatedMeasurements:
        """The same records in public coordinates."""
        placed, moved = (self.records.array - coordinates.centre) @ coordinates.matrix.T, copy.copy(self)
        moved.coordinates, moved.lengths = coordinates, np.sqrt(np.einsum("ij,ij->i", placed, placed))
        return moved

    def counter(self, name: str, cuts: Sequence[float], share: float) -> Callable[[float], float]:
        """Noisy counts."""
        times = self.public / len(self.lengths)

        def count(cut: float) -> float:
            std = self.public / self._spend(share)
            return times * float(np.count_nonzero(self.lengths > cut)) + std * float(self.rng.standard_normal())

        return count

    def excess(self, name: str, radius: float, limit: float, share: float) -> tuple[float, float]:
        """Noisy mean excess and its standard deviation."""
        std = limit / self._spend(share)
        exact = float(np.clip(self.lengths**2 - radius**2, 0.0, limit).mean())
        return exact + std * float(self.rng.standard_normal()), std

    def ball(self, name: str, radius: float, ratio: float, share: float) -> NoisyMoment:
        """Noisy moment in a ball: of all records, less what clipping takes from the long ones."""
        outside, matrix, centre = self.lengths > radius, self.coordinates.matrix, self.coordinates.centre
        turn = np.eye(self.size + 1)
        turn[1:, 1:], turn[1:, 0] = matrix, -matrix @ centre
        long, lost = (self.records.array[outside] - centre) @ matrix.T, 1 - radius / self.lengths[outside]
        exact = turn @ self.records.second @ turn.T
        exact[1:, 1:] -= (long * (lost * (2 - lost))[:, None]).T @ long / len(self.lengths)
        exact[0, 1:] -= lost @ long / len(self.lengths)
        exact[1:, 0] = exact[0, 1:]
        law = ball_noise(exact, radius, ratio, self._spend(share), self.neighbours, traced=self.public_number)
        return law.add_noise(self.rng, self.public, public_number=self.public_number)

    def box(self, name: str, ratio: float, share: float, last: int = 0) -> NoisyMoment:
        """Noisy moment of the box."""
        kept = np.r_[0, self.size + 1 - (last or self.size) : self.size + 1]
        law = box_noise(self.records.second[np.ix_(kept, kept)], ratio, self._spend(share), self.neighbours)
        return law.add_noise(self.rng, self.public, public_number=self.public_number)
