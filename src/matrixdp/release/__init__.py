"""Releases: the only room where private data and noise meet."""

from matrixdp.release.mechanism import check_stream, release
from matrixdp.release.released import Guaranteed, Release
from matrixdp.release.rows import RowMechanism, check_rows

__all__ = ["Guaranteed", "Release", "RowMechanism", "check_rows", "check_stream", "release"]
