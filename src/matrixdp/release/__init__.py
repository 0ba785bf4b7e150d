"""Releases: the only package in which private data and noise meet."""

from matrixdp.release.dataset import DatasetRelease, release_dataset
from matrixdp.release.matrix import check_stream, release
from matrixdp.release.result import Guaranteed, Release

__all__ = ["DatasetRelease", "Guaranteed", "Release", "check_stream", "release", "release_dataset"]
