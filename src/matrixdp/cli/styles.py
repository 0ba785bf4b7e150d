"""Commands whose help ends with an example, listed in the order in which one needs them."""

from __future__ import annotations

from typing import Any

import click


class Command(click.Command):
    """A command with an example."""

    def __init__(self, *arguments: Any, example: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.example = example

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The example, line by line as it is."""
        with formatter.section("Example"):
            for line in self.example.splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class Group(click.Group):
    """Commands in the order in which they were added."""

    command_class = Command

    def __init__(self, *arguments: Any, example: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.example = example

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In their order."""
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The way through, and what exit codes mean."""
        if self.example:
            with formatter.section("The way through"):
                for line in self.example.splitlines():
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
        super().format_epilog(ctx, formatter)
