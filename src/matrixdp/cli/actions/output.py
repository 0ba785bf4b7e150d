"""JSON and text files that commands write."""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import click

from matrixdp.errors import ParameterError


def echo_json(content: Any) -> None:
    """Print `content` as JSON, with null for NaN and infinities."""
    click.echo(json.dumps(replace_nonfinite(content), indent=2, allow_nan=False))


def replace_nonfinite(content: Any) -> Any:
    """JSON content with None for NaN and infinities."""
    if isinstance(content, dict):
        return {name: replace_nonfinite(value) for name, value in content.items()}
    if isinstance(content, list):
        return [replace_nonfinite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def write_file(path: Path, text: str, *, option: str, overwrite: bool = True) -> None:
    """Write a text file completely or not at all; `option` is the one that named it, for error messages."""
    if not overwrite and path.exists():
        raise ParameterError(f"--{option}: {path} already exists. Choose another name, or add --force.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise ParameterError(f"--{option}: {path} cannot be written: {error.strerror or error}.") from None
