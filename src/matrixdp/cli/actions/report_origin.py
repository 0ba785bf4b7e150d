"""Which table a report is of, when it was written, and what the variables of its counts are."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from matrixdp.cli.actions.design_options import DesignOptions
from matrixdp.cli.actions.release_options import ReleaseOptions
from matrixdp.report.content import ReportContent

_MOST_FILES = 3  # that a report names


def name_origin(release: ReleaseOptions) -> tuple[str, str]:
    """The name of a data set in the ledger, or else of its files, and the time."""
    names = [Path(name).name for name in release.data]
    more = len(names) - _MOST_FILES
    files = ", ".join(names[:_MOST_FILES]) + (f" and {more:,} more" if more > 0 else "")
    now = datetime.now(UTC)
    return release.dataset or files, f"{now.day} {now:%B %Y, %H:%M} UTC"


def add_origin(content: ReportContent, design: DesignOptions, release: ReleaseOptions) -> ReportContent:
    """The content with its origin, and with the variables of a table of counts."""
    table, written = name_origin(release)
    variables = design.parse_cells() if design.query == "counts" else content.variables
    return replace(content, table=table, written=written, variables=variables)
