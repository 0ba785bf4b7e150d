"""A folder that appears at its place only when it is complete."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from matrixdp.errors import ParameterError


class OutputFolder:
    """A folder that appears at its place only when it is complete.

    Made, and so known to be writable, when the context is entered; nothing of it is left behind by an error.

    Parameters
    ----------
    place : path
        Where it will be. Anything there already is an error, unless it is an empty folder or `force` is said.
    force : bool
        Put it in the place of a folder that is there already, which stays as it is until then.
    """

    def __init__(self, place: str | os.PathLike[str], *, force: bool = False) -> None:
        self.place = Path(place).absolute()
        self.force = force
        self.path = self.place
        self._finished = False

    def __enter__(self) -> Self:
        if self.place.is_symlink() or (self.place.exists() and not self.place.is_dir()):
            raise ParameterError(f"out must be a folder, but {self.place} is something else. Choose another place.")
        if self.place.exists() and any(self.place.iterdir()) and not self.force:
            raise ParameterError(
                f"out must be a new or empty folder, but {self.place} holds files. "
                "Choose another place, or say force=True (--force) to put the new release in its stead."
            )
        try:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix=f".{self.place.name}.", dir=self.place.parent))
            self.path.chmod(0o755)
        except OSError as error:
            raise ParameterError(
                f"out cannot be written: {error.strerror or error} at {self.place.parent}. "
                "Choose another place, or make it writable."
            ) from None
        return self

    def finish(self) -> None:
        """Put the folder in its place; an old one is removed after the new one is there."""
        old = self.path.with_name(self.path.name + ".old")
        if self.place.exists():
            self.place.rename(old)
        try:
            self.path.rename(self.place)
        except OSError:
            if old.exists():
                old.rename(self.place)
            raise
        self._finished = True
        shutil.rmtree(old, ignore_errors=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._finished:
            shutil.rmtree(self.path, ignore_errors=True)
