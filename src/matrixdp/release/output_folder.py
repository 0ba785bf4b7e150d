"""An output folder that appears only when it is complete."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from matrixdp.errors import ParameterError


class OutputFolder:
    """Context manager for an output folder that appears only when it is complete.

    On entry, a temporary folder `path` is created beside the final one, which shows that it can be written. `finish`
    renames it to its final name. After an error it is removed.

    Parameters
    ----------
    place : path
        The final path. Raises a `ParameterError` if it exists, unless it is an empty folder or `force` is given.
    force : bool
        Replace an existing folder, which is kept until `finish`.
    """

    def __init__(self, place: str | os.PathLike[str], *, force: bool = False) -> None:
        self.place = Path(place).absolute()
        self.force = force
        self.path = self.place
        self._finished = False

    def __enter__(self) -> Self:
        if self.place.is_symlink() or (self.place.exists() and not self.place.is_dir()):
            raise ParameterError(f"out must be a folder, but {self.place} is not. Choose another path.")
        if self.place.exists() and any(self.place.iterdir()) and not self.force:
            raise ParameterError(
                f"out must be a new or empty folder, but {self.place} contains files. "
                "Choose another path, or use force=True (--force) to replace it."
            )
        try:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix=f".{self.place.name}.", dir=self.place.parent))
            self.path.chmod(0o755)
        except OSError as error:
            raise ParameterError(
                f"out cannot be written: {error.strerror or error} at {self.place.parent}. "
                "Choose another path, or make it writable."
            ) from None
        return self

    def finish(self) -> None:
        """Move the folder to its final path; an old folder is removed afterwards."""
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
