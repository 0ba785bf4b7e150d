"""Attacks on a design: neighbouring data sets whose answers are as far apart as possible, before noise."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.audit.domains import Domain, Family, draw_box, draw_generated, find_domain
from matrixdp.checks import check_integer
from matrixdp.design import Design
from matrixdp.display import short_repr
from matrixdp.domain import Bounds
from matrixdp.errors import ParameterError
from matrixdp.gdp import gdp_epsilon
from matrixdp.mechanisms.mechanism import prepare, round_answer
from matrixdp.types import Floats

_CLIMB_ROUNDS = 60  # of eight candidates each
SLACK = 1e-12  # relative; rounding of the measured distance itself
_COUNT = 4  # records of a data set where the query does not say how many
_ROUNDS = 6  # of local search from the worst pair of a family


def worst_record_pair(
    distance: Callable[[Floats, Floats], Any],
    halfwidths: Floats,
    radius: float | None,
    rng: np.random.Generator,
    *,
    low: Floats | None = None,
    starts: int = 12,
) -> float:
    """Largest ``distance(x, y)`` found over pairs of records from a box, and a ball if `radius` is given.

    A random search starts from corners, the midpoint and random points. `distance` takes k pairs at once, from two
    arrays of shape (k, m) to shape (k,); `low` has the lower ends of the box, ``-halfwidths`` by default.

    Examples
    --------
    >>> apart = lambda x, y: np.linalg.norm(x - y, axis=1)
    >>> round(worst_record_pair(apart, np.ones(2), None, np.random.default_rng(0), starts=3), 3)
    2.828
    """
    low = -halfwidths if low is None else low

    def project(pairs: Floats) -> Floats:
        inside = np.clip(pairs, low, halfwidths)
        norms = np.linalg.norm(inside, axis=-1, keepdims=True)
        return inside if radius is None else inside * (radius / np.maximum(norms, radius))

    shape = (starts, 2, halfwidths.size)
    corners = np.where(rng.random(shape) < 0.5, low, halfwidths)
    corners[::3, 1] = 0.0
    corners[2::3] = rng.uniform(low, halfwidths, corners[2::3].shape)
    best = project(corners)
    values, scales = np.asarray(distance(best[:, 0], best[:, 1])), np.ones((starts, 1, 1))
    steps = np.random.default_rng(0)
    for _ in range(_CLIMB_ROUNDS):
        improved = np.zeros(starts, bool)
        for _ in range(8):
            moved = steps.standard_normal(shape) * (steps.random(shape) < 0.5)
            candidates = project(best + scales * moved)
            found = np.asarray(distance(candidates[:, 0], candidates[:, 1]))
            better = found > values
            best[better], values[better] = candidates[better], found[better]
            improved |= better
        scales *= np.where(improved, 1.3, 0.7)[:, None, None]
    return float(values.max())


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
        """True if the pair is farther apart than the design claims for any pair, so that its claim is false."""
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
    domain : callable, optional
        ``domain(rng)`` returns a `Family` of neighbouring data sets, in place of the above.
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
    """
    if not isinstance(design, Design):
        raise ParameterError(f"design must be a Design, got {type(design).__name__} instead.")
    check_integer(starts, "starts", at_least=1)
    if domain is None and generate is None and bounds is None:
        domain = find_domain(design.query)
    elif domain is None:
        count = _COUNT if records is None else check_integer(records, "records", at_least=1)
        drawn = partial(draw_box, bounds) if generate is None else partial(draw_generated, generate)  # type: ignore[arg-type]
        domain = partial(drawn, count, design.neighbours)
    rng, search, end = np.random.default_rng(seed), _PairSearch(design), time.monotonic() + seconds
    for _ in range(starts):
        search.run(domain(rng), rng)
        if time.monotonic() > end:
            break
    if search.worst is None:
        raise ParameterError(f"no pair of data sets could be evaluated. The first error was {search.refusal}")
    return Attack(design, *search.worst, search.pairs, search.refused, search.refusal)


def distance_between(design: Design, data: Any, neighbour: Any) -> float:
    """Distance of the answers of two data sets, in standard deviations of the noise, from exact integers.

    Parameters
    ----------
    design : Design
    data, neighbour
        Data sets that the query takes.

    Privacy
    -------
    Private for private data: an audit's data are made up.
    """
    first, second = (_round(design, source).tolist() for source in (data, neighbour))
    squares = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
    return math.sqrt(squares) * 2.0**-design.grid.bits


