"""``matrixdp reproduce``: the paper's experiments."""

from __future__ import annotations

from pathlib import Path

import click

from matrixdp.cli.options import PATH
from matrixdp.cli.styles import Command


def _check_trials(_context: click.Context, _parameter: click.Parameter, value: int) -> int:
    if value < 2:
        raise click.BadParameter(f"{value} is too few; an error bar needs at least 2 trials.")
    return value


@click.command(cls=Command, example="matrixdp reproduce --trials 20 --out paper/")
@click.argument("parts", nargs=-1)
@click.option(
    "--trials",
    type=int,
    callback=_check_trials,
    default=100,
    show_default=True,
    help="Trials of each row, at least 2: an error bar needs two.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the simulated noise.")
@click.option("--out", type=PATH, default=Path("matrixdp-paper"), show_default=True, help="Folder for the results.")
@click.option("--plugin", metavar="MODULE", multiple=True, help="Module that registers mechanisms. May be repeated.")
def reproduce(parts: tuple[str, ...], trials: int, seed: int, out: Path, plugin: tuple[str, ...]) -> None:
    """Repeat the paper's experiments: all, or the PARTS named."""
    try:
        from importlib import import_module

        command = import_module("matrixdp.paper.command")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("matrixdp.paper"):
            raise
        raise click.ClickException("this installation has no matrixdp.paper; install a complete release.") from None
    try:
        page = command.reproduce(list(parts), trials=trials, seed=seed, out=out, plugins=list(plugin))
    except KeyboardInterrupt:
        click.echo("\nFinished trials are stored: the same command resumes the run.", err=True)
        raise
    click.echo(f"Report: {page.resolve()}")
