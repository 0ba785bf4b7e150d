"""Files that are complete or absent."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Write a file under a temporary name and rename it, so that an interruption leaves no partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(text, "utf-8")
    part.replace(path)