def _round(design: Design, data: Any) -> NDArray[np.int64]:
    return round_answer(design, prepare(design, data, clip=True, missing="error")).ravel()


_Known = tuple[Any, NDArray[np.int64]]  # a record, None for the data set without it, and the answer of its data set


@dataclass(eq=False)
class _PairSearch:
    """The worst pair of neighbours so far with its distance, and the counts of an `Attack`."""

    design: Design
    worst: tuple[Any, Any, float] | None = None
    pairs: int = 0
    refused: int = 0
    refusal: str = ""

    def run(self, family: Family, rng: np.random.Generator) -> None:
        """Compare the records of a family, then vary the worst pair."""
        known = self.evaluate(family, family.records if family.clique else [None, *family.records])
        if len(known) < 2 or not (family.clique or known[0][0] is None):
            return
        (pair, best), scale = self.compare(family, known), 0.5
        for _ in range(0 if family.bounds is None else _ROUNDS):
            near = self.vertices(family, pair)
            near += [move for record, _ in pair for move in _moves(record, family.bounds, rng, scale)]
            before, (pair, best) = best, self.compare(family, [*pair, *self.evaluate(family, near)])
            if best <= before * (1 + 1e-9):
                scale /= 8
                if scale < 0.01:
                    return

    def evaluate(self, family: Family, records: Sequence[Any]) -> list[_Known]:
        """Records with their answers in steps of the grid; those for which the query raises an error are left out."""
        found = []
        for record in records:
            try:
                with np.errstate(all="ignore"):
                    found.append((record, _round(self.design, family.build(record))))
            except Exception as error:  # of a function of the user's own, any
                self.refused += 1
                self.refusal = self.refusal or f"{type(error).__name__}: {error}"
        return found

    def compare(self, family: Family, known: Sequence[_Known]) -> tuple[tuple[_Known, _Known], float]:
        """The two that are farthest apart, and their distance: any two, or the first and another if no clique."""
        table, unit = np.array([answer for _, answer in known]), 2.0**-self.design.grid.bits
        firsts = range(len(table) - 1 if family.clique else 1)
        rows = [np.linalg.norm((table[i + 1 :] - table[i]) * unit, axis=1) for i in firsts]
        i = int(np.argmax([row.max() for row in rows]))
        pair, distance = (known[i], known[i + 1 + int(rows[i].argmax())]), float(rows[i].max())
        self.pairs += sum(map(len, rows))
        if self.worst is None or distance > self.worst[2]:
            self.worst = family.build(pair[0][0]), family.build(pair[1][0]), distance
        return pair, distance

    def vertices(self, family: Family, pair: tuple[_Known, _Known]) -> list[Any]:
        """For each record of a pair, the corner and the sphere's point to which the gradient of the distance points."""
        assert family.bounds is not None
        middle, half, found = family.bounds.midpoint, family.bounds.halfwidths, []
        for (record, answer), (_, other) in (pair, pair[::-1]):
            if record is None:
                continue
            inward = np.where(record > middle, -1.0, 1.0) * half / 64
            nearby = self.evaluate(family, [record + step for step in np.diag(inward)])
            if len(nearby) < half.size:
                continue
            changes = np.array([near for _, near in nearby]) - answer
            slopes = changes.astype(np.float64) @ (answer - other).astype(np.float64) * np.sign(inward)
            found.append(middle + half * np.where(slopes >= 0, 1.0, -1.0))
            length = float(np.linalg.norm(slopes * half))
            if length > 0:
                found.append(middle + slopes * half / length * float(np.linalg.norm(half)))
        return found


def _moves(record: NDArray[np.float64] | None, bounds: Any, rng: np.random.Generator, scale: float) -> list[Any]:
    """Records near one: one coordinate at its bounds or midpoint, the reflection, and random steps; none for None."""
    if record is None:
        return []
    middle, half, m = bounds.midpoint, bounds.halfwidths, bounds.size
    inside = np.clip(record, bounds.lower, bounds.upper)
    found = [2 * middle - inside]
    for j in range(m) if m <= 6 else rng.choice(m, 6, replace=False):
        for value in (bounds.lower[j], middle[j], bounds.upper[j]):
            if value != record[j]:
                moved = record.copy()
                moved[j] = value
                found.append(moved)
    return [*found, *(inside + scale * half * rng.standard_normal((4, m)) * (rng.random((4, m)) < 0.6))]
