"""The three public data sets of the paper's experiments, checked by SHA-256, or simulated tables marked as such.

A data set is read from the folder ``MATRIXDP_DATA``, from the user's cache, or downloaded from the UCI archive.
"""

from matrixdp.datasets.catalogue import CATALOGUE, Source
from matrixdp.datasets.loader import DatasetError, load_table
from matrixdp.datasets.simulated import simulate_table
from matrixdp.datasets.table import Table

__all__ = ["CATALOGUE", "DatasetError", "Source", "Table", "load_table", "simulate_table"]
