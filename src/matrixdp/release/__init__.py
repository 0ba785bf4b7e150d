"""Releases: the only package in which private data and noise meet."""

from matrixdp.release.comparison import Comparison, compare
from matrixdp.release.dataset import DatasetRelease, release_dataset
from matrixdp.release.matrix import check_stream, release
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.registry import (
    Mechanism,
    find_mechanism,
    gaussian_cost,
    load_plugins,
    pure_cost,
    register_mechanism,
    registered_mechanisms,
)
from matrixdp.release.result import Guaranteed, Release
from matrixdp.release.run_mechanism import release_mechanism

__all__ = [
    "Comparison",
    "DatasetRelease",
    "Guaranteed",
    "Mechanism",
    "MechanismRelease",
    "Release",
    "check_stream",
    "compare",
    "find_mechanism",
    "gaussian_cost",
    "load_plugins",
    "pure_cost",
    "register_mechanism",
    "registered_mechanisms",
    "release",
    "release_dataset",
    "release_mechanism",
]
