"""Files and JSON that commands put out."""

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
    """`content` as JSON on stdout."""
    click.echo(json.dumps(_finite(content), indent=2, allow_nan=False))


def _finite(content: Any) -> Any:
    """`content` with None for numbers that JSON does not have."""
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def write_file(path: Path, text: str, *, option: str, keep: bool = False) -> None:
    """Write a text file at once or not at all; with `keep`, one that is there already is an error."""
    if keep and path.exists():
        raise ParameterError(f"--{option}: {path} exists already. Choose another name, or say --force.")
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
