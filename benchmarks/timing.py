"""Times of two rivals, taken turn by turn so that both see the same machine."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.sizes import size


def seconds(function: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """One call's time; with `time.process_time` that of the processor, on which other processes have less effect."""
    start = clock()
    function()
    return clock() - start


def compare(
    ours: Callable[[], Any],
    peer: Callable[[], Any],
    *,
    rounds: int = 7,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float]:
    """Median times of `ours` and `peer`, after one call of each to warm up."""
    seconds(ours), seconds(peer)
    gc.collect()
    pairs = [(seconds(ours, clock), seconds(peer, clock)) for _ in range(size(rounds, 1))]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def best(ours: Callable[[], Any], peer: Callable[[], Any], *, rounds: int = 7) -> tuple[float, float]:
    """Shortest times of `ours` and `peer`, after one call of each; for work that other processes disturb."""
    seconds(ours), seconds(peer)
    pairs = [(seconds(ours), seconds(peer)) for _ in range(size(rounds, 1))]
    return min(a for a, _ in pairs), min(b for _, b in pairs)


def row(what: str, ours: float, peer: float, wanted: str = "", *, slower: bool = False) -> dict[str, str]:
    """A line of the table; the ratio is speed against the peer, or time over the peer's where `slower` is expected."""
    ratio = ours / peer if slower else peer / ours
    kind = "of its time" if slower else "as fast"
    return {
        "what": what,
        "ours": duration(ours),
        "peer": duration(peer),
        "ratio": f"{ratio:,.3g}x {kind}",
        "note": f"wanted: {wanted}" if wanted else "",
    }


def duration(value: float) -> str:
    """Seconds in a readable unit."""
    for unit, length in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= length:
            return f"{value / length:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"
