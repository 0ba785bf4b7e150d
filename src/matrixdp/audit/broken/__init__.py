"""Broken variants of queries, designs and fits, each with one mistake that an audit must catch."""

from matrixdp.audit.broken import designs, fits, graphs, moments, tables
from matrixdp.audit.broken.registry import BROKEN

__all__ = ["BROKEN", "designs", "fits", "graphs", "moments", "tables"]
