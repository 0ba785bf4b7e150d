"""``python -m matrixdp.paper [parts...]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from matrixdp.errors import MatrixDPError
from matrixdp.paper.command import DEFAULT_FOLDER, PARTS, reproduce


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run, and print the path of the report."""
    parser = argparse.ArgumentParser(prog="python -m matrixdp.paper", description="Repeat the paper's experiments.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--trials", type=int, default=100, help="trials of each row, at least 2 (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulated noise (default: 0)")
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help=f"folder (default: {DEFAULT_FOLDER})")
    parser.add_argument("--plugin", action="append", default=[], metavar="MODULE", help="registers mechanisms")
    options = parser.parse_args(arguments)
    try:
        print(reproduce(options.parts, options.trials, options.seed, options.out, plugins=options.plugin))
    except MatrixDPError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; run the same command again to resume.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
