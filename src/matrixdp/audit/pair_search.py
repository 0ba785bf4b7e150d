"""The search of an attack: all pairs of a family of data sets, then variations of the worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.audit.families import Family
from matrixdp.design import Design
from matrixdp.domain import Bounds
from matrixdp.mechanisms.mechanism import prepare, round_answer

_ROUNDS = 6  # of local search from the worst pair of a family


@dataclass(eq=False)
class PairSearch:
    """The worst pair of neighbours so far, and counts.

    Attributes
    ----------
    design : Design
    worst : tuple or None
        Distance and the two data sets.
    pairs, refused : int
        Pairs that were compared, and data sets for which the query raised an error.
    refusal : str
        The first such error.
    """

    design: Design
    worst: tuple[float, Any, Any] | None = None
    pairs: int = 0
    refused: int = 0
    refusal: str = ""
    _best: float = field(default=-1.0, init=False)

    def run(self, family: Family, rng: np.random.Generator) -> None:
        """Compare the records of a family, then vary the worst pair."""
        base = None if family.clique else self.integers(family.build(None))
        if base is None and not family.clique:
            return
        self._best = -1.0
        pair = self.compare(family, family.records, base)
        if family.bounds is None or pair is None:
            return
        scale = 0.5
        for _ in range(_ROUNDS):
            before = self._best
            near = [*pair, *self.vertices(family, pair, base)]
            near += [move for record in pair for move in _moves(record, family.bounds, rng, scale)]
            pair = self.compare(family, near, base) or pair
            if self._best <= before * (1 + 1e-9):
                scale /= 8
                if scale < 0.01:
                    return

    def compare(self, family: Family, records: Sequence[Any], base: NDArray[np.int64] | None) -> tuple[Any, ...] | None:
        """The records of the pair that is farthest apart; records that raise an error are left out."""
        kept, answers = [], []
        for record in records:
            answer = self.integers(family.build(record))
            if answer is not None:
                kept.append(record)
                answers.append(answer)
        if len(kept) < 1 + (base is None):
            return None
        if base is not None:
            distances = self.lengths(np.array(answers) - base)
            i = int(distances.argmax())
            self.keep(float(distances[i]), len(kept), family, kept[i], None)
            return (kept[i],)
        table = np.array(answers)
        rows = [self.lengths(table[i + 1 :] - table[i]) for i in range(len(table) - 1)]
        i = int(np.argmax([row.max() for row in rows]))
        j = i + 1 + int(rows[i].argmax())
        self.keep(float(rows[i].max()), len(kept) * (len(kept) - 1) // 2, family, kept[i], kept[j])
        return kept[i], kept[j]

    def vertices(self, family: Family, pair: tuple[Any, ...], base: NDArray[np.int64] | None) -> list[Any]:
        """For each record of a pair, the corner and the sphere's point to which the gradient of the distance points."""
        assert family.bounds is not None
        middle, half = family.bounds.midpoint, family.bounds.halfwidths
        own = [self.integers(family.build(record)) for record in pair]
        found = []
        for record, answer, other in zip(pair, own, own[::-1] if base is None else [base], strict=True):
            if answer is None or other is None:
                continue
            inward = np.where(record > middle, -1.0, 1.0) * half / 64
            nearby = [self.integers(family.build(record + step)) for step in np.diag(inward)]
            if any(step is None for step in nearby):
                continue
            towards = (answer - other).astype(np.float64)
            slopes = np.array(
                [float(towards @ (step - answer).astype(np.float64)) for step in nearby if step is not None]
            )
            slopes *= np.sign(inward)
            found.append(middle + half * np.where(slopes >= 0, 1.0, -1.0))
            length = float(np.linalg.norm(slopes * half))
            if length > 0:
                found.append(middle + slopes * half / length * float(np.linalg.norm(half)))
        return found

    def integers(self, data: Any) -> NDArray[np.int64] | None:
        """The answer in steps of the grid, of shape (entries,); None if the query raises an error."""
        try:
            with np.errstate(all="ignore"):
                return round_answer(self.design, prepare(self.design, data, clip=True, missing="error")).ravel()
        except Exception as error:  # of a function of the user's own, any
            self.refused += 1
            self.refusal = self.refusal or f"{type(error).__name__}: {error}"
            return None

    def lengths(self, changes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Norm of each row, in standard deviations."""
        return np.asarray(np.linalg.norm(changes * 2.0**-self.design.grid.bits, axis=1))

    def keep(self, distance: float, pairs: int, family: Family, first: Any, second: Any) -> None:
        """Count pairs, and keep the worst of them if it is the worst so far."""
        self.pairs += pairs
        self._best = max(self._best, distance)
        if self.worst is None or distance > self.worst[0]:
            self.worst = distance, family.build(first), family.build(second)

    def worst_pair(self) -> tuple[Any, Any, float]:
        """The two data sets and their distance."""
        assert self.worst is not None
        distance, data, neighbour = self.worst
        return data, neighbour, distance


def _moves(record: NDArray[np.float64], bounds: Bounds, rng: np.random.Generator, scale: float) -> list[Any]:
    """Records near one: one coordinate at its bounds or midpoint, the reflection, and random steps."""
    middle, half, m = bounds.midpoint, bounds.halfwidths, bounds.size
    found = [2 * middle - np.clip(record, bounds.lower, bounds.upper)]
    for j in range(m) if m <= 6 else rng.choice(m, 6, replace=False):
        for value in (bounds.lower[j], middle[j], bounds.upper[j]):
            if value != record[j]:
                moved = record.copy()
                moved[j] = value
                found.append(moved)
    inside = np.clip(record, bounds.lower, bounds.upper)
    return [*found, *(inside + scale * half * rng.standard_normal((4, m)) * (rng.random((4, m)) < 0.6))]
