"""The command line: from a table to a private matrix without writing code.

Modules that hold commands import click and nothing that is slow; what a command needs it imports when it runs.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Entry of the console script, with a remedy when the extra is not installed."""
    try:
        import click  # noqa: F401
    except ImportError:
        sys.stderr.write("matrixdp: the command line needs an extra: pip install 'matrixdp[cli]'\n")
        raise SystemExit(2) from None
    from matrixdp.cli.main import run

    sys.exit(run())
