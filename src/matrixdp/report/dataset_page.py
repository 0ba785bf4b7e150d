"""The report on a noisy data set in files: what its noise allows, and what it protects; no record is shown."""

from __future__ import annotations

import numpy as np

from matrixdp.answers.estimate import Estimate
from matrixdp.display import escape_text, format_number
from matrixdp.release.dataset import DatasetRelease
from matrixdp.report.content import REPLACED
from matrixdp.report.html import list_warnings, render_guarantee
from matrixdp.report.ledger_summary import LedgerSummary
from matrixdp.report.mechanism_facts import read_design
from matrixdp.report.number_tables import render_numbers, tabulate
from matrixdp.report.page import (
    render_document,
    render_files,
    render_fold,
    render_heading,
    render_notes,
    render_paragraphs,
    render_section,
    render_warnings,
)
from matrixdp.report.strength import name_loss
from matrixdp.report.treatment import REFUSED, describe_clipping
from matrixdp.report.words import describe_ledger

DATASET_PAGE = "_report.html"  # readers of data sets skip names that begin with an underscore
_MOST_FILES = 12


def render_dataset_page(
    release: DatasetRelease, *, ledger: LedgerSummary | None = None, table: str = "", written: str = ""
) -> str:
    """The report as an HTML document.

    Parameters
    ----------
    release : DatasetRelease
    ledger : LedgerSummary, optional
        If the release was charged to a ledger.
    table, written : str, optional
        What the table is called that was asked, and when the report was written.

    Privacy
    -------
    Made from the design and public facts only; the released files are not read.
    """
    mechanism = read_design(release.design)
    rows, columns = mechanism.query.shape
    replaced = [REPLACED] if release.missing == "midpoint" else []
    facts = [
        ("Asked", f"A copy of all {rows:,} records of {columns:,} columns, each with noise that hides it."),
        ("Columns", ", ".join(mechanism.query.names or ())),
        ("Table", table),
        ("Privacy", f"{name_loss(mechanism.epsilon)}; protects {mechanism.query.protects}"),
        ("Ledger", "none used" if ledger is None else f"charged to {ledger.allowance or ledger.dataset}"),
    ]
    treatment = render_notes([*describe_clipping(mechanism), *(replaced or [REFUSED])])
    files = [*release.files[:_MOST_FILES], "_release.json"]
    more = f"<p>… and {len(release.files) - _MOST_FILES:,} more.</p>" if len(release.files) > _MOST_FILES else ""
    body = [
        render_heading("Noisy data set", " · ".join(filter(None, ["Differentially private release", written])), facts),
        render_warnings(list_warnings(mechanism, release, ledger, replaced)),
        render_section("Findings", render_paragraphs(_list_findings(release)), kind="findings"),
        render_section("The noise of each column", render_numbers(tabulate(_list_noise(release), "Noise")) + treatment),
        render_section("The guarantee", render_guarantee(mechanism)),
        render_section("The ledger", render_paragraphs(describe_ledger(ledger))),
        render_fold("How the noise was generated", render_paragraphs([mechanism.noise]), card=True),
        render_section("Files in this folder", render_files(files) + more),
        f"<footer>Made by matrixdp {escape_text(release.version)}.</footer>",
    ]
    return render_document(f"Noisy data set – {table}" if table else "Noisy data set", "".join(body))


def _list_noise(release: DatasetRelease) -> Estimate:
    """Standard deviations of the noise of a row and of the average of all rows, beside the largest value."""
    query = release.design.query
    names = query.names or tuple(f"x{i}" for i in range(query.shape[1]))
    largest = np.broadcast_to(query.scale, query.shape)[0]
    value = np.column_stack([release.std, release.std / np.sqrt(query.shape[0]), largest])
    columns = ("noise of one row", "noise of the average", "largest value possible")
    return Estimate(value, np.zeros_like(value), names, columns)


def _list_findings(release: DatasetRelease) -> list[str]:
    """What can be said without reading a record."""
    noise = _list_noise(release).value
    ratios = (noise[:, :2].T / np.where(noise[:, 2] > 0, noise[:, 2], np.nan)).T
    row, average = (format_number(float(np.nanmax(ratios[:, k])), 2) for k in (0, 1))
    count = release.design.query.shape[0]
    return [
        f"A single row says little: its noise is up to {row} times the largest value that a column can have.",
        f"The noise of an average over all {count:,} rows is at most {average} times that value.",
    ]
