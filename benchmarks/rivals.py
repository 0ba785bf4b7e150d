"""How long every rival takes at the paper's sizes, as ratios to an MVG release in the same run.

``ours`` and ``peer`` are seconds a draw, calibration included: of the rival, and of the MVG mechanism. A rival should
stay below a second; the paper's own took up to 2,570 (its Table of runtimes, in the notes).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.sizes import size
from benchmarks.timing import row
from matrixdp import Bounds, Identity, Privacy, SecondMoment, make_design
from matrixdp.baselines import Mechanism, registered_mechanisms
from matrixdp.design import binary

JL = "Johnson-Lindenstrauss"
# Milliseconds in the paper for MVG and for each rival, by experiment.
_PAPER = {
    "Exp. I, 6 x 248": {"MVG": 36.2, "classical Gaussian": 1.0, JL: 192.7, "Laplace": 0.4, "exponential": 627.2},
    "Exp. II, 4 x 4": {"MVG": 1.8, "Analyze Gauss": 0.4, JL: 637.4, "Laplace": 0.5, "PPCA": 2112.7},
    "Exp. III, 21 x 2126": {"MVG": 3.2e3, "classical Gaussian": 10.0, JL: 2.57e6, "Laplace": 8.0, "exponential": 2.0e6},
}


def run(seconds: float = size(0.2, 0.001)) -> list[dict[str, Any]]:
    """One row a rival and experiment; each is timed for about `seconds`, and the best draw counts."""
    rows = []
    for name, query, important in _experiments():
        data = np.random.default_rng(0).uniform(query.bounds.lower, query.bounds.upper, (query.records, important[1]))
        privacy = Privacy(1.0, 1 / query.records)
        allocation = binary(important[0], 0.95)
        peer = _time(lambda: make_design(query, privacy, allocation=allocation).release(data), seconds)  # noqa: B023
        for rival in _rivals(query):
            ours = _time(lambda: rival.function(query, privacy, data), seconds)  # noqa: B023
            paper = _PAPER[name]
            note = (
                f"paper: {paper[rival.name]:g} ms against {paper['MVG']:g} of MVG"
                if rival.name in paper
                else "not timed there"
            )
            rows.append({**row(f"{rival.name}, {name}, against MVG", ours, peer, slower=True), "note": note})
    return rows


def _experiments() -> list[tuple[str, Identity | SecondMoment, tuple[int, int]]]:
    """Name, query, and how many of how many features are important."""
    return [
        ("Exp. I, 6 x 248", Identity(Bounds([0] * 6, [1] * 6), 248), (2, 6)),
        ("Exp. II, 4 x 4", SecondMoment(Bounds([-1] * 4, [1] * 4), 2021), (2, 4)),
        ("Exp. III, 21 x 2126", Identity(Bounds([0] * 21, [1] * 21), 2126), (3, 21)),
    ]


def _rivals(query: Identity | SecondMoment) -> list[Mechanism]:
    """Built-in mechanisms that release the records, or the second moment and its components."""
    tasks = {"records"} if isinstance(query, Identity) else {"second-moment", "components"}
    return [rival for rival in registered_mechanisms() if rival.builtin and tasks & set(rival.tasks)]


def _time(call: Callable[[], Any], seconds: float) -> float:
    """Best time of one call, after one that warms up tables and caches."""
    call()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


if __name__ == "__main__":
    for line in run():
        print(f"{line['what']:56} {line['ours']:>10}  {line['ratio']:<22} ({line['note']})")
