"""Reports of a release: pictures, tables, a page that explains the result, and a folder with all of it."""

from matrixdp.report.content import KINDS, LedgerSummary, ReportContent, make_content
from matrixdp.report.pictures import draw_design, draw_matrix
from matrixdp.report.release_folder import write_folder
from matrixdp.report.release_page import render_release

__all__ = [
    "KINDS",
    "LedgerSummary",
    "ReportContent",
    "draw_design",
    "draw_matrix",
    "make_content",
    "render_release",
    "write_folder",
]
