"""Times of two rivals, taken turn by turn so that both see the same machine."""

from __future__ import annotations

import gc
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matrixdp
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


def show(rows: Iterable[dict[str, Any]], width: int) -> None:
    """Print lines of the table as they come."""
    for one in rows:
        ours, peer, ratio = (
            f"{x:,.4g}" if isinstance(x, float) else str(x) for x in (one["ours"], one["peer"], one["ratio"])
        )
        print(f"{one['what']!s:<{width}}  {ours:>10}  {peer:>10}  {ratio:<22}  {one['note']}".rstrip(), flush=True)


def peak_memory(program: str, *arguments: object) -> float:
    """Megabytes that a Python program says it needed, in kilobytes, when run by itself."""
    places = [str(Path(matrixdp.__file__).parents[1]), os.getcwd()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(re.findall(r"\d+", done.stdout)[0]) / 1024


def duration(value: float) -> str:
    """Seconds in a readable unit."""
    for unit, length in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= length:
            return f"{value / length:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"
