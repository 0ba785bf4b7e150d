"""Releases in the background, one request after another, also those that a stopped server left unfinished."""

from __future__ import annotations

from matrixdp.studio.settings import Settings
from matrixdp.studio.state import State


class Runner:
    """Takes approved requests from the studio's file and releases them."""

    def __init__(self, settings: Settings, state: State) -> None:
        self._settings, self._state = settings, state

    def start(self) -> None:
        """Resume what a stopped server left, and wait for more."""

    def wake(self) -> None:
        """Look for approved requests."""

    def stop(self) -> None:
        """Start no further release; one that is running finishes by itself."""
