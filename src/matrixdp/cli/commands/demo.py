"""``matrixdp demo``: the main job from end to end."""

from __future__ import annotations

from pathlib import Path

import click

from matrixdp.cli.styles import Command


@click.command(cls=Command, example="matrixdp demo")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("matrixdp-demo"),
    show_default=True,
    help="Folder for the picture, the report and the rest; a demo that is there already is replaced.",
)
def demo(out: Path) -> None:
    """Go the whole way on patients' data that come with scikit-learn: design, release, report."""
    from matrixdp.cli.demo_command import show

    show(out)
