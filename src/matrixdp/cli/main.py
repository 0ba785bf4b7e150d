"""The commands, put together."""

from __future__ import annotations

import sys

import click

from matrixdp.cli.demo import demo
from matrixdp.cli.exits import guarded
from matrixdp.version import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="matrixdp")
@click.option("--debug", is_flag=True, help="Show a traceback when something goes wrong.")
def cli(debug: bool) -> None:
    """Differential privacy for matrices: from a table to a private matrix."""


cli.add_command(demo)


def run(arguments: list[str] | None = None) -> int:
    """Run a command line and give its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    return guarded(lambda: cli.main(words, prog_name="matrixdp", standalone_mode=False), debug=debug)
