"""The three public data sets of the paper's experiments, checked against their SHA-256, or a marked stand-in.

Looked for in the folder that ``MATRIXDP_DATA`` names, then in the user's cache, then downloaded from the UCI archive.
"""

from matrixdp.datasets.catalogue import CATALOGUE, Source
from matrixdp.datasets.loader import DatasetError, load_table
from matrixdp.datasets.simulated import simulate_table
from matrixdp.datasets.table import Table

__all__ = ["CATALOGUE", "DatasetError", "Source", "Table", "load_table", "simulate_table"]
