"""How many wrong tokens an address may send in a minute."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock

_WINDOW = 60.0  # seconds
_MOST_ADDRESSES = 10_000  # that are remembered; the oldest is forgotten first


class WrongTokens:
    """Counts wrong tokens by the address that sent them.

    A right token is always accepted: it cannot be guessed, and nobody can lock others out by sending wrong ones.

    Parameters
    ----------
    most : int
        Wrong tokens in a minute; later ones are answered with 429.
    clock : callable
        Returns seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = Lock()

    def add(self, address: str) -> bool:
        """Count a wrong token; returns whether there were too many."""
        present = self._clock()
        with self._lock:
            times = self._times.setdefault(address, deque(maxlen=self._most + 1))
            self._times.move_to_end(address)
            while times and times[0] <= present - _WINDOW:
                times.popleft()
            times.append(present)
            while len(self._times) > _MOST_ADDRESSES:
                self._times.popitem(last=False)
            return len(times) > self._most
