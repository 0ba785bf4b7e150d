"""``matrixdp demo``: the main job from end to end."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("matrixdp-demo"),
    show_default=True,
    help="Folder for the picture, the report and the rest; a demo that is there already is replaced.",
)
def demo(out: Path) -> None:
    r"""Design and release a private covariance of data that come with scikit-learn.

    \b
    Example:
      matrixdp demo
    """
    from matrixdp.cli.showcase import show

    show(out)
