"""Reports of a release: pictures, tables, one page that explains it, and a folder of files."""

from matrixdp.report.content import RESULTS, LedgerState, Result, make_result
from matrixdp.report.files import write_folder
from matrixdp.report.html import release_page
from matrixdp.report.pictures import design_picture, matrix_picture, std_picture

__all__ = [
    "RESULTS",
    "LedgerState",
    "Result",
    "design_picture",
    "make_result",
    "matrix_picture",
    "release_page",
    "std_picture",
    "write_folder",
]
