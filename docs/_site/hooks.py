"""What the build adds to the Markdown files: pictures made by the library, and the help of every command."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from matrixdp.cli.main import cli

sys.path.insert(0, str(Path(__file__).parent))
from gallery import make_pictures

COMMANDS = "<!-- the help of every command -->"
LOADED = re.compile(
    r"""<(?:script|img|iframe|link rel="(?:stylesheet|icon|preconnect)")\b[^>]*(?:src|href)="(https?:[^"]+)"""
)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pictures of the gallery as files in `generated/`."""
    for name, content in make_pictures():
        files.append(File.generated(config, f"generated/{name}", content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the help of every command in the place of its mark."""
    return (
        markdown.replace(COMMANDS, "\n".join(describe_commands(cli, "matrixdp"))) if COMMANDS in markdown else markdown
    )


def on_post_page(output: str, **_: Any) -> str:
    """Refuse a page that would load something from the network; name the role of its search for screen readers."""
    loaded = LOADED.findall(output)
    if loaded:
        raise PluginError(f"the site must not load anything from the network, got {loaded} instead")
    return output.replace('data-md-component="search" role="dialog"', 'data-md-component="search" role="search"')


def describe_commands(group: click.Group, path: str) -> Iterator[str]:
    """A section with the text of ``--help`` for each command of a group, and of the groups within it."""
    for name, command in group.commands.items():
        full = f"{path} {name}"
        if isinstance(command, click.Group):
            yield from describe_commands(command, full)
        else:
            context = click.Context(command, info_name=full, terminal_width=100, max_content_width=100)
            yield f"## {full}\n\n```text\n{command.get_help(context)}\n```\n"
