"""``matrixdp bench``: the benchmarks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from matrixdp.cli.styles import Command


@click.command(cls=Command, example="matrixdp bench cli")
@click.argument("names", nargs=-1)
def bench(names: tuple[str, ...]) -> None:
    """Run all benchmarks, or those with the given NAMES.

    They are in the repository, not in the installed package.
    """
    place = next((folder for folder in _find_repositories() if (folder / "benchmarks" / "__main__.py").is_file()), None)
    if place is None:
        raise click.ClickException(
            "the benchmarks are in the repository, not in the installed package. Run this command from a clone of it."
        )
    finished = subprocess.run([sys.executable, "-m", "benchmarks", *names], cwd=place, check=False)  # noqa: S603
    raise click.exceptions.Exit(finished.returncode)


def _find_repositories() -> list[Path]:
    """Folders that may be the repository: the current one, and that of an editable installation."""
    return [Path.cwd(), Path(__file__).resolve().parents[4]]
