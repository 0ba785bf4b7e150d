"""The list of broken variants, and what most of them are made with."""

from __future__ import annotations

from collections.abc import Callable

from matrixdp.domain import Bounds
from matrixdp.privacy import Privacy

BOX = Bounds([-1, -1], [1, 1])
PRIVACY = Privacy(1.0, 1e-6)

BROKEN: dict[str, Callable[[], bool]] = {}  # from a mistake to whether the audit catches it


def broken(name: str) -> Callable[[Callable[[], bool]], Callable[[], bool]]:
    """Add a function to the list that makes the mistake `name`, and says whether the audit catches it."""

    def add(function: Callable[[], bool]) -> Callable[[], bool]:
        BROKEN[name] = function
        return function

    return add
