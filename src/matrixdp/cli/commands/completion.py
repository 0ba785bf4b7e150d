"""``matrixdp completion``: completion of commands and options in a shell."""

from __future__ import annotations

import click

from matrixdp.cli.styles import Command


@click.command(cls=Command, example='eval "$(matrixdp completion bash)"        (in ~/.bashrc)')
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in SHELL."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "matrixdp", "_MATRIXDP_COMPLETE").source())
