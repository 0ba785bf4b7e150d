"""Help pages that end with an example, and list commands in the order of use."""

from __future__ import annotations

from typing import Any

import click


class Command(click.Command):
    """A command whose help ends with an example."""

    def __init__(self, *arguments: Any, example: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.example = example

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example."""
        _write_example(formatter, "Example", self.example)


class Group(click.Group):
    """Commands in the order in which they were added, with an example of how they are used together."""

    command_class = Command

    def __init__(self, *arguments: Any, example: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.example = example

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands in the order in which they were added."""
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example and the epilog."""
        if self.example:
            _write_example(formatter, "Typical workflow", self.example)
        super().format_epilog(ctx, formatter)


def _write_example(formatter: click.HelpFormatter, title: str, example: str) -> None:
    """Write lines as they are, where click would wrap them."""
    with formatter.section(title):
        for line in example.splitlines():
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
