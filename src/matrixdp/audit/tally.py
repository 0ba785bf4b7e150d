"""Counts of many audits of one kind."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Tally:
    """What was audited of one kind.

    Attributes
    ----------
    audits : int
        Designs that were attacked, or fits that were replayed.
    pairs : int
        Pairs of neighbouring data sets that were compared.
    worst : float
        Largest ratio of a distance to its claim.
    broken : list of int
        Seeds of the audits that exceeded their claim.
    """

    audits: int = 0
    pairs: int = 0
    worst: float = 0.0
    broken: list[int] = field(default_factory=list)

    def add(self, pairs: int, ratio: float, *, broken: bool, seed: int) -> None:
        """Count one audit."""
        self.audits += 1
        self.pairs += pairs
        self.worst = max(self.worst, ratio)
        if broken:
            self.broken.append(seed)
