"""Engines: records outside of memory, worked on by threads, by a Dask cluster or by Spark, with the same bits."""

from matrixdp.engines.dataset import DatasetRelease, release_dataset
from matrixdp.engines.records import open_records

__all__ = ["DatasetRelease", "open_records", "release_dataset"]
